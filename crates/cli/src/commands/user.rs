//! `slipway user`: who there is in the account; removes those who left it, and brings them back.

use reqwest::Method;
use serde_json::{Value, json};

use crate::args::{Format, UserCommand};
use crate::client::{Body, Client};
use crate::commands::entity::segment;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{self, Column};

const USERS: &[Column] = &[
    ("NAME", "/name"),
    ("EMAIL", "/email"),
    ("SINCE", "@/createdAt"),
    ("REMOVED", "@/removedAt"),
    ("BY", "/removedBy"),
];
const SAID: &[Column] = &[("NAME", "/name"), ("STATUS", "/status")];

/// People of one page: as many as the API gives.
const PAGE: usize = 1_000;

/// Does what was asked for.
///
/// # Errors
/// When nobody is called so, or the API refuses.
pub async fn user(
    client: &Client,
    format: Option<Format>,
    command: &UserCommand,
) -> Result<Exit, CliError> {
    match command {
        UserCommand::List => output::rows(format, USERS, &all(client).await?)?,
        UserCommand::Remove { user } => {
            let path = format!("/ng/api/user/{}", segment(user));
            let whole = client.of_account();
            whole.call(Method::DELETE, &path, &[], Body::Empty).await?;
            output::one(format, SAID, &said(user, "REMOVED"))?;
        }
        UserCommand::Restore { user } => {
            let body = Body::Json(json!({"emails": [user]}));
            let whole = client.of_account();
            let answer = whole
                .call(Method::POST, "/ng/api/user/users", &[], body)
                .await?;
            let status = answer["data"]["addUserResponseMap"][user].as_str();
            let status = status.ok_or_else(|| CliError::Answer {
                what: format!("what became of {user}"),
                why: "it has no status of them".to_owned(),
            })?;
            output::one(format, SAID, &said(user, status))?;
        }
    }
    Ok(Exit::Succeeded)
}

fn said(user: &str, status: &str) -> Value {
    json!({"name": user, "status": status})
}

/// All people, those who were removed included.
async fn all(client: &Client) -> Result<Vec<Value>, CliError> {
    let mut people = Vec::new();
    let size = PAGE.to_string();
    for page in 0_u32.. {
        let page = page.to_string();
        let query = [
            ("includeRemoved", "true"),
            ("pageIndex", page.as_str()),
            ("pageSize", &size),
        ];
        let path = "/ng/api/user/aggregate";
        let answer = client.call(Method::POST, path, &query, Body::Empty).await?;
        let content = answer["data"]["content"].as_array();
        let content = content.map(Vec::as_slice).unwrap_or_default();
        people.extend(content.iter().map(|one| one["user"].clone()));
        if content.len() < PAGE {
            break;
        }
    }
    Ok(people)
}
