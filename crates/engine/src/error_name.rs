//! The closed list of error names that cross borders.
//!
//! One name is the error type of a Lambda answer, what `ErrorEquals` in `statemachines/` matches, the key
//! of a row in `docs/errors.md`, and decides the `code` of a REST error. Names say what happened in words
//! that tell what to do. Tests hold the lists equal.

use serde::{Deserialize, Serialize};

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident => $rest:literal, $retried:literal;)+) => {
        /// Why a function, a machine or a request failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum ErrorName {
            $($(#[$doc])* $name,)+
        }

        impl ErrorName {
            /// Every name, in the order of `docs/errors.md`.
            pub const ALL: &'static [ErrorName] = &[$(ErrorName::$name),+];

            /// The name as Lambda and Amazon States Language spell it.
            pub fn as_str(self) -> &'static str {
                match self { $(ErrorName::$name => stringify!($name),)+ }
            }

            /// The `code` of a REST error body (`../shared/reference/API.md` 1.7).
            pub fn rest_code(self) -> &'static str {
                match self { $(ErrorName::$name => $rest,)+ }
            }

            /// Whether the machines try again by themselves.
            pub fn is_retried(self) -> bool {
                match self { $(ErrorName::$name => $retried,)+ }
            }
        }
    };
}

names! {
    /// The request or the event of a function cannot be understood.
    InvalidRequest => "INVALID_REQUEST", false;
    /// The pipeline cannot be planned: a reference, an input, a field or a step is at fault.
    PlanRefused => "INVALID_REQUEST", false;
    /// Known to Harness, not done by this version.
    Unsupported => "INVALID_REQUEST", false;
    /// What was named does not exist.
    NotFound => "RESOURCE_NOT_FOUND_EXCEPTION", false;
    /// The identifier is taken.
    AlreadyExists => "DUPLICATE_FIELD", false;
    /// Somebody else changed it since it was read.
    Conflict => "OPTIMISTIC_LOCKING_EXCEPTION", false;
    /// Larger than Slipway accepts.
    TooLarge => "INVALID_REQUEST", false;
    /// No valid token was given.
    Unauthenticated => "INVALID_TOKEN", false;
    /// The token does not permit this.
    Forbidden => "NG_ACCESS_DENIED", false;
    /// The store cannot be reached or throttles.
    StoreUnavailable => "SERVICE_UNAVAILABLE", true;
    /// What is stored cannot be read by this version.
    StoreUnreadable => "INTERNAL_SERVER_ERROR", false;
    /// Step Functions cannot be reached or throttles.
    WorkflowUnavailable => "SERVICE_UNAVAILABLE", true;
    /// The provider of a repository cannot be asked now.
    ProviderUnavailable => "SERVICE_UNAVAILABLE", false;
    /// A freeze holds the deployments of the pipeline back.
    Frozen => "INVALID_REQUEST", false;
    /// Another stage deploys this service to this infrastructure; wait for the turn.
    InfrastructureBusy => "RESOURCE_BUSY", false;
    /// Nobody has started the stage yet, which waits for that (`runMode` Manual).
    StageNotStarted => "STAGE_WAITING", false;
    /// The stage does not run because its condition says so.
    StageSkipped => "STAGE_SKIPPED", false;
    /// The stage failed and its failure strategy asks for its rollback steps.
    RollBackStage => "STAGE_FAILED", false;
    /// A stage failed and its failure strategy asks for all stages of the run to be rolled back.
    RollBackRun => "PIPELINE_FAILED", false;
    /// Later stages of the run loop over what the earlier ones brought forth, and are planned now.
    StagesLeft => "PIPELINE_RUNNING", false;
    /// A lane ended with a failure, an abort or a timeout; the run's record has the reason.
    LaneFailed => "STEP_FAILED", false;
    /// The run ended with a failure; its record has the reason.
    RunFailed => "PIPELINE_FAILED", false;
    /// The run was stopped by a person or by a failure strategy.
    RunAborted => "PIPELINE_ABORTED", false;
    /// This delegate does not carry the selectors of the task; another one must take it.
    DelegateUnsuitable => "DELEGATE_NOT_AVAILABLE", true;
    /// A notification could not be sent yet: its receiver cannot be reached, is busy, or what it tells is not recorded yet.
    NotDelivered => "SERVICE_UNAVAILABLE", true;
    /// The receiver of a notification refuses it, or its rule cannot be carried out.
    DeliveryRefused => "INVALID_REQUEST", false;
    /// A defect of Slipway.
    Internal => "INTERNAL_SERVER_ERROR", false;
}

impl std::fmt::Display for ErrorName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
