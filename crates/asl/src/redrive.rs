//! Redriving: which executions can be, and how one that ended without success is opened again.
//!
//! Rules: API reference, `RedriveExecution` and `DescribeExecution`; Developer Guide, "Restarting state machine executions
//! with redrive" and "Redriving Map Runs".

use std::sync::Arc;

use jiff::Timestamp;

use crate::engine::Inner;
use crate::error::{ApiError, JournalError};
use crate::journal::{Batch, key};
use crate::record::{Execution, Status};
use crate::run::{Run, map_run_of};
use crate::start::machine_does_not_exist;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// How long after its end an execution can be redriven.
const REDRIVABLE_MS: i64 = 14 * DAY_MS;
/// Longest execution: a year.
const LONGEST_MS: i64 = 365 * DAY_MS;
/// An execution with so many events has no room for what a redrive adds.
const TOO_MANY_EVENTS: u64 = 24_999;
/// How many client tokens are remembered, and for how long after their first use.
const TOKENS: usize = 10;
const TOKEN_MS: i64 = 15 * 60 * 1000;

/// Whether an execution can be redriven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redrivable {
    Yes,
    /// With its map run only, by a redrive of the execution that it belongs to.
    ByMapRun,
    /// Not, for this reason: a word of the API's.
    No(String),
}

impl Redrivable {
    /// `redriveStatus`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Yes => "REDRIVABLE",
            Self::ByMapRun => "REDRIVABLE_BY_MAP_RUN",
            Self::No(_) => "NOT_REDRIVABLE",
        }
    }
}

impl Inner {
    /// Whether an execution can be redriven now.
    pub(crate) fn redrivable(
        &self,
        number: u64,
        execution: &Execution,
    ) -> Result<Redrivable, JournalError> {
        if let Some(reason) = self.keeps_from_redrive(number, execution)? {
            return Ok(Redrivable::No(reason));
        }
        let Some(parent) = execution.parent.filter(|_| execution.map_run.is_some()) else {
            return Ok(match execution.express {
                true => {
                    Redrivable::No("Execution is of type EXPRESS and cannot be redriven".to_owned())
                }
                false => Redrivable::Yes,
            });
        };
        // Its map run goes on only where the execution around it does.
        let around = self.journal.execution(parent.execution)?;
        match around {
            Some(around) => Ok(match self.redrivable(parent.execution, &around)? {
                Redrivable::No(reason) => Redrivable::No(reason),
                _ => Redrivable::ByMapRun,
            }),
            None => Ok(Redrivable::ByMapRun),
        }
    }

    /// What keeps an execution from going on from where it ended.
    fn keeps_from_redrive(
        &self,
        number: u64,
        execution: &Execution,
    ) -> Result<Option<String>, JournalError> {
        if matches!(execution.status, Status::Running | Status::Succeeded) {
            let status = execution.status.name();
            return Ok(Some(format!(
                "Execution is {status} and cannot be redriven"
            )));
        }
        // An express child is started anew, and needs nothing of what it left.
        if execution.express {
            return Ok(None);
        }
        let now_ms = self.clock.now_ms();
        let since = |at_ms: i64| now_ms.saturating_sub(at_ms);
        // Children of a map run belong to the machine before the label.
        let machine = execution.machine.split('/').next().unwrap_or_default();
        let reason = if self.journal.machine(machine)?.is_none() {
            "State machine is in DELETING status"
        } else if !self.journal.has_remains(number)? {
            // An older version of the engine ended it, and kept nothing.
            "Execution was started before the launch of RedriveExecution"
        } else if self.journal.last_event(number)? >= TOO_MANY_EVENTS {
            "Execution history event limit exceeded"
        } else if since(execution.start_ms) >= LONGEST_MS {
            "Execution has exceeded the max execution time"
        } else if execution
            .stop_ms
            .is_some_and(|at_ms| since(at_ms) >= REDRIVABLE_MS)
        {
            "Execution redrivable period exceeded"
        } else {
            return Ok(None);
        };
        Ok(Some(reason.to_owned()))
    }

    /// Redrives the execution with this ARN; gives the time. The same client token again asks for the same redrive.
    pub(crate) async fn redrive(
        self: &Arc<Self>,
        arn: &str,
        token: Option<&str>,
    ) -> Result<i64, ApiError> {
        let _turn = self.start_lock(arn).lock().await;
        let Some((number, mut execution)) = self.by_arn(arn)? else {
            return Err(execution_does_not_exist(arn));
        };
        let now = self.clock.now();
        let now_ms = now.as_millisecond();
        let tokens = &mut execution.redrives.tokens;
        tokens.retain(|(_, at_ms)| now_ms.saturating_sub(*at_ms) < TOKEN_MS);
        let known = tokens.iter().find(|(known, _)| Some(&**known) == token);
        if let Some((_, at_ms)) = known {
            return Ok(*at_ms);
        }
        match self.redrivable(number, &execution)? {
            Redrivable::Yes => {}
            Redrivable::ByMapRun => {
                return Err(not_redrivable(
                    "Execution is redriven by its Map Run: redrive the execution that the Map Run belongs to",
                ));
            }
            Redrivable::No(reason) => return Err(not_redrivable(&reason)),
        }
        let tokens = &mut execution.redrives.tokens;
        tokens.extend(token.map(|token| (token.to_owned(), now_ms)));
        let spare = tokens.len().saturating_sub(TOKENS);
        tokens.drain(..spare);
        self.open_again(number, execution, now).await?;
        Ok(now_ms)
    }

    /// Opens an execution again, at a time that is its `redriveDate`, and drives it.
    async fn open_again(
        self: &Arc<Self>,
        number: u64,
        execution: Execution,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        self.undriven(number).await?;
        let definition = self
            .definition(&execution.revision)?
            .ok_or_else(|| machine_does_not_exist(&execution.machine))?;
        let remains = self.journal.remains(number)?;
        let last_event = self.journal.last_event(number)?;
        let run = Run::redrive(number, execution, definition, remains, last_event, now);
        self.begin(run).await
    }

    /// Gives a child of a map run that there is already. One that did not succeed before its map run was redriven goes
    /// on, or where it is express is started anew.
    pub(crate) async fn go_on_or_find(
        self: &Arc<Self>,
        number: u64,
        found: Execution,
        wanted: Execution,
    ) -> Result<(u64, Execution), ApiError> {
        if run_of(&found) > run_of(&wanted) {
            // Who asks is late: the child belongs to the redrive of its map run.
            return Err(not_redrivable("The Map Run was redriven meanwhile"));
        }
        let is_of_this_run = run_of(&found) == run_of(&wanted);
        if is_of_this_run || self.keeps_from_redrive(number, &found)?.is_some() {
            return Ok((number, found));
        }
        if found.express {
            self.forget(number, &found).await?;
            let input = serde_json::from_str(&wanted.input).unwrap_or_default();
            return self.start_new(wanted, input).await;
        }
        let parent = wanted.parent;
        let now = self.clock.now();
        self.open_again(number, Execution { parent, ..found }, now)
            .await?;
        let opened = self.journal.execution(number)?;
        opened
            .map(|execution| (number, execution))
            .ok_or_else(|| execution_does_not_exist(&wanted.arn))
    }

    /// Takes an ended express child away, in whose place another one with its name is started.
    async fn forget(&self, number: u64, execution: &Execution) -> Result<(), ApiError> {
        self.undriven(number).await?;
        let list = execution.listed_under();
        let mut batch = Batch::default();
        for key in self.journal.keys_of(number)? {
            batch.delete(key);
        }
        batch.delete(key::name(&execution.arn));
        batch.delete(key::listed(list, None, number));
        batch.delete(key::listed(list, Some(execution.status), number));
        Ok(self.journal.commit(batch).await?)
    }
}

/// Whether a child runs that its map run started before it was redriven.
pub(crate) fn is_of_before(found: &Execution, wanted: &Execution) -> bool {
    found.status == Status::Running && run_of(found) < run_of(wanted)
}

/// The event that the run of a child's map run began with.
fn run_of(child: &Execution) -> u64 {
    child
        .parent
        .map_or(0, |parent| map_run_of(parent.attempt).0)
}

fn not_redrivable(reason: &str) -> ApiError {
    ApiError::new(
        "ExecutionNotRedrivable",
        format!("Execution Not Redrivable: '{reason}'"),
    )
}

/// The API error for an unknown execution.
pub(crate) fn execution_does_not_exist(arn: &str) -> ApiError {
    ApiError::new(
        "ExecutionDoesNotExist",
        format!("Execution Does Not Exist: '{arn}'"),
    )
}
