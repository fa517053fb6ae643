//! Bitbucket Cloud (support.atlassian.com: *Event payloads*). Its own server, Data Center, sends other payloads under the
//! same header: [`super::bitbucket_server`].

use super::field::Fields;
use super::{Heard, Post, bitbucket_server, ignored};
use crate::{Event, Provider};

pub(super) fn read(post: &Post) -> Result<Heard, String> {
    let key = post.delivery.header("x-event-key");
    let key = key.ok_or("the header X-Event-Key is missing: it says what happened")?;
    match key {
        "repo:push" => push(post),
        "pullrequest:created" => pull_request(post, "Create"),
        "pullrequest:updated" => pull_request(post, "Update"),
        "pullrequest:fulfilled" => pull_request(post, "Merge"),
        "pullrequest:rejected" => pull_request(post, "Decline"),
        "pullrequest:comment_created" => comment(post, "Create"),
        "pullrequest:comment_updated" => comment(post, "Edit"),
        "pullrequest:comment_deleted" => comment(post, "Delete"),
        "diagnostics:ping" => Ok(Heard::Ignored("a ping: the webhook is set up".to_owned())),
        other => match bitbucket_server::read(post, other) {
            Some(heard) => heard,
            None => ignored("the event", other),
        },
    }
}

/// An event of the repository of the payload.
fn event(post: &Post, name: &str) -> Result<Event, String> {
    let body = post.body;
    let full = body.text("repository.full_name")?;
    let mut event = post.event(Provider::Bitbucket, name, full.clone());
    event.urls.extend(body.maybe("repository.links.html.href")?);
    // The payload has the web address only; those for Git follow from it.
    event.urls.push(format!("https://bitbucket.org/{full}.git"));
    event.urls.push(format!("git@bitbucket.org:{full}.git"));
    event.user = body.first(&["actor.nickname", "actor.username", "actor.display_name"])?;
    Ok(event)
}

/// One push may move several refs.
fn push(post: &Post) -> Result<Heard, String> {
    let changes = post.body.list("push.changes")?;
    let mut events = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        let event =
            changed(post, Fields::of(change)).map_err(|why| format!("push.changes.{at}: {why}"))?;
        events.extend(event);
    }
    Ok(Heard::of(
        events,
        "the push changes nothing but what it deletes",
    ))
}

/// `None` where the ref was deleted.
fn changed(post: &Post, change: Fields) -> Result<Option<Event>, String> {
    if change.find("new").is_none() {
        return Ok(None);
    }
    let new = change.object("new")?;
    let folder = match new.text("type")?.as_str() {
        "tag" | "annotated_tag" => "refs/tags/",
        _ => "refs/heads/",
    };
    let mut event = event(post, "Push")?;
    let author = change.maybe("new.target.author.raw")?.unwrap_or_default();
    event.email = author
        .rsplit_once('<')
        .and_then(|(_, end)| Some(end.split_once('>')?.0.to_owned()));
    event.committed_ms = change.time("new.target.date")?;
    let commit = new.text("target.hash")?;
    let before = change.maybe("old.target.hash")?;
    let name = new.text("name")?;
    // Commits of Bitbucket name no files.
    let event = event.about_ref(&format!("{folder}{name}"), Some(commit), before);
    Ok(Some(event.keyed(&[&new.stamp("target.date")?])))
}

/// What pull requests have, also in the events of comments.
fn with_pull_request(post: &Post, name: &str, action: &str) -> Result<(Event, String), String> {
    let pull = post.body.object("pullrequest")?;
    let mut event = event(post, name)?;
    event.action = Some(action.to_owned());
    event.pr_number = Some(pull.number("id")?);
    event.pr_title = pull.maybe("title")?;
    event.commit = pull.maybe("source.commit.hash")?;
    event.base_commit = pull.maybe("destination.commit.hash")?;
    event.happened_ms = pull.time("updated_on")?;
    let source = pull.text("source.branch.name")?;
    let target = pull.text("destination.branch.name")?;
    Ok((
        event.between(Some(source), Some(target)),
        pull.stamp("updated_on")?,
    ))
}

fn pull_request(post: &Post, action: &str) -> Result<Heard, String> {
    let (event, time) = with_pull_request(post, "PullRequest", action)?;
    let number = event.pr_number.unwrap_or_default().to_string();
    Ok(Heard::Event(Box::new(event.keyed(&[&number, &time]))))
}

fn comment(post: &Post, action: &str) -> Result<Heard, String> {
    let (mut event, _) = with_pull_request(post, "PRComment", action)?;
    let comment = post.body.object("comment")?;
    event.happened_ms = comment.time("updated_on")?;
    let id = comment.number("id")?.to_string();
    let time = comment.stamp("updated_on")?;
    Ok(Heard::Event(Box::new(event.keyed(&[&id, &time]))))
}
