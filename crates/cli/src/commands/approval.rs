//! `slipway approve` and `slipway reject`: answers what a run waits for.

use reqwest::Method;
use serde_json::{Value, json};

use crate::args::ApproveArgs;
use crate::client::{Body, Client};
use crate::commands::entity::segment;
use crate::commands::graph;
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
    let all = client.get(&path, &[("approval_status", "WAITING")]).await?;
    let all: Vec<&Value> = all.as_array().into_iter().flatten().collect();
    if all.is_empty() {
        return Err(nothing(client, &args.run).await?);
    }
    let is_named = |approval: &&&Value| {
        let step = args.step.as_deref();
        step.is_none_or(|step| step_of(approval).is_some_and(|own| is_step(own, step)))
    };
    let found: Vec<&Value> = all.iter().filter(is_named).copied().collect();
    if let (true, Some(step)) = (found.is_empty(), &args.step) {
        let steps: Vec<&str> = all
            .iter()
            .filter_map(|approval| step_of(approval))
            .collect();
        return Err(CliError::Usage(format!(
            "run {} waits for no approval at the step {step}, but at {}",
            args.run,
            steps.join(", ")
        )));
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
            "run {} waits for {} approvals: say which with --step, by an identifier that only one has or by all of {}",
            args.run,
            several.len(),
            several
                .iter()
                .filter_map(|id| step_in(id))
                .collect::<Vec<_>>()
                .join(", ")
        ))),
    }
}

/// The step of an approval, by the id of the approval: run, step and attempt.
fn step_in(id: &str) -> Option<&str> {
    Some(id.split_once('.')?.1.rsplit_once('.')?.0)
}

fn step_of(approval: &Value) -> Option<&str> {
    step_in(approval.get("id")?.as_str()?)
}

/// Whether a step is meant: by all of its name, or by its identifier, the last part of it.
fn is_step(own: &str, named: &str) -> bool {
    own == named || own.rsplit('.').next() == Some(named)
}

/// That a run waits for no approval; where the run of a stage of it waits for a person, that one is named.
async fn nothing(client: &Client, run: &str) -> Result<CliError, CliError> {
    let shown = graph::fetch(client, run).await?;
    let asking: Vec<String> = shown
        .nodes
        .into_iter()
        .flat_map(|node| node.asking)
        .collect();
    let advice = match asking.as_slice() {
        [] => String::new(),
        below => format!(
            " itself; the run that a stage of it waits for asks a person, and is answered there: {}",
            below.join(", ")
        ),
    };
    Ok(CliError::Usage(format!(
        "run {run} waits for no approval{advice}"
    )))
}

#[cfg(test)]
mod tests {
    use super::{is_step, step_in};

    #[test]
    fn a_step_is_named_by_its_identifier_or_by_all_of_its_name() {
        let own = step_in("01a2.stages.a.spec.execution.steps.ask_0.1").expect("a step");
        assert_eq!(own, "stages.a.spec.execution.steps.ask_0");
        for (named, expected) in [
            ("ask_0", true),
            (own, true),
            ("ask", false),
            ("steps", false),
        ] {
            assert_eq!(is_step(own, named), expected, "{named}");
        }
    }
}
