//! An account in virtual time, called through its router.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use slipway_clock::Clock;
use slipway_sandbox::{Pace, Sandbox, SandboxConfig};
use tower::ServiceExt;

/// Seconds of one look of a trace.
const STEP: u64 = 1;

pub(crate) struct Aws {
    pub(crate) sandbox: Sandbox,
    pub(crate) clock: Clock,
    pub(crate) access_key: String,
}

/// Code and message of an AWS error.
pub(crate) type Refusal = (String, String);

impl Aws {
    /// A fresh account in memory, at 2026-01-01 and a realistic pace.
    pub(crate) fn new() -> Self {
        let start = "2026-01-01T00:00:00Z".parse().expect("a timestamp");
        Self::open(None, Clock::paused(start))
    }

    pub(crate) fn open(path: Option<&Path>, clock: Clock) -> Self {
        let config = SandboxConfig {
            clock: clock.clone(),
            region: "us-east-1".into(),
            account: "123456789012".into(),
            pace: Pace::realistic(),
        };
        Self {
            sandbox: Sandbox::open(path, config).expect("the account opens"),
            clock,
            access_key: "AKIATEST".into(),
        }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Response<Body> {
        let answer = self.sandbox.router().oneshot(request).await;
        answer.expect("a router answers")
    }

    pub(crate) fn authorization(&self) -> String {
        format!(
            "AWS4-HMAC-SHA256 Credential={}/20260101/us-east-1/ecs/aws4_request, SignedHeaders=host, Signature=0",
            self.access_key
        )
    }

    async fn json(&self, target: &str, body: &Value) -> Result<Value, Refusal> {
        let request = Request::post("/")
            .header("x-amz-target", target)
            .header("authorization", self.authorization())
            .body(Body::from(body.to_string()))
            .expect("a request");
        let response = self.send(request).await;
        let ok = response.status().is_success();
        let bytes = response.into_body().collect().await.expect("a body");
        let body: Value = serde_json::from_slice(&bytes.to_bytes()).expect("JSON");
        if ok {
            return Ok(body);
        }
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        Err((text("__type"), text("message")))
    }

    pub(crate) async fn try_ecs(&self, operation: &str, body: Value) -> Result<Value, Refusal> {
        let target = format!("AmazonEC2ContainerServiceV20141113.{operation}");
        self.json(&target, &body).await
    }

    pub(crate) async fn ecs(&self, operation: &str, body: Value) -> Value {
        let answer = self.try_ecs(operation, body).await;
        answer.unwrap_or_else(|refusal| panic!("{operation}: {refusal:?}"))
    }

    pub(crate) async fn try_ecr(&self, operation: &str, body: Value) -> Result<Value, Refusal> {
        let target = format!("AmazonEC2ContainerRegistry_V20150921.{operation}");
        self.json(&target, &body).await
    }

    pub(crate) async fn try_discovery(
        &self,
        operation: &str,
        body: Value,
    ) -> Result<Value, Refusal> {
        let target = format!("Route53AutoNaming_v20170314.{operation}");
        self.json(&target, &body).await
    }

    pub(crate) async fn try_scaling(&self, operation: &str, body: Value) -> Result<Value, Refusal> {
        let target = format!("AnyScaleFrontendService.{operation}");
        self.json(&target, &body).await
    }

    pub(crate) async fn try_alarms(&self, operation: &str, body: Value) -> Result<Value, Refusal> {
        let target = format!("GraniteServiceVersion20100801.{operation}");
        self.json(&target, &body).await
    }

    /// Status and body of a Query request: `Action=<operation>&<form>`.
    pub(crate) async fn query(&self, operation: &str, form: &str) -> (u16, String) {
        let request = Request::post("/")
            .header("authorization", self.authorization())
            .body(Body::from(format!(
                "Action={operation}&Version=2015-12-01&{form}"
            )))
            .expect("a request");
        let response = self.send(request).await;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.expect("a body");
        let body = String::from_utf8_lossy(&bytes.to_bytes()).into_owned();
        (status, body)
    }

    /// The answer of Elastic Load Balancing.
    pub(crate) async fn elb(&self, operation: &str, form: &str) -> String {
        let (status, body) = self.query(operation, form).await;
        assert_eq!(status, 200, "{operation}: {body}");
        body
    }

    /// What Elastic Load Balancing refuses: `<code>: <message>`.
    pub(crate) async fn elb_refusal(&self, operation: &str, form: &str) -> String {
        let (status, body) = self.query(operation, form).await;
        assert!(status >= 400, "{operation}: {body}");
        format!("{}: {}", between(&body, "Code"), between(&body, "Message"))
    }

    /// Registers a revision of `web` with this image.
    pub(crate) async fn register(&self, image: &str) -> String {
        let body = json!({
            "family": "web",
            "cpu": "256",
            "memory": "512",
            "networkMode": "awsvpc",
            "executionRoleArn": "arn:aws:iam::123456789012:role/ecsTaskExecutionRole",
            "containerDefinitions": [
                {"name": "app", "image": image, "portMappings": [{"containerPort": 80}]},
            ],
        });
        let answer = self.ecs("RegisterTaskDefinition", body).await;
        let arn = answer["taskDefinition"]["taskDefinitionArn"].as_str();
        arn.expect("an ARN").to_owned()
    }

    /// A service `web` on a cluster `c`, running `desired` tasks of a good image, steady.
    pub(crate) async fn steady_service(&self, desired: u32, configuration: Value) {
        self.ecs("CreateCluster", json!({"clusterName": "c"})).await;
        self.register("web:1").await;
        self.ecs("CreateService", service(desired, configuration))
            .await;
        self.pass(120).await;
        assert_eq!(self.service().await["runningCount"], desired);
    }

    pub(crate) async fn update(&self, task_definition: &str) -> String {
        let body = json!({"cluster": "c", "service": "web", "taskDefinition": task_definition});
        let answer = self.ecs("UpdateService", body).await;
        let id = answer["service"]["deployments"][0]["id"].as_str();
        id.expect("an id").to_owned()
    }

    pub(crate) async fn service(&self) -> Value {
        let body = json!({"cluster": "c", "services": ["web"]});
        self.ecs("DescribeServices", body).await["services"][0].clone()
    }

    /// Event messages, oldest first, from the `skip`th on.
    pub(crate) async fn events(&self, skip: usize) -> Vec<String> {
        let service = self.service().await;
        let events = service["events"].as_array().expect("events").iter().rev();
        let messages = events.map(|event| event["message"].as_str().expect("a message").to_owned());
        messages.skip(skip).collect()
    }

    pub(crate) async fn tasks(&self, desired_status: &str) -> Vec<Value> {
        let body = json!({"cluster": "c", "desiredStatus": desired_status});
        let arns = self.ecs("ListTasks", body).await["taskArns"].clone();
        if arns.as_array().is_none_or(Vec::is_empty) {
            return Vec::new();
        }
        let described = self
            .ecs("DescribeTasks", json!({"cluster": "c", "tasks": arns}))
            .await;
        described["tasks"].as_array().expect("tasks").clone()
    }

    /// Lets time pass without looking.
    pub(crate) async fn pass(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    /// Looks every second for `seconds`, and writes down what differs from the look before:
    /// `+<seconds> <task definition> <PRIMARY|ACTIVE> <rollout> <running>r<pending>p<failed>f`.
    pub(crate) async fn trace(&self, seconds: u64) -> String {
        let (mut text, mut last) = (String::new(), String::new());
        for second in (0..=seconds).step_by(STEP as usize) {
            let now = summary(&self.service().await);
            if now != last {
                writeln!(text, "{second:>4}s {now}").expect("text");
                last = now;
            }
            self.pass(STEP).await;
        }
        text
    }
}

/// The request for a service `web` on a cluster `c`.
pub(crate) fn service(desired: u32, configuration: Value) -> Value {
    json!({
        "cluster": "c",
        "serviceName": "web",
        "taskDefinition": "web",
        "desiredCount": desired,
        "launchType": "FARGATE",
        "deploymentConfiguration": configuration,
        "networkConfiguration": {"awsvpcConfiguration": {"subnets": ["subnet-1"]}},
    })
}

fn summary(service: &Value) -> String {
    let deployments = service["deployments"].as_array().expect("deployments");
    let each = deployments.iter().map(|one| {
        let revision = one["taskDefinition"]
            .as_str()
            .and_then(|arn| arn.rsplit('/').next());
        format!(
            "{} {} {} {}r{}p{}f",
            revision.expect("a revision"),
            one["status"].as_str().expect("a status"),
            one["rolloutState"].as_str().expect("a state"),
            one["runningCount"],
            one["pendingCount"],
            one["failedTasks"],
        )
    });
    each.collect::<Vec<_>>().join(" | ")
}

/// Replaces ids by what they are, so that messages can be compared.
pub(crate) fn without_ids(message: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in message.split(' ') {
        let hex = |part: &str| part.len() == 32 && part.chars().all(|c| c.is_ascii_hexdigit());
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        words.push(if hex(bare) {
            word.replace(bare, "T")
        } else if let Some(digits) = bare.strip_prefix("ecs-svc/") {
            word.replace(digits, "D")
        } else {
            word.to_owned()
        });
    }
    words.join(" ")
}

/// Text of the first element with this name.
pub(crate) fn between<'a>(text: &'a str, tag: &str) -> &'a str {
    let rest = text
        .split_once(&format!("<{tag}>"))
        .map_or("", |(_, rest)| rest);
    rest.split('<').next().unwrap_or_default()
}

/// Texts of all elements with this name, in their order.
pub(crate) fn all_between<'a>(text: &'a str, tag: &str) -> Vec<&'a str> {
    let parts = text.split(&format!("<{tag}>")).skip(1).collect::<Vec<_>>();
    let texts = parts.into_iter().map(|rest| rest.split('<').next());
    texts.map(Option::unwrap_or_default).collect()
}
