//! What a stranger can tell by the work that an answer takes: names begin with the id of their case in `docs/hostile.md`.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_sdk_lambda::config::{BehaviorVersion, Region};
use aws_sdk_secretsmanager::config::Credentials;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use secrecy::SecretString;
use slipway_model::id::EntityId;
use slipway_store::SecretStore;
use slipway_store::embedded::{Embedded, in_process};
use slipway_world::{World, scope};
use tower::ServiceExt as _;

use crate::{SECRET, minutes, signature, trigger, world};

/// Secrets that count the requests that they are asked with.
struct Counted {
    secrets: SecretStore,
    asked: Arc<AtomicU64>,
    folder: tempfile::TempDir,
}

impl Counted {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let embedded = Embedded::open(folder.path()).expect("embedded services");
        let (service, asked) = (embedded.router(), Arc::<AtomicU64>::default());
        let counter = Arc::clone(&asked);
        let router = Router::new().fallback(move |request: Request| {
            counter.fetch_add(1, Ordering::SeqCst);
            service.clone().oneshot(request)
        });
        let config = aws_sdk_secretsmanager::Config::builder()
            .behavior_version_latest()
            .http_client(in_process(router))
            .endpoint_url("http://secrets.internal")
            .region(aws_sdk_secretsmanager::config::Region::new("us-east-1"))
            .credentials_provider(Credentials::new("a", "b", None, None, "test"));
        let client = aws_sdk_secretsmanager::Client::from_conf(config.build());
        Self {
            secrets: SecretStore::new(client, "slipway"),
            asked,
            folder,
        }
    }

    /// Lets all secrets have been written at a time.
    fn written(&self, at: SystemTime) {
        let files = std::fs::read_dir(self.folder.path().join("secrets")).expect("secrets");
        for file in files {
            let file = File::open(file.expect("a secret").path()).expect("a secret");
            file.set_modified(at).expect("a time");
        }
    }
}

/// Webhooks that nobody is told of.
fn hooks(world: &World, secrets: &SecretStore) -> Router {
    let config = aws_sdk_lambda::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(in_process(Router::new()))
        .endpoint_url("http://lambda.internal")
        .region(Region::new("us-east-1"))
        .allow_no_auth();
    let lambda = aws_sdk_lambda::Client::from_conf(config.build());
    let function = "slipway-trigger".to_owned();
    let deps = slipway_fn_webhook::Deps::new(world.runs.clone(), secrets.clone(), lambda, function);
    slipway_fn_webhook::router(deps)
}

async fn post(router: &Router, trigger: &str, signed: Option<&str>) -> StatusCode {
    let path = format!(
        "/pipeline/api/webhook/custom?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop&pipelineIdentifier=release&triggerIdentifier={trigger}"
    );
    let mut request = Request::builder().method("POST").uri(path);
    if let Some(signed) = signed {
        request = request.header("x-hub-signature-256", signed);
    }
    let request = request.body(Body::from("{}")).expect("a request");
    let answer = router.clone().oneshot(request).await;
    answer.expect("an answer").status()
}

#[tokio::test(start_paused = true)]
async fn w31_a_trigger_that_is_there_costs_a_strangers_delivery_as_many_requests_as_none() {
    let world = world().await;
    let counted = Counted::new();
    let value = SecretString::from(SECRET);
    let (place, id) = (scope(), EntityId::new("hook"));
    let put = counted.secrets.put(&place, &id, &value);
    put.await.expect("kept");
    // The secret is not of the last day, in which the one before it counts as well.
    counted.written(UNIX_EPOCH);
    let source = "type: Webhook\nspec:\n  type: Custom\n  spec: {}\n";
    for (id, secret) in [("called", "hook"), ("lost", "gone")] {
        let more = format!("encryptedWebhookSecretIdentifier: {secret}\n");
        world.apply(&trigger(id, source, &more)).await;
    }
    let hooks = hooks(&world, &counted.secrets);
    // The key of URLs is made by whoever needs it first.
    assert_eq!(post(&hooks, "other", None).await, 401);
    let wrong = signature("another", "{}");
    for signed in [None, Some(wrong.as_str()), Some("nonsense")] {
        minutes(&world, 2).await;
        let mut told = Vec::new();
        for name in ["called", "unknown", "lost"] {
            let mut costs = Vec::new();
            // A second time at once, when what was read is in memory, and not.
            for wait in [0, 0, 2] {
                minutes(&world, wait).await;
                let (reads, asked) = (
                    world.runs.store.reads(),
                    counted.asked.load(Ordering::SeqCst),
                );
                assert_eq!(post(&hooks, name, signed).await, 401);
                let asked = counted.asked.load(Ordering::SeqCst) - asked;
                costs.push((world.runs.store.reads() - reads, asked));
            }
            told.push((name, costs));
        }
        let first = told[0].1.clone();
        assert!(first.iter().any(|(_, asked)| *asked > 0), "{told:?}");
        assert!(
            told.iter().all(|(_, costs)| *costs == first),
            "{signed:?} {told:?}"
        );
    }
    // Who signs as the trigger wants it is heard.
    let right = signature(SECRET, "{}");
    assert_eq!(post(&hooks, "called", Some(&right)).await, 200);
    assert_eq!(post(&hooks, "unknown", Some(&right)).await, 401);
}
