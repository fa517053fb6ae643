//! Harness Code (developer.harness.io: *Configure webhooks*), which is Gitness under its other name.

use super::field::Fields;
use super::{HARNESS_TRIGGER, Heard, Post, ignored, is_nothing};
use crate::{Event, Provider};

pub(super) fn read(post: &Post) -> Result<Heard, String> {
    let told = HARNESS_TRIGGER
        .iter()
        .find_map(|name| post.delivery.header(name));
    let told = match told {
        Some(told) => told.to_owned(),
        None => post.body.text("trigger")?,
    };
    match told.as_str() {
        "branch_updated" | "tag_updated" => moved(post, &["Push"], None),
        // What is new is a push too: triggers of both kinds listen to it.
        "branch_created" => moved(post, &["Push", "Branch"], Some("Create")),
        "tag_created" => moved(post, &["Push", "Tag"], Some("Create")),
        "branch_deleted" => moved(post, &["Branch"], Some("Delete")),
        "tag_deleted" => moved(post, &["Tag"], Some("Delete")),
        "pullreq_created" => pull_request(post, "Create"),
        "pullreq_updated" | "pullreq_branch_updated" => pull_request(post, "Update"),
        "pullreq_reopened" => pull_request(post, "Reopen"),
        "pullreq_merged" => pull_request(post, "Merge"),
        "pullreq_comment_created" => pull_request(post, "Comment"),
        "merge_queue_checks_requested" => merge_queue(post),
        other => ignored("the event", other),
    }
}

/// An event of the repository of the payload.
fn event(post: &Post, name: &str) -> Result<Event, String> {
    let body = post.body;
    let mut event = post.event(Provider::Harness, name, body.text("repo.path")?);
    for url in ["git_url", "git_ssh_url", "url"] {
        event.urls.extend(body.maybe(&format!("repo.{url}"))?);
    }
    event.user = body.first(&["principal.uid", "principal.display_name"])?;
    event.email = body.maybe("principal.email")?;
    Ok(event)
}

/// A ref that came, moved or went. Pushes have no action.
fn moved(post: &Post, names: &[&str], action: Option<&str>) -> Result<Heard, String> {
    let body = post.body;
    let full = body.text("ref.name")?;
    let after = body.maybe("sha")?.filter(|sha| !is_nothing(sha));
    let before = body.maybe("old_sha")?;
    let time = ["head_commit.committer.when", "head_commit.author.when"];
    let time = time
        .into_iter()
        .find(|path| body.find(path).is_some())
        .unwrap_or("head_commit.committer.when");
    let listed = body.list("commits")?.len();
    let total = body
        .find("total_commits_count")
        .and_then(serde_json::Value::as_u64);
    let all = total.is_none_or(|total| usize::try_from(total) == Ok(listed));
    let files = body.changed_files("commits", all)?;
    let mut events = Vec::new();
    for name in names {
        let mut event = event(post, name)?;
        event.action = action.filter(|_| *name != "Push").map(str::to_owned);
        event.changed_files.clone_from(&files);
        event.committed_ms = body.time(time)?;
        let event = event.about_ref(&full, after.clone(), before.clone());
        events.push(event.keyed(&[&body.stamp(time)?]));
    }
    Ok(Heard::of(events, ""))
}

fn short(full: String) -> String {
    full.strip_prefix("refs/heads/")
        .map_or(full.clone(), str::to_owned)
}

fn with_pull_request(mut event: Event, pull: Fields) -> Result<Event, String> {
    event.pr_number = Some(pull.number("number")?);
    event.pr_title = pull.maybe("title")?;
    let source = short(pull.text("source_branch")?);
    let target = short(pull.text("target_branch")?);
    Ok(event.between(Some(source), Some(target)))
}

fn pull_request(post: &Post, action: &str) -> Result<Heard, String> {
    let body = post.body;
    let pull = body.object("pull_req")?;
    let mut event = with_pull_request(event(post, "PullRequest")?, pull)?;
    event.action = Some(action.to_owned());
    event.commit = body.first(&["sha", "pull_req.source_sha"])?;
    event.base_commit = body.first(&[
        "pull_req.merge_base_sha",
        "pull_req.merge_target_sha",
        "old_sha",
    ])?;
    event.happened_ms = pull.time("updated")?.or(pull.time("edited")?);
    let number = pull.number("number")?.to_string();
    let comment = [body.stamp("comment.id")?, body.stamp("comment.created")?].concat();
    let time = [pull.stamp("updated")?, pull.stamp("edited")?].concat();
    // Older servers say no time. What can happen once only, or to other commits, is known without it; the rest is not.
    let before = body.stamp("old_sha")?;
    let once = matches!(action, "Create" | "Merge");
    match once
        || [&comment, &time, &before]
            .into_iter()
            .any(|part| !part.is_empty())
    {
        true => Ok(Heard::Event(Box::new(
            event.keyed(&[&number, &time, &comment, &before]),
        ))),
        false => Ok(Heard::Event(Box::new(event))),
    }
}

/// The checks of a merge queue are asked for.
fn merge_queue(post: &Post) -> Result<Heard, String> {
    let body = post.body;
    let event = event(post, "MergeQueue")?;
    let mut event = event.between(None, Some(short(body.text("merge_queue.branch")?)));
    event.commit = Some(body.text("sha")?);
    event.committed_ms = body.time("head_commit.committer.when")?;
    Ok(Heard::Event(Box::new(event.keyed(&[]))))
}
