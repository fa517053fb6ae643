//! Executions that tasks start: `states:startExecution`, and what comes back from them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::task::{Ending, resource_details};
use super::{Effect, Failure, Run};
use crate::definition::{Resource, StartMode};
use crate::error::ApiError;
use crate::history::{EventType, details};
use crate::record::{Awaited, Execution, Status};

impl Run {
    /// The execution that a task asked for has been started, or could not be.
    pub(crate) fn child_started(
        &mut self,
        now: Timestamp,
        branch: u32,
        attempt: u64,
        result: Result<(u64, Execution), ApiError>,
    ) {
        self.now = now;
        if self.map_runs.contains_key(&branch) {
            let stray = result.as_ref().ok().map(|(number, _)| *number);
            if !self.iteration_started(branch, attempt, result) {
                let gone = stray.map(|execution| Effect::StopChild { execution });
                self.step.effects.extend(gone);
            }
            return;
        }
        let (Some(resource), Some(task)) = (self.resource_of(branch), self.task(branch, attempt))
        else {
            // The task has gone meanwhile: so must its execution.
            if let Ok((
                execution,
                Execution {
                    parent: Some(parent),
                    ..
                },
            )) = &result
                && parent.waits
            {
                self.step.effects.push(Effect::StopChild {
                    execution: *execution,
                });
            }
            return;
        };
        let Awaited::Child { child, waits, .. } = &mut task.awaited else {
            return;
        };
        match result {
            Err(error) => {
                let failure = service_failure(&error);
                self.fail_task(branch, &resource, Ending::Failed, failure);
            }
            Ok((number, execution)) => {
                let waits = *waits;
                *child = Some(number);
                let answer = json!({
                    "ExecutionArn": execution.arn,
                    "StartDate": execution.start_ms,
                });
                if resource == Resource::StartExecution(StartMode::Start) {
                    return self.succeed_task(branch, &resource, answer);
                }
                if !waits {
                    task.awaited = Awaited::Token;
                }
                let submitted = resource_details(&resource, [("output", Some(answer))]);
                self.branch_event(branch, EventType::TaskSubmitted, submitted);
                if waits {
                    self.step.effects.push(Effect::CheckChild {
                        branch,
                        attempt,
                        execution: number,
                    });
                }
            }
        }
    }

    /// An execution that a task waits for has ended.
    pub(crate) fn child_closed(
        &mut self,
        now: Timestamp,
        branch: u32,
        attempt: u64,
        execution: &Execution,
    ) {
        self.now = now;
        if self.map_runs.contains_key(&branch) {
            return self.iteration_closed(branch, attempt, execution);
        }
        let Some(resource) = self.resource_of(branch) else {
            return;
        };
        let Some(task) = self.task(branch, attempt) else {
            return;
        };
        let Awaited::Child { child, waits, .. } = &mut task.awaited else {
            return;
        };
        if child.is_none() || !*waits {
            return;
        }
        // Nothing to stop any more.
        *waits = false;
        if execution.status == Status::Succeeded {
            let as_json = resource == Resource::StartExecution(StartMode::Sync2);
            self.succeed_task(branch, &resource, child_result(execution, as_json));
        } else {
            let cause = child_result(execution, false).to_string();
            let failure = Failure::new("States.TaskFailed", cause);
            self.fail_task(branch, &resource, Ending::Failed, failure);
        }
    }
}

/// An error of Step Functions' own API, as its integration reports it.
fn service_failure(error: &ApiError) -> Failure {
    Failure::new(
        format!(
            "StepFunctions.{}Exception",
            error.kind.trim_end_matches("Exception")
        ),
        format!(
            "{} (Service: AWSStepFunctions; Status Code: {}; Error Code: {}; Request ID: {}; Proxy: null)",
            error.message,
            error.status,
            error.kind,
            uuid::Uuid::new_v4()
        ),
    )
}

/// What `startExecution.sync` gives for an execution that has ended; payloads as JSON for `.sync:2`.
fn child_result(execution: &Execution, as_json: bool) -> Value {
    let payload = |text: &String| {
        if as_json {
            serde_json::from_str(text).unwrap_or(Value::Null)
        } else {
            Value::String(text.clone())
        }
    };
    let included = || Some(json!({"Included": true}));
    let succeeded = execution.status == Status::Succeeded;
    let redrive = |value: Value| succeeded.then_some(value);
    let all = details([
        ("Cause", execution.cause.clone().map(Value::from)),
        ("Error", execution.error.clone().map(Value::from)),
        ("ExecutionArn", Some(execution.arn.clone().into())),
        ("Input", Some(payload(&execution.input))),
        ("InputDetails", included()),
        ("Name", Some(execution.name.clone().into())),
        ("Output", execution.output.as_ref().map(payload)),
        (
            "OutputDetails",
            execution.output.as_ref().and_then(|_| included()),
        ),
        ("RedriveCount", redrive(execution.redrives.count.into())),
        ("RedriveStatus", redrive("NOT_REDRIVABLE".into())),
        (
            "RedriveStatusReason",
            redrive("Execution is SUCCEEDED and cannot be redriven".into()),
        ),
        ("StartDate", Some(execution.start_ms.into())),
        ("StateMachineArn", Some(execution.machine.clone().into())),
        ("Status", Some(execution.status.name().into())),
        ("StopDate", execution.stop_ms.map(Value::from)),
    ]);
    Value::Object(all.unwrap_or_default())
}
