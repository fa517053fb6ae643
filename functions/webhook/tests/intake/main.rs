//! Webhooks, schedules and ends of runs, from the sender to the run: what starts, once, and what does not.

#![allow(clippy::expect_used, reason = "everything here is a test")]

mod again;
mod aws;
mod branch;
mod events;
mod faults;
mod feeds;
mod files;
mod hostile;
mod listening;
mod order;
mod people;
mod polls;
mod pulls;
mod registers;
mod schedules;
mod scripts;
mod senders;
mod strangers;
mod told;
mod turns;

use std::fmt::Write as _;
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use slipway_model::id::{EntityId, RunId};
use slipway_model::status::Status;
use slipway_store::record::{OutcomeRecord, RunRecord};
use slipway_store::{Page, TriggerPlace};
use slipway_world::tap::Tap;
use slipway_world::yaml::{pipeline, says, stage};
use slipway_world::{Hooks, Options, World, minutes, scope};

/// Where Git providers post to.
const GIT: &str = "/ng/api/webhook?accountIdentifier=acme";

/// The secret of the triggers of these tests.
const SECRET: &str = "It's a Secret to Everybody";

async fn world() -> World {
    let world = World::with(Options {
        in_memory: true,
        ..Options::default()
    })
    .await;
    furnish(&world).await;
    world
}

/// A world in which something goes wrong, with a trigger for pushes.
async fn world_with(tap: Arc<dyn Tap>) -> World {
    let world = World::with(Options {
        in_memory: true,
        tap: Some(tap),
        ..Options::default()
    })
    .await;
    furnish(&world).await;
    world.apply(&on_push("main", "")).await;
    world
}

/// What all of these tests have: a pipeline, and the secret of its triggers.
async fn furnish(world: &World) {
    world
        .apply(&pipeline(&[stage(
            "build",
            &says("told", "<+trigger.branch> <+trigger.commitSha>"),
            "",
            "",
        )]))
        .await;
    world.put_secret("hook", SECRET).await;
}

fn place(trigger: &str) -> TriggerPlace {
    TriggerPlace {
        scope: scope(),
        pipeline: EntityId::new("release"),
        trigger: EntityId::new(trigger),
    }
}

/// A trigger of the pipeline `release` with this source.
fn trigger(id: &str, source: &str, more: &str) -> String {
    let indented = |text: &str, by: usize| {
        let mut out = String::new();
        for line in text.lines() {
            let _ = writeln!(out, "{:by$}{line}", "");
        }
        out
    };
    format!(
        "trigger:\n  name: {id}\n  identifier: {id}\n  orgIdentifier: default\n  projectIdentifier: shop\n  \
         pipelineIdentifier: release\n{}  source:\n{}",
        indented(more, 2),
        indented(source, 4)
    )
}

/// A trigger on pushes to GitHub, with this spec below the event.
fn on_push(id: &str, spec: &str) -> String {
    let mut source = "type: Webhook\nspec:\n  type: Github\n  spec:\n    type: Push\n    spec:\n      repoName: shop\n".to_owned();
    for line in spec.lines() {
        let _ = writeln!(source, "      {line}");
    }
    trigger(id, &source, "encryptedWebhookSecretIdentifier: hook\n")
}

/// A push to `main` of the repository `acme/shop`.
fn push(before: &str, after: &str, at: &str) -> String {
    json!({
        "ref": "refs/heads/main",
        "before": before.repeat(40),
        "after": after.repeat(40),
        "created": false,
        "deleted": false,
        "forced": false,
        "repository": {
            "id": 1,
            "name": "shop",
            "full_name": "acme/shop",
            "pushed_at": at,
            "html_url": "https://github.com/acme/shop",
            "clone_url": "https://github.com/acme/shop.git",
            "ssh_url": "git@github.com:acme/shop.git",
            "url": "https://github.com/acme/shop",
        },
        "pusher": {"name": "alex", "email": "alex@example.com"},
        "sender": {"id": 7, "login": "alex"},
        "head_commit": {"id": after.repeat(40), "message": "change", "timestamp": at, "added": [], "removed": [], "modified": ["src/a"]},
        "commits": [
            {"id": after.repeat(40), "message": "change", "timestamp": at, "added": [], "removed": [], "modified": ["src/a"]}
        ],
    })
    .to_string()
}

fn signature(secret: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any key");
    mac.update(body.as_bytes());
    let mut text = "sha256=".to_owned();
    for byte in mac.finalize().into_bytes() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Posts a push as GitHub does, signed, under this delivery id.
async fn deliver(hooks: &Hooks, id: &str, body: &str) -> (u16, Value) {
    let signature = signature(SECRET, body);
    let headers = [
        ("x-github-event", "push"),
        ("x-github-delivery", id),
        ("x-hub-signature-256", &signature),
        ("content-type", "application/json"),
    ];
    hooks.post(GIT, &headers, body.to_owned()).await
}

/// The same to another URL.
async fn deliver_to(hooks: &Hooks, path: &str) -> (u16, Value) {
    let body = push("0", "a", "2026-01-01T00:00:00Z");
    let signature = signature(SECRET, &body);
    let headers = [
        ("x-github-event", "push"),
        ("x-hub-signature-256", &signature),
    ];
    hooks.post(path, &headers, body).await
}

async fn history(world: &World, trigger: &str) -> Vec<OutcomeRecord> {
    let place = place(trigger);
    let listed = world.store.list_history(&place, Page::first(100));
    listed.await.expect("the history").items
}

/// The word that the step `told` said.
async fn said(world: &World, run: &RunId) -> String {
    let nodes = world.store.list_nodes(run, None).await.expect("the nodes");
    let mut words = nodes.iter().filter_map(|node| {
        let found = node.outputs.pointer("/output/outputVariables/word")?;
        Some(found.as_str()?.to_owned())
    });
    words.next().unwrap_or_default()
}

async fn runs(world: &World) -> Vec<RunRecord> {
    let scope = scope();
    let listed = world.store.list_runs(&scope, None, Page::first(100));
    listed.await.expect("the runs").items
}

async fn only_run(world: &World) -> RunId {
    let runs = runs(world).await;
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs[0].id.clone()
}

#[tokio::test(start_paused = true)]
async fn a_push_starts_a_run_that_reads_it() {
    let world = world().await;
    world
        .apply(&on_push(
            "main",
            "payloadConditions:\n  - {key: targetBranch, operator: Equals, value: main}\n",
        ))
        .await;
    let hooks = world.hooks();
    let body = push("0", "a", "2026-01-01T00:00:00Z");
    let (status, answer) = deliver(&hooks, "d-1", &body).await;
    assert_eq!(status, 200, "{answer}");
    let event = answer["data"].as_str().expect("an event").to_owned();

    let run = world.finish(&only_run(&world).await).await;
    assert_eq!(run.status, Status::Success, "{:?}", run.failure);
    assert_eq!(run.trigger_type, "WEBHOOK");
    // Whom the sender names is nobody of Slipway's, whatever the name is.
    assert_eq!(run.triggered_by.as_str(), "trigger:main");
    assert_eq!((run.person(), run.starter()), (None, "alex"));
    let by = run.trigger.expect("a trigger");
    assert_eq!((by.trigger.as_str(), by.event.as_str()), ("main", &*event));
    assert_eq!(by.about["branch"], "main");
    let told = said(&world, &run.id).await;
    assert_eq!(told, format!("main {}", "a".repeat(40)));

    let rows = history(&world, "main").await;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].status, "TARGET_EXECUTION_REQUESTED");
    assert_eq!(rows[0].run.as_ref(), Some(&run.id));
    let of_event = world.store.list_outcomes(&event).await.expect("outcomes");
    assert_eq!(of_event, rows);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_start_is_in_the_history_with_the_reason() {
    let world = world().await;
    world
        .apply(&on_push(
            "release_only",
            "payloadConditions:\n  - {key: targetBranch, operator: Equals, value: release}\n",
        ))
        .await;
    world
        .apply(&on_push(
            "main",
            "payloadConditions:\n  - {key: changedFiles, operator: In, value: docs/**}\n",
        ))
        .await;
    let other = on_push("other", "").replace("repoName: shop", "repoName: billing");
    world.apply(&other).await;
    let hooks = world.hooks();
    let (status, _) = deliver(&hooks, "d-1", &push("0", "a", "2026-01-01T00:00:00Z")).await;
    assert_eq!(status, 200);
    assert!(runs(&world).await.is_empty());
    let rows = history(&world, "release_only").await;
    assert_eq!(rows[0].status, "NO_MATCHING_TRIGGER_FOR_PAYLOAD_CONDITIONS");
    assert!(
        rows[0].message.contains("targetBranch Equals release"),
        "{}",
        rows[0].message
    );
    assert!(rows[0].message.contains("`main`"), "{}", rows[0].message);
    let rows = history(&world, "main").await;
    assert_eq!(
        rows[0].status,
        "NO_MATCHING_TRIGGER_FOR_FILEPATH_CONDITIONS"
    );
    // What happens in another repository is nothing to it.
    assert!(history(&world, "other").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_happening_is_one_run_whatever_its_deliveries() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    let body = push("0", "a", "2026-01-01T00:00:00Z");
    // The webhook of the repository and the one of its organization.
    for id in ["d-1", "d-2", "d-1"] {
        let (status, _) = deliver(&hooks, id, &body).await;
        assert_eq!(status, 200);
    }
    let run = only_run(&world).await;
    world.finish(&run).await;
    // Back to what was, and to it again: three pushes, three runs.
    for (id, before, after, at) in [
        ("d-3", "a", "b", "2026-01-01T00:01:00Z"),
        ("d-4", "b", "a", "2026-01-01T00:02:00Z"),
        ("d-5", "a", "b", "2026-01-01T00:03:00Z"),
    ] {
        minutes(&world, 1).await;
        let (status, answer) = deliver(&hooks, id, &push(before, after, at)).await;
        assert_eq!(status, 200, "{answer}");
    }
    let started = history(&world, "main").await;
    let started = started.iter().filter(|row| row.run.is_some()).count();
    assert_eq!((started, runs(&world).await.len()), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn a_custom_webhook_gives_its_payload_to_the_inputs() {
    let world = world().await;
    let steps = says(
        "told",
        "<+pipeline.variables.version> <+pipeline.variables.note>",
    );
    let yaml = pipeline(&[stage("build", &steps, "", "")]).replacen(
        "pipeline:\n",
        "pipeline:\n  variables:\n    - {name: version, type: String, value: <+input>}\n    - {name: note, type: String, value: <+input>}\n",
        1,
    );
    let yaml = yaml
        .replace("identifier: release", "identifier: inputs")
        .replace("name: release", "name: inputs");
    world.apply(&yaml).await;
    let inputs = "inputYaml: |\n  pipeline:\n    identifier: inputs\n    variables:\n      - {name: version, type: String, value: <+trigger.payload.version>}\n      - {name: note, type: String, value: <+trigger.payload.note>}\n";
    let source = "type: Webhook\nspec:\n  type: Custom\n  spec:\n    payloadConditions:\n      - {key: <+trigger.payload.go>, operator: Equals, value: \"yes\"}\n";
    let yaml = trigger("called", source, inputs)
        .replace("pipelineIdentifier: release", "pipelineIdentifier: inputs");
    world.apply(&yaml).await;
    let hooks = world.hooks();
    let at = TriggerPlace {
        pipeline: EntityId::new("inputs"),
        ..place("called")
    };
    let token = slipway_engine::intake::url::url_token(&world.url_key().await, &at);
    let path = |token: &str| {
        format!(
            "/gateway/pipeline/api/webhook/custom/{token}/v3?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop&pipelineIdentifier=inputs&triggerIdentifier=called"
        )
    };
    // What a sender writes is data: it reads no secret and is no expression.
    let body = json!({"go": "yes", "version": "1.10", "note": "<+secrets.getValue(\"hook\")>"})
        .to_string();
    let (status, answer) = hooks.post(&path(&token), &[], body.clone()).await;
    assert_eq!(status, 200, "{answer}");
    let run = world.finish(&only_run(&world).await).await;
    assert_eq!(run.trigger_type, "WEBHOOK_CUSTOM");
    assert_eq!(run.status, Status::Success, "{:?}", run.failure);
    let told = said(&world, &run.id).await;
    assert_eq!(told, "1.10 <+secrets.getValue(\"hook\")>");
    // The same again is another happening: nobody says that it is the same.
    let (status, _) = hooks.post(&path(&token), &[], body).await;
    assert_eq!((status, runs(&world).await.len()), (200, 2));
    let (status, _) = hooks.post(&path(&token), &[], r#"{"go": "no"}"#).await;
    assert_eq!((status, runs(&world).await.len()), (200, 2));
}

#[tokio::test(start_paused = true)]
async fn a_newer_event_aborts_the_run_of_the_one_before() {
    let world = world().await;
    world
        .apply(
            &pipeline(&[stage(
                "build",
                &slipway_world::yaml::wait("pause", "1h"),
                "",
                "",
            )])
            .replace("release", "slow"),
        )
        .await;
    let yaml = on_push("main", "autoAbortPreviousExecutions: true\n")
        .replace("pipelineIdentifier: release", "pipelineIdentifier: slow");
    world.apply(&yaml).await;
    let hooks = world.hooks();
    deliver(&hooks, "d-1", &push("0", "a", "2026-01-01T00:00:00Z")).await;
    let first = only_run(&world).await;
    minutes(&world, 2).await;
    deliver(&hooks, "d-2", &push("a", "b", "2026-01-01T00:02:00Z")).await;
    let first = world.finish(&first).await;
    assert_eq!(first.status, Status::Aborted);
    let runs = runs(&world).await;
    let second = runs
        .iter()
        .find(|run| run.id != first.id)
        .expect("a second run");
    assert_eq!(second.abort, None);
    assert_eq!(world.finish(&second.id).await.status, Status::Success);
}

#[tokio::test(start_paused = true)]
async fn a_push_of_two_branches_starts_a_run_of_each() {
    let world = world().await;
    let source = "type: Webhook\nspec:\n  type: Bitbucket\n  spec:\n    type: Push\n    spec:\n      repoName: shop\n";
    world.apply(&trigger("pushed", source, "")).await;
    let hooks = world.hooks();
    let change = |branch: &str, hash: &str| {
        let at = |hash: &str| {
            json!({
                "type": "branch", "name": branch,
                "target": {"type": "commit", "hash": hash.repeat(40), "date": "2026-01-01T00:00:00+00:00"},
            })
        };
        json!({"old": at("0"), "new": at(hash), "created": false, "closed": false, "forced": false, "truncated": false})
    };
    let body = json!({
        "actor": {"type": "user", "display_name": "Alex", "nickname": "alex", "account_id": "1"},
        "repository": {
            "type": "repository", "name": "shop", "full_name": "acme/shop", "uuid": "{1}",
            "links": {"html": {"href": "https://bitbucket.org/acme/shop"}},
        },
        "push": {"changes": [change("main", "a"), change("next", "b")]},
    })
    .to_string();
    let headers = [("x-event-key", "repo:push"), ("x-request-uuid", "r-1")];
    for _ in 0..2 {
        let (status, answer) = hooks.post(GIT, &headers, body.clone()).await;
        assert_eq!(status, 200, "{answer}");
    }
    let all = runs(&world).await;
    let about = all.iter().filter_map(|run| run.trigger.as_ref());
    let mut branches: Vec<&str> = about.map(|by| by.about["branch"].as_str()).collect();
    branches.sort_unstable();
    assert_eq!(branches, ["main", "next"]);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_listens_to_is_not_kept() {
    let world = world().await;
    let hooks = world.hooks();
    let writes = world.store.writes();
    let (status, answer) = deliver(&hooks, "d-1", &push("0", "a", "2026-01-01T00:00:00Z")).await;
    assert_eq!((status, world.store.writes()), (200, writes));
    let why = answer["metaData"]["ignored"].as_str();
    assert!(why.is_some_and(|why| why.contains("Github")), "{answer}");
}
