//! What can go wrong outside an execution: opening the file, writing it, and API calls.

use std::sync::Arc;

/// Why an engine could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the file open.
    #[error(
        "the execution journal {path} is in use by another process: stop it, or use another data directory"
    )]
    InUse {
        /// The file.
        path: String,
    },
    /// The lock beside the file cannot be taken.
    #[error("cannot lock the execution journal {path}")]
    Lock {
        /// The file.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file cannot be opened, created or read, or is not a database.
    #[error("cannot open the execution journal {path}")]
    Open {
        /// The file.
        path: String,
        /// What went wrong.
        #[source]
        source: JournalError,
    },
    /// The file is a database of something else.
    #[error("{path} is a database, but not an execution journal: use another data directory")]
    Foreign {
        /// The file.
        path: String,
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
        found: i64,
        /// The newest format that this version reads.
        known: i64,
    },
}

/// Why the journal could not be read or written. Cheap to clone: one failed commit answers many.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// SQLite refused.
    #[error("the execution journal refused an operation")]
    Storage(#[source] Arc<rusqlite::Error>),
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

impl From<rusqlite::Error> for JournalError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Storage(Arc::new(error))
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

    /// The error where a change was asked for and could not be made durable: HTTP 500.
    pub(crate) fn shutting_down() -> Self {
        Self {
            kind: "InternalFailure",
            message: "the engine could not write its journal, or is shutting down; try again"
                .to_owned(),
            status: 500,
        }
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
