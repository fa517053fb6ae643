//! One port for everything: REST for people and clients, AWS protocols for the SDKs and the `aws` CLI.
//!
//! A request signed for an AWS service carries that service's name in its signature's scope; it goes to
//! the embedded service of that name. Everything else is REST.

use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::events::{About, Events};
use super::machines;

/// Largest change of a state machine, bytes: a definition of 1 MiB, escaped, and what stands around it.
const LARGEST_CHANGE: usize = 8 << 20;

/// The services behind the port.
#[derive(Clone)]
pub struct Services {
    /// The REST API.
    pub api: Router,
    /// Step Functions: `crates/asl`.
    pub states: Router,
    /// DynamoDB, S3 and Secrets Manager: the embedded store.
    pub store: Router,
    /// The sandbox account: ECS, Application Auto Scaling, STS, and its own controls.
    pub sandbox: Router,
    /// EventBridge: hears what is put into the others.
    pub events: Events,
}

impl Services {
    /// The router of the port. `aws` says whether AWS protocols are answered at all.
    pub fn router(self, aws: bool) -> Router {
        Router::new().fallback(move |request: Request| {
            let services = self.clone();
            async move { services.dispatch(request, aws).await }
        })
    }

    async fn dispatch(self, request: Request<Body>, aws: bool) -> Response {
        let target = self.target(&request);
        let Some(target) = target else {
            return self.api.oneshot(request).await.into_response();
        };
        if !aws || !local(&request) {
            let why = "AWS protocols and sandbox controls are answered on loopback addresses only";
            return (StatusCode::FORBIDDEN, why).into_response();
        }
        let service = signed_for(request.headers()).unwrap_or_default();
        if service == "events" {
            return self.events.bus(request).await;
        }
        if service == "states" {
            return self.states(request).await;
        }
        let about = About::of(&request, &service);
        let response = target.oneshot(request).await.into_response();
        match about {
            Some(about) => self.events.after(about, response).await,
            None => response,
        }
    }

    /// Step Functions, but Slipway's own machines stay as they are: they alone reach its functions.
    async fn states(&self, request: Request) -> Response {
        let operation = request.headers().get("x-amz-target");
        let operation = operation.and_then(|target| target.to_str().ok());
        let operation = operation.and_then(|target| target.rsplit('.').next());
        if !matches!(operation, Some("UpdateStateMachine" | "DeleteStateMachine")) {
            return self.states.clone().oneshot(request).await.into_response();
        }
        let (head, body) = request.into_parts();
        let Ok(body) = to_bytes(body, LARGEST_CHANGE).await else {
            let why = "The request is larger than the service takes.";
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, "ValidationException", why);
        };
        let document: Value = serde_json::from_slice(&body).unwrap_or_default();
        let machine = document["stateMachineArn"].as_str().unwrap_or_default();
        if machines::is_own(machine) {
            let why = format!("{machine} is a part of Slipway and cannot be changed");
            return refusal(StatusCode::BAD_REQUEST, "AccessDeniedException", &why);
        }
        let request = Request::from_parts(head, Body::from(body));
        self.states.clone().oneshot(request).await.into_response()
    }

    /// The embedded service a request is for; `None` for REST.
    fn target(&self, request: &Request<Body>) -> Option<Router> {
        if request.uri().path().starts_with("/_sandbox/") {
            return Some(self.sandbox.clone());
        }
        // The one call of AWS that nobody signs: `sts:AssumeRoleWithWebIdentity`. REST has nothing at `POST /`.
        if request.method() == Method::POST && request.uri().path() == "/" {
            let signed = signed_for(request.headers());
            if signed.is_none() {
                return Some(self.sandbox.clone());
            }
        }
        match signed_for(request.headers())?.as_str() {
            "states" => Some(self.states.clone()),
            "dynamodb" | "s3" | "secretsmanager" => Some(self.store.clone()),
            _ => Some(self.sandbox.clone()),
        }
    }
}

/// An error in the protocol of Step Functions.
fn refusal(status: StatusCode, code: &'static str, message: &str) -> Response {
    let body = json!({"__type": code, "message": message}).to_string();
    let headers = [
        (header::CONTENT_TYPE, "application/x-amz-json-1.0"),
        (header::HeaderName::from_static("x-amzn-errortype"), code),
    ];
    (status, headers, body).into_response()
}

/// The service in the scope of an AWS signature: `Credential=AKID/date/region/SERVICE/aws4_request`.
pub(crate) fn signed_for(headers: &HeaderMap) -> Option<String> {
    let authorization = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let rest = authorization.strip_prefix("AWS4-HMAC-SHA256")?;
    let credential = rest.split("Credential=").nth(1)?.split([',', ' ']).next()?;
    let mut scope = credential.rsplit('/');
    (scope.next()? == "aws4_request").then(|| scope.next().unwrap_or_default().to_owned())
}

/// Whether the peer is this machine and asked for it by a loopback name: a page in a browser that had its
/// own name rebound to 127.0.0.1 is not let in.
pub(crate) fn local(request: &Request<Body>) -> bool {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer_is_local = peer.is_none_or(|ConnectInfo(address)| address.ip().is_loopback());
    let host = request
        .headers()
        .get(header::HOST)
        .and_then(|h| h.to_str().ok())
        .unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let host_is_local = name == "localhost"
        || name.ends_with(".localhost")
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback());
    peer_is_local && (host.is_empty() || host_is_local)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::{HeaderMap, HeaderValue, Request, header};

    use super::{local, signed_for};

    #[test]
    fn the_scope_of_the_signature_names_the_service() {
        let signed = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(text));
            signed_for(&headers)
        };
        let good = "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/ecs/aws4_request, \
                    SignedHeaders=host, Signature=0";
        assert_eq!(signed(good).as_deref(), Some("ecs"));
        for rest in [
            "Bearer x",
            "AWS4-HMAC-SHA256",
            "AWS4-HMAC-SHA256 Credential=a/b",
            "",
        ] {
            assert_eq!(signed(rest), None, "{rest}");
        }
    }

    #[test]
    fn a_rebound_host_name_is_not_local() {
        let asked = |host: &str| {
            let request = Request::builder().header(header::HOST, host);
            local(&request.body(Body::empty()).expect("a request"))
        };
        assert!(asked("127.0.0.1:7880") && asked("localhost:1") && asked("[::1]:7880"));
        assert!(!asked("evil.example:7880") && !asked("127.0.0.1.evil.example"));
    }
}
