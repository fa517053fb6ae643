//! Post-deployment rollback, as Harness's API has it (apidocs.harness.io, *Rollback*): of what an instance shows
//! (`check`, `trigger`), and of a service in an environment (`trigger/v2`, several with `trigger/v3`). Slipway's own
//! endpoint below a run rolls a whole run back, or stages of it.
//!
//! Harness asks for two rights: `core_pipeline_execute` on the pipeline and `core_environment_rollback` on the
//! environment. Tokens know no single rights yet: one that may use the API has both.

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use serde_json::{Value, json};
use slipway_engine::error_name::ErrorName;
use slipway_engine::undo::{
    Deployed, Outlook, Place, UndoRun, Which, deployed_at, find_place, outlook, undo_run,
};
use slipway_model::id::{EntityId, RunId, Scope};
use slipway_store::InstanceFilter;
use slipway_store::record::{InstanceRecord, RunRecord};

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::execute::started;
use crate::execution::find;
use crate::identifier;

/// The right that Harness names for it, for the audit.
const RIGHT: &str = "core_environment_rollback";

/// Targets of one request at most, as Harness has it.
const MOST_TARGETS: usize = 50;

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route("/ng/api/rollback/check", post(check))
        .route("/ng/api/rollback/trigger", post(trigger))
        .route("/ng/api/rollback/trigger/v2", post(trigger_service))
        .route("/ng/api/rollback/trigger/v3", post(trigger_services))
        .route(
            "/slipway/api/runs/{run}/rollback",
            get(outlook_of_run).post(roll_run_back),
        )
}

/// What `infrastructureMappingId` is here: where an instance is deployed, in one word.
pub(crate) fn mapping_id(instance: &InstanceRecord) -> String {
    format!(
        "{}.{}.{}",
        instance.service, instance.environment, instance.infrastructure
    )
}

/// Something that was named, with what is deployed there.
struct Target {
    place: Place,
    instance: Option<String>,
    deployed: Deployed,
}

impl Target {
    async fn at(
        deps: &Deps,
        scope: &Scope,
        place: Place,
        instance: Option<&str>,
    ) -> ApiResult<Self> {
        Ok(Self {
            deployed: deployed_at(&deps.runs, scope, &place).await?,
            instance: instance.map(str::to_owned),
            place,
        })
    }

    /// What `instanceKey` and `infrastructureMappingId` of a body name.
    async fn of_instance(deps: &Deps, scope: &Scope, body: &Value) -> ApiResult<Self> {
        let key = required(body, "instanceKey")?;
        let mapping = required(body, "infrastructureMappingId")?;
        let filter = InstanceFilter::default();
        let mut all = deps.store.list_instances(scope, &filter).await?.into_iter();
        let found = all.find(|instance| instance.key == key && mapping_id(instance) == mapping);
        let Some(found) = found else {
            let message = format!("There is no instance [{key}] of [{mapping}] any more");
            return Err(ApiError::not_found(message));
        };
        let place = Place {
            service: found.service,
            environment: found.environment,
            infrastructure: found.infrastructure,
        };
        Self::at(deps, scope, place, Some(key)).await
    }

    /// What `serviceIdentifier`, `envIdentifier` and `infraIdentifier` of a body name.
    async fn of_service(deps: &Deps, scope: &Scope, body: &Value) -> ApiResult<Self> {
        let id = |field: &'static str| -> ApiResult<Option<EntityId>> {
            let given = text(body, field)?;
            given
                .map(|given| identifier::check(field, given).map(EntityId::new))
                .transpose()
        };
        let must = |field: &'static str| -> ApiResult<EntityId> {
            id(field)?.ok_or_else(|| ApiError::field(field, "must not be empty"))
        };
        if text(body, "chartVersion")?.is_some() {
            return Err(ApiError::field(
                "chartVersion",
                "no chart is deployed by this version: leave it out",
            ));
        }
        let (service, environment) = (must("serviceIdentifier")?, must("envIdentifier")?);
        let infrastructure = id("infraIdentifier")?;
        let names = (&service, &environment, infrastructure.as_ref());
        let place = find_place(&deps.runs, scope, names).await?;
        let mut target = Self::at(deps, scope, place, None).await?;
        if let Some(wanted) = text(body, "artifact")?
            && target.deployed.artifact.as_deref() != Some(wanted)
        {
            let runs = target.deployed.artifact.as_deref();
            target.deployed.refusal = Some(format!(
                "the artifact there is {}, not {wanted}",
                runs.unwrap_or("not known")
            ));
        }
        Ok(target)
    }

    async fn outlook(&self, deps: &Deps) -> ApiResult<Outlook> {
        match &self.deployed.refusal {
            Some(why) => Ok(Outlook::Refused(why.clone())),
            None => Ok(outlook(&deps.runs, &self.deployed.run, &self.deployed.stages).await?),
        }
    }

    /// Rolls it back; or why not.
    async fn roll_back(
        &self,
        deps: &Deps,
        caller: &Caller,
    ) -> ApiResult<Result<RunRecord, String>> {
        if let Some(why) = &self.deployed.refusal {
            return Ok(Err(why.clone()));
        }
        let (run, stages) = (&self.deployed.run, self.deployed.stages.clone());
        match roll_back(deps, caller, run, stages, "").await {
            Ok(run) => Ok(Ok(run)),
            Err(error) if error.name() == ErrorName::Conflict => {
                Ok(Err(error.message().to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    /// How the rollback of it came out.
    fn answer(&self, outcome: &Result<RunRecord, String>) -> Value {
        let mut answer = outcome_of(outcome);
        answer["instanceKey"] = self.instance.as_deref().into();
        answer["infraMappingId"] = format!(
            "{}.{}.{}",
            self.place.service, self.place.environment, self.place.infrastructure
        )
        .into();
        answer["serviceIdentifier"] = self.place.service.as_str().into();
        answer["envIdentifier"] = self.place.environment.as_str().into();
        answer["infraIdentifier"] = self.place.infrastructure.as_str().into();
        answer
    }
}

/// A field of a body that is a text; empty ones are absent.
fn text<'b>(body: &'b Value, field: &str) -> ApiResult<Option<&'b str>> {
    match body.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(ApiError::field(field, "must be a text")),
    }
}

fn required<'b>(body: &'b Value, field: &str) -> ApiResult<&'b str> {
    text(body, field)?.ok_or_else(|| ApiError::field(field, "must not be empty"))
}

async fn roll_back(
    deps: &Deps,
    caller: &Caller,
    run: &RunId,
    stages: Which,
    notes: &str,
) -> ApiResult<RunRecord> {
    let request = UndoRun {
        run: run.clone(),
        stages,
        principal: caller.principal.clone(),
        notes: notes.to_owned(),
    };
    let undo = undo_run(&deps.runs, request).await?;
    tracing::info!(
        target: "slipway::audit",
        principal = %caller.principal,
        token.id = %caller.token.id,
        pipeline = %undo.pipeline,
        run.id = %undo.id,
        rolled_back.run.id = %run,
        right = RIGHT,
        action = "rolled back",
        "{} rolled run {run} back", caller.principal
    );
    Ok(undo)
}

/// Whether what an instance shows can be rolled back, and to what.
async fn check(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let scope = query.project_scope(&caller)?;
    let target = Target::of_instance(&deps, &scope, &body.object()?).await?;
    let (allowed, message) = told(&target.outlook(&deps).await?);
    let before = target.deployed.before.as_ref();
    let before = before.and_then(|before| before.artifact.as_deref());
    Ok(success(json!({
        "isRollbackAllowed": allowed,
        "rollbackAllowed": allowed,
        "message": message,
        "swimLaneInfo": {
            "planExecutionId": target.deployed.run.as_str(),
            "envIdentifier": target.place.environment.as_str(),
            "infraIdentifier": target.place.infrastructure.as_str(),
            "currentArtifactDisplayName": target.deployed.artifact,
            "previousArtifactDisplayName": before,
        },
    })))
}

fn told(outlook: &Outlook) -> (bool, String) {
    match outlook {
        Outlook::Allowed(stages) => {
            let names: Vec<&str> = stages.iter().map(|stage| stage.as_str()).collect();
            (true, format!("to be rolled back: {}", names.join(", ")))
        }
        Outlook::Done(run) => (
            false,
            format!("run {run} rolls it back already, or has done so"),
        ),
        Outlook::Refused(why) => (false, why.clone()),
    }
}

async fn trigger(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let scope = query.project_scope(&caller)?;
    let target = Target::of_instance(&deps, &scope, &body.object()?).await?;
    let outcome = target.roll_back(&deps, &caller).await?;
    Ok(success(target.answer(&outcome)))
}

async fn trigger_service(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let scope = query.project_scope(&caller)?;
    let target = Target::of_service(&deps, &scope, &body.object()?).await?;
    let outcome = target.roll_back(&deps, &caller).await?;
    Ok(success(target.answer(&outcome)))
}

/// Each target by itself: one that is refused does not hold the others up.
async fn trigger_services(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let scope = query.project_scope(&caller)?;
    let body = body.object()?;
    let wrong = || ApiError::field("targets", "must be a list of objects");
    let targets = body.get("targets").and_then(Value::as_array);
    let targets = targets.ok_or_else(wrong)?;
    if targets.len() > MOST_TARGETS {
        let message = format!("has {} items; at most {MOST_TARGETS}", targets.len());
        return Err(ApiError::field("targets", message));
    }
    if !targets.iter().all(Value::is_object) {
        return Err(wrong());
    }
    let mut results = Vec::with_capacity(targets.len());
    for named in targets {
        let result = one_of_several(&deps, &caller, &scope, named).await;
        results.push(match result {
            Ok(answer) => answer,
            Err(error) if error.status().is_server_error() => return Err(error),
            Err(error) => {
                let mut answer = outcome_of(&Err(error.message().to_owned()));
                for field in ["serviceIdentifier", "envIdentifier", "infraIdentifier"] {
                    answer[field] = named.get(field).cloned().unwrap_or_default();
                }
                answer
            }
        });
    }
    let begun = results
        .iter()
        .filter(|one| one["rollbackTriggered"] == true);
    let begun = begun.count();
    Ok(success(json!({
        "totalRollbacksTriggered": begun,
        "totalRollbacksFailed": results.len() - begun,
        "results": results,
    })))
}

async fn one_of_several(
    deps: &Deps,
    caller: &Caller,
    scope: &Scope,
    named: &Value,
) -> ApiResult<Value> {
    let target = Target::of_service(deps, scope, named).await?;
    let outcome = target.roll_back(deps, caller).await?;
    Ok(target.answer(&outcome))
}

fn outcome_of(outcome: &Result<RunRecord, String>) -> Value {
    json!({
        "isRollbackTriggered": outcome.is_ok(),
        "rollbackTriggered": outcome.is_ok(),
        "planExecutionId": outcome.as_ref().ok().map(|run| run.id.as_str()),
        "message": outcome.as_ref().err(),
    })
}

/// `GET /slipway/api/runs/{run}/rollback`: `{"allowed":true,"message":"…","run":null}`; `run` is the one that has done
/// it, or does it.
async fn outlook_of_run(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let run = find(&deps, &caller, &query, &id).await?;
    let found = outlook(&deps.runs, &run.id, &Which::All).await?;
    let (allowed, message) = told(&found);
    let done = match &found {
        Outlook::Done(run) => Some(run.as_str()),
        _ => None,
    };
    Ok(success(
        json!({"allowed": allowed, "message": message, "run": done}),
    ))
}

/// `POST /slipway/api/runs/{run}/rollback` with `{"stages":["…"],"notes":"…"}`, both optional: rolls the whole run
/// back, or some of its stages. Answers as every execute does; 409 says why not.
async fn roll_run_back(
    Call(deps, caller, query): Call,
    Path(id): Path<String>,
    body: Body,
) -> ApiResult {
    let run = find(&deps, &caller, &query, &id).await?;
    let body = body.object()?;
    let wrong = || ApiError::field("stages", "must be a list of identifiers");
    let stages = match body.get("stages") {
        None | Some(Value::Null) => Which::All,
        Some(Value::Array(names)) => {
            let names = names.iter().map(|name| name.as_str().map(str::to_owned));
            Which::Named(names.collect::<Option<_>>().ok_or_else(wrong)?)
        }
        Some(_) => return Err(wrong()),
    };
    let notes = text(&body, "notes")?.unwrap_or_default();
    let undo = roll_back(&deps, &caller, &run.id, stages, notes).await?;
    Ok(success(started(&undo)))
}
