//! Exit codes that scripts can trust.

use std::process::ExitCode;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It, or the run that it followed, succeeded.
    Succeeded,
    /// It, or the run that it followed, failed.
    Failed,
    /// It was called wrongly, or its input is wrong.
    Usage,
    /// The run waits for a person and the caller asked not to wait.
    WaitsForPerson,
    /// The service did not accept who asked.
    NotAuthorised,
    /// An approval was rejected, or a freeze stopped the run.
    Rejected,
    /// The run expired, or following it took too long.
    TimedOut,
    /// The run was aborted, or the command was interrupted.
    Aborted,
}

impl Exit {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::WaitsForPerson => 3,
            Self::NotAuthorised => 4,
            Self::Rejected => 5,
            Self::TimedOut => 124,
            Self::Aborted => 130,
        }
    }

    /// How a run's final status (`API.md` 4.6) ends the command; `None` while it goes on.
    pub fn of_status(status: &str) -> Option<Self> {
        match status {
            "Success" | "IgnoreFailed" | "Skipped" => Some(Self::Succeeded),
            "Failed" | "Errored" | "RollbackFailed" => Some(Self::Failed),
            "ApprovalRejected" | "AbortedByFreeze" => Some(Self::Rejected),
            "Expired" => Some(Self::TimedOut),
            "Aborted" => Some(Self::Aborted),
            _ => None,
        }
    }

    /// Whether a status means that a person must act.
    pub fn waits_for_person(status: &str) -> bool {
        matches!(
            status,
            "ApprovalWaiting" | "InterventionWaiting" | "InputWaiting"
        )
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn statuses_end_commands_with_the_documented_codes() {
        let code = |status| Exit::of_status(status).map(Exit::code);
        assert_eq!(code("Success"), Some(0));
        assert_eq!(code("Failed"), Some(1));
        assert_eq!(code("ApprovalRejected"), Some(5));
        assert_eq!(code("Expired"), Some(124));
        assert_eq!(code("Aborted"), Some(130));
        assert_eq!(code("Running"), None);
    }
}
