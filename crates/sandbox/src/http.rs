//! AWS's protocols on HTTP: JSON 1.1 for ECS, ECR, Cloud Map and Application Auto Scaling, Query for EC2, its Auto Scaling, ELB,
//! IAM and STS, REST-JSON for Lambda, JSON or Query for CloudWatch's alarms.
//!
//! The signature of a request says who calls and in which region; it is **not verified**, so the port
//! belongs on a loopback address.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use serde_json::Value;

use crate::Sandbox;
use crate::account::Account;
use crate::call::Call;
use crate::caller::{Caller, credential};
use crate::error::ApiError;
use crate::fault::FaultEffect;
use crate::fields::{Document, Fields};
use crate::query::{Dialect, Form};
use crate::{
    alarm, autoscaling, control, discovery, ec2, ecr, ecs, elb, iam, inventory, lambda, region,
    scaling, sts,
};

/// Largest request, bytes. The largest that AWS takes here is a task definition of 64 KiB; Lambda takes more.
const LARGEST: usize = 1 << 20;

pub(crate) fn router(sandbox: Sandbox) -> Router {
    let rest = Router::new()
        .fallback(rest)
        .layer(DefaultBodyLimit::max(lambda::LARGEST));
    Router::new()
        .route("/", post(aws).get(inventory::page))
        .merge(control::routes())
        .merge(inventory::routes())
        .layer(DefaultBodyLimit::max(LARGEST))
        .merge(rest)
        .with_state(sandbox)
}

/// One request, told apart by its headers.
enum Request {
    Json {
        service: &'static str,
        operation: String,
        body: Bytes,
    },
    Query {
        service: &'static str,
        form: Form,
        /// What the provider of an identity token publishes, once it was asked.
        keys: Result<Value, ApiError>,
    },
    Lambda(Box<lambda::Request>),
}

/// What a request is answered with.
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

impl Reply {
    /// A status alone.
    pub(crate) fn empty(status: u16) -> Self {
        Self::bytes(status, Vec::new())
    }

    /// A status and a body.
    pub(crate) fn bytes(status: u16, body: Vec<u8>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    pub(crate) fn header(&mut self, name: &'static str, value: String) {
        self.headers.push((name, value));
    }

    fn respond(self, content_type: &'static str) -> Response {
        let mut response = respond(self.status, content_type, self.body);
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

impl Request {
    fn read(headers: &HeaderMap, body: Bytes) -> Result<Self, ApiError> {
        let Some(target) = headers.get("x-amz-target") else {
            return Ok(Self::query(headers, &body));
        };
        let target = target.to_str().unwrap_or_default();
        let (service, operation) = target.split_once('.').unwrap_or((target, ""));
        let service = match service {
            ecs::TARGET => "ecs",
            ecr::TARGET => ecr::SIGNING_NAME,
            discovery::TARGET => discovery::SIGNING_NAME,
            scaling::TARGET => "application-autoscaling",
            alarm::TARGET => alarm::SIGNING_NAME,
            _ => return Err(ecs::unknown(target)),
        };
        Ok(Self::Json {
            service,
            operation: operation.to_owned(),
            body,
        })
    }

    /// The service of a Query request is the one that it is signed for. Some clients that sign for another
    /// one are told apart by the API's version; classic load balancers share the name and not the version.
    fn query(headers: &HeaderMap, body: &[u8]) -> Self {
        let form = Form::parse(body);
        let version = form.get("Version").unwrap_or_default();
        let signed_for = credential(headers).map(|credential| credential.service);
        let balancing = signed_for == Some(elb::SIGNING_NAME) && version.is_empty();
        let service = match version {
            elb::VERSION => elb::SIGNING_NAME,
            autoscaling::VERSION => autoscaling::SIGNING_NAME,
            ec2::VERSION => ec2::SIGNING_NAME,
            iam::VERSION => iam::SIGNING_NAME,
            alarm::VERSION => alarm::SIGNING_NAME,
            _ if balancing => elb::SIGNING_NAME,
            _ => "sts",
        };
        Self::Query {
            service,
            form,
            keys: Ok(Value::Null),
        }
    }

    fn service(&self) -> &'static str {
        match self {
            Self::Json { service, .. } | Self::Query { service, .. } => service,
            Self::Lambda(_) => lambda::SIGNING_NAME,
        }
    }

    /// How answers are written in the Query protocol, and their XML namespace.
    fn dialect(&self) -> Option<(Dialect, &'static str)> {
        match self {
            Self::Json { .. } | Self::Lambda(_) => None,
            Self::Query { service, .. } => Some(match *service {
                elb::SIGNING_NAME => (Dialect::Query, elb::NAMESPACE),
                autoscaling::SIGNING_NAME => (Dialect::Query, autoscaling::NAMESPACE),
                ec2::SIGNING_NAME => (Dialect::Ec2, ec2::NAMESPACE),
                iam::SIGNING_NAME => (Dialect::Query, iam::NAMESPACE),
                alarm::SIGNING_NAME => (Dialect::Query, alarm::NAMESPACE),
                _ => (Dialect::Query, sts::NAMESPACE),
            }),
        }
    }

    fn operation(&self) -> &str {
        match self {
            Self::Json { operation, .. } => operation,
            Self::Query { form, .. } => form.get("Action").unwrap_or_default(),
            Self::Lambda(request) => request.operation,
        }
    }

    /// Operations that only read have names that say so.
    fn changes(&self) -> bool {
        let reads = ["Describe", "List", "Get", "BatchGet", "Discover"];
        !reads.iter().any(|verb| self.operation().starts_with(verb))
    }

    /// Asks for what the account itself does not have.
    async fn prepare(&mut self, sandbox: &Sandbox) {
        if let Self::Lambda(request) = self
            && let Some((bucket, key, version)) = request.wanted_object()
            && let Some(objects) = sandbox.objects()
        {
            let object = objects.read(bucket, key, version).await;
            request.give(object);
        }
        if let Self::Query {
            service,
            form,
            keys,
        } = self
            && *service == "sts"
            && form.get("Action") == Some(sts::BY_TOKEN)
        {
            *keys = sts::keys(sandbox, form).await;
        }
    }

    /// Whether it needs no signature.
    fn is_anonymous(&self) -> bool {
        self.service() == "sts" && self.operation() == sts::BY_TOKEN
    }

    fn carry_out(&self, account: &mut Account, caller: &Caller) -> Result<Reply, ApiError> {
        match self {
            Self::Json {
                service,
                operation,
                body,
            } => {
                let document = parse(body)?;
                let fields = Fields(&document);
                let answer = match *service {
                    "ecs" => ecs::call(account, caller, operation, fields),
                    ecr::SIGNING_NAME => ecr::call(account, caller, operation, fields),
                    discovery::SIGNING_NAME => discovery::call(account, caller, operation, fields),
                    alarm::SIGNING_NAME => alarm::call(account, caller, operation, fields),
                    _ => scaling::call(account, caller, operation, fields),
                };
                answer.map(|answer| Reply::bytes(200, answer.to_string().into_bytes()))
            }
            Self::Query {
                service,
                form,
                keys,
            } => {
                let result = match *service {
                    elb::SIGNING_NAME => elb::call(account, caller, form),
                    autoscaling::SIGNING_NAME => autoscaling::call(account, caller, form),
                    ec2::SIGNING_NAME => ec2::call(account, caller, form),
                    iam::SIGNING_NAME => iam::call(account, caller, form),
                    alarm::SIGNING_NAME => alarm::query(account, caller, form),
                    _ => sts::call(account, caller, form, keys),
                }?;
                let dialect = self.dialect();
                let (dialect, namespace) = dialect.unwrap_or((Dialect::Query, sts::NAMESPACE));
                let body = dialect.response(namespace, self.operation(), &result, &request_id());
                Ok(Reply::bytes(200, body.into_bytes()))
            }
            Self::Lambda(request) => {
                let (status, answer) = lambda::call(account, caller, request)?;
                let body = match answer {
                    Value::Null => String::new(),
                    answer => answer.to_string(),
                };
                Ok(Reply::bytes(status, body.into_bytes()))
            }
        }
    }
}

fn parse(body: &[u8]) -> Result<Document, ApiError> {
    if body.is_empty() {
        return Ok(Document::new());
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(document)) => Ok(document),
        Ok(_) => Err(ApiError::serialization("The request is not a structure.")),
        Err(error) => Err(ApiError::serialization(format!(
            "The request is not JSON: {error}"
        ))),
    }
}

fn request_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

async fn aws(
    State(sandbox): State<Sandbox>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let Ok(body) = body else {
        let message = format!("The request is larger than {LARGEST} bytes or was cut off.");
        return json_error(&ApiError {
            code: "RequestEntityTooLargeException",
            status: 413,
            message,
        });
    };
    let request = match Request::read(&headers, body) {
        Ok(request) => request,
        Err(error) => return json_error(&error),
    };
    let dialect = request.dialect();
    match (answer(&sandbox, &headers, request).await, dialect) {
        (Answer::Reply(reply), Some(_)) => reply.respond("text/xml"),
        (Answer::Reply(reply), None) => reply.respond("application/x-amz-json-1.1"),
        (Answer::Error(error), Some((dialect, namespace))) => {
            let (status, body) = dialect.error(namespace, &error, &request_id());
            respond(status, "text/xml", body)
        }
        (Answer::Error(error), None) => json_error(&error),
        (Answer::Cut, _) => cut(),
    }
}

/// REST-JSON: every path but those of the other protocols and of the controls.
async fn rest(
    State(sandbox): State<Sandbox>,
    (method, uri): (Method, Uri),
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let service = credential(&headers).map(|credential| credential.service);
    if service.is_some_and(|service| service != lambda::SIGNING_NAME) {
        let message = format!(
            "The sandbox account has no service {} on paths.",
            service.unwrap_or_default()
        );
        return (StatusCode::NOT_FOUND, message).into_response();
    }
    let Ok(body) = body else {
        return rest_error(ApiError {
            code: "RequestTooLargeException",
            status: 413,
            message: format!("Request must be smaller than {} bytes", lambda::LARGEST),
        });
    };
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.or(uri.authority().map(|authority| authority.as_str()));
    let address = match (sandbox.address(), host) {
        (Some(address), _) => address.to_owned(),
        (None, host) => format!("http://{}", host.unwrap_or("localhost")),
    };
    let place = (&method, uri.path(), uri.query().unwrap_or_default());
    let request = match lambda::Request::read(place, &address, &body) {
        Ok(request) => Request::Lambda(Box::new(request)),
        Err(error) => return rest_error(error),
    };
    match answer(&sandbox, &headers, request).await {
        Answer::Reply(reply) => reply.respond("application/json"),
        Answer::Error(error) => rest_error(error),
        Answer::Cut => cut(),
    }
}

enum Answer {
    Reply(Reply),
    Error(ApiError),
    Cut,
}

async fn answer(sandbox: &Sandbox, headers: &HeaderMap, request: Request) -> Answer {
    let (service, operation) = (request.service(), request.operation().to_owned());
    let fault = sandbox.faults().hit(service, &operation);
    if let Some(FaultEffect::Latency { millis }) = fault {
        sandbox.clock().sleep(Duration::from_millis(millis)).await;
    }
    let mut call = Call {
        service,
        operation,
        principal: String::new(),
        at: sandbox.clock().now(),
        error: None,
    };
    let done = serve(sandbox, headers, request, fault.as_ref(), &mut call).await;
    let done = match service {
        lambda::SIGNING_NAME => done.map_err(lambda::as_lambda_says),
        _ => done,
    };
    call.error = done.as_ref().err().map(|error| error.code.to_owned());
    let cut = matches!(fault, Some(FaultEffect::Cut { .. }));
    if cut {
        call.error = Some("connection cut".to_owned());
    }
    sandbox.log_call(call);
    match done {
        _ if cut => Answer::Cut,
        Ok(reply) => Answer::Reply(reply),
        Err(error) => Answer::Error(error),
    }
}

/// Identifies the caller, applies the fault, carries the request out.
async fn serve(
    sandbox: &Sandbox,
    headers: &HeaderMap,
    mut request: Request,
    fault: Option<&FaultEffect>,
    call: &mut Call,
) -> Result<Reply, ApiError> {
    let caller = match credential(headers) {
        Some(mut credential) => {
            if credential.region.is_empty() {
                credential.region = sandbox.region();
            }
            sandbox.look(|account| sts::identify(account, credential))
        }
        None if request.is_anonymous() => {
            sandbox.look(|account| Ok(sts::anonymous(account, sandbox.region())))
        }
        None => {
            return Err(ApiError::client(
                "MissingAuthenticationTokenException",
                "Missing Authentication Token",
            ));
        }
    };
    let caller = caller.map_err(|error| ApiError::server(error.to_string()))??;
    call.principal.clone_from(&caller.arn);
    let known = sandbox.look(|account| region::check(account, &caller, call.service));
    known.map_err(|error| ApiError::server(error.to_string()))??;
    let action = format!("{}:{}", call.service, call.operation);
    match fault {
        Some(FaultEffect::ServiceControlPolicy) => {
            let message = format!(
                "User: {} is not authorized to perform: {action} with an explicit deny in a service control policy",
                caller.arn
            );
            return Err(ApiError::client("AccessDeniedException", message));
        }
        Some(FaultEffect::AccountClosed) => return Err(region::unknown_caller(call.service)),
        Some(FaultEffect::NotSubscribed) => {
            return Err(ApiError::client(
                "SubscriptionRequiredException",
                "The AWS Access Key Id needs a subscription for the service",
            ));
        }
        Some(FaultEffect::Throttle) => {
            return Err(ApiError::client("ThrottlingException", "Rate exceeded"));
        }
        Some(FaultEffect::AccessDenied) => {
            let message = format!(
                "User: {} is not authorized to perform: {action} because no identity-based policy \
                 allows the {action} action",
                caller.arn
            );
            return Err(ApiError::client("AccessDeniedException", message));
        }
        Some(FaultEffect::ServerError) => {
            return Err(ApiError::server(
                "Service Unavailable. Please try again later.",
            ));
        }
        Some(FaultEffect::ExpiredCredentials) => return Err(ApiError::expired()),
        Some(FaultEffect::Cut { after: false }) => return Ok(Reply::empty(200)),
        Some(FaultEffect::Cut { after: true } | FaultEffect::Latency { .. }) | None => {}
    }
    if let Request::Lambda(request) = &request
        && request.operation == lambda::invoke::OPERATION
    {
        return lambda::invoke::serve(sandbox, &caller, request, headers).await;
    }
    let changes = request.changes();
    request.prepare(sandbox).await;
    sandbox
        .serve(changes, move |account| request.carry_out(account, &caller))
        .await
}

fn json_error(error: &ApiError) -> Response {
    let body = serde_json::json!({"__type": error.code, "message": error.message});
    let mut response = respond(error.status, "application/x-amz-json-1.1", body.to_string());
    response
        .headers_mut()
        .insert("x-amzn-errortype", HeaderValue::from_static(error.code));
    response
}

/// An error as Lambda writes it.
fn rest_error(error: ApiError) -> Response {
    let error = lambda::as_lambda_says(error);
    let blame = if error.status < 500 {
        "User"
    } else {
        "Service"
    };
    let body = serde_json::json!({"Type": blame, "Message": error.message});
    let mut response = respond(error.status, "application/json", body.to_string());
    response
        .headers_mut()
        .insert("x-amzn-errortype", HeaderValue::from_static(error.code));
    response
}

fn respond(status: u16, content_type: &'static str, body: impl Into<Body>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response =
        (status, [(header::CONTENT_TYPE, content_type)], body.into()).into_response();
    if let Ok(id) = HeaderValue::from_str(&request_id()) {
        response.headers_mut().insert("x-amzn-requestid", id);
    }
    response
}

/// A response that breaks off: the server closes the connection when the body fails.
fn cut() -> Response {
    let broken = futures::stream::once(async {
        Err::<Bytes, _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
    });
    Response::new(Body::from_stream(broken))
}
