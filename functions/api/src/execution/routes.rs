//! Lists and details of runs: `/pipeline/api/pipelines/execution`.

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use serde_json::{Value, json};
use slipway_plan::Plan;
use slipway_steps::chained;
use slipway_store::Page as StorePage;
use slipway_store::record::{NodeRecord, RunRecord, StageSummary};

use super::filter::Filter;
use super::graph::Builder;
use super::{find, notes, plan, summary, waits};
use crate::Deps;
use crate::body::Body;
use crate::call::Call;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::page::Page;
use crate::query::Query;

/// Runs that a list looks at: what lies further back is found by asking for one pipeline or status.
const MOST_LISTED: usize = 20_000;

/// Runs fetched from the store at a time.
const STORE_PAGE: usize = 100;

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route("/pipeline/api/pipelines/execution/summary", post(list))
        .route("/pipeline/api/pipelines/getExecutionNode", get(node))
        .route("/pipeline/api/pipelines/execution/v2/{id}", get(detail))
        .route("/pipeline/api/pipelines/execution/{id}", get(detail))
        .route(
            "/pipeline/api/pipelines/execution/{id}/inputsetV2",
            get(inputs),
        )
        .route(
            "/pipeline/api/pipelines/execution/{id}/notes",
            get(notes::get).put(notes::put),
        )
}

async fn list(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let scope = query.project_scope(&caller)?;
    let filter = Filter::of(&query, &caller, &body.object()?)?;
    let page = Page::ng(&query)?;
    let (mut content, mut total, mut seen, mut after) = (Vec::new(), 0, 0, None);
    loop {
        let part = StorePage {
            limit: STORE_PAGE.min(page.start() + page.size),
            after,
        };
        let listing = deps
            .store
            .list_runs(&scope, filter.pipeline.as_ref(), part)
            .await?;
        seen += listing.items.len();
        for run in listing.items {
            let in_page = total >= page.start() && content.len() < page.size;
            let looked_at = in_page || filter.by_status();
            let run = match looked_at && !run.status.is_final() {
                // Whether it waits for a person, only its steps tell.
                true => {
                    let nodes = deps.store.list_nodes(&run.id, None).await?;
                    summary::waiting(run, &nodes)
                }
                false => run,
            };
            if !filter.keeps(&run) {
                continue;
            }
            if in_page {
                content.push(summary::render(&run, None));
            }
            total += 1;
        }
        after = listing.next;
        if after.is_none() || seen >= MOST_LISTED {
            return Ok(success(page.render(content, total)));
        }
        if content.len() == page.size && !filter.narrows() {
            // What follows need only be counted, and that costs no look at each run.
            let total = deps
                .store
                .count_runs(&scope, filter.pipeline.as_ref())
                .await?;
            return Ok(success(page.render(content, total)));
        }
    }
}

async fn detail(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let run = find(&deps, &caller, &query, &id).await?;
    let plan = plan(&deps, &run).await?;
    let nodes = deps.store.show_nodes(&run.id).await?;
    let waits = match plan.as_deref() {
        Some(plan) => waits::of_run(&deps, &run, plan, &nodes).await?,
        None => waits::Waits::new(),
    };
    let waiting = waits::listed(&waits);
    let run = summary::waiting(run, &nodes);
    let builder = Builder::new(&run, plan.as_deref(), &nodes)
        .with_waits(waits)
        .with_children(children(&deps, &nodes).await?);
    let graph = graph(&run, plan.as_deref(), builder, &query)?;
    let mut rendered = summary::render(&run, plan.as_deref());
    rendered["waitsFor"] = waiting.into();
    let retries = deps.store.list_retries(run.root()).await?;
    rendered["showRetryHistory"] = (retries.len() > 1).into();
    if retries.last().is_some_and(|last| *last != run.id) {
        rendered["canRetry"] = false.into();
    }
    Ok(success(json!({
        "pipelineExecutionSummary": rendered,
        "executionGraph": graph,
    })))
}

/// One node of the whole graph of a run. Ids of nodes are those of one run, and say of which only together with it.
async fn node(Call(deps, caller, query): Call) -> ApiResult {
    let wanted = query.required("nodeExecutionId")?;
    let id = query.one("planExecutionId")?.ok_or_else(|| {
        let advice = "must say of which run the node is: the ids of nodes are those of one run";
        ApiError::field("planExecutionId", advice)
    })?;
    let run = find(&deps, &caller, &query, id).await?;
    let plan = plan(&deps, &run).await?;
    let nodes = deps.store.show_nodes(&run.id).await?;
    let waits = match plan.as_deref() {
        Some(plan) => waits::of_run(&deps, &run, plan, &nodes).await?,
        None => waits::Waits::new(),
    };
    let run = summary::waiting(run, &nodes);
    let builder = Builder::new(&run, plan.as_deref(), &nodes)
        .with_waits(waits)
        .with_children(children(&deps, &nodes).await?);
    match builder.whole()["nodeMap"].get_mut(wanted) {
        Some(node) => Ok(success(node.take())),
        None => Err(ApiError::not_found(format!(
            "The run has no node [{wanted}]"
        ))),
    }
}

/// The runs of other pipelines that steps have started.
async fn children(deps: &Deps, nodes: &[NodeRecord]) -> ApiResult<Vec<RunRecord>> {
    let mut children = Vec::new();
    for child in nodes.iter().filter_map(chained::run_of) {
        children.extend(deps.store.find_run(&child).await?);
    }
    Ok(children)
}

/// The whole graph when asked for, else that of one stage: the one that is named, or the one that a
/// person would look at first.
fn graph(
    run: &RunRecord,
    plan: Option<&Plan>,
    builder: Builder<'_>,
    query: &Query,
) -> ApiResult<Value> {
    if query.one("renderFullBottomGraph")? == Some("true") {
        return Ok(builder.whole());
    }
    let stages: Vec<StageSummary> = summary::stages(run, plan).into_iter().flatten().collect();
    let chosen = match query.one("stageNodeId")? {
        Some(wanted) => Some(
            stages
                .iter()
                .find(|stage| stage.id.as_str() == wanted)
                .ok_or_else(|| ApiError::not_found(format!("The run has no stage [{wanted}]")))?,
        ),
        None => first_to_look_at(&stages),
    };
    Ok(chosen.map_or(Value::Null, |stage| builder.of_stage(stage)))
}

fn first_to_look_at(stages: &[StageSummary]) -> Option<&StageSummary> {
    let bad = |stage: &&StageSummary| stage.status.is_final() && !stage.status.is_good();
    let begun = |stage: &&StageSummary| stage.started_ms.is_some();
    stages
        .iter()
        .find(bad)
        .or_else(|| stages.iter().rev().find(begun))
        .or(stages.first())
}

async fn inputs(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let run = find(&deps, &caller, &query, &id).await?;
    let given = match &run.inputs {
        Some(digest) => Some(text(deps.store.get_blob(digest).await?)?),
        None => None,
    };
    let resolved = text(deps.store.get_blob(&run.yaml).await?)?;
    Ok(success(json!({
        "inputSetYaml": given,
        "inputSetTemplateYaml": given,
        "resolvedYaml": resolved,
        "inputSetDetails": [],
        "inputSetBranchName": null,
    })))
}

fn text(blob: Vec<u8>) -> ApiResult<String> {
    String::from_utf8(blob).map_err(|_| {
        let name = slipway_engine::error_name::ErrorName::StoreUnreadable;
        ApiError::new(name, "A stored document is not text")
    })
}
