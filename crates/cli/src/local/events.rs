//! What EventBridge brings on AWS: objects that are put into S3 and images that are pushed to ECR behind the port, and
//! what anybody puts on the bus (`aws events put-events`). The function `trigger` hears of it.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_asl::Lambda;
use slipway_clock::Clock;

use super::functions::Functions;
use super::place;

/// Most of a request to the bus, and of ECR's answer about an image, bytes. AWS takes 256 KB on its bus.
const LARGEST: usize = 8 << 20;

/// Parts of a query that say that no object is put: something about one, or a part of one.
const NO_OBJECT: [&str; 7] = [
    "acl",
    "legal-hold",
    "partNumber",
    "retention",
    "tagging",
    "torrent",
    "uploads",
];

/// The bus of local mode.
#[derive(Clone)]
pub struct Events {
    functions: Arc<Functions>,
    clock: Clock,
}

/// What a request brings about, if it goes well.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// An object of a bucket.
    Object { bucket: String, key: String },
    /// An image, in a region.
    Image { region: String },
}

impl About {
    /// What a request to a service is about; `None` where EventBridge hears nothing of it.
    pub(crate) fn of(request: &Request, service: &str) -> Option<Self> {
        let headers = request.headers();
        match service {
            "s3" => object(request.method(), request.uri()),
            "ecr" => {
                let operation = headers.get("x-amz-target")?.to_str().ok()?;
                let region = region(headers)?;
                operation
                    .ends_with(".PutImage")
                    .then_some(Self::Image { region })
            }
            _ => None,
        }
    }
}

fn object(method: &Method, uri: &axum::http::Uri) -> Option<About> {
    let query = uri.query().unwrap_or_default();
    let names = || query.split('&').filter_map(|pair| pair.split('=').next());
    let puts = match *method {
        Method::PUT => !names().any(|name| NO_OBJECT.contains(&name)),
        // The last request of an upload in parts.
        Method::POST => names().any(|name| name == "uploadId"),
        _ => false,
    };
    let (bucket, key) = uri.path().strip_prefix('/')?.split_once('/')?;
    let plain = |text: &str| {
        let (bytes, mut rest) = (text.as_bytes(), 0);
        let mut plain = Vec::with_capacity(bytes.len());
        while let Some(byte) = bytes.get(rest) {
            let pair = text.get(rest + 1..rest + 3).filter(|_| *byte == b'%');
            match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
                Some(byte) => {
                    plain.push(byte);
                    rest += 3;
                }
                None => {
                    plain.push(*byte);
                    rest += 1;
                }
            }
        }
        String::from_utf8(plain).ok()
    };
    (puts && !key.is_empty()).then_some(About::Object {
        bucket: bucket.to_owned(),
        key: plain(key)?,
    })
}

/// The region in the scope of an AWS signature.
fn region(headers: &HeaderMap) -> Option<String> {
    let authorization = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let credential = authorization.split("Credential=").nth(1)?;
    credential.split('/').nth(2).map(str::to_owned)
}

impl Events {
    pub(super) fn new(functions: Arc<Functions>, clock: Clock) -> Self {
        Self { functions, clock }
    }

    /// Tells what a request brought about, and hands its answer on.
    pub(crate) async fn after(&self, about: About, response: Response) -> Response {
        if !response.status().is_success() {
            return response;
        }
        match about {
            About::Object { bucket, key } => {
                let detail = json!({
                    "version": "0",
                    "bucket": {"name": bucket},
                    "object": {"key": key},
                    "reason": "PutObject",
                });
                self.tell(self.event("aws.s3", "Object Created", place::REGION, detail));
                response
            }
            About::Image { region } => {
                let (head, body) = response.into_parts();
                let Ok(body) = to_bytes(body, LARGEST).await else {
                    return StatusCode::INTERNAL_SERVER_ERROR.into_response();
                };
                let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
                let image = &answer["image"];
                let detail = json!({
                    "result": "SUCCESS",
                    "repository-name": image["repositoryName"],
                    "image-digest": image["imageId"]["imageDigest"],
                    "action-type": "PUSH",
                    "image-tag": image["imageId"]["imageTag"],
                });
                self.tell(self.event("aws.ecr", "ECR Image Action", &region, detail));
                Response::from_parts(head, Body::from(body))
            }
        }
    }

    /// `PutEvents`, and nothing else. Unlike on AWS a source may begin with `aws.`: how else would a push to CodeCommit be
    /// tried here?
    pub(crate) async fn bus(&self, request: Request) -> Response {
        let region = region(request.headers()).unwrap_or_else(|| place::REGION.to_owned());
        let operation = request.headers().get("x-amz-target");
        let operation = operation
            .and_then(|it| it.to_str().ok())
            .unwrap_or_default();
        if operation != "AWSEvents.PutEvents" {
            let why = "local mode has a bus to put events on, and no rules: PutEvents is its only operation";
            return refused("UnknownOperationException", why);
        }
        let Ok(body) = to_bytes(request.into_body(), LARGEST).await else {
            return refused("ValidationException", "the request is too large");
        };
        let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
        let Some(entries) = asked["Entries"].as_array() else {
            return refused("ValidationException", "`Entries` is missing");
        };
        let mut told = Vec::new();
        let mut failed = 0;
        for entry in entries {
            let text = |name: &str| entry[name].as_str().unwrap_or_default();
            match serde_json::from_str(text("Detail")) {
                Ok(detail) => {
                    let mut event = self.event(text("Source"), text("DetailType"), &region, detail);
                    event["resources"] = entry["Resources"].clone();
                    told.push(json!({"EventId": event["id"]}));
                    self.tell(event);
                }
                Err(_) => {
                    failed += 1;
                    told.push(json!({"ErrorCode": "MalformedDetail", "ErrorMessage": "Detail is malformed."}));
                }
            }
        }
        axum::Json(json!({"FailedEntryCount": failed, "Entries": told})).into_response()
    }

    fn event(&self, source: &str, kind: &str, region: &str, detail: Value) -> Value {
        let now_ms = self.clock.now_ms();
        // EventBridge tells whole seconds.
        let time = Timestamp::from_second(now_ms.div_euclid(1000)).unwrap_or_default();
        json!({
            "version": "0",
            "id": uuid::Uuid::new_v4().to_string(),
            "detail-type": kind,
            "source": source,
            "account": place::AWS_ACCOUNT,
            "time": time.to_string(),
            "region": region,
            "resources": [],
            "detail": detail,
        })
    }

    /// Whoever put it is answered without waiting for what comes of it.
    fn tell(&self, event: Value) {
        let functions = Arc::clone(&self.functions);
        tokio::spawn(async move {
            if let Err(why) = functions.invoke("slipway-trigger", event).await {
                tracing::warn!(
                    error = why.message,
                    "an event of the sandbox account was not heard"
                );
            }
        });
    }
}

fn refused(kind: &str, why: &str) -> Response {
    let body = json!({"__type": kind, "message": why});
    (StatusCode::BAD_REQUEST, axum::Json(body)).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::extract::Request;

    use super::About;

    #[test]
    fn objects_and_images_that_are_put_are_told_and_nothing_else() {
        let object = |key: &str| {
            Some(About::Object {
                bucket: "builds".to_owned(),
                key: key.to_owned(),
            })
        };
        for (method, path, expected) in [
            ("PUT", "/builds/a/b.zip", object("a/b.zip")),
            ("PUT", "/builds/a%20b%2Fc?x-id=PutObject", object("a b/c")),
            ("PUT", "/builds/50%?x-id=PutObject", object("50%")),
            ("POST", "/builds/big?uploadId=7", object("big")),
            ("POST", "/builds/big?uploads", None),
            ("PUT", "/builds/big?partNumber=1&uploadId=7", None),
            ("PUT", "/builds/a?tagging", None),
            ("PUT", "/builds", None),
            ("PUT", "/builds/", None),
            ("GET", "/builds/a", None),
            ("PUT", "/builds/%ff", None),
        ] {
            let request = Request::builder().method(method).uri(path);
            let request = request.body(Body::empty()).expect("a request");
            assert_eq!(About::of(&request, "s3"), expected, "{method} {path}");
            assert_eq!(About::of(&request, "ecs"), None);
        }
        let signed = "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/ecr/aws4_request, SignedHeaders=host, Signature=0";
        let image = |operation: &str| {
            let request = Request::builder()
                .method("POST")
                .uri("/")
                .header("authorization", signed)
                .header("x-amz-target", operation);
            About::of(&request.body(Body::empty()).expect("a request"), "ecr")
        };
        let region = "eu-west-1".to_owned();
        let registry = "AmazonEC2ContainerRegistry_V20150921";
        assert_eq!(
            image(&format!("{registry}.PutImage")),
            Some(About::Image { region })
        );
        assert_eq!(image(&format!("{registry}.ListImages")), None);
    }
}
