//! What can go wrong in a client command, and which exit code it means.

use crate::exit::Exit;

/// A client command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The caller's words or files are wrong.
    #[error("{0}")]
    Usage(String),
    /// The service could not be reached.
    #[error("reaching the service at {url} failed: is `slipway local` running there?")]
    Unreachable {
        /// Base URL that was tried.
        url: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// The service refused who asked.
    #[error(
        "{message} (give a token with --token or SLIPWAY_TOKEN, or run in the folder whose .slipway the service uses)"
    )]
    NotAuthorised {
        /// The service's words.
        message: String,
    },
    /// The service refused what was asked.
    #[error("{message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// The service's code, `INVALID_REQUEST` for instance.
        code: String,
        /// The service's words.
        message: String,
        /// What it noticed beside that, and would not have refused.
        warnings: Vec<String>,
    },
    /// The service answered something that this client does not understand.
    #[error("the answer of {what} was not understood: {why}")]
    Answer {
        /// The call.
        what: String,
        /// What was wrong with the answer.
        why: String,
    },
    /// A file could not be read or written.
    #[error("{what} failed")]
    File {
        /// What was being done, with the path.
        what: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Standard output could not be written.
    #[error("writing the output failed")]
    Output(#[source] std::io::Error),
}

impl CliError {
    /// What was noticed beside the error.
    pub fn warnings(&self) -> &[String] {
        match self {
            Self::Refused { warnings, .. } => warnings,
            _ => &[],
        }
    }

    /// The exit code that it means.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::NotAuthorised { .. } => Exit::NotAuthorised,
            Self::Unreachable { .. }
            | Self::Refused { .. }
            | Self::Answer { .. }
            | Self::File { .. }
            | Self::Output(_) => Exit::Failed,
        }
    }
}
