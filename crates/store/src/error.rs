//! What can go wrong between Slipway and its store.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A failed operation of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is nothing under that key.
    #[error("{what} does not exist")]
    NotFound {
        /// Kind and key of the record.
        what: String,
    },
    /// Something is there already.
    #[error("{what} exists already")]
    AlreadyExists {
        /// Kind and key of the record.
        what: String,
    },
    /// It is not in the state that the change expects: somebody else was faster.
    #[error("{what} was changed by somebody else: read it again and repeat the change")]
    Conflict {
        /// Kind and key of the record.
        what: String,
    },
    /// DynamoDB or S3 refused because of load, also after the SDK's own retries.
    #[error("the store is overloaded and refused to {operation}: try again later")]
    Throttled {
        /// What was being done.
        operation: &'static str,
        /// What the service said.
        #[source]
        source: Cause,
    },
    /// A value is larger than the store takes.
    #[error("{what} is too large for the store: {size} bytes, and at most {limit} are taken")]
    TooLarge {
        /// Kind and key of the record.
        what: String,
        /// Bytes, or entries of a queue.
        size: usize,
        /// Most that is taken.
        limit: usize,
    },
    /// A key that cannot exist.
    #[error("{what}: {why}")]
    Invalid {
        /// Kind and key of the record.
        what: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A record is there and cannot be read: it is damaged or a newer version wrote it.
    #[error("{what} cannot be read: it is damaged or was written by a newer version of Slipway")]
    Unreadable {
        /// Kind and key of the record.
        what: String,
        /// Why.
        #[source]
        source: Cause,
    },
    /// The service did not do it: unreachable, full disk, missing table, missing permission.
    #[error(
        "the store could not {operation}: check that its tables, its bucket and its disk are there and not full"
    )]
    Unavailable {
        /// What was being done.
        operation: &'static str,
        /// What the service said.
        #[source]
        source: Cause,
    },
}

impl StoreError {
    /// Reads a conditional failure as "it exists already".
    pub(crate) fn or_exists(self) -> Self {
        match self {
            Self::Conflict { what } => Self::AlreadyExists { what },
            other => other,
        }
    }

    /// Reads a conditional failure as "it does not exist".
    pub(crate) fn or_missing(self) -> Self {
        match self {
            Self::Conflict { what } => Self::NotFound { what },
            other => other,
        }
    }

    pub(crate) fn unreadable(what: impl Into<String>, source: impl Into<Cause>) -> Self {
        Self::Unreadable {
            what: what.into(),
            source: source.into(),
        }
    }
}

/// What DynamoDB's refusal of `operation` on `what` means.
/// Codes: Amazon DynamoDB Developer Guide, "Error handling with DynamoDB".
pub(crate) fn refused<E>(operation: &'static str, what: &str, error: SdkError<E>) -> StoreError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let code = error.code().unwrap_or_default().to_owned();
    let message = error.message().unwrap_or_default().to_owned();
    let what = what.to_owned();
    match code.as_str() {
        "ConditionalCheckFailedException" => StoreError::Conflict { what },
        "TransactionCanceledException" => cancelled(operation, what, &message, error.into()),
        "ValidationException" if message.contains("Item size") => StoreError::Invalid {
            what,
            why: "DynamoDB takes items of at most 400 KB",
        },
        // Of the first two: the same token came with another request, or while the first one is still at work. The
        // next try has a token of its own.
        "IdempotentParameterMismatchException"
        | "TransactionInProgressException"
        | "TransactionConflictException"
        | "ProvisionedThroughputExceededException"
        | "ThrottlingException"
        | "RequestLimitExceeded"
        | "SlowDown" => StoreError::Throttled {
            operation,
            source: error.into(),
        },
        _ => StoreError::Unavailable {
            operation,
            source: error.into(),
        },
    }
}

/// What it means that a transaction was cancelled. The message lists a code per part, in brackets: the reasons of
/// `TransactionCanceledException` in the Amazon DynamoDB API Reference.
fn cancelled(operation: &'static str, what: String, message: &str, source: Cause) -> StoreError {
    let codes = message.rsplit_once('[').map_or(message, |(_, codes)| codes);
    let has = |code: &str| codes.contains(code);
    if has("ConditionalCheckFailed") {
        // It holds whatever befell the other parts.
        StoreError::Conflict { what }
    } else if has("ValidationError") || has("ItemCollectionSizeLimitExceeded") {
        StoreError::Invalid {
            what,
            why: "DynamoDB refuses one of the items, for instance because it has more than 400 KB",
        }
    } else if has("AccessDenied") {
        StoreError::Unavailable { operation, source }
    } else {
        // TransactionConflict, ProvisionedThroughputExceeded, ThrottlingError: none of it lasts.
        StoreError::Throttled { operation, source }
    }
}
