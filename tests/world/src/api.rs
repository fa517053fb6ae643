//! The REST API of a world, without a port.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::Value;
use slipway_engine::runs::Runs;
use slipway_fn_api::{NewToken, Permission, bootstrap, mint_token};
use slipway_model::id::{AccountId, PrincipalId};
use tower::ServiceExt as _;

use crate::{NoSources, World};

/// Streams of logs are not read here.
const STREAM_LIMIT: Duration = Duration::from_secs(60);

/// The API of a world.
pub struct Api(Router);

impl Api {
    /// Status and JSON of the answer to a request.
    ///
    /// # Panics
    /// When the request is none, or its answer is not JSON.
    pub async fn call(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("x-api-key", token)
            .header("content-type", "application/json")
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())));
        let answer = self.0.clone().oneshot(request.expect("a request")).await;
        let (head, body) = answer.expect("an answer").into_parts();
        let body = to_bytes(body, 1 << 24).await.expect("a body");
        let json = serde_json::from_slice(&body).expect("JSON");
        (head.status.as_u16(), json)
    }
}

impl World {
    /// The API, with the organization `default` in the account of [`crate::scope`].
    ///
    /// # Panics
    /// When the store cannot be written.
    pub async fn api(&self) -> Api {
        self.api_over(&self.runs).await
    }

    /// As [`World::api`], with the tap between. What the tap kills never answers.
    ///
    /// # Panics
    /// When the store cannot be written.
    pub async fn tapped_api(&self) -> Api {
        self.api_over(&self.tapped).await
    }

    async fn api_over(&self, runs: &Runs) -> Api {
        let account = AccountId::new("acme");
        let first = bootstrap(&self.store, &self.runs.clock, &account).await;
        first.expect("the first entities");
        let secrets = self.embedded.secrets();
        let files = Arc::new(NoSources);
        let aws = self.aws.clone();
        let deps = slipway_fn_api::Deps::new(runs.clone(), secrets, files, aws, STREAM_LIMIT);
        Api(slipway_fn_api::router(deps))
    }

    /// A token with which somebody may do everything.
    ///
    /// # Panics
    /// When the store cannot be written.
    pub async fn token(&self, who: &str) -> String {
        let token = NewToken {
            account: AccountId::new("acme"),
            principal: PrincipalId::new(who),
            name: who.to_owned(),
            permission: Permission::Admin,
            now_ms: self.runs.clock.now_ms(),
            valid_to_ms: 0,
        };
        mint_token(&self.store, token).await.expect("a token")
    }
}
