//! Which versions a feed has now, for the triggers that watch it.
//!
//! | feed | asked | order | asked only for what changed |
//! |---|---|---|---|
//! | registries of images (`DockerRegistry`; `Acr`, `Gcr`, `GoogleArtifactRegistry`; Artifactory, Nexus) | tags, OCI distribution API | the registry's | where tags have an `ETag` |
//! | `Ecr`, `AmazonS3`, `AmazonMachineImage` | as for artifacts of services | time | – |
//! | `GithubPackageRegistry` | versions of a package | time | `ETag` |
//! | `ArtifactoryRegistry`, generic | files, AQL | time | – |
//! | `Nexus3Registry`, other formats | search of components | time | – |
//! | `Nexus2Registry`, Maven, npm | folders of an artifact, metadata of a package | time | where Nexus has an `ETag` |
//! | `Nexus2Registry`, NuGet | versions of a package | time | – |
//! | `AzureArtifacts` | versions of a package | time | – |
//! | `Jenkins` | builds of a job that went well | number | where Jenkins has an `ETag` |
//! | `Bamboo` | builds of a plan that went well | number | – |
//! | `GoogleCloudStorage` | objects of a bucket, JSON API | time | – |
//! | `GceImage` | images of a project, with filters and labels | time | – |
//! | `CustomArtifact` | a delegate, by a script ([`script`]) | name | – |
//! | `HelmChart` | `index.yaml` by HTTP or of a bucket of S3 or Google; tags of an OCI registry | time | `ETag`, `Last-Modified` |
//!
//! An answer that is equal to the last one is told as such, whoever finds it out. A host that is busy or broken is left
//! alone for as long as it says, or longer each time, but at least a second and at most five minutes ([`held`]).

mod account;
mod azure;
mod bamboo;
mod chart;
mod files;
mod google;
mod held;
mod images;
mod jenkins;
pub(crate) mod listed;
mod nexus;
mod nexus2;
mod nuget;
mod packages;
pub(crate) mod script;
mod server;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use slipway_model::id::Scope;
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::ConnectorPlan;
use slipway_steps::secrets::Secrets;
use slipway_trigger::feed::{Build, Feed};

pub(crate) use chart::registry as chart_registry;
pub(crate) use held::Held;

use super::Asking;
use crate::fault::Fault;

/// Most versions of one feed.
const MOST_BUILDS: usize = 100_000;
/// Most of an index of charts, bytes: those of large public repositories have some 20 MB.
const LARGEST_INDEX: usize = 48 << 20;
/// Longest validator of an answer that is kept, bytes.
const LONGEST_VALIDATOR: usize = 1024;

/// What a feed has.
#[derive(Clone, Debug, PartialEq)]
pub enum Polled {
    /// What it had when the state was made.
    Unchanged,
    /// This.
    Builds {
        /// Its versions, the newest last.
        builds: Vec<Build>,
        /// For the next time.
        state: Option<String>,
    },
}

/// Why it cannot be told what a feed has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollFault {
    /// Why. Holds no secret.
    pub failure: Failure,
    /// The host that wants to be left alone, and for how long.
    pub wait: Option<(String, Duration)>,
}

/// The same, on the way up.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) fault: Fault,
    pub(crate) wait: Option<(String, Duration)>,
}

impl<F: Into<Fault>> From<F> for Trouble {
    fn from(fault: F) -> Self {
        Self {
            fault: fault.into(),
            wait: None,
        }
    }
}

impl Trouble {
    fn told(self, tell: impl FnOnce(String) -> String) -> Self {
        Self {
            fault: self.fault.told(tell),
            ..self
        }
    }
}

impl From<Trouble> for PollFault {
    fn from(trouble: Trouble) -> Self {
        Self {
            failure: trouble.fault.into(),
            wait: trouble.wait,
        }
    }
}

/// What is kept of an answer.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Known {
    /// `ETag` of what holds everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    /// Its `Last-Modified`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
    /// The digest of all that was listed.
    #[serde(default)]
    digest: String,
    /// Where only the newest are listed, the oldest of them when that began: what comes into view below it later, because
    /// newer ones were deleted, is not new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    floor: Option<i64>,
}

/// What a feed answers.
enum Answer {
    /// Nothing changed since [`Known`].
    Same,
    /// All there is.
    All(Listed),
}

/// All there is.
#[derive(Default)]
struct Listed {
    builds: Vec<Build>,
    etag: Option<String>,
    modified: Option<String>,
    floor: Option<i64>,
}

impl From<Vec<Build>> for Listed {
    fn from(builds: Vec<Build>) -> Self {
        Self {
            builds,
            ..Self::default()
        }
    }
}

/// One question to one feed.
struct Poll<'a> {
    asking: Asking<'a>,
    held: &'a Held,
    connector: &'a ConnectorPlan,
    scope: &'a Scope,
    place: &'a Value,
    known: Known,
}

/// What there is, for [`crate::Source::builds`].
pub(crate) async fn poll(
    asking: Asking<'_>,
    held: &Held,
    feed: &Feed,
    (connector, scope): (Option<&ConnectorPlan>, &Scope),
    state: Option<&str>,
    secrets: &mut Secrets<'_>,
) -> Result<Polled, Trouble> {
    let wanted = connectors(feed)?;
    let Some(connector) = connector else {
        return Err(format!("a feed of type {} needs a connector", feed.kind).into());
    };
    if !wanted.contains(&connector.kind.as_str()) {
        return Err(format!(
            "connector {} is of type {}, and a feed of type {} needs one of type {}",
            connector.reference,
            connector.kind,
            feed.kind,
            wanted.join(" or ")
        )
        .into());
    }
    // A state that another version wrote is none.
    let known = state.and_then(|text| serde_json::from_str(text).ok());
    let poll = Poll {
        asking,
        held,
        connector,
        scope,
        place: &feed.place,
        known: known.unwrap_or_default(),
    };
    let listed = match poll.ask(&feed.kind, secrets).await? {
        Answer::Same => return Ok(Polled::Unchanged),
        Answer::All(listed) => listed,
    };
    if listed.builds.len() > MOST_BUILDS {
        return Err(format!("it has more than {MOST_BUILDS} versions there").into());
    }
    let digest = digest(&listed.builds);
    if digest == poll.known.digest {
        return Ok(Polled::Unchanged);
    }
    let short = |text: &String| text.len() <= LONGEST_VALIDATOR;
    let known = Known {
        etag: listed.etag.filter(short),
        modified: listed.modified.filter(short),
        digest,
        floor: listed.floor,
    };
    Ok(Polled::Builds {
        builds: listed.builds,
        state: serde_json::to_string(&known).ok(),
    })
}

/// What is said where nobody answers in time.
pub(crate) fn late(feed: &Feed, limit: Duration) -> Trouble {
    let why = format!(
        "the registry of the {} trigger did not answer within {} s: check the address and the network",
        feed.kind,
        limit.as_secs()
    );
    Fault::new(ErrorType::Timeout, why).into()
}

/// Which connectors a feed goes with.
fn connectors(feed: &Feed) -> Result<&'static [&'static str], Fault> {
    Ok(match feed.kind.as_str() {
        "DockerRegistry" => &["DockerRegistry"],
        "Ecr" | "AmazonS3" | "AmazonMachineImage" => &["Aws"],
        "GithubPackageRegistry" => &["Github"],
        "ArtifactoryRegistry" => &["Artifactory"],
        "Nexus2Registry" | "Nexus3Registry" => &["Nexus"],
        "AzureArtifacts" => &["AzureArtifacts"],
        "Jenkins" => &["Jenkins"],
        "Bamboo" => &["Bamboo"],
        "Gcr" | "GoogleArtifactRegistry" | "GoogleCloudStorage" | "GceImage" => &["Gcp"],
        "Acr" => &["Azure"],
        "HelmChart" => match feed.place["store"]["type"].as_str().unwrap_or_default() {
            "Http" | "OciHelmChart" => &["HttpHelmRepo", "OciHelmRepo"],
            "S3" => &["Aws"],
            "Gcs" => &["Gcp"],
            other => {
                return Err(format!(
                    "charts in a store of type {other} are not polled by this version: use Http, S3 or Gcs"
                )
                .into());
            }
        },
        "CustomArtifact" => {
            return Err(
                "a script (CustomArtifact) is asked by a delegate, and not from here"
                    .to_owned()
                    .into(),
            );
        }
        other => {
            return Err(format!(
                "artifacts of type {other} are not polled by this version: start the pipeline by a custom webhook from \
                 where the artifact is made"
            )
            .into());
        }
    })
}

impl Poll<'_> {
    async fn ask(&self, kind: &str, secrets: &mut Secrets<'_>) -> Result<Answer, Trouble> {
        match kind {
            "Ecr" | "AmazonS3" | "AmazonMachineImage" => {
                account::ask(self, kind, secrets).await.map(Answer::All)
            }
            "ArtifactoryRegistry" if self.text("repositoryFormat") != Some("docker") => {
                files::ask(self, secrets).await
            }
            "Nexus3Registry" if self.text("repositoryFormat") != Some("docker") => {
                nexus::ask(self, secrets).await
            }
            "GithubPackageRegistry" => packages::ask(self, secrets).await,
            "GoogleCloudStorage" => google::objects(self, secrets).await,
            "GceImage" => google::images(self, secrets).await,
            "Nexus2Registry" => nexus2::ask(self, secrets).await,
            "AzureArtifacts" => azure::ask(self, secrets).await,
            "Jenkins" => jenkins::ask(self, secrets).await,
            "Bamboo" => bamboo::ask(self, secrets).await,
            "HelmChart" => chart::ask(self, secrets).await,
            _ => images::ask(self, kind, secrets).await,
        }
    }

    /// A field of the place that is filled.
    fn text(&self, name: &str) -> Option<&str> {
        let text = self.place[name].as_str();
        text.filter(|text| !text.is_empty())
    }

    /// A field without which nothing can be asked. What only a run knows is not known to a trigger.
    fn must(&self, name: &str) -> Result<&str, Fault> {
        match self.text(name) {
            Some(text) if text.contains("<+") => Err(format!(
                "`{name}` of the trigger is `{text:.100}`: a trigger has no run whose expressions it could know; write a \
                 fixed value"
            )
            .into()),
            Some(text) => Ok(text),
            None => Err(format!("`{name}` of the trigger is missing").into()),
        }
    }

    /// Where the connector leads.
    fn address(&self, field: &str) -> Result<&str, Fault> {
        let written = self.connector.spec[field].as_str().map(str::trim);
        let filled = written.filter(|text| !text.is_empty());
        filled.ok_or_else(|| {
            format!("connector {} has no `{field}`", self.connector.reference).into()
        })
    }
}

/// What all of a list is, in its order.
fn digest(builds: &[Build]) -> String {
    let mut digest = Sha256::new();
    for build in builds {
        for part in [
            build.version.as_str(),
            &Value::Object(build.metadata.clone()).to_string(),
        ] {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
    }
    let digest = digest.finalize();
    digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A version with what is told of it; texts that are missing are left out.
fn build<const N: usize>(version: &str, told: [(&str, Option<String>); N]) -> Build {
    let told = told.into_iter().filter_map(|(name, text)| {
        let text = text.filter(|text| !text.is_empty())?;
        Some((name.to_owned(), Value::from(text)))
    });
    Build {
        version: version.to_owned(),
        metadata: told.collect::<Map<_, _>>(),
    }
}

/// Versions with their times or numbers, in that order; those of the same by name.
fn in_order(mut all: Vec<(i64, Build)>) -> Vec<(i64, Build)> {
    all.sort_by(|(at, a), (other, b)| (at, &a.version).cmp(&(other, &b.version)));
    all
}

/// Of a list of which only the newest are shown (`is_cut`), those that came into view from above.
fn from_floor(all: Vec<(i64, Build)>, is_cut: bool, known: Option<i64>) -> Listed {
    let mut all = in_order(all);
    let oldest = all.first().map(|(at, _)| *at).filter(|_| is_cut);
    let floor = known.or(oldest);
    if let Some(floor) = floor {
        all.retain(|(at, _)| *at >= floor);
    }
    Listed {
        builds: all.into_iter().map(|(_, build)| build).collect(),
        floor,
        ..Listed::default()
    }
}
