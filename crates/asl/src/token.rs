//! Task tokens: they name the waiting task and prove knowledge of its secret part.
//!
//! A token carries the numbers of execution and branch, the attempt, and a random nonce that the branch
//! keeps. So no table of tokens is needed, a token survives a restart with its branch, and it cannot be
//! made up.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::error::ApiError;

/// Longest token (API reference, `SendTaskSuccess`).
const LONGEST: usize = 2_048;

/// A token, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) execution: u64,
    pub(crate) branch: u32,
    pub(crate) attempt: u64,
    pub(crate) nonce: String,
}

/// A fresh secret part.
pub(crate) fn nonce() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

impl Token {
    /// The text that clients see.
    pub(crate) fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(format!(
            "{}.{}.{}.{}",
            self.execution, self.branch, self.attempt, self.nonce
        ))
    }

    /// Reads a token, or gives the API's `InvalidToken`.
    pub(crate) fn read(text: &str) -> Result<Self, ApiError> {
        let read = || {
            let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
            let text = String::from_utf8(bytes).ok()?;
            let mut parts = text.split('.');
            let token = Self {
                execution: parts.next()?.parse().ok()?,
                branch: parts.next()?.parse().ok()?,
                attempt: parts.next()?.parse().ok()?,
                nonce: parts.next()?.to_owned(),
            };
            (parts.next().is_none() && !token.nonce.is_empty()).then_some(token)
        };
        if text.len() > LONGEST {
            return Err(invalid());
        }
        read().ok_or_else(invalid)
    }
}

fn invalid() -> ApiError {
    ApiError::new("InvalidToken", "Invalid Token: 'Invalid token'")
}
