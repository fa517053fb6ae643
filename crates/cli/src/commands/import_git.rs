//! `slipway import-git`: takes over what is in Git already.

use clap::ValueEnum as _;
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
    let Way { path, named, file } = way(args);
    let file = match &args.git_path {
        Some(file) => file.clone(),
        None => format!(".harness/{file}.yaml"),
    };
    let mut query = vec![
        ("connectorRef", args.git_connector.as_str()),
        ("filePath", &file),
    ];
    let place = [
        ("repoName", args.repo.as_deref()),
        ("branch", args.branch.as_deref()),
    ];
    let said = place.into_iter().chain(named);
    query.extend(said.filter_map(|(name, value)| Some((name, value?))));
    let body = Body::Json(json!({"templateVersion": args.version_label, "identifier": args.id}));
    client.call(Method::POST, &path, &query, body).await?;
    let kind = args.kind.to_possible_value();
    let kind = kind.as_ref().map(|kind| kind.get_name());
    let taken = json!({"kind": kind, "identifier": args.id, "file": file, "branch": args.branch});
    output::one(format, TAKEN, &taken)?;
    Ok(Exit::Succeeded)
}

/// How a kind is asked for.
struct Way<'a> {
    path: String,
    /// Parameters that name it.
    named: Vec<(&'static str, Option<&'a str>)>,
    /// Where `slipway apply` saves it, below `.harness`.
    file: String,
}

fn way(args: &ImportGitArgs) -> Way<'_> {
    let id = &args.id;
    let below = |owner: &Option<String>| match owner {
        Some(owner) => format!("{owner}_{id}"),
        None => id.clone(),
    };
    match args.kind {
        InGit::Pipeline => Way {
            path: format!("/pipeline/api/pipelines/import/{}", segment(id)),
            named: Vec::new(),
            file: id.clone(),
        },
        InGit::InputSet => Way {
            path: format!("/pipeline/api/inputSets/import/{}", segment(id)),
            named: vec![("pipelineIdentifier", args.pipeline.as_deref())],
            file: below(&args.pipeline),
        },
        InGit::Template => Way {
            path: format!("/template/api/templates/import/{}", segment(id)),
            named: Vec::new(),
            file: match &args.version_label {
                Some(label) => format!("{id}_{label}"),
                None => id.clone(),
            },
        },
        InGit::Service => Way {
            path: "/ng/api/servicesV2/import".to_owned(),
            named: vec![("serviceIdentifier", Some(id))],
            file: format!("services/{id}"),
        },
        InGit::Environment => Way {
            path: "/ng/api/environmentsV2/import".to_owned(),
            named: vec![("environmentIdentifier", Some(id))],
            file: format!("environments/{id}"),
        },
        InGit::Infrastructure => Way {
            path: "/ng/api/infrastructures/import".to_owned(),
            named: vec![
                ("infraIdentifier", Some(id)),
                ("environmentIdentifier", args.environment.as_deref()),
            ],
            file: format!("infrastructures/{}", below(&args.environment)),
        },
        InGit::Overrides => Way {
            path: "/ng/api/serviceOverrides/import".to_owned(),
            named: Vec::new(),
            file: format!("overrides/{id}"),
        },
    }
}
