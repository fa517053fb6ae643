//! Execution statuses, as the REST API and expressions spell them.

use serde::{Deserialize, Serialize};

/// Status of a run, stage, group or step. The names are those of the REST API
/// (`../shared/reference/API.md` 4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    /// Known, not begun.
    NotStarted,
    /// Waits for its turn.
    Queued,
    /// Working.
    Running,
    /// Waits for a delegate's task or a callback.
    AsyncWaiting,
    /// Waits for time to pass.
    TimedWaiting,
    /// Waits for a lock on a service and infrastructure.
    ResourceWaiting,
    /// Waits for a person's decision about a failure.
    InterventionWaiting,
    /// Waits for an approval.
    ApprovalWaiting,
    /// Waits for an execution-time input.
    InputWaiting,
    /// Paused by a person.
    Paused,
    /// An abort was asked for and is being carried out.
    Discontinuing,
    /// Ended well.
    Success,
    /// Failed, and the failure was ignored.
    IgnoreFailed,
    /// Did not run because its condition said so.
    Skipped,
    /// Failed.
    Failed,
    /// Could not run because of an error of Slipway or of the definition.
    Errored,
    /// Stopped by a person.
    Aborted,
    /// Stopped by a freeze window.
    AbortedByFreeze,
    /// Ran out of time.
    Expired,
    /// An approval was rejected.
    ApprovalRejected,
}

impl Status {
    /// Whether nothing more will happen.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            Self::Success
                | Self::IgnoreFailed
                | Self::Skipped
                | Self::Failed
                | Self::Errored
                | Self::Aborted
                | Self::AbortedByFreeze
                | Self::Expired
                | Self::ApprovalRejected
        )
    }

    /// Whether it ended without harm to what comes after: a skipped node counts as success.
    pub fn is_good(self) -> bool {
        matches!(self, Self::Success | Self::IgnoreFailed | Self::Skipped)
    }
}

/// Error types that failure strategies match on (`errors` in YAML).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ErrorType {
    /// Credentials are invalid, or it cannot be told from authorization.
    Authentication,
    /// Credentials are valid but not permitted.
    Authorization,
    /// The target cannot be reached.
    Connectivity,
    /// No eligible delegate took the task.
    DelegateProvisioning,
    /// The delegate was lost while it worked.
    DelegateRestart,
    /// The step or stage ran out of time.
    Timeout,
    /// A verification failed.
    Verification,
    /// A policy denied the step.
    PolicyEvaluationFailure,
    /// An execution-time input was not given in time.
    InputTimeoutError,
    /// An approval was rejected.
    ApprovalRejection,
    /// A person marked the step as failed.
    UserMarkedFailure,
    /// Anything else.
    Unknown,
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// For failure strategies.
    pub error: ErrorType,
    /// For people: what was being done, to what, why it failed and what to do. Never a secret.
    pub message: String,
    /// Whether something was left behind in the target that a person must look at.
    #[serde(default)]
    pub left_behind: Option<String>,
}
