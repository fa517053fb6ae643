//! `slipway import-git`: takes over what is in Git already.

use reqwest::Method;
use serde_json::json;

use crate::args::{Format, ImportGitArgs, InGit};
use crate::client::{Body, Client};
use crate::commands::entity::segment;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{self, Column};

const TAKEN: &[Column] = &[
    ("KIND", "/kind"),
    ("IDENTIFIER", "/identifier"),
    ("FILE", "/file"),
    ("BRANCH", "/branch"),
];

/// Does what was asked for.
///
/// # Errors
/// When there is no such file, it is something else, or something of its name is there already.
pub async fn import(
    client: &Client,
    format: Option<Format>,
    args: &ImportGitArgs,
) -> Result<Exit, CliError> {
    let (kind, below) = match args.kind {
        InGit::Pipeline => ("pipeline", "/pipeline/api/pipelines"),
        InGit::InputSet => ("input-set", "/pipeline/api/inputSets"),
        InGit::Template => ("template", "/template/api/templates"),
    };
    let path = format!("{below}/import/{}", segment(&args.id));
    let owner = args
        .pipeline
        .as_deref()
        .filter(|_| args.kind == InGit::InputSet);
    let file = args.git_path.clone().unwrap_or_else(|| {
        let owner = owner.map(|owner| format!("{owner}_")).unwrap_or_default();
        format!(".harness/{owner}{}.yaml", args.id)
    });
    let mut query = vec![
        ("connectorRef", args.git_connector.as_str()),
        ("filePath", &file),
    ];
    let named = [("repoName", &args.repo), ("branch", &args.branch)];
    query.extend(
        named
            .iter()
            .filter_map(|(name, said)| Some((*name, said.as_deref()?))),
    );
    query.extend(owner.map(|owner| ("pipelineIdentifier", owner)));
    let body = Body::Json(json!({"templateVersion": args.version_label}));
    client.call(Method::POST, &path, &query, body).await?;
    let taken = json!({"kind": kind, "identifier": args.id, "file": file, "branch": args.branch});
    output::one(format, TAKEN, &taken)?;
    Ok(Exit::Succeeded)
}
