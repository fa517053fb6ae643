//! `slipway approve` and `slipway reject`: answers what a run waits for.

use reqwest::Method;
use serde_json::{Value, json};

use crate::args::ApproveArgs;
use crate::client::{Body, Client};
use crate::commands::entity::segment;
use crate::error::CliError;
use crate::exit::Exit;

/// Says yes.
pub async fn approve(client: &Client, args: &ApproveArgs) -> Result<Exit, CliError> {
    answer(client, args, "APPROVE").await
}

/// Says no.
pub async fn reject(client: &Client, args: &ApproveArgs) -> Result<Exit, CliError> {
    answer(client, args, "REJECT").await
}

async fn answer(client: &Client, args: &ApproveArgs, action: &str) -> Result<Exit, CliError> {
    let inputs: Vec<Value> = args
        .inputs
        .iter()
        .map(|input| match input.split_once('=') {
            Some((name, value)) => Ok(json!({"name": name, "value": value})),
            None => Err(CliError::Usage(format!("`{input}`: expected NAME=VALUE"))),
        })
        .collect::<Result<_, _>>()?;
    let approval = waiting(client, args).await?;
    let path = format!(
        "/pipeline/api/approvals/{}/harness/activity",
        segment(&approval)
    );
    let body = json!({"action": action, "comments": args.comment, "approverInputs": inputs});
    let shown = client
        .call(Method::POST, &path, &[], Body::Json(body))
        .await?;
    let said = shown.pointer("/data/details/approvalActivities");
    let said = said.and_then(Value::as_array).map_or(0, Vec::len);
    let wanted = shown.pointer("/data/details/approvers/minimumCount");
    let wanted = wanted.map_or_else(String::new, |count| format!(" of {count}"));
    anstream::eprintln!(
        "noted as answer {said}{wanted}; `slipway get run {}` shows where it stands",
        args.run
    );
    Ok(Exit::Succeeded)
}

/// The one approval that the run waits for.
async fn waiting(client: &Client, args: &ApproveArgs) -> Result<String, CliError> {
    let path = format!(
        "/v1/orgs/{}/projects/{}/approvals/execution/{}",
        segment(client.org()),
        segment(client.project()),
        segment(&args.run)
    );
    let mut query = vec![("approval_status", "WAITING")];
    query.extend(args.step.as_deref().map(|step| ("node_execution_id", step)));
    let found = client.get(&path, &query).await?;
    let found: Vec<&Value> = found.as_array().into_iter().flatten().collect();
    if let (true, Some(step)) = (found.is_empty(), &args.step) {
        return Err(no_such(client, args, &path, step).await?);
    }
    // Those that a ticket or a script decides are named only where there are no others: the service says why.
    let by_people = |approval: &&&Value| approval["type"] == "HarnessApproval";
    let answerable: Vec<&Value> = found.iter().filter(by_people).copied().collect();
    let chosen = if answerable.is_empty() {
        found
    } else {
        answerable
    };
    let ids: Vec<&str> = chosen
        .into_iter()
        .filter_map(|approval| approval.get("id")?.as_str())
        .collect();
    match ids.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => Err(CliError::Usage(format!(
            "run {} waits for no approval",
            args.run
        ))),
        several => Err(CliError::Usage(format!(
            "run {} waits for {} approvals: say which with --step (the part between run and last dot of {})",
            args.run,
            several.len(),
            several.join(", ")
        ))),
    }
}

/// That no approval of this step waits, and those that do.
async fn no_such(
    client: &Client,
    args: &ApproveArgs,
    path: &str,
    step: &str,
) -> Result<CliError, CliError> {
    let all = client.get(path, &[("approval_status", "WAITING")]).await?;
    let ids = all.as_array().into_iter().flatten();
    // An id is run, step and attempt.
    let steps = ids.filter_map(|approval| {
        let (_, rest) = approval.get("id")?.as_str()?.split_once('.')?;
        Some(rest.rsplit_once('.')?.0.to_owned())
    });
    let steps: Vec<String> = steps.collect();
    let message = match steps.is_empty() {
        true => format!("run {} waits for no approval", args.run),
        false => format!(
            "run {} waits for no approval at the step {step}, but at {}",
            args.run,
            steps.join(", ")
        ),
    };
    Ok(CliError::Usage(message))
}
