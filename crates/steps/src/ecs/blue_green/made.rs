//! What the blue-green steps of this stage did so far, in all of their attempts.

use slipway_model::status::Failure;

use super::create::{Phase as Creating, State as Creation};
use super::shift::{Phase as Shifting, State as Shifted};
use super::swap::{Phase as Swapping, State as Swapped};
use super::{Blue, Handover};
use crate::context::StepContext;

/// What there is to go on with, or to undo.
pub(super) struct Made {
    /// How things were before the first attempt.
    pub(super) handover: Handover,
    /// How far the attempts came, at most.
    pub(super) phase: Creating,
    /// The newest task definition of the new version.
    pub(super) task_definition: Option<String>,
    /// Those of all attempts.
    task_definitions: Vec<String>,
    /// Key of the stored manifests.
    pub(super) documents: Option<String>,
    /// Fields that an update of the green service set.
    pub(super) sent: Vec<String>,
    /// ARN of the new service.
    pub(super) arn: Option<String>,
    /// Whether scaling is attached by the swap.
    pub(super) scale_in_swap: bool,
}

impl Made {
    /// What `EcsBlueGreenCreateService` did; `None` when it ended before its first change.
    pub(super) fn read(cx: &StepContext<'_>) -> Result<Option<Self>, Failure> {
        let all: Vec<Creation> = cx.saved_by_all("EcsBlueGreenCreateService")?;
        let mut made: Option<Self> = None;
        for state in all {
            let Some(handover) = state.handover else {
                continue;
            };
            let made = made.get_or_insert_with(|| Self {
                handover,
                phase: Creating::default(),
                task_definition: None,
                task_definitions: Vec::new(),
                documents: None,
                sent: Vec::new(),
                arn: None,
                scale_in_swap: false,
            });
            made.phase = made.phase.max(state.phase);
            made.sent.extend(state.sent);
            made.arn = state.arn.or(made.arn.take());
            made.documents = state.documents.or(made.documents.take());
            made.scale_in_swap = state.scale_in_swap;
            if let Some(registered) = state.task_definition {
                made.task_definitions.push(registered.arn.clone());
                made.task_definition = Some(registered.arn);
            }
        }
        Ok(made)
    }

    /// Whether `runs` is what this stage deployed.
    pub(super) fn is_ours(&self, runs: Option<&str>) -> bool {
        runs.is_some_and(|runs| self.task_definitions.iter().any(|arn| arn == runs))
    }
}

/// What moved requests in this stage.
#[derive(Default)]
pub(super) struct Moved {
    /// Whether rules may have been changed.
    pub(super) rules: bool,
    /// Whether tags may have been.
    pub(super) tags: bool,
    /// Whether scaling may have been taken off what served.
    pub(super) scaling: bool,
    /// Whether what served may have been scaled down.
    pub(super) downsized: bool,
    /// What served, as it was when requests were moved.
    pub(super) blue: Option<Blue>,
}

impl Moved {
    pub(super) fn read(cx: &StepContext<'_>) -> Result<Self, Failure> {
        let mut moved = Self::default();
        for swap in cx.saved_by_all::<Swapped>("EcsBlueGreenSwapTargetGroups")? {
            moved.rules |= swap.phase >= Swapping::Rules;
            moved.tags |= swap.phase >= Swapping::Tags;
            moved.scaling |= swap.phase >= Swapping::Scale;
            moved.downsized |= swap.phase >= Swapping::Downsize;
            moved.blue = moved.blue.or(swap.old);
        }
        for shift in cx.saved_by_all::<Shifted>("EcsBlueGreenTrafficShift")? {
            let inherited = shift.inherits();
            moved.rules |= inherited && shift.phase >= Shifting::Set;
            moved.tags |= inherited && shift.phase >= Shifting::Tags;
        }
        Ok(moved)
    }
}
