//! Who calls: what a request's signature says, without verifying it.

use http::HeaderMap;

/// The principal and region of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Account of the principal; resources are those of the sandbox's one account all the same.
    pub(crate) account: String,
    pub(crate) arn: String,
    /// `AIDA…`, `AROA…:<session>` or the account id, as `GetCallerIdentity` shows it.
    pub(crate) user_id: String,
    pub(crate) region: String,
}

/// What a SigV4 `Authorization` header says about its signer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credential<'a> {
    pub(crate) access_key: &'a str,
    /// Empty when the scope is cut short.
    pub(crate) region: &'a str,
    /// Signing name of the service that the request is meant for; empty when the scope is cut short.
    pub(crate) service: &'a str,
}

/// Reads `Credential=<key>/<date>/<region>/<service>/aws4_request`.
pub(crate) fn credential(headers: &HeaderMap) -> Option<Credential<'_>> {
    let header = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (_, rest) = header.split_once("Credential=")?;
    let scope = rest.split([',', ' ']).next()?;
    let mut parts = scope.split('/');
    let access_key = parts.next().filter(|key| !key.is_empty())?;
    let _date = parts.next()?;
    let region = parts.next().unwrap_or_default();
    let service = parts.next().unwrap_or_default();
    Some(Credential {
        access_key,
        region,
        service,
    })
}
