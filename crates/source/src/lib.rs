//! Reads manifests and config files from where users keep them: S3 buckets.
//!
//! A plan says what it needs ([`slipway_plan::RemoteFiles`]) and does no I/O; the engine asks a
//! [`FileSource`], and [`Source`] is the one that there is. Nothing is written anywhere but into temporary
//! folders that are removed, and every read is bounded in files, bytes and time.
//!
//! This room knows connectors and their secrets. It must not know runs, lanes or the REST API.

mod collect;
mod nearest;
mod s3;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use slipway_clock::Clock;
use slipway_engine::gather::FileSource;
use slipway_plan::{Fetched, RemoteFiles, RemotePlace};
use slipway_steps::aws::AwsTargets;
use slipway_steps::secrets::{SecretSource, Secrets};

/// Time for everything that one round of planning asks for: less than API Gateway gives to a request.
const LIMIT: Duration = Duration::from_secs(20);

/// What a process allows.
#[derive(Clone, Debug)]
pub struct SourceConfig {
    /// Time for everything that one round of planning asks for.
    pub limit: Duration,
}

impl Default for SourceConfig {
    fn default() -> Self {
        Self { limit: LIMIT }
    }
}

/// Reads files with the credentials of connectors.
pub struct Source {
    config: SourceConfig,
    targets: AwsTargets,
    secrets: Arc<dyn SecretSource>,
    clock: Clock,
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
        }
    }

    async fn one(&self, wanted: &RemoteFiles) -> Result<Fetched, String> {
        let mut secrets = Secrets::new(&*self.secrets, &wanted.scope);
        let found = match &wanted.place {
            RemotePlace::S3 { bucket, region } => {
                s3::read(&self.targets, &mut secrets, wanted, bucket, region).await
            }
            RemotePlace::Git { .. } => Err("Git is not supported by this version yet".to_owned()),
        };
        found.map_err(|why| secrets.mask(&why))
    }

    async fn in_time(&self, wanted: &RemoteFiles) -> Result<Fetched, String> {
        tokio::select! {
            found = self.one(wanted) => found,
            () = self.clock.sleep(self.config.limit) => {
                let seconds = self.config.limit.as_secs();
                Err(format!(
                    "{} did not give them within {seconds} s: check the address and the network, and that they are not too large",
                    place(wanted)
                ))
            }
        }
    }
}

#[async_trait]
impl FileSource for Source {
    async fn fetch(&self, wanted: &[RemoteFiles]) -> Vec<Result<Fetched, String>> {
        join_all(wanted.iter().map(|wanted| self.in_time(wanted))).await
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
