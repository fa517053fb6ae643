//! `GET` and `POST /slipway/api/runs/{run}/inputs/{step}`: what a step asks for when it begins, and the values.
//!
//! The step is its id or identifier; for the variables of a stage or step group, that of the stage or group. `GET` answers `{"data":{"node":"…","inputs":[{"field":"script","default":null,
//! "allowedValues":[],"regex":null}]}}`; `POST` takes `{"inputs":{"script":"…"}}`. 409 where the step does not ask.

use axum::extract::Path;
use serde_json::{Map, Value, json};
use slipway_engine::by_hand::{asks_before_start, asks_for};
use slipway_engine::execution_input::asked;
use slipway_engine::signal::{Word, say};
use slipway_model::id::NodeId;
use slipway_plan::Plan;
use slipway_store::record::RunRecord;

use crate::Deps;
use crate::body::Body;
use crate::call::Call;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::execution::find;
use crate::interrupt::named;

/// The step that is meant: itself, or the one that asks for the stage or step group of this name.
async fn asking(deps: &Deps, run: &RunRecord, plan: &Plan, name: &str) -> ApiResult<NodeId> {
    if let Some(step) = asks_before_start(plan, run, name) {
        return Ok(step);
    }
    match named(deps, run, name).await {
        Ok(node) if plan.step(&node).is_some() => Ok(node),
        other => asks_for(plan, name).map_or(other, Ok),
    }
}

pub(super) async fn show(
    Call(deps, caller, query): Call,
    Path((id, step)): Path<(String, String)>,
) -> ApiResult {
    let run = find(&deps, &caller, &query, &id).await?;
    let (_, plan) = deps.runs.load(&run.id).await?;
    let node = asking(&deps, &run, &plan, &step).await?;
    let step = plan
        .step(&node)
        .ok_or_else(|| ApiError::not_found(format!("{node} is no step, and asks for no inputs")))?;
    let inputs = asked(&step.spec).into_iter().map(|input| {
        json!({
            "field": input.field,
            "default": input.request.default,
            "allowedValues": input.request.allowed,
            "regex": input.request.regex,
        })
    });
    let inputs: Vec<Value> = inputs.collect();
    Ok(success(json!({"node": node.as_str(), "inputs": inputs})))
}

pub(super) async fn give(
    Call(deps, caller, query): Call,
    Path((id, step)): Path<(String, String)>,
    body: Body,
) -> ApiResult {
    let run = find(&deps, &caller, &query, &id).await?;
    let (_, plan) = deps.runs.load(&run.id).await?;
    let node = asking(&deps, &run, &plan, &step).await?;
    let values = match body.object()?.get("inputs") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(values)) => values.clone(),
        Some(_) => {
            return Err(ApiError::field(
                "inputs",
                "must be an object, values by field",
            ));
        }
    };
    let word = Word::Input {
        node: node.clone(),
        values,
    };
    say(&deps.runs, &run.id, &caller.principal, &word).await?;
    tracing::info!(
        target: "slipway::audit",
        principal = %caller.principal,
        token.id = %caller.token.id,
        run.id = %run.id,
        node.id = %node,
        action = "input",
        "{} gave inputs to run {}", caller.principal, run.id
    );
    Ok(success(json!({"node": node.as_str()})))
}
