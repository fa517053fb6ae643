//! Through the router, with requests exactly as the clients send them.

mod again;
mod apply;
mod approvals;
mod authentication;
mod delegate;
mod entities;
mod execution;
mod files;
mod git;
mod git_targets;
mod git_v1;
mod input_sets;
mod inputs;
mod interrupts;
mod limits;
mod logs;
mod loops;
mod oidc;
mod people;
mod pipelines;
mod rollback;
mod secrets;
mod sources;
mod stored;
mod templates;
mod transfer;
mod user_groups;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use serde_json::{Value, json};
use slipway_clock::Clock;
use slipway_engine::runs::Runs;
use slipway_model::id::{AccountId, PrincipalId};
use slipway_source::{Source, SourceConfig};
use slipway_steps::aws::oidc::Issuer;
use slipway_steps::aws::{Ambient, AwsTargets, Objects, TargetConfig};
use slipway_store::Store;
use slipway_store::embedded::{Embedded, in_process};
use slipway_store::layout::Layout;
use tower::ServiceExt as _;

use crate::{Deps, NewToken, Permission, bootstrap, mint_token, router};

/// The scope that the CLI adds to every call.
const SCOPE: &str =
    "accountIdentifier=acme&routingId=acme&orgIdentifier=default&projectIdentifier=default";

/// The API over embedded services, with an organization and a project `default`.
struct Api {
    router: Router,
    store: Store,
    clock: Clock,
    token: String,
    _embedded: Embedded,
}

/// An answer, read to its end.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        let kind = self
            .headers
            .get("content-type")
            .and_then(|v| v.to_str().ok());
        assert!(
            kind.is_some_and(|k| k.contains("application/json")),
            "{kind:?}: {}",
            self.text
        );
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    /// `data` of a success.
    fn data(&self) -> Value {
        let json = self.json();
        assert_eq!(self.status, StatusCode::OK, "{json}");
        assert_eq!(json["status"], "SUCCESS");
        json["data"].clone()
    }

    /// Status, code and message of a refusal, whose body every client can read.
    fn refusal(&self) -> (u16, String, String) {
        let json = self.json();
        for key in ["status", "code", "message", "correlationId"] {
            assert!(
                json[key].as_str().is_some_and(|t| !t.is_empty()),
                "{key} in {json}"
            );
        }
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        (self.status.as_u16(), text("code"), text("message"))
    }
}

/// Step Functions as far as accepting a run needs it.
fn workflows() -> aws_sdk_sfn::Client {
    let answer = json!({
        "executionArn": "arn:aws:states:us-east-1:000000000000:execution:pipeline:x",
        "startDate": 1_760_000_000.0,
    });
    let service = Router::new().fallback(move || async move { axum::Json(answer.clone()) });
    let config = aws_sdk_sfn::Config::builder()
        .behavior_version_latest()
        .http_client(in_process(service))
        .endpoint_url("http://workflows.invalid")
        .region(aws_sdk_sfn::config::Region::new("us-east-1"))
        .credentials_provider(aws_sdk_sfn::config::Credentials::new(
            "a", "b", None, None, "test",
        ))
        .build();
    aws_sdk_sfn::Client::from_conf(config)
}

/// Target accounts that nobody reaches; their S3 is the embedded one.
fn targets(embedded: &Embedded, clock: &Clock) -> AwsTargets {
    let target = TargetConfig {
        // Nobody listens there.
        endpoint_url: Some("http://127.0.0.1:1".to_owned()),
        http_client: None,
        ambient: Ambient::Sandbox,
        objects: Some(Objects {
            client: embedded.s3(),
            own_bucket: Layout::local().bucket,
        }),
    };
    let issuer = Issuer::new(
        "https://slipway.example.com/",
        embedded.secrets(),
        clock.clone(),
    );
    AwsTargets::with_issuer(target, clock.clone(), Some(issuer))
}

/// Reads files of target accounts.
fn files(embedded: &Embedded, clock: &Clock) -> Arc<Source> {
    let targets = targets(embedded, clock);
    let secrets = Arc::new(embedded.secrets());
    let config = SourceConfig {
        local_files: true,
        ..SourceConfig::default()
    };
    Arc::new(Source::new(config, targets, secrets, clock.clone()))
}

impl Api {
    async fn new() -> Self {
        let clock = Clock::paused("2026-01-01T00:00:00Z".parse().expect("a timestamp"));
        let embedded = Embedded::temporary().expect("embedded services");
        let store = embedded.store(clock.clone());
        let account = AccountId::new("acme");
        bootstrap(&store, &clock, &account)
            .await
            .expect("a prepared store");
        let runs = Runs {
            store: store.clone(),
            workflows: workflows(),
            clock: clock.clone(),
            pipeline_machine: "arn:aws:states:us-east-1:000000000000:stateMachine:pipeline"
                .to_owned(),
            notify_machine: None,
            errand_machine: None,
            url: None,
        };
        let limit = Duration::from_secs(60);
        let aws = targets(&embedded, &clock);
        let deps = Deps::new(
            runs,
            embedded.secrets(),
            files(&embedded, &clock),
            aws,
            limit,
        );
        let router = router(deps);
        let mut api = Self {
            router,
            store,
            clock,
            token: String::new(),
            _embedded: embedded,
        };
        api.token = api.mint("acme", Permission::Admin, 0).await;
        api
    }

    async fn mint(&self, account: &str, permission: Permission, valid_to_ms: i64) -> String {
        let new = NewToken {
            account: AccountId::new(account),
            principal: PrincipalId::new("jo@example.com"),
            name: "test".to_owned(),
            permission,
            now_ms: self.clock.now_ms(),
            valid_to_ms,
        };
        mint_token(&self.store, new).await.expect("a token")
    }

    async fn send(&self, request: Request<Body>) -> Answer {
        let response = match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let (head, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 64 << 20)
            .await
            .expect("a whole body");
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        Answer {
            status: head.status,
            headers: head.headers,
            text,
        }
    }

    async fn call(&self, method: &str, path: &str, kind: &str, body: &str) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("x-api-key", &self.token);
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        self.send(
            request
                .body(Body::from(body.to_owned()))
                .expect("a request"),
        )
        .await
    }

    async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, "", "").await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, "", "").await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", path, "application/json", &body.to_string())
            .await
    }

    async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call("PUT", path, "application/json", &body.to_string())
            .await
    }

    /// The golden pipeline and all that it refers to.
    async fn apply_golden(&self) -> Value {
        let files = [
            (
                "pipeline.yaml",
                include_str!("../../../templates/ecs-rolling/pipeline.yaml"),
            ),
            (
                "connectors.yaml",
                include_str!("../../../templates/ecs-rolling/connectors.yaml"),
            ),
            (
                "service.yaml",
                include_str!("../../../templates/ecs-rolling/service.yaml"),
            ),
            (
                "environment.yaml",
                include_str!("../../../templates/ecs-rolling/environment.yaml"),
            ),
        ];
        let files: Vec<Value> = files
            .iter()
            .map(|(file, yaml)| json!({"file": file, "yaml": yaml}))
            .collect();
        self.post(
            &format!("/slipway/api/apply?{SCOPE}"),
            &json!({"files": files}),
        )
        .await
        .data()
    }

    /// Starts the golden pipeline; the id of its run.
    async fn run_golden(&self) -> String {
        self.apply_golden().await;
        let inputs = "pipeline:\n  identifier: deploy_shop\n  variables:\n    - name: tag\n      type: String\n      value: \"1.0\"\n";
        let path = format!("/pipeline/api/pipeline/execute/deploy_shop?{SCOPE}&moduleType=cd");
        let started = self
            .call("POST", &path, "application/yaml", inputs)
            .await
            .data();
        started["planExecution"]["uuid"]
            .as_str()
            .expect("an id")
            .to_owned()
    }
}
