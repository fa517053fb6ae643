//! What every handler is given, as one argument.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use slipway_engine::error_name::ErrorName;

use crate::Deps;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::query::Query;

/// The world, who asks, and the query of the request.
pub(crate) struct Call(pub(crate) Deps, pub(crate) Caller, pub(crate) Query);

impl FromRequestParts<Deps> for Call {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, deps: &Deps) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Caller>().cloned();
        // Every route is behind the layer that puts it there.
        let caller = caller
            .ok_or_else(|| ApiError::new(ErrorName::Unauthenticated, "No token was given"))?;
        Ok(Self(deps.clone(), caller, Query::of(&parts.uri)?))
    }
}
