//! Comments on pull requests of GitHub, which do not say between which branches they are.

use serde_json::{Value, json};
use slipway_engine::gather::{Change, PullRequest};
use slipway_world::Hooks;

use crate::files::{fault, provider};
use crate::order::comment;
use crate::{GIT, SECRET, history, minutes, only_run, runs, signature, trigger, world};

const STARTED: &str = "TARGET_EXECUTION_REQUESTED";
const UNKNOWN: &str = "FAILED_TO_FETCH_PR_DETAILS";

/// A trigger on comments, with a condition where there is one.
fn on_comment(id: &str, condition: &str) -> String {
    on_comment_with(id, condition, "connectorRef: code", "")
}

fn on_comment_with(id: &str, condition: &str, of: &str, more: &str) -> String {
    let conditions = match condition {
        "" => String::new(),
        condition => format!("      payloadConditions:\n        - {{{condition}}}\n"),
    };
    let source = format!(
        "type: Webhook\nspec:\n  type: Github\n  spec:\n    type: IssueComment\n    spec:\n      {of}\n      actions: [Create]\n{conditions}"
    );
    let secret = "encryptedWebhookSecretIdentifier: hook\n";
    trigger(id, &source, &format!("{secret}{more}"))
}

/// Delivers a comment, of which nobody is told: the test says when it is handled, and with which provider.
async fn commented(hooks: &Hooks, id: u32) -> Value {
    let body = comment("created", id, "2026-01-01T00:00:00Z");
    let headers = [
        ("x-github-event", "issue_comment"),
        ("x-hub-signature-256", &*signature(SECRET, &body)),
    ];
    let (status, answer) = hooks.post(GIT, &headers, body.clone()).await;
    assert_eq!(status, 200, "{answer}");
    json!({"event": answer["data"]})
}

fn pull() -> PullRequest {
    let known = |name: &str| Some(name.to_owned());
    PullRequest {
        source_branch: known("topic"),
        target_branch: known("main"),
        commit: known("b2c3"),
        base_commit: known("a1b2"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_pull_request_of_a_comment_is_asked_for_once_and_decides() {
    let world = world().await;
    let (github, sources) = provider(&world).await;
    for (id, condition) in [
        ("main", "key: targetBranch, operator: Equals, value: main"),
        (
            "other",
            "key: targetBranch, operator: NotEquals, value: main",
        ),
        ("plain", ""),
        (
            "quiet",
            "key: <+trigger.payload.comment.body>, operator: Equals, value: /stop",
        ),
    ] {
        world.apply(&on_comment(id, condition)).await;
    }
    *github.pull.lock().expect("a lock") = Ok(pull());
    let event = commented(&world.unheard_hooks(), 1).await;
    world.hear(&sources, event).await;
    let asked = github.asked();
    assert_eq!(asked.len(), 1, "once for three triggers");
    assert_eq!(asked[0].change, Change::PullRequest(7));
    assert_eq!(
        asked[0].connector.spec["url"],
        "https://github.com/acme/shop"
    );
    let mut told = Vec::new();
    for id in ["main", "other", "plain", "quiet"] {
        told.push(history(&world, id).await.remove(0).status);
    }
    let refused = "NO_MATCHING_TRIGGER_FOR_PAYLOAD_CONDITIONS";
    assert_eq!(told, [STARTED, refused, STARTED, refused]);
    for run in runs(&world).await {
        let by = run.trigger.expect("a trigger");
        let known = ["sourceBranch", "targetBranch", "branch", "commitSha"];
        assert_eq!(
            known.map(|name| by.about[name].as_str()),
            ["topic", "main", "main", "b2c3"]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn who_needs_a_provider_that_is_away_waits_and_nobody_else_does() {
    let world = world().await;
    let (github, sources) = provider(&world).await;
    let on_main = "key: targetBranch, operator: Equals, value: main";
    world.apply(&on_comment("main", on_main)).await;
    world.apply(&on_comment("plain", "")).await;
    *github.pull.lock().expect("a lock") = fault(true);
    let event = commented(&world.unheard_hooks(), 1).await;
    world.hear(&sources, event).await;
    let only = only_run(&world).await;
    let row = history(&world, "plain").await.remove(0);
    assert_eq!((row.status.as_str(), row.run), (STARTED, Some(only)));
    assert!(
        row.message.contains("are not known: the provider says no"),
        "{}",
        row.message
    );
    let row = history(&world, "main").await.remove(0);
    assert_eq!(row.status, UNKNOWN);
    assert!(row.message.contains("tried again"), "{}", row.message);
    *github.pull.lock().expect("a lock") = Ok(pull());
    minutes(&world, 1).await;
    let swept = world.hear(&sources, json!({})).await.expect("an answer");
    assert_eq!(
        (&swept["handled"], runs(&world).await.len()),
        (&json!(1), 2)
    );
    assert_eq!(history(&world, "main").await[0].status, STARTED);
}

#[tokio::test(start_paused = true)]
async fn what_is_needed_and_cannot_be_asked_for_refuses_the_comment() {
    let world = world().await;
    let (github, sources) = provider(&world).await;
    let on_main = "key: targetBranch, operator: NotEquals, value: develop";
    world.apply(&on_comment("main", on_main)).await;
    world
        .apply(&on_comment_with("nobody", on_main, "repoName: shop", ""))
        .await;
    let inputs = "inputYaml: |\n  pipeline:\n    identifier: release\n    description: <+trigger.targetBranch>\n";
    world
        .apply(&on_comment_with("given", "", "connectorRef: code", inputs))
        .await;
    let event = commented(&world.unheard_hooks(), 1).await;
    world.hear(&sources, event).await;
    assert!(runs(&world).await.is_empty());
    for (id, why) in [
        ("main", "the provider says no"),
        ("given", "the provider says no"),
        ("nobody", "give the trigger a `connectorRef`"),
    ] {
        let row = history(&world, id).await.remove(0);
        assert_eq!(row.status, UNKNOWN, "{id}: {}", row.message);
        assert!(row.message.contains(why), "{id}: {}", row.message);
    }
    assert_eq!(github.asked().len(), 1);
    // What no attempt changes is not tried again.
    minutes(&world, 1).await;
    let swept = world.hear(&sources, json!({})).await.expect("an answer");
    assert_eq!((&swept["failed"], github.asked().len()), (&json!(0), 0));
}
