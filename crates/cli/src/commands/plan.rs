//! `slipway plan`: what a run would do, without starting it.

use reqwest::Method;

use crate::args::{Format, PlanArgs};
use crate::client::{Body, Client};
use crate::commands::entity::segment;
use crate::commands::run;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Prints the plan as text, or with --diff how it differs from that of the last run.
///
/// # Errors
/// When the pipeline cannot be planned; the message has every fault.
pub async fn plan(
    client: &Client,
    format: Option<Format>,
    args: &PlanArgs,
) -> Result<Exit, CliError> {
    let body = match run::given(client, &args.pipeline, &args.given, None).await? {
        Some(yaml) => Body::Yaml(yaml),
        None => Body::Empty,
    };
    let path = format!("/slipway/api/plan/{}", segment(&args.pipeline));
    let mut query = run::sets(&args.given);
    query.extend(
        args.stages
            .iter()
            .map(|id| ("stageIdentifiers", id.as_str())),
    );
    if args.diff {
        query.push(("diff", "true"));
    }
    query.extend(args.branch.as_deref().map(|branch| ("branch", branch)));
    let answer = client.call(Method::POST, &path, &query, body).await?;
    match (format, answer["data"]["text"].as_str()) {
        // A plan is made to be read: text is its form, on a pipe too.
        (None | Some(Format::Table), Some(text)) => {
            output::line(output::visible(text).trim_end())?;
        }
        (other, _) => output::document(output::format(other), &answer["data"])?,
    }
    Ok(Exit::Succeeded)
}
