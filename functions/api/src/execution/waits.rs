//! Whom the stages and steps of a run wait for: other runs in front of them in the line for an infrastructure or a queue,
//! places of a barrier that nobody has reached, and what the run of another pipeline waits for that a stage runs. And when a
//! step or step group that failed is tried again.
//!
//! Nodes of the graph, and the summary in the detail of a run, show it as `waitsFor`, Slipway's own field: `[{"type":"Queue","name":"shared","message":"…",
//! "runs":[{"planExecutionId":"…","pipelineIdentifier":"…","stageIdentifier":"deploy","status":"Running"}]}]`.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_engine::awaited;
use slipway_engine::lane::Awaited;
use slipway_engine::line::{self, Line, stage_of};
use slipway_engine::runs::newest;
use slipway_model::id::{RunId, StageId};
use slipway_model::status::Status;
use slipway_plan::{Plan, StagePlan};
use slipway_steps::{barrier, chained};
use slipway_store::record::{NodeRecord, RunRecord, StageSummary};

use super::graph::stage_uuid;
use crate::Deps;
use crate::error::ApiResult;

/// What the nodes of a graph wait for, by their ids.
pub(crate) type Waits = HashMap<String, Vec<Value>>;

/// All of it, each with the node that waits: `waitsFor` of the summary of a run.
pub(crate) fn listed(waits: &Waits) -> Vec<Value> {
    let mut nodes: Vec<_> = waits.iter().collect();
    nodes.sort_by(|one, other| one.0.cmp(other.0));
    let of_node = |(node, waits): (&String, &Vec<Value>)| {
        let node = node.clone();
        let told = move |wait: &Value| {
            let mut wait = wait.clone();
            wait["node"] = node.as_str().into();
            wait
        };
        waits.iter().map(told).collect::<Vec<_>>()
    };
    nodes.into_iter().flat_map(of_node).collect()
}

/// What the open stages and steps of a run wait for. `nodes` are all attempts, oldest first.
pub(crate) async fn of_run(
    deps: &Deps,
    run: &RunRecord,
    plan: &Plan,
    nodes: &[NodeRecord],
) -> ApiResult<Waits> {
    let mut waits = Waits::new();
    if run.status.is_final() {
        return Ok(waits);
    }
    for stage in plan.groups.iter().flatten() {
        let known = run.stages.iter().find(|known| known.id == stage.id);
        if !known.is_some_and(in_line) {
            continue;
        }
        if let Some(line) = line::of_stage(&deps.runs, plan, &run.id, stage).await? {
            let told = in_front(deps, "Infrastructure", &infrastructure(stage), &line).await?;
            add(&mut waits, stage_uuid(&stage.id), told);
        }
    }
    for node in nodes.iter().filter(|node| node.run == run.id) {
        if let Some(told) = of_node(deps, run, plan, nodes, node).await? {
            add(&mut waits, node.id.to_string(), told);
        }
    }
    let own = nodes.iter().filter(|node| node.run == run.id).cloned();
    let newest = newest(own.collect());
    for next in awaited::of_run(run, plan, &newest, deps.runs.clock.now_ms()) {
        add(&mut waits, next.node.to_string(), next_attempt(&next));
    }
    Ok(waits)
}

/// Whether a stage may stand in a line: before it begins, or before it is rolled back with its run.
fn in_line(stage: &StageSummary) -> bool {
    let unbegun = |undo: Status| undo == Status::NotStarted;
    stage.status == Status::ResourceWaiting
        || stage.undo.as_ref().is_some_and(|undo| unbegun(undo.status))
}

fn add(waits: &mut Waits, node: String, told: Value) {
    waits.entry(node).or_default().push(told);
}

async fn of_node(
    deps: &Deps,
    run: &RunRecord,
    plan: &Plan,
    nodes: &[NodeRecord],
    node: &NodeRecord,
) -> ApiResult<Option<Value>> {
    match (node.node_type.as_str(), node.status) {
        ("Barrier", Status::ResourceWaiting) => Ok(at_barrier(run, plan, nodes, node)),
        (_, Status::ResourceWaiting) => {
            let line = line::of_step(&deps.runs, plan, &run.id, node).await?;
            let Some(line) = line else { return Ok(None) };
            let name = format!("queue `{}`", line.key);
            in_front(deps, "Queue", &name, &line).await.map(Some)
        }
        (_, Status::AsyncWaiting) => match chained::run_of(node) {
            Some(child) => below(deps, &child).await,
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// That a step or step group is tried again, and when.
fn next_attempt(next: &Awaited) -> Value {
    let at = Timestamp::from_millisecond(next.at_ms).unwrap_or(Timestamp::MAX);
    let name = format!("attempt {}", next.attempt.saturating_add(1));
    json!({
        "type": "Retry",
        "name": name,
        "message": format!("its {name}, at {}", at.strftime("%Y-%m-%d %H:%M:%S UTC")),
        "runs": [],
    })
}

fn infrastructure(stage: &StagePlan) -> String {
    let named = |id: Option<&str>| id.unwrap_or("-").to_owned();
    let infrastructure = stage.infrastructure.as_ref();
    let environment = stage.environment.as_ref();
    format!(
        "infrastructure `{}` of environment `{}`",
        named(infrastructure.map(|it| it.identifier.as_str())),
        named(environment.map(|it| it.identifier.as_str())),
    )
}

/// Those in front of somebody in a line.
async fn in_front(deps: &Deps, kind: &str, name: &str, line: &Line) -> ApiResult<Value> {
    let (mut runs, mut texts) = (Vec::new(), Vec::new());
    for holder in &line.ahead {
        let found = deps.store.find_run(&holder.run).await?;
        let stage = stage_of(holder);
        texts.push(said(&holder.run, found.as_ref(), stage));
        runs.push(json!({
            "planExecutionId": holder.run.as_str(),
            "pipelineIdentifier": found.as_ref().map(|run| run.pipeline.as_str()),
            "stageIdentifier": stage.map(StageId::as_str),
            "status": found.as_ref().map(|run| run.status),
        }));
    }
    Ok(json!({
        "type": kind,
        "name": name,
        "message": format!("{name}, behind {}", texts.join("; ")),
        "runs": runs,
    }))
}

fn said(id: &RunId, run: Option<&RunRecord>, stage: Option<&StageId>) -> String {
    let pipeline = run.map_or("-", |run| run.pipeline.as_str());
    match stage {
        Some(stage) => format!("stage {stage} of run {id} ({pipeline})"),
        None => format!("run {id} ({pipeline}), to its end"),
    }
}

fn at_barrier(
    run: &RunRecord,
    plan: &Plan,
    nodes: &[NodeRecord],
    node: &NodeRecord,
) -> Option<Value> {
    let name = node.spec.get("barrierRef")?.as_str()?;
    let awaited = barrier::awaited(plan, name, run, nodes);
    let places: Vec<&str> = awaited.iter().map(|(_, node)| node.as_str()).collect();
    let stages = awaited.iter().map(|(stage, _)| {
        json!({
            "planExecutionId": run.id.as_str(),
            "pipelineIdentifier": run.pipeline.as_str(),
            "stageIdentifier": stage.as_str(),
            "status": run.status,
        })
    });
    (!places.is_empty()).then(|| {
        json!({
            "type": "Barrier",
            "name": name,
            "message": format!("barrier `{name}`, until {} is reached", places.join(", ")),
            "runs": stages.collect::<Vec<Value>>(),
        })
    })
}

/// What the run waits for that a stage has started: it runs no other pipeline itself.
async fn below(deps: &Deps, child: &RunId) -> ApiResult<Option<Value>> {
    let Some(run) = deps.store.find_run(child).await? else {
        return Ok(None);
    };
    let nodes = deps.store.list_nodes(&run.id, None).await?;
    let shown = super::summary::waiting(run.clone(), &nodes);
    let asking = nodes.iter().filter(|node| asks(node.status));
    let asking: Vec<String> = asking
        .map(|node| format!("{} ({:?})", node.id, node.status))
        .chain(unstarted(&run))
        .collect();
    let mut message = format!("run {} ({}), {:?}", run.id, run.pipeline, shown.status);
    if !asking.is_empty() {
        message = format!("{message}: {}", asking.join(", "));
    }
    Ok(Some(json!({
        "type": "Pipeline",
        "name": run.pipeline.as_str(),
        "message": message,
        "runs": [{
            "planExecutionId": run.id.as_str(),
            "pipelineIdentifier": run.pipeline.as_str(),
            "stageIdentifier": null,
            "status": shown.status,
        }],
    })))
}

fn asks(status: Status) -> bool {
    matches!(
        status,
        Status::ApprovalWaiting | Status::InterventionWaiting | Status::InputWaiting
    )
}

/// Stages that somebody must start.
fn unstarted(run: &RunRecord) -> impl Iterator<Item = String> {
    let stages = run.stages.iter();
    let waiting = stages.filter(|stage| stage.status == Status::InputWaiting);
    waiting.map(|stage| format!("{} ({:?})", stage_uuid(&stage.id), stage.status))
}
