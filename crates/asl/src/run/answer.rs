//! Answers to tasks: results of functions, tokens, workers, and ends of other executions.
//!
//! An answer to an attempt that is over changes nothing.

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::Value;

use super::step::{Effect, pending_effect};
use super::task::{Ending, resource_details};
use super::{Answer, Failure, Run};
use crate::definition::{Pattern, Resource};
use crate::effect::{Invoked, LambdaError};
use crate::error::ApiError;
use crate::history::{EventType, details};
use crate::record::{Awaited, Phase, TaskPhase};
use crate::token::Token;

impl Run {
    /// The task of `branch`, if attempt `attempt` still waits.
    pub(super) fn task(&mut self, branch: u32, attempt: u64) -> Option<&mut TaskPhase> {
        match &mut self.branches.get_mut(&branch)?.phase {
            Phase::Task(task) if task.attempt == attempt => Some(task),
            _ => None,
        }
    }

    /// The task that a token stands for; `TaskTimedOut` if it is over.
    fn task_of(&mut self, token: &Token) -> Result<&mut TaskPhase, ApiError> {
        match self.task(token.branch, token.attempt) {
            Some(task) if task.nonce.as_deref() == Some(&token.nonce) => Ok(task),
            _ => Err(task_is_over()),
        }
    }

    /// A function has answered.
    pub(crate) fn invoked(
        &mut self,
        now: Timestamp,
        branch: u32,
        attempt: u64,
        result: Result<Invoked, LambdaError>,
    ) {
        self.now = now;
        let Some(task) = self.task(branch, attempt) else {
            return;
        };
        let then_token = match &mut task.awaited {
            Awaited::Function { .. } => false,
            Awaited::FunctionThenToken { submitted, .. } if !*submitted => {
                *submitted = true;
                true
            }
            _ => return,
        };
        let Some(resource) = self.resource_of(branch) else {
            return;
        };
        match result {
            Err(error) => {
                let failure = error.into_failure();
                self.fail_task(branch, &resource, Ending::Failed, failure);
            }
            Ok(invoked) if then_token => {
                let output = [("output", Some(invoked.into_result()))];
                let submitted = resource_details(&resource, output);
                self.branch_event(branch, EventType::TaskSubmitted, submitted);
            }
            Ok(invoked) => {
                let result = match resource {
                    Resource::Function(_) => invoked.payload,
                    _ => invoked.into_result(),
                };
                self.succeed_task(branch, &resource, result);
            }
        }
    }

    /// A service has answered: to a call, to the submission of a job, or at the end of one.
    pub(crate) fn called(
        &mut self,
        now: Timestamp,
        branch: u32,
        attempt: u64,
        result: Result<Value, LambdaError>,
    ) {
        self.now = now;
        let Some(resource) = self.resource_of(branch) else {
            return;
        };
        let Some(task) = self.task(branch, attempt) else {
            return;
        };
        let Awaited::Service { submitted, .. } = &mut task.awaited else {
            return;
        };
        let pattern = match &resource {
            Resource::Service(service) => service.pattern,
            _ => return,
        };
        match (result, pattern, &submitted) {
            (Err(error), ..) => {
                let failure = error.into_service_failure();
                self.fail_task(branch, &resource, Ending::Failed, failure);
            }
            (Ok(answer), Pattern::RequestResponse, _) | (Ok(answer), Pattern::Sync, Some(_)) => {
                self.succeed_task(branch, &resource, answer);
            }
            (Ok(answer), pattern, _) => {
                if pattern == Pattern::WaitForToken {
                    task.awaited = Awaited::Token;
                } else {
                    *submitted = Some(answer.clone());
                    let effect = pending_effect(branch, attempt, &task.awaited);
                    self.step.effects.extend(effect);
                }
                let details = resource_details(&resource, [("output", Some(answer))]);
                self.branch_event(branch, EventType::TaskSubmitted, details);
            }
        }
    }

    /// Somebody completes a task by its token.
    pub(crate) fn complete(
        &mut self,
        now: Timestamp,
        token: &Token,
        answer: Answer,
    ) -> Result<(), ApiError> {
        self.now = now;
        self.task_of(token)?;
        let Some(resource) = self.resource_of(token.branch) else {
            return Err(task_is_over());
        };
        match answer {
            Answer::Success(output) => self.succeed_task(token.branch, &resource, output),
            Answer::Failure { error, cause } => {
                let failure = Failure::named(error, cause);
                self.fail_task(token.branch, &resource, Ending::Failed, failure);
            }
        }
        Ok(())
    }

    /// The worker is alive. Not written down: see `resume_branch`.
    pub(crate) fn heartbeat(&mut self, now: Timestamp, token: &Token) -> Result<(), ApiError> {
        let task = self.task_of(token)?;
        if let (Some(_), Some(seconds)) = (task.heartbeat_ms, task.heartbeat_seconds) {
            task.heartbeat_ms = Some(now.as_millisecond().saturating_add(seconds * 1000));
        }
        Ok(())
    }

    /// A worker takes the task of an activity; gives token and input, or `None` if it is gone.
    ///
    /// The clocks of timeout and heartbeat start (again) here: Developer Guide, "Task workflow state".
    pub(crate) fn pick_up(
        &mut self,
        now: Timestamp,
        branch: u32,
        attempt: u64,
        worker: Option<String>,
    ) -> Option<(String, String)> {
        self.now = now;
        let now_ms = now.as_millisecond();
        let number = self.number;
        let task = self.task(branch, attempt)?;
        let Awaited::Worker {
            input,
            started,
            worker: taken_by,
            ..
        } = &mut task.awaited
        else {
            return None;
        };
        if *started {
            return None;
        }
        *started = true;
        taken_by.clone_from(&worker);
        let input = input.to_string();
        let due = |seconds: Option<i64>| seconds.map(|s| now_ms.saturating_add(s * 1000));
        task.deadline_ms = due(task.timeout_seconds);
        task.heartbeat_ms = due(task.heartbeat_seconds);
        let token = Token {
            execution: number,
            branch,
            attempt,
            nonce: task.nonce.clone()?,
        };
        let started = details([("workerName", worker.map(Value::from))]);
        self.branch_event(branch, EventType::ActivityStarted, started);
        Some((token.text(), input))
    }
}

impl Run {
    /// Offers again what a worker had taken and, by its tokens, does not know of: it died between the two.
    pub(crate) fn give_back(&mut self, worker: &str, held: &HashSet<String>) {
        let mut offers = Vec::new();
        for (id, branch) in &mut self.branches {
            let Phase::Task(task) = &mut branch.phase else {
                continue;
            };
            let Awaited::Worker {
                activity,
                started,
                worker: Some(by),
                ..
            } = &mut task.awaited
            else {
                continue;
            };
            let Some(nonce) = task.nonce.clone() else {
                continue;
            };
            let token = Token {
                execution: self.number,
                branch: *id,
                attempt: task.attempt,
                nonce,
            };
            if *started && by == worker && !held.contains(&token.text()) {
                *started = false;
                offers.push(Effect::Offer {
                    branch: *id,
                    attempt: task.attempt,
                    activity: activity.clone(),
                });
            }
        }
        self.step.effects.extend(offers);
    }
}

/// The API error for a task that is over.
pub(crate) fn task_is_over() -> ApiError {
    ApiError::new(
        "TaskTimedOut",
        "Task Timed Out: 'Provided task does not exist anymore'",
    )
}
