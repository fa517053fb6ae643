//! Scheduling tasks: arguments, timeouts, and what each integration records before it is done.

use serde_json::{Map, Value, json};

use super::scope::{Extra, in_state, longer_than_allowed};
use super::step::pending_effect;
use super::{Failure, Mock, Run, World};
use crate::definition::{Resource, State, Task};
use crate::history::{EventType, details};
use crate::record::{Phase, TaskPhase};
use crate::template::Template;

/// The times of one attempt, in seconds.
#[derive(Clone, Copy)]
struct Timing {
    timeout: Option<i64>,
    heartbeat: Option<i64>,
}

impl Run {
    pub(super) fn run_task(
        &mut self,
        id: u32,
        state: &State,
        task: &Task,
        world: &dyn World,
    ) -> Result<(), Failure> {
        if let Resource::Activity(arn) = &task.resource
            && !world.activity_exists(arn)
        {
            return Err(self.runtime(id, &format!("The activity {arn} does not exist.")));
        }
        // The scheduling event comes next; its id tells this attempt from others.
        let attempt = self.next_event;
        let (token, nonce) = if task.resource.waits_for_token() {
            let (token, nonce) = self.new_token(id, attempt);
            (Some(token), Some(nonce))
        } else {
            (None, None)
        };
        let extra = Extra {
            token: token.as_deref(),
            ..Extra::default()
        };
        let arguments = self.arguments(id, state, task.arguments.as_ref(), extra)?;
        let effective = self.effective(id, state)?;
        let timing = Timing {
            timeout: self.seconds(id, task.timeout.as_ref(), "TimeoutSeconds", &effective)?,
            heartbeat: self.seconds(id, task.heartbeat.as_ref(), "HeartbeatSeconds", &effective)?,
        };
        let credentials = self.credentials(id, task, &effective)?;
        if let Some(mock) = self.mock() {
            return self.end_mocked_task(id, &task.resource, mock);
        }
        let awaited = self.awaited(id, &task.resource, &arguments)?;
        self.schedule(
            id,
            &task.resource,
            arguments,
            timing,
            credentials,
            world.region(),
        );
        let now_ms = self.now.as_millisecond();
        let due = |seconds: Option<i64>| seconds.map(|s| now_ms.saturating_add(s * 1000));
        let counts_heartbeats =
            task.resource.waits_for_token() && !matches!(task.resource, Resource::Activity(_));
        self.step
            .effects
            .extend(pending_effect(id, attempt, &awaited));
        self.set_phase(
            id,
            Phase::Task(Box::new(TaskPhase {
                attempt,
                deadline_ms: due(timing.timeout),
                timeout_seconds: timing.timeout,
                heartbeat_seconds: timing.heartbeat,
                heartbeat_ms: due(timing.heartbeat).filter(|_| counts_heartbeats),
                nonce,
                awaited,
            })),
        );
        Ok(())
    }

    /// The role that a task takes on, as its scheduling event shows it.
    fn credentials(&self, id: u32, task: &Task, root: &Value) -> Result<Option<Value>, Failure> {
        let template = task.credentials.as_ref();
        let credentials = self.evaluate(id, template, "Credentials", Extra::of(root))?;
        Ok(credentials
            .and_then(|credentials| credentials.get("RoleArn").cloned())
            .map(|role| json!({"roleArn": role})))
    }

    fn end_mocked_task(&mut self, id: u32, resource: &Resource, mock: Mock) -> Result<(), Failure> {
        match mock {
            Mock::Failure { error, cause } => Err(Failure::named(error, cause)),
            Mock::Result(result) => {
                self.succeed_task(id, resource, result);
                Ok(())
            }
        }
    }

    /// A failure that no retrier or catcher takes by `States.ALL`.
    pub(super) fn runtime(&self, id: u32, message: &str) -> Failure {
        match self.branches.get(&id) {
            Some(branch) => Failure::runtime(in_state(branch, message)),
            None => Failure::runtime(message),
        }
    }

    fn seconds(
        &self,
        id: u32,
        template: Option<&Template>,
        field: &str,
        root: &Value,
    ) -> Result<Option<i64>, Failure> {
        let Some(seconds) = self.whole(id, template, field, root)? else {
            return Ok(None);
        };
        match i64::try_from(seconds) {
            Ok(seconds) if (1..=99_999_999).contains(&seconds) => Ok(Some(seconds)),
            _ => Err(self.runtime(
                id,
                &format!("The field '{field}' must be from 1 to 99999999, but was: {seconds}"),
            )),
        }
    }

    /// Records that the task is scheduled, and started where that is at once.
    fn schedule(
        &mut self,
        id: u32,
        resource: &Resource,
        arguments: Value,
        timing: Timing,
        credentials: Option<Value>,
        region: &str,
    ) {
        let timeout = ("timeoutInSeconds", timing.timeout.map(Value::from));
        let heartbeat = ("heartbeatInSeconds", timing.heartbeat.map(Value::from));
        let credentials = ("taskCredentials", credentials);
        match resource {
            Resource::Function(arn) => {
                let scheduled = details([
                    ("resource", Some(arn.clone().into())),
                    ("input", Some(arguments)),
                    timeout,
                    credentials,
                ]);
                self.branch_event(id, EventType::LambdaFunctionScheduled, scheduled);
                self.branch_event(id, EventType::LambdaFunctionStarted, None);
            }
            Resource::Activity(arn) => {
                let scheduled = details([
                    ("resource", Some(arn.clone().into())),
                    ("input", Some(arguments)),
                    timeout,
                    heartbeat,
                ]);
                self.branch_event(id, EventType::ActivityScheduled, scheduled);
            }
            _ => {
                let (kind, name) = resource.names().unwrap_or_default();
                let scheduled = details([
                    ("resourceType", Some(kind.into())),
                    ("resource", Some(name.into())),
                    ("region", Some(region.into())),
                    ("parameters", Some(arguments)),
                    timeout,
                    heartbeat,
                    credentials,
                ]);
                self.branch_event(id, EventType::TaskScheduled, scheduled);
                self.branch_event(id, EventType::TaskStarted, resource_details(resource, []));
            }
        }
    }

    /// A task whose time is up.
    pub(super) fn time_out_task(&mut self, id: u32, heartbeat: bool) {
        let failure = Failure::timeout(heartbeat);
        if let Some(resource) = self.resource_of(id) {
            self.fail_task(id, &resource, Ending::TimedOut, failure);
        }
    }

    /// The resource of the task that branch `id` is in.
    pub(super) fn resource_of(&self, id: u32) -> Option<Resource> {
        let branch = self.branches.get(&id)?;
        match &super::state_of(&self.definition, branch)?.kind {
            crate::definition::Kind::Task(task) => Some(task.resource.clone()),
            _ => None,
        }
    }

    /// Records a failed or timed-out attempt and lets the state fail.
    pub(super) fn fail_task(
        &mut self,
        id: u32,
        resource: &Resource,
        ending: Ending,
        failure: Failure,
    ) {
        use EventType as E;
        let kind = match (resource, ending) {
            (Resource::Function(_), Ending::Failed) => E::LambdaFunctionFailed,
            (Resource::Function(_), Ending::TimedOut) => E::LambdaFunctionTimedOut,
            (Resource::Activity(_), Ending::Failed) => E::ActivityFailed,
            (Resource::Activity(_), Ending::TimedOut) => E::ActivityTimedOut,
            (_, Ending::Failed) => E::TaskFailed,
            (_, Ending::TimedOut) => E::TaskTimedOut,
        };
        let recorded = match resource.names() {
            None => failure.details(),
            Some(_) => resource_details(
                resource,
                [
                    ("error", failure.error.clone().map(Value::from)),
                    ("cause", failure.cause.clone().map(Value::from)),
                ],
            ),
        };
        if let Some(branch) = self.branches.get(&id).cloned() {
            self.let_go(&branch);
        }
        self.set_phase(id, Phase::Run);
        self.branch_event(id, kind, recorded);
        self.fail_state(id, failure);
    }

    /// Records the result of a task and leaves its state.
    pub(super) fn succeed_task(&mut self, id: u32, resource: &Resource, result: Value) {
        self.note("result", &result);
        if longer_than_allowed(&result) {
            let who = match resource {
                Resource::Function(arn) | Resource::Activity(arn) => arn.clone(),
                _ => resource.names().unwrap_or_default().0.to_owned(),
            };
            return self.fail_task(id, resource, Ending::Failed, Failure::too_long(&who));
        }
        let output = ("output", Some(result.clone()));
        let (kind, recorded) = match resource {
            Resource::Function(_) => (EventType::LambdaFunctionSucceeded, details([output])),
            Resource::Activity(_) => (EventType::ActivitySucceeded, details([output])),
            _ => (
                EventType::TaskSucceeded,
                resource_details(resource, [output]),
            ),
        };
        self.set_phase(id, Phase::Run);
        self.branch_event(id, kind, recorded);
        if let Err(failure) = self.finish_state(id, Some(result)) {
            self.fail_state(id, failure);
        }
    }
}

/// How an attempt ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Failed,
    TimedOut,
}

/// Details of a service integration's event: its resource, and `more`.
pub(super) fn resource_details<const N: usize>(
    resource: &Resource,
    more: [(&str, Option<Value>); N],
) -> Option<Map<String, Value>> {
    let (kind, name) = resource.names()?;
    let mut all = details([
        ("resourceType", Some(kind.into())),
        ("resource", Some(name.into())),
    ])?;
    all.extend(details(more)?);
    Some(all)
}
