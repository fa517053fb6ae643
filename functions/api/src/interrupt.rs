//! Interrupts of runs, of single stages and of single nodes: `/pipeline/api/pipeline/execute/interrupt` and, for answers
//! to a failure that asks for one, `/pipeline/api/pipeline/execute/manualIntervention/interrupt`.

use axum::Router;
use axum::extract::Path;
use axum::routing::put;
use serde_json::{Value, json};
use slipway_engine::error_name::ErrorName;
use slipway_engine::signal::{Word, say};
use slipway_engine::stage_word::StageWord;
use slipway_model::id::{NodeId, StageId};
use slipway_store::record::RunRecord;
use uuid::Uuid;

use crate::Deps;
use crate::auth::Caller;
use crate::call::Call;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::execution::find;
use crate::execution::graph::stage_uuid;
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
    ("StageRollback", "STAGE_ROLLBACK"),
    ("Retry", "RETRY"),
];

/// Interrupts of one stage, likewise.
const OF_STAGES: &[(&str, &str)] = &[
    ("AbortAll", "ABORT_ALL"),
    ("Abort", "ABORT"),
    ("ExpireAll", "EXPIRE_ALL"),
    ("UserMarkedFailAll", "USER_MARKED_FAIL_ALL"),
    ("UserMarkedFailure", "USER_MARKED_FAILURE"),
    ("StageRollback", "STAGE_ROLLBACK"),
    ("Retry", "RETRY"),
];

/// The interrupt of a node that runs; answers to a failure are the actions of failure strategies.
const FAIL: &str = "UserMarkedFailure";

/// What is said of steps only by way of their stage or run.
const NOT_OF_STEPS: &[&str] = &[
    "AbortAll",
    "Pause",
    "PauseAll",
    "Resume",
    "ResumeAll",
    "ExpireAll",
];

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

/// The name that the answer has, of an interrupt that is known here.
fn kind_of(known: &'static [(&str, &str)], interrupt: &str, what: &str) -> ApiResult<&'static str> {
    let found = known.iter().find(|(name, _)| *name == interrupt);
    found.map(|(_, kind)| *kind).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        ApiError::unsupported(format!(
            "Interrupt type {interrupt} is none of a {what}; {} are",
            names.join(", ")
        ))
    })
}

/// Notes what shall happen to a run. Aborting twice changes nothing.
async fn run(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let interrupt = query.required("interruptType")?;
    let kind = kind_of(OF_RUNS, interrupt, "run")?;
    let run = find(&deps, &caller, &query, &id).await?;
    let word = match kind {
        "PAUSE_ALL" => Some(Word::Pause),
        "RESUME_ALL" => Some(Word::Resume),
        "EXPIRE_ALL" => Some(Word::Expire),
        "USER_MARKED_FAIL_ALL" => Some(Word::MarkAsFailed),
        "STAGE_ROLLBACK" => Some(Word::RollBackStages),
        "RETRY" => Some(Word::AnswerAll {
            stage: None,
            action: interrupt.to_owned(),
        }),
        _ => None,
    };
    match word {
        Some(word) => say(&deps.runs, &run.id, &caller.principal, &word).await?,
        None => runs::abort(&deps, &caller, &run).await?,
    }
    tell(&caller, &run, interrupt, None);
    Ok(success(answer(&run, kind)))
}

/// Notes what shall happen to a stage; that a node that runs has failed; or what is to be done about one that has and
/// asks.
async fn node(
    Call(deps, caller, query): Call,
    Path((id, node)): Path<(String, String)>,
) -> ApiResult {
    let interrupt = query.required("interruptType")?;
    let run = find(&deps, &caller, &query, &id).await?;
    let (node, word, kind) = match about(&deps, &run, &node).await? {
        About::Stage(stage) => {
            let kind = kind_of(OF_STAGES, interrupt, "stage")?;
            let word = of_stage(&stage, interrupt);
            (NodeId::new(stage_uuid(&stage)), word, kind)
        }
        About::Node(node) => {
            check_of_step(interrupt, &node)?;
            let word = match interrupt {
                FAIL => Word::MarkNodeAsFailed { node: node.clone() },
                action => Word::Answer {
                    node: node.clone(),
                    action: action.to_owned(),
                },
            };
            (node, word, interrupt)
        }
    };
    say(&deps.runs, &run.id, &caller.principal, &word).await?;
    tell(&caller, &run, interrupt, Some(&node));
    Ok(success(answer(&run, kind)))
}

/// What an interrupt of a stage says.
fn of_stage(stage: &StageId, interrupt: &str) -> Word {
    let word = match interrupt {
        "Retry" => {
            return Word::AnswerAll {
                stage: Some(stage.clone()),
                action: interrupt.to_owned(),
            };
        }
        "Abort" | "AbortAll" => StageWord::Abort,
        "ExpireAll" => StageWord::Expire,
        "StageRollback" => StageWord::RollBack,
        _ => StageWord::MarkAsFailed,
    };
    Word::Stage {
        stage: stage.clone(),
        word,
    }
}

/// Harness aborts pipelines and stages; of steps, only those of a type that Slipway does not have (developer.harness.io,
/// *Abort a pipeline, stage, or step*).
fn check_of_step(interrupt: &str, node: &NodeId) -> Result<(), ApiError> {
    if !NOT_OF_STEPS.contains(&interrupt) {
        return Ok(());
    }
    let stage: Vec<_> = node.as_str().split('.').take(2).collect();
    Err(ApiError::unsupported(format!(
        "Interrupt type {interrupt} is none of a step; {FAIL} marks {node} as failed, and AbortAll of {} aborts its stage",
        stage.join(".")
    )))
}

/// What a request is about.
enum About {
    Stage(StageId),
    Node(NodeId),
}

/// What a request names: a stage by its id in the graph, a node by its id or by an identifier that one has, or else a
/// stage by its identifier.
async fn about(deps: &Deps, run: &RunRecord, name: &str) -> Result<About, ApiError> {
    let stages = match run.plan {
        Some(_) => deps.runs.load(&run.id).await?.0.stages,
        None => run.stages.clone(),
    };
    let stage = |is: &dyn Fn(&StageId) -> bool| {
        let mut ids = stages.iter().map(|stage| &stage.id);
        ids.find(|id| is(id)).cloned().map(About::Stage)
    };
    if let Some(stage) = stage(&|id| stage_uuid(id) == name) {
        return Ok(stage);
    }
    match named(deps, run, name).await {
        Ok(node) => Ok(About::Node(node)),
        Err(error) => {
            let known = stage(&|id| id.as_str() == name);
            // Whoever carries the word out tells which stages there are.
            let meant = name
                .strip_prefix("stages.")
                .filter(|rest| !rest.contains('.'));
            let meant = meant.map(|rest| About::Stage(StageId::new(rest)));
            known.or(meant).ok_or(error)
        }
    }
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
