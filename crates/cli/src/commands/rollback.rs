//! `slipway rollback`: brings back what was there before a deployment.

use reqwest::Method;
use serde_json::json;
use slipway_clock::Clock;

use crate::args::{Format, RollbackArgs};
use crate::client::{Body, Client};
use crate::commands::entity::segment;
use crate::commands::graph;
use crate::commands::run::{shown, started, stay};
use crate::error::CliError;
use crate::exit::Exit;

/// Starts the rollback of a run, or of the newest deployment of a service; with --follow stays with it. One that has
/// ended before is shown as it ended.
pub async fn rollback(
    client: &Client,
    clock: &Clock,
    format: Option<Format>,
    args: &RollbackArgs,
) -> Result<Exit, CliError> {
    let id = match &args.run {
        Some(run) => of_run(client, run, args).await?,
        None => of_service(client, args).await?,
    };
    let run = graph::fetch(client, &id).await?;
    // Who asks once more is answered with the run that did it.
    if let (false, Some(exit)) = (args.follow.follow, Exit::of_status(&run.status)) {
        shown(format, (&id, &run.pipeline), (&run.status, &run.failure))?;
        return Ok(exit);
    }
    stay(client, clock, format, (&id, &run.pipeline), args.follow).await
}

async fn of_run(client: &Client, run: &str, args: &RollbackArgs) -> Result<String, CliError> {
    let path = format!("/slipway/api/runs/{}/rollback", segment(run));
    let stages = Some(&args.stages).filter(|stages| !stages.is_empty());
    let body = Body::Json(json!({"stages": stages, "notes": args.notes}));
    let answer = client.call(Method::POST, &path, &[], body).await?;
    started(&path, &answer)
}

async fn of_service(client: &Client, args: &RollbackArgs) -> Result<String, CliError> {
    let path = "/ng/api/rollback/trigger/v2";
    let body = Body::Json(json!({
        "serviceIdentifier": args.service,
        "envIdentifier": args.environment,
        "infraIdentifier": args.infrastructure,
    }));
    let answer = client.call(Method::POST, path, &[], body).await?;
    let data = &answer["data"];
    match data["planExecutionId"].as_str() {
        Some(id) => Ok(id.to_owned()),
        None => Err(CliError::Refused {
            status: 409,
            code: String::new(),
            message: data["message"]
                .as_str()
                .unwrap_or("it cannot be rolled back")
                .to_owned(),
            warnings: Vec::new(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::Cli;

    #[test]
    fn a_run_or_a_service_is_named_and_never_both() {
        for (line, fine) in [
            ("rollback r1", true),
            ("rollback r1 --stage a --stage b --follow", true),
            ("rollback --service s --environment e", true),
            (
                "rollback --service s --environment e --infrastructure i",
                true,
            ),
            ("rollback", false),
            ("rollback --service s", false),
            ("rollback --environment e", false),
            ("rollback r1 --service s --environment e", false),
            ("rollback --stage a --service s --environment e", false),
        ] {
            let words = ["slipway"].into_iter().chain(line.split(' '));
            assert_eq!(Cli::try_parse_from(words).is_ok(), fine, "{line}");
        }
    }
}
