//! Fetches what a plan or a form refers to, round after round, until nothing new appears.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use slipway_model::Kind;
use slipway_model::entity::{self, Parsed};
use slipway_model::id::{EntityId, Scope};
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::remote::{MOST_BYTES, MOST_FILES};
use slipway_plan::{
    ArtifactAnswer, ConnectorPlan, EVERY, Entities as _, FILE, FOLDER, Fetched, Found,
    ListedVersions, Plan, Reference, RemoteFiles, ServicePlan, Snapshot, Wanted, WantedArtifact,
};
use slipway_store::Page;
use slipway_store::record::EntityRecord;
use slipway_trigger::feed::{Build, Feed};

use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::intake::hook::WantedHook;
use crate::remote::{self, GitChange, GitFault, GitSaved};
use crate::runs::Runs;

/// Rounds of fetching what a plan refers to; each goes one reference deeper.
const MOST_ROUNDS: u32 = 32;

/// Most infrastructures of one environment that a stage may choose from.
const MOST_LISTED: usize = 1_000;

/// Reads from where users keep things: files in Git repositories and buckets, artifacts in registries.
#[async_trait]
pub trait SourceReader: Send + Sync {
    /// The files of each, in the order of `wanted`, or why they cannot be had: what was read, from where, what
    /// went wrong and what to do. What names the same version of the same place is read at the same commit.
    /// No error holds a secret.
    async fn fetch_files(&self, wanted: &[RemoteFiles]) -> Vec<Result<Fetched, String>>;

    /// What registries say, in the order of `wanted`, or why they say nothing: which registry was asked for what, what
    /// went wrong and what to do. No error holds a secret.
    async fn find_artifacts(
        &self,
        wanted: &[WantedArtifact],
    ) -> Vec<Result<ArtifactAnswer, String>>;

    /// So many of the versions that there are of what a question is about, behind the first `skip`; or why they cannot be
    /// told. No error holds a secret.
    async fn list_versions(
        &self,
        wanted: &WantedArtifact,
        skip: usize,
        most: usize,
    ) -> Result<ListedVersions, String>;

    /// Whether what a connector, whose reference was written in `scope`, leads to can be reached and takes its login;
    /// `None` where connectors of its type are not tested. No error holds a secret.
    async fn test_connection(
        &self,
        connector: &ConnectorPlan,
        scope: &Scope,
    ) -> Option<Result<(), Failure>>;

    /// The files of a change. Nobody is asked by who only runs pipelines.
    ///
    /// # Errors
    /// Why they cannot be told.
    async fn changed_files(&self, wanted: &WantedChange) -> Result<ChangedPaths, ChangeFault> {
        let name = &wanted.connector.reference;
        Err(ChangeFault {
            message: format!(
                "changed files are not asked for here, by the connector {name} neither"
            ),
            passing: false,
        })
    }

    /// What there is to know of the pull request of a change. Nobody is asked by who only runs pipelines.
    ///
    /// # Errors
    /// Why it cannot be told.
    async fn pull_request(&self, wanted: &WantedChange) -> Result<PullRequest, ChangeFault> {
        let name = &wanted.connector.reference;
        Err(ChangeFault {
            message: format!(
                "pull requests are not asked for here, by the connector {name} neither"
            ),
            passing: false,
        })
    }

    /// Sees to it that a repository has a webhook, whether it has one at that URL already or not. Refused by who only reads.
    ///
    /// # Errors
    /// Why it may not have it. Holds no secret.
    async fn register_hook(&self, wanted: &WantedHook) -> Result<(), Failure> {
        let name = &wanted.connector.reference;
        Err(Failure {
            error: ErrorType::Unknown,
            message: format!(
                "webhooks are not registered from here, with the connector {name} neither"
            ),
            left_behind: None,
        })
    }

    /// Makes a commit that changes one file of a repository. Refused by who only reads.
    ///
    /// # Errors
    /// Why it was not made; then nothing was written.
    async fn save_file(&self, change: &GitChange) -> Result<GitSaved, GitFault> {
        let message = format!("{} is not written from here", change.path);
        Err(GitFault::Failed(message))
    }

    /// What a feed has now; `state` is that of the last answer. Nobody is asked by who only runs pipelines.
    ///
    /// # Errors
    /// Why it cannot be told.
    async fn poll_feed(
        &self,
        feed: &Feed,
        _connector: Option<&ConnectorPlan>,
        _scope: &Scope,
        _state: Option<&str>,
    ) -> Result<FeedAnswer, FeedFault> {
        Err(FeedFault {
            message: format!("{} feeds are not asked here", feed.kind),
            wait: None,
        })
    }

    /// The work of a delegate that asks a feed of `scope`, where it takes a script; `None` for a feed that
    /// [`SourceReader::poll_feed`] asks.
    ///
    /// # Errors
    /// Why the script cannot run.
    fn errand(&self, _feed: &Feed, _scope: &Scope) -> Result<Option<FeedErrand>, FeedFault> {
        Ok(None)
    }

    /// What the result of such work says. Nobody is asked by who only runs pipelines.
    ///
    /// # Errors
    /// Why it says nothing.
    fn errand_answer(&self, feed: &Feed, _result: &Value) -> Result<FeedAnswer, FeedFault> {
        Err(FeedFault {
            message: format!("{} feeds are not asked here", feed.kind),
            wait: None,
        })
    }
}

/// Work of a delegate that asks a feed.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedErrand {
    /// `ShellScript`.
    pub task_type: String,
    /// What to do; secrets are references, never values.
    pub payload: Value,
    /// Selectors that the delegate must carry.
    pub selectors: Vec<String>,
    /// How long it may take once a delegate has taken it.
    pub timeout: Duration,
}

/// A change whose files, or whose pull request, are asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedChange {
    /// The connector of the repository, and the login for its API.
    pub connector: ConnectorPlan,
    /// Where the connector's reference was written.
    pub scope: Scope,
    /// The repository, where the connector has several.
    pub repository: Option<String>,
    /// What changed.
    pub change: Change,
    /// Whose API the host has.
    pub api: HostApi,
}

/// Whose API a host of repositories has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostApi {
    /// The one that the type of the connector says.
    OfConnector,
    /// Gitea or Forgejo, whose connectors are of GitHub's type.
    Gitea,
    /// Harness Code, which has no type of connectors.
    HarnessCode,
}

/// What changed files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A pull request, by its number.
    PullRequest(u64),
    /// A push.
    Push {
        /// The commit before it.
        before: String,
        /// The commit after it.
        after: String,
    },
}

/// The files of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedPaths {
    /// Their paths in the repository, sorted.
    pub files: Vec<String>,
    /// Whether these are all.
    pub complete: bool,
}

/// A pull request as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullRequest {
    /// The branch that it is made from.
    pub source_branch: Option<String>,
    /// The branch that it goes into.
    pub target_branch: Option<String>,
    /// The newest commit of what it is made from.
    pub commit: Option<String>,
    /// The commit that it goes into.
    pub base_commit: Option<String>,
}

/// Why it cannot be told which files changed, or what a pull request is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeFault {
    /// For people. Holds no secret.
    pub message: String,
    /// Whether it may be told later.
    pub passing: bool,
}

/// What a feed of artifacts or charts has.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedAnswer {
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
pub struct FeedFault {
    /// For people. Holds no secret.
    pub message: String,
    /// How long the registry wants to be left alone.
    pub wait: Option<Duration>,
}

/// Answers what an earlier run asked as it was answered then, so that whatever is done again is done to the same.
pub(crate) struct AsBefore<'a> {
    pub(crate) inner: &'a dyn SourceReader,
    pub(crate) plan: &'a Plan,
}

impl AsBefore<'_> {
    fn answer(&self, wanted: &WantedArtifact) -> Option<ArtifactAnswer> {
        let stages = self.plan.groups.iter().flatten();
        let services = stages.filter_map(|stage| stage.service.as_ref());
        let artifacts = services.flat_map(ServicePlan::sources);
        let mut pinned = artifacts.filter_map(|artifact| artifact.pinned.as_ref());
        let same = pinned.find(|pinned| pinned.question == wanted.question)?;
        Some(ArtifactAnswer::Found(same.found.clone()))
    }
}

#[async_trait]
impl SourceReader for AsBefore<'_> {
    async fn fetch_files(&self, wanted: &[RemoteFiles]) -> Vec<Result<Fetched, String>> {
        self.inner.fetch_files(wanted).await
    }

    async fn find_artifacts(
        &self,
        wanted: &[WantedArtifact],
    ) -> Vec<Result<ArtifactAnswer, String>> {
        let known: Vec<_> = wanted.iter().map(|one| self.answer(one)).collect();
        let new = wanted
            .iter()
            .zip(&known)
            .filter(|(_, known)| known.is_none());
        let new: Vec<_> = new.map(|(one, _)| one.clone()).collect();
        let mut answers = match new.is_empty() {
            true => Vec::new(),
            false => self.inner.find_artifacts(&new).await,
        }
        .into_iter();
        let next = |known: Option<ArtifactAnswer>| match known {
            Some(known) => Ok(known),
            None => answers
                .next()
                .unwrap_or_else(|| Err("nobody answered".to_owned())),
        };
        known.into_iter().map(next).collect()
    }

    async fn list_versions(
        &self,
        wanted: &WantedArtifact,
        skip: usize,
        most: usize,
    ) -> Result<ListedVersions, String> {
        self.inner.list_versions(wanted, skip, most).await
    }

    async fn test_connection(
        &self,
        connector: &ConnectorPlan,
        scope: &Scope,
    ) -> Option<Result<(), Failure>> {
        self.inner.test_connection(connector, scope).await
    }
}

/// What `ask` asks for, fetched until nothing new appears. Without `sources` nothing is read from other places.
pub(crate) async fn gathered(
    runs: &Runs,
    sources: Option<&dyn SourceReader>,
    ask: impl Fn(&Snapshot) -> Wanted,
) -> Result<Snapshot, RunError> {
    let mut known = Snapshot::default();
    for _ in 0..MOST_ROUNDS {
        let wanted = known.unknown(ask(&known));
        let outside = !wanted.files.is_empty() || !wanted.artifacts.is_empty();
        let nothing_more = wanted.references.is_empty() && (sources.is_none() || !outside);
        if nothing_more {
            break;
        }
        for reference in wanted.references {
            let found = match is_file(&known, &reference) {
                true => None,
                false => fetch(runs, sources, &reference).await?,
            };
            known.put(reference, found);
        }
        let Some(sources) = sources.filter(|_| outside) else {
            continue;
        };
        let fetch = async {
            match wanted.files.is_empty() {
                true => Vec::new(),
                false => sources.fetch_files(&wanted.files).await,
            }
        };
        let find = async {
            match wanted.artifacts.is_empty() {
                true => Vec::new(),
                false => sources.find_artifacts(&wanted.artifacts).await,
            }
        };
        let (fetched, answers) = tokio::join!(fetch, find);
        for (wanted, fetched) in wanted.files.into_iter().zip(fetched) {
            known.put_files(wanted, fetched);
        }
        for (wanted, answer) in wanted.artifacts.into_iter().zip(answers) {
            known.put_artifact(wanted, answer);
        }
    }
    Ok(known)
}

/// Whether a path that is asked for as a folder is known to be a file: then there is nothing to read.
fn is_file(known: &Snapshot, reference: &Reference) -> bool {
    let folder = reference.kind == FILE && reference.parent.is_some();
    folder
        && known
            .get(&Reference {
                parent: None,
                ..reference.clone()
            })
            .is_some()
}

async fn fetch(
    runs: &Runs,
    sources: Option<&dyn SourceReader>,
    reference: &Reference,
) -> Result<Option<Found>, RunError> {
    let Reference {
        scope,
        kind,
        parent,
        id,
    } = reference;
    let read = async |parent: Option<&EntityId>, id: &EntityId| {
        let found = runs.store.find_entity(scope, kind, parent, id).await;
        found.doing(|| format!("read {kind} {id}"))
    };
    if id.as_str() == EVERY {
        return fetch_all(runs, sources, reference).await.map(Some);
    }
    let mut found = read(parent.as_ref(), id).await?;
    let mut name = format!("{kind} {id}");
    if *kind == Kind::Template.key() {
        match (parent, found.as_ref()) {
            (Some(template), _) => name = format!("{kind} {template} {id}"),
            // The record of a template says which of its versions is the stable one.
            (None, Some(record)) => {
                let stable = EntityId::new(record.yaml.trim());
                name = format!("{kind} {id} {stable}");
                found = read(Some(id), &stable).await?;
            }
            (None, None) => {}
        }
    }
    if *kind == FILE && parent.is_some() {
        let folder = found.is_some();
        let files = below(runs, reference).await?;
        return Ok((folder || !files.is_empty()).then_some(Found::Files(files)));
    }
    let Some(record) = found else {
        return Ok(None);
    };
    if *kind == FILE {
        return Ok(Some(Found::File(record.yaml.into())));
    }
    let parsed = current(runs, sources, record, name).await?;
    Ok(Some(Found::Entity(parsed)))
}

/// What an entity says: at the newest commit of its branch, where it is kept in Git and somebody reads there. `name` is what
/// faults call its YAML otherwise.
async fn current(
    runs: &Runs,
    sources: Option<&dyn SourceReader>,
    record: EntityRecord,
    name: String,
) -> Result<Arc<Parsed>, RunError> {
    let (record, name) = match (sources, &record.git) {
        (Some(sources), Some(_)) => {
            let read = Box::pin(remote::read(runs, sources, &record, None)).await?;
            let name = remote::name(&read);
            (read, name)
        }
        _ => (record, name),
    };
    let parsed = entity::parse(&name, &record.yaml);
    Ok(Arc::new(parsed.map_err(RunError::faulty)?))
}

/// Every entity of a kind below a parent, in the order of their identifiers.
async fn fetch_all(
    runs: &Runs,
    sources: Option<&dyn SourceReader>,
    reference: &Reference,
) -> Result<Found, RunError> {
    let Reference {
        scope,
        kind,
        parent,
        ..
    } = reference;
    let mut all = Vec::new();
    let mut page = Page::first(MOST_LISTED);
    loop {
        let found = runs
            .store
            .list_entities(scope, kind, parent.as_ref(), page)
            .await;
        let found = found.doing(|| format!("list every {kind}"))?;
        for record in found.items {
            let name = format!("{kind} {}", record.id);
            all.push(current(runs, sources, record, name).await?);
        }
        match found.next {
            Some(next) if all.len() < MOST_LISTED => {
                page = Page {
                    limit: MOST_LISTED,
                    after: Some(next),
                }
            }
            _ => return Ok(Found::Many(all)),
        }
    }
}

/// The files of the file store below a folder, in the order of their paths.
async fn below(runs: &Runs, reference: &Reference) -> Result<Vec<(String, Arc<str>)>, RunError> {
    debug_assert_eq!(
        reference.parent.as_ref().map(EntityId::as_str),
        Some(FOLDER)
    );
    let folder = format!("{}/", reference.id);
    let (mut files, mut bytes) = (Vec::new(), 0);
    let mut after = folder.clone();
    loop {
        let page = Page {
            limit: MOST_FILES,
            after: Some(after),
        };
        let found = runs.store.list_entities(&reference.scope, FILE, None, page);
        let found = found.await.doing(|| format!("list the folder {folder}"))?;
        for record in found.items {
            let path = record.id.to_string();
            if !path.starts_with(&folder) {
                return Ok(files);
            }
            bytes += record.yaml.len();
            if files.len() == MOST_FILES || bytes > MOST_BYTES {
                let message = format!(
                    "the folder {folder} of the file store has more than {MOST_FILES} files or {MOST_BYTES} bytes: name its files, or a folder inside of it"
                );
                return Err(RunError::refused(ErrorName::TooLarge, message));
            }
            files.push((path, record.yaml.into()));
        }
        match found.next {
            Some(next) => after = next,
            None => return Ok(files),
        }
    }
}
