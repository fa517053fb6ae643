//! Webhooks that are registered at providers when triggers are saved.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_engine::gather::SourceReader;
use slipway_engine::intake::hook::WantedHook;
use slipway_model::id::Scope;
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::{
    ArtifactAnswer, ConnectorPlan, Fetched, ListedVersions, RemoteFiles, WantedArtifact,
};
use slipway_store::record::{HookRecord, HookResult};
use slipway_world::World;

use crate::{minutes, on_push, place, world};

/// A provider that takes what it is asked for, or fails.
#[derive(Default)]
struct Provider {
    asked: Mutex<Vec<WantedHook>>,
    fails: Mutex<Option<ErrorType>>,
}

impl Provider {
    fn asked(&self) -> Vec<WantedHook> {
        std::mem::take(&mut *self.asked.lock().expect("a lock"))
    }

    fn fails(&self, how: Option<ErrorType>) {
        *self.fails.lock().expect("a lock") = how;
    }
}

#[async_trait]
impl SourceReader for Provider {
    async fn fetch_files(&self, _: &[RemoteFiles]) -> Vec<Result<Fetched, String>> {
        Vec::new()
    }

    async fn find_artifacts(&self, _: &[WantedArtifact]) -> Vec<Result<ArtifactAnswer, String>> {
        Vec::new()
    }

    async fn list_versions(
        &self,
        _: &WantedArtifact,
        _: usize,
        _: usize,
    ) -> Result<ListedVersions, String> {
        Err("nothing is listed here".to_owned())
    }

    async fn test_connection(&self, _: &ConnectorPlan, _: &Scope) -> Option<Result<(), Failure>> {
        None
    }

    async fn register_hook(&self, wanted: &WantedHook) -> Result<(), Failure> {
        self.asked.lock().expect("a lock").push(wanted.clone());
        match *self.fails.lock().expect("a lock") {
            None => Ok(()),
            Some(error) => Err(Failure {
                error,
                message: "the provider says no".to_owned(),
                left_behind: None,
            }),
        }
    }
}

const PLAIN: &str = "https://slipway.example.com/gateway/ng/api/webhook?accountIdentifier=acme";

fn connector(id: &str, spec: &str) -> String {
    format!(
        "connector:\n  name: {id}\n  identifier: {id}\n  orgIdentifier: default\n  projectIdentifier: shop\n  type: Github\n  spec:\n    {spec}\n    authentication: {{type: Http, spec: {{type: UsernameToken, spec: {{username: bot, tokenRef: hook}}}}}}\n"
    )
}

async fn provider(world: &World) -> (Arc<Provider>, Arc<dyn SourceReader>) {
    world
        .apply(&connector(
            "code",
            "url: https://github.com/acme/shop\n    type: Repo",
        ))
        .await;
    world
        .apply(&connector(
            "all",
            "url: https://github.com/acme\n    type: Account",
        ))
        .await;
    let provider = Arc::new(Provider::default());
    let sources: Arc<dyn SourceReader> = provider.clone();
    (provider, sources)
}

/// A trigger on an event of the repository of the connector `code`.
fn on(id: &str, event: &str) -> String {
    on_push(id, "connectorRef: code\n")
        .replace("          repoName: shop\n", "")
        .replace("type: Push", &format!("type: {event}"))
}

/// Registers the webhook of a trigger that was saved, as the API has it done; whether it was due.
async fn register(world: &World, sources: &Arc<dyn SourceReader>, trigger: &str) -> bool {
    let asked = json!({"hook": place(trigger)});
    let answer = world.hear(sources, asked).await.expect("an answer");
    answer == json!({"hooks": 1})
}

async fn standing(world: &World, trigger: &str) -> Option<HookRecord> {
    world
        .store
        .find_hook(&place(trigger))
        .await
        .expect("an answer")
}

async fn sweep(world: &World, sources: &Arc<dyn SourceReader>) -> Value {
    world.hear(sources, json!({})).await.expect("an answer")["hooks"].clone()
}

#[tokio::test(start_paused = true)]
async fn triggers_of_a_repository_share_a_webhook_that_posts_what_any_of_them_wants() {
    let world = world().await;
    let (github, sources) = provider(&world).await;
    world.apply(&on("main", "Push")).await;
    assert!(register(&world, &sources, "main").await);
    let asked = github.asked().remove(0);
    assert_eq!(
        (asked.url.as_str(), asked.secret.as_deref()),
        (PLAIN, Some("hook"))
    );
    assert_eq!(asked.events, ["Push".to_owned()].into());
    assert_eq!(
        (asked.connector.reference.as_str(), asked.repository),
        ("code", None)
    );
    let found = standing(&world, "main").await.expect("a record");
    assert_eq!(
        (found.result, found.message, found.url.as_deref()),
        (HookResult::Success, None, Some(PLAIN))
    );
    // It is done once.
    assert!(!register(&world, &sources, "main").await);
    // By a connector of many repositories it is the same one.
    let pulls = on("pulls", "PullRequest").replace(
        "connectorRef: code",
        "connectorRef: all\n          repoName: Shop",
    );
    world.apply(&pulls).await;
    let other = on("other", "Release").replace(
        "connectorRef: code",
        "connectorRef: all\n          repoName: billing",
    );
    world.apply(&other).await;
    world
        .apply(&on("off", "Delete").replace("  source:", "  enabled: false\n  source:"))
        .await;
    assert!(register(&world, &sources, "pulls").await);
    let asked = github.asked().remove(0);
    assert_eq!(
        (asked.url.as_str(), asked.repository.as_deref()),
        (PLAIN, Some("Shop"))
    );
    assert_eq!(
        asked.events,
        ["PullRequest".to_owned(), "Push".to_owned()].into()
    );
    assert!(!register(&world, &sources, "off").await);
    assert_eq!(standing(&world, "off").await, None);
}

#[tokio::test(start_paused = true)]
async fn another_secret_has_a_webhook_of_its_own_and_takes_none_away() {
    let world = world().await;
    let (github, sources) = provider(&world).await;
    world.put_secret("second", "another secret").await;
    world.apply(&on("main", "Push")).await;
    register(&world, &sources, "main").await;
    let second = on("second", "PullRequest").replace("Identifier: hook", "Identifier: second");
    world.apply(&second).await;
    register(&world, &sources, "second").await;
    let asked = github.asked();
    let other = asked[1].url.clone();
    assert!(
        other.starts_with(&format!("{PLAIN}&webhookIdentifier=")),
        "{other}"
    );
    assert_eq!(asked[1].events, ["PullRequest".to_owned()].into());
    // Where each is, it stays, also while the other is gone for a while.
    world
        .apply(&on("main", "Push").replace("  source:", "  enabled: false\n  source:"))
        .await;
    world.apply(&second.replace("PullRequest", "Release")).await;
    register(&world, &sources, "second").await;
    assert_eq!(github.asked()[0].url, other);
    world.apply(&on("main", "Push")).await;
    register(&world, &sources, "main").await;
    assert_eq!(github.asked()[0].url, PLAIN);
    // Both URLs are taken by who takes webhooks.
    let (status, answer) = crate::deliver_to(&world.hooks(), &other[27..]).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_away_is_asked_again_less_and_less_and_one_that_refuses_is_not() {
    let world = world().await;
    let (github, sources) = provider(&world).await;
    github.fails(Some(ErrorType::Connectivity));
    world.apply(&on("main", "Push")).await;
    let mut tries = Vec::new();
    for minute in 0..200 {
        sweep(&world, &sources).await;
        tries.extend(github.asked().iter().map(|_| minute));
        minutes(&world, 1).await;
    }
    // After one, four, sixteen and sixty-four minutes.
    assert_eq!(tries, [1, 2, 6, 22, 86]);
    let found = standing(&world, "main").await.expect("a record");
    assert_eq!(
        (found.result, found.message.as_deref()),
        (HookResult::Error, Some("the provider says no"))
    );
    // Saved again it is tried again, and what was there is not forgotten by a failure.
    github.fails(None);
    world.apply(&on("main", "Push")).await;
    assert!(register(&world, &sources, "main").await);
    github.fails(Some(ErrorType::Authentication));
    world.apply(&on("main", "Push")).await;
    assert!(register(&world, &sources, "main").await);
    let found = standing(&world, "main").await.expect("a record");
    assert_eq!(
        (found.result, found.url.as_deref()),
        (HookResult::Failed, Some(PLAIN))
    );
    let why = found.message.expect("a reason");
    assert!(
        why.contains(
            "the provider says no; or add it by hand, with the URL https://slipway.example.com/"
        ),
        "{why}"
    );
    github.asked();
    minutes(&world, 10).await;
    assert_eq!(
        (sweep(&world, &sources).await, github.asked().len()),
        (json!(0), 0)
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_dies_while_registering_is_finished_by_a_sweep() {
    let mut deaths = 0;
    for request in 1.. {
        let mut reached = false;
        for after in [false, true] {
            let world = world().await;
            let (github, sources) = provider(&world).await;
            world.apply(&on("main", "Push")).await;
            world.crash.arm(request, after);
            world.hear(&sources, json!({"hook": place("main")})).await;
            reached |= !world.crash.is_armed();
            world.crash.disarm();
            // The dead hold the repository for a while.
            minutes(&world, 3).await;
            sweep(&world, &sources).await;
            let found = standing(&world, "main").await.expect("a record");
            assert_eq!(
                found.result,
                HookResult::Success,
                "request {request}, after {after}"
            );
            let asked = github.asked();
            assert!(
                !asked.is_empty() && asked.iter().all(|one| *one == asked[0]),
                "{asked:?}"
            );
            minutes(&world, 3).await;
            assert_eq!(sweep(&world, &sources).await, json!(0));
        }
        if !reached {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 5, "{deaths} requests");
}

#[tokio::test(start_paused = true)]
async fn a_trigger_that_is_saved_while_its_webhook_is_registered_is_registered_again() {
    let world = world().await;
    let (github, sources) = provider(&world).await;
    world.apply(&on("main", "Push")).await;
    // Somebody else is at the repository.
    let lease = "hook/acme/Github/shop";
    let taken = world
        .store
        .take_lease(lease, "somebody", Duration::from_secs(30))
        .await;
    assert!(taken.expect("an answer"));
    assert!(!register(&world, &sources, "main").await);
    world
        .store
        .release_lease(lease, "somebody")
        .await
        .expect("released");
    minutes(&world, 1).await;
    assert_eq!(
        (sweep(&world, &sources).await, github.asked().len()),
        (json!(1), 1)
    );
    let due = slipway_store::Due {
        what: format!("hook/{}", place("main").key()),
        at_ms: 7,
        body: String::new(),
    };
    world.apply(&on("main", "PullRequest")).await;
    let scope = place("main").scope;
    // Who registered what it was before does not take it off the list.
    assert!(
        !world
            .store
            .forget_due_of(&scope, &due)
            .await
            .expect("an answer")
    );
    assert!(register(&world, &sources, "main").await);
    assert_eq!(github.asked()[0].events, ["PullRequest".to_owned()].into());
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_register_says_what_to_add_by_hand() {
    let mut world = world().await;
    let (github, sources) = provider(&world).await;
    world.apply(&on_push("named", "")).await;
    world
        .apply(&on("gone", "Push").replace("connectorRef: code", "connectorRef: gone"))
        .await;
    world
        .apply(&on("lab", "Push").replace("type: Github", "type: Gitlab"))
        .await;
    world.apply(&on("main", "Push")).await;
    for (trigger, result, told) in [
        ("named", HookResult::Unavailable, "`connectorRef`"),
        ("gone", HookResult::Error, "connector `gone` does not exist"),
        (
            "lab",
            HookResult::Unavailable,
            "type Github has no API of Gitlab",
        ),
    ] {
        assert!(register(&world, &sources, trigger).await);
        let found = standing(&world, trigger).await.expect("a record");
        let why = found.message.expect("a reason");
        assert!(
            found.result == result && why.contains(told),
            "{trigger}: {why}"
        );
    }
    world.reached_at("http://127.0.0.1:7879");
    assert!(register(&world, &sources, "main").await);
    let found = standing(&world, "main").await.expect("a record");
    let why = found.message.expect("a reason");
    assert_eq!(found.result, HookResult::Unavailable);
    assert!(
        why.contains("SLIPWAY_PUBLIC_URL")
            && why.ends_with("/gateway/ng/api/webhook?accountIdentifier=acme"),
        "{why}"
    );
    assert!(github.asked().is_empty());
    // Harness Code is reached by a connector of another type.
    world.reached_at("https://slipway.example.com");
    world
        .apply("connector:\n  name: plain\n  identifier: plain\n  orgIdentifier: default\n  projectIdentifier: shop\n  type: Git\n  spec:\n    url: https://git.harness.io/acme/default/shop/shop.git\n    type: Http\n    connectionType: Repo\n    spec: {username: bot, passwordRef: hook}\n")
        .await;
    let harness = on("own", "Push").replace("type: Github", "type: Harness");
    world
        .apply(&harness.replace("connectorRef: code", "connectorRef: plain"))
        .await;
    assert!(register(&world, &sources, "own").await);
    let found = standing(&world, "own").await.expect("a record");
    assert_eq!(found.result, HookResult::Success, "{:?}", found.message);
    assert_eq!(github.asked().len(), 1);
    // A trigger that wants none any more has no webhook to tell of.
    world
        .apply(&on("main", "Push").replace("  source:", "  enabled: false\n  source:"))
        .await;
    assert_eq!(standing(&world, "main").await, None);
}
