//! `slipway run`: starts a pipeline, and stays with it where asked to.

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use slipway_clock::Clock;
use slipway_model::inputs::Unfilled;
use slipway_model::render::render;
use slipway_model::{Diagnostic, Parsed, emit, entity, inputs, yaml};

use crate::args::{Format, InputArgs, RunArgs};
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
    let body = match given(client, &args.pipeline, &args.given).await? {
        Some(yaml) => Body::Yaml(yaml),
        None => Body::Empty,
    };
    let path = format!("/pipeline/api/pipeline/execute/{}", segment(&args.pipeline));
    let mut query = sets(&args.given);
    query.push(("moduleType", "cd"));
    let answer = client.call(Method::POST, &path, &query, body).await?;
    answer
        .pointer("/data/planExecution/uuid")
        .and_then(|id| id.as_str())
        .map(str::to_owned)
        .ok_or_else(|| CliError::Answer {
            what: path,
            why: "it has no data.planExecution.uuid".to_owned(),
        })
}

/// The input sets, as the query names them.
pub fn sets(inputs: &InputArgs) -> Vec<(&str, &str)> {
    let names = inputs.input_sets.iter();
    names
        .map(|name| ("inputSetIdentifiers", name.as_str()))
        .collect()
}

/// The inputs as YAML: those of the file, and over them the assignments.
pub async fn given(
    client: &Client,
    pipeline: &str,
    inputs: &InputArgs,
) -> Result<Option<String>, CliError> {
    let file = inputs.input_file.as_deref().map(read).transpose()?;
    if inputs.inputs.is_empty() {
        return Ok(file.map(|(_, text)| text));
    }
    let pairs = pairs(&inputs.inputs)?;
    let pipeline = fetch(client, pipeline).await?;
    let assigned = inputs::from_assignments(&pipeline, &pairs).map_err(|f| refused(&f, None))?;
    let (Some(assigned), Some((name, text))) = (&assigned, &file) else {
        return Ok(assigned.map(|tree| emit::to_yaml(&tree)));
    };
    let wrong = |faults: Vec<Diagnostic>| refused(&faults, Some((name, text)));
    let written = yaml::parse(name, text).map_err(|fault| wrong(vec![*fault]))?;
    let Some(asked) = inputs::template(&pipeline.tree) else {
        return Ok(Some(text.clone()));
    };
    let given = [written.root(), assigned.root()];
    let filled = inputs::fill(asked.root(), &given, "", Unfilled::Keep).map_err(wrong)?;
    Ok(Some(emit::to_yaml(&filled)))
}

fn read(path: &Path) -> Result<(String, String), CliError> {
    let text = std::fs::read_to_string(path).map_err(|source| CliError::File {
        what: format!("reading {}", path.display()),
        source,
    })?;
    Ok((path.display().to_string(), text))
}

fn pairs(inputs: &[String]) -> Result<Vec<(String, String)>, CliError> {
    let pair = |input: &String| match input.split_once('=') {
        Some((path, value)) => Ok((path.to_owned(), value.to_owned())),
        None => {
            let why = format!("--input {input} has no `=`: write it as path=value");
            Err(CliError::Usage(why))
        }
    };
    inputs.iter().map(pair).collect()
}

/// The pipeline as it is stored.
async fn fetch(client: &Client, pipeline: &str) -> Result<Parsed, CliError> {
    let path = format!("/pipeline/api/pipelines/{}", segment(pipeline));
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
    entity::parse(pipeline, yaml).map_err(|faults| refused(&faults, None))
}

fn refused(faults: &[Diagnostic], source: Option<(&str, &str)>) -> CliError {
    let text = |file: &str| {
        source
            .filter(|(name, _)| *name == file)
            .map(|(_, text)| text)
    };
    CliError::Usage(render(faults, text, false).trim_end().to_owned())
}
