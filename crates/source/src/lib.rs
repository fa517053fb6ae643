//! Reads manifests and config files from where users keep them: Git repositories, S3 buckets, and in local mode
//! folders of this machine. Asks registries which versions of artifacts there are ([`registry`]), for plans and for the
//! triggers that watch them ([`Source::builds`]), providers which files a change touches and to post what happens ([`hook`]),
//! and whether what connectors lead
//! to takes their logins ([`connection`]).
//!
//! A plan says what it needs ([`slipway_plan::RemoteFiles`]) and does no I/O; the engine asks a
//! [`SourceReader`], and [`Source`] is the one that there is. Nothing is written anywhere but into temporary
//! folders that are removed, and every read is bounded in files, bytes and time.
//!
//! This room knows connectors and their secrets. It must not know runs, lanes or the REST API.

mod changed;
mod collect;
mod connection;
mod fault;
mod folder;
mod git;
mod hook;
mod nearest;
mod registry;
mod s3;
mod token;
mod tree;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use jiff::Timestamp;
use serde_json::Value;
use slipway_clock::Clock;
use slipway_engine::gather::{
    ChangeFault, ChangedPaths, FeedAnswer, FeedErrand, FeedFault, PullRequest, SourceReader,
    WantedChange,
};
use slipway_engine::intake::hook::WantedHook;
use slipway_engine::remote::{GitChange, GitFault, GitSaved};
use slipway_model::id::Scope;
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::{
    ArtifactAnswer, ConnectorPlan, Fetched, ListedVersions, RemoteFiles, RemotePlace,
    WantedArtifact,
};
use slipway_steps::aws::AwsTargets;
use slipway_steps::secrets::{SecretSource, Secrets};
use slipway_trigger::feed::Feed;

use fault::Fault;
pub use git::ssh::SshConfig;
pub use registry::feed::{PollFault, Polled};

/// Time for everything that one round of planning asks for: less than API Gateway gives to a request.
const LIMIT: Duration = Duration::from_secs(20);

/// Registries that are asked at once.
const AT_ONCE: usize = 16;

/// What a process allows.
#[derive(Clone, Debug)]
pub struct SourceConfig {
    /// Time for everything that one round of planning asks for.
    pub limit: Duration,
    /// Whether Git connectors may name folders of this machine (`file:///srv/shop`). Only for local mode, and only
    /// where nobody from outside can reach it: who may save a connector may then read this machine.
    pub local_files: bool,
    /// Where service principals of Azure get their tokens instead of from Azure.
    pub azure_login: Option<String>,
    /// Where buckets of Google are read instead of at Google.
    pub google_storage: Option<String>,
    /// Where images of Google's machines are listed instead of at Google.
    pub google_compute: Option<String>,
    /// How hosts that speak Git over SSH are spoken to.
    pub ssh: SshConfig,
}

impl Default for SourceConfig {
    fn default() -> Self {
        Self {
            limit: LIMIT,
            local_files: false,
            azure_login: None,
            google_storage: None,
            google_compute: None,
            ssh: SshConfig::from_env(),
        }
    }
}

/// Reads files with the credentials of connectors.
pub struct Source {
    config: SourceConfig,
    targets: AwsTargets,
    secrets: Arc<dyn SecretSource>,
    clock: Clock,
    /// Hosts of feeds that are left alone for a while.
    held: registry::feed::Held,
    /// Tokens of GitHub apps, while they hold.
    apps: git::app::AppTokens,
    /// Files of Git that were read before.
    known: Arc<git::known::Known>,
}

impl Source {
    /// `targets` gives the clients of AWS connectors, `secrets` the values that connectors refer to.
    pub fn new(
        config: SourceConfig,
        targets: AwsTargets,
        secrets: Arc<dyn SecretSource>,
        clock: Clock,
    ) -> Self {
        Self {
            config,
            targets,
            secrets,
            clock,
            held: registry::feed::Held::default(),
            apps: git::app::AppTokens::default(),
            known: Arc::default(),
        }
    }

    /// What a feed has now. `connector` is the one of the feed, and `scope` where its reference was written; `state` is
    /// that of the last answer.
    ///
    /// # Errors
    /// Why it cannot be told, and how long the host wants to be left alone where it does. A host that this process leaves
    /// alone is not asked.
    pub async fn builds(
        &self,
        feed: &Feed,
        connector: Option<&ConnectorPlan>,
        scope: &Scope,
        state: Option<&str>,
    ) -> Result<Polled, PollFault> {
        let mut secrets = Secrets::new(&*self.secrets, scope);
        let (asking, whose) = (self.asking(), (connector, scope));
        let polled = tokio::select! {
            polled = Box::pin(registry::feed::poll(asking, &self.held, feed, whose, state, &mut secrets)) => polled,
            () = self.clock.sleep(self.config.limit) => Err(registry::feed::late(feed, self.config.limit)),
        };
        polled.map_err(|trouble| {
            let mut fault = PollFault::from(trouble);
            fault.failure.message = secrets.mask(&fault.failure.message);
            fault
        })
    }

    /// What one place holds for everything that is asked of it.
    async fn from(&self, ask: &Ask<'_>) -> Vec<Result<Fetched, String>> {
        let first = ask.wanted[0];
        let mut secrets = Secrets::new(&*self.secrets, &first.scope);
        let found = match &first.place {
            RemotePlace::S3 { bucket, region } => {
                let mut found = Vec::new();
                for wanted in &ask.wanted {
                    let read = s3::read(&self.targets, &mut secrets, wanted, bucket, region);
                    found.push(read.await);
                }
                Ok(found)
            }
            RemotePlace::Git {
                repository,
                version,
            } => {
                let asked = git::Asked {
                    wanted: ask.wanted.clone(),
                    repository: repository.as_deref(),
                    version,
                };
                git::read(&asked, self.allowed(), &mut secrets).await
            }
        };
        let masked = |found: Result<Fetched, String>| found.map_err(|why| secrets.mask(&why));
        match found {
            Ok(found) => found.into_iter().map(masked).collect(),
            Err(why) => ask
                .wanted
                .iter()
                .map(|_| masked(Err(why.clone())))
                .collect(),
        }
    }

    async fn in_time(&self, ask: &Ask<'_>) -> Vec<Result<Fetched, String>> {
        tokio::select! {
            found = self.from(ask) => found,
            () = self.clock.sleep(self.config.limit) => {
                let seconds = self.config.limit.as_secs();
                let why = |wanted: &&RemoteFiles| Err(format!(
                    "{} did not give them within {seconds} s: check the address and the network, and that they are not too large",
                    place(wanted)
                ));
                ask.wanted.iter().map(why).collect()
            }
        }
    }
}

/// What is asked of one place in one version, with the numbers of the questions.
struct Ask<'a> {
    wanted: Vec<&'a RemoteFiles>,
    numbers: Vec<usize>,
}

/// The questions by place, so that a repository is fetched once and read at one commit.
fn by_place(wanted: &[RemoteFiles]) -> Vec<Ask<'_>> {
    let mut asks: Vec<Ask<'_>> = Vec::new();
    for (number, wanted) in wanted.iter().enumerate() {
        let same = asks.iter_mut().find(|ask| {
            let first = ask.wanted[0];
            (&first.place, &first.connector, &first.scope)
                == (&wanted.place, &wanted.connector, &wanted.scope)
        });
        match same {
            Some(ask) => {
                ask.wanted.push(wanted);
                ask.numbers.push(number);
            }
            None => asks.push(Ask {
                wanted: vec![wanted],
                numbers: vec![number],
            }),
        }
    }
    asks
}

/// Why a change cannot be told, without a secret.
fn untold(fault: &Fault, secrets: &Secrets<'_>) -> ChangeFault {
    ChangeFault {
        message: secrets.mask(&fault.why),
        passing: matches!(fault.kind, ErrorType::Connectivity | ErrorType::Timeout),
    }
}

#[async_trait]
impl SourceReader for Source {
    async fn poll_feed(
        &self,
        feed: &Feed,
        connector: Option<&ConnectorPlan>,
        scope: &Scope,
        state: Option<&str>,
    ) -> Result<FeedAnswer, FeedFault> {
        // Boxed: the futures of the SDK clients nest deeper than the compiler likes to lay out.
        match Box::pin(self.builds(feed, connector, scope, state)).await {
            Ok(Polled::Unchanged) => Ok(FeedAnswer::Unchanged),
            Ok(Polled::Builds { builds, state }) => Ok(FeedAnswer::Builds { builds, state }),
            Err(fault) => Err(FeedFault {
                message: fault.failure.message,
                wait: fault.wait.map(|(_, wait)| wait),
            }),
        }
    }

    fn errand(&self, feed: &Feed, scope: &Scope) -> Result<Option<FeedErrand>, FeedFault> {
        registry::feed::script::errand(feed, scope)
    }

    fn errand_answer(&self, _feed: &Feed, result: &Value) -> Result<FeedAnswer, FeedFault> {
        registry::feed::script::answer(result)
    }

    async fn changed_files(&self, wanted: &WantedChange) -> Result<ChangedPaths, ChangeFault> {
        let mut secrets = Secrets::new(&*self.secrets, &wanted.scope);
        let limit = self.config.limit;
        let asked = tokio::select! {
            asked = changed::files(&self.targets, wanted, self.allowed(), &mut secrets) => asked,
            () = self.clock.sleep(limit) => Err(changed::late(changed::FILES, wanted, limit.as_secs())),
        };
        asked.map_err(|fault| untold(&fault, &secrets))
    }

    async fn pull_request(&self, wanted: &WantedChange) -> Result<PullRequest, ChangeFault> {
        let mut secrets = Secrets::new(&*self.secrets, &wanted.scope);
        let limit = self.config.limit;
        let asked = tokio::select! {
            asked = changed::pull_request(wanted, self.allowed(), &mut secrets) => asked,
            () = self.clock.sleep(limit) => Err(changed::late(changed::PULL, wanted, limit.as_secs())),
        };
        asked.map_err(|fault| untold(&fault, &secrets))
    }

    async fn register_hook(&self, wanted: &WantedHook) -> Result<(), Failure> {
        let mut secrets = Secrets::new(&*self.secrets, &wanted.scope);
        let limit = self.config.limit;
        let done = tokio::select! {
            done = hook::register(wanted, self.allowed(), &mut secrets) => done,
            () = self.clock.sleep(limit) => Err(hook::late(wanted, limit.as_secs())),
        };
        done.map_err(|fault| Failure {
            message: secrets.mask(&fault.why),
            ..Failure::from(fault)
        })
    }

    async fn fetch_files(&self, wanted: &[RemoteFiles]) -> Vec<Result<Fetched, String>> {
        let asks = by_place(wanted);
        let found = join_all(asks.iter().map(|ask| self.in_time(ask))).await;
        let mut found: Vec<(usize, Result<Fetched, String>)> = asks
            .iter()
            .zip(found)
            .flat_map(|(ask, found)| ask.numbers.iter().copied().zip(found))
            .collect();
        found.sort_by_key(|(number, _)| *number);
        found.into_iter().map(|(_, found)| found).collect()
    }

    async fn save_file(&self, change: &GitChange) -> Result<GitSaved, GitFault> {
        let mut secrets = Secrets::new(&*self.secrets, &change.scope);
        let seconds = self.config.limit.as_secs();
        let saved = tokio::select! {
            saved = git::save(change, self.allowed(), &mut secrets) => saved,
            () = self.clock.sleep(self.config.limit) => Err(GitFault::Failed(format!(
                "its host did not take it within {seconds} s: look whether the commit is there, and try again"
            ))),
        };
        saved.map_err(|fault| match fault {
            GitFault::Conflict(why) => GitFault::Conflict(secrets.mask(&why)),
            GitFault::Failed(why) => GitFault::Failed(secrets.mask(&why)),
        })
    }

    async fn find_artifacts(
        &self,
        wanted: &[WantedArtifact],
    ) -> Vec<Result<ArtifactAnswer, String>> {
        let until = self.clock.now() + self.config.limit;
        let mut answers = Vec::new();
        for some in wanted.chunks(AT_ONCE) {
            answers.extend(join_all(some.iter().map(|wanted| self.answer(wanted, until))).await);
        }
        answers
    }

    async fn list_versions(
        &self,
        wanted: &WantedArtifact,
        skip: usize,
        most: usize,
    ) -> Result<ListedVersions, String> {
        let mut secrets = Secrets::new(&*self.secrets, &wanted.scope);
        let listed = tokio::select! {
            listed = registry::list(self.asking(), wanted, (skip, most), &mut secrets) => listed,
            () = self.clock.sleep(self.config.limit) => Err(self.late(wanted)),
        };
        listed.map_err(|why| secrets.mask(&why))
    }

    async fn test_connection(
        &self,
        connector: &ConnectorPlan,
        scope: &Scope,
    ) -> Option<Result<(), Failure>> {
        let mut secrets = Secrets::new(&*self.secrets, scope);
        let tested = tokio::select! {
            tested = connection::test(self, connector, scope, &mut secrets) => tested?,
            () = self.clock.sleep(self.config.limit) => Err(connection::late(self, connector)),
        };
        let masked = |failure: Failure| Failure {
            message: secrets.mask(&failure.message),
            ..failure
        };
        Some(tested.map_err(masked))
    }
}

impl Source {
    /// What this process allows who reads Git repositories.
    fn allowed(&self) -> git::Allowed<'_> {
        git::Allowed {
            local_files: self.config.local_files,
            limit: self.config.limit,
            clock: &self.clock,
            apps: &self.apps,
            known: &self.known,
            ssh: &self.config.ssh,
        }
    }

    /// What a registry says about one question, if it does so in time.
    async fn answer(
        &self,
        wanted: &WantedArtifact,
        until: Timestamp,
    ) -> Result<ArtifactAnswer, String> {
        let mut secrets = Secrets::new(&*self.secrets, &wanted.scope);
        let found = tokio::select! {
            found = registry::find(self.asking(), wanted, &mut secrets) => found,
            () = self.clock.sleep_until(until) => Err(self.late(wanted)),
        };
        found.map_err(|why| secrets.mask(&why))
    }

    fn asking(&self) -> registry::Asking<'_> {
        registry::Asking {
            targets: &self.targets,
            clock: &self.clock,
            google_storage: self.config.google_storage.as_deref(),
            google_compute: self.config.google_compute.as_deref(),
        }
    }

    fn late(&self, wanted: &WantedArtifact) -> String {
        let seconds = self.config.limit.as_secs();
        format!(
            "{} did not answer within {seconds} s: check the address and the network",
            registry::place(wanted)
        )
    }
}

/// Where files are, for messages.
fn place(wanted: &RemoteFiles) -> String {
    let connector = &wanted.connector.reference;
    match &wanted.place {
        RemotePlace::S3 { bucket, region } => {
            format!("the bucket {bucket} in {region} (connector {connector})")
        }
        RemotePlace::Git { repository, .. } => {
            let repository = repository.as_deref().unwrap_or("the repository");
            format!("{repository} (connector {connector})")
        }
    }
}
