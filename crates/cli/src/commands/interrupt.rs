//! `slipway pause`, `resume`, `answer`, `start` and `fail`: what a person says about a run.

use reqwest::Method;

use crate::args::{AnswerArgs, FailArgs, RunArg, StartArgs};
use crate::client::{Body, Client};
use crate::commands::entity::segment;
use crate::error::CliError;
use crate::exit::Exit;

/// Nothing new begins.
pub async fn pause(client: &Client, args: &RunArg) -> Result<Exit, CliError> {
    say(client, "interrupt", &args.run, None, "PauseAll").await
}

/// A paused run goes on.
pub async fn resume(client: &Client, args: &RunArg) -> Result<Exit, CliError> {
    say(client, "interrupt", &args.run, None, "ResumeAll").await
}

/// A failure that asks is answered.
pub async fn answer(client: &Client, args: &AnswerArgs) -> Result<Exit, CliError> {
    let kind = "manualIntervention/interrupt";
    say(client, kind, &args.run, Some(&args.step), &args.action).await
}

/// What runs has failed: one step, what runs in one stage, or all.
pub async fn fail(client: &Client, args: &FailArgs) -> Result<Exit, CliError> {
    let stage = args.stage.as_deref().map(stage_id);
    let node = args.step.clone().or(stage);
    let interrupt = match (&node, args.roll_back) {
        (_, true) => "StageRollback",
        (Some(_), false) => "UserMarkedFailure",
        (None, false) => "UserMarkedFailAll",
    };
    say(client, "interrupt", &args.run, node.as_deref(), interrupt).await
}

/// How the API names a stage beside the steps of its run.
pub(crate) fn stage_id(stage: &str) -> String {
    match stage.strip_prefix("stages.") {
        Some(_) => stage.to_owned(),
        None => format!("stages.{stage}"),
    }
}

/// A stage that somebody must start begins.
pub async fn start(client: &Client, args: &StartArgs) -> Result<Exit, CliError> {
    let (run, stage) = (segment(&args.run), segment(&args.stage));
    let path = format!("/slipway/api/runs/{run}/stages/{stage}/start");
    client.call(Method::POST, &path, &[], Body::Empty).await?;
    let run = &args.run;
    anstream::eprintln!("started; `slipway get run {run}` shows where it stands");
    Ok(Exit::Succeeded)
}

async fn say(
    client: &Client,
    kind: &str,
    run: &str,
    step: Option<&str>,
    interrupt: &str,
) -> Result<Exit, CliError> {
    let mut path = format!("/pipeline/api/pipeline/execute/{kind}/{}", segment(run));
    if let Some(step) = step {
        path = format!("{path}/{}", segment(step));
    }
    let query = [("interruptType", interrupt)];
    client.call(Method::PUT, &path, &query, Body::Empty).await?;
    anstream::eprintln!("noted; `slipway get run {run}` shows where it stands");
    Ok(Exit::Succeeded)
}
