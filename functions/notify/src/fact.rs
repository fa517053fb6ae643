//! Whether what a notice tells has happened: most notices are started just before it is recorded.

use slipway_engine::notify::{Event, end_of_run, end_of_stage, step_failed};
use slipway_engine::signal::pause_signal;
use slipway_model::id::{NodeId, StageId};
use slipway_model::status::{ErrorType, Status};
use slipway_store::record::{NodeRecord, SignalRecord, StageSummary};

use crate::Facts;

/// What the store says of an event.
pub(crate) enum Fact<'f> {
    /// It happened, and this is the record of it.
    Happened(Record<'f>),
    /// It is about to be recorded.
    NotYet,
    /// It did not happen, or is over: telling it would mislead.
    Never(&'static str),
}

/// The record that an event is about.
#[derive(Clone, Copy)]
pub(crate) enum Record<'f> {
    Run,
    Signal(&'f SignalRecord),
    Stage(&'f StageSummary),
    Step(&'f NodeRecord),
}

const OTHERWISE: &str = "it ended in another way";

/// Looks an event up.
pub(crate) fn find<'f>(facts: &'f Facts, event: &Event) -> Fact<'f> {
    let fact = recorded(facts, event);
    match fact {
        Fact::NotYet if facts.run.status.is_final() => Fact::Never("the run ended before"),
        other => other,
    }
}

fn recorded<'f>(facts: &'f Facts, event: &Event) -> Fact<'f> {
    let status = facts.run.status;
    match event {
        Event::PipelineStart if status == Status::NotStarted => Fact::NotYet,
        Event::PipelineStart => Fact::Happened(Record::Run),
        Event::PipelineSuccess | Event::PipelineFailed | Event::PipelineEnd => {
            match (status.is_final(), end_of_run(status).contains(event)) {
                (false, _) => Fact::NotYet,
                (true, true) => Fact::Happened(Record::Run),
                (true, false) => Fact::Never(OTHERWISE),
            }
        }
        Event::PipelinePaused { number } | Event::PipelineResumed { number } => {
            match pause_signal(&facts.run, *number) {
                Some(signal) => Fact::Happened(Record::Signal(signal)),
                None => Fact::NotYet,
            }
        }
        Event::StageStart { stage_id } => match stage(facts, stage_id) {
            None => Fact::NotYet,
            Some(stage) => match stage.status {
                Status::NotStarted | Status::ResourceWaiting | Status::InputWaiting => Fact::NotYet,
                Status::Skipped => Fact::Never("the stage was skipped"),
                _ => Fact::Happened(Record::Stage(stage)),
            },
        },
        Event::StageSuccess { stage_id } | Event::StageFailed { stage_id } => {
            match stage(facts, stage_id) {
                Some(stage) if stage.status.is_final() => {
                    match end_of_stage(stage_id, stage.status).as_ref() == Some(event) {
                        true => Fact::Happened(Record::Stage(stage)),
                        false => Fact::Never(OTHERWISE),
                    }
                }
                _ => Fact::NotYet,
            }
        }
        Event::ApprovalRequired {
            node_id, attempt, ..
        } => match step(facts, node_id, *attempt) {
            Some(step) if step.status == Status::ApprovalWaiting => {
                Fact::Happened(Record::Step(step))
            }
            Some(step) if step.status.is_final() => Fact::Never("nobody is waited for any more"),
            _ => Fact::NotYet,
        },
        Event::ApprovalAnswered {
            node_id, attempt, ..
        } => match step(facts, node_id, *attempt) {
            Some(step) if answered(step) => Fact::Happened(Record::Step(step)),
            Some(step) if step.status.is_final() => Fact::Never(OTHERWISE),
            _ => Fact::NotYet,
        },
        Event::DeploymentRejectedDueToFreeze { stage_id, .. } => match stage(facts, stage_id) {
            Some(stage) if stage.status == Status::AbortedByFreeze => {
                Fact::Happened(Record::Stage(stage))
            }
            Some(stage) if stage.status.is_final() => Fact::Never(OTHERWISE),
            _ => Fact::NotYet,
        },
        Event::StepFailed {
            node_id, attempt, ..
        } => match step(facts, node_id, *attempt) {
            Some(step) if step_failed(step.status) => Fact::Happened(Record::Step(step)),
            Some(step) if step.status.is_final() => Fact::Never(OTHERWISE),
            _ => Fact::NotYet,
        },
        Event::WaitingForUserAction {
            node_id, attempt, ..
        } => match step(facts, node_id, *attempt) {
            Some(step) if waits(step.status) => Fact::Happened(Record::Step(step)),
            Some(step) if step.status.is_final() => Fact::Never("nobody is waited for any more"),
            _ => Fact::NotYet,
        },
    }
}

/// Whether people approved or rejected.
fn answered(step: &NodeRecord) -> bool {
    let error = step.failure.as_ref().map(|failure| failure.error);
    let ended = step.ended_ms.is_some() || step.asked_ms.is_some();
    ended && matches!(error, None | Some(ErrorType::ApprovalRejection))
}

fn waits(status: Status) -> bool {
    matches!(
        status,
        Status::ApprovalWaiting | Status::InputWaiting | Status::InterventionWaiting
    )
}

fn stage<'f>(facts: &'f Facts, id: &StageId) -> Option<&'f StageSummary> {
    facts.run.stages.iter().find(|stage| stage.id == *id)
}

fn step<'f>(facts: &'f Facts, id: &NodeId, attempt: u32) -> Option<&'f NodeRecord> {
    let mut nodes = facts.nodes.iter();
    nodes.find(|node| node.id == *id && node.attempt == attempt)
}
