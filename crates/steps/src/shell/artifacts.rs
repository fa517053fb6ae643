//! Lists of artifacts that scripts write (`CustomArtifact`): what is asked of one, and how the delegate reads it. Only what was
//! chosen leaves the delegate, so that a list may be long; triggers are told all versions.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use slipway_expr::{Limits, Reason, Value, is_json_path, select_json};
use slipway_plan::{ArtifactVersion, FoundArtifact};

/// The environment variable that names the file for the list (docs: continuous-delivery/x-platform-cd-features/services/
/// add-a-custom-artifact-source-for-cd).
pub const RESULT_PATH: &str = "HARNESS_ARTIFACT_RESULT_PATH";

/// Most bytes of a list.
pub const MOST_BYTES: u64 = 10_000_000;

/// Most bytes of all versions with their attributes that are told to who wants all.
const MOST_TOLD: usize = 2_000_000;

/// Most bytes of a version with its attributes.
const MOST_CHOSEN: usize = 64 * 1024;

/// Most memory for a compiled pattern, bytes.
const LARGEST_PATTERN: usize = 1 << 20;

/// Work for finding the array in a list of [`MOST_BYTES`].
const ARRAY_STEPS: usize = 10_000_000;

/// What is asked of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// Which of the stage's artifact sources this is about.
    pub source: usize,
    /// Path to the array of artifacts.
    pub array: String,
    /// Path to the version in each artifact.
    pub version: String,
    /// Paths in the artifact to what is told as its metadata, by name.
    pub attributes: BTreeMap<String, String>,
    /// Which version is wanted.
    pub wanted: ArtifactVersion,
    /// Whether all versions are, as triggers look for those that are new ([`Listing::all`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub every: bool,
}

/// What was chosen from a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Chosen {
    /// [`Listing::source`].
    pub source: usize,
    /// The version and its metadata.
    pub found: FoundArtifact,
}

impl Listing {
    /// Reads a list and chooses from it; `mask` takes the values of secrets out of a text.
    ///
    /// # Errors
    /// What is wrong with the list, and what to do. It quotes nothing of the list but versions, masked.
    pub fn choose(&self, list: &[u8], mask: impl Fn(&str) -> String) -> Result<Chosen, String> {
        let wanted = Wanted::new(&self.wanted)?;
        let artifacts = self.artifacts(list)?;
        let mut last: Option<(String, &Value)> = None;
        for (number, artifact) in artifacts.iter().enumerate() {
            let version = self.version_of(number, artifact)?;
            let later = last
                .as_ref()
                .is_none_or(|(known, _)| compared(known, &version) == Ordering::Less);
            if wanted.fits(&version) && later {
                last = Some((version, artifact));
            }
        }
        let Some((version, artifact)) = last else {
            return Err(format!(
                "its script lists {} artifacts, and none of them has a version {}: {}",
                artifacts.len(),
                wanted.told(),
                match artifacts.as_slice() {
                    [] => "see that the script asks the right place",
                    _ => "name one that is there, or see that the script lists it",
                }
            ));
        };
        if mask(&version) != version {
            return Err(
                "the chosen version holds the value of a secret, and versions are shown: set `versionPath` to something \
                 else"
                    .to_owned(),
            );
        }
        let metadata = self.metadata(artifact, &mask)?;
        let bytes = told(&version, &metadata);
        if bytes > MOST_CHOSEN {
            return Err(format!(
                "the chosen artifact and its attributes have {bytes} bytes, and at most {MOST_CHOSEN} can be kept: take \
                 attributes out"
            ));
        }
        Ok(Chosen {
            source: self.source,
            found: FoundArtifact {
                version,
                digest: None,
                metadata,
            },
        })
    }

    /// Reads a list and tells all that is in it, by name, each version once; `mask` takes the values of secrets out of a
    /// text.
    ///
    /// # Errors
    /// As [`Listing::choose`]; and where there is more than can be told.
    pub fn all(
        &self,
        list: &[u8],
        mask: impl Fn(&str) -> String,
    ) -> Result<Vec<FoundArtifact>, String> {
        let artifacts = self.artifacts(list)?;
        let (mut all, mut known, mut bytes) = (Vec::new(), HashSet::new(), 0);
        for (number, artifact) in artifacts.iter().enumerate() {
            let version = self.version_of(number, artifact)?;
            if !known.insert(version.clone()) {
                continue;
            }
            if mask(&version) != version {
                let nth = number + 1;
                return Err(format!(
                    "the version of artifact {nth} of the list holds the value of a secret, and versions are shown: set \
                     `versionPath` to something else"
                ));
            }
            let metadata = self.metadata(artifact, &mask)?;
            bytes += told(&version, &metadata);
            if bytes > MOST_TOLD {
                return Err(format!(
                    "its script lists {} artifacts, and with their attributes they have more than the {MOST_TOLD} bytes \
                     that can be told: let it list the newest only, or take attributes out",
                    artifacts.len()
                ));
            }
            all.push(FoundArtifact {
                version,
                digest: None,
                metadata,
            });
        }
        all.sort_by(|one, other| compared(&one.version, &other.version));
        Ok(all)
    }

    /// The artifacts of a list.
    fn artifacts(&self, list: &[u8]) -> Result<Vec<Value>, String> {
        if list.trim_ascii().is_empty() {
            return Err(format!(
                "its script wrote nothing into the file that ${RESULT_PATH} names: let it write JSON there"
            ));
        }
        let json: serde_json::Value = serde_json::from_slice(list).map_err(|error| {
            format!(
                "what its script wrote into the file that ${RESULT_PATH} names is no JSON (line {}, column {}): see what \
                 it writes there, an error page for instance",
                error.line(),
                error.column()
            )
        })?;
        let limits = Limits {
            steps: ARRAY_STEPS,
            ..Limits::default()
        };
        let found = select_json(&self.array, &Value::from_json(&json), &limits);
        let found = found.map_err(|why| {
            format!(
                "`artifactsArrayPath` does not lead to the artifacts that its script lists: {why}"
            )
        })?;
        match found {
            Value::List(artifacts) => Ok(artifacts),
            other => Err(format!(
                "`artifactsArrayPath` leads to {} in what its script wrote, and not to an array: correct the path \
                 (`{:.80}`)",
                other.kind(),
                self.array
            )),
        }
    }

    fn version_of(&self, number: usize, artifact: &Value) -> Result<String, String> {
        let nth = number + 1;
        let found = select_json(&self.version, artifact, &Limits::default());
        let found = found.map_err(|why| {
            format!("`versionPath` does not lead to a version in artifact {nth} of the list: {why}")
        })?;
        let text = match &found {
            Value::String(_) | Value::Int(_) | Value::Float(_) => found.text(),
            _ => None,
        };
        text.filter(|text| !text.trim().is_empty()).ok_or_else(|| {
            format!(
                "`versionPath` leads to {} in artifact {nth} of the list, and a version is a text or a number that is not \
                 empty: correct the path (`{:.80}`), or let the script leave such artifacts out",
                found.kind(),
                self.version
            )
        })
    }

    /// What the attributes are of an artifact; those that it does not have are left out.
    fn metadata(
        &self,
        artifact: &Value,
        mask: &impl Fn(&str) -> String,
    ) -> Result<BTreeMap<String, String>, String> {
        let mut metadata = BTreeMap::new();
        for (name, path) in &self.attributes {
            if !is_json_path(path) {
                return Err(format!(
                    "the attribute `{name}` has `{path:.80}`, which is no path such as assets[0].downloadUrl"
                ));
            }
            match select_json(path, artifact, &Limits::default()) {
                Ok(Value::Null) => {}
                Ok(found) => {
                    let text = found.text().unwrap_or_default();
                    metadata.insert(name.clone(), mask(&text));
                }
                Err(why @ Reason::Limit { .. }) => {
                    return Err(format!("the attribute `{name}`: {why}"));
                }
                Err(_) => {}
            }
        }
        Ok(metadata)
    }
}

/// Bytes of a version with what is told of it.
fn told(version: &str, metadata: &BTreeMap<String, String>) -> usize {
    let size = |(name, value): (&String, &String)| name.len() + value.len();
    version.len() + metadata.iter().map(size).sum::<usize>()
}

/// Which versions are wanted.
enum Wanted<'a> {
    Exact(&'a str),
    Pattern(&'a str, Regex),
    Any,
}

impl<'a> Wanted<'a> {
    fn new(version: &'a ArtifactVersion) -> Result<Self, String> {
        let pattern = match version {
            ArtifactVersion::Exact(name) => return Ok(Self::Exact(name)),
            ArtifactVersion::Last => return Ok(Self::Any),
            ArtifactVersion::Pattern(pattern) => pattern,
        };
        let build = |text: &str| RegexBuilder::new(text).size_limit(LARGEST_PATTERN).build();
        // By itself first: `a)|(b` must not become a pattern by what is put around it.
        let built = build(pattern).and_then(|_| build(&format!("^(?:{pattern})$")));
        let regex = built.map_err(|_| {
            format!(
                "`versionRegex`: `{pattern:.80}` is no regular expression that can be used: it is not well formed, too \
                 large, or uses look-around or back-references"
            )
        })?;
        Ok(Self::Pattern(pattern, regex))
    }

    fn fits(&self, version: &str) -> bool {
        match self {
            Self::Exact(name) => *name == version,
            Self::Pattern(_, regex) => regex.is_match(version),
            Self::Any => true,
        }
    }

    fn told(&self) -> String {
        match self {
            Self::Exact(name) => format!("called {name}"),
            Self::Pattern(pattern, _) => format!("that matches `{pattern}` as a whole"),
            Self::Any => "at all".to_owned(),
        }
    }
}

/// Versions by name, with the numbers in them as numbers: 1.10 comes after 1.9.
fn compared(one: &str, other: &str) -> Ordering {
    parts(one).cmp(&parts(other)).then_with(|| one.cmp(other))
}

/// The parts of a version: texts have the length 0, and numbers that of their digits.
fn parts(version: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let mut rest = version;
    while let Some(first) = rest.chars().next() {
        let digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digit);
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        parts.push(match digit {
            true => {
                let bare = part.trim_start_matches('0');
                (1 + bare.len(), bare)
            }
            false => (0, part),
        });
        rest = after;
    }
    parts
}

#[cfg(test)]
#[path = "artifacts_tests.rs"]
mod tests;
