//! What can go wrong outside an execution: opening the file, writing it, and API calls.

use std::sync::Arc;

/// Why an engine could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be opened or created, or is not a database of this engine.
    #[error("cannot open the execution journal {path}")]
    Open {
        /// The file.
        path: String,
        /// What redb said.
        #[source]
        source: Box<redb::DatabaseError>,
    },
    /// The file was written by a newer version.
    #[error(
        "the execution journal {path} has format {found}, this version reads up to {known}: \
         use the version that wrote it, or another data directory"
    )]
    Newer {
        /// The file.
        path: String,
        /// The format in the file.
        found: u64,
        /// The newest format that this version reads.
        known: u64,
    },
    /// The file opens but cannot be read.
    #[error("cannot read the execution journal {path}")]
    Read {
        /// The file.
        path: String,
        /// What went wrong.
        #[source]
        source: JournalError,
    },
}

/// Why the journal could not be read or written. Cheap to clone: one failed commit answers many.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// redb refused.
    #[error("the execution journal refused an operation")]
    Storage(#[source] Arc<redb::Error>),
    /// A record does not have the form that this version writes.
    #[error("the execution journal holds a record that cannot be read: {what}")]
    Damaged {
        /// Which record.
        what: &'static str,
        /// What the decoder said.
        #[source]
        source: Arc<serde_json::Error>,
    },
    /// A test asked for a crash here.
    #[cfg(test)]
    #[error("the simulated process was killed")]
    Killed,
}

impl JournalError {
    /// Wraps any of redb's error types.
    pub(crate) fn storage(error: impl Into<redb::Error>) -> Self {
        Self::Storage(Arc::new(error.into()))
    }
}

/// An API error as the protocol carries it: `__type` and `message`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub(crate) struct ApiError {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) status: u16,
}

impl ApiError {
    /// An error of the caller: HTTP 400.
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: 400,
        }
    }

    pub(crate) fn validation(message: impl Into<String>) -> Self {
        Self::new("ValidationException", message)
    }

    /// An error of this engine, which a client may retry: HTTP 500.
    pub(crate) fn internal(error: &dyn std::error::Error) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            message.push_str(": ");
            message.push_str(&inner.to_string());
            cause = inner.source();
        }
        Self {
            kind: "InternalFailure",
            message,
            status: 500,
        }
    }
}

impl From<JournalError> for ApiError {
    fn from(error: JournalError) -> Self {
        Self::internal(&error)
    }
}
