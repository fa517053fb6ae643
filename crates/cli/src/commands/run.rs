//! `slipway run`: starts a pipeline, and stays with it where asked to.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use slipway_clock::Clock;
use slipway_model::render::render;
use slipway_model::{Diagnostic, emit, entity, inputs};

use crate::args::{Format, RunArgs};
use crate::client::{Body, Client};
use crate::commands::entity::segment;
use crate::commands::follow::{Patience, follow};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{self, Column};

const COLUMNS: &[Column] = &[
    ("RUN", "/run"),
    ("PIPELINE", "/pipeline"),
    ("STATUS", "/status"),
    ("REASON", "/reason"),
];

/// Starts the pipeline; with --follow shows its progress and ends with its exit code.
pub async fn run(
    client: &Client,
    clock: &Clock,
    format: Option<Format>,
    args: &RunArgs,
) -> Result<Exit, CliError> {
    let id = start(client, args).await?;
    if !args.follow {
        let row = json!({ "run": id, "pipeline": args.pipeline, "status": "Running" });
        output::one(format, COLUMNS, &row)?;
        return Ok(Exit::Succeeded);
    }
    let patience = Patience {
        no_wait: args.no_wait,
        limit: args.wait_timeout.map(Duration::from_secs),
    };
    let (exit, run) = follow(client, clock, &id, patience).await?;
    let row = json!({
        "run": id, "pipeline": args.pipeline, "status": run.status, "reason": run.failure,
    });
    output::one(format, COLUMNS, &row)?;
    Ok(exit)
}

/// Starts the pipeline and gives the id of the run.
pub async fn start(client: &Client, args: &RunArgs) -> Result<String, CliError> {
    let body = match given(client, args).await? {
        Some(yaml) => Body::Yaml(yaml),
        None => Body::Empty,
    };
    let path = format!("/pipeline/api/pipeline/execute/{}", segment(&args.pipeline));
    let answer = client
        .call(Method::POST, &path, &[("moduleType", "cd")], body)
        .await?;
    answer
        .pointer("/data/planExecution/uuid")
        .and_then(|id| id.as_str())
        .map(str::to_owned)
        .ok_or_else(|| CliError::Answer {
            what: path,
            why: "it has no data.planExecution.uuid".to_owned(),
        })
}

/// The inputs as YAML, from the file or from the assignments.
async fn given(client: &Client, args: &RunArgs) -> Result<Option<String>, CliError> {
    match (&args.input_file, args.inputs.is_empty()) {
        (None, true) => Ok(None),
        (Some(_), false) => Err(CliError::Usage(
            "give --input or --input-file, not both: their order would not be clear".to_owned(),
        )),
        (Some(path), true) => {
            std::fs::read_to_string(path)
                .map(Some)
                .map_err(|source| CliError::File {
                    what: format!("reading {}", path.display()),
                    source,
                })
        }
        (None, false) => assigned(client, args).await,
    }
}

async fn assigned(client: &Client, args: &RunArgs) -> Result<Option<String>, CliError> {
    let mut pairs = Vec::new();
    for input in &args.inputs {
        let Some((path, value)) = input.split_once('=') else {
            let why = format!("--input {input} has no `=`: write it as path=value");
            return Err(CliError::Usage(why));
        };
        pairs.push((path.to_owned(), value.to_owned()));
    }
    let path = format!("/pipeline/api/pipelines/{}", segment(&args.pipeline));
    let answer = client.get(&path, &[]).await?;
    let Some(yaml) = answer
        .pointer("/data/yamlPipeline")
        .and_then(|y| y.as_str())
    else {
        return Err(CliError::Answer {
            what: path,
            why: "it has no data.yamlPipeline".to_owned(),
        });
    };
    let refused = |faults: Vec<Diagnostic>| {
        CliError::Usage(render(&faults, |_| None, false).trim_end().to_owned())
    };
    let pipeline = entity::parse(&args.pipeline, yaml).map_err(refused)?;
    let tree = inputs::from_assignments(&pipeline, &pairs).map_err(refused)?;
    Ok(tree.map(|tree| emit::to_yaml(&tree)))
}
