//! Freeze windows as entities: `/ng/api/freeze`. The engine heeds them (`slipway_engine::freeze`). Bodies are YAML,
//! whatever their header says.

use std::collections::HashMap;

use axum::Router;
use axum::extract::Path;
use axum::response::Response;
use axum::routing::{get, post};
use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_engine::error_name::ErrorName;
use slipway_engine::freeze::{Freeze, GLOBAL};
use slipway_model::diagnostic::nearest;
use slipway_model::entity::{Kind, Parsed};
use slipway_model::freeze::{over, refs};
use slipway_model::id::Scope;
use slipway_model::{Code, Diagnostic, Ref, yaml};
use slipway_store::record::EntityRecord;

use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{self, Draft, Filter, Place, Saved};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::page::Page;
use crate::query::Query;
use crate::wire::{self, tags_map};
use crate::{Deps, body, edit, flat};

/// Most identifiers of one request.
const MOST: usize = 100;

/// Most entities of a kind whose names are compared with those of a freeze.
const MOST_NAMES: usize = 1_000;

pub(crate) fn routes() -> Router<Deps> {
    let path = "/ng/api/freeze";
    Router::new()
        .route(path, post(create))
        .route(&format!("{path}/list"), post(list))
        .route(&format!("{path}/delete"), post(remove_many))
        .route(&format!("{path}/updateFreezeStatus"), post(update_status))
        .route(&format!("{path}/getGlobalFreeze"), get(global))
        .route(&format!("{path}/manageGlobalFreeze"), post(put_global))
        .route(
            &format!("{path}/{{id}}"),
            get(one).put(update).delete(remove),
        )
}

/// A freeze as clients see it at a time. The global one is read even where nobody ever made it.
fn render(record: &EntityRecord, now: Timestamp) -> Value {
    let stored = said(&record.yaml);
    let scope = &record.scope;
    let window = Freeze::read(record.id.as_str(), &stored).ok();
    let window = window.and_then(|freeze| freeze.current_or_upcoming(now));
    json!({
        "accountId": scope.account.as_str(),
        "orgIdentifier": wire::org(scope),
        "projectIdentifier": wire::project(scope),
        "identifier": record.id.as_str(),
        "name": record.name,
        "description": record.description,
        "tags": tags_map(&record.tags),
        "type": if record.id.as_str() == GLOBAL { "GLOBAL" } else { "MANUAL" },
        "status": stored.get("status").cloned().unwrap_or_else(|| "Disabled".into()),
        "freezeScope": match (&scope.org, &scope.project) {
            (Some(_), Some(_)) => "project",
            (Some(_), None) => "org",
            _ => "account",
        },
        "windows": stored.get("windows").cloned().unwrap_or_else(|| json!([])),
        "yaml": record.yaml,
        "createdAt": record.created_ms,
        "lastUpdatedAt": record.updated_ms,
        "currentOrUpcomingWindow": window.map(|window| json!({
            "startTime": window.start.as_millisecond(),
            "endTime": window.end.as_millisecond(),
        })),
    })
}

fn place(caller: &Caller, query: &Query, id: &str) -> ApiResult<Place> {
    Place::of(query.scope(caller)?, Kind::Freeze, id)
}

/// What a freeze says, as far as it can be read.
fn said(text: &str) -> Value {
    if let Some(parsed) = flat::parsed(Kind::Freeze, text) {
        return parsed.to_json();
    }
    let tree = yaml::parse(Kind::Freeze.key(), text).ok();
    let body = tree
        .as_ref()
        .and_then(|tree| tree.root().get(Kind::Freeze.key()));
    body.map(Ref::to_json).unwrap_or_default()
}

async fn list(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let body = body.object()?;
    let text = |field: &str| {
        let given = body.get(field).and_then(Value::as_str);
        given.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let between = between(&body)?;
    let named = body.get("freezeIdentifiers").and_then(Value::as_array);
    let named = named.into_iter().flatten().filter_map(Value::as_str);
    let filter = Filter {
        search: text("searchTerm"),
        identifiers: named.map(str::to_owned).collect(),
        types: Vec::new(),
    };
    let (scope, page, wanted) = (
        query.scope(&caller)?,
        Page::ng(&query)?,
        text("freezeStatus"),
    );
    let all = Page {
        index: 0,
        size: 10_000,
    };
    let (found, _) = entity::list(&deps, &scope, Kind::Freeze, None, &filter, all).await?;
    let now = deps.runs.clock.now();
    let kept: Vec<Value> = found
        .iter()
        .filter(|record| between.is_none_or(|between| is_within(record, between)))
        .map(|record| render(record, now))
        .filter(|freeze| {
            wanted
                .as_ref()
                .is_none_or(|wanted| freeze["status"] == **wanted)
        })
        .collect();
    let total = kept.len();
    Ok(success(page.render(page.cut(kept), total)))
}

/// `startTime` and `endTime` of a filter, in epoch milliseconds; without one of them that side is open.
fn between(body: &Value) -> ApiResult<Option<(Timestamp, Timestamp)>> {
    let moment = |field: &str| {
        let Some(ms) = body::moment(&body[field], field)? else {
            return Ok(None);
        };
        let found = Timestamp::from_millisecond(ms);
        let wrong = |_| ApiError::field(field, "is no moment that there is");
        found.map(Some).map_err(wrong)
    };
    let (from, to) = (moment("startTime")?, moment("endTime")?);
    if let (Some(from), Some(to)) = (from, to)
        && to < from
    {
        return Err(ApiError::field("endTime", "must not be before startTime"));
    }
    let given = from.is_some() || to.is_some();
    let all = (Timestamp::MIN, Timestamp::MAX);
    Ok(given.then_some((from.unwrap_or(all.0), to.unwrap_or(all.1))))
}

/// Whether a freeze has a window that is open in a time, turns of recurring ones among them. What cannot be read holds
/// deployments back until it is put right, and is left out of no list.
fn is_within(record: &EntityRecord, (from, to): (Timestamp, Timestamp)) -> bool {
    let freeze = Freeze::read(record.id.as_str(), &said(&record.yaml));
    freeze.map_or(true, |freeze| freeze.is_open_between(from, to))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    Ok(success(render(&record, deps.runs.clock.now())))
}

async fn draft(deps: &Deps, scope: Scope, yaml: String, id: Option<&str>) -> ApiResult<Draft> {
    let mut draft = Draft::of_yaml(scope, Kind::Freeze, yaml)?;
    let own = draft.place.id.as_str();
    if let Some(id) = id.filter(|id| *id != own) {
        let message = format!("the YAML says `{own}`, the request `{id}`");
        return Err(ApiError::field("identifier", message));
    }
    if let Some(parsed) = flat::parsed(Kind::Freeze, &draft.yaml) {
        look(deps, &mut draft, &parsed).await?;
    }
    Ok(draft)
}

/// Warns of what in a freeze holds nothing back now, although it is written well: windows that are over, and names that
/// nothing has.
pub(crate) async fn look(deps: &Deps, draft: &mut Draft, parsed: &Parsed) -> ApiResult<()> {
    draft.warnings.extend(over(parsed, deps.runs.clock.now()));
    let unknown = unknown(deps, &draft.place.scope, parsed).await?;
    draft.warnings.extend(unknown);
    Ok(())
}

/// The names in a freeze that nothing has which it could mean.
async fn unknown(deps: &Deps, scope: &Scope, parsed: &Parsed) -> ApiResult<Vec<Diagnostic>> {
    let rules = parsed.body().get("entityConfigs");
    let rules = rules.into_iter().flat_map(Ref::items);
    let entities = rules.filter_map(|rule| rule.get("entities"));
    let mut names: HashMap<Kind, Option<Vec<String>>> = HashMap::new();
    let mut found = Vec::new();
    for entity in entities.flat_map(Ref::items) {
        if entity.get_text("filterType") == Some("All") {
            continue;
        }
        let Some((kind, scopes)) = meant(entity.get_text("type"), scope) else {
            continue;
        };
        let known = match names.get(&kind) {
            Some(known) => known,
            None => {
                let known = names_of(deps, kind, &scopes).await?;
                names.entry(kind).or_insert(known)
            }
        };
        let Some(known) = known else { continue };
        for (at, name) in refs(entity) {
            let id = ["account.", "org."]
                .iter()
                .find_map(|level| name.strip_prefix(level))
                .unwrap_or(name);
            if known.iter().any(|known| known == id) {
                continue;
            }
            let message = format!("there is no {} `{id}` here", entity::noun(kind));
            let fault = Diagnostic::at(Code::NotFound, at, message).warning();
            found.push(fault.suggest(nearest(id, known.iter().map(String::as_str))));
        }
    }
    Ok(found)
}

/// Which kind of entity a freeze in `scope` names, and where that may live; `None` where it may live where nobody looks.
fn meant(kind: Option<&str>, scope: &Scope) -> Option<(Kind, Vec<Scope>)> {
    let account = || Scope::account(scope.account.clone());
    let org = || Some(Scope::org(scope.account.clone(), scope.org.clone()?));
    let own = || scope.project.as_ref().map(|_| scope.clone());
    match kind? {
        "Service" => Some((Kind::Service, vec![account(), org()?, own()?])),
        "Environment" => Some((Kind::Environment, vec![account(), org()?, own()?])),
        "Pipeline" => Some((Kind::Pipeline, vec![own()?])),
        "Project" if scope.project.is_none() => Some((Kind::Project, vec![org()?])),
        "Org" if scope.org.is_none() => Some((Kind::Organization, vec![account()])),
        _ => None,
    }
}

/// The identifiers of all entities of a kind; `None` where there are too many to tell.
async fn names_of(deps: &Deps, kind: Kind, scopes: &[Scope]) -> ApiResult<Option<Vec<String>>> {
    let mut names = Vec::new();
    for scope in scopes {
        let all = Page {
            index: 0,
            size: MOST_NAMES,
        };
        let filter = Filter::default();
        let (found, total) = entity::list(deps, scope, kind, None, &filter, all).await?;
        if total > found.len() {
            return Ok(None);
        }
        names.extend(found.into_iter().map(|record| record.id.to_string()));
    }
    Ok(Some(names))
}

/// Refuses to edit a freeze while it is enabled (developer-hub, *Freeze deployments*, "Important notes"): what holds
/// deployments back now must not change unseen. It may be disabled, together with other changes. The global freeze is
/// written as a whole each time.
pub(crate) async fn check_edit(deps: &Deps, draft: &Draft) -> ApiResult<()> {
    let id = draft.place.id.as_str();
    let Some(before) = entity::find(deps, &draft.place)
        .await?
        .filter(|_| id != GLOBAL)
    else {
        return Ok(());
    };
    let said = |yaml: &str| flat::parsed(Kind::Freeze, yaml).map(|parsed| parsed.to_json());
    let (Some(before), Some(after)) = (said(&before.yaml), said(&draft.yaml)) else {
        return Ok(());
    };
    let enabled = |freeze: &Value| freeze["status"] == "Enabled";
    if !enabled(&before) || !enabled(&after) || before == after {
        return Ok(());
    }
    let message = format!(
        "The freeze `{id}` is enabled and cannot be edited: disable it, change it, and enable it again"
    );
    Err(ApiError::new(ErrorName::Conflict, message))
}

fn answer(deps: &Deps, saved: &Saved) -> Response {
    saved.answer(|record| render(record, deps.runs.clock.now()))
}

async fn create(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let yaml = body.text()?.to_owned();
    let draft = draft(&deps, query.scope(&caller)?, yaml, None).await?;
    Ok(answer(&deps, &entity::create(&deps, &caller, draft).await?))
}

async fn update(Call(deps, caller, query): Call, Path(id): Path<String>, body: Body) -> ApiResult {
    let yaml = body.text()?.to_owned();
    let draft = draft(&deps, query.scope(&caller)?, yaml, Some(&id)).await?;
    check_edit(&deps, &draft).await?;
    Ok(answer(&deps, &entity::update(&deps, &caller, draft).await?))
}

async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    entity::delete(&deps, &caller, &place(&caller, &query, &id)?).await?;
    Ok(success(Value::Bool(true)))
}

/// The global freeze of a scope, as it is where nobody made one.
fn unset(scope: Scope) -> EntityRecord {
    EntityRecord {
        scope,
        kind: Kind::Freeze.key().to_owned(),
        parent: None,
        id: slipway_model::id::EntityId::new(GLOBAL),
        name: "Global Freeze".to_owned(),
        description: None,
        tags: Vec::new(),
        entity_type: None,
        yaml: format!(
            "freeze:\n  name: Global Freeze\n  identifier: {GLOBAL}\n  status: Disabled\n  windows: []\n"
        ),
        version: 0,
        created_ms: 0,
        updated_ms: 0,
        connection: None,
        git: None,
        saved_by: None,
    }
}

async fn global(Call(deps, caller, query): Call) -> ApiResult {
    let place = place(&caller, &query, GLOBAL)?;
    let record = entity::find(&deps, &place).await?;
    let record = record.unwrap_or_else(|| unset(place.scope));
    Ok(success(render(&record, deps.runs.clock.now())))
}

async fn put_global(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let yaml = body.text()?.to_owned();
    let draft = draft(&deps, query.scope(&caller)?, yaml, Some(GLOBAL)).await?;
    Ok(answer(&deps, &entity::upsert(&deps, &caller, draft).await?))
}

/// The identifiers of a body, a JSON array.
fn listed(body: &Body) -> ApiResult<Vec<String>> {
    let names: Vec<String> = serde_json::from_str(body.text()?).map_err(|error| {
        ApiError::invalid(format!("The body is no JSON array of identifiers: {error}"))
    })?;
    match names.len() <= MOST {
        true => Ok(names),
        false => Err(ApiError::invalid(format!("More than {MOST} identifiers"))),
    }
}

/// What became of each of several freezes.
fn outcome(done: Vec<Value>, failed: Vec<Value>) -> Response {
    success(json!({
        "noOfSuccess": done.len(),
        "noOfFailed": failed.len(),
        "successfulFreezeResponseDTOList": done,
        "freezeErrorResponseDTOList": failed,
    }))
}

fn failure(id: &str, error: &ApiError) -> Value {
    json!({"id": id, "errorMessage": error.message()})
}

async fn update_status(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let status = match query.required("status")? {
        status @ ("Enabled" | "Disabled") => Value::from(status),
        _ => return Err(ApiError::field("status", "must be Enabled or Disabled")),
    };
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for id in listed(&body)? {
        let place = place(&caller, &query, &id)?;
        match set_status(&deps, &caller, &place, &status).await {
            Ok(record) => done.push(render(&record, deps.runs.clock.now())),
            Err(error) if error.status().is_client_error() => failed.push(failure(&id, &error)),
            Err(error) => return Err(error),
        }
    }
    Ok(outcome(done, failed))
}

async fn set_status(
    deps: &Deps,
    caller: &Caller,
    place: &Place,
    status: &Value,
) -> ApiResult<EntityRecord> {
    let before = entity::get(deps, place).await?;
    let yaml = edit::set(Kind::Freeze, &before.yaml, "status", status);
    let draft = draft(deps, place.scope.clone(), yaml, Some(place.id.as_str())).await?;
    Ok(entity::update(deps, caller, draft).await?.record)
}

async fn remove_many(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for id in listed(&body)? {
        let place = place(&caller, &query, &id)?;
        let removed = async {
            let record = entity::get(&deps, &place).await?;
            entity::delete(&deps, &caller, &place).await?;
            Ok::<_, ApiError>(record)
        };
        match removed.await {
            Ok(record) => done.push(render(&record, deps.runs.clock.now())),
            Err(error) if error.status().is_client_error() => failed.push(failure(&id, &error)),
            Err(error) => return Err(error),
        }
    }
    Ok(outcome(done, failed))
}
