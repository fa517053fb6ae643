//! `slipway run`: starts a pipeline, and stays with it where asked to.

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Map, Value, json};
use slipway_clock::Clock;
use slipway_model::inputs::Unfilled;
use slipway_model::render::render;
use slipway_model::{Diagnostic, Parsed, emit, entity, inputs, yaml};

use crate::args::{FollowArgs, Format, InputArgs, RunArgs, StageArgs};
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
    stay(client, clock, format, (&id, &args.pipeline), args.follow).await
}

/// Tells the id of a run that was started; with --follow stays until it has ended and tells how.
pub async fn stay(
    client: &Client,
    clock: &Clock,
    format: Option<Format>,
    (id, pipeline): (&str, &str),
    args: FollowArgs,
) -> Result<Exit, CliError> {
    if !args.follow {
        let row = json!({ "run": id, "pipeline": pipeline, "status": "Running" });
        output::one(format, COLUMNS, &row)?;
        return Ok(Exit::Succeeded);
    }
    let patience = Patience {
        no_wait: args.no_wait,
        limit: args.wait_timeout.map(Duration::from_secs),
    };
    let (exit, run) = follow(client, clock, id, patience).await?;
    shown(format, (id, pipeline), (&run.status, &run.failure))?;
    Ok(exit)
}

/// Prints how a run stands, and why it failed if it did.
pub fn shown(
    format: Option<Format>,
    (id, pipeline): (&str, &str),
    (status, reason): (&str, &Option<String>),
) -> Result<(), CliError> {
    let row = json!({"run": id, "pipeline": pipeline, "status": status, "reason": reason});
    output::one(format, COLUMNS, &row)
}

/// Starts the pipeline and gives the id of the run.
pub async fn start(client: &Client, args: &RunArgs) -> Result<String, CliError> {
    let given = given(client, &args.pipeline, &args.given, None).await?;
    let path = format!("/pipeline/api/pipeline/execute/{}", segment(&args.pipeline));
    let mut query = sets(&args.given);
    query.extend(notes(args.notes.as_ref()));
    query.extend(args.branch.as_deref().map(|branch| ("branch", branch)));
    execute(client, &path, query, given, &args.chosen).await
}

/// Asks for a run at a path that takes inputs, or below it for one of chosen stages; the id of the run.
pub async fn execute(
    client: &Client,
    path: &str,
    mut query: Vec<(&str, &str)>,
    given: Option<String>,
    chosen: &StageArgs,
) -> Result<String, CliError> {
    query.push(("moduleType", "cd"));
    if chosen.stages.is_empty() {
        let body = given.map_or(Body::Empty, Body::Yaml);
        return started(path, &client.call(Method::POST, path, &query, body).await?);
    }
    let values: Map<String, Value> = chosen.values.iter().map(value).collect::<Result<_, _>>()?;
    let body = json!({
        "runtimeInputYaml": given,
        "stageIdentifiers": chosen.stages,
        "expressionValues": values,
    });
    let path = format!("{path}/stages");
    let answer = client.call(Method::POST, &path, &query, Body::Json(body));
    started(&path, &answer.await?)
}

/// `EXPRESSION=VALUE`; the expression may hold `==` between its brackets.
fn value(text: &String) -> Result<(String, Value), CliError> {
    let end = text.rfind(">=").map(|at| at + 1).or_else(|| text.find('='));
    match end.and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?))) {
        Some((expression, value)) => Ok((expression.to_owned(), value.into())),
        None => {
            let why = format!("--stage-value {text} has no `=`: write it as expression=value");
            Err(CliError::Usage(why))
        }
    }
}

/// The id of the run that an answer tells of.
pub fn started(path: &str, answer: &Value) -> Result<String, CliError> {
    answer
        .pointer("/data/planExecution/uuid")
        .and_then(|id| id.as_str())
        .map(str::to_owned)
        .ok_or_else(|| CliError::Answer {
            what: path.to_owned(),
            why: "it has no data.planExecution.uuid".to_owned(),
        })
}

/// Notes for a run, as the query names them.
pub fn notes(notes: Option<&String>) -> Option<(&'static str, &str)> {
    notes.map(|notes| ("notesForPipelineExecution", notes.as_str()))
}

/// The input sets, as the query names them.
pub fn sets(inputs: &InputArgs) -> Vec<(&str, &str)> {
    let names = inputs.input_sets.iter();
    names
        .map(|name| ("inputSetIdentifiers", name.as_str()))
        .collect()
}

/// The inputs as YAML: those of an earlier run, over them those of the file, and over these the assignments.
/// `None` where neither a file nor an assignment gives any.
pub async fn given(
    client: &Client,
    pipeline: &str,
    inputs: &InputArgs,
    earlier: Option<String>,
) -> Result<Option<String>, CliError> {
    let file = inputs.input_file.as_deref().map(read).transpose()?;
    if inputs.inputs.is_empty() && (file.is_none() || earlier.is_none()) {
        return Ok(file.map(|(_, text)| text));
    }
    let pairs = pairs(&inputs.inputs)?;
    let pipeline = fetch(client, pipeline).await?;
    let assigned = inputs::from_assignments(&pipeline, &pairs).map_err(|f| refused(&f, None))?;
    let earlier = earlier.map(|text| ("inputs of the run".to_owned(), text));
    let texts: Vec<(String, String)> = earlier.into_iter().chain(file).collect();
    let mut documents = Vec::new();
    for (name, text) in &texts {
        let written = yaml::parse(name, text);
        let written = written.map_err(|fault| refused(&[*fault], Some((name, text))))?;
        documents.push(written);
    }
    documents.extend(assigned);
    if let [only] = documents.as_slice() {
        return Ok(Some(emit::to_yaml(only)));
    }
    let Some(asked) = inputs::template(&pipeline.tree) else {
        return Ok(texts.into_iter().next_back().map(|(_, text)| text));
    };
    let given: Vec<_> = documents.iter().map(|document| document.root()).collect();
    let filled = inputs::fill(asked.root(), &given, "", Unfilled::Keep);
    let filled = filled.map_err(|faults| {
        let source = texts
            .last()
            .map(|(name, text)| (name.as_str(), text.as_str()));
        refused(&faults, source)
    })?;
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
