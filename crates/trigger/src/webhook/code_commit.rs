//! AWS CodeCommit (docs.aws.amazon.com: *Monitoring CodeCommit events*), by EventBridge, which nobody outside of the
//! account can write to. Whoever calls this has checked the account.

use serde_json::Value;

use super::field::Fields;
use super::{Heard, Post, finished, ignored};
use crate::{Delivery, Event, Provider};

/// Reads an event of EventBridge.
///
/// # Errors
/// What of it is missing or not as AWS documents it, by its path.
pub fn read_event_bridge(event: &Value) -> Result<Heard, String> {
    let delivery = Delivery {
        headers: Vec::new(),
        body: Vec::new(),
    };
    let post = Post {
        delivery: &delivery,
        body: Fields::of(event),
    };
    finished(heard(&post)?, &delivery, event.clone())
}

fn heard(post: &Post) -> Result<Heard, String> {
    let body = post.body;
    let source = body.text("source")?;
    if source != "aws.codecommit" {
        return ignored("an event of", &source);
    }
    let kind = body.text("detail-type")?;
    if kind != "CodeCommit Repository State Change" {
        return ignored("the event", &kind);
    }
    let detail = body.object("detail")?;
    let what = detail.text("event")?;
    if !matches!(what.as_str(), "referenceCreated" | "referenceUpdated") {
        return ignored("the event", &what);
    }
    let repository = detail.text("repositoryName")?;
    let region = body.text("region")?;
    let event = post.event(Provider::AwsCodeCommit, "Push", repository.clone());
    let folder = match detail.text("referenceType")?.as_str() {
        "tag" => "refs/tags/",
        _ => "refs/heads/",
    };
    let full = match detail.maybe("referenceFullName")? {
        Some(full) => full,
        None => format!("{folder}{}", detail.text("referenceName")?),
    };
    let host = format!("git-codecommit.{region}.amazonaws.com/v1/repos/{repository}");
    let caller = detail.maybe("callerUserArn")?;
    let event = Event {
        urls: vec![format!("https://{host}"), format!("ssh://{host}")],
        user: caller.and_then(|arn| arn.rsplit('/').next().map(str::to_owned)),
        happened_ms: body.time("time")?,
        delivery: Some(body.text("id")?),
        ..event
    };
    let event = event.about_ref(
        &full,
        Some(detail.text("commitId")?),
        detail.maybe("oldCommitId")?,
    );
    let parts = [&body.text("account")?, &region, &body.stamp("time")?];
    Ok(Heard::Event(Box::new(
        event.keyed(&parts.map(String::as_str)),
    )))
}
