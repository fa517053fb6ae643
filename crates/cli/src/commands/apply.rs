//! `slipway apply -f`: files and folders of Harness YAML become entities.

use reqwest::Method;
use serde_json::{Value, json};

use crate::args::{ApplyArgs, Format};
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
        .call(Method::POST, "/slipway/api/apply", &[], body)
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
