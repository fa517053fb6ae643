//! Servers that tests of feeds ask, and how they ask them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use slipway_model::id::{AccountId, Scope};
use slipway_plan::ConnectorPlan;
use slipway_source::{PollFault, Polled, Source};
use slipway_trigger::feed::Feed;

use crate::support::{TOKEN, serve, source};

/// A request, as a server of these tests sees it.
pub struct Asked {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: String,
    /// How many were before it.
    pub number: usize,
}

impl Asked {
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

type Answers = Arc<dyn Fn(&Asked) -> Response + Send + Sync>;

/// A server.
pub struct Host {
    pub address: String,
    /// What it was asked, path and query.
    pub asked: Arc<Mutex<Vec<String>>>,
}

impl Host {
    pub async fn new(answers: impl Fn(&Asked) -> Response + Send + Sync + 'static) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answers: Answers = Arc::new(answers);
        let app = Router::new()
            .fallback(answer)
            .with_state((answers, Arc::clone(&asked)));
        Self {
            address: serve(app).await,
            asked,
        }
    }

    pub fn times(&self) -> usize {
        self.asked.lock().expect("a lock").len()
    }
}

async fn answer(
    State((answers, asked)): State<(Answers, Arc<Mutex<Vec<String>>>)>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.expect("a body");
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let number = {
        let mut asked = asked.lock().expect("a lock");
        asked.push(format!("{path}?{query}"));
        asked.len() - 1
    };
    answers(&Asked {
        method: parts.method.to_string(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
        number,
    })
}

pub fn patient() -> Source {
    source(false, Duration::from_secs(10))
}

pub fn connector(kind: &str, spec: Value) -> ConnectorPlan {
    ConnectorPlan {
        reference: "account.shop".to_owned(),
        kind: kind.to_owned(),
        spec,
    }
}

/// A login with the only secret that there is.
pub fn login() -> Value {
    json!({"type": "UsernamePassword", "spec": {"username": "bot", "passwordRef": "account.token"}})
}

pub const BASIC: &str = "Basic Ym90OnQwcC1zM2NyZXQtdG9rZW4=";

pub fn feed(kind: &str, spec: Value) -> Feed {
    Feed::new(kind, &spec, "acme/shop")
}

pub async fn poll(
    source: &Source,
    feed: &Feed,
    connector: &ConnectorPlan,
    state: Option<&str>,
) -> Result<Polled, PollFault> {
    let scope = Scope::account(AccountId::new("acme"));
    let polled = source.builds(feed, Some(connector), &scope, state).await;
    if let Err(fault) = &polled {
        let message = &fault.failure.message;
        assert!(
            !message.contains(TOKEN) && !message.contains(BASIC),
            "{message}"
        );
    }
    polled
}

/// Versions and state of an answer that has some.
pub fn seen(polled: Result<Polled, PollFault>) -> (Vec<String>, Option<String>, Value) {
    let Polled::Builds { builds, state } = polled.expect("an answer") else {
        panic!("nothing changed");
    };
    let last = builds
        .last()
        .map(|build| Value::Object(build.metadata.clone()));
    let versions = builds.into_iter().map(|build| build.version);
    (versions.collect(), state, last.unwrap_or_default())
}

pub async fn refused(feed: &Feed, connector: &ConnectorPlan) -> String {
    let fault = poll(&patient(), feed, connector, None)
        .await
        .expect_err("a fault");
    fault.failure.message
}

pub fn page(value: &Value) -> Response {
    value.to_string().into_response()
}
