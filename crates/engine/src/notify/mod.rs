//! Which notification rules of a run tell of an event, and starting what sends the notices.
//!
//! A notice is one message of one rule about one event to one receiver. Each is an execution of the machine `notify`,
//! named by what it tells: a repeated start is refused by the service, so an event is told once. Who starts it does
//! not wait for it, and whatever becomes of it, the run goes on.
//!
//! Events of runs and stages are told after they were recorded, and again when the recording is repeated. What
//! steps and people bring forth is told before it is recorded, because nobody comes back to it: the function that
//! sends waits until the record is there, and says nothing about what did not happen.

mod approvers;
mod of_freeze;
mod of_trigger;
mod warned;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_model::id::{EntityId, NodeId, RunId, Scope, StageId};
use slipway_model::status::Status;
use slipway_plan::{ALL_STAGES, EventPlan, NotificationPlan, Plan, StagePlan, reaches_groups};

use crate::error::RunError;
use crate::name;
use crate::runs::Runs;

pub use approvers::approver_rules;
pub use of_freeze::{
    FreezeEvent, FreezeNotice, FreezeWatch, Looked, SavedFreeze, is_enabled, look,
};
pub use of_trigger::{RulesOfPipeline, TRIGGER_FAILED, TriggerNotice};
pub(crate) use warned::warn_of_plan;
pub use warned::warn_of_template;

/// What happened. The names are those of `pipelineEvents[].type` (FEATURES 17).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all_fields = "camelCase")]
pub enum Event {
    /// The run began.
    PipelineStart,
    /// It ended, and well.
    PipelineSuccess,
    /// It ended, and not well. One that a person aborted has not failed.
    PipelineFailed,
    /// It ended.
    PipelineEnd,
    /// A person paused it.
    PipelinePaused {
        /// Number of the signal.
        number: u32,
    },
    /// A person let it go on.
    PipelineResumed {
        /// Number of the signal.
        number: u32,
    },
    /// A stage began.
    StageStart {
        /// The stage.
        stage_id: StageId,
    },
    /// A stage ended, and well.
    StageSuccess {
        /// The stage.
        stage_id: StageId,
    },
    /// A stage ended, and not well.
    StageFailed {
        /// The stage.
        stage_id: StageId,
    },
    /// A step failed for good: no failure strategy tries it again.
    StepFailed {
        /// Its stage.
        stage_id: StageId,
        /// The step.
        node_id: NodeId,
        /// Its attempt.
        attempt: u32,
    },
    /// An approval waits for people. Its user groups are told, whatever the rules of the pipeline say.
    ApprovalRequired {
        /// Its stage.
        stage_id: StageId,
        /// The step.
        node_id: NodeId,
        /// Its attempt.
        attempt: u32,
    },
    /// People approved or rejected. Told as [`Event::ApprovalRequired`] is.
    ApprovalAnswered {
        /// Its stage.
        stage_id: StageId,
        /// The step.
        node_id: NodeId,
        /// Its attempt.
        attempt: u32,
    },
    /// A freeze kept a stage from beginning. Rules of the freeze tell of it, not those of the pipeline.
    DeploymentRejectedDueToFreeze {
        /// The stage.
        stage_id: StageId,
        /// Where the freeze lives.
        scope: Scope,
        /// The freeze.
        freeze: EntityId,
    },
    /// An approval, an input or an answer to a failure is waited for.
    WaitingForUserAction {
        /// Its stage.
        stage_id: StageId,
        /// The step.
        node_id: NodeId,
        /// Its attempt.
        attempt: u32,
    },
}

/// Input of the machine `notify` and of its function: ids only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// The run.
    pub run_id: RunId,
    /// The rule: its place in the plan, or in the freeze, from 0.
    pub rule: usize,
    /// The receiver: its place in the rule, from 0.
    pub receiver: usize,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

impl Event {
    /// The name of its type.
    pub fn name(&self) -> &'static str {
        match self {
            Self::PipelineStart => "PipelineStart",
            Self::PipelineSuccess => "PipelineSuccess",
            Self::PipelineFailed => "PipelineFailed",
            Self::PipelineEnd => "PipelineEnd",
            Self::PipelinePaused { .. } => "PipelinePaused",
            Self::PipelineResumed { .. } => "PipelineResumed",
            Self::StageStart { .. } => "StageStart",
            Self::StageSuccess { .. } => "StageSuccess",
            Self::StageFailed { .. } => "StageFailed",
            Self::StepFailed { .. } => "StepFailed",
            Self::ApprovalRequired { .. } => "ApprovalRequired",
            Self::ApprovalAnswered { .. } => "ApprovalAnswered",
            Self::DeploymentRejectedDueToFreeze { .. } => "DeploymentRejectedDueToFreeze",
            Self::WaitingForUserAction { .. } => "WaitingForUserAction",
        }
    }

    /// The stage that it happened in.
    pub fn stage(&self) -> Option<&StageId> {
        match self {
            Self::StageStart { stage_id }
            | Self::StageSuccess { stage_id }
            | Self::StageFailed { stage_id }
            | Self::StepFailed { stage_id, .. }
            | Self::DeploymentRejectedDueToFreeze { stage_id, .. }
            | Self::ApprovalRequired { stage_id, .. }
            | Self::ApprovalAnswered { stage_id, .. }
            | Self::WaitingForUserAction { stage_id, .. } => Some(stage_id),
            _ => None,
        }
    }

    /// The step that it happened to, and which attempt of it.
    pub fn step(&self) -> Option<(&NodeId, u32)> {
        match self {
            Self::StepFailed {
                node_id, attempt, ..
            }
            | Self::ApprovalRequired {
                node_id, attempt, ..
            }
            | Self::ApprovalAnswered {
                node_id, attempt, ..
            }
            | Self::WaitingForUserAction {
                node_id, attempt, ..
            } => Some((node_id, *attempt)),
            _ => None,
        }
    }

    /// What tells it from others of its type in a run.
    fn occurrence(&self) -> String {
        match self {
            Self::PipelinePaused { number } | Self::PipelineResumed { number } => {
                number.to_string()
            }
            Self::DeploymentRejectedDueToFreeze {
                stage_id,
                scope,
                freeze,
            } => {
                let level = match (&scope.org, &scope.project) {
                    (None, _) => "account",
                    (_, None) => "org",
                    _ => "project",
                };
                format!("{level}.{freeze}-{stage_id}")
            }
            _ => match (self.step(), self.stage()) {
                (Some((node, attempt)), _) => format!("{node}-{attempt}"),
                (None, Some(stage)) => stage.to_string(),
                (None, None) => String::new(),
            },
        }
    }
}

impl Notice {
    /// Name of its execution: the same for the same notice, and its id for receivers.
    pub fn id(&self) -> String {
        let (run, event) = (&self.run_id, self.event.name());
        let (rule, receiver) = (self.rule, self.receiver);
        let what = self.event.occurrence();
        let told = format!("{event}-{rule}-{receiver}");
        match what.as_str() {
            "" => name::notify_execution(run, &told),
            what => name::notify_execution(run, &format!("{told}-{what}")),
        }
    }
}

/// What the end of a run is told as.
pub fn end_of_run(status: Status) -> Vec<Event> {
    let how = match status {
        status if !status.is_final() => return Vec::new(),
        status if status.is_good() => Some(Event::PipelineSuccess),
        Status::Aborted => None,
        _ => Some(Event::PipelineFailed),
    };
    std::iter::once(Event::PipelineEnd).chain(how).collect()
}

/// What the end of a stage is told as: a stage that was skipped, or aborted by a person, is no event.
pub fn end_of_stage(stage: &StageId, status: Status) -> Option<Event> {
    let stage_id = stage.clone();
    match status {
        Status::Skipped | Status::Aborted => None,
        status if !status.is_final() => None,
        status if status.is_good() => Some(Event::StageSuccess { stage_id }),
        _ => Some(Event::StageFailed { stage_id }),
    }
}

/// Whether a step that ended so has failed: one that was ignored, or aborted by a person, has not.
pub fn step_failed(status: Status) -> bool {
    status.is_final() && !status.is_good() && status != Status::Aborted
}

/// The notices of an event, by the rules of the plan.
pub fn notices(run: &RunId, plan: &Plan, event: &Event) -> Vec<Notice> {
    notices_by(run, &plan.notifications, event, &|wish| {
        covers(plan, wish, event)
    })
}

/// The notices of an event that a freeze brought forth, by the rules of the freeze.
pub fn freeze_notices(run: &RunId, rules: &[NotificationPlan], event: &Event) -> Vec<Notice> {
    notices_by(run, rules, event, &|wish| wish.kind == event.name())
}

fn notices_by(
    run: &RunId,
    rules: &[NotificationPlan],
    event: &Event,
    covers: &dyn Fn(&EventPlan) -> bool,
) -> Vec<Notice> {
    let rules = rules.iter().enumerate();
    let wanted = rules.filter(|(_, rule)| rule.enabled && rule.events.iter().any(covers));
    wanted
        .flat_map(|(number, rule)| {
            (0..receivers(rule)).map(move |receiver| Notice {
                run_id: run.clone(),
                rule: number,
                receiver,
                event: event.clone(),
            })
        })
        .collect()
}

fn covers(plan: &Plan, wish: &EventPlan, event: &Event) -> bool {
    let of_others = matches!(
        event,
        Event::DeploymentRejectedDueToFreeze { .. }
            | Event::ApprovalRequired { .. }
            | Event::ApprovalAnswered { .. }
    );
    if of_others || wish.kind != "AllEvents" && wish.kind != event.name() {
        return false;
    }
    let Some(stage_id) = event.stage() else {
        return true;
    };
    let stage = plan.groups.iter().flatten().find(|s| s.id == *stage_id);
    let Some(stage) = stage else {
        return false;
    };
    let Some((node, _)) = event.step() else {
        return names_stage(&wish.stages, stage);
    };
    names_stage(&wish.stages, stage) && names_step(&wish.steps, stage, node)
}

/// Whether a filter lets a stage through. A loop is named by its own identifier or by that of a turn.
fn names_stage(filter: &[String], stage: &StagePlan) -> bool {
    let turn_of = stage.iteration.as_ref().map(|turn| turn.of.as_str());
    filter.is_empty()
        || filter.iter().any(|name| {
            name == ALL_STAGES
                || name == stage.identifier.as_str()
                || name == stage.id.as_str()
                || Some(name.as_str()) == turn_of
        })
}

fn names_step(filter: &[String], stage: &StagePlan, node: &NodeId) -> bool {
    if filter.is_empty() {
        return true;
    }
    let mut found = false;
    for nodes in [&stage.steps, &stage.rollback_steps] {
        crate::stage::each_step(nodes, &mut |step| {
            let turn_of = step.iteration.as_ref().map(|turn| turn.of.as_str());
            found |= step.id == *node
                && filter.iter().any(|name| {
                    name == step.identifier.as_str()
                        || name == step.id.as_str()
                        || Some(name.as_str()) == turn_of
                });
        });
    }
    found
}

/// How many messages a rule sends of one event: one to whom it names itself, or one for each key of MS Teams, and then
/// one to each of its user groups.
fn receivers(rule: &NotificationPlan) -> usize {
    let Some(method) = &rule.method else { return 0 };
    match receiver_field(method) {
        Some(field) => addresses(&method["spec"][field], field).len() + user_groups(method).len(),
        None => 0,
    }
}

/// The user groups that a method tells, expressions as written. Webhooks and Datadog have none.
pub fn user_groups(method: &Value) -> Vec<&str> {
    match method["type"].as_str() {
        Some(kind) if reaches_groups(kind) => {
            addresses(&method["spec"]["userGroups"], "userGroups")
        }
        _ => Vec::new(),
    }
}

/// The field of a method's spec that says where to.
pub fn receiver_field(method: &Value) -> Option<&'static str> {
    slipway_plan::receiver_field(method["type"].as_str()?)
}

/// What a rule's method says about where to, one entry for each message: expressions as written.
pub fn addresses<'v>(value: &'v Value, field: &str) -> Vec<&'v str> {
    let texts: Vec<&str> = match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let mut filled = texts.into_iter().filter(|text| !text.trim().is_empty());
    match field {
        // All who get a mail get the same one.
        "recipients" => filled.next().into_iter().collect(),
        _ => filled.collect(),
    }
}

impl Runs {
    /// Starts the notices of events. It neither waits for them nor fails: a notice that cannot be started is lost, and
    /// the log says so.
    pub async fn tell(&self, run: &RunId, plan: &Plan, events: &[Event]) {
        let notices = events.iter().flat_map(|event| notices(run, plan, event));
        self.start_notices(notices.collect()).await;
    }

    /// Starts notices, as [`Runs::tell`] does.
    pub(crate) async fn start_notices(&self, notices: Vec<Notice>) {
        let Some(machine) = &self.notify_machine else {
            return;
        };
        for notice in notices {
            if let Err(error) = self.start_notice(machine, &notice).await {
                tracing::error!(
                    run.id = %notice.run_id,
                    notification.rule = notice.rule,
                    notification.event = notice.event.name(),
                    error = %error.full_text(),
                    "a notification is lost: it could not be started"
                );
            }
        }
    }

    async fn start_notice(&self, machine: &str, notice: &Notice) -> Result<(), RunError> {
        self.start_named(machine, &notice.id(), notice).await
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
