//! A thin client for the services of the Query protocol (EC2, EC2 Auto Scaling), and for Amazon ECR and AWS CodeCommit, whose
//! protocol is JSON 1.1: documents go out and come back whole, also with fields that are newer than any SDK.
//!
//! Signatures, retries, timeouts and connections are those of the SDK's own runtime; only the body is made and read
//! here. Why there is no SDK crate for them: `docs/decisions/0008-query-client.md`.

mod answer;
mod error;
mod flatten;

use std::fmt;

use aws_runtime::auth::sigv4::{SCHEME_ID, SigV4AuthScheme};
use aws_runtime::auth::{SigV4OperationSigningConfig, SigningOptions};
use aws_runtime::retries::classifiers::AwsErrorCodeClassifier;
use aws_sdk_ecs::config::{BehaviorVersion, Region, SharedCredentialsProvider, SharedHttpClient};
use aws_smithy_runtime::client::identity::IdentityCache;
use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime::client::retries::classifiers::TransientErrorClassifier;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::auth::AuthSchemeOptionResolverParams;
use aws_smithy_runtime_api::client::auth::static_resolver::StaticAuthSchemeOptionResolver;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, OrchestratorError};
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponentsBuilder;
use aws_smithy_runtime_api::client::runtime_plugin::StaticRuntimePlugin;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::Layer;
use aws_types::SigningName;
use aws_types::region::SigningRegion;
use serde_json::Value;
use slipway_clock::Clock;

use super::backoff::Backoff;
use super::runtime::{ClockSleep, ClockTime, retries, timeouts};

pub use error::QueryError;

/// A service of the Query protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Amazon EC2, whose dialect is its own.
    Ec2,
    /// Amazon EC2 Auto Scaling.
    AutoScaling,
    /// Amazon ECR, in JSON.
    Ecr,
    /// AWS CodeCommit, in JSON.
    CodeCommit,
}

impl Service {
    fn signing_name(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::AutoScaling => "autoscaling",
            Self::Ecr => "ecr",
            Self::CodeCommit => "codecommit",
        }
    }

    /// The body of a request for `action`.
    fn body(self, action: &str, document: &Value) -> Body {
        let version = match self {
            Self::Ec2 => "2016-11-15",
            Self::AutoScaling => "2011-01-01",
            Self::Ecr => {
                return Body::json("AmazonEC2ContainerRegistry_V20150921", action, document);
            }
            Self::CodeCommit => return Body::json("CodeCommit_20150413", action, document),
        };
        let mut pairs = vec![
            ("Action".to_owned(), action.to_owned()),
            ("Version".to_owned(), version.to_owned()),
        ];
        flatten::flatten(self, action, document, &mut pairs);
        Body {
            target: None,
            text: flatten::encode(&pairs),
        }
    }

    /// The endpoint in a region (AWS general reference, service endpoints).
    fn endpoint(self, region: &str) -> String {
        let suffix = match region {
            china if china.starts_with("cn-") => ".cn",
            _ => "",
        };
        let host = match self {
            Self::Ecr => "api.ecr",
            _ => self.signing_name(),
        };
        format!("https://{host}.{region}.amazonaws.com{suffix}")
    }
}

/// The body of a request. It may hold secrets, so it is not shown.
struct Body {
    /// `X-Amz-Target` of a JSON service.
    target: Option<String>,
    text: String,
}

impl Body {
    /// That of a JSON service of this name and version.
    fn json(service: &str, action: &str, document: &Value) -> Self {
        Self {
            target: Some(format!("{service}.{action}")),
            text: document.to_string(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.text.len())
    }
}

/// What a client of one service, account and region is made of.
pub(super) struct Parts<'a> {
    pub(super) endpoint: Option<&'a str>,
    pub(super) http: Option<&'a SharedHttpClient>,
    pub(super) credentials: &'a SharedCredentialsProvider,
    pub(super) region: &'a str,
    pub(super) backoff: &'a Backoff,
    pub(super) clock: &'a Clock,
}

/// A client of one service in one account and region.
#[derive(Clone, Debug)]
pub struct QueryClient {
    service: Service,
    operation: Operation<Body, Value, QueryError>,
}

impl QueryClient {
    pub(super) fn new(service: Service, parts: &Parts<'_>) -> Self {
        let own;
        let endpoint = match parts.endpoint {
            Some(endpoint) => endpoint,
            None => {
                own = service.endpoint(parts.region);
                &own
            }
        };
        let mut builder = Operation::builder()
            .service_name(service.signing_name())
            .operation_name("Query")
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(endpoint)
            .standard_retry(&parts.backoff.retry_config())
            .interceptor(parts.backoff.delay())
            .timeout_config(timeouts())
            .sleep_impl(ClockSleep(parts.clock.clone()))
            .time_source(ClockTime(parts.clock.clone()))
            .retry_classifier(TransientErrorClassifier::<QueryError>::new())
            .retry_classifier(AwsErrorCodeClassifier::<QueryError>::new())
            .runtime_plugin(signing(service, parts));
        if let Some(http) = parts.http {
            builder = builder.http_client(http.clone());
        }
        let operation = builder.serializer(request).deserializer(read).build();
        Self { service, operation }
    }

    /// Carries out `action` with the members of `document`, and gives those of the answer: texts, lists and
    /// mappings, and `Null` for what is empty.
    ///
    /// # Errors
    /// What AWS answers, and what keeps an answer from coming.
    pub async fn call(
        &self,
        action: &str,
        document: &Value,
    ) -> Result<Value, SdkError<QueryError, HttpResponse>> {
        let body = self.service.body(action, document);
        self.operation.invoke(body).await
    }
}

/// Signatures of the service's name with the credentials of the connector.
fn signing(service: Service, parts: &Parts<'_>) -> StaticRuntimePlugin {
    let mut options = SigningOptions::default();
    options.double_uri_encode = true;
    options.normalize_uri_path = true;
    let mut layer = Layer::new("QuerySigning");
    layer.store_put(SigV4OperationSigningConfig {
        region: Some(SigningRegion::from(Region::new(parts.region.to_owned()))),
        name: Some(SigningName::from_static(service.signing_name())),
        signing_options: options,
        ..SigV4OperationSigningConfig::default()
    });
    layer.store_put(AuthSchemeOptionResolverParams::new(()));
    layer.store_put(retries());
    let components = RuntimeComponentsBuilder::new("QuerySigning")
        .with_auth_scheme(SigV4AuthScheme::new())
        .with_auth_scheme_option_resolver(Some(StaticAuthSchemeOptionResolver::new(vec![
            SCHEME_ID,
        ])))
        .with_identity_cache(Some(IdentityCache::lazy().build()))
        .with_identity_resolver(SCHEME_ID, parts.credentials.clone());
    StaticRuntimePlugin::new()
        .with_config(layer.freeze())
        .with_runtime_components(components)
}

fn request(body: Body) -> Result<HttpRequest, BoxError> {
    let mut request = HttpRequest::new(SdkBody::from(body.text));
    request.set_method("POST")?;
    request.set_uri("/")?;
    let kind = match body.target {
        None => "application/x-www-form-urlencoded",
        Some(target) => {
            request.headers_mut().insert("x-amz-target", target);
            "application/x-amz-json-1.1"
        }
    };
    request.headers_mut().insert("content-type", kind);
    Ok(request)
}

fn read(response: &HttpResponse) -> Result<Value, OrchestratorError<QueryError>> {
    let body = response.body().bytes().unwrap_or_default();
    if response.status().is_success() {
        let kind = response.headers().get("content-type");
        if kind.is_some_and(|kind| kind.contains("json")) {
            return serde_json::from_slice(body).map_err(OrchestratorError::other);
        }
        return answer::read(body).map_err(OrchestratorError::other);
    }
    let status = response.status().as_u16();
    Err(OrchestratorError::operation(QueryError::read(status, body)))
}
