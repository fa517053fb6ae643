//! Why something cannot be read, in words, with what kind of failure it is.

use slipway_model::status::{ErrorType, Failure};

/// What went wrong between here and a host. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorType,
    pub(crate) why: String,
}

impl Fault {
    pub(crate) fn new(kind: ErrorType, why: impl Into<String>) -> Self {
        Self {
            kind,
            why: why.into(),
        }
    }

    /// Who asks is not known, or may not ask.
    pub(crate) fn login(why: impl Into<String>) -> Self {
        Self::new(ErrorType::Authentication, why)
    }

    /// The same fault, told with more words.
    pub(crate) fn told(self, tell: impl FnOnce(String) -> String) -> Self {
        Self {
            why: tell(self.why),
            ..self
        }
    }
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::new(ErrorType::Unknown, why)
    }
}

/// For those who only tell it.
impl From<Fault> for String {
    fn from(fault: Fault) -> Self {
        fault.why
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::new(failure.error, failure.message)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self {
            error: fault.kind,
            message: fault.why,
            left_behind: None,
        }
    }
}
