//! Who asks: a token is required on every route, and every refusal looks the same.
//!
//! A token is `pat.<account>.<id>.<secret>`. The store knows only the SHA-256 of the whole text, and the
//! look-up is by that hash, so no comparison of secrets takes a time that depends on them.

use std::sync::{Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use slipway_model::id::{AccountId, PrincipalId};
use slipway_store::StoreError;

use crate::Deps;
use crate::error::{ApiError, ApiResult};
use crate::oidc;
use crate::query::Query;
use crate::token::{self, Permission};

/// Answered without a token: whether the process is up. Beside it only what [`oidc`] publishes is.
const OPEN: &str = "/slipway/api/health";

/// Longer texts are no tokens of ours; they are refused before anything is done with them.
const LONGEST_TOKEN: usize = 1024;

/// Unknown tokens per minute after which further ones are answered with 429. Valid tokens are never
/// held back, so nobody can lock anybody out.
const UNKNOWN_PER_MINUTE: u32 = 1_000;

/// Who made a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The account; all that the request may touch.
    pub(crate) account: AccountId,
    /// The user or service account.
    pub(crate) principal: PrincipalId,
    /// The token's own record, without its secret.
    pub(crate) token: token::TokenInfo,
}

/// Counts unknown tokens of the current minute.
#[derive(Debug, Default)]
pub(crate) struct Guesses(Mutex<(i64, u32)>);

impl Guesses {
    /// Notes one at `now_ms`; whether there are too many.
    fn note(&self, now_ms: i64) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = now_ms.div_euclid(60_000);
        if seen.0 != minute {
            *seen = (minute, 0);
        }
        seen.1 = seen.1.saturating_add(1);
        seen.1 > UNKNOWN_PER_MINUTE
    }
}

/// Lets a request through when its token permits it, with a [`Caller`] in its extensions.
pub(crate) async fn authenticate(
    State(deps): State<Deps>,
    mut request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    if path == OPEN || oidc::is_public(path) {
        return next.run(request).await;
    }
    let headers = request.headers().clone();
    match caller(&deps, request.uri().clone(), headers).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

async fn caller(deps: &Deps, uri: Uri, headers: HeaderMap) -> ApiResult<Caller> {
    let path = uri.path();
    let log_service = path
        .strip_prefix("/gateway")
        .unwrap_or(path)
        .starts_with("/log-service/");
    let given = credential(&headers, log_service)?;
    let caller = look_up(deps, given).await?;
    permit(&caller, path)?;
    check_account(&caller, &uri, &headers)?;
    Ok(caller)
}

/// The one token of a request. Several that differ are refused: which of them counts must never be a
/// question.
fn credential(headers: &HeaderMap, log_service: bool) -> ApiResult<&str> {
    let mut found: Option<&str> = None;
    for name in ["x-api-key", "authorization", "x-harness-token"] {
        for value in headers.get_all(name) {
            let text = value.to_str().map_err(|_| ApiError::unauthenticated())?;
            let token = match name {
                "authorization" => text
                    .strip_prefix("Bearer ")
                    .ok_or_else(ApiError::unauthenticated)?,
                "x-harness-token" if !log_service => continue,
                _ => text,
            };
            check_form(token)?;
            match found {
                Some(before) if before != token => return Err(ApiError::unauthenticated()),
                _ => found = Some(token),
            }
        }
    }
    found.ok_or_else(ApiError::unauthenticated)
}

fn check_form(token: &str) -> ApiResult<()> {
    match token.len() <= LONGEST_TOKEN && token::is_well_formed(token) {
        true => Ok(()),
        false => Err(ApiError::unauthenticated()),
    }
}

/// Who a token belongs to.
///
/// # Errors
/// 401 when it is unknown or expired, 429 when too many unknown ones were tried.
pub(crate) async fn look_up(deps: &Deps, given: &str) -> ApiResult<Caller> {
    check_form(given)?;
    let now = deps.clock.now_ms();
    match token::find(&deps.store, given, now).await {
        Ok(Some(token)) => Ok(Caller {
            account: token.account.clone(),
            principal: token.principal.clone(),
            token,
        }),
        Ok(None) | Err(StoreError::NotFound { .. }) => Err(match deps.guesses.note(now) {
            true => ApiError::unauthenticated()
                .with_status(StatusCode::TOO_MANY_REQUESTS)
                .retry_after(60),
            false => ApiError::unauthenticated(),
        }),
        Err(error) => Err(error.into()),
    }
}

fn permit(caller: &Caller, path: &str) -> ApiResult<()> {
    let path = path.strip_prefix("/gateway").unwrap_or(path);
    let needed = if path.starts_with("/slipway/api/delegate/") {
        Permission::Delegate
    } else if path.starts_with("/log-service/") {
        Permission::Logs
    } else {
        Permission::Admin
    };
    match caller.token.allows(needed) {
        true => Ok(()),
        false => Err(ApiError::forbidden()),
    }
}

/// A request that names another account than its token's is refused.
fn check_account(caller: &Caller, uri: &Uri, headers: &HeaderMap) -> ApiResult<()> {
    let query = Query::of(uri)?;
    let header = headers
        .get("harness-account")
        .map(|v| v.to_str().unwrap_or("?"));
    let named = [
        query.one("accountIdentifier")?,
        query.one("accountID")?,
        query.one("routingId")?,
        header.filter(|account| !account.is_empty()),
    ];
    match named
        .into_iter()
        .flatten()
        .all(|account| account == caller.account.as_str())
    {
        true => Ok(()),
        false => Err(ApiError::forbidden()),
    }
}
