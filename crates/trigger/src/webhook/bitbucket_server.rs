//! Bitbucket Server and Data Center (confluence.atlassian.com: *Event payload*).

use super::field::Fields;
use super::{Heard, Post};
use crate::{Event, Provider};

/// `None` where the server has no such event.
pub(super) fn read(post: &Post, key: &str) -> Option<Result<Heard, String>> {
    Some(match key {
        "repo:refs_changed" => push(post),
        "pr:opened" => pull_request(post, "Create"),
        "pr:modified" | "pr:from_ref_updated" => pull_request(post, "Update"),
        "pr:merged" => pull_request(post, "Merge"),
        "pr:declined" => pull_request(post, "Decline"),
        "pr:comment:added" => comment(post, "Create"),
        "pr:comment:edited" => comment(post, "Edit"),
        "pr:comment:deleted" => comment(post, "Delete"),
        _ => return None,
    })
}

/// An event of a repository, which stands elsewhere in each payload.
fn event(post: &Post, name: &str, repository: Fields) -> Result<Event, String> {
    let project = repository.text("project.key")?;
    let slug = repository.text("slug")?;
    let mut event = post.event(Provider::Bitbucket, name, format!("{project}/{slug}"));
    for kind in ["links.clone", "links.self"] {
        for (at, link) in repository.list(kind)?.iter().enumerate() {
            let href = Fields::of(link)
                .maybe("href")
                .map_err(|why| format!("{kind}.{at}: {why}"))?;
            event.urls.extend(href);
        }
    }
    event.user = post.body.maybe("actor.name")?;
    event.email = post.body.maybe("actor.emailAddress")?;
    event.happened_ms = post.body.time("date")?;
    Ok(event)
}

fn push(post: &Post) -> Result<Heard, String> {
    let body = post.body;
    let repository = body.object("repository")?;
    let mut events = Vec::new();
    for (at, change) in body.list("changes")?.iter().enumerate() {
        let event = changed(post, repository, Fields::of(change))
            .map_err(|why| format!("changes.{at}: {why}"))?;
        events.extend(event);
    }
    Ok(Heard::of(
        events,
        "the push changes nothing but what it deletes",
    ))
}

/// `None` where the ref was deleted.
fn changed(post: &Post, repository: Fields, change: Fields) -> Result<Option<Event>, String> {
    if change.text("type")? == "DELETE" {
        return Ok(None);
    }
    let event = event(post, "Push", repository)?;
    let (to, from) = (change.text("toHash")?, change.text("fromHash")?);
    let event = event.about_ref(&change.text("ref.id")?, Some(to), Some(from));
    Ok(Some(event.keyed(&[&post.body.stamp("date")?])))
}

/// What pull requests have, also in the events of comments. The repository is the one that it goes into.
fn with_pull_request(post: &Post, name: &str, action: &str) -> Result<Event, String> {
    let pull = post.body.object("pullRequest")?;
    let mut event = event(post, name, pull.object("toRef.repository")?)?;
    event.action = Some(action.to_owned());
    event.pr_number = Some(pull.number("id")?);
    event.pr_title = pull.maybe("title")?;
    event.commit = Some(pull.text("fromRef.latestCommit")?);
    event.base_commit = pull.maybe("toRef.latestCommit")?;
    let branch = |end: &str| {
        let full = pull.text(&format!("{end}.id"))?;
        Ok::<_, String>(
            full.strip_prefix("refs/heads/")
                .map_or(full.clone(), str::to_owned),
        )
    };
    Ok(event.between(Some(branch("fromRef")?), Some(branch("toRef")?)))
}

fn pull_request(post: &Post, action: &str) -> Result<Heard, String> {
    let event = with_pull_request(post, "PullRequest", action)?;
    let number = event.pr_number.unwrap_or_default().to_string();
    Ok(Heard::Event(Box::new(
        event.keyed(&[&number, &post.body.stamp("date")?]),
    )))
}

fn comment(post: &Post, action: &str) -> Result<Heard, String> {
    let event = with_pull_request(post, "PRComment", action)?;
    let id = post.body.number("comment.id")?.to_string();
    Ok(Heard::Event(Box::new(
        event.keyed(&[&id, &post.body.stamp("date")?]),
    )))
}
