//! Harness Artifact Registry (developer.harness.io: *Artifact Registry, Webhooks*).

use super::{HARNESS_TRIGGER, Heard, Post, ignored};
use crate::Provider;

pub(super) fn read(post: &Post) -> Result<Heard, String> {
    let body = post.body;
    let told = HARNESS_TRIGGER
        .iter()
        .find_map(|name| post.delivery.header(name));
    let told = match told {
        Some(told) => told.to_owned(),
        None => body.text("trigger")?,
    };
    let action = match told.as_str() {
        "artifact_created" => "ArtifactCreation",
        "artifact_deleted" => "ArtifactDeletion",
        other => return ignored("the event", other),
    };
    let registry = body.first(&["registry.name", "registry.identifier"])?;
    let registry = registry.ok_or("`registry.name` of the payload is missing")?;
    let mut event = post.event(Provider::HarnessArtifactRegistry, "Artifact", registry);
    event.action = Some(action.to_owned());
    event.urls.extend(body.maybe("registry.url")?);
    event.user = body.first(&["principal.uid", "principal.display_name"])?;
    event.email = body.maybe("principal.email")?;
    let artifact = body.object("artifact_info")?;
    let time = ["updated_at", "created_at", "timestamp"]
        .into_iter()
        .find(|path| artifact.find(path).is_some());
    let time = time.unwrap_or("timestamp");
    event.happened_ms = artifact.time(time)?;
    let digest = artifact
        .first(&["artifact.digest", "digest"])?
        .unwrap_or_default();
    let version = artifact
        .first(&["version", "artifact.tag"])?
        .unwrap_or_default();
    let name = artifact.text("name")?;
    // The same version may come, go and come again: without a digest or a time nothing tells that from a repetition.
    let stamp = artifact.stamp(time)?;
    match digest.is_empty() && stamp.is_empty() {
        true => Ok(Heard::Event(Box::new(event))),
        false => Ok(Heard::Event(Box::new(
            event.keyed(&[&name, &version, &digest, &stamp]),
        ))),
    }
}
