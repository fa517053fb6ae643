//! Interrupts of runs and of single nodes: `/pipeline/api/pipeline/execute/interrupt` and, for answers to a failure
//! that asks for one, `/pipeline/api/pipeline/execute/manualIntervention/interrupt`.

use axum::Router;
use axum::extract::Path;
use axum::routing::put;
use serde_json::{Value, json};
use slipway_engine::error_name::ErrorName;
use slipway_engine::signal::{Word, say};
use slipway_model::id::NodeId;
use slipway_store::record::RunRecord;
use uuid::Uuid;

use crate::Deps;
use crate::auth::Caller;
use crate::call::Call;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::execution::find;
use crate::runs;

/// Interrupts of a whole run, as clients spell them; each with the name that the answer has.
const OF_RUNS: &[(&str, &str)] = &[
    ("AbortAll", "ABORT_ALL"),
    ("Abort", "ABORT_ALL"),
    ("Pause", "PAUSE_ALL"),
    ("PauseAll", "PAUSE_ALL"),
    ("Resume", "RESUME_ALL"),
    ("ResumeAll", "RESUME_ALL"),
    ("ExpireAll", "EXPIRE_ALL"),
    ("UserMarkedFailAll", "USER_MARKED_FAIL_ALL"),
];

/// The interrupt of a node that runs; answers to a failure are the actions of failure strategies.
const FAIL: &str = "UserMarkedFailure";

pub(crate) fn routes() -> Router<Deps> {
    const PREFIX: &str = "/pipeline/api/pipeline/execute";
    Router::new()
        .route(&format!("{PREFIX}/interrupt/{{id}}"), put(run))
        .route(&format!("{PREFIX}/interrupt/{{id}}/{{node}}"), put(node))
        .route(
            &format!("{PREFIX}/manualIntervention/interrupt/{{id}}/{{node}}"),
            put(node),
        )
}

/// Notes what shall happen to a run. Aborting twice, or after its end, changes nothing.
async fn run(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let interrupt = query.required("interruptType")?;
    let known = OF_RUNS.iter().find(|(name, _)| *name == interrupt);
    let Some((_, kind)) = known else {
        let names: Vec<_> = OF_RUNS.iter().map(|(name, _)| *name).collect();
        return Err(ApiError::unsupported(format!(
            "Interrupt type {interrupt} is none of a run; {} are",
            names.join(", ")
        )));
    };
    let run = find(&deps, &caller, &query, &id).await?;
    let word = match *kind {
        "PAUSE_ALL" => Some(Word::Pause),
        "RESUME_ALL" => Some(Word::Resume),
        "EXPIRE_ALL" => Some(Word::Expire),
        "USER_MARKED_FAIL_ALL" => Some(Word::MarkAsFailed),
        _ => None,
    };
    match word {
        Some(word) => say(&deps.runs, &run.id, &caller.principal, &word).await?,
        None if run.status.is_final() => {}
        None => runs::abort(&deps, &caller, &run).await?,
    }
    tell(&caller, &run, interrupt, None);
    Ok(success(answer(&run, kind)))
}

/// Notes that a node that runs has failed, or what is to be done about one that has and asks.
async fn node(
    Call(deps, caller, query): Call,
    Path((id, node)): Path<(String, String)>,
) -> ApiResult {
    let interrupt = query.required("interruptType")?;
    let run = find(&deps, &caller, &query, &id).await?;
    let node = named(&deps, &run, &node).await?;
    let word = match interrupt {
        FAIL => Word::MarkNodeAsFailed { node: node.clone() },
        action => Word::Answer {
            node: node.clone(),
            action: action.to_owned(),
        },
    };
    say(&deps.runs, &run.id, &caller.principal, &word).await?;
    tell(&caller, &run, interrupt, Some(&node));
    Ok(success(answer(&run, interrupt)))
}

/// The node that a request names: by its id, or by an identifier that one node of the run has.
pub(crate) async fn named(deps: &Deps, run: &RunRecord, name: &str) -> ApiResult<NodeId> {
    let nodes = deps.runs.nodes(&run.id, None).await?;
    let id = NodeId::new(name);
    if nodes.contains_key(&id) {
        return Ok(id);
    }
    let mut found = nodes
        .values()
        .filter(|node| node.identifier.as_str() == name);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one.id.clone()),
        (Some(_), Some(_)) => {
            let message = format!(
                "Several nodes of run {} are called {name}: say which by its id",
                run.id
            );
            Err(ApiError::new(ErrorName::Conflict, message))
        }
        (None, _) => {
            let message = format!("No node of run {} that has begun is called {name}", run.id);
            Err(ApiError::new(ErrorName::NotFound, message))
        }
    }
}

fn answer(run: &RunRecord, kind: &str) -> Value {
    json!({
        "id": Uuid::new_v4().to_string(),
        "type": kind,
        "planExecutionId": run.id.as_str(),
    })
}

fn tell(caller: &Caller, run: &RunRecord, interrupt: &str, node: Option<&NodeId>) {
    tracing::info!(
        target: "slipway::audit",
        principal = %caller.principal,
        token.id = %caller.token.id,
        run.id = %run.id,
        node.id = node.map(NodeId::as_str),
        action = interrupt,
        "{} said {interrupt} about run {}", caller.principal, run.id
    );
}
