//! Failure strategies (FEATURES 6): which action answers a failure.

use slipway_model::status::{ErrorType, Status};

use super::section::{GroupThen, Halt};
use crate::ast::{Action, Strategy};

/// A failure.
#[derive(Clone, Copy)]
pub(super) struct Failed {
    pub(super) error: ErrorType,
    pub(super) status: Status,
    /// When it happened.
    pub(super) at_ms: u64,
    /// What a person said about it, and when.
    pub(super) answer: Option<(&'static str, u64)>,
    pub(super) now_ms: u64,
}

/// What it comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Another attempt of the step, so many milliseconds after it.
    Again(u64),
    /// Another attempt of the group of this level.
    GroupAgain { level: usize, after: u64 },
    /// A person is asked until then.
    Ask { until: u64 },
    /// It is over; what halts names a group by its level.
    Over { status: Status, halt: Option<Halt> },
}

/// Strategies of a level, and how often it was tried again. The first is the step, the last is the stage.
pub(super) type Level<'c> = (&'c [Strategy], u32);

pub(super) fn judge(levels: &[Level<'_>], failed: &Failed) -> Verdict {
    let found = levels
        .iter()
        .enumerate()
        .find_map(|(level, (strategies, _))| {
            let named = strategies
                .iter()
                .find(|one| one.errors.contains(&failed.error));
            let any = || strategies.iter().find(|one| one.errors.is_empty());
            Some((named.or_else(any)?, level))
        });
    match found {
        Some((strategy, level)) => settle(&strategy.action, level, levels, failed),
        None => settle(&Action::MarkAsFailure, 0, levels, failed),
    }
}

/// What a failure comes to that a person brought about to roll the stage back: no strategy is asked.
pub(super) fn rolls_back(status: Status) -> Verdict {
    Verdict::Over {
        status,
        halt: Some(Halt::Failure { stage: true }),
    }
}

fn settle(action: &Action, level: usize, levels: &[Level<'_>], failed: &Failed) -> Verdict {
    let over = |status, halt| Verdict::Over { status, halt };
    let group = Some(level.max(1)).filter(|group| group + 1 < levels.len());
    let stage = Some(Halt::Failure { stage: true });
    match action {
        Action::Ignore => over(Status::IgnoreFailed, None),
        Action::MarkAsSuccess => over(Status::Success, None),
        Action::MarkAsFailure => over(failed.status, None),
        Action::StageRollback => over(failed.status, stage),
        Action::PipelineRollback => over(failed.status, Some(Halt::Run)),
        Action::StepGroupRollback => {
            let roll_back = |level| Halt::Group {
                depth: level,
                then: GroupThen::RollBack,
            };
            over(failed.status, group.map(roll_back).or(stage))
        }
        Action::Abort => over(Status::Aborted, Some(Halt::Abort)),
        Action::Retry {
            group: false,
            count,
            after,
            then,
        } => match levels.first() {
            Some((_, retried)) if retried < count => Verdict::Again(after * 1_000),
            _ => settle(then, level, levels, failed),
        },
        Action::Retry {
            group: true,
            count,
            after,
            then,
        } => match group {
            Some(level) if levels[level].1 < *count => Verdict::GroupAgain {
                level,
                after: after * 1_000,
            },
            _ => settle(then, level, levels, failed),
        },
        Action::Ask { timeout, then } => {
            let until = failed.at_ms.saturating_add(timeout * 1_000);
            match failed.answer {
                Some((answer, at)) if at < until => answered(answer, level, levels, failed),
                _ if failed.now_ms < until => Verdict::Ask { until },
                _ => settle(then, level, levels, failed),
            }
        }
    }
}

fn answered(answer: &str, level: usize, levels: &[Level<'_>], failed: &Failed) -> Verdict {
    let action = match answer {
        "Retry" => return Verdict::Again(0),
        "Ignore" => Action::Ignore,
        "MarkAsSuccess" => Action::MarkAsSuccess,
        "MarkAsFailure" => Action::MarkAsFailure,
        "StageRollback" => Action::StageRollback,
        "StepGroupRollback" => Action::StepGroupRollback,
        "PipelineRollback" => Action::PipelineRollback,
        "Abort" => Action::Abort,
        other => panic!("{other} is no answer"),
    };
    settle(&action, level, levels, failed)
}
