//! What stands before ministack: counts the calls, and lets the sandbox answer those of Application Auto Scaling, which
//! ministack does not have, so that the other calls of the same steps are judged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};

/// Operations of Application Auto Scaling start with it (`X-Amz-Target`).
const SCALING: &str = "AnyScaleFrontendService.";

/// The calls that ministack answered well, by service.
pub(crate) type Judged = BTreeMap<String, BTreeSet<String>>;

/// A server on a port of its own.
#[derive(Clone)]
pub(crate) struct Front {
    client: reqwest::Client,
    ministack: String,
    sandbox: String,
    judged: Arc<Mutex<Judged>>,
}

impl Front {
    /// Serves until the test is over; answers with its base URL.
    pub(crate) async fn serve(ministack: &str, sandbox: &str) -> (Self, String) {
        let front = Self {
            client: reqwest::Client::new(),
            ministack: ministack.to_owned(),
            sandbox: sandbox.to_owned(),
            judged: Arc::default(),
        };
        let router = axum::Router::new().fallback(pass).with_state(front.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("its address");
        tokio::spawn(async move { axum::serve(listener, router).await });
        (front, format!("http://{address}"))
    }

    pub(crate) fn judged(&self) -> Judged {
        self.judged.lock().expect("no other panicked").clone()
    }
}

async fn pass(
    State(front): State<Front>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let target = header("x-amz-target").unwrap_or_default();
    let scaling = target.starts_with(SCALING);
    let base = if scaling {
        &front.sandbox
    } else {
        &front.ministack
    };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let service = header("authorization").and_then(|text| text.split('/').nth(3));
    let called = (
        service.unwrap_or("?").to_owned(),
        operation(&method, path, target, &body),
    );
    // The host is part of what was signed, so it stays the one of this server.
    let request = front
        .client
        .request(method, format!("{base}{path}"))
        .headers(headers.clone())
        .body(body);
    let answer = request.send().await.expect("an answer");
    let status = answer.status();
    if status.is_success() && !scaling {
        let mut judged = front.judged.lock().expect("no other panicked");
        judged.entry(called.0).or_default().insert(called.1);
    }
    let mut response = Response::builder().status(status);
    for (name, value) in answer.headers() {
        if !["transfer-encoding", "connection"].contains(&name.as_str()) {
            response = response.header(name, value);
        }
    }
    let bytes = answer.bytes().await.expect("a body");
    response.body(Body::from(bytes)).expect("a response")
}

/// What is called: `X-Amz-Target`, `Action` of a form, or the method and the fixed parts of a path.
fn operation(method: &Method, path: &str, target: &str, body: &[u8]) -> String {
    if let Some((_, operation)) = target.rsplit_once('.') {
        return operation.to_owned();
    }
    let form = std::str::from_utf8(body).unwrap_or_default();
    let mut fields = form.split('&');
    if let Some(action) = fields.find_map(|field| field.strip_prefix("Action=")) {
        return action.to_owned();
    }
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    let kind = |position: usize| parts.get(position).copied().unwrap_or_default();
    match kind(2) {
        "functions" => format!(
            "{method} function {} {}",
            kind(4),
            u8::from(parts.len() > 5)
        ),
        _ => format!("{method} object"),
    }
}
