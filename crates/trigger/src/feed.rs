//! What artifact and manifest triggers watch, and what of it is new.
//!
//! A [`Feed`] is one repository with the login for it. Triggers that watch the same one have equal feeds, whatever their
//! conditions and filters, so that each is asked once. What a registry has is a list of [`Build`]s; [`new_builds`] says
//! which of them nobody saw before, and [`decide`] whether a trigger starts a run for one.

mod decide;
mod filter;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub use decide::{Holds, decide, facts};

use crate::{FeedSpec, RegionSource};

/// Most versions of a feed that are remembered: as many as an item of the store has room for.
pub const MOST_REMEMBERED: usize = 20_000;

/// Fields of a spec that choose among versions, or decide what a new one starts. They do not say what is watched.
const CHOOSING: &[&str] = &[
    "eventConditions",
    "metaDataConditions",
    "jexlCondition",
    "tag",
    "tagRegex",
    "digest",
    "version",
    "versionRegex",
    "chartVersion",
    "helmVersion",
    "build",
    "filePath",
    "filePathRegex",
    "artifactFilter",
];

/// What is polled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feed {
    /// `Ecr`, `DockerRegistry`, `HelmChart`, ….
    pub kind: String,
    /// The connector with its account, organization and project; of a feed without one, who owns it.
    pub connector: String,
    /// Where it is: the spec without `connectorRef` and without what chooses among versions, names in order.
    pub place: Value,
}

/// A version that is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Build {
    /// Its tag, version, key, name or number.
    pub version: String,
    /// `<+trigger.artifact.metadata.…>`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Build {
    /// A version of which nothing else is known.
    pub fn of(version: impl Into<String>) -> Self {
        Self {
            version: version.into(),
            metadata: Map::new(),
        }
    }
}

impl Feed {
    /// What a trigger with this spec watches. `connector` is the id of the connector that its `connectorRef` leads to, with
    /// its scope: two projects may have connectors of one name. A custom artifact has none; then it is the project.
    pub fn of(spec: &FeedSpec, connector: &str) -> Self {
        Self::new(&spec.kind, &spec.spec, connector)
    }

    /// The same of one source of several regions.
    pub fn new(kind: &str, spec: &Value, connector: &str) -> Self {
        let mut place = placed(spec);
        if let Some(fields) = place.as_object_mut() {
            let is_images = spec["repositoryFormat"] == "docker";
            fields.retain(|name, _| match (kind, name.as_str()) {
                (_, name) if CHOOSING.contains(&name) => false,
                // Of images it is their path; elsewhere one file of many.
                ("ArtifactoryRegistry", "artifactPath") => is_images,
                ("GoogleCloudStorage" | "Jenkins", "artifactPath") => false,
                ("Bamboo", "artifactPaths") => false,
                _ => true,
            });
        }
        if let ("CustomArtifact", Some(fields)) = (kind, place.as_object_mut()) {
            // To a script and its variables blanks may mean something.
            for name in ["script", "inputs"] {
                if let Some(written) = spec.get(name) {
                    fields.insert(name.to_owned(), written.clone());
                }
            }
        }
        Self {
            kind: kind.to_owned(),
            connector: connector.to_owned(),
            place,
        }
    }

    /// A name for it: equal for equal feeds, today and in later versions, and different for different ones.
    pub fn key(&self) -> String {
        let Self {
            kind,
            connector,
            place,
        } = self;
        let text = serde_json::json!([kind, connector, place]).to_string();
        let digest = Sha256::digest(text);
        format!("{kind}-{}", URL_SAFE_NO_PAD.encode(digest))
    }
}

/// A spec with its names in order, without what is empty, without blanks around texts, and without its connector.
fn placed(spec: &Value) -> Value {
    match spec {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, value)| {
                *name != "connectorRef" && !matches!(value, Value::Null) && *value != ""
            });
            let sorted: BTreeMap<&String, Value> =
                kept.map(|(name, value)| (name, placed(value))).collect();
            Value::Object(sorted.into_iter().map(|(k, v)| (k.clone(), v)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(placed).collect()),
        Value::String(text) => Value::from(text.trim()),
        other => other.clone(),
    }
}

/// Of what a registry has now, newest last, what is not among `seen`, which [`remember`] made of earlier answers.
///
/// Where nothing was ever seen nothing is new: a trigger does not start runs for what was there before it, nor for the
/// first version of a repository that was empty (Harness: *the pipeline is only triggered after a second push*). Whether a
/// run starts for each new version or for the last one only is a setting of the project.
pub fn new_builds(seen: &[String], now: &[Build]) -> Vec<Build> {
    if seen.is_empty() {
        return Vec::new();
    }
    let known: HashSet<&str> = seen.iter().map(String::as_str).collect();
    // Where older ones had to be forgotten, what stands before all that is remembered may be one of them.
    let from = match seen.len() >= MOST_REMEMBERED {
        true => {
            let mut marks = now.iter().map(|build| mark(&build.version));
            let oldest_there = marks.position(|mark| known.contains(mark.as_str()));
            oldest_there.unwrap_or(now.len())
        }
        false => 0,
    };
    let mut new = HashSet::new();
    let later = now.iter().skip(from);
    let unseen = later.filter(|build| {
        let mark = mark(&build.version);
        !known.contains(mark.as_str()) && new.insert(mark)
    });
    unseen.cloned().collect()
}

/// What is kept of an answer beside what was seen before, for the next [`new_builds`].
///
/// A version that is gone stays known, so that an answer which leaves some out by mistake does not make them new. What was
/// seen longest ago is forgotten first, beyond [`MOST_REMEMBERED`].
pub fn remember(seen: &[String], now: &[Build]) -> Vec<String> {
    let mut there = HashSet::new();
    let marks = now.iter().map(|build| mark(&build.version));
    let marks: Vec<String> = marks.filter(|mark| there.insert(mark.clone())).collect();
    let gone = seen.iter().filter(|mark| !there.contains(mark.as_str()));
    let all: Vec<String> = gone.cloned().chain(marks).collect();
    let over = all.len().saturating_sub(MOST_REMEMBERED);
    all.into_iter().skip(over).collect()
}

/// A version in eleven letters: 64 bits of its digest.
fn mark(version: &str) -> String {
    let digest = Sha256::digest(version);
    URL_SAFE_NO_PAD.encode(&digest[..8])
}

/// What one region of several is watched and decided by: its own place and filters, and the conditions of all.
pub fn in_region(common: &FeedSpec, region: &RegionSource) -> FeedSpec {
    FeedSpec {
        kind: region.kind.clone(),
        spec: region.spec.clone(),
        ..common.clone()
    }
}

/// What of several regions is in all of them, as the first of them lists it (Harness: *when the artifact version is
/// available across different regions*). No regions have nothing.
pub fn everywhere(regions: &[Vec<Build>]) -> Vec<Build> {
    let Some((first, others)) = regions.split_first() else {
        return Vec::new();
    };
    let others: Vec<HashSet<&str>> = others
        .iter()
        .map(|builds| builds.iter().map(|build| build.version.as_str()).collect())
        .collect();
    let first = first.iter();
    let all = first.filter(|build| {
        others
            .iter()
            .all(|has| has.contains(build.version.as_str()))
    });
    all.cloned().collect()
}
