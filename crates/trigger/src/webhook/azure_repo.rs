//! Azure Repos (learn.microsoft.com: *Service hooks events*). What happened stands in the body; no header says it.

use super::field::Fields;
use super::{Heard, Post, ignored, is_nothing};
use crate::{Event, Provider};

pub(super) fn read(post: &Post) -> Result<Heard, String> {
    let kind = post.body.text("eventType")?;
    match kind.as_str() {
        "git.push" => push(post),
        "git.pullrequest.created" => pull_request(post, "Create"),
        "git.pullrequest.updated" => pull_request(post, "Update"),
        "git.pullrequest.merged" => merged(post),
        "ms.vss-code.git-pullrequest-comment-event" => comment(post),
        other => ignored("the event", other),
    }
}

/// An event of a repository: `project/repository`.
fn event(post: &Post, name: &str, repository: Fields) -> Result<Event, String> {
    let project = repository.text("project.name")?;
    let own = repository.text("name")?;
    let mut event = post.event(Provider::AzureRepo, name, format!("{project}/{own}"));
    for url in ["remoteUrl", "webUrl", "sshUrl"] {
        event.urls.extend(repository.maybe(url)?);
    }
    event.happened_ms = post.body.time("createdDate")?;
    // The id of the notification is the same when it is sent again.
    event.delivery = event.delivery.or(post.body.maybe("id")?);
    Ok(event)
}

/// Azure names people by their address.
fn with_user(mut event: Event, of: Fields, who: &str) -> Result<Event, String> {
    event.user = of.first(&[&format!("{who}.uniqueName"), &format!("{who}.displayName")])?;
    event.email = event.user.clone().filter(|name| name.contains('@'));
    Ok(event)
}

/// One push may move several refs.
fn push(post: &Post) -> Result<Heard, String> {
    let resource = post.body.object("resource")?;
    let mut events = Vec::new();
    for (at, update) in resource.list("refUpdates")?.iter().enumerate() {
        let event = moved(post, resource, Fields::of(update))
            .map_err(|why| format!("resource.refUpdates.{at}: {why}"))?;
        events.extend(event);
    }
    Ok(Heard::of(
        events,
        "the push changes nothing but what it deletes",
    ))
}

/// `None` where the ref was deleted.
fn moved(post: &Post, resource: Fields, update: Fields) -> Result<Option<Event>, String> {
    let new = update.text("newObjectId")?;
    if is_nothing(&new) {
        return Ok(None);
    }
    let event = event(post, "Push", resource.object("repository")?)?;
    let mut event = with_user(event, resource, "pushedBy")?;
    event.happened_ms = resource.time("date")?.or(event.happened_ms);
    let before = update.maybe("oldObjectId")?;
    // Commits of Azure name no files.
    let event = event.about_ref(&update.text("name")?, Some(new), before);
    let id = resource.number("pushId")?.to_string();
    Ok(Some(event.keyed(&[&id])))
}

/// What pull requests have, wherever they stand in the payload.
fn with_pull_request(post: &Post, name: &str, action: &str, pull: Fields) -> Result<Event, String> {
    let event = event(post, name, pull.object("repository")?)?;
    let mut event = with_user(event, pull, "createdBy")?;
    event.action = Some(action.to_owned());
    event.pr_number = Some(pull.number("pullRequestId")?);
    event.pr_title = pull.maybe("title")?;
    event.commit = pull.maybe("lastMergeSourceCommit.commitId")?;
    event.base_commit = pull.maybe("lastMergeTargetCommit.commitId")?;
    let branch = |path: &str| {
        let full = pull.text(path)?;
        Ok::<_, String>(
            full.strip_prefix("refs/heads/")
                .map_or(full.clone(), str::to_owned),
        )
    };
    Ok(event.between(
        Some(branch("sourceRefName")?),
        Some(branch("targetRefName")?),
    ))
}

fn pull_request(post: &Post, action: &str) -> Result<Heard, String> {
    let event = with_pull_request(post, "PullRequest", action, post.body.object("resource")?)?;
    let number = event.pr_number.unwrap_or_default().to_string();
    let time = post.body.stamp("createdDate")?;
    Ok(Heard::Event(Box::new(event.keyed(&[&number, &time]))))
}

/// Azure tries merges all the time and tells of each try: merged is what is completed.
fn merged(post: &Post) -> Result<Heard, String> {
    let status = post.body.text("resource.status")?;
    match status.as_str() {
        "completed" => pull_request(post, "Merge"),
        other => ignored(
            "a merge that was only tried: the status of the pull request",
            other,
        ),
    }
}

fn comment(post: &Post) -> Result<Heard, String> {
    let resource = post.body.object("resource")?;
    let comment = resource.object("comment")?;
    let published = comment.stamp("publishedDate")?;
    let updated = comment.stamp("lastUpdatedDate")?;
    let action = match () {
        () if comment.flag("isDeleted")? => "Delete",
        () if published == updated || updated.is_empty() => "Create",
        () => "Edit",
    };
    let pull = resource.object("pullRequest")?;
    let event = with_pull_request(post, "IssueComment", action, pull)?;
    let mut event = with_user(event, comment, "author")?;
    event.happened_ms = comment.time("lastUpdatedDate")?.or(event.happened_ms);
    let number = event.pr_number.unwrap_or_default().to_string();
    // Comments are counted in each thread, so that their id alone is not enough.
    let thread = comment.maybe("_links.threads.href")?.unwrap_or_default();
    let id = comment.number("id")?.to_string();
    Ok(Heard::Event(Box::new(
        event.keyed(&[&number, &thread, &id, &updated]),
    )))
}
