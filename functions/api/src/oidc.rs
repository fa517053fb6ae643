//! What Slipway publishes as an OpenID Connect provider: `/ng/api/oidc/account/{account}/.well-known/…`.
//!
//! Answered without a token, as AWS asks for it without one. The documents hold public keys and addresses only, and are the
//! same for every account that can be named, so they tell nobody which accounts there are.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;
use slipway_engine::error_name::ErrorName;
use slipway_model::id::AccountId;
use slipway_steps::aws::oidc::Issuer;

use crate::Deps;
use crate::error::{ApiError, ApiResult};

/// Beginning of the paths.
const PREFIX: &str = "/ng/api/oidc/account/";

/// Longest identifier of an account.
const LONGEST_ACCOUNT: usize = 128;

/// How long others may keep a document: less than a key is published before it signs.
const KEPT: &str = "public, max-age=3600";

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route(
            "/ng/api/oidc/account/{account}/.well-known/openid-configuration",
            get(configuration),
        )
        .route("/ng/api/oidc/account/{account}/.well-known/jwks", get(jwks))
}

/// Whether a path is answered without a token.
pub(crate) fn is_public(path: &str) -> bool {
    let rest = path.strip_prefix(PREFIX);
    let document = rest.and_then(|rest| rest.split_once('/'));
    document.is_some_and(|(_, document)| {
        matches!(
            document,
            ".well-known/openid-configuration" | ".well-known/jwks"
        )
    })
}

fn account(text: &str) -> ApiResult<AccountId> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    match (1..=LONGEST_ACCOUNT).contains(&text.len()) && text.bytes().all(fits) {
        true => Ok(AccountId::new(text)),
        false => Err(ApiError::not_found("There is no such account")),
    }
}

fn issuer(deps: &Deps) -> ApiResult<&Issuer> {
    let issuer = deps.aws.issuer();
    issuer.ok_or_else(|| {
        ApiError::not_found(
            "This installation issues no tokens: SLIPWAY_URL does not say how it is known",
        )
    })
}

async fn configuration(State(deps): State<Deps>, Path(id): Path<String>) -> ApiResult<Response> {
    let account = account(&id)?;
    Ok(document(issuer(&deps)?.configuration(&account)))
}

async fn jwks(State(deps): State<Deps>, Path(id): Path<String>) -> ApiResult<Response> {
    account(&id)?;
    let keys = issuer(&deps)?.jwks().await.map_err(|error| {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "the keys of identity tokens cannot be read"
        );
        ApiError::new(
            ErrorName::StoreUnavailable,
            "The keys cannot be read now: try again",
        )
    })?;
    Ok(document(keys))
}

fn document(value: Value) -> Response {
    ([(header::CACHE_CONTROL, KEPT)], axum::Json(value)).into_response()
}
