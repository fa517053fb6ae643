//! Errors: what opening an account can say, and what AWS's APIs answer.

use std::path::PathBuf;

/// Why an account could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file is held by another process.
    #[error(
        "cannot open the sandbox account {}: another process has it open; stop that process or use another data directory", .path.display()
    )]
    InUse {
        /// The data file.
        path: PathBuf,
    },
    /// The file could not be opened or created.
    #[error("cannot open the sandbox account {}; check that the folder exists and is writable", .path.display())]
    Open {
        /// The data file.
        path: PathBuf,
        /// What the storage said.
        #[source]
        source: Box<redb::Error>,
    },
    /// The file was written by a newer version.
    #[error(
        "the sandbox account {} has format {found}, and this version reads formats up to {supported}; use the newer version that wrote it, or another data directory",
        .path.display()
    )]
    NewerFormat {
        /// The data file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The newest format that this version reads.
        supported: u64,
    },
    /// The stored account could not be read.
    #[error("cannot read the sandbox account from its data file")]
    Store(#[from] StoreError),
}

/// Why the account's data file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Reading failed.
    #[error("reading the sandbox account's data file failed")]
    Read(#[source] Box<redb::Error>),
    /// Writing failed; nothing of the change was kept.
    #[error("writing the sandbox account's data file failed; is the disk full?")]
    Write(#[source] Box<redb::Error>),
    /// A stored entity is not what this version writes.
    #[error("the stored entity {key} is damaged")]
    Entity {
        /// Kind and key of the entity.
        key: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// An entity could not be turned into bytes.
    #[error("cannot store the entity {key}")]
    Encode {
        /// Kind and key of the entity.
        key: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// Logs an error with its causes.
pub(crate) fn log(error: &StoreError) {
    tracing::error!(
        error = error as &dyn std::error::Error,
        "the sandbox account's data file failed"
    );
}

/// An error as AWS's APIs answer it: a code, a message, an HTTP status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) code: &'static str,
    pub(crate) status: u16,
    pub(crate) message: String,
}

impl ApiError {
    /// An error that the caller can mend: HTTP 400.
    pub(crate) fn client(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            status: 400,
            message: message.into(),
        }
    }

    pub(crate) fn invalid_parameter(message: impl Into<String>) -> Self {
        Self::client("InvalidParameterException", message)
    }

    pub(crate) fn client_exception(message: impl Into<String>) -> Self {
        Self::client("ClientException", message)
    }

    pub(crate) fn serialization(message: impl Into<String>) -> Self {
        Self::client("SerializationException", message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::client("UnsupportedFeatureException", message)
    }

    pub(crate) fn server(message: impl Into<String>) -> Self {
        Self {
            code: "ServerException",
            status: 500,
            message: message.into(),
        }
    }

    pub(crate) fn expired() -> Self {
        Self::client(
            "ExpiredTokenException",
            "The security token included in the request is expired",
        )
    }
}
