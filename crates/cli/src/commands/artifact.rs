//! `slipway artifact list`: the versions that there are of an artifact of a service.

use serde_json::{Value, json};

use crate::args::{ArtifactCommand, Format};
use crate::client::Client;
use crate::commands::entity::segment;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{self, Column};

const COLUMNS: &[Column] = &[
    ("VERSION", "/version"),
    ("DIGEST", "/digest"),
    ("AT", "/at"),
];

/// Lists versions, the newest first.
///
/// # Errors
/// When there is no such service or artifact, or its registry cannot be asked.
pub async fn artifact(
    client: &Client,
    format: Option<Format>,
    command: &ArtifactCommand,
) -> Result<Exit, CliError> {
    let ArtifactCommand::List {
        service,
        artifact,
        page,
        limit,
    } = command;
    let path = format!("/slipway/api/services/{}/artifacts", segment(service));
    let (page, limit) = (page.to_string(), limit.to_string());
    let mut query = vec![("pageIndex", page.as_str()), ("pageSize", limit.as_str())];
    if let Some(artifact) = artifact {
        query.push(("artifactIdentifier", artifact));
    }
    let answer = client.get(&path, &query).await?;
    let content = answer["data"]["content"].as_array().cloned();
    let rows: Vec<Value> = content.unwrap_or_default().into_iter().map(dated).collect();
    output::rows(format, COLUMNS, &rows)?;
    Ok(Exit::Succeeded)
}

/// A version with its time as people read it.
fn dated(mut version: Value) -> Value {
    let at = version["atMs"].as_i64();
    let at = at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    version["at"] = at.map_or(Value::Null, |at| json!(at.to_string()));
    version
}
