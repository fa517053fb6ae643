//! Conditions on changed files of events that do not list them.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_engine::gather::{
    Change, ChangeFault, ChangedPaths, HostApi, PullRequest, SourceReader, WantedChange,
};
use slipway_model::id::Scope;
use slipway_model::status::Failure;
use slipway_plan::{
    ArtifactAnswer, ConnectorPlan, Fetched, ListedVersions, RemoteFiles, WantedArtifact,
};
use slipway_world::{Hooks, World};

use crate::{GIT, SECRET, history, minutes, only_run, runs, signature, trigger, world};

/// A provider that says what was last said to it.
pub(crate) struct Provider {
    says: Mutex<Result<ChangedPaths, ChangeFault>>,
    pub(crate) pull: Mutex<Result<PullRequest, ChangeFault>>,
    asked: Mutex<Vec<WantedChange>>,
}

impl Provider {
    fn says(&self, says: Result<ChangedPaths, ChangeFault>) {
        *self.says.lock().expect("a lock") = says;
    }

    pub(crate) fn asked(&self) -> Vec<WantedChange> {
        std::mem::take(&mut *self.asked.lock().expect("a lock"))
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

    async fn changed_files(&self, wanted: &WantedChange) -> Result<ChangedPaths, ChangeFault> {
        self.asked.lock().expect("a lock").push(wanted.clone());
        self.says.lock().expect("a lock").clone()
    }

    async fn pull_request(&self, wanted: &WantedChange) -> Result<PullRequest, ChangeFault> {
        self.asked.lock().expect("a lock").push(wanted.clone());
        self.pull.lock().expect("a lock").clone()
    }
}

fn files(names: &[&str], complete: bool) -> Result<ChangedPaths, ChangeFault> {
    Ok(ChangedPaths {
        files: names.iter().map(|name| (*name).to_owned()).collect(),
        complete,
    })
}

pub(crate) fn fault<T>(passing: bool) -> Result<T, ChangeFault> {
    Err(ChangeFault {
        message: "the provider says no".to_owned(),
        passing,
    })
}

fn on_pull(id: &str, operator: &str, value: &str) -> String {
    let source = format!(
        "type: Webhook\nspec:\n  type: Github\n  spec:\n    type: PullRequest\n    spec:\n      connectorRef: code\n      actions: [Open, Synchronize]\n      payloadConditions:\n        - {{key: changedFiles, operator: {operator}, value: \"{value}\"}}\n"
    );
    trigger(id, &source, "encryptedWebhookSecretIdentifier: hook\n")
}

const CODE: &str = "connector:\n  name: code\n  identifier: code\n  orgIdentifier: default\n  projectIdentifier: shop\n  type: Github\n  spec:\n    url: https://github.com/acme/shop\n    type: Repo\n    authentication: {type: Http, spec: {type: UsernameToken, spec: {username: bot, tokenRef: hook}}}\n";

fn pull(number: u64) -> String {
    json!({
        "action": "opened",
        "number": number,
        "pull_request": {
            "number": number, "title": "change", "updated_at": "2026-01-01T00:00:00Z",
            "head": {"ref": "topic", "sha": "b".repeat(40)}, "base": {"ref": "main", "sha": "a".repeat(40)},
        },
        "repository": {"name": "shop", "full_name": "acme/shop", "html_url": "https://github.com/acme/shop"},
        "sender": {"login": "alex"},
    })
    .to_string()
}

/// Delivers a pull request, of which nobody is told: the test says when it is handled, and with which provider.
async fn opened(hooks: &Hooks, number: u64) -> Value {
    let body = pull(number);
    let id = format!("d-{number}");
    let headers = [
        ("x-github-event", "pull_request"),
        ("x-github-delivery", id.as_str()),
        ("x-hub-signature-256", &signature(SECRET, &body)),
    ];
    let (status, answer) = hooks.post(GIT, &headers, body.clone()).await;
    assert_eq!(status, 200, "{answer}");
    json!({"event": answer["data"]})
}

pub(crate) async fn provider(world: &World) -> (Arc<Provider>, Arc<dyn SourceReader>) {
    world.apply(CODE).await;
    let provider = Arc::new(Provider {
        says: Mutex::new(fault(false)),
        pull: Mutex::new(fault(false)),
        asked: Mutex::default(),
    });
    let sources: Arc<dyn SourceReader> = provider.clone();
    (provider, sources)
}

#[tokio::test(start_paused = true)]
async fn the_files_of_a_pull_request_are_asked_for_once_and_decide() {
    let world = world().await;
    let (github, sources) = provider(&world).await;
    for (id, operator, value) in [
        ("docs", "In", "docs/**"),
        ("code", "In", "src/**"),
        ("no_docs", "DoesNotContain", "docs/"),
    ] {
        world.apply(&on_pull(id, operator, value)).await;
    }
    let hooks = world.unheard_hooks();
    let started = async |id: &str| history(&world, id).await[0].run.is_some();
    github.says(files(&["src/a"], true));
    world.hear(&sources, opened(&hooks, 1).await).await;
    let asked = github.asked();
    assert_eq!(asked.len(), 1, "once for three triggers");
    assert_eq!(asked[0].change, Change::PullRequest(1));
    assert_eq!(asked[0].connector.kind, "Github");
    assert_eq!(
        [
            started("docs").await,
            started("code").await,
            started("no_docs").await
        ],
        [false, true, true]
    );
    let why = &history(&world, "docs").await[0];
    assert_eq!(why.status, "NO_MATCHING_TRIGGER_FOR_FILEPATH_CONDITIONS");
    assert!(
        why.message.contains("`src/a` were changed"),
        "{}",
        why.message
    );
    // Of a list that is cut off what is in it counts, and what is not in it does not.
    github.says(files(&["src/a"], false));
    minutes(&world, 1).await;
    world.hear(&sources, opened(&hooks, 2).await).await;
    assert_eq!(
        [
            started("docs").await,
            started("code").await,
            started("no_docs").await
        ],
        [false, true, false]
    );
    let why = &history(&world, "docs").await[0];
    assert!(why.message.contains("not all"), "{}", why.message);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_away_is_asked_again_and_holds_no_other_trigger_up() {
    let world = world().await;
    let (github, sources) = provider(&world).await;
    world.apply(&on_pull("code", "In", "src/**")).await;
    let plain = on_pull("plain", "In", "x").replace("key: changedFiles", "key: targetBranch");
    world
        .apply(&plain.replace("value: \"x\"", "value: main"))
        .await;
    let hooks = world.unheard_hooks();
    github.says(fault(true));
    let event = opened(&hooks, 1).await;
    let failed = world.hear(&sources, event).await.expect("an answer");
    assert!(
        failed["error"]
            .as_str()
            .is_some_and(|why| why.contains("says no")),
        "{failed}"
    );
    let only = only_run(&world).await;
    assert_eq!(history(&world, "plain").await[0].run, Some(only));
    let row = &history(&world, "code").await[0];
    assert_eq!(row.status, "FAILED_TO_FETCH_PR_DETAILS");
    assert!(
        row.message.contains("says no") && row.message.contains("again"),
        "{}",
        row.message
    );
    minutes(&world, 1).await;
    let swept = world.hear(&sources, json!({})).await.expect("an answer");
    assert_eq!((&swept["failed"], runs(&world).await.len()), (&json!(1), 1));
    github.says(files(&["src/a"], true));
    minutes(&world, 1).await;
    let swept = world.hear(&sources, json!({})).await.expect("an answer");
    assert_eq!(
        (&swept["handled"], runs(&world).await.len()),
        (&json!(1), 2)
    );
    let rows = history(&world, "code").await;
    assert_eq!(
        (rows.len(), rows[0].status.as_str()),
        (1, "TARGET_EXECUTION_REQUESTED")
    );
}

#[tokio::test(start_paused = true)]
async fn what_no_attempt_changes_is_told_and_given_up() {
    let world = world().await;
    let (github, sources) = provider(&world).await;
    world.apply(&on_pull("code", "In", "src/**")).await;
    let hooks = world.unheard_hooks();
    let event = opened(&hooks, 1).await;
    world.hear(&sources, event).await;
    let row = &history(&world, "code").await[0];
    assert_eq!(
        (row.status.as_str(), row.message.as_str()),
        ("FAILED_TO_FETCH_PR_DETAILS", "the provider says no")
    );
    minutes(&world, 1).await;
    let swept = world.hear(&sources, json!({})).await.expect("an answer");
    assert_eq!(swept["failed"], 0, "{swept}");
    assert_eq!(github.asked().len(), 1);
    // One that is away for good is given up after five attempts, and can be had again.
    github.says(fault(true));
    opened(&hooks, 2).await;
    for _ in 0..6 {
        minutes(&world, 1).await;
        world.hear(&sources, json!({})).await;
    }
    let account = slipway_world::scope().account;
    let dead = world.store.list_dead(&account).await.expect("a list");
    assert_eq!(dead.len(), 1);
    assert!(
        dead[0]
            .why
            .as_deref()
            .is_some_and(|why| why.contains("says no")),
        "{dead:?}"
    );
    assert!(runs(&world).await.is_empty());
}

/// A trigger whose conditions want a file below `src`.
fn on_source(id: &str, provider: &str, event: &str, connector: &str) -> String {
    let source = format!(
        "type: Webhook\nspec:\n  type: {provider}\n  spec:\n    type: {event}\n    spec:\n      connectorRef: {connector}\n      payloadConditions:\n        - {{key: changedFiles, operator: In, value: src/**}}\n"
    );
    trigger(id, &source, "")
}

fn code(id: &str, kind: &str, spec: &str) -> String {
    format!(
        "connector:\n  name: {id}\n  identifier: {id}\n  orgIdentifier: default\n  projectIdentifier: shop\n  type: {kind}\n  spec: {spec}\n"
    )
}

#[tokio::test(start_paused = true)]
async fn codecommit_and_harness_code_are_asked_as_what_they_are() {
    let world = world().await;
    let (asked, sources) = provider(&world).await;
    let aws = "{url: https://git-codecommit.eu-central-1.amazonaws.com/v1/repos/shop, type: Repo, authentication: {type: HTTPS, spec: {type: AWSCredentials, spec: {accessKey: AKID, secretKeyRef: hook}}}}";
    let git = "{url: https://git.harness.io/acc/org/web/shop.git, connectionType: Repo, type: Http, spec: {username: bot, passwordRef: hook}}";
    world.apply(&code("aws", "Codecommit", aws)).await;
    world.apply(&code("harness", "Git", git)).await;
    let on_aws = on_source("aws", "AwsCodeCommit", "Push", "aws");
    world.apply(&on_aws).await;
    let on_pull = on_source("pulls", "Harness", "PullRequest", "harness");
    world.apply(&on_pull).await;
    asked.says(files(&["src/a"], true));

    let pushed = crate::aws::push("e-1", "0", "a", "2026-01-01T00:00:00Z");
    // A branch that is new has nothing before it.
    world.hear(&sources, pushed).await;
    assert!(asked.asked().is_empty());
    minutes(&world, 1).await;
    let pushed = crate::aws::push("e-2", "a", "b", "2026-01-01T00:01:00Z");
    world.hear(&sources, pushed).await;
    let wanted = asked.asked();
    assert_eq!(wanted.len(), 1);
    let change = Change::Push {
        before: "a".repeat(40),
        after: "b".repeat(40),
    };
    assert_eq!(
        (&wanted[0].change, wanted[0].api),
        (&change, HostApi::OfConnector)
    );
    assert_eq!(wanted[0].connector.kind, "Codecommit");
    assert!(history(&world, "aws").await[0].run.is_some());

    let body = json!({
        "trigger": "pullreq_created",
        "repo": {"path": "acc/org/web/shop", "git_url": "https://git.harness.io/acc/org/web/shop.git"},
        "pull_req": {"number": 4, "title": "t", "source_branch": "topic", "target_branch": "main", "updated": world.runs.clock.now_ms()},
        "sha": "b".repeat(40),
    });
    let hooks = world.unheard_hooks();
    let headers = [("x-harness-trigger", "pullreq_created")];
    let (status, answer) = hooks.post(GIT, &headers, body.to_string()).await;
    assert_eq!(status, 200, "{answer}");
    let event = json!({"event": answer["data"]});
    world.hear(&sources, event).await;
    let wanted = asked.asked();
    assert_eq!(wanted.len(), 1, "{:?}", history(&world, "pulls").await);
    assert_eq!(
        (&wanted[0].change, wanted[0].api),
        (&Change::PullRequest(4), HostApi::HarnessCode)
    );
    assert!(history(&world, "pulls").await[0].run.is_some());
}
