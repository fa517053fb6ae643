//! Artifacts whose version or place only the run can tell: looked up when their stage begins, by a first step of it.
//!
//! The plan holds the question, with its expressions. What the step was answered is in its record; whoever reads the plan
//! of the run reads it with that, as if it had been known from the start.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use slipway_model::id::NodeId;

use crate::{
    ArtifactPlan, Node, PIN_ARTIFACTS, PinnedArtifact, Plan, ServicePlan, StagePlan, StepPlan,
    WantedArtifact,
};

/// Identifier of the step that asks.
const STEP: &str = "__artifacts";

/// Time of that step beside that of its scripts: registries are asked again while they are busy.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// A question that only the run can ask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LateArtifact {
    /// What is asked; the texts of its question may hold expressions.
    pub wanted: WantedArtifact,
    /// What `<+artifact.image>` begins with, before the digest; `None` where the source has no images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
}

/// What the step that asks was answered, source by source as [`ServicePlan::sources`] lists them; `None` for those that
/// were not asked for or are in no registry.
pub type LateAnswers = Vec<Option<PinnedArtifact>>;

impl ServicePlan {
    /// The primary artifact and the sidecars.
    pub fn sources(&self) -> impl Iterator<Item = &ArtifactPlan> {
        self.artifact.iter().chain(&self.sidecars)
    }

    fn sources_mut(&mut self) -> impl Iterator<Item = &mut ArtifactPlan> {
        self.artifact.iter_mut().chain(&mut self.sidecars)
    }
}

impl Plan {
    /// Whether registries are asked for an artifact of the plan while it runs.
    pub fn has_late_artifacts(&self) -> bool {
        self.groups.iter().flatten().any(has_late)
    }

    /// Pins the artifacts that were looked up while the run went on; `answers_of` tells what the step was answered.
    pub fn pin_late(&mut self, answers_of: &dyn Fn(&NodeId) -> Option<LateAnswers>) {
        for stage in self
            .groups
            .iter_mut()
            .flatten()
            .filter(|stage| has_late(stage))
        {
            let answers = asking(stage).and_then(answers_of).unwrap_or_default();
            let sources = stage.service.iter_mut().flat_map(ServicePlan::sources_mut);
            for (source, answer) in sources.zip(answers) {
                if let (Some(late), Some(pinned)) = (source.late.take(), answer) {
                    source.pin_in_run(&late, pinned);
                }
            }
        }
    }
}

impl ArtifactPlan {
    fn pin_in_run(&mut self, late: &LateArtifact, pinned: PinnedArtifact) {
        self.pin(pinned);
        if let Some(repository) = &late.repository {
            self.image = match (self.digest(), &self.tag) {
                (Some(digest), _) => Some(format!("{repository}@{digest}")),
                (None, Some(tag)) => Some(format!("{repository}:{tag}")),
                (None, None) => None,
            };
        }
    }
}

/// The step of a stage that asks.
fn asking(stage: &StagePlan) -> Option<&NodeId> {
    stage.steps.iter().find_map(|node| match node {
        Node::Step(step) if step.step_type == PIN_ARTIFACTS => Some(&step.id),
        _ => None,
    })
}

fn has_late(stage: &StagePlan) -> bool {
    let mut sources = stage.service.iter().flat_map(ServicePlan::sources);
    sources.any(|source| source.late.is_some())
}

/// Puts the step that asks before all others of a stage, where there is something to ask.
pub(crate) fn ask_first(stage: &mut StagePlan) {
    if !has_late(stage) {
        return;
    }
    let sources = stage.service.iter().flat_map(ServicePlan::sources);
    let scripts = sources.filter_map(|source| {
        let late = source.late.as_ref()?;
        late.wanted.question.place.script_time()
    });
    let time = scripts.fold(PATIENCE, Duration::saturating_add);
    let step = StepPlan::ahead(
        NodeId::new(format!("stages.{}.spec.execution.steps.{STEP}", stage.id)),
        (STEP, "Artifacts of the service"),
        (PIN_ARTIFACTS, json!({})),
        time,
    );
    stage.steps.insert(0, Node::Step(step));
}
