//! Starting runs: by id, with a list of input sets, of chosen stages, and in v1 form.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use slipway_engine::context::status_name;
use slipway_model::id::{EntityId, Scope};
use slipway_plan::Chosen;
use slipway_store::record::RunRecord;

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::entity;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::execution::summary;
use crate::git::shown::of_place;
use crate::git::{branch, entity as in_git};
use crate::identifier;
use crate::pipeline::{place, v1};
use crate::query::Query;
use crate::runs::{self, Inputs};

pub(crate) fn routes() -> Router<Deps> {
    let v1 = "/v1/orgs/{org}/projects/{project}/pipelines/{id}/execute";
    Router::new()
        .route("/pipeline/api/pipeline/execute/{id}", post(by_id))
        .route(
            "/pipeline/api/pipeline/execute/{id}/inputSetList",
            post(with_input_sets),
        )
        .route(
            "/pipeline/api/pipeline/execute/{id}/stages",
            post(some_stages),
        )
        .route(
            "/pipeline/api/pipeline/execute/stagesExecutionList",
            get(stages_to_choose),
        )
        .route(v1, post(in_v1))
        .route(&format!("{v1}/dynamic"), post(dynamic))
}

/// What every NG execute answers.
pub(crate) fn started(run: &RunRecord) -> Value {
    json!({
        "planExecution": {
            "uuid": run.id.as_str(),
            "planId": run.id.as_str(),
            "status": status_name(run.status),
            "startTs": run.started_ms,
            "endTs": run.ended_ms,
            "createdAt": run.started_ms,
            "metadata": {
                "runSequence": run.sequence,
                "executionUuid": run.id.as_str(),
                "pipelineIdentifier": run.pipeline.as_str(),
                "moduleType": "cd",
                "executionMode": summary::execution_mode(run),
                "originalPlanExecutionIdForRollbackMode": run.undoes().map(|of| of.run.as_str()),
                "triggerInfo": summary::trigger_info(run),
            },
            "governanceMetadata": null,
        },
        "gitDetails": run.git.as_ref().map(of_place),
    })
}

/// The body is `pipeline:` YAML with the runtime inputs, or JSON of the same form, or nothing.
async fn by_id(Call(deps, caller, query): Call, Path(id): Path<String>, body: Body) -> ApiResult {
    let inputs = inputs(&query, body.text()?)?;
    let run = start(&deps, &caller, query.project_scope(&caller)?, &id, inputs).await?;
    Ok(success(started(&run)))
}

/// The runtime inputs of a request: input sets by `inputSetIdentifiers`, and the body.
pub(crate) fn inputs(query: &Query, text: &str) -> ApiResult<Inputs> {
    let named = query.all("inputSetIdentifiers");
    let stages = query.all("stageIdentifiers").map(EntityId::new).collect();
    Ok(Inputs {
        sets: named.map(input_set).collect::<ApiResult<_>>()?,
        own: own(text),
        chosen: chosen(stages, Vec::new()),
        notes: notes(query)?,
        branch: branch(query)?,
    })
}

/// No stages are all of them.
fn chosen(stages: Vec<EntityId>, values: Vec<(String, String)>) -> Option<Chosen> {
    (!stages.is_empty()).then(|| Chosen::new(stages, values))
}

/// Notes for a run, under either of their names.
pub(crate) fn notes(query: &Query) -> ApiResult<String> {
    let given = match query.one("notesForPipelineExecution")? {
        Some(notes) => Some(notes),
        None => query.one("notes")?,
    };
    Ok(given.unwrap_or_default().to_owned())
}

fn input_set(name: &str) -> ApiResult<EntityId> {
    identifier::check("inputSetIdentifiers", name).map(EntityId::new)
}

/// The runtime inputs of a body; blank text and an empty JSON object are none.
pub(crate) fn own(text: &str) -> Option<String> {
    let trimmed = text.trim();
    let none = trimmed.is_empty() || trimmed == "{}" || trimmed == "null";
    (!none).then(|| text.to_owned())
}

/// What a body gives that names input sets: `inputSetReferences`, and `lastYamlToMerge` over them.
pub(crate) fn listed(body: &Value) -> ApiResult<Inputs> {
    let names = texts(body, "inputSetReferences")?;
    let last = body
        .get("lastYamlToMerge")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Ok(Inputs {
        sets: names.into_iter().map(input_set).collect::<ApiResult<_>>()?,
        own: own(last),
        chosen: chosen_in(body)?,
        notes: String::new(),
        branch: None,
    })
}

/// A list of texts in a body; none where it is left out.
fn texts<'b>(body: &'b Value, field: &str) -> ApiResult<Vec<&'b str>> {
    let wrong = || ApiError::field(field, "must be a list of identifiers");
    match body.get(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().ok_or_else(wrong))
            .collect(),
        Some(_) => Err(wrong()),
    }
}

/// `stageIdentifiers` of a body, with `expressionValues` for what they read of others.
fn chosen_in(body: &Value) -> ApiResult<Option<Chosen>> {
    let wrong = || ApiError::field("expressionValues", "must be texts by their expressions");
    let stages = texts(body, "stageIdentifiers")?;
    let values = match body.get("expressionValues") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(fields)) => fields
            .iter()
            .map(|(expression, value)| match value {
                Value::String(text) => Ok((expression.clone(), text.clone())),
                Value::Bool(_) | Value::Number(_) => Ok((expression.clone(), value.to_string())),
                _ => Err(wrong()),
            })
            .collect::<ApiResult<_>>()?,
        Some(_) => return Err(wrong()),
    };
    Ok(chosen(
        stages.into_iter().map(EntityId::new).collect(),
        values,
    ))
}

/// `{runtimeInputYaml, stageIdentifiers, expressionValues}`, with input sets in the query.
pub(crate) fn of_stages(query: &Query, body: &Value) -> ApiResult<Inputs> {
    let text = body.get("runtimeInputYaml").and_then(Value::as_str);
    let chosen = chosen_in(body)?;
    if chosen.is_none() {
        return Err(ApiError::field(
            "stageIdentifiers",
            "must name the stages to run",
        ));
    }
    Ok(Inputs {
        chosen,
        ..inputs(query, text.unwrap_or_default())?
    })
}

async fn some_stages(
    Call(deps, caller, query): Call,
    Path(id): Path<String>,
    body: Body,
) -> ApiResult {
    let inputs = of_stages(&query, &body.object()?)?;
    let run = start(&deps, &caller, query.project_scope(&caller)?, &id, inputs).await?;
    Ok(success(started(&run)))
}

/// The stages that a request may choose, each with those that it reads.
async fn stages_to_choose(Call(deps, caller, query): Call) -> ApiResult {
    let id = query.required("pipelineIdentifier")?;
    let pipeline = entity::get(&deps, &place(query.project_scope(&caller)?, id)?).await?;
    let pipeline = in_git::current(&deps, &pipeline, branch(&query)?.as_deref()).await?;
    let stages = runs::stages(&deps, &pipeline).await?.unwrap_or_default();
    let shown = stages.iter().map(|stage| {
        let needs = stage.needs.join(", ");
        let message = match needs.as_str() {
            "" => "Running an independent stage".to_owned(),
            needs => {
                format!("It reads {needs}: choose these too, or give values for its expressions")
            }
        };
        json!({
            "stageIdentifier": stage.identifier,
            "stageName": stage.name,
            "message": message,
            "stagesRequired": stage.needs,
            "toBeBlocked": false,
        })
    });
    Ok(success(shown.collect()))
}

async fn with_input_sets(
    Call(deps, caller, query): Call,
    Path(id): Path<String>,
    body: Body,
) -> ApiResult {
    let inputs = Inputs {
        notes: notes(&query)?,
        branch: branch(&query)?,
        ..listed(&body.object()?)?
    };
    let run = start(&deps, &caller, query.project_scope(&caller)?, &id, inputs).await?;
    Ok(success(started(&run)))
}

async fn in_v1(
    Call(deps, caller, query): Call,
    Path((org, project, id)): Path<(String, String, String)>,
    body: Body,
) -> ApiResult {
    let inputs = in_v1_body(&query, &body)?;
    let scope = v1::scope(&caller, &org, &project)?;
    let run = start(&deps, &caller, scope, &id, inputs).await?;
    Ok(started_in_v1(&run))
}

/// `{inputs_yaml}`, and notes in the query.
pub(crate) fn in_v1_body(query: &Query, body: &Body) -> ApiResult<Inputs> {
    let body = body.object()?;
    let given = body.get("inputs_yaml").and_then(Value::as_str);
    Ok(Inputs {
        notes: notes(query)?,
        ..own(given.unwrap_or_default()).into()
    })
}

/// What every v1 execute answers.
pub(crate) fn started_in_v1(run: &RunRecord) -> Response {
    let status = status_name(run.status);
    let details = json!({"execution_id": run.id.as_str(), "status": status});
    Json(json!({"execution_details": details})).into_response()
}

async fn dynamic() -> ApiResult {
    Err(ApiError::unsupported(
        "Dynamic execution is not enabled: save the pipeline and execute it by its identifier",
    ))
}

async fn start(
    deps: &Deps,
    caller: &Caller,
    scope: Scope,
    id: &str,
    inputs: Inputs,
) -> ApiResult<RunRecord> {
    let place = place(scope, id)?;
    let pipeline = entity::get(deps, &place).await?;
    let run = runs::start(deps, caller, &pipeline, inputs).await?;
    tell(caller, &run, "executed");
    Ok(run)
}

/// Leaves a trace of who started a run.
pub(crate) fn tell(caller: &Caller, run: &RunRecord, action: &str) {
    let pipeline = &run.pipeline;
    tracing::info!(
        target: "slipway::audit",
        principal = %caller.principal,
        token.id = %caller.token.id,
        pipeline = %pipeline,
        run.id = %run.id,
        action,
        "{} {action} `{pipeline}`", caller.principal
    );
}
