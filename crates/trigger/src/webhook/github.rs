//! GitHub, and Gitea and Forgejo, which send the same (docs.github.com: *Webhook events and payloads*).

use super::field::Fields;
use super::{Heard, Post, ignored, is_nothing};
use crate::{ChangedFiles, Event, Provider};

/// Most commits that a push lists: of more only the last are, and their files are not all.
const LISTED_COMMITS: usize = 20;

pub(super) fn read(post: &Post) -> Result<Heard, String> {
    let header = "x-github-event";
    let event = post.delivery.header(header);
    let event = event.ok_or("the header X-GitHub-Event is missing: it says what happened")?;
    match event {
        "push" => push(post),
        "pull_request" => pull_request(post),
        "issue_comment" => comment(post),
        "pull_request_review" => review(post),
        "release" => release(post),
        "create" => created_or_deleted(post, "Create"),
        "delete" => created_or_deleted(post, "Delete"),
        "merge_group" => merge_queue(post),
        "ping" => Ok(Heard::Ignored("a ping: the webhook is set up".to_owned())),
        other => ignored("the event", other),
    }
}

/// An event of the repository of the payload.
fn event(post: &Post, name: &str) -> Result<Event, String> {
    let body = post.body;
    let mut event = post.event(Provider::Github, name, body.text("repository.full_name")?);
    for url in ["html_url", "clone_url", "ssh_url", "git_url", "svn_url"] {
        event.urls.extend(body.maybe(&format!("repository.{url}"))?);
    }
    event.user = body.first(&["sender.login", "sender.username"])?;
    event.email = body
        .maybe("sender.email")?
        .filter(|email| email.contains('@'));
    Ok(event)
}

fn push(post: &Post) -> Result<Heard, String> {
    let body = post.body;
    let git_ref = body.text("ref")?;
    let after = body.text("after")?;
    if body.flag("deleted")? || is_nothing(&after) {
        return ignored("the push that deletes", &git_ref);
    }
    let mut event = event(post, "Push")?;
    event.email = match event.email {
        Some(email) => Some(email),
        None => body.first(&["pusher.email", "head_commit.author.email"])?,
    };
    event.changed_files = files(body)?;
    // Gitea has no time of the push.
    let pushed = "repository.pushed_at";
    event.happened_ms = body.time(pushed)?;
    let time = match event.happened_ms {
        Some(_) => pushed,
        None => "head_commit.timestamp",
    };
    if event.happened_ms.is_none() {
        event.committed_ms = body.time(time)?;
    }
    let before = body.text("before")?;
    let event = event.about_ref(&git_ref, Some(after), Some(before));
    Ok(Heard::Event(Box::new(event.keyed(&[&body.stamp(time)?]))))
}

/// The files of a push. A new branch whose commits were known before lists none: what it changes is unknown, not nothing.
fn files(body: Fields) -> Result<ChangedFiles, String> {
    let listed = body.list("commits")?.len();
    let told = ["size", "total_commits"]
        .into_iter()
        .filter_map(|path| body.find(path)?.as_u64());
    let same = told
        .into_iter()
        .all(|size| usize::try_from(size) == Ok(listed));
    body.changed_files("commits", same && listed < LISTED_COMMITS)
}

/// What pull requests have in every event that is about one.
fn with_pull_request(mut event: Event, pull: Fields) -> Result<Event, String> {
    event.pr_number = Some(pull.number("number")?);
    event.pr_title = pull.maybe("title")?;
    event.commit = Some(pull.text("head.sha")?);
    event.base_commit = Some(pull.text("base.sha")?);
    event.happened_ms = pull.time("updated_at")?;
    Ok(event.between(Some(pull.text("head.ref")?), Some(pull.text("base.ref")?)))
}

fn pull_request(post: &Post) -> Result<Heard, String> {
    let body = post.body;
    let told = body.text("action")?;
    let action = match told.as_str() {
        "closed" => "Close",
        "edited" => "Edit",
        "opened" => "Open",
        "reopened" => "Reopen",
        // The second of each is Gitea's word.
        "labeled" | "label_updated" => "Label",
        "unlabeled" | "label_cleared" => "Unlabel",
        "synchronize" | "synchronized" => "Synchronize",
        "ready_for_review" => "ReadyForReview",
        other => return ignored("the action of a pull request", other),
    };
    let pull = body.object("pull_request")?;
    let mut event = with_pull_request(event(post, "PullRequest")?, pull)?;
    event.action = Some(action.to_owned());
    // Two labels that are set at once, or two edits, have one time.
    let label = body.first(&["label.node_id", "label.name"])?;
    let parts = [
        &pull.number("number")?.to_string(),
        &pull.stamp("updated_at")?,
        &label.unwrap_or_default(),
        &body.raw("changes"),
    ];
    Ok(Heard::Event(Box::new(
        event.keyed(&parts.map(String::as_str)),
    )))
}

fn comment(post: &Post) -> Result<Heard, String> {
    let body = post.body;
    let told = body.text("action")?;
    let action = match told.as_str() {
        "created" => "Create",
        "edited" => "Edit",
        "deleted" => "Delete",
        other => return ignored("the action of a comment", other),
    };
    let issue = body.object("issue")?;
    if issue.find("pull_request").is_none() && !body.flag("is_pull")? {
        return ignored(
            "a comment on an issue that is no pull request, number",
            &issue.number("number")?.to_string(),
        );
    }
    let mut event = event(post, "IssueComment")?;
    event.action = Some(action.to_owned());
    event.pr_number = Some(issue.number("number")?);
    event.pr_title = issue.maybe("title")?;
    let comment = body.object("comment")?;
    event.happened_ms = comment.time("updated_at")?;
    let id = comment.number("id")?.to_string();
    let time = comment.stamp("updated_at")?;
    let mut event = event.keyed(&[&id, &time]);
    // Branches and commits are not in the payload of GitHub: whoever needs them asks for the pull request. Gitea sends it.
    if body.find("pull_request").is_some() {
        let pull = body.object("pull_request")?;
        event.commit = pull.maybe("head.sha")?;
        event.base_commit = pull.maybe("base.sha")?;
        event = event.between(pull.maybe("head.ref")?, pull.maybe("base.ref")?);
    }
    Ok(Heard::Event(Box::new(event)))
}

fn review(post: &Post) -> Result<Heard, String> {
    let body = post.body;
    let told = body.text("action")?;
    let action = match told.as_str() {
        "submitted" => "Submitted",
        "edited" => "Edited",
        "dismissed" => "Dismissed",
        other => return ignored("the action of a review", other),
    };
    let pull = body.object("pull_request")?;
    let mut event = with_pull_request(event(post, "PullRequestReview")?, pull)?;
    event.action = Some(action.to_owned());
    let id = body.number("review.id")?.to_string();
    let parts = [
        &id,
        &pull.stamp("updated_at")?,
        &body.stamp("review.submitted_at")?,
    ];
    Ok(Heard::Event(Box::new(
        event.keyed(&parts.map(String::as_str)),
    )))
}

fn release(post: &Post) -> Result<Heard, String> {
    let body = post.body;
    let told = body.text("action")?;
    let action = match told.as_str() {
        "created" => "Create",
        "edited" | "updated" => "Edit",
        "deleted" => "Delete",
        "prereleased" => "Prerelease",
        "published" => "Publish",
        "released" => "Release",
        "unpublished" => "Unpublish",
        other => return ignored("the action of a release", other),
    };
    let release = body.object("release")?;
    let tag = release.text("tag_name")?;
    let mut event = event(post, "Release")?;
    event.action = Some(action.to_owned());
    event.git_ref = Some(format!("refs/tags/{tag}"));
    event.tag = Some(tag);
    let time = ["updated_at", "published_at", "created_at"]
        .into_iter()
        .find(|path| release.find(path).is_some());
    let time = time.unwrap_or("updated_at");
    event.happened_ms = release.time(time)?;
    // Older servers do not say when a release was changed: then only what happens once, or sets a time, is known.
    if time != "updated_at" && !matches!(action, "Create" | "Publish" | "Delete") {
        return Ok(Heard::Event(Box::new(event)));
    }
    let parts = [&release.number("id")?.to_string(), &release.stamp(time)?];
    let event = event.keyed(&parts.map(String::as_str));
    Ok(Heard::Event(Box::new(event)))
}

/// A branch or tag that came or went.
fn created_or_deleted(post: &Post, name: &str) -> Result<Heard, String> {
    let body = post.body;
    let short = body.text("ref")?;
    let kind = body.text("ref_type")?;
    let folder = match kind.as_str() {
        "branch" => "refs/heads/",
        "tag" => "refs/tags/",
        other => return ignored("what was created or deleted, a", other),
    };
    let full = match short.starts_with(folder) {
        true => short,
        false => format!("{folder}{short}"),
    };
    let mut event = event(post, name)?;
    event.happened_ms = body.time("repository.pushed_at")?;
    let commit = body.first(&["sha"])?;
    let event = event.about_ref(&full, commit, None);
    Ok(Heard::Event(Box::new(
        event.keyed(&[&body.stamp("repository.pushed_at")?]),
    )))
}

fn merge_queue(post: &Post) -> Result<Heard, String> {
    let body = post.body;
    let action = body.text("action")?;
    if action != "checks_requested" {
        return ignored("the action of a merge queue", &action);
    }
    let group = body.object("merge_group")?;
    let short = |full: String| {
        full.strip_prefix("refs/heads/")
            .map_or(full.clone(), str::to_owned)
    };
    let mut event = event(post, "MergeQueue")?;
    event.commit = Some(group.text("head_sha")?);
    event.base_commit = Some(group.text("base_sha")?);
    event.committed_ms = group.time("head_commit.timestamp")?;
    let source = short(group.text("head_ref")?);
    let target = short(group.text("base_ref")?);
    Ok(Heard::Event(Box::new(
        event.between(Some(source), Some(target)).keyed(&[]),
    )))
}
