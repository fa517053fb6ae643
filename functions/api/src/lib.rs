//! The REST API, as the official Harness clients speak it.
//!
//! One router for Lambda and for local mode. Every path is served with and without `/gateway`, and v1
//! paths also below `/pipeline/api`. In front of everything stands [`auth`]; controllers are one file per
//! resource; what all entities share is in [`entity`]; errors get their status in [`error`] alone.

mod again;
mod approval;
mod auth;
mod body;
mod bootstrap;
mod bundle;
mod call;
mod connector;
mod edit;
mod entity;
mod envelope;
mod environment;
mod environment_group;
mod error;
mod execute;
mod execution;
mod file_store;
mod flat;
mod freeze;
mod git;
mod identifier;
mod infrastructure;
mod input_set;
mod interrupt;
mod log;
mod multipart;
mod oidc;
mod organization;
mod overrides;
mod page;
mod pipeline;
mod place;
mod project;
mod query;
mod rollback;
mod runs;
mod scope;
mod secret;
mod service;
mod slipway;
mod template;
mod token;
mod trigger;
mod user;
mod user_group;
mod variable;
mod wire;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use slipway_clock::Clock;
use slipway_engine::error_name::ErrorName;
use slipway_engine::gather::SourceReader;
use slipway_engine::runs::Runs;
use slipway_steps::aws::AwsTargets;
use slipway_store::{SecretStore, Store};
use tower::Layer as _;

pub use bootstrap::{Bootstrap, BootstrapError, bootstrap};
/// How events that are accepted here are handled at once.
pub use slipway_engine::intake::handler::Handler as Intake;
pub use token::{MintError, NewToken, Permission, is_known, mint_token};

use error::ApiError;

/// Time for one request, its body included. Streams go on after it.
const REQUEST_LIMIT: Duration = Duration::from_secs(29);

/// What the controllers need of the world.
#[derive(Clone)]
pub struct Deps {
    runs: Runs,
    store: Store,
    clock: Clock,
    secret_values: SecretStore,
    sources: Arc<dyn SourceReader>,
    aws: AwsTargets,
    stream_limit: Duration,
    guesses: Arc<auth::Guesses>,
    intake: Option<Intake>,
}

impl Deps {
    /// `secret_values` holds the values of secrets; `sources` reads manifests from where users keep them and asks their
    /// registries; `aws` reaches their accounts, to test connectors. A log stream ends after `stream_limit`; its client
    /// then comes again.
    pub fn new(
        runs: Runs,
        secret_values: SecretStore,
        sources: Arc<dyn SourceReader>,
        aws: AwsTargets,
        stream_limit: Duration,
    ) -> Self {
        Self {
            store: runs.store.clone(),
            clock: runs.clock.clone(),
            runs,
            secret_values,
            sources,
            aws,
            stream_limit,
            guesses: Arc::default(),
            intake: None,
        }
    }

    /// Has accepted events handled by this function; without it the sweep of the next minute does it.
    #[must_use]
    pub fn with_intake(self, intake: Intake) -> Self {
        Self {
            intake: Some(intake),
            ..self
        }
    }
}

/// The whole API.
pub fn router(deps: Deps) -> Router {
    let routes = Router::new()
        .merge(user::routes())
        .route("/ng/api/accounts/{account}", get(user::account))
        .route("/ng/api/token", post(token::create))
        .route("/ng/api/token/validate", post(token::validate))
        .merge(organization::routes())
        .merge(project::routes())
        .merge(service::routes())
        .merge(environment::routes())
        .merge(environment_group::routes())
        .merge(overrides::routes())
        .merge(infrastructure::routes())
        .merge(connector::routes())
        .merge(secret::routes())
        .merge(variable::routes())
        .merge(file_store::routes())
        .merge(template::routes())
        .merge(trigger::routes())
        .merge(freeze::routes())
        .merge(user_group::routes())
        .merge(git::routes::routes())
        .merge(git::targets::routes())
        .merge(pipeline::ng::routes())
        .merge(pipeline::v1::routes())
        .merge(input_set::routes())
        .merge(execute::routes())
        .merge(again::routes())
        .merge(rollback::routes())
        .merge(execution::routes::routes())
        .merge(approval::routes())
        .merge(interrupt::routes())
        .merge(log::routes())
        .merge(oidc::routes())
        .merge(slipway::routes())
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn(git::refuse))
        .with_state(deps.clone());
    // The prefixes are taken off before routing, and so outside of the router that routes.
    let aliased = tower::util::MapRequestLayer::new(without_alias).layer(routes);
    Router::new()
        .fallback_service(aliased)
        .layer(middleware::from_fn_with_state(deps.clone(), limit_time))
        .layer(middleware::from_fn_with_state(deps, auth::authenticate))
}

/// `/gateway/x` is `/x`, and `/pipeline/api/v1/x` is `/v1/x`.
fn without_alias<B>(mut request: axum::http::Request<B>) -> axum::http::Request<B> {
    let path = request.uri().path();
    let path = path
        .strip_prefix("/gateway")
        .filter(|rest| rest.starts_with('/'))
        .unwrap_or(path);
    let path = match path.strip_prefix("/pipeline/api") {
        Some(rest) if rest.starts_with("/v1/") => rest,
        _ => path,
    };
    if path.len() == request.uri().path().len() {
        return request;
    }
    let whole = match request.uri().query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    // A part of a URI that was parsed before is one again; if not, the path is simply not found.
    if let Ok(uri) = whole.parse::<Uri>() {
        *request.uri_mut() = uri;
    }
    request
}

async fn limit_time(State(deps): State<Deps>, request: Request, next: Next) -> Response {
    tokio::select! {
        response = next.run(request) => response,
        () = deps.clock.sleep(REQUEST_LIMIT) => {
            let message = format!("No answer within {} s: try again", REQUEST_LIMIT.as_secs());
            ApiError::new(ErrorName::StoreUnavailable, message).into_response()
        }
    }
}

async fn no_such_path(uri: Uri) -> ApiError {
    ApiError::not_found(format!("There is no endpoint {}", uri.path()))
}

async fn no_such_method(request: Request) -> ApiError {
    let message = format!(
        "{} has no method {}",
        request.uri().path(),
        request.method()
    );
    ApiError::invalid(message).with_status(StatusCode::METHOD_NOT_ALLOWED)
}
