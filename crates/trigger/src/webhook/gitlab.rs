//! GitLab (docs.gitlab.com: *Webhook events*).

use super::{Heard, Post, ignored, is_nothing};
use crate::{Event, Provider};

pub(super) fn read(post: &Post) -> Result<Heard, String> {
    // Group webhooks send `System Hook` for some events; what happened stands in the body either way.
    let kind = post.body.text("object_kind")?;
    match kind.as_str() {
        "push" => push(post),
        "tag_push" => tag(post),
        "merge_request" => merge_request(post),
        "note" => comment(post),
        "pipeline" => pipeline(post),
        other => ignored("the event", other),
    }
}

/// An event of the project of the payload.
fn event(post: &Post, name: &str) -> Result<Event, String> {
    let body = post.body;
    let mut event = post.event(
        Provider::Gitlab,
        name,
        body.text("project.path_with_namespace")?,
    );
    for url in [
        "web_url",
        "git_http_url",
        "git_ssh_url",
        "http_url",
        "ssh_url",
        "url",
    ] {
        event.urls.extend(body.maybe(&format!("project.{url}"))?);
    }
    event.user = body.first(&["user_username", "user.username"])?;
    // GitLab hides addresses as `[REDACTED]`.
    let email = body.first(&["user_email", "user.email"])?;
    event.email = email.filter(|email| email.contains('@'));
    Ok(event)
}

/// A push of a branch, or of a tag where `name` says so. `None` where it deletes.
fn pushed(post: &Post, name: &str) -> Result<Option<Event>, String> {
    let body = post.body;
    let git_ref = body.text("ref")?;
    let after = body.text("after")?;
    if is_nothing(&after) {
        return Ok(None);
    }
    let before = body.text("before")?;
    let mut event = event(post, name)?;
    let listed = body.list("commits")?;
    let total = body
        .find("total_commits_count")
        .and_then(serde_json::Value::as_u64);
    let all = total.is_none_or(|total| usize::try_from(total) == Ok(listed.len()));
    event.changed_files = body.changed_files("commits", all)?;
    let newest = listed
        .len()
        .checked_sub(1)
        .map(|at| format!("commits.{at}.timestamp"));
    event.committed_ms = newest.as_deref().map_or(Ok(None), |path| body.time(path))?;
    // An annotated tag is an object of its own: what it is of is what is checked out.
    let commit = body.maybe("checkout_sha")?.unwrap_or_else(|| after.clone());
    let event = event.about_ref(&git_ref, Some(commit), Some(before.clone()));
    Ok(Some(event.keyed(&[&before, &after])))
}

fn push(post: &Post) -> Result<Heard, String> {
    match pushed(post, "Push")? {
        Some(event) => Ok(Heard::Event(Box::new(event))),
        None => ignored("the push that deletes", &post.body.text("ref")?),
    }
}

/// A tag that is pushed is a push too: triggers of both kinds listen to it.
fn tag(post: &Post) -> Result<Heard, String> {
    let events = [pushed(post, "Tag")?, pushed(post, "Push")?];
    Ok(Heard::of(
        events.into_iter().flatten().collect(),
        "the tag was deleted: that starts no pipelines",
    ))
}

fn merge_request(post: &Post) -> Result<Heard, String> {
    let body = post.body;
    let request = body.object("object_attributes")?;
    let Some(told) = request.maybe("action")? else {
        return Ok(Heard::Ignored(
            "the merge request has no action: nothing happened to it".to_owned(),
        ));
    };
    let action = match told.as_str() {
        "open" => "Open",
        "close" => "Close",
        "reopen" => "Reopen",
        "merge" => "Merge",
        // The commit of before stands there where there are new ones, and only there.
        "update" if request.find("oldrev").is_some() => "Sync",
        "update" => "Update",
        other => return ignored("the action of a merge request", other),
    };
    let mut event = event(post, "MergeRequest")?;
    event.action = Some(action.to_owned());
    event.pr_number = Some(request.number("iid")?);
    event.pr_title = request.maybe("title")?;
    event.commit = request.maybe("last_commit.id")?;
    event.base_commit = request.maybe("diff_refs.base_sha")?;
    event.happened_ms = request.time("updated_at")?;
    event = event.between(
        Some(request.text("source_branch")?),
        Some(request.text("target_branch")?),
    );
    let parts = [
        &request.number("iid")?.to_string(),
        &request.stamp("updated_at")?,
        &request.stamp("oldrev")?,
        &body.raw("changes"),
    ];
    Ok(Heard::Event(Box::new(
        event.keyed(&parts.map(String::as_str)),
    )))
}

fn comment(post: &Post) -> Result<Heard, String> {
    let body = post.body;
    let note = body.object("object_attributes")?;
    let about = note.text("noteable_type")?;
    if about != "MergeRequest" {
        return ignored("a comment on a", &about);
    }
    // Older versions say no action: they told of new comments only.
    let action = note.maybe("action")?.unwrap_or_else(|| "create".to_owned());
    if action != "create" {
        return ignored("the action of a comment", &action);
    }
    let request = body.object("merge_request")?;
    let mut event = event(post, "MRComment")?;
    event.action = Some("Create".to_owned());
    event.pr_number = Some(request.number("iid")?);
    event.pr_title = request.maybe("title")?;
    event.commit = request.maybe("last_commit.id")?;
    event.happened_ms = note.time("created_at")?;
    event = event.between(
        Some(request.text("source_branch")?),
        Some(request.text("target_branch")?),
    );
    Ok(Heard::Event(Box::new(
        event.keyed(&[&note.number("id")?.to_string()]),
    )))
}

/// A pipeline of GitLab changed its status.
fn pipeline(post: &Post) -> Result<Heard, String> {
    let body = post.body;
    let pipeline = body.object("object_attributes")?;
    let name = pipeline.text("ref")?;
    let mut event = event(post, "PipelineHook")?;
    let folder = match pipeline.flag("tag")? {
        true => "refs/tags/",
        false => "refs/heads/",
    };
    let full = match name.starts_with("refs/") {
        true => name,
        false => format!("{folder}{name}"),
    };
    event = event.about_ref(
        &full,
        Some(pipeline.text("sha")?),
        pipeline.maybe("before_sha")?,
    );
    if let Some(request) = body.find("merge_request") {
        let request = super::Fields::of(request);
        event.pr_number = Some(request.number("iid")?);
        event.pr_title = request.maybe("title")?;
        event = event.between(
            request.maybe("source_branch")?,
            request.maybe("target_branch")?,
        );
    }
    event.happened_ms = match pipeline.time("finished_at")? {
        Some(time) => Some(time),
        None => pipeline.time("created_at")?,
    };
    let parts = [
        &pipeline.number("id")?.to_string(),
        &pipeline.text("status")?,
        &pipeline.stamp("finished_at")?,
        // A job that is run again makes the same pipeline run again.
        &body.raw("builds"),
    ];
    Ok(Heard::Event(Box::new(
        event.keyed(&parts.map(String::as_str)),
    )))
}
