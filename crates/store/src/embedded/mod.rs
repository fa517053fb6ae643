//! DynamoDB, S3 and Secrets Manager in this process, on files: the other end of the SDK clients in local
//! mode and in tests.

mod desk;
mod dynamodb;
mod in_process;
mod keys;
mod loopback;
mod s3;
mod secrets;
mod sync;
mod tokens;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_credential_types::Credentials;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use axum::Router;
use axum::extract::Request;
use slipway_clock::Clock;
use tower::ServiceExt;

pub use in_process::in_process;
pub use loopback::loopback;

use crate::known::Writes;
use crate::{Layout, SecretStore, Store};

/// Layout of the directory. A reader of a newer one may not guess.
const FORMAT: u32 = 1;
/// Region of the embedded services.
const REGION: &str = "us-east-1";
/// Key pair of the embedded clients; the services look at it only as far as S3 needs it.
const ACCESS_KEY: &str = "slipway";
const SECRET_KEY: &str = "slipway-local";
/// Nothing is resolved or connected: requests never leave the process.
const ENDPOINT: &str = "http://store.slipway.internal";

/// The embedded services over one directory. Cheap to clone.
#[derive(Clone)]
pub struct Embedded {
    router: Router,
    client: SharedHttpClient,
    layout: Layout,
    /// Writes of the table of entities, whoever makes them.
    entities: Arc<Writes>,
}

/// The embedded services cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another version wrote the directory.
    #[error(
        "opening the store: {} has format {found:?}, and this version knows format {FORMAT}: \
         use a newer slipway, or choose another data directory; nothing was changed", path.display()
    )]
    Newer {
        /// The directory.
        path: PathBuf,
        /// What its marker says.
        found: String,
    },
    /// A folder or file cannot be made or read.
    #[error("opening the store: cannot use {}: check its permissions and the free space", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The database cannot be opened.
    #[error(
        "opening the store: {} is damaged or was written by a newer slipway; nothing was changed: \
         use that version, or choose another data directory", path.display()
    )]
    Database {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: dynoxide::DynoxideError,
    },
    /// A table cannot be made.
    #[error("opening the store: cannot make the table {table}")]
    Table {
        /// Its name.
        table: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The folder of objects cannot be opened.
    #[error("opening the store: cannot serve objects from {}: {reason}", path.display())]
    Objects {
        /// The folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Embedded {
    /// Opens the services over `dir`, making what is missing. The caller sees to it that no other process
    /// has the directory.
    ///
    /// # Errors
    /// When the directory cannot be used, or holds what a newer version wrote.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Self::assemble(dir, None)
    }

    /// Services over a directory of their own that goes with them, for tests.
    ///
    /// # Errors
    /// When no directory can be made.
    pub fn temporary() -> Result<Self, OpenError> {
        let dir = tempfile::tempdir().map_err(|source| OpenError::Io {
            path: std::env::temp_dir(),
            source,
        })?;
        let path = dir.path().to_path_buf();
        Self::assemble(&path, Some(Arc::new(dir)))
    }

    /// As [`Embedded::temporary`], with the tables in memory: for simulations, in which no other thread may have a
    /// say in the order of things. Objects and secrets are files still.
    ///
    /// # Errors
    /// When no directory can be made.
    pub fn in_memory() -> Result<Self, OpenError> {
        let dir = tempfile::tempdir().map_err(|source| OpenError::Io {
            path: std::env::temp_dir(),
            source,
        })?;
        let layout = Layout::local();
        let entities = Arc::<Writes>::default();
        let dynamodb = dynamodb::in_memory(&layout, entities.clone())?;
        let path = dir.path().to_path_buf();
        Self::with_tables((dynamodb, entities), layout, &path, Some(Arc::new(dir)))
    }

    fn assemble(dir: &Path, temporary: Option<Arc<tempfile::TempDir>>) -> Result<Self, OpenError> {
        check_format(dir)?;
        let layout = Layout::local();
        let entities = Arc::<Writes>::default();
        let file = dir.join("dynamodb.sqlite");
        let dynamodb = dynamodb::open(&file, &layout, entities.clone())?;
        Self::with_tables((dynamodb, entities), layout, dir, temporary)
    }

    fn with_tables(
        (dynamodb, entities): (Router, Arc<Writes>),
        layout: Layout,
        dir: &Path,
        temporary: Option<Arc<tempfile::TempDir>>,
    ) -> Result<Self, OpenError> {
        let s3 = s3::open(&dir.join("s3"), &layout.bucket)?;
        let secrets = secrets::open(&dir.join("secrets"))?;
        let router = route(dynamodb, s3, secrets, temporary);
        let client = in_process(router.clone());
        Ok(Self {
            router,
            client,
            layout,
            entities,
        })
    }

    /// The services as one HTTP service: DynamoDB and Secrets Manager by `X-Amz-Target`, S3 otherwise.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// A store that talks to them in process.
    pub fn store(&self, clock: Clock) -> Store {
        let (layout, entities) = (self.layout.clone(), self.entities.clone());
        Store::knowing(self.dynamodb(), self.s3(), layout, clock, entities)
    }

    /// Secrets that are kept in them.
    pub fn secrets(&self) -> SecretStore {
        let config = aws_sdk_secretsmanager::Config::builder()
            .behavior_version_latest()
            .http_client(self.client.clone())
            .endpoint_url(ENDPOINT)
            .region(aws_sdk_secretsmanager::config::Region::new(REGION))
            .credentials_provider(credentials())
            .build();
        SecretStore::new(aws_sdk_secretsmanager::Client::from_conf(config), "slipway")
    }

    /// A client of the embedded DynamoDB.
    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        let mut config = aws_sdk_dynamodb::Config::builder()
            .behavior_version_latest()
            .http_client(self.client.clone())
            .endpoint_url(ENDPOINT)
            .region(aws_sdk_dynamodb::config::Region::new(REGION))
            // Nobody looks at a signature in this process, and it is a fifth of a call.
            .allow_no_auth()
            .stalled_stream_protection(
                aws_sdk_dynamodb::config::StalledStreamProtectionConfig::disabled(),
            );
        config.push_interceptor(loopback());
        aws_sdk_dynamodb::Client::from_conf(config.build())
    }

    /// A client of the embedded S3.
    pub fn s3(&self) -> aws_sdk_s3::Client {
        let config =
            aws_sdk_s3::Config::builder()
                .behavior_version_latest()
                .http_client(self.client.clone())
                .endpoint_url(ENDPOINT)
                .force_path_style(true)
                .region(aws_sdk_s3::config::Region::new(REGION))
                .credentials_provider(credentials())
                .stalled_stream_protection(
                    aws_sdk_s3::config::StalledStreamProtectionConfig::disabled(),
                )
                .build();
        aws_sdk_s3::Client::from_conf(config)
    }
}

/// Refuses a directory of a newer layout; marks a new one.
fn check_format(dir: &Path) -> Result<(), OpenError> {
    let path = dir.join("store.format");
    let io = |source| OpenError::Io {
        path: path.clone(),
        source,
    };
    match std::fs::read_to_string(&path) {
        Ok(text) if text.trim() == FORMAT.to_string() => Ok(()),
        // The process was killed while it made the marker.
        Ok(text) if text.is_empty() => mark(&path).map_err(io),
        Ok(text) => {
            let found = text.trim().chars().take(20).collect();
            Err(OpenError::Newer {
                path: dir.to_path_buf(),
                found,
            })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            std::fs::create_dir_all(dir).map_err(io)?;
            mark(&path).map_err(io)
        }
        Err(error) => Err(io(error)),
    }
}

fn mark(path: &Path) -> std::io::Result<()> {
    std::fs::write(path, format!("{FORMAT}\n"))
}

fn credentials() -> Credentials {
    Credentials::new(ACCESS_KEY, SECRET_KEY, None, None, "slipway embedded store")
}

/// The last clone of the router removes the directory of [`Embedded::temporary`]: clients of it may
/// outlive the [`Embedded`] that made them.
fn route(
    dynamodb: Router,
    s3: Router,
    secrets: Router,
    temporary: Option<Arc<tempfile::TempDir>>,
) -> Router {
    Router::new().fallback(move |request: Request| {
        let _kept = &temporary;
        let target = request
            .headers()
            .get("x-amz-target")
            .and_then(|v| v.to_str().ok());
        let service = match target {
            Some(target) if target.starts_with("secretsmanager.") => &secrets,
            Some(_) => &dynamodb,
            None => &s3,
        };
        service.clone().oneshot(request)
    })
}
