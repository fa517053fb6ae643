//! Webhooks and schedules of a world, without a port.

use std::sync::Arc;

use aws_sdk_lambda::config::{BehaviorVersion, Region, StalledStreamProtectionConfig};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, StatusCode};
use axum::routing::post;
use secrecy::SecretString;
use serde_json::{Value, json};
use slipway_engine::gather::SourceReader;
use slipway_engine::intake::handler::Handler;
use slipway_engine::runs::Runs;
use slipway_fn_trigger::answer;
use slipway_model::id::EntityId;
use slipway_source::{Source, SourceConfig};
use slipway_steps::secrets::KeptSecrets;
use slipway_store::embedded::in_process;
use tower::ServiceExt as _;

use crate::tap::{Invocation, Tap};
use crate::{NoSources, World, in_danger, scope};

/// What senders of webhooks reach.
pub struct Hooks(Router);

impl Hooks {
    /// What API Gateway hands requests to.
    pub fn router(&self) -> Router {
        self.0.clone()
    }

    /// Status and JSON of the answer to a POST.
    ///
    /// # Panics
    /// When the request is none, or its answer is not JSON.
    pub async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> (u16, Value) {
        let mut request = Request::builder().method("POST").uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).expect("a request");
        let answer = self.0.clone().oneshot(request).await.expect("an answer");
        let (head, body) = answer.into_parts();
        let body = to_bytes(body, 1 << 20).await.expect("a body");
        let json = match body.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&body).expect("JSON"),
        };
        (head.status.as_u16(), json)
    }
}

fn deps(runs: &Runs) -> slipway_fn_trigger::Deps {
    slipway_fn_trigger::Deps {
        runs: runs.clone(),
        sources: Arc::new(NoSources),
    }
}

/// What becomes of an event that was accepted.
#[derive(Clone)]
enum Hearing {
    /// It is handled before whoever accepted it is answered.
    AtOnce,
    /// Nobody is told of it.
    Never,
    /// What the tap says of an invocation of `trigger`: it is handled while others go on, or not.
    AsTheTapSays(Arc<dyn Tap>),
}

/// One invocation of the function `trigger`, which may die.
async fn handled(deps: slipway_fn_trigger::Deps, asked: Value) {
    // What fails is found by the next sweep.
    in_danger(Box::pin(answer(&deps, asked))).await;
}

impl Hearing {
    async fn hear(&self, deps: slipway_fn_trigger::Deps, asked: Value) -> StatusCode {
        let tap = match self {
            Self::Never => return StatusCode::ACCEPTED,
            Self::AtOnce => {
                handled(deps, asked).await;
                return StatusCode::ACCEPTED;
            }
            Self::AsTheTapSays(tap) => tap,
        };
        match tap.invocation("trigger") {
            Invocation::Once => drop(tokio::spawn(handled(deps, asked))),
            Invocation::Twice => {
                tokio::spawn(handled(deps.clone(), asked.clone()));
                tokio::spawn(handled(deps, asked));
            }
            Invocation::Refused(_) => return StatusCode::TOO_MANY_REQUESTS,
            Invocation::Unheard(_) => {
                handled(deps, asked).await;
                return StatusCode::INTERNAL_SERVER_ERROR;
            }
        }
        StatusCode::ACCEPTED
    }
}

/// Lambda, of the one function that webhooks invoke.
fn lambda(runs: &Runs, hearing: Hearing) -> aws_sdk_lambda::Client {
    let deps = deps(runs);
    let invoke = move |body: Bytes| {
        let (deps, hearing) = (deps.clone(), hearing.clone());
        async move {
            let asked = serde_json::from_slice(&body).unwrap_or_default();
            hearing.hear(deps, asked).await
        }
    };
    let path = "/2015-03-31/functions/{name}/invocations";
    let http = in_process(Router::new().route(path, post(invoke)));
    let config = aws_sdk_lambda::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(http)
        .endpoint_url("http://lambda.internal")
        .region(Region::new("us-east-1"))
        .allow_no_auth()
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    aws_sdk_lambda::Client::from_conf(config.build())
}

/// Has events handled that functions of the world accept, or not, as the tap says of invocations of `trigger`.
pub(crate) fn handler(runs: &Runs, tap: &Arc<dyn Tap>) -> Handler {
    Handler {
        lambda: lambda(runs, Hearing::AsTheTapSays(Arc::clone(tap))),
        function: "slipway-trigger".to_owned(),
    }
}

impl World {
    /// Webhooks, whose events are handled at once.
    pub fn hooks(&self) -> Hooks {
        self.hooks_over(&self.runs, Hearing::AtOnce)
    }

    /// Webhooks in danger of the tap, of whose events nobody is told: only a sweep finds them.
    pub fn unheard_hooks(&self) -> Hooks {
        self.hooks_over(&self.tapped, Hearing::Never)
    }

    /// Webhooks in danger of the tap, whose events are handled, or not, as it says of invocations of `trigger`.
    pub fn endangered_hooks(&self) -> Hooks {
        let hearing = Hearing::AsTheTapSays(Arc::clone(&self.tap));
        self.hooks_over(&self.tapped, hearing)
    }

    fn hooks_over(&self, runs: &Runs, hearing: Hearing) -> Hooks {
        let secrets = self.embedded.secrets();
        let function = "slipway-trigger".to_owned();
        let lambda = lambda(runs, hearing);
        let deps = slipway_fn_webhook::Deps::new(runs.clone(), secrets, lambda, function);
        Hooks(slipway_fn_webhook::router(deps))
    }

    /// What the schedule does every minute: handles what was left, and starts what schedules want. In a function that
    /// dies as [`World::crash`] says: `None` when it did.
    pub async fn take_in(&self) -> Option<Value> {
        let deps = deps(&self.tapped);
        let answered = in_danger(Box::pin(answer(&deps, json!({})))).await;
        answered.map(|answer| match answer {
            Ok(answer) => answer,
            Err(error) => json!({"error": error.to_string()}),
        })
    }

    /// Handles an event, as who accepted it asks. In a function that dies as [`World::crash`] says.
    pub async fn handle(&self, event: &str) {
        let deps = deps(&self.tapped);
        let asked = json!({"event": event});
        // What fails is found by the next sweep.
        let _ = in_danger(Box::pin(answer(&deps, asked))).await;
    }

    /// Hears an event of EventBridge, or messages of the queue that it is put into. In a function that dies as
    /// [`World::crash`] says: `None` when it did.
    pub async fn hear(&self, registries: &Arc<dyn SourceReader>, event: Value) -> Option<Value> {
        let deps = slipway_fn_trigger::Deps {
            runs: self.tapped.clone(),
            sources: Arc::clone(registries),
        };
        let answered = in_danger(Box::pin(answer(&deps, event))).await;
        answered.map(|answer| match answer {
            Ok(answer) => answer,
            Err(error) => json!({"error": error.to_string()}),
        })
    }

    /// Handles an event whose pipelines are kept where `sources` reads.
    ///
    /// # Panics
    /// When it cannot be handled.
    pub async fn handle_from(&self, event: &str, sources: &Arc<dyn SourceReader>) {
        let deps = slipway_fn_trigger::Deps {
            runs: self.runs.clone(),
            sources: Arc::clone(sources),
        };
        let answered = Box::pin(answer(&deps, json!({"event": event}))).await;
        answered.expect("an answer");
    }

    /// Asks registries for new versions, as the schedule does. In a function that dies as [`World::crash`] says: `None`
    /// when it did.
    pub async fn poll(&self, registries: &Arc<dyn SourceReader>) -> Option<Value> {
        let deps = slipway_fn_trigger::Deps {
            runs: self.tapped.clone(),
            sources: Arc::clone(registries),
        };
        let asked = json!({"poll": true});
        let answered = in_danger(Box::pin(answer(&deps, asked))).await;
        answered.map(|answer| match answer {
            Ok(answer) => answer,
            Err(error) => json!({"error": error.to_string()}),
        })
    }

    /// What reads registries in the service itself.
    pub fn registries(&self) -> Arc<dyn SourceReader> {
        let secrets = KeptSecrets::new(self.embedded.secrets(), self.store.clone());
        Arc::new(Source::new(
            SourceConfig::default(),
            self.aws.clone(),
            Arc::new(secrets),
            self.runs.clock.clone(),
        ))
    }

    /// A post to webhooks in danger; `None` when the function died.
    pub async fn post_in_danger(
        &self,
        hooks: &Hooks,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Option<(u16, Value)> {
        in_danger(hooks.post(path, headers, body.to_owned())).await
    }

    /// Where the world reaches the service from now on.
    pub fn reached_at(&mut self, url: &str) {
        self.runs.url = Some(url.to_owned());
        self.tapped.url = Some(url.to_owned());
    }

    /// Gives a secret of the project a value; the one before counts for a day.
    ///
    /// # Panics
    /// When it cannot be written.
    pub async fn put_secret(&self, id: &str, value: &str) {
        let value = SecretString::from(value.to_owned());
        let secrets = self.embedded.secrets();
        let put = secrets.put(&scope(), &EntityId::new(id), &value).await;
        put.expect("a secret");
    }

    /// The key of the URLs of triggers.
    ///
    /// # Panics
    /// When Secrets Manager does not answer.
    pub async fn url_key(&self) -> Vec<u8> {
        let secrets = self.embedded.secrets();
        slipway_engine::intake::url::key(&secrets)
            .await
            .expect("a key")
    }
}
