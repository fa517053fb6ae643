//! Runs that repeat others: from the beginning (`rerun`), or from a stage on (`retry`).

use axum::Router;
use axum::extract::Path;
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};
use slipway_engine::retry::{self, RetryRun};
use slipway_model::id::{EntityId, Scope};
use slipway_store::record::{RunRecord, StageSummary};

use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::execute::{
    in_v1_body, inputs, listed, notes, of_stages, own, started, started_in_v1, tell,
};
use crate::execution::find;
use crate::pipeline::{place, v1};
use crate::query::Query;
use crate::runs::{self, Inputs};
use crate::{Deps, entity, identifier};

pub(crate) fn routes() -> Router<Deps> {
    const PREFIX: &str = "/pipeline/api/pipeline/execute";
    let rerun = format!("{PREFIX}/rerun/{{id}}/{{pipeline}}");
    let v1 = "/v1/orgs/{org}/projects/{project}/pipelines/{id}/execute";
    Router::new()
        .route(&rerun, post(rerun_by_id))
        .route(&format!("{rerun}/inputSetList"), post(rerun_with_sets))
        .route(&format!("{rerun}/stages"), post(rerun_stages))
        .route(&format!("{v1}/rerun/{{run}}"), post(rerun_in_v1))
        // The one names the pipeline, the other the run.
        .route(
            &format!("{PREFIX}/retry/{{id}}"),
            post(retry_from).put(retry_failed),
        )
        .route(&format!("{v1}/retry/{{run}}"), post(retry_in_v1))
        .route(&format!("{PREFIX}/{{id}}/retryStages"), get(stages))
        .route(&format!("{PREFIX}/retryHistory/{{id}}"), get(history))
        .route(&format!("{PREFIX}/latestExecutionId/{{id}}"), get(latest))
}

async fn rerun(
    deps: &Deps,
    caller: &Caller,
    scope: Scope,
    (of, pipeline): (&str, &str),
    inputs: Inputs,
) -> ApiResult<RunRecord> {
    let pipeline = entity::get(deps, &place(scope.clone(), pipeline)?).await?;
    let old = in_scope(deps, caller, &scope, of).await?;
    let run = runs::rerun(deps, caller, &pipeline, &old.id, inputs).await?;
    tell(caller, &run, "reran");
    Ok(run)
}

/// A run of a scope that a request names.
async fn in_scope(deps: &Deps, caller: &Caller, scope: &Scope, id: &str) -> ApiResult<RunRecord> {
    let run = find(deps, caller, &Query::default(), id).await?;
    match run.scope == *scope {
        true => Ok(run),
        false => Err(ApiError::not_found(format!(
            "Plan Execution Summary does not exist for the given planExecutionId: {id}"
        ))),
    }
}

async fn rerun_by_id(
    Call(deps, caller, query): Call,
    Path((id, pipeline)): Path<(String, String)>,
    body: Body,
) -> ApiResult {
    let inputs = inputs(&query, body.text()?)?;
    let scope = query.project_scope(&caller)?;
    let run = rerun(&deps, &caller, scope, (&id, &pipeline), inputs).await?;
    Ok(success(started(&run)))
}

async fn rerun_with_sets(
    Call(deps, caller, query): Call,
    Path((id, pipeline)): Path<(String, String)>,
    body: Body,
) -> ApiResult {
    let inputs = Inputs {
        notes: notes(&query)?,
        ..listed(&body.object()?)?
    };
    let scope = query.project_scope(&caller)?;
    let run = rerun(&deps, &caller, scope, (&id, &pipeline), inputs).await?;
    Ok(success(started(&run)))
}

async fn rerun_stages(
    Call(deps, caller, query): Call,
    Path((id, pipeline)): Path<(String, String)>,
    body: Body,
) -> ApiResult {
    let inputs = of_stages(&query, &body.object()?)?;
    let scope = query.project_scope(&caller)?;
    let run = rerun(&deps, &caller, scope, (&id, &pipeline), inputs).await?;
    Ok(success(started(&run)))
}

type InProject = Path<(String, String, String, String)>;

async fn rerun_in_v1(
    Call(deps, caller, query): Call,
    Path((org, project, pipeline, id)): InProject,
    body: Body,
) -> ApiResult {
    let inputs = in_v1_body(&query, &body)?;
    let scope = v1::scope(&caller, &org, &project)?;
    let run = rerun(&deps, &caller, scope, (&id, &pipeline), inputs).await?;
    Ok(started_in_v1(&run))
}

/// What a request says of a retry.
struct Retry {
    stages: Vec<String>,
    all: bool,
    inputs: Option<String>,
    notes: String,
}

async fn retry(
    deps: &Deps,
    caller: &Caller,
    old: RunRecord,
    pipeline: EntityId,
    request: Retry,
) -> ApiResult<RunRecord> {
    let request = RetryRun {
        run: old.id,
        pipeline,
        stages: request.stages,
        all: request.all,
        inputs_yaml: request.inputs,
        principal: caller.principal.clone(),
        notes: request.notes,
    };
    let run = runs::retry(deps, request).await?;
    tell(caller, &run, "retried");
    Ok(run)
}

/// A flag of the query that is `true` where nothing is said, as Harness has it for `runAllStages` (apidocs.harness.io,
/// *retryPipeline*).
fn unless_false(query: &Query, key: &str) -> ApiResult<bool> {
    match query.one(key)? {
        None | Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(_) => Err(ApiError::field(key, "must be true or false")),
    }
}

/// Names of stages, each by itself or several with commas between them.
fn names<'q>(given: impl Iterator<Item = &'q str>) -> Vec<String> {
    let names = given.flat_map(|text| text.split(',')).map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// From the stages of `retryStages`, with runtime inputs in the body.
async fn retry_from(
    Call(deps, caller, query): Call,
    Path(pipeline): Path<String>,
    body: Body,
) -> ApiResult {
    let scope = query.project_scope(&caller)?;
    let old = in_scope(&deps, &caller, &scope, query.required("planExecutionId")?).await?;
    let stages = names(query.all("retryStages"));
    if stages.is_empty() {
        return Err(ApiError::field(
            "retryStages",
            "must name the stages to go on from",
        ));
    }
    let request = Retry {
        stages,
        all: unless_false(&query, "runAllStages")?,
        inputs: own(body.text()?),
        notes: notes(&query)?,
    };
    let run = retry(&deps, &caller, old, identifier::entity(&pipeline)?, request).await?;
    Ok(success(started(&run)))
}

/// From the stages that failed, as the run was.
async fn retry_failed(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let old = find(&deps, &caller, &query, &id).await?;
    let request = Retry {
        stages: names(query.all("retryStages")),
        all: false,
        inputs: None,
        notes: notes(&query)?,
    };
    let pipeline = old.pipeline.clone();
    let run = retry(&deps, &caller, old, pipeline, request).await?;
    Ok(success(started(&run)))
}

async fn retry_in_v1(
    Call(deps, caller, query): Call,
    Path((org, project, pipeline, id)): InProject,
    body: Body,
) -> ApiResult<Response> {
    let scope = v1::scope(&caller, &org, &project)?;
    let old = in_scope(&deps, &caller, &scope, &id).await?;
    let inputs = in_v1_body(&query, &body)?;
    let request = Retry {
        stages: names(query.all("retry_stages")),
        all: unless_false(&query, "run_all_stages")?,
        inputs: inputs.own,
        notes: inputs.notes,
    };
    let run = retry(&deps, &caller, old, identifier::entity(&pipeline)?, request).await?;
    Ok(started_in_v1(&run))
}

/// The groups of stages that a run can be retried from, or why it cannot be.
async fn stages(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let run = find(&deps, &caller, &query, &id).await?;
    let found = retry::resumable(&deps.runs, &run).await?;
    let groups: Vec<Value> = found
        .groups
        .iter()
        .enumerate()
        .map(|(index, group)| {
            let beside = |at: Option<&Vec<StageSummary>>| {
                at.and_then(|group| group.first())
                    .map(|stage| stage.id.to_string())
            };
            let parent = beside(index.checked_sub(1).and_then(|at| found.groups.get(at)));
            let next = beside(found.groups.get(index + 1));
            let info = |stage: &StageSummary| {
                json!({
                    "name": stage.name,
                    "identifier": stage.id.as_str(),
                    "status": stage.status,
                    "createdAt": stage.started_ms,
                    "parentId": parent,
                    "nextId": next,
                })
            };
            json!({"info": group.iter().map(info).collect::<Vec<_>>()})
        })
        .collect();
    Ok(success(json!({
        "isResumable": found.refusal.is_none(),
        "errorMessage": found.refusal,
        "groups": groups,
    })))
}

/// A run with the runs that it is a retry of and its own retries, the newest first.
async fn history(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let run = find(&deps, &caller, &query, &id).await?;
    let chain = retry::history(&deps.runs, &run).await?;
    let info = |run: &RunRecord| {
        json!({
            "uuid": run.id.as_str(),
            "startTs": run.started_ms,
            "endTs": run.ended_ms,
            "status": run.status,
        })
    };
    let origin = run.origin.as_ref();
    let again: Vec<&str> = origin
        .iter()
        .flat_map(|origin| &origin.stages)
        .map(|stage| stage.as_str())
        .collect();
    let kept: Vec<&str> = origin
        .iter()
        .flat_map(|origin| &origin.kept)
        .map(|(stage, _)| stage.as_str())
        .collect();
    let latest = chain.last().unwrap_or(&run);
    Ok(success(json!({
        "latestExecutionId": latest.id.as_str(),
        "errorMessage": null,
        "executionInfos": chain.iter().rev().map(info).collect::<Vec<_>>(),
        "retryStagesMetadata": {"retryStagesIdentifier": again, "skipStagesIdentifier": kept},
    })))
}

async fn latest(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let run = find(&deps, &caller, &query, &id).await?;
    let chain = deps.store.list_retries(run.root()).await?;
    let latest = chain.last().unwrap_or(&run.id);
    Ok(success(
        json!({"latestExecutionId": latest.as_str(), "errorMessage": null}),
    ))
}
