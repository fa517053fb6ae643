//! Failure strategies: which action answers a failure.
//!
//! The nearest level with a strategy for the error decides: step, then step groups from the inside out,
//! then stage. On one level a strategy that names the error comes before one for `AllErrors`; among equals
//! the first. (developer.harness.io, *Define failure strategies for stages and steps*.)

mod parse;

use std::time::Duration;

use slipway_model::status::{ErrorType, Status};
use slipway_plan::FailureStrategy;

pub use parse::{answer, parse};

/// What is done about a failed step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Count the failure as none, and go on.
    Ignore,
    /// Pretend success, and go on.
    MarkAsSuccess,
    /// Leave it failed; what follows runs by its conditions.
    MarkAsFailure,
    /// Stop here and run the stage's rollback steps.
    StageRollback,
    /// Stop the step group, run its rollback steps, and end the stage as failed.
    StepGroupRollback,
    /// Stop here and roll every stage of the run back, the last one first.
    PipelineRollback,
    /// Stop the whole run without rolling back.
    Abort,
    /// Run the step again, and fall back on another action when that did not help.
    Retry(Retry),
    /// Run the step group again from its start, likewise.
    RetryStepGroup(Retry),
    /// Go on with the defaults of the inputs that nobody gave in time. Any other failure is left as it is.
    ProceedWithDefaultValues,
    /// Ask a person, and fall back on another action when nobody answers.
    ManualIntervention(Intervention),
}

/// The `Retry` and `RetryStepGroup` actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How many more attempts.
    pub count: u32,
    /// Waits before the attempts; the last one repeats.
    pub intervals: Vec<Duration>,
    /// An attempt follows only where this expression holds.
    pub condition: Option<String>,
    /// What to do when all attempts failed.
    pub then: Box<Action>,
}

/// The `ManualIntervention` action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intervention {
    /// How long the answer is waited for.
    pub timeout: Duration,
    /// What to do when there is none.
    pub then: Box<Action>,
}

impl Retry {
    /// The wait before attempt number `attempt` (1 is the first retry).
    fn wait_before(&self, attempt: u32) -> Duration {
        let index = attempt.saturating_sub(1) as usize;
        let interval = self.intervals.get(index).or(self.intervals.last());
        interval.copied().unwrap_or(Duration::ZERO)
    }
}

/// A level that may have failure strategies. The first of a list is the step, the last is the stage, between
/// them are the step groups from the inside out.
#[derive(Clone, Copy, Debug)]
pub struct Level<'p> {
    /// Its `failureStrategies`.
    pub strategies: &'p [FailureStrategy],
    /// How often it has been tried again before, for a step or a group.
    pub retried: u32,
}

/// A failure to be judged.
#[derive(Clone, Copy, Debug)]
pub struct Failed<'a> {
    /// Whether it is of a step group itself: the first level is that group then.
    pub is_group: bool,
    /// Conditions of retries (see [`conditions`]) that did not hold when it happened.
    pub refused: &'a [String],
    /// Its type.
    pub error: ErrorType,
    /// Its own status: `Failed`, `Expired`, ….
    pub status: Status,
    /// When it happened, in epoch milliseconds.
    pub at_ms: i64,
    /// When the time of a step group around it is up, in epoch milliseconds. A question that was asked before waits no
    /// longer for its answer.
    pub limit_ms: Option<i64>,
    /// What a person said about it.
    pub answer: Option<&'a Answer>,
    /// Now, in epoch milliseconds.
    pub now_ms: i64,
}

/// What a person said about a failure that asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What to do.
    pub action: Action,
    /// When, in epoch milliseconds.
    pub at_ms: i64,
}

/// What a failure comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Another attempt of the step follows after this time.
    Again(Duration),
    /// Another attempt of a group follows after this time.
    GroupAgain {
        /// Which level, as [`judge`] was given them.
        level: usize,
        /// The time.
        wait: Duration,
    },
    /// The step runs with the defaults of its inputs.
    Proceed,
    /// A person is asked until this time, in epoch milliseconds.
    Ask {
        /// The time.
        until_ms: i64,
    },
    /// It is over.
    Over {
        /// Status to record.
        status: Status,
        /// What comes after it does not run, and this is undone; `None` lets the rest run by its conditions.
        halt: Option<Undo>,
    },
}

/// What is undone after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Undo {
    /// Nothing.
    Nothing,
    /// A step group: which level, as [`judge`] was given them.
    Group(usize),
    /// The stage.
    Stage,
    /// The whole run.
    Run,
}

/// Decides about a failure at `levels`, nearest first.
pub fn judge(levels: &[Level<'_>], failed: &Failed<'_>) -> Verdict {
    let (action, level) = resolve(levels, failed.error);
    settle(action, level, levels, failed)
}

/// The conditions that [`judge`] may want to know the answers to: those of the retries in the action for `error`, and in
/// what it falls back on. They are evaluated once, when the failure happens.
pub fn conditions(levels: &[Level<'_>], error: ErrorType) -> Vec<String> {
    let mut found = Vec::new();
    let (mut action, _) = resolve(levels, error);
    loop {
        action = match action {
            Action::Retry(retry) | Action::RetryStepGroup(retry) => {
                found.extend(retry.condition);
                *retry.then
            }
            Action::ManualIntervention(asked) => *asked.then,
            _ => return found,
        };
    }
}

fn settle(action: Action, level: usize, levels: &[Level<'_>], failed: &Failed<'_>) -> Verdict {
    // The level of the innermost group at least; none where the last level, the stage, comes next.
    let innermost = usize::from(!failed.is_group);
    let group = Some(level.max(innermost)).filter(|group| group + 1 < levels.len());
    let again = |retry: &Retry, level: usize| {
        let retried = levels.get(level).map_or(u32::MAX, |level| level.retried);
        let condition = retry.condition.as_ref();
        let refused = condition.is_some_and(|condition| failed.refused.contains(condition));
        (retried < retry.count && !refused).then(|| retry.wait_before(retried + 1))
    };
    let over = |status, halt| Verdict::Over { status, halt };
    match action {
        Action::Ignore => over(Status::IgnoreFailed, None),
        Action::MarkAsSuccess => over(Status::Success, None),
        Action::MarkAsFailure => over(failed.status, None),
        Action::StageRollback => over(failed.status, Some(Undo::Stage)),
        Action::StepGroupRollback => {
            let undo = group.map_or(Undo::Stage, Undo::Group);
            over(failed.status, Some(undo))
        }
        Action::ProceedWithDefaultValues if failed.error == ErrorType::InputTimeoutError => {
            Verdict::Proceed
        }
        Action::ProceedWithDefaultValues => over(failed.status, None),
        Action::PipelineRollback => over(failed.status, Some(Undo::Run)),
        Action::Abort => over(Status::Aborted, Some(Undo::Nothing)),
        Action::Retry(retry) => match again(&retry, 0) {
            Some(wait) => Verdict::Again(wait),
            None => settle(*retry.then, level, levels, failed),
        },
        Action::RetryStepGroup(retry) => {
            match group.and_then(|level| Some((level, again(&retry, level)?))) {
                Some((level, wait)) => Verdict::GroupAgain { level, wait },
                None => settle(*retry.then, level, levels, failed),
            }
        }
        Action::ManualIntervention(asked) => {
            let timeout = i64::try_from(asked.timeout.as_millis()).unwrap_or(i64::MAX);
            let own_ms = failed.at_ms.saturating_add(timeout);
            let limit_ms = failed.limit_ms.filter(|limit| failed.at_ms < *limit);
            let until_ms = limit_ms.map_or(own_ms, |limit| limit.min(own_ms));
            match failed.answer.filter(|answer| answer.at_ms < until_ms) {
                Some(answer) => settle(answer.action.clone(), level, levels, failed),
                None if failed.now_ms < until_ms => Verdict::Ask { until_ms },
                None if until_ms < own_ms => {
                    let status = Status::Expired;
                    settle(*asked.then, level, levels, &Failed { status, ..*failed })
                }
                None => settle(*asked.then, level, levels, failed),
            }
        }
    }
}

/// The action for `error`, and its level. With no strategy that matches, the step is left failed.
fn resolve(levels: &[Level<'_>], error: ErrorType) -> (Action, usize) {
    let name = format!("{error:?}");
    let found = levels.iter().enumerate().find_map(|(index, level)| {
        let named = |wanted: &str| {
            let mut all = level.strategies.iter();
            all.find(|strategy| strategy.errors.iter().any(|error| error == wanted))
        };
        Some((named(&name).or_else(|| named("AllErrors"))?, index))
    });
    found
        .and_then(|(strategy, index)| Some((parse(&strategy.action, &strategy.spec).ok()?, index)))
        .unwrap_or((Action::MarkAsFailure, 0))
}
