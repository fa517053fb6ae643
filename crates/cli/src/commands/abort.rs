//! `slipway abort`: asks a run, or one stage of it, to stop.

use reqwest::Method;
use slipway_clock::Clock;

use crate::args::AbortArgs;
use crate::client::{Body, Client};
use crate::commands::entity::segment;
use crate::commands::follow::{Patience, follow};
use crate::commands::interrupt::stage_id;
use crate::error::CliError;
use crate::exit::Exit;

/// Asks; with --follow stays until the run has ended and tells how.
pub async fn abort(client: &Client, clock: &Clock, args: &AbortArgs) -> Result<Exit, CliError> {
    let mut path = format!(
        "/pipeline/api/pipeline/execute/interrupt/{}",
        segment(&args.run)
    );
    if let Some(stage) = &args.stage {
        path = format!("{path}/{}", segment(&stage_id(stage)));
    }
    client
        .call(
            Method::PUT,
            &path,
            &[("interruptType", "AbortAll")],
            Body::Empty,
        )
        .await?;
    if !args.follow {
        anstream::eprintln!(
            "abort asked for; `slipway get run {}` shows where it stands",
            args.run
        );
        return Ok(Exit::Succeeded);
    }
    let (_, run) = follow(client, clock, &args.run, Patience::default()).await?;
    Ok(if run.status == "Aborted" {
        Exit::Succeeded
    } else {
        Exit::Failed
    })
}
