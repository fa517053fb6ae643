//! Why an event did not start a run, as the event history of a trigger says it.

use serde::{Deserialize, Serialize};

/// What became of an event for a trigger: `finalStatus` of the event history (API 4.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Outcome {
    /// A run was started.
    TargetExecutionRequested,
    /// The run was refused: by the plan, a freeze, a permission, or because a newer event came first.
    TargetDidNotExecute,
    /// The body cannot be read.
    InvalidPayload,
    /// The inputs of the trigger cannot be read or resolved.
    InvalidRuntimeInputYaml,
    /// No condition of an artifact or manifest trigger's `eventConditions` holds.
    TriggerDidNotMatchEventCondition,
    /// The same of `metaDataConditions`.
    TriggerDidNotMatchMetadataCondition,
    /// The same of `jexlCondition` of an artifact trigger.
    TriggerDidNotMatchArtifactJexlCondition,
    /// The event is about another repository.
    NoMatchingTriggerForRepo,
    /// The trigger listens to other events or actions.
    NoMatchingTriggerForEventAction,
    /// A payload condition does not hold.
    NoMatchingTriggerForPayloadConditions,
    /// The JEXL condition does not hold.
    NoMatchingTriggerForJexlConditions,
    /// A header condition does not hold.
    NoMatchingTriggerForHeaderConditions,
    /// The condition on changed files does not hold.
    NoMatchingTriggerForFilepathConditions,
    /// The custom webhook names no enabled trigger.
    NoEnabledCustomTriggerFound,
    /// The trigger is disabled.
    NoEnabledTriggerForProject,
    /// Git could not be asked.
    ScmServiceConnectionFailed,
    /// The pull request could not be asked for.
    FailedToFetchPrDetails,
    /// Something else went wrong.
    ExceptionWhileProcessing,
    /// The signature or token of the delivery is wrong or missing.
    TriggerAuthenticationFailed,
    /// The trigger itself is not valid any more.
    ValidationFailedForTrigger,
    /// A registry answered without versions.
    PollingEventWithNoVersions,
    /// A new artifact was seen.
    NewArtifactEventProcessed,
    /// A new chart was seen.
    NewManifestEventProcessed,
}

impl Outcome {
    /// As the API spells it.
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            _ => String::new(),
        }
    }
}

/// Why a trigger starts nothing for an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The row of the history.
    pub outcome: Outcome,
    /// For people: which condition, what it wants and what the event has.
    pub message: String,
}

impl Refusal {
    /// A refusal that says why.
    pub fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        Self {
            outcome,
            message: message.into(),
        }
    }
}
