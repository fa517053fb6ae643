//! The order of what happens to a ref or a pull request: what is older does not deploy over what is newer, and nothing else
//! is held back.

use serde_json::{Value, json};
use slipway_engine::intake::{Happening, Offer, accept};
use slipway_trigger::{Delivery, Provider, webhook};
use slipway_world::{Hooks, World, minutes, scope};

use crate::{GIT, SECRET, history, on_push, place, push, runs, signature, trigger, world};

/// A push as Gitea sends it: it says when its newest commit was made, and not when it was pushed.
fn dated(before: &str, after: &str, at: &str) -> String {
    let mut body: Value = serde_json::from_str(&push(before, after, at)).expect("JSON");
    let repository = body["repository"].as_object_mut().expect("a repository");
    repository.remove("pushed_at");
    body.to_string()
}

/// Posts it, signed, and answers with the status that the trigger `main` notes.
async fn note(world: &World, hooks: &Hooks, event: &str, body: &str) -> (String, String) {
    let before = history(world, "main").await.len();
    let signature = signature(SECRET, body);
    let headers = [
        ("x-github-event", event),
        ("x-hub-signature-256", &*signature),
        ("content-type", "application/json"),
    ];
    let (status, answer) = hooks.post(GIT, &headers, body.to_owned()).await;
    assert_eq!(status, 200, "{answer}");
    let rows = history(world, "main").await;
    assert_eq!(rows.len(), before + 1, "{rows:?}");
    let event = answer["data"].as_str().expect("an event");
    let row = rows.iter().find(|row| row.event == event).expect("a row");
    (row.status.clone(), row.message.clone())
}

const STARTED: &str = "TARGET_EXECUTION_REQUESTED";
const OLD: &str = "TARGET_DID_NOT_EXECUTE";

#[tokio::test(start_paused = true)]
async fn the_dates_of_commits_hold_no_push_back() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    // A clock that is wrong by years, a branch that was made a day earlier, a hotfix of an old release.
    for (before, after, at) in [
        ("0", "a", "2037-01-01T00:00:00Z"),
        ("a", "b", "2025-12-31T00:00:00Z"),
        ("b", "c", "2025-06-01T00:00:00Z"),
        ("c", "d", "2025-05-01T00:00:00Z"),
    ] {
        minutes(&world, 5).await;
        let body = dated(before, after, at);
        let (status, message) = note(&world, &hooks, "push", &body).await;
        assert_eq!(status, STARTED, "{before} to {after}: {message}");
    }
    assert_eq!(runs(&world).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn w18_pushes_without_a_time_are_told_apart_by_what_they_follow_on() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    let b = dated("a", "b", "2025-12-31T10:00:00Z");
    let c = dated("b", "c", "2025-12-31T09:00:00Z");
    let (status, message) = note(&world, &hooks, "push", &c).await;
    assert_eq!(status, STARTED, "{message}");
    let (status, message) = note(&world, &hooks, "push", &b).await;
    assert_eq!(status, OLD, "{message}");
    // Two were overtaken at once: the dates of their commits are all that is known.
    let d = dated("c", "d", "2025-12-31T11:00:00Z");
    let e = dated("d", "e", "2025-12-31T12:00:00Z");
    let f = dated("e", "f", "2025-12-31T13:00:00Z");
    let (status, message) = note(&world, &hooks, "push", &f).await;
    assert_eq!(status, STARTED, "{message}");
    for old in [d, e] {
        let (status, message) = note(&world, &hooks, "push", &old).await;
        assert_eq!(status, OLD, "{message}");
    }
    assert_eq!(runs(&world).await.len(), 2);
}

/// They were accepted one after the other, and the push between them has not come.
#[tokio::test(start_paused = true)]
async fn w18_of_two_pushes_of_one_millisecond_the_first_does_not_start_behind_the_second() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.unheard_hooks();
    let first = dated("0", "a", "2025-12-31T10:00:00Z");
    let second = dated("b", "c", "2025-12-31T11:00:00Z");
    let mut events = Vec::new();
    for body in [&first, &second] {
        let signature = signature(SECRET, body);
        let headers = [
            ("x-github-event", "push"),
            ("x-hub-signature-256", &*signature),
        ];
        let (_, answer) = hooks.post(GIT, &headers, body.clone()).await;
        events.push(answer["data"].as_str().expect("an event").to_owned());
    }
    for event in events.iter().rev() {
        world.handle(event).await;
    }
    let rows = history(&world, "main").await;
    let of = |event: &String| rows.iter().find(|row| row.event == *event).expect("a row");
    assert_eq!(of(&events[0]).received_ms, of(&events[1]).received_ms);
    assert_eq!(of(&events[1]).status, STARTED);
    assert_eq!(of(&events[0]).status, OLD, "{}", of(&events[0]).message);
}

/// In an account with a trigger that anybody may call, too.
#[tokio::test(start_paused = true)]
async fn w18_a_push_that_nobody_signed_holds_no_signed_one_back() {
    let world = world().await;
    let wanted = "payloadConditions:\n  - {key: <+trigger.payload.head_commit.message>, operator: NotEquals, value: skip}\n";
    world.apply(&on_push("main", wanted)).await;
    let open = "type: Webhook\nspec:\n  type: Github\n  spec:\n    type: Push\n    spec:\n      repoName: shop\n";
    world.apply(&trigger("open", open, "")).await;
    let hooks = world.hooks();
    let b = dated("a", "b", "2025-12-31T10:00:00Z");
    let (status, message) = note(&world, &hooks, "push", &b).await;
    assert_eq!(status, STARTED, "{message}");
    // The trigger does not take it: what comes next does not follow on what it took last.
    let c = dated("b", "c", "2025-12-31T10:30:00Z").replace("\"change\"", "\"skip\"");
    let (status, message) = note(&world, &hooks, "push", &c).await;
    assert_eq!(
        status, "NO_MATCHING_TRIGGER_FOR_PAYLOAD_CONDITIONS",
        "{message}"
    );
    let forged = dated("c", "e", "2025-12-31T12:00:00Z");
    let headers = [("x-github-event", "push")];
    let (status, answer) = hooks.post(GIT, &headers, forged).await;
    assert_eq!(status, 200, "{answer}");
    let told = answer["data"].as_str().expect("an event");
    let rows = history(&world, "open").await;
    let row = rows.iter().find(|row| row.event == told).expect("a row");
    assert_eq!(row.status, STARTED, "{}", row.message);
    // The dates of commits may go backwards: a branch that was made a day earlier.
    let d = dated("c", "d", "2025-12-31T09:00:00Z");
    let (status, message) = note(&world, &hooks, "push", &d).await;
    assert_eq!(status, STARTED, "{message}");
    // What follows on nothing known, and came late, is still told by its date.
    let old = dated("0", "f", "2025-12-31T08:00:00Z");
    let (status, message) = note(&world, &hooks, "push", &old).await;
    assert_eq!(status, OLD, "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_newer_push_that_started_nothing_is_told_as_that() {
    let world = world().await;
    let chosen = format!(
        "{}  stagesToExecute: [<+trigger.payload.stage>]\n",
        on_push("main", "")
    );
    world.apply(&chosen).await;
    let hooks = world.hooks();
    let (status, _) = note(
        &world,
        &hooks,
        "push",
        &push("a", "b", "2026-01-01T00:01:00Z"),
    )
    .await;
    assert_eq!(status, "INVALID_RUNTIME_INPUT_YAML");
    let (status, message) = note(
        &world,
        &hooks,
        "push",
        &push("0", "a", "2026-01-01T00:00:00Z"),
    )
    .await;
    assert_eq!(status, OLD);
    assert!(message.contains("started nothing"), "{message}");
}

/// A comment on a pull request of `acme/shop`.
pub(crate) fn comment(action: &str, id: u32, at: &str) -> String {
    let repository: Value = serde_json::from_str(&push("0", "a", at)).expect("JSON");
    json!({
        "action": action,
        "issue": {
            "number": 7,
            "title": "Change",
            "pull_request": {"url": "https://api.github.com/repos/acme/shop/pulls/7"},
        },
        "comment": {"id": id, "body": "/deploy", "created_at": at, "updated_at": at},
        "repository": repository["repository"],
        "sender": {"id": 7, "login": "alex"},
    })
    .to_string()
}

#[tokio::test(start_paused = true)]
async fn comments_do_not_overtake_each_other() {
    let world = world().await;
    let source = "type: Webhook\nspec:\n  type: Github\n  spec:\n    type: IssueComment\n    spec:\n      repoName: shop\n      \
                  actions: [Create, Edit, Delete]\n";
    let listens = trigger("main", source, "encryptedWebhookSecretIdentifier: hook\n");
    world.apply(&listens).await;
    let hooks = world.hooks();
    for (action, id, at) in [
        ("created", 2, "2026-01-01T00:00:05Z"),
        ("created", 1, "2026-01-01T00:00:00Z"),
        ("deleted", 1, "2026-01-01T00:00:00Z"),
    ] {
        let body = comment(action, id, at);
        let (status, message) = note(&world, &hooks, "issue_comment", &body).await;
        assert_eq!(status, STARTED, "{action} {id}: {message}");
    }
    assert_eq!(runs(&world).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_person_may_fire_what_is_older_and_holds_nothing_back_by_it() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    let newest = push("a", "b", "2026-01-01T00:05:00Z");
    let (status, _) = note(&world, &hooks, "push", &newest).await;
    assert_eq!(status, STARTED);
    let delivery = Delivery {
        headers: vec![("x-github-event".to_owned(), "push".to_owned())],
        body: push("0", "a", "2026-01-01T00:01:00Z").into_bytes(),
    };
    let heard = webhook::read(Provider::Github, &delivery).expect("a push");
    let mut event = heard.events().remove(0);
    (event.key, event.delivery) = (None, None);
    let happening = Happening::Webhook {
        event: Box::new(event),
        to: Some(place("main")),
        within: None,
        signed: Vec::new(),
        by_hand: true,
    };
    let offer = Offer {
        account: scope().account,
        happening,
        delivery: None,
        body: delivery.body,
    };
    let (kept, _) = accept(&world.runs, offer).await.expect("an event");
    world.handle(&kept.id).await;
    assert_eq!(runs(&world).await.len(), 2);
    // What the push of before has over others stays.
    let late = push("9", "a", "2026-01-01T00:04:00Z");
    let (status, message) = note(&world, &hooks, "push", &late).await;
    assert_eq!(status, OLD, "{message}");
    let next = push("b", "c", "2026-01-01T00:06:00Z");
    let (status, message) = note(&world, &hooks, "push", &next).await;
    assert_eq!(status, STARTED, "{message}");
}
