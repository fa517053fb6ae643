//! One happening that several senders tell of: two webhooks of a repository, webhooks of two projects, a stranger.

use slipway_engine::intake::listen::of_provider;
use slipway_model::id::{AccountId, OrgId, ProjectId, Scope};
use slipway_store::{Page, TriggerPlace};
use slipway_trigger::Provider;
use slipway_world::{Hooks, World, minutes};

use crate::{GIT, SECRET, history, on_push, place, push, runs, signature, trigger, world};

const AT: &str = "2026-01-01T00:00:00Z";

/// Posts a push to the URL, signed with the secret where there is one. Answers with the event's id.
async fn post(hooks: &Hooks, url: &str, id: &str, secret: Option<&str>, body: &str) -> String {
    let signed = secret.map(|secret| signature(secret, body));
    let mut headers = vec![
        ("x-github-event", "push"),
        ("x-github-delivery", id),
        ("content-type", "application/json"),
    ];
    if let Some(signed) = &signed {
        headers.push(("x-hub-signature-256", signed));
    }
    let (status, answer) = hooks.post(url, &headers, body.to_owned()).await;
    assert_eq!(status, 200, "{answer}");
    answer["data"].as_str().expect("an event").to_owned()
}

/// How often each of two triggers started a run.
async fn started(world: &World, triggers: [&str; 2]) -> [usize; 2] {
    let mut counts = [0; 2];
    for (count, trigger) in counts.iter_mut().zip(triggers) {
        let rows = history(world, trigger).await;
        *count = rows.iter().filter(|row| row.run.is_some()).count();
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn two_webhooks_with_secrets_of_their_own_start_the_triggers_of_each_once() {
    let world = world().await;
    world.put_secret("other", "another secret").await;
    world.apply(&on_push("main", "")).await;
    let others = on_push("others", "").replace("Identifier: hook", "Identifier: other");
    world.apply(&others).await;
    let hooks = world.hooks();
    let body = push("0", "a", AT);
    let first = post(&hooks, GIT, "d-1", Some(SECRET), &body).await;
    assert_eq!(started(&world, ["main", "others"]).await, [1, 0]);
    minutes(&world, 1).await;
    let second = post(&hooks, GIT, "d-2", Some("another secret"), &body).await;
    assert_ne!(first, second);
    assert_eq!(started(&world, ["main", "others"]).await, [1, 1]);
    // What the first delivery was enough for is not decided again: it has one row.
    assert_eq!(history(&world, "main").await.len(), 1);
    // Sent again, with either secret, as they were and as new deliveries.
    for (id, secret) in [
        ("d-1", SECRET),
        ("d-2", "another secret"),
        ("d-3", "another secret"),
        ("d-4", SECRET),
    ] {
        post(&hooks, GIT, id, Some(secret), &body).await;
    }
    assert_eq!(started(&world, ["main", "others"]).await, [1, 1]);
    assert_eq!(runs(&world).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn webhooks_of_two_projects_start_the_triggers_of_each_once() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    let body = push("0", "a", AT);
    let url = |project: &str| format!("{GIT}&orgIdentifier=default&projectIdentifier={project}");
    // Nothing of the other project listens; this one's own webhook comes second, and the account's third.
    for (id, url, expected) in [
        ("d-1", url("billing"), 0),
        ("d-2", url("shop"), 1),
        ("d-3", GIT.to_owned(), 1),
        ("d-4", url("shop"), 1),
    ] {
        post(&hooks, &url, id, Some(SECRET), &body).await;
        assert_eq!(runs(&world).await.len(), expected, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn w1_a_stranger_who_is_first_takes_nothing_from_the_signed_delivery() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    // Another project of the account believes everybody.
    let account = AccountId::new("acme");
    let elsewhere = Scope::project(account, OrgId::new("default"), ProjectId::new("open"));
    let open = TriggerPlace {
        scope: elsewhere,
        ..place("open")
    };
    let listened = world
        .store
        .listen(&of_provider(Provider::Github), &open, "")
        .await;
    listened.expect("a listener");
    let hooks = world.hooks();
    let body = push("0", "a", AT);
    post(&hooks, GIT, "forged", None, &body).await;
    assert!(runs(&world).await.is_empty());
    post(&hooks, GIT, "d-1", Some(SECRET), &body).await;
    post(&hooks, GIT, "forged-too", None, &body).await;
    assert_eq!(started(&world, ["main", "main"]).await, [1, 1]);
    let scope = slipway_world::scope();
    let listed = world.store.list_runs(&scope, None, Page::first(10)).await;
    assert_eq!(listed.expect("runs").items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_of_another_repository_is_no_news_whoever_signed_it() {
    let world = world().await;
    world.put_secret("other", "another secret").await;
    world.apply(&on_push("main", "")).await;
    let billing = on_push("billing", "")
        .replace("Identifier: hook", "Identifier: other")
        .replace("repoName: shop", "repoName: billing");
    world.apply(&billing).await;
    let hooks = world.hooks();
    post(&hooks, GIT, "d-1", Some(SECRET), &push("0", "a", AT)).await;
    assert!(history(&world, "billing").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_is_sent_again_after_the_trigger_was_mended_starts_its_run() {
    let world = world().await;
    let wants = |branch: &str| {
        let condition = format!("{{key: targetBranch, operator: Equals, value: {branch}}}");
        on_push("main", &format!("payloadConditions:\n  - {condition}\n"))
    };
    world.apply(&wants("mian")).await;
    let hooks = world.hooks();
    let body = push("0", "a", AT);
    for _ in 0..2 {
        post(&hooks, GIT, "d-1", Some(SECRET), &body).await;
        assert!(runs(&world).await.is_empty());
    }
    world.apply(&wants("main")).await;
    // A trigger that was not there then is not asked.
    world.apply(&on_push("later", "")).await;
    for _ in 0..2 {
        post(&hooks, GIT, "d-1", Some(SECRET), &body).await;
        assert_eq!(started(&world, ["main", "later"]).await, [1, 0]);
    }
    assert_eq!(runs(&world).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn w14_what_was_refused_days_ago_is_not_decided_anew() {
    let world = world().await;
    world
        .apply(&on_push("main", "").replace("  source:", "  enabled: false\n  source:"))
        .await;
    let hooks = world.hooks();
    let body = push("0", "a", AT);
    post(&hooks, GIT, "d-1", Some(SECRET), &body).await;
    world.apply(&on_push("main", "")).await;
    minutes(&world, 4 * 24 * 60).await;
    post(&hooks, GIT, "d-1", Some(SECRET), &body).await;
    assert!(runs(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_leaked_is_over_when_the_new_one_is_saved_twice() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    post(&hooks, GIT, "d-1", Some(SECRET), &push("0", "a", AT)).await;
    world.put_secret("hook", "the new one").await;
    world.put_secret("hook", "the new one").await;
    minutes(&world, 2).await;
    let body = push("a", "b", "2026-01-01T00:01:00Z");
    let signed = signature(SECRET, &body);
    let headers = [
        ("x-github-event", "push"),
        ("x-hub-signature-256", &*signed),
    ];
    let (status, _) = hooks.post(GIT, &headers, body.clone()).await;
    assert_eq!(status, 401);
    post(&hooks, GIT, "d-2", Some("the new one"), &body).await;
    assert_eq!(runs(&world).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_goes_to_two_triggers_starts_both() {
    let world = world().await;
    let source = "type: Webhook\nspec:\n  type: Custom\n  spec: {}\n";
    for id in ["one", "two"] {
        world.apply(&trigger(id, source, "")).await;
    }
    let hooks = world.hooks();
    let send = async |id: &str, header: (&str, &str), body: &str| {
        let path = format!(
            "/pipeline/api/webhook/custom/v2?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop&pipelineIdentifier=release&triggerIdentifier={id}"
        );
        let (status, answer) = hooks.post(&path, &[header], body.to_owned()).await;
        assert_eq!(status, 200, "{answer}");
    };
    for id in ["one", "two", "one", "two"] {
        send(id, ("webhook-id", "msg-1"), "{}").await;
    }
    assert_eq!(started(&world, ["one", "two"]).await, [1, 1]);
    // A proxy numbers the request that all this is part of, not what is sent.
    for body in ["{\"a\":1}", "{\"a\":2}"] {
        send("one", ("x-request-id", "req-1"), body).await;
    }
    assert_eq!(started(&world, ["one", "two"]).await, [3, 1]);
}
