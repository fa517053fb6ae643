//! Importing entities from Git, moving them there and back, and saying where they are.

use axum::Router;
use axum::extract::Path;
use axum::routing::{post, put};
use serde_json::{Value, json};
use slipway_engine::remote;
use slipway_model::entity::Kind;
use slipway_model::id::Scope;
use slipway_store::record::{EntityRecord, GitPlace};

use super::{DETAILS, Wanted, entity as in_git};
use crate::Deps;
use crate::auth::Caller;
use crate::call::Call;
use crate::entity::{self, Draft, Kept, Place, Saved};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::pipeline;
use crate::query::Query;

pub(crate) fn routes() -> Router<Deps> {
    let (pipelines, sets) = ("/pipeline/api/pipelines", "/pipeline/api/inputSets");
    Router::new()
        .route(&format!("{pipelines}/import"), post(import_pipeline))
        .route(
            &format!("{pipelines}/import/{{id}}"),
            post(import_named_pipeline),
        )
        .route(&format!("{sets}/import/{{id}}"), post(import_set))
        .route(
            &format!("{pipelines}/move-config/{{id}}"),
            post(move_pipeline),
        )
        .route(&format!("{sets}/move-config/{{id}}"), post(move_set))
        .route(
            &format!("{pipelines}/{{id}}/update-git-metadata"),
            put(place_pipeline),
        )
        .route(
            &format!("{sets}/{{id}}/update-git-metadata"),
            put(place_set),
        )
}

fn set(caller: &Caller, query: &Query, id: &str) -> ApiResult<Place> {
    let owner = query.required("pipelineIdentifier")?;
    Place::of_pipeline(query.project_scope(caller)?, Kind::InputSet, owner, id)
}

fn imported(saved: &Saved) -> axum::response::Response {
    saved.answer(|record| json!({"identifier": record.id.as_str(), "governanceMetadata": null}))
}

/// Takes a pipeline over; `id` is the one of the path, where it has one, and `file` what the field is called.
pub(crate) async fn take_pipeline(
    deps: &Deps,
    caller: &Caller,
    (wanted, file): (&Wanted, &str),
    (scope, id): (Scope, Option<&str>),
) -> ApiResult<Saved> {
    let draft = |yaml: String| {
        let draft = Draft::of_yaml(scope.clone(), Kind::Pipeline, yaml)?;
        if let Some(id) = id {
            pipeline::ng::check_same(id, &draft)?;
        }
        Ok(draft)
    };
    let draft = in_git::import(deps, (wanted, &scope), wanted.file(file)?, draft).await?;
    entity::create(deps, caller, draft).await
}

/// Takes an input set of the pipeline `owner`, or an overlay, over.
pub(crate) async fn take_set(
    deps: &Deps,
    caller: &Caller,
    (wanted, file): (&Wanted, &str),
    (scope, owner, id): (Scope, &str, &str),
) -> ApiResult<Saved> {
    let draft = |yaml: String| {
        let kind = match yaml.contains("overlayInputSet:") {
            true => Kind::OverlayInputSet,
            false => Kind::InputSet,
        };
        crate::input_set::draft(scope.clone(), kind, owner, yaml, Some(id))
    };
    let draft = in_git::import(deps, (wanted, &scope), wanted.file(file)?, draft).await?;
    entity::create(deps, caller, draft).await
}

const FILE: &str = "filePath";

async fn import_pipeline(Call(deps, caller, query): Call) -> ApiResult {
    let (wanted, scope) = (Wanted::of(&query)?, query.project_scope(&caller)?);
    let saved = take_pipeline(&deps, &caller, (&wanted, FILE), (scope, None)).await?;
    Ok(imported(&saved))
}

async fn import_named_pipeline(
    Call(deps, caller, query): Call,
    Path(id): Path<String>,
) -> ApiResult {
    let (wanted, scope) = (Wanted::of(&query)?, query.project_scope(&caller)?);
    let saved = take_pipeline(&deps, &caller, (&wanted, FILE), (scope, Some(&id))).await?;
    Ok(imported(&saved))
}

async fn import_set(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let wanted = Wanted::of(&query)?;
    let owner = query.required("pipelineIdentifier")?;
    let scope = set(&caller, &query, &id)?.scope;
    let saved = take_set(&deps, &caller, (&wanted, FILE), (scope, owner, &id)).await?;
    Ok(imported(&saved))
}

/// Moves an entity into Git, or out of it, as a request says.
pub(crate) async fn moved(deps: &Deps, caller: &Caller, query: &Query, place: Place) -> ApiResult {
    let saved = move_config(deps, caller, query, place).await?;
    Ok(saved.answer(|record| json!({"pipelineIdentifier": record.id.as_str(), "identifier": record.id.as_str()})))
}

/// [`moved`] without its answer.
pub(crate) async fn move_config(
    deps: &Deps,
    caller: &Caller,
    query: &Query,
    place: Place,
) -> ApiResult<Saved> {
    let into = into("moveConfigType", query.required("moveConfigType")?)?;
    move_to(deps, caller, (&Wanted::of(query)?, into), place).await
}

/// Whether an entity is moved into Git.
fn into(field: &str, kind: &str) -> ApiResult<bool> {
    match kind {
        "INLINE_TO_REMOTE" => Ok(true),
        "REMOTE_TO_INLINE" => Ok(false),
        _ => Err(ApiError::field(
            field,
            "must be INLINE_TO_REMOTE or REMOTE_TO_INLINE",
        )),
    }
}

/// Moves an entity as the body of a v1 request says.
pub(crate) async fn moved_in_v1(
    deps: &Deps,
    caller: &Caller,
    body: &Value,
    place: Place,
) -> ApiResult<Saved> {
    let field = "move_config_operation_type";
    let into = into(field, body[field].as_str().unwrap_or_default())?;
    let wanted = Wanted::in_body(body, DETAILS)?;
    move_to(deps, caller, (&wanted, into), place).await
}

async fn move_to(
    deps: &Deps,
    caller: &Caller,
    (wanted, into): (&Wanted, bool),
    place: Place,
) -> ApiResult<Saved> {
    let before = entity::get(deps, &place).await?;
    let now = in_git::current(deps, &before, wanted.branch.as_deref().filter(|_| !into)).await?;
    let draft = draft(&now)?;
    in_git::move_config(deps, caller, before, draft, (wanted, into)).await
}

/// A draft of an entity as it is.
fn draft(record: &EntityRecord) -> ApiResult<Draft> {
    let kind = match (Kind::from_key(&record.kind), record.entity_type.as_deref()) {
        (Some(Kind::InputSet), Some("OVERLAY_INPUT_SET")) => Kind::OverlayInputSet,
        (Some(kind), _) => kind,
        (None, _) => {
            return Err(ApiError::invalid(format!(
                "{} is of no known kind",
                record.id
            )));
        }
    };
    Draft::of_yaml(record.scope.clone(), kind, record.yaml.clone())
}

async fn move_pipeline(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = pipeline::place(query.project_scope(&caller)?, &id)?;
    moved(&deps, &caller, &query, place).await
}

async fn move_set(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    moved(&deps, &caller, &query, set(&caller, &query, &id)?).await
}

/// Says anew where an entity is, whose repository or file was renamed. It must be there.
pub(crate) async fn place_anew(
    deps: &Deps,
    caller: &Caller,
    wanted: &Wanted,
    place: Place,
) -> ApiResult<Saved> {
    let before = entity::get(deps, &place).await?;
    let Some(known) = &before.git else {
        return Err(ApiError::invalid(format!(
            "{} is not kept in Git: move it first (`move-config`)",
            before.id
        )));
    };
    let elsewhere = GitPlace {
        connector: wanted
            .connector
            .clone()
            .unwrap_or_else(|| known.connector.clone()),
        repository: wanted
            .repository
            .clone()
            .or_else(|| known.repository.clone()),
        path: wanted.path.clone().unwrap_or_else(|| known.path.clone()),
        branch: wanted.branch.clone().or_else(|| known.branch.clone()),
        commit: None,
        object: None,
    };
    let file = remote::file(&deps.runs, &*deps.sources, &before.scope, &elsewhere, None).await?;
    let now = remote::of_file(&before, file)?;
    let git = now.git.clone().unwrap_or(elsewhere);
    let draft = Draft {
        kept: Kept::InGit(git),
        ..draft(&now)?
    };
    entity::update(deps, caller, draft).await
}

/// [`place_anew`] as a request says.
pub(crate) async fn placed(deps: &Deps, caller: &Caller, query: &Query, place: Place) -> ApiResult {
    let saved = place_anew(deps, caller, &Wanted::of(query)?, place).await?;
    let identifier: Value = saved.record.id.as_str().into();
    Ok(success(json!({"identifier": identifier})))
}

async fn place_pipeline(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = pipeline::place(query.project_scope(&caller)?, &id)?;
    placed(&deps, &caller, &query, place).await
}

async fn place_set(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    placed(&deps, &caller, &query, set(&caller, &query, &id)?).await
}
