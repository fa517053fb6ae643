//! What the use cases can fail with.

use slipway_store::StoreError;

use crate::error_name::ErrorName;

/// Why a use case did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It was refused: the name and the message say why.
    #[error("{message}")]
    Refused {
        /// For machines and REST clients.
        name: ErrorName,
        /// For people: what was being done, to what, why not, and what to do.
        message: String,
    },
    /// Documents are at fault.
    #[error("{}", crate::start::told(faults))]
    Faulty {
        /// Every fault, with file, line, column and what would be right, and the warnings that were found beside them.
        faults: Vec<slipway_model::Diagnostic>,
    },
    /// The store did not answer as hoped.
    #[error("cannot {doing}")]
    Store {
        /// What was being done, and to what.
        doing: String,
        /// Why it failed.
        #[source]
        source: StoreError,
    },
    /// Step Functions did not answer as hoped.
    #[error("cannot {doing}")]
    Workflow {
        /// What was being done, and to what.
        doing: String,
        /// Why it failed.
        #[source]
        source: Box<aws_sdk_sfn::Error>,
    },
}

impl RunError {
    /// A refusal.
    pub fn refused(name: ErrorName, message: impl Into<String>) -> Self {
        Self::Refused {
            name,
            message: message.into(),
        }
    }

    /// Documents at fault.
    pub fn faulty(faults: Vec<slipway_model::Diagnostic>) -> Self {
        Self::Faulty { faults }
    }

    /// The name under which it crosses borders.
    pub fn name(&self) -> ErrorName {
        match self {
            Self::Refused { name, .. } => *name,
            Self::Faulty { .. } => ErrorName::PlanRefused,
            Self::Store { source, .. } => store_error_name(source),
            Self::Workflow { .. } => ErrorName::WorkflowUnavailable,
        }
    }

    /// The message with all its causes, for people.
    pub fn full_text(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        text
    }
}

/// Adds what was being done to a store's error.
pub trait Doing<T> {
    /// `Err` tells that this was being done.
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, RunError>;
}

impl<T> Doing<T> for Result<T, StoreError> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, RunError> {
        self.map_err(|source| RunError::Store {
            doing: what(),
            source,
        })
    }
}

impl<T, E> Doing<T> for Result<T, aws_sdk_sfn::error::SdkError<E>>
where
    aws_sdk_sfn::Error: From<aws_sdk_sfn::error::SdkError<E>>,
{
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, RunError> {
        self.map_err(|source| RunError::Workflow {
            doing: what(),
            source: Box::new(source.into()),
        })
    }
}

fn store_error_name(error: &StoreError) -> ErrorName {
    match error {
        StoreError::NotFound { .. } => ErrorName::NotFound,
        StoreError::AlreadyExists { .. } => ErrorName::AlreadyExists,
        StoreError::Conflict { .. } => ErrorName::Conflict,
        StoreError::TooLarge { .. } => ErrorName::TooLarge,
        StoreError::Invalid { .. } => ErrorName::InvalidRequest,
        StoreError::Throttled { .. } | StoreError::Unavailable { .. } => {
            ErrorName::StoreUnavailable
        }
        StoreError::Unreadable { .. } => ErrorName::StoreUnreadable,
    }
}

/// What a function answers when it fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {message}")]
pub struct HandlerError {
    /// What `ErrorEquals` in the machines matches.
    pub name: ErrorName,
    /// For people.
    pub message: String,
}

impl HandlerError {
    /// An error of this name.
    pub fn new(name: ErrorName, message: impl Into<String>) -> Self {
        Self {
            name,
            message: message.into(),
        }
    }
}

impl From<RunError> for HandlerError {
    fn from(error: RunError) -> Self {
        Self::new(error.name(), error.full_text())
    }
}
