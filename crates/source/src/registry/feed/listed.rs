//! Artifacts of services that are no images, in registries that are asked as triggers ask them: for all that there is.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_plan::{ArtifactAnswer, FoundArtifact, ListedVersion, ListedVersions, WantedArtifact};
use slipway_steps::http::address;
use slipway_steps::secrets::Secrets;
use slipway_trigger::feed::{Build, Feed};

use super::super::{Asking, Choice, is_loopback, place};
use super::{Held, Polled, poll};

/// The version that a source means: of several the newest.
pub(crate) async fn find(
    asking: Asking<'_>,
    wanted: &WantedArtifact,
    (kind, spec): (&str, &Value),
    choice: &Choice,
    secrets: &mut Secrets<'_>,
) -> Result<ArtifactAnswer, String> {
    if asking.targets.is_sandbox() && !is_here(asking, wanted) {
        let why = format!(
            "the account is the sandbox, which fetches nothing, so that {} is not asked; one on this machine would be",
            place(wanted)
        );
        return Ok(ArtifactAnswer::Unasked(why));
    }
    let builds = all(asking, wanted, (kind, spec), secrets).await?;
    let count = builds.len();
    let mut fits = builds
        .into_iter()
        .rev()
        .filter(|build| choice.fits(&build.version));
    match fits.next() {
        Some(build) => Ok(ArtifactAnswer::Found(found(build))),
        None => Err(format!(
            "{} has {count} versions, and none {}: name one that is there",
            place(wanted),
            choice.told()
        )),
    }
}

/// A part of the versions that there are, the newest first.
pub(crate) async fn list(
    asking: Asking<'_>,
    wanted: &WantedArtifact,
    (kind, spec): (&str, &Value),
    (skip, most): (usize, usize),
    secrets: &mut Secrets<'_>,
) -> Result<ListedVersions, String> {
    let builds = all(asking, wanted, (kind, spec), secrets).await?;
    let total = builds.len();
    let part = builds.into_iter().rev().skip(skip).take(most);
    Ok(ListedVersions {
        total,
        versions: part
            .map(|build| ListedVersion {
                found: found(build),
                at_ms: None,
            })
            .collect(),
    })
}

async fn all(
    asking: Asking<'_>,
    wanted: &WantedArtifact,
    (kind, spec): (&str, &Value),
    secrets: &mut Secrets<'_>,
) -> Result<Vec<Build>, String> {
    let feed = Feed::new(kind, spec, "");
    let whose = (Some(&wanted.connector), &wanted.scope);
    // Nobody who waits for a plan is told to come back later because somebody else asked too often.
    let held = Held::default();
    match Box::pin(poll(asking, &held, &feed, whose, None, secrets)).await {
        Ok(Polled::Builds { builds, .. }) => Ok(builds),
        // Nobody said what it had before.
        Ok(Polled::Unchanged) => Ok(Vec::new()),
        Err(trouble) => Err(trouble.fault.why),
    }
}

fn found(build: Build) -> FoundArtifact {
    let told = build.metadata.into_iter();
    let told = told.filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
    FoundArtifact {
        version: build.version,
        digest: None,
        metadata: told.collect::<BTreeMap<_, _>>(),
    }
}

/// Whether the registry is on this machine.
fn is_here(asking: Asking<'_>, wanted: &WantedArtifact) -> bool {
    let fields = ["azureArtifactsUrl", "bambooUrl", "nexusServerUrl"];
    let spec = &wanted.connector.spec;
    let written = fields.iter().find_map(|field| spec[*field].as_str());
    let url = written.or(asking.google_compute);
    url.is_some_and(|url| address::url(url.trim()).is_ok_and(|url| is_loopback(&url)))
}
