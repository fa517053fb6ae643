//! Pushes of providers that do not say when: back and forth, and told again.

use serde_json::{Value, json};
use slipway_world::{Hooks, World};

use crate::{GIT, history, minutes, runs, trigger, world};

const PROVIDERS: [&str; 4] = ["Gitlab", "Bitbucket", "Gitea", "Harness"];

/// When a commit was made: `b` is younger than `a`, and stays it when it is taken back.
fn made(commit: &str) -> String {
    let day = commit.bytes().next().unwrap_or_default() - b'a' + 1;
    format!("2026-01-0{day}T00:00:00Z")
}

/// A push to `main`, as each of these providers sends it.
fn push(
    provider: &str,
    delivery: &str,
    before: &str,
    after: &str,
) -> (Vec<(&'static str, String)>, Value) {
    let (old, new) = (before.repeat(40), after.repeat(40));
    let commit = json!({"id": new, "message": "change", "timestamp": made(after), "added": [], "removed": [], "modified": ["src/a"]});
    match provider {
        "Gitlab" => (
            vec![
                ("x-gitlab-event", "Push Hook".to_owned()),
                ("x-gitlab-event-uuid", delivery.to_owned()),
            ],
            json!({
                "object_kind": "push", "ref": "refs/heads/main", "before": old, "after": new, "checkout_sha": new,
                "user_username": "alex",
                "project": {"path_with_namespace": "acme/shop", "web_url": "https://gitlab.com/acme/shop"},
                "commits": [commit], "total_commits_count": 1,
            }),
        ),
        "Bitbucket" => {
            let at = |hash: &str, commit: &str| json!({"type": "branch", "name": "main", "target": {"type": "commit", "hash": hash, "date": made(commit)}});
            (
                vec![
                    ("x-event-key", "repo:push".to_owned()),
                    ("x-request-uuid", delivery.to_owned()),
                ],
                json!({
                    "actor": {"nickname": "alex"},
                    "repository": {"name": "shop", "full_name": "acme/shop", "links": {"html": {"href": "https://bitbucket.org/acme/shop"}}},
                    "push": {"changes": [{"old": at(&old, before), "new": at(&new, after)}]},
                }),
            )
        }
        "Gitea" => (
            vec![
                ("x-github-event", "push".to_owned()),
                ("x-gitea-delivery", delivery.to_owned()),
            ],
            json!({
                "ref": "refs/heads/main", "before": old, "after": new,
                "repository": {"name": "shop", "full_name": "acme/shop", "html_url": "https://git.local/acme/shop"},
                "sender": {"login": "alex"}, "head_commit": commit, "commits": [commit],
            }),
        ),
        _ => (
            vec![
                ("x-harness-trigger", "branch_updated".to_owned()),
                ("x-harness-delivery", delivery.to_owned()),
            ],
            json!({
                "repo": {"path": "acme/shop", "git_url": "https://git.harness.io/acme/shop.git"},
                "principal": {"uid": "alex"}, "ref": {"name": "refs/heads/main"}, "sha": new, "old_sha": old,
                "head_commit": {"sha": new, "committer": {"when": made(after)}}, "commits": [], "total_commits_count": 0,
            }),
        ),
    }
}

fn on_push(provider: &str) -> String {
    let kind = if provider == "Gitea" {
        "Github"
    } else {
        provider
    };
    trigger(
        "main",
        &format!(
            "type: Webhook\nspec:\n  type: {kind}\n  spec:\n    type: Push\n    spec:\n      repoName: shop\n"
        ),
        "",
    )
}

async fn deliver(world: &World, hooks: &Hooks, sent: (Vec<(&'static str, String)>, Value)) {
    let headers: Vec<(&str, &str)> = sent
        .0
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let (status, answer) = hooks.post(GIT, &headers, sent.1.to_string()).await;
    assert_eq!(status, 200, "{answer}");
    minutes(world, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_push_to_what_was_there_before_is_a_push_and_one_that_is_told_again_is_none() {
    for provider in PROVIDERS {
        let world = world().await;
        world.apply(&on_push(provider)).await;
        let hooks = world.hooks();
        let pushes = [("a", "b"), ("b", "a"), ("a", "b"), ("b", "a"), ("a", "b")];
        for (number, (before, after)) in pushes.into_iter().enumerate() {
            let of = |hook: &str| push(provider, &format!("{hook}-{number}"), before, after);
            // The webhook of the repository, once more, and the one of its group.
            for sent in [of("d"), of("d"), of("g")] {
                deliver(&world, &hooks, sent).await;
            }
            let started = history(&world, "main").await;
            let started = started.iter().filter(|row| row.run.is_some()).count();
            assert_eq!(
                (started, runs(&world).await.len()),
                (number + 1, number + 1),
                "{provider}"
            );
            // All that was delivered before comes again, whatever the ref points at now.
            for (old, (before, after)) in pushes.into_iter().enumerate().take(number + 1) {
                for hook in ["d", "g"] {
                    let again = push(provider, &format!("{hook}-{old}"), before, after);
                    deliver(&world, &hooks, again).await;
                }
            }
            assert_eq!(runs(&world).await.len(), number + 1, "{provider}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_copy_with_an_id_of_its_own_starts_nothing_while_the_ref_is_elsewhere() {
    for provider in PROVIDERS {
        let world = world().await;
        world.apply(&on_push(provider)).await;
        let hooks = world.hooks();
        for (id, before, after) in [
            ("1", "a", "b"),
            ("2", "b", "c"),
            ("3", "a", "b"),
            ("4", "b", "c"),
        ] {
            deliver(&world, &hooks, push(provider, id, before, after)).await;
        }
        assert_eq!(runs(&world).await.len(), 2, "{provider}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_anywhere_in_the_third_push_starts_one_run_for_it() {
    for request in 1.. {
        let mut reached = false;
        for after in [false, true] {
            let world = world().await;
            world.apply(&on_push("Gitlab")).await;
            let hooks = world.hooks();
            deliver(&world, &hooks, push("Gitlab", "1", "a", "b")).await;
            deliver(&world, &hooks, push("Gitlab", "2", "b", "a")).await;
            let (headers, body) = push("Gitlab", "3", "a", "b");
            let headers: Vec<(&str, &str)> = headers
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            let in_danger = world.unheard_hooks();
            world.crash.arm(request, after);
            let mut answered = None;
            while answered.is_none() {
                answered = world
                    .post_in_danger(&in_danger, GIT, &headers, &body.to_string())
                    .await;
            }
            reached |= !world.crash.is_armed();
            world.crash.disarm();
            minutes(&world, 1).await;
            world.take_in().await;
            assert_eq!(
                runs(&world).await.len(),
                3,
                "request {request}, after {after}"
            );
        }
        if !reached {
            assert!(request > 3, "{request} requests");
            return;
        }
    }
}
