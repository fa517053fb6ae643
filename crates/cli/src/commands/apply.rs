//! `slipway apply -f`: files and folders of Harness YAML become entities.

use reqwest::Method;
use serde_json::{Value, json};

use crate::args::{ApplyArgs, Format, GitArgs};
use crate::client::{Body, Client};
use crate::commands::files;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{self, Column};

const COLUMNS: &[Column] = &[
    ("KIND", "/kind"),
    ("IDENTIFIER", "/identifier"),
    ("RESULT", "/result"),
    ("FILE", "/file"),
];

/// What the request says of Git.
fn query(git: &GitArgs) -> Vec<(&'static str, &str)> {
    let given = [
        ("storeType", git.git_connector.as_ref().map(|_| "REMOTE")),
        ("connectorRef", git.git_connector.as_deref()),
        ("repoName", git.repo.as_deref()),
        ("filePath", git.git_path.as_deref()),
        ("branch", git.branch.as_deref()),
        ("isNewBranch", git.new_branch_from.as_ref().map(|_| "true")),
        ("baseBranch", git.new_branch_from.as_deref()),
        ("commitMsg", git.commit_message.as_deref()),
        ("lastObjectId", git.last_object.as_deref()),
    ];
    let given = given.into_iter();
    given
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// Applies every document of every file: what others refer to comes first, whatever the order of the files.
pub async fn apply(
    client: &Client,
    format: Option<Format>,
    args: &ApplyArgs,
) -> Result<Exit, CliError> {
    let sources = files::read(&args.files)?;
    let files: Vec<Value> = sources
        .iter()
        .map(|(name, text)| json!({ "file": name, "yaml": text }))
        .collect();
    let body = Body::Json(json!({ "files": files }));
    let answer = client
        .call(Method::POST, "/slipway/api/apply", &query(&args.git), body)
        .await?;
    let results = answer["data"].as_array().cloned().unwrap_or_default();
    output::rows(format, COLUMNS, &results)?;
    let mut refused = false;
    for result in &results {
        for error in result["errors"].as_array().into_iter().flatten() {
            refused = true;
            let text = error["rendered"]
                .as_str()
                .or_else(|| error["message"].as_str());
            anstream::eprintln!("{}", output::visible(text.unwrap_or("refused")));
        }
        for warning in result["warnings"].as_array().into_iter().flatten() {
            let text = warning["rendered"].as_str().unwrap_or_default();
            anstream::eprintln!("{}", output::visible(text));
        }
    }
    Ok(if refused {
        Exit::Failed
    } else {
        Exit::Succeeded
    })
}
