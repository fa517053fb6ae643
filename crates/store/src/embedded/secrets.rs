//! The embedded Secrets Manager: a file per secret that only its owner may read, behind Secrets Manager's
//! own protocol (awsJson1.1), as far as [`crate::SecretStore`] and a curious `aws secretsmanager` need it.
//!
//! Values are not encrypted here: what protects them is the file system's permissions (0600 in a folder of
//! 0700), as with an SSH key.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{OpenError, REGION};

/// A secret of 64 KiB with the JSON around it, escaped.
const LARGEST_REQUEST: usize = 1024 * 1024;

#[derive(Clone)]
struct Service {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Secret {
    name: String,
    version: String,
    value: String,
    /// The version before, which Secrets Manager keeps as `AWSPREVIOUS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<Previous>,
}

#[derive(Serialize, Deserialize)]
struct Previous {
    version: String,
    value: String,
}

/// A refusal: Secrets Manager's error name, and a message.
struct Refusal(&'static str, String);

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self(
            "InternalServiceError",
            format!("the secret's file could not be used: {error}"),
        )
    }
}

/// Opens the folder, making it if it is missing, and serves it.
pub(super) fn open(folder: &Path) -> Result<Router, OpenError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| OpenError::Io {
        path: folder.to_path_buf(),
        source,
    })?;
    let service = Service {
        folder: folder.to_path_buf(),
    };
    Ok(Router::new()
        .route("/", post(answer))
        .layer(DefaultBodyLimit::max(LARGEST_REQUEST))
        .with_state(service))
}

async fn answer(
    State(service): State<Service>,
    headers: HeaderMap,
    body: axum::body::Bytes,
) -> Response {
    let target = headers
        .get("x-amz-target")
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    let operation = target
        .strip_prefix("secretsmanager.")
        .unwrap_or_default()
        .to_owned();
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return refuse(Refusal(
            "InvalidRequestException",
            "the request is not JSON".to_owned(),
        ));
    };
    let done = tokio::task::spawn_blocking(move || service.dispatch(&operation, &request)).await;
    match done {
        Ok(Ok(answer)) => Json(answer).into_response(),
        Ok(Err(refusal)) => refuse(refusal),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn refuse(Refusal(name, message): Refusal) -> Response {
    let status = match name {
        "InternalServiceError" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    };
    (status, Json(json!({"__type": name, "Message": message}))).into_response()
}

impl Service {
    fn dispatch(&self, operation: &str, request: &Value) -> Result<Value, Refusal> {
        let text = |name: &str| request.get(name).and_then(Value::as_str);
        let missing = |name| Refusal("InvalidParameterException", format!("{name} is missing"));
        let id = |name| {
            text(name)
                .filter(|id| !id.is_empty())
                .ok_or_else(|| missing(name))
        };
        match operation {
            "CreateSecret" => {
                let name = id("Name")?;
                if self.read(name).is_ok() {
                    let message = format!("a secret named {name} exists already");
                    return Err(Refusal("ResourceExistsException", message));
                }
                self.write(
                    name,
                    text("SecretString").ok_or_else(|| missing("SecretString"))?,
                )
            }
            "PutSecretValue" => {
                let name = self.read(id("SecretId")?)?.name;
                self.write(
                    &name,
                    text("SecretString").ok_or_else(|| missing("SecretString"))?,
                )
            }
            "GetSecretValue" => {
                let secret = self.read(id("SecretId")?)?;
                let mut answer = describe(&secret);
                let written = std::fs::metadata(self.file(&secret.name))?.modified()?;
                if let Ok(since) = written.duration_since(std::time::UNIX_EPOCH) {
                    answer["CreatedDate"] = since.as_secs_f64().into();
                }
                match text("VersionStage") {
                    None | Some("AWSCURRENT") => answer["SecretString"] = secret.value.into(),
                    Some(stage) => {
                        let previous = secret.previous.filter(|_| stage == "AWSPREVIOUS");
                        let previous = previous.ok_or_else(|| {
                            let message = format!(
                                "Secrets Manager can't find the specified secret value for staging label: {stage}"
                            );
                            Refusal("ResourceNotFoundException", message)
                        })?;
                        answer["VersionId"] = previous.version.into();
                        answer["SecretString"] = previous.value.into();
                    }
                }
                Ok(answer)
            }
            "DescribeSecret" => self.read(id("SecretId")?).map(|secret| describe(&secret)),
            "DeleteSecret" => {
                let secret = self.read(id("SecretId")?)?;
                std::fs::remove_file(self.file(&secret.name))?;
                Ok(describe(&secret))
            }
            other => {
                let message = format!("the embedded Secrets Manager has no operation {other:?}");
                Err(Refusal("InvalidRequestException", message))
            }
        }
    }

    /// By digest of the name, as names hold slashes.
    fn file(&self, name: &str) -> PathBuf {
        let digest = Sha256::digest(name.as_bytes());
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{hex}.json"))
    }

    /// By name or by ARN.
    fn read(&self, id: &str) -> Result<Secret, Refusal> {
        let name = id.strip_prefix(&*arn("")).unwrap_or(id);
        match std::fs::read(self.file(name)) {
            Ok(json) => serde_json::from_slice(&json)
                .map_err(|_| Refusal("InternalServiceError", format!("secret {name} is damaged"))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let message = "Secrets Manager can't find the specified secret.".to_owned();
                Err(Refusal("ResourceNotFoundException", message))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whole or not at all, also when the disk is full.
    fn write(&self, name: &str, value: &str) -> Result<Value, Refusal> {
        let before = self.read(name).ok();
        let secret = Secret {
            name: name.to_owned(),
            version: uuid::Uuid::new_v4().to_string(),
            value: value.to_owned(),
            previous: before.map(|before| Previous {
                version: before.version,
                value: before.value,
            }),
        };
        let file = self.file(name);
        let partial = file.with_extension(format!("{}.partial", secret.version));
        let write = || {
            let mut options = OpenOptions::new();
            let mut out = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&partial)?;
            out.write_all(&serde_json::to_vec(&secret)?)?;
            out.sync_all()?;
            std::fs::rename(&partial, &file)
        };
        if let Err(error) = write() {
            // What is left of a failed write is of no use; that it may stay harms nobody.
            let _ = std::fs::remove_file(&partial);
            return Err(error.into());
        }
        Ok(describe(&secret))
    }
}

fn arn(name: &str) -> String {
    format!("arn:aws:secretsmanager:{REGION}:000000000000:secret:{name}")
}

fn describe(secret: &Secret) -> Value {
    json!({"ARN": arn(&secret.name), "Name": secret.name, "VersionId": secret.version})
}
