//! Artifacts that registries keep: what a plan asks, and what somebody who may do I/O answers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_model::duration;
use slipway_model::id::Scope;

use crate::{ArtifactPlan, ConnectorPlan};

/// A question to a registry, with what is needed to ask it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WantedArtifact {
    /// Says how to get there; its expressions are evaluated, its secrets are references.
    pub connector: ConnectorPlan,
    /// Where the connector's reference was written.
    pub scope: Scope,
    /// What is asked.
    pub question: ArtifactQuestion,
}

/// Which version of what. The same question about a run that is retried has the answer of that run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactQuestion {
    /// The connector as the source names it; empty where a script is asked.
    pub connector: String,
    /// Where the artifact is kept.
    pub place: ArtifactPlace,
    /// Which version is wanted; without one it is the `digest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<ArtifactVersion>,
    /// The digest that the version must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Where an artifact is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ArtifactPlace {
    /// A repository of a registry that speaks the OCI distribution API.
    Image {
        /// The address below which `/v2/` is.
        registry: String,
        /// The repository.
        repository: String,
    },
    /// A repository of Amazon ECR.
    Ecr {
        /// The region.
        region: String,
        /// The account of the registry; that of the connector's credentials without one.
        registry: Option<String>,
        /// The repository.
        repository: String,
    },
    /// A bucket of Amazon S3; versions are keys of objects.
    S3 {
        /// The region; that of the connector without one.
        region: Option<String>,
        /// The bucket.
        bucket: String,
    },
    /// Amazon machine images; versions are their names.
    Ami {
        /// The region.
        region: String,
        /// Filters of `DescribeImages`, name and value.
        filters: Vec<(String, String)>,
    },
    /// What is no image and is told by the list of all that there is, as triggers are: packages, builds, images of machines of
    /// Google.
    Listed {
        /// The type of the source.
        kind: String,
        /// `spec` of the source without its version and connector, and with what it has below `spec`.
        spec: Value,
    },
    /// What a script lists that runs on a delegate, while the run goes on.
    Script {
        /// `spec` of the source without its version.
        spec: Value,
    },
}

/// Which version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ArtifactVersion {
    /// This one: a tag, a key, a name.
    Exact(String),
    /// The last of those that a regular expression matches from their first to their last character.
    Pattern(String),
    /// The last of all.
    Last,
}

/// What a registry said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArtifactAnswer {
    /// This is it.
    Found(FoundArtifact),
    /// Nobody asked, and why: the artifact stays what the source says.
    Unasked(String),
}

/// A version that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundArtifact {
    /// Its tag, key or name; empty where only a digest was asked for.
    pub version: String,
    /// What it is, whatever its name will mean later: `sha256:…` of an image, the id of a machine image, the version
    /// of an object in a bucket that keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What else `<+artifact.metadata.…>` tells.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// A version in a list of those that there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedVersion {
    /// The version; registries that would have to be asked about each tell no digest.
    pub found: FoundArtifact,
    /// When it was pushed, written or made, epoch milliseconds, where the registry tells.
    pub at_ms: Option<i64>,
}

/// A part of the versions that there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedVersions {
    /// How many there are in all.
    pub total: usize,
    /// The part, newest first; by name, the last first, where the registry tells no times.
    pub versions: Vec<ListedVersion>,
}

/// What a plan keeps of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PinnedArtifact {
    /// What was asked.
    pub question: ArtifactQuestion,
    /// What was answered.
    pub found: FoundArtifact,
}

impl ArtifactQuestion {
    /// Whether it names one version, and does not choose among several.
    pub fn is_exact(&self) -> bool {
        !matches!(
            self.version,
            Some(ArtifactVersion::Pattern(_) | ArtifactVersion::Last)
        )
    }
}

impl ArtifactPlace {
    /// How long its script may run, where it is one and says so.
    pub(crate) fn script_time(&self) -> Option<Duration> {
        let Self::Script { spec } = self else {
            return None;
        };
        duration::parse(spec["timeout"].as_str()?).ok()
    }

    /// The place as registries call it, once its texts hold no expressions: a repository of Docker Hub without an owner
    /// is one of `library`, and GitHub's have small letters only.
    pub fn settled(self) -> Self {
        let Self::Image {
            registry,
            repository,
        } = self
        else {
            return self;
        };
        let path = repository.trim_matches('/');
        let repository = match registry.as_str() {
            DOCKER_HUB if !path.contains('/') => format!("library/{path}"),
            GITHUB => path.to_ascii_lowercase(),
            _ => path.to_owned(),
        };
        Self::Image {
            registry,
            repository,
        }
    }
}

impl FoundArtifact {
    /// What was found becomes a part of the plan, whose texts are evaluated: whoever may name an object in a bucket must
    /// not write expressions with that. Why it must not become one.
    pub fn strange(&self) -> Option<String> {
        let mut all = self
            .metadata
            .values()
            .chain([&self.version])
            .chain(&self.digest);
        let strange = all.find(|text| text.contains("<+"))?;
        Some(format!(
            "the registry names `{strange}`, and names with `<+` would be read as expressions: give it another name"
        ))
    }
}

/// The fields that name a version and a pattern of versions, by the type of a source.
pub(crate) fn fields(kind: &str) -> [&'static str; 2] {
    match kind {
        "AmazonS3" => ["filePath", "filePathRegex"],
        "AmazonMachineImage"
        | "AzureArtifacts"
        | CUSTOM
        | "GceImage"
        | "GithubPackageRegistry"
        | "GoogleArtifactRegistry" => ["version", "versionRegex"],
        // The schema has no pattern of builds.
        "Bamboo" => ["build", "buildRegex"],
        _ => ["tag", "tagRegex"],
    }
}

impl ArtifactPlan {
    /// Puts what was found into the plan of a source.
    pub(crate) fn pin(&mut self, pinned: PinnedArtifact) {
        let found = &pinned.found;
        let named = !found.version.is_empty();
        let [exact, _] = fields(&self.kind);
        if let Some(spec) = self.spec.as_object_mut() {
            if named {
                spec.insert(exact.to_owned(), found.version.as_str().into());
            }
            if let Some(registry) = found.metadata.get("registryId") {
                spec.insert("registryId".to_owned(), registry.as_str().into());
            }
        }
        if named && self.kind != "AmazonS3" {
            self.tag = Some(found.version.clone());
        }
        if self.kind == CUSTOM {
            self.image.clone_from(&self.tag);
        }
        self.pinned = Some(Box::new(pinned));
    }
}

/// The type of sources whose versions a script lists.
pub(crate) const CUSTOM: &str = "CustomArtifact";

/// The types of sources that are asked as triggers ask ([`ArtifactPlace::Listed`]).
pub(crate) const LISTED: [&str; 4] = ["AzureArtifacts", "Bamboo", "GceImage", "Nexus2Registry"];

/// The address of GitHub's registry.
pub(crate) const GITHUB: &str = "https://ghcr.io";

/// The address of Docker Hub's registry.
const DOCKER_HUB: &str = "https://registry-1.docker.io";

/// Docker Hub answers under several names and is called by one.
fn of_docker_hub(host: &str) -> bool {
    let names = [
        "index.docker.io",
        "registry.hub.docker.com",
        "hub.docker.com",
        "docker.io",
        "registry-1.docker.io",
    ];
    names.contains(&host)
}

/// The address below which `/v2/` is of a Docker registry as connectors write it, and whether it is Docker Hub.
pub fn docker_registry(url: &str) -> (String, bool) {
    let url = url.trim_end_matches('/');
    let bare = ["/v2", "/v1"]
        .iter()
        .find_map(|version| url.strip_suffix(version));
    let url = bare.unwrap_or(url).trim_end_matches('/');
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    if of_docker_hub(rest.split('/').next().unwrap_or_default()) {
        return (DOCKER_HUB.to_owned(), true);
    }
    (format!("{scheme}://{rest}"), false)
}
