//! `slipway token create`: a token for somebody else, so that several people can approve what one may not approve alone.

use reqwest::Method;
use serde_json::json;
use slipway_clock::Clock;

use crate::args::TokenCommand;
use crate::client::{Body, Client};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

const DAY_MS: i64 = 24 * 3_600_000;

/// Makes a token, and prints it.
///
/// # Errors
/// When the API refuses.
pub async fn token(
    client: &Client,
    clock: &Clock,
    command: &TokenCommand,
) -> Result<Exit, CliError> {
    let TokenCommand::Create { user, name, days } = command;
    let until = days.map(|days| clock.now_ms().saturating_add(i64::from(days) * DAY_MS));
    let body = json!({
        "identifier": name,
        "name": name,
        "apiKeyType": "USER",
        "parentIdentifier": user,
        "validTo": until,
    });
    let answer = client
        .call(Method::POST, "/ng/api/token", &[], Body::Json(body))
        .await?;
    let token = answer["data"].as_str().ok_or_else(|| CliError::Answer {
        what: "the answer to a new token".to_owned(),
        why: "it has no token".to_owned(),
    })?;
    output::line(token)?;
    Ok(Exit::Succeeded)
}
