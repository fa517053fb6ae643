//! Starting executions, with Step Functions' idempotency by name.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::Value;

use crate::arn::check_name;
use crate::driver;
use crate::engine::{Inner, START_LOCKS};
use crate::error::{ApiError, JournalError};
use crate::record::{Execution, Machine, Parent, Redrives, Status};
use crate::redrive::is_of_before;
use crate::run::{LONGEST_PAYLOAD, Run};

/// A request to start an execution.
pub(crate) struct Start {
    pub(crate) machine: String,
    pub(crate) name: Option<String>,
    pub(crate) input: String,
    pub(crate) parent: Option<Parent>,
    pub(crate) trace: Option<String>,
}

/// A child of a distributed `Map`.
pub(crate) struct Iteration {
    pub(crate) parent: Parent,
    pub(crate) map_run: String,
    pub(crate) index: usize,
    /// The machine of the parent's definition that the child runs.
    pub(crate) processor: usize,
    pub(crate) express: bool,
    pub(crate) input: String,
}

impl Inner {
    /// Starts a child of a distributed `Map` of the execution `of`, or finds the one that was started before.
    pub(crate) async fn start_iteration(
        self: &Arc<Self>,
        of: &Execution,
        iteration: Iteration,
    ) -> Result<(u64, Execution), ApiError> {
        let mut parts = iteration.map_run.rsplit(':');
        let run = parts.next().unwrap_or_default();
        let machine_name = parts.next().unwrap_or_default().to_owned();
        let name = format!("{run}-{}", iteration.index);
        let label = machine_name.rsplit('/').next().unwrap_or_default();
        let execution = Execution {
            arn: self.home.execution(&machine_name, &name),
            name,
            machine: format!("{}/{label}", of.machine),
            machine_name,
            role: of.role.clone(),
            revision: of.revision.clone(),
            input: iteration.input,
            status: Status::Running,
            start_ms: self.clock.now_ms(),
            stop_ms: None,
            output: None,
            error: None,
            cause: None,
            parent: Some(iteration.parent),
            trace: None,
            express: iteration.express,
            processor: Some(iteration.processor),
            map_run: Some(iteration.map_run),
            redrives: Redrives::default(),
        };
        loop {
            let turn = self.start_lock(&execution.arn).lock().await;
            match self.by_arn(&execution.arn)? {
                // Its map run was redriven while it ran: it is being stopped.
                Some((number, found)) if is_of_before(&found, &execution) => {
                    drop(turn);
                    self.ended(number).await?;
                }
                Some((number, found)) => {
                    return self.go_on_or_find(number, found, execution).await;
                }
                None => {
                    let input = serde_json::from_str(&execution.input).unwrap_or_default();
                    return self.start_new(execution, input).await;
                }
            }
        }
    }

    /// Starts an execution, or finds the one that the same request started before: Step Functions'
    /// idempotency by name (API reference, `StartExecution`). Whoever goes away before the answer has asked all the same.
    pub(crate) async fn start(
        self: &Arc<Self>,
        request: Start,
    ) -> Result<(u64, Execution), ApiError> {
        let engine = Arc::clone(self);
        self.whole(async move { engine.find_or_start(request).await })
            .await
    }

    async fn find_or_start(self: &Arc<Self>, request: Start) -> Result<(u64, Execution), ApiError> {
        let input = checked_input(&request)?;
        let machine = self.journal.machine(&request.machine)?;
        let machine = machine.ok_or_else(|| machine_does_not_exist(&request.machine))?;
        let name = request
            .name
            .clone()
            .unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let arn = if machine.express {
            // An express execution has no name to itself: each start is another one.
            let start = uuid::Uuid::new_v4();
            self.home.express(&machine.name, &format!("{name}:{start}"))
        } else {
            self.home.execution(&machine.name, &name)
        };
        let _turn = self.start_lock(&arn).lock().await;
        if let Some((number, execution)) = self.by_arn(&arn)? {
            return same_or_refused(number, execution, &request);
        }
        let execution = self.execution(arn, name, machine, request);
        self.start_new(execution, input).await
    }

    /// The execution with this ARN.
    pub(crate) fn by_arn(&self, arn: &str) -> Result<Option<(u64, Execution)>, JournalError> {
        let Some(number) = self.journal.execution_number(arn)? else {
            return Ok(None);
        };
        let execution = self.journal.execution(number)?;
        Ok(execution.map(|execution| (number, execution)))
    }

    pub(crate) fn start_lock(&self, arn: &str) -> &tokio::sync::Mutex<()> {
        let mut hasher = DefaultHasher::new();
        arn.hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % START_LOCKS as u64).unwrap_or_default();
        &self.starts[at]
    }

    fn execution(&self, arn: String, name: String, machine: Machine, request: Start) -> Execution {
        Execution {
            arn,
            name,
            machine: machine.arn,
            machine_name: machine.name,
            role: machine.role,
            revision: machine.revision,
            input: request.input,
            status: Status::Running,
            start_ms: self.clock.now_ms(),
            stop_ms: None,
            output: None,
            error: None,
            cause: None,
            parent: request.parent,
            trace: request.trace,
            express: machine.express,
            processor: None,
            map_run: None,
            redrives: Redrives::default(),
        }
    }

    pub(crate) async fn start_new(
        self: &Arc<Self>,
        execution: Execution,
        input: Value,
    ) -> Result<(u64, Execution), ApiError> {
        let definition = self
            .definition(&execution.revision)?
            .ok_or_else(|| machine_does_not_exist(&execution.machine))?;
        let number = self.journal.next_execution();
        let now = self.clock.now();
        let started = execution.clone();
        let begins = self.turns.take(number, &execution, now);
        let mut run = Run::start(number, execution, definition, input, now);
        if !begins {
            driver::commit(self, &mut run, Vec::new()).await?;
            self.lay_down(number, run.next_deadline());
            self.line_up(&[number]);
            return Ok((number, started));
        }
        self.begin(run).await?;
        Ok((number, started))
    }

    /// Makes the first step of a run durable, and drives it from there.
    pub(crate) async fn begin(self: &Arc<Self>, mut run: Run) -> Result<(), ApiError> {
        run.advance(self.clock.now(), self.as_ref());
        // The driver must be known before anybody can answer one of its tasks.
        let mailbox = self.expect_driver(run.number);
        if let Err(error) = driver::commit(self, &mut run, Vec::new()).await {
            self.forget_driver(run.number);
            return Err(error.into());
        }
        self.drive(run, mailbox);
        Ok(())
    }
}

/// Refuses what the API refuses; gives the input.
fn checked_input(request: &Start) -> Result<Value, ApiError> {
    crate::arn::check(&request.machine, "stateMachine")?;
    if let Some(name) = &request.name {
        check_name(name)?;
    }
    if request.input.len() > LONGEST_PAYLOAD {
        return Err(ApiError::validation(format!(
            "1 validation error detected: Value at 'input' failed to satisfy constraint: Member must have length less than or equal to {LONGEST_PAYLOAD}"
        )));
    }
    serde_json::from_str(&request.input).map_err(|error| {
        ApiError::new(
            "InvalidExecutionInput",
            format!("Invalid State Machine Execution Input: '{error}'"),
        )
    })
}

/// The API error for an unknown machine.
pub(crate) fn machine_does_not_exist(arn: &str) -> ApiError {
    ApiError::new(
        "StateMachineDoesNotExist",
        format!("State Machine Does Not Exist: '{arn}'"),
    )
}

/// The answer where the name is taken: the open execution itself if the request is the same, or the
/// child that this very task started before a crash.
fn same_or_refused(
    number: u64,
    execution: Execution,
    request: &Start,
) -> Result<(u64, Execution), ApiError> {
    let is_own_child = request.parent.is_some() && execution.parent == request.parent;
    // A task that waits for the end would never hear of an execution that somebody else started.
    let may_share = !request.parent.is_some_and(|parent| parent.waits);
    let is_same =
        may_share && execution.status == Status::Running && execution.input == request.input;
    if is_own_child || is_same {
        return Ok((number, execution));
    }
    Err(ApiError::new(
        "ExecutionAlreadyExists",
        format!("Execution Already Exists: '{}'", execution.arn),
    ))
}
