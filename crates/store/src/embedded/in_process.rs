//! An HTTP client for AWS SDKs that calls a service of this process, with no socket between.

use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, header};
use tower::ServiceExt;

/// Bounds the memory of one answer: the largest value of the store, and some more.
const LARGEST_ANSWER: usize = 96 * 1024 * 1024;

/// Calls a router in the task of the caller. Nothing waits on another thread by itself, so paused time
/// moves only when the service waits.
#[derive(Clone)]
struct InProcess(Router);

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InProcess")
    }
}

/// A client whose every request is answered by `router`.
pub fn in_process(router: Router) -> SharedHttpClient {
    let connector = SharedHttpConnector::new(InProcess(router));
    http_client_fn(move |_, _| connector.clone())
}

impl HttpConnector for InProcess {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let router = self.0.clone();
        HttpConnectorFuture::new(async move {
            let user =
                |error: Box<dyn std::error::Error + Send + Sync>| ConnectorError::user(error);
            let request = request
                .try_into_http1x()
                .map_err(|error| user(error.into()))?;
            let mut request = request.map(Body::new);
            add_host(&mut request);
            let response = match router.oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            let (head, body) = response.into_parts();
            let body = axum::body::to_bytes(body, LARGEST_ANSWER).await;
            let body = body.map_err(|error| ConnectorError::io(error.into()))?;
            let response = axum::http::Response::from_parts(head, SdkBody::from(body));
            HttpResponse::try_from(response).map_err(|error| user(error.into()))
        })
    }
}

/// What a client with a socket adds: the signature covers it.
fn add_host(request: &mut Request<Body>) {
    let host = request
        .uri()
        .authority()
        .and_then(|a| HeaderValue::from_str(a.as_str()).ok());
    if let (Some(host), false) = (host, request.headers().contains_key(header::HOST)) {
        request.headers_mut().insert(header::HOST, host);
    }
}
