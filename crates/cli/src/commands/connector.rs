//! `slipway connector test`: whether a connector's credentials are accepted.

use reqwest::Method;
use serde_json::Value;

use crate::args::{ConnectorCommand, Format};
use crate::client::{Body, Client};
use crate::commands::entity::segment;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{self, Column};

const COLUMNS: &[Column] = &[("STATUS", "/status"), ("WHY", "/errorSummary")];

/// Tests a connector of the scope of the options. A connector of a type that cannot be tested is no failure.
///
/// # Errors
/// When there is no such connector, or the service cannot be asked.
pub async fn connector(
    client: &Client,
    format: Option<Format>,
    command: &ConnectorCommand,
) -> Result<Exit, CliError> {
    let ConnectorCommand::Test { id } = command;
    let path = format!("/ng/api/connectors/testConnection/{}", segment(id));
    let answer = client.call(Method::POST, &path, &[], Body::Empty).await?;
    let tested = &answer["data"];
    output::one(format, COLUMNS, tested)?;
    Ok(match tested["status"].as_str() {
        Some("FAILURE") => Exit::Failed,
        Some(_) => Exit::Succeeded,
        None => return Err(unreadable(&answer)),
    })
}

fn unreadable(answer: &Value) -> CliError {
    CliError::Answer {
        what: "the test of a connector".to_owned(),
        why: format!("it has no status: {answer}"),
    }
}
