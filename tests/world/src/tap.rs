//! What may go wrong between a function and the services that it calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::Response;
use tokio::sync::Notify;
use tower::ServiceExt;

use crate::stillness::moving;

tokio::task_local! {
    /// Notified when the invocation that runs in this task has died.
    pub(crate) static LIFE: Arc<Notify>;
}

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// DynamoDB or S3.
    Store,
    /// Step Functions.
    Workflows,
    /// The account that is deployed to.
    Target,
    /// Step Functions, called by somebody who is no function: a person or a delegate.
    Outside,
}

/// What becomes of a request of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is answered.
    Pass,
    /// The function dies over it.
    Die {
        /// Whether the request is carried out.
        after: bool,
    },
    /// The service answers with its HTTP 500.
    Fail {
        /// Whether the request is carried out all the same.
        after: bool,
    },
    /// The service answers that there are too many requests.
    Throttle,
    /// It is carried out only after this time: a function that was stopped and goes on when nobody expects it.
    Stall(Duration),
    /// It is answered as if it were carried out, and is lost. For completions of tokens, whose answers are empty.
    Lose,
    /// It is answered at once as if it were carried out, and is only after this time. For completions of tokens.
    Late(Duration),
    /// It is carried out and answered, and carried out once more after this time.
    Again(Duration),
}

/// What becomes of an invocation of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// It is made.
    Once,
    /// It is made twice at once; the first answer counts.
    Twice,
    /// Lambda refuses it with this error.
    Refused(&'static str),
    /// It is made, and its answer is lost: the machine sees this error.
    Unheard(&'static str),
}

/// Decides what goes wrong.
pub trait Tap: Send + Sync {
    /// What becomes of a request; `operation` is its `X-Amz-Target` without the version, or empty.
    fn request(&self, place: Place, operation: &str) -> Verdict;

    /// What becomes of an invocation.
    fn invocation(&self, function: &str) -> Invocation {
        let _ = function;
        Invocation::Once
    }

    /// What the machine sees of an invocation that died; `None` where it is invoked again at once, as local mode
    /// does after a restart.
    fn death(&self) -> Option<&'static str> {
        None
    }
}

/// A function dies at its n-th request to the store, once.
#[derive(Default)]
pub struct Crash {
    requests: AtomicUsize,
    /// 0 for never; the request is done before the crash if odd, and not if even.
    at: AtomicUsize,
}

impl Crash {
    /// Dies at the n-th request from now on; `after` tells whether it is carried out.
    pub fn arm(&self, request: usize, after: bool) {
        self.requests.store(0, Ordering::SeqCst);
        self.at
            .store(request * 2 + usize::from(after), Ordering::SeqCst);
    }

    /// Never dies.
    pub fn disarm(&self) {
        self.at.store(0, Ordering::SeqCst);
    }

    /// Whether the crash is still to come.
    pub fn is_armed(&self) -> bool {
        self.at.load(Ordering::SeqCst) != 0
    }
}

impl Tap for Crash {
    fn request(&self, place: Place, _operation: &str) -> Verdict {
        if place != Place::Store {
            return Verdict::Pass;
        }
        let number = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let at = self.at.load(Ordering::SeqCst);
        if at == 0 || at / 2 != number {
            return Verdict::Pass;
        }
        self.disarm();
        Verdict::Die { after: at % 2 == 1 }
    }
}

/// `service` with `tap` in front of it.
pub(crate) fn tapped(tap: Arc<dyn Tap>, place: Place, service: Router) -> Router {
    Router::new().fallback(move |request: Request| {
        let (tap, service) = (Arc::clone(&tap), service.clone());
        async move { pass(tap.as_ref(), place, request, service).await }
    })
}

async fn pass(tap: &dyn Tap, place: Place, request: Request, service: Router) -> Response {
    let target = request
        .headers()
        .get("x-amz-target")
        .and_then(|v| v.to_str().ok());
    let operation = target
        .and_then(|target| target.rsplit('.').next())
        .unwrap_or_default();
    match tap.request(place, operation) {
        Verdict::Pass => answer(service, request).await,
        Verdict::Die { after } => {
            if after {
                answer(service, request).await;
            }
            // Outside of a function there is nobody to die; the request is lost.
            let _ = LIFE.try_with(|life| life.notify_one());
            std::future::pending().await
        }
        Verdict::Fail { after } => {
            if after {
                answer(service, request).await;
            }
            let name = match place {
                Place::Store => "InternalServerError",
                Place::Workflows | Place::Outside => "InternalFailure",
                Place::Target => "ServerException",
            };
            refusal(StatusCode::INTERNAL_SERVER_ERROR, name)
        }
        Verdict::Throttle => {
            let name = match place {
                Place::Store => "ProvisionedThroughputExceededException",
                _ => "ThrottlingException",
            };
            refusal(StatusCode::BAD_REQUEST, name)
        }
        Verdict::Stall(time) => {
            moving(tokio::time::sleep(time)).await;
            answer(service, request).await
        }
        Verdict::Lose => told(StatusCode::OK, "{}".to_owned()),
        Verdict::Late(time) => {
            later(time, service, request);
            told(StatusCode::OK, "{}".to_owned())
        }
        Verdict::Again(time) => {
            let (request, copy) = copied(request).await;
            let answer = answer(service.clone(), request).await;
            later(time, service, copy);
            answer
        }
    }
}

/// Carries a request out some time; nobody hears the answer.
fn later(time: Duration, service: Router, request: Request) {
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        answer(service, request).await;
    });
}

/// A request, twice.
async fn copied(request: Request) -> (Request, Request) {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await;
    let body = body.expect("a body in memory");
    let again = Request::from_parts(head.clone(), Body::from(body.clone()));
    (Request::from_parts(head, Body::from(body)), again)
}

async fn answer(service: Router, request: Request) -> Response {
    match service.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

fn refusal(status: StatusCode, name: &str) -> Response {
    let body = format!("{{\"__type\":\"{name}\",\"message\":\"simulated\"}}");
    told(status, body)
}

fn told(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let kind = axum::http::HeaderValue::from_static("application/x-amz-json-1.0");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
