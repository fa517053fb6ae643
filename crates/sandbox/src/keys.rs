//! How the account reads what OpenID Connect providers publish.

use futures::future::BoxFuture;

/// Reads documents of identity providers for STS, as AWS reads them over the internet.
pub trait Documents: Send + Sync {
    /// The body of a successful answer to `GET url`.
    fn read(&self, url: String) -> BoxFuture<'static, Result<String, Unreachable>>;
}

/// A document cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreachable(pub String);
