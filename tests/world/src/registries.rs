//! Registries of images that count who asks them for what.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use slipway_engine::gather::{FeedAnswer, FeedFault, SourceReader};
use slipway_model::id::Scope;
use slipway_model::status::Failure;
use slipway_plan::{
    ArtifactAnswer, ConnectorPlan, Fetched, ListedVersions, RemoteFiles, WantedArtifact,
};
use slipway_trigger::feed::{Build, Feed};

use crate::World;

/// A repository: the URL of its registry, and its name.
pub type Repository = (String, String);

/// How often a repository was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// At all.
    pub times: usize,
    /// Of those, without what was known of it: for everything that it has.
    pub for_all: usize,
}

/// The registries. Each repository has version `1.0`.
#[derive(Default)]
pub struct Registries(Mutex<State>);

#[derive(Default)]
struct State {
    asked: BTreeMap<Repository, Asked>,
    away: Option<String>,
    newer: Option<Repository>,
}

impl Registries {
    /// URL of the registry of a number.
    pub fn url(number: usize) -> String {
        format!("https://registry-{number}.example.com")
    }

    /// How often each repository was asked since this was last called.
    pub fn asked(&self) -> BTreeMap<Repository, Asked> {
        std::mem::take(&mut self.state().asked)
    }

    /// A registry does not answer any more.
    pub fn goes_away(&self, url: String) {
        self.state().away = Some(url);
    }

    /// A repository has a version `1.1` too.
    pub fn has_newer(&self, repository: Repository) {
        self.state().newer = Some(repository);
    }

    /// Makes so many triggers of the pipeline `release` on the images of each repository.
    ///
    /// # Panics
    /// When the store refuses.
    pub async fn watched(world: &World, registries: usize, repositories: usize, triggers: usize) {
        let head = |id: &str| {
            format!(
                "  name: {id}\n  identifier: {id}\n  orgIdentifier: default\n  projectIdentifier: shop\n"
            )
        };
        for registry in 0..registries {
            let (hub, url) = (format!("hub{registry}"), Self::url(registry));
            let connector = format!(
                "connector:\n{}  type: DockerRegistry\n  spec:\n    dockerRegistryUrl: {url}\n    providerType: Other\n    auth: {{type: Anonymous}}\n",
                head(&hub)
            );
            world.apply(&connector).await;
            for number in 0..repositories * triggers {
                let image = number % repositories;
                let trigger = format!(
                    "trigger:\n{}  pipelineIdentifier: release\n  source:\n    type: Artifact\n    spec:\n      type: DockerRegistry\n      spec:\n        connectorRef: {hub}\n        imagePath: image{image}\n        tag: <+trigger.artifact.build>\n",
                    head(&format!("t{registry}_{number}"))
                );
                world.apply(&trigger).await;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SourceReader for Registries {
    async fn fetch_files(&self, wanted: &[RemoteFiles]) -> Vec<Result<Fetched, String>> {
        let none = |_| Err("there is no Git here".to_owned());
        wanted.iter().map(none).collect()
    }

    async fn find_artifacts(
        &self,
        wanted: &[WantedArtifact],
    ) -> Vec<Result<ArtifactAnswer, String>> {
        let none = |_| Err("nothing is pinned here".to_owned());
        wanted.iter().map(none).collect()
    }

    async fn list_versions(
        &self,
        _: &WantedArtifact,
        _: usize,
        _: usize,
    ) -> Result<ListedVersions, String> {
        Err("nothing is listed here".to_owned())
    }

    async fn test_connection(&self, _: &ConnectorPlan, _: &Scope) -> Option<Result<(), Failure>> {
        None
    }

    async fn poll_feed(
        &self,
        feed: &Feed,
        connector: Option<&ConnectorPlan>,
        _: &Scope,
        known: Option<&str>,
    ) -> Result<FeedAnswer, FeedFault> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let url = connector.map(|it| text(&it.spec["dockerRegistryUrl"]));
        let repository = (url.unwrap_or_default(), text(&feed.place["imagePath"]));
        let mut state = self.state();
        let count = state.asked.entry(repository.clone()).or_default();
        count.times += 1;
        count.for_all += usize::from(known.is_none());
        if state.away.as_ref() == Some(&repository.0) {
            return Err(FeedFault {
                message: "the registry is away".to_owned(),
                wait: None,
            });
        }
        let versions = match state.newer.as_ref() == Some(&repository) {
            true => "1.0 1.1",
            false => "1.0",
        };
        Ok(match known == Some(versions) {
            true => FeedAnswer::Unchanged,
            false => FeedAnswer::Builds {
                builds: versions.split(' ').map(Build::of).collect(),
                state: Some(versions.to_owned()),
            },
        })
    }
}
