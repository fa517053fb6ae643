//! Slipway's own endpoints, for its CLI and delegates. Their bodies are described where they are.

mod apply;
mod artifacts;
mod delegate;
mod events;
mod input;
mod instances;
mod plan;
mod start;
mod transfer;

use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;

use crate::Deps;
use crate::error::ApiResult;

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route("/slipway/api/health", get(health))
        .route("/slipway/api/version", get(version))
        .route("/slipway/api/apply", post(apply::apply))
        .route("/slipway/api/plan/{pipeline}", post(plan::plan))
        .route(
            "/slipway/api/runs/{run}/inputs/{step}",
            get(input::show).post(input::give),
        )
        .route(
            "/slipway/api/runs/{run}/stages/{stage}/start",
            post(start::start),
        )
        .route("/slipway/api/export", get(transfer::export))
        .route("/slipway/api/import", post(transfer::import))
        .route("/slipway/api/instances", get(instances::list))
        .route(
            "/slipway/api/services/{service}/artifacts",
            get(artifacts::list),
        )
        .route("/slipway/api/triggers/test", post(events::test))
        .route("/slipway/api/triggers/fire", post(events::fire))
        .route("/slipway/api/events/dead", get(events::dead))
        .route("/slipway/api/events/{event}/redrive", post(events::redrive))
        .merge(delegate::routes())
}

/// `GET /slipway/api/health`, the one route without a token: `{"status":"UP"}` and nothing else.
async fn health() -> Json<serde_json::Value> {
    Json(json!({"status": "UP"}))
}

/// `GET /slipway/api/version`: `{"data":{"version":"0.1.0"}}`.
async fn version() -> ApiResult {
    Ok(crate::envelope::success(
        json!({"version": env!("CARGO_PKG_VERSION")}),
    ))
}
