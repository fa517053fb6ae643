//! What can go wrong on a delegate.

use std::io;
use std::path::PathBuf;

/// A delegate cannot work, or cannot do one task.
#[derive(Debug, thiserror::Error)]
pub enum DelegateError {
    /// A file or folder of its own cannot be used.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Two delegates with one folder would run tasks twice.
    #[error("another delegate works in {}; give each its own --work-dir", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// bash cannot be started.
    #[error("cannot start bash; a delegate needs it in its PATH")]
    Start(#[source] io::Error),
    /// The service cannot be reached, or answered what it should not.
    #[error("cannot {doing}")]
    Service {
        /// What was being done.
        doing: &'static str,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// The service refused.
    #[error("cannot {doing}: the service answered HTTP {status}")]
    Refused {
        /// What was being done.
        doing: &'static str,
        /// Status of the answer.
        status: u16,
    },
}

impl DelegateError {
    pub(super) fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            doing,
            path,
            source,
        }
    }
}

/// An error with its causes in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
