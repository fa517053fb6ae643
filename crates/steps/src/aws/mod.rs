//! Accounts that are deployed to, and that artifacts are in: clients with the credentials of the infrastructure's or the
//! artifact source's connector, never with the function's own.

mod backoff;
pub(crate) mod balancer;
mod credentials;
pub mod document;
pub mod error;
pub mod external_id;
mod image;
pub mod oidc;
pub(crate) mod other_rules;
pub mod query;
mod reading;
mod region;
mod runtime;
pub mod wire;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use aws_config::provider_config::ProviderConfig;
use aws_config::web_identity_token::WebIdentityTokenCredentialsProvider;
use aws_credential_types::Credentials;
use aws_sdk_ecs::config::{
    BehaviorVersion, Region, SharedCredentialsProvider, SharedHttpClient,
    StalledStreamProtectionConfig,
};
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use serde_json::Value;
use sha2::{Digest, Sha256};
use slipway_clock::Clock;
use slipway_model::id::{EntityId, Scope};
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::ConnectorPlan;
use tokio::sync::Mutex;

use crate::context::told;
use crate::secrets::Secrets;
use query::{Parts, QueryClient, Service};

pub use backoff::{Backoff, limits_retries};
use credentials::{
    Base, ConnectorCredentials, Federation, Local, Role, assume_with_token, refused,
};
pub use credentials::{assumes_role, takes_session};
pub use image::is_image_id;
use oidc::{Bearer, Issuer};
use runtime::{ClockSleep, ClockTime, retries, timeouts};

/// Assumed-role credentials that end sooner than this are renewed before use.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_mins(5);

/// Where a connector is tested that names no region.
const TEST_REGION: &str = "us-east-1";

/// Number of clients that are kept; more connectors than that are made anew each time.
const MOST_CACHED: usize = 256;

/// What `InheritFromDelegate` inherits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambient {
    /// The credentials of this machine, found as every AWS tool finds them.
    Host,
    /// The same, but only to assume the connector's role: a Lambda function must never deploy with a role
    /// of its own.
    HostToAssumeRoles,
    /// Fixed ones that mean nothing: the target is the sandbox, and no real credential may reach it.
    Sandbox,
}

/// Where target accounts are.
#[derive(Clone, Debug)]
pub struct TargetConfig {
    /// Endpoint of all target services instead of AWS's own; the sandbox in local mode.
    pub endpoint_url: Option<String>,
    /// HTTP client instead of the SDK's; the in-process sandbox in local mode.
    pub http_client: Option<SharedHttpClient>,
    /// What `InheritFromDelegate` inherits.
    pub ambient: Ambient,
    /// S3 of all target accounts instead of AWS's own; the embedded one in local mode.
    pub objects: Option<Objects>,
}

/// An S3 that is not AWS's.
#[derive(Clone, Debug)]
pub struct Objects {
    /// Talks to it.
    pub client: aws_sdk_s3::Client,
    /// The bucket in it that holds Slipway's own plans and logs, and that no connector may read.
    pub own_bucket: String,
}

impl TargetConfig {
    /// From the environment of a function: `SLIPWAY_TARGET_ENDPOINT` moves the target services, and
    /// inside Lambda (`AWS_LAMBDA_FUNCTION_NAME`) the ambient role only assumes other roles.
    pub fn from_env() -> Self {
        let endpoint_url = std::env::var("SLIPWAY_TARGET_ENDPOINT")
            .ok()
            .filter(|url| !url.is_empty());
        let ambient = if endpoint_url.is_some() {
            Ambient::Sandbox
        } else if std::env::var_os("AWS_LAMBDA_FUNCTION_NAME").is_some() {
            Ambient::HostToAssumeRoles
        } else {
            Ambient::Host
        };
        Self {
            endpoint_url,
            http_client: None,
            ambient,
            objects: None,
        }
    }
}

/// Clients of one account and region.
#[derive(Clone, Debug)]
pub struct AwsTarget {
    /// Amazon ECS.
    pub ecs: aws_sdk_ecs::Client,
    /// Application Auto Scaling.
    pub scaling: aws_sdk_applicationautoscaling::Client,
    /// Elastic Load Balancing v2.
    pub elb: aws_sdk_elasticloadbalancingv2::Client,
    /// AWS Lambda.
    pub lambda: aws_sdk_lambda::Client,
    /// Amazon S3.
    pub s3: aws_sdk_s3::Client,
    /// Amazon EC2.
    pub ec2: QueryClient,
    /// Amazon EC2 Auto Scaling.
    pub auto_scaling: QueryClient,
    /// Amazon ECR.
    pub ecr: QueryClient,
    /// AWS CodeCommit.
    pub code_commit: QueryClient,
    /// The region.
    pub region: String,
}

/// Makes and keeps clients of target accounts, one per connector, credential and region.
#[derive(Clone)]
pub struct AwsTargets(Arc<Inner>);

struct Inner {
    config: TargetConfig,
    clock: Clock,
    issuer: Option<Issuer>,
    cache: Mutex<HashMap<String, Cached>>,
}

struct Cached {
    target: AwsTarget,
    ends: Option<Timestamp>,
}

impl AwsTargets {
    /// Targets at the places that `config` names.
    pub fn new(config: TargetConfig, clock: Clock) -> Self {
        Self::with_issuer(config, clock, None)
    }

    /// The same; connectors of type `OidcAuthentication` use tokens of `issuer`, and are refused without one.
    pub fn with_issuer(config: TargetConfig, clock: Clock, issuer: Option<Issuer>) -> Self {
        Self(Arc::new(Inner {
            config,
            clock,
            issuer,
            cache: Mutex::new(HashMap::new()),
        }))
    }

    /// Who signs tokens for connectors of type `OidcAuthentication`.
    pub fn issuer(&self) -> Option<&Issuer> {
        self.0.issuer.as_ref()
    }

    /// Clients for `connector`, whose spec with expressions resolved is `spec`, in `region`, which must be one of AWS's.
    ///
    /// `scope` is where the connector's reference was written. Fails with `Authentication` when the
    /// credentials cannot be had, and says which connector and why.
    pub async fn target(
        &self,
        connector: &ConnectorPlan,
        spec: &Value,
        scope: &Scope,
        region: &str,
        secrets: &mut Secrets<'_>,
    ) -> Result<AwsTarget, Failure> {
        if region.trim().is_empty() {
            return Err(refused(connector, "no region is named"));
        }
        if let Some(why) = region::unknown(region) {
            return Err(misnamed(connector, &why));
        }
        let (connector_scope, id) = scope.resolve(&connector.reference);
        let wanted = ConnectorCredentials::read(connector, spec, &connector_scope, secrets).await?;
        let key = self.key(connector, &connector_scope, spec, &wanted, region);
        if let Some(target) = self.cached(&key).await {
            return Ok(target);
        }
        // Not under the lock: a slow account must not hold up the others. Two at once both ask, once.
        let place = (&connector_scope, &id);
        let (provider, ends) = self.provider(connector, place, &wanted, region).await?;
        let target = self.clients(&provider, region, &wanted.backoff);
        let mut cache = self.0.cache.lock().await;
        if cache.len() >= MOST_CACHED {
            cache.clear();
        }
        let cached = Cached {
            target: target.clone(),
            ends,
        };
        cache.insert(key, cached);
        Ok(target)
    }

    /// Tries the credentials of a connector, as Harness does: `ec2:DescribeRegions` in its test region, `us-east-1` where
    /// it names none (AWS connector settings reference, *Test connection*).
    ///
    /// # Errors
    /// As [`AwsTargets::target`], and what EC2 says.
    pub async fn test(
        &self,
        connector: &ConnectorPlan,
        scope: &Scope,
        secrets: &mut Secrets<'_>,
    ) -> Result<(), Failure> {
        let spec = &connector.spec;
        let places = ["testRegion", "region"].map(|name| spec["credential"][name].as_str());
        let mut regions = places
            .into_iter()
            .flatten()
            .filter(|region| !region.trim().is_empty());
        let region = regions.next().unwrap_or(TEST_REGION);
        let target = self.target(connector, spec, scope, region, secrets).await?;
        let doing = format!("test connector {} in {region}", connector.reference);
        let asked = target
            .ec2
            .call("DescribeRegions", &serde_json::json!({}))
            .await;
        asked
            .map(drop)
            .map_err(|error| error::failure(error::Doing::with(&doing), error))
    }

    /// Forgets the clients that were made: their credentials may have ended. The next call of each takes new ones.
    pub(crate) async fn forget(&self) {
        self.0.cache.lock().await.clear();
    }

    /// Whether targets are the sandbox account and not AWS.
    pub fn is_sandbox(&self) -> bool {
        self.0.config.ambient == Ambient::Sandbox
    }

    /// Whether a bucket is Slipway's own, which no connector may read.
    pub fn is_own_bucket(&self, bucket: &str) -> bool {
        let objects = self.0.config.objects.as_ref();
        objects.is_some_and(|objects| objects.own_bucket == bucket)
    }

    /// What was made before, unless its credentials end soon.
    async fn cached(&self, key: &str) -> Option<AwsTarget> {
        let now = self.0.clock.now();
        let cache = self.0.cache.lock().await;
        let known = cache.get(key)?;
        let fresh = known
            .ends
            .is_none_or(|ends| ends.duration_since(now) > RENEW_BEFORE);
        fresh.then(|| known.target.clone())
    }

    /// A digest, so that no secret stays in memory as a key.
    fn key(
        &self,
        connector: &ConnectorPlan,
        scope: &Scope,
        spec: &Value,
        wanted: &ConnectorCredentials,
        region: &str,
    ) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        };
        add(&connector.reference);
        add(&format!("{scope:?}"));
        add(&spec.to_string());
        add(region);
        if let Base::Local(Local::Keys {
            access_key,
            secret_key,
            session_token,
        }) = &wanted.base
        {
            add(access_key.expose_secret());
            add(secret_key.expose_secret());
            add(session_token
                .as_ref()
                .map_or("", |token| token.expose_secret()));
        }
        hash.finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Credentials, and when they end if they do.
    async fn provider(
        &self,
        connector: &ConnectorPlan,
        place: (&Scope, &EntityId),
        wanted: &ConnectorCredentials,
        region: &str,
    ) -> Result<(SharedCredentialsProvider, Option<Timestamp>), Failure> {
        let (base, ends) = match &wanted.base {
            Base::Oidc(federation) => {
                // On the heap: calls of SDKs in calls of steps nest deeper than the compiler follows.
                let given = self.federated(connector, place, federation, region);
                until(boxed(given).await?)
            }
            Base::Local(local) => {
                let chained = wanted.role.is_some();
                (self.base(connector, local, chained, region).await?, None)
            }
        };
        let Some(role) = &wanted.role else {
            return Ok((base, ends));
        };
        let sts = aws_sdk_sts::Client::from_conf(configure!(
            aws_sdk_sts::Config::builder(),
            self,
            base,
            region,
            wanted.backoff
        ));
        let external_id = self.external_id(connector, place, role).await?;
        Ok(until(
            role.assume(&sts, external_id, connector, region).await?,
        ))
    }

    /// The external id of a connector's role: as written, or one that is the connector's alone.
    async fn external_id(
        &self,
        connector: &ConnectorPlan,
        (scope, id): (&Scope, &EntityId),
        role: &Role,
    ) -> Result<Option<String>, Failure> {
        let Some(issuer) = &self.0.issuer else {
            return Ok(role.external_id.clone());
        };
        let written = role.external_id.as_deref();
        if written.is_some_and(|written| !external_id::is_made(written)) {
            return Ok(role.external_id.clone());
        }
        let own = issuer.external_ids().of(scope, id).await;
        let own =
            own.map_err(|error| refused(connector, told("make its external id", &error).message))?;
        match written {
            Some(written) if written.trim() != own => Err(refused(
                connector,
                "its external id is one that Slipway makes for a connector, and not for this one: leave externalId out",
            )),
            _ => Ok(Some(own)),
        }
    }

    /// Credentials of a role for a token of Slipway's own. STS takes the call unsigned.
    async fn federated(
        &self,
        connector: &ConnectorPlan,
        (scope, id): (&Scope, &EntityId),
        federation: &Federation,
        region: &str,
    ) -> Result<Credentials, Failure> {
        let Some(issuer) = &self.0.issuer else {
            return Err(refused(
                connector,
                "its credentials are for a token of Slipway, and this process has no issuer of tokens",
            ));
        };
        let reachable = issuer.url(&scope.account).starts_with("https://");
        if !reachable && self.0.config.ambient != Ambient::Sandbox {
            let why = format!(
                "AWS takes tokens only of issuers that it can reach by https, and Slipway is known as {}: set \
                 SLIPWAY_PUBLIC_URL",
                issuer.url(&scope.account)
            );
            return Err(refused(connector, why));
        }
        let nobody = SharedCredentialsProvider::new(Credentials::new("", "", None, None, "nobody"));
        let sts = aws_sdk_sts::Client::from_conf(configure!(
            aws_sdk_sts::Config::builder(),
            self,
            nobody,
            region,
            Backoff::default()
        ));
        let bearer = Bearer {
            scope,
            connector: id,
            audience: &federation.audience,
        };
        assume_with_token(&sts, (issuer, bearer), &federation.role, connector, region).await
    }

    async fn base(
        &self,
        connector: &ConnectorPlan,
        base: &Local,
        chained: bool,
        region: &str,
    ) -> Result<SharedCredentialsProvider, Failure> {
        match (base, self.0.config.ambient) {
            (
                Local::Keys {
                    access_key,
                    secret_key,
                    session_token,
                },
                _,
            ) => Ok(SharedCredentialsProvider::new(Credentials::new(
                access_key.expose_secret(),
                secret_key.expose_secret(),
                session_token
                    .as_ref()
                    .map(|token| token.expose_secret().to_owned()),
                None,
                "slipway-connector",
            ))),
            (Local::ServiceAccount, Ambient::Host) => service_account(connector, region),
            (Local::ServiceAccount, Ambient::HostToAssumeRoles) => Err(refused(
                connector,
                "its credentials are those of a Kubernetes service account, which a Lambda function does not have: \
                 use InheritFromDelegate with a crossAccountAccess role",
            )),
            (Local::Ambient | Local::ServiceAccount, Ambient::Sandbox) => {
                Ok(SharedCredentialsProvider::new(Credentials::new(
                    "AKIASLIPWAYSANDBOX00",
                    "sandbox",
                    None,
                    None,
                    "sandbox",
                )))
            }
            (Local::Ambient, Ambient::HostToAssumeRoles) if !chained => Err(refused(
                connector,
                "it inherits the credentials of the delegate, and a Lambda function deploys with a \
                 role of the target account only: give the connector a crossAccountAccess role",
            )),
            (Local::Ambient, Ambient::Host | Ambient::HostToAssumeRoles) => {
                let chain =
                    aws_config::default_provider::credentials::DefaultCredentialsChain::builder()
                        .region(Region::new(region.to_owned()))
                        .build()
                        .await;
                Ok(SharedCredentialsProvider::new(chain))
            }
        }
    }

    fn clients(
        &self,
        provider: &SharedCredentialsProvider,
        region: &str,
        backoff: &Backoff,
    ) -> AwsTarget {
        let ecs = configure!(
            aws_sdk_ecs::Config::builder(),
            self,
            provider.clone(),
            region,
            backoff
        );
        let scaling = configure!(
            aws_sdk_applicationautoscaling::Config::builder(),
            self,
            provider.clone(),
            region,
            backoff
        );
        let elb = configure!(
            aws_sdk_elasticloadbalancingv2::Config::builder(),
            self,
            provider.clone(),
            region,
            backoff
        );
        let lambda = configure!(
            aws_sdk_lambda::Config::builder(),
            self,
            provider.clone(),
            region,
            backoff
        );
        let s3 = match &self.0.config.objects {
            Some(objects) => objects.client.clone(),
            None => aws_sdk_s3::Client::from_conf(configure!(
                aws_sdk_s3::Config::builder(),
                self,
                provider.clone(),
                region,
                backoff
            )),
        };
        let parts = Parts {
            endpoint: self.0.config.endpoint_url.as_deref(),
            http: self.0.config.http_client.as_ref(),
            credentials: provider,
            region,
            backoff,
            clock: &self.0.clock,
        };
        AwsTarget {
            s3,
            ec2: QueryClient::new(Service::Ec2, &parts),
            auto_scaling: QueryClient::new(Service::AutoScaling, &parts),
            ecr: QueryClient::new(Service::Ecr, &parts),
            code_commit: QueryClient::new(Service::CodeCommit, &parts),
            ecs: aws_sdk_ecs::Client::from_conf(ecs),
            lambda: aws_sdk_lambda::Client::from_conf(lambda),
            scaling: aws_sdk_applicationautoscaling::Client::from_conf(scaling),
            elb: aws_sdk_elasticloadbalancingv2::Client::from_conf(elb),
            region: region.to_owned(),
        }
    }
}

/// A region that there is not: no credential is wrong.
fn misnamed(connector: &ConnectorPlan, why: &str) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!("Connector {} cannot be used: {why}", connector.reference),
        left_behind: None,
    }
}

/// A future on the heap, its type forgotten.
fn boxed<'a, T>(
    future: impl Future<Output = T> + Send + 'a,
) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
    Box::pin(future)
}

/// Credentials of a session, and when it ends.
fn until(given: Credentials) -> (SharedCredentialsProvider, Option<Timestamp>) {
    let ends = given.expiry();
    let ends = ends.and_then(|ends| Timestamp::try_from(ends).ok());
    (SharedCredentialsProvider::new(given), ends)
}

/// What EKS gives to a pod whose service account has a role: its ARN, and a file with a token for it.
const SERVICE_ACCOUNT: [&str; 2] = ["AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"];

/// The role of the service account that this process runs under (AWS documentation, *IAM roles for service accounts*).
fn service_account(
    connector: &ConnectorPlan,
    region: &str,
) -> Result<SharedCredentialsProvider, Failure> {
    let given = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let missing: Vec<&str> = SERVICE_ACCOUNT
        .into_iter()
        .filter(|name| !given(name))
        .collect();
    if !missing.is_empty() {
        let why = format!(
            "its credentials are those of a Kubernetes service account, and {} is not set here: run the delegate in a pod \
             whose service account has the annotation eks.amazonaws.com/role-arn",
            missing.join(" and ")
        );
        return Err(refused(connector, why));
    }
    let config = ProviderConfig::without_region().with_region(Some(Region::new(region.to_owned())));
    let provider = WebIdentityTokenCredentialsProvider::builder()
        .configure(&config)
        .build();
    Ok(SharedCredentialsProvider::new(provider))
}

/// Each SDK crate has a builder type of its own with the same methods.
macro_rules! configure {
    ($builder:expr, $targets:expr, $provider:expr, $region:expr, $backoff:expr) => {{
        let mut builder = $builder
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new($region.to_owned()))
            .credentials_provider($provider)
            .retry_config($backoff.retry_config())
            .retry_partition(retries())
            .interceptor($backoff.delay())
            .timeout_config(timeouts())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .sleep_impl(ClockSleep($targets.0.clock.clone()))
            .time_source(ClockTime($targets.0.clock.clone()));
        if let Some(url) = &$targets.0.config.endpoint_url {
            builder = builder.endpoint_url(url);
        }
        if let Some(http) = &$targets.0.config.http_client {
            builder = builder.http_client(http.clone());
        }
        builder.build()
    }};
}
use configure;
