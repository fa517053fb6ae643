//! `slipway rerun`, `retry` and `note`: about runs that were.

use reqwest::Method;
use serde_json::Value;
use slipway_clock::Clock;

use crate::args::{Format, InputArgs, NoteArgs, RerunArgs, RetryArgs};
use crate::client::{Body, Client};
use crate::commands::entity::segment;
use crate::commands::graph;
use crate::commands::run::{execute, given, notes, sets, started, stay};
use crate::error::CliError;
use crate::exit::Exit;

/// Repeats a run; with --follow stays with the new one.
pub async fn rerun(
    client: &Client,
    clock: &Clock,
    format: Option<Format>,
    args: &RerunArgs,
) -> Result<Exit, CliError> {
    let pipeline = graph::fetch(client, &args.run).await?.pipeline;
    let inputs = inputs(client, &args.run, &pipeline, &args.given).await?;
    let path = format!(
        "/pipeline/api/pipeline/execute/rerun/{}/{}",
        segment(&args.run),
        segment(&pipeline)
    );
    let mut query = sets(&args.given);
    query.extend(notes(args.notes.as_ref()));
    let id = execute(client, &path, query, inputs, &args.chosen).await?;
    stay(client, clock, format, (&id, &pipeline), args.follow).await
}

/// Goes on where a run failed; with --follow stays with the new one.
pub async fn retry(
    client: &Client,
    clock: &Clock,
    format: Option<Format>,
    args: &RetryArgs,
) -> Result<Exit, CliError> {
    if !args.given.input_sets.is_empty() {
        let why =
            "a retry takes no input sets: give the inputs that change with --input or --input-file";
        return Err(CliError::Usage(why.to_owned()));
    }
    let pipeline = graph::fetch(client, &args.run).await?.pipeline;
    let from = match args.from.as_slice() {
        [] => failed(client, &args.run).await?,
        stages => stages.to_vec(),
    };
    let inputs = inputs(client, &args.run, &pipeline, &args.given).await?;
    let path = format!(
        "/pipeline/api/pipeline/execute/retry/{}",
        segment(&pipeline)
    );
    let all = args.all_stages.to_string();
    let mut query = vec![
        ("planExecutionId", args.run.as_str()),
        ("runAllStages", all.as_str()),
        ("moduleType", "cd"),
    ];
    query.extend(from.iter().map(|stage| ("retryStages", stage.as_str())));
    query.extend(notes(args.notes.as_ref()));
    let body = inputs.map_or(Body::Empty, Body::Yaml);
    let id = started(
        &path,
        &client.call(Method::POST, &path, &query, body).await?,
    )?;
    stay(client, clock, format, (&id, &pipeline), args.follow).await
}

/// Notes something about a run.
pub async fn note(client: &Client, args: &NoteArgs) -> Result<Exit, CliError> {
    let path = format!(
        "/pipeline/api/pipelines/execution/{}/notes",
        segment(&args.run)
    );
    let query = [("notesForPipelineExecution", args.text.as_str())];
    client.call(Method::PUT, &path, &query, Body::Empty).await?;
    anstream::eprintln!("noted");
    Ok(Exit::Succeeded)
}

/// What is given, over the inputs of an earlier run; `None` where nothing is.
async fn inputs(
    client: &Client,
    run: &str,
    pipeline: &str,
    args: &InputArgs,
) -> Result<Option<String>, CliError> {
    if args.inputs.is_empty() && args.input_file.is_none() {
        return Ok(None);
    }
    let path = format!(
        "/pipeline/api/pipelines/execution/{}/inputsetV2",
        segment(run)
    );
    let answer = client.get(&path, &[]).await?;
    let earlier = answer.pointer("/data/inputSetYaml").and_then(Value::as_str);
    given(client, pipeline, args, earlier.map(str::to_owned)).await
}

/// The stages of a run that failed first.
async fn failed(client: &Client, run: &str) -> Result<Vec<String>, CliError> {
    let path = format!(
        "/pipeline/api/pipeline/execute/{}/retryStages",
        segment(run)
    );
    let answer = client.get(&path, &[]).await?;
    let groups = answer.pointer("/data/groups").and_then(Value::as_array);
    let Some(last) = groups.and_then(|groups| groups.last()) else {
        let why = answer.pointer("/data/errorMessage").and_then(Value::as_str);
        return Err(CliError::Refused {
            status: 409,
            code: String::new(),
            message: why.unwrap_or("the run cannot be retried").to_owned(),
            warnings: Vec::new(),
        });
    };
    let stages = last["info"].as_array().into_iter().flatten();
    let id = |stage: &Value| stage["identifier"].as_str().map(str::to_owned);
    let bad = |stage: &&Value| {
        let status = stage["status"].as_str().unwrap_or_default();
        Exit::of_status(status) != Some(Exit::Succeeded)
    };
    let failed: Vec<String> = stages.clone().filter(bad).filter_map(id).collect();
    // Stages that succeeded and were rolled back with their run are all to run again.
    Ok(match failed.is_empty() {
        true => stages.filter_map(id).collect(),
        false => failed,
    })
}
