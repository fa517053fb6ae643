//! Overrides V2: `/ng/api/serviceOverrides`, also as `/ng/api/overrides`. No wrapper. They may be kept in Git.

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post, put};
use serde_json::{Map, Value, json};
use slipway_model::Tree;
use slipway_model::entity::Kind;
use slipway_model::id::{EntityId, OrgId, ProjectId, Scope};
use slipway_store::StoreError;
use slipway_store::record::EntityRecord;

use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{self, Change, Draft, Filter, Place, Saved};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::git::{Wanted, entity as in_git, routes, shown};
use crate::page::Page;
use crate::query::{self, Query};
use crate::{Deps, edit, flat, identifier, wire};

pub(super) fn router() -> Router<Deps> {
    let mut router = Router::new();
    for path in ["/ng/api/serviceOverrides", "/ng/api/overrides"] {
        router = router
            .route(path, get(list).post(create).put(update))
            .route(&format!("{path}/upsert"), post(upsert))
            .route(&format!("{path}/list"), post(list))
            .route(&format!("{path}/import"), post(import))
            .route(&format!("{path}/move-config/{{id}}"), post(move_config))
            .route(
                &format!("{path}/{{id}}/update-git-metadata"),
                put(place_anew),
            )
            .route(&format!("{path}/get-with-yaml/{{id}}"), get(one))
            .route(&format!("{path}/{{id}}"), get(one).delete(remove));
    }
    router
}

/// Fields that say what overrides are for.
const TARGET: &[&str] = &[
    "type",
    "environmentRef",
    "serviceRef",
    "infraIdentifier",
    "clusterIdentifier",
];

/// What overrides may override; Harness has written these below `spec` and beside the other fields.
const SPEC: &[&str] = &[
    "variables",
    "manifests",
    "configFiles",
    "applicationSettings",
    "connectionStrings",
];

fn spec(stored: &Value) -> Value {
    if let Some(spec) = stored.get("spec") {
        return spec.clone();
    }
    let mut spec = Map::new();
    for field in SPEC {
        let value = stored.get(*field);
        spec.extend(value.map(|value| ((*field).to_owned(), value.clone())));
    }
    Value::Object(spec)
}

pub(super) fn render(record: &EntityRecord) -> Value {
    let stored = flat::parsed(Kind::Overrides, &record.yaml).map(|parsed| parsed.to_json());
    let stored = stored.unwrap_or_default();
    let mut answer = json!({
        "identifier": identifier_of(record),
        "accountId": record.scope.account.as_str(),
        "orgIdentifier": wire::org(&record.scope),
        "projectIdentifier": wire::project(&record.scope),
        "spec": spec(&stored),
        "yaml": record.yaml,
        "yamlInternal": record.yaml,
        "newlyCreated": record.version <= 1,
        "createdAt": record.created_ms,
        "lastModifiedAt": record.updated_ms,
        "entityGitInfo": shown::details(record),
        "storeType": shown::store_type(record),
        "connectorRef": shown::connector(record),
    });
    for field in TARGET {
        answer[*field] = stored.get(*field).cloned().unwrap_or_default();
    }
    answer
}

/// The identifier that clients know overrides by.
fn identifier_of(record: &EntityRecord) -> String {
    let parsed = flat::parsed(Kind::Overrides, &record.yaml);
    parsed.map_or_else(String::new, |parsed| parsed.head.identifier.to_string())
}

/// The scope of a flat body: its own, else that of the query.
pub(super) fn scope(caller: &Caller, query: &Query, body: &Value) -> ApiResult<Scope> {
    let one = |field: &str| -> ApiResult<Option<&str>> {
        let written = body.get(field).and_then(Value::as_str);
        let found = written
            .filter(|text| !text.is_empty())
            .or(query.one(field)?);
        found.map(|text| identifier::check(field, text)).transpose()
    };
    let (org, project) = (one("orgIdentifier")?, one("projectIdentifier")?);
    query::scope(caller, org.map(OrgId::new), project.map(ProjectId::new))
}

/// A body as clients send it: YAML, fields, or both. A field that says something else than the YAML is what
/// was meant, as a client changes what it read.
fn draft(scope: Scope, body: &Value) -> ApiResult<Draft> {
    let kind = Kind::Overrides;
    let given = |field: &str| {
        let value = body.get(field).filter(|value| !value.is_null());
        value.filter(|value| value.as_str() != Some(""))
    };
    let yaml = given("yaml").and_then(Value::as_str);
    let Some(yaml) = yaml else {
        let mut fields = Map::new();
        let own = [
            ("orgIdentifier", wire::org(&scope)),
            ("projectIdentifier", wire::project(&scope)),
        ];
        for (field, value) in own {
            fields.extend(value.map(|value| (field.to_owned(), value.into())));
        }
        for field in ["identifier"].iter().chain(TARGET).chain(&["spec"]) {
            fields.extend(given(field).map(|value| ((*field).to_owned(), value.clone())));
        }
        let root = json!({ kind.key(): fields });
        let yaml = slipway_model::emit::to_yaml(&Tree::from_json(kind.key(), &root));
        return Draft::of_yaml(scope, kind, yaml);
    };
    let mut yaml = yaml.to_owned();
    if let Some(parsed) = flat::parsed(kind, &yaml) {
        let says = parsed.to_json();
        let own = says.get("identifier").is_some();
        for field in ["identifier"].iter().chain(TARGET).chain(&["spec"]) {
            let there = match *field {
                "spec" => Some(spec(&says)),
                // One that was made of the rest says nothing new.
                "identifier" if !own => Some(parsed.head.identifier.as_str().into()),
                field => says.get(field).cloned(),
            };
            if let Some(value) = given(field).filter(|value| there.as_ref() != Some(*value)) {
                yaml = edit::set(kind, &yaml, field, value);
            }
        }
    }
    Draft::of_yaml(scope, kind, yaml)
}

/// The place of the record that says where overrides with an identifier live.
fn pointer(scope: &Scope, id: &str) -> ApiResult<Place> {
    Place::of(scope.clone(), Kind::Overrides, id)
}

/// Where overrides with an identifier live.
async fn find_place(deps: &Deps, scope: Scope, id: &str) -> ApiResult<Place> {
    let leads = entity::get(deps, &pointer(&scope, id)?).await?;
    let (parent, id) = leads.yaml.split_once('\n').unwrap_or_default();
    Ok(Place {
        scope,
        kind: Kind::Overrides,
        parent: Some(EntityId::new(parent)),
        id: EntityId::new(id),
    })
}

/// Makes the identifier of a draft lead to it; refused when it leads to something else that is there.
async fn point(deps: &Deps, draft: &Draft) -> ApiResult<()> {
    let place = pointer(&draft.place.scope, &draft.identifier)?;
    let parent = draft.place.parent.as_ref().map(EntityId::as_str);
    let yaml = format!("{}\n{}", parent.unwrap_or_default(), draft.place.id);
    let before = entity::find(deps, &place).await?;
    if let Some(before) = &before {
        if before.yaml == yaml {
            return Ok(());
        }
        let other = find_place(deps, place.scope.clone(), place.id.as_str()).await?;
        if entity::find(deps, &other).await?.is_some() {
            let message = format!(
                "[{}] is the identifier of other overrides: give these an `identifier` of their own",
                place.id
            );
            return Err(ApiError::field("identifier", message));
        }
    }
    let now = deps.clock.now_ms();
    let record = EntityRecord {
        scope: place.scope,
        kind: Kind::Overrides.key().to_owned(),
        parent: None,
        name: place.id.to_string(),
        id: place.id,
        description: None,
        tags: Vec::new(),
        entity_type: draft.entity_type.clone(),
        yaml,
        version: before.as_ref().map_or(0, |before| before.version),
        created_ms: now,
        updated_ms: now,
        connection: None,
        git: None,
        saved_by: None,
    };
    let expected = before.map(|before| before.version);
    deps.store.put_entity(&record, expected).await?;
    Ok(())
}

/// Removes the record of an identifier; one that is gone is as good.
async fn unpoint(deps: &Deps, scope: &Scope, id: &str) -> ApiResult<()> {
    let (kind, id) = (Kind::Overrides.key(), EntityId::new(id));
    let removed = deps.store.delete_entity(scope, kind, None, &id, None);
    match removed.await {
        Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Stores a draft of overrides that may be there already.
pub(crate) async fn apply(
    deps: &Deps,
    caller: &Caller,
    draft: Draft,
    wanted: &Wanted,
) -> ApiResult<Saved> {
    let before = entity::find(deps, &draft.place).await?;
    replace(deps, caller, draft, before, wanted).await
}

async fn replace(
    deps: &Deps,
    caller: &Caller,
    draft: Draft,
    before: Option<EntityRecord>,
    wanted: &Wanted,
) -> ApiResult<Saved> {
    let id = draft.identifier.clone();
    point(deps, &draft).await?;
    let saved = in_git::upsert(deps, caller, draft, wanted).await?;
    let old = before.map(|before| identifier_of(&before));
    if let Some(old) = old.filter(|old| *old != id && !old.is_empty()) {
        unpoint(deps, &saved.record.scope, &old).await?;
    }
    Ok(saved)
}

async fn create(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let (body, wanted) = (body.kept()?, Wanted::of(&query)?);
    let draft = draft(scope(&caller, &query, &body)?, &body)?;
    point(&deps, &draft).await?;
    let saved = in_git::create(&deps, &caller, draft, &wanted).await?;
    Ok(saved.answer(render))
}

/// What overrides are for cannot change: that would be other overrides.
async fn update(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let (body, wanted) = (body.kept()?, Wanted::of(&query)?);
    let draft = draft(scope(&caller, &query, &body)?, &body)?;
    let named = body.get("identifier").and_then(Value::as_str);
    if let Some(id) = named.filter(|id| !id.is_empty()) {
        let place = find_place(&deps, draft.place.scope.clone(), id).await?;
        if place != draft.place {
            let message =
                format!("[{id}] is for something else: what overrides are for cannot be changed");
            return Err(ApiError::field("identifier", message));
        }
    }
    let before = entity::get(&deps, &draft.place).await?;
    let saved = replace(&deps, &caller, draft, Some(before), &wanted).await?;
    Ok(saved.answer(render))
}

async fn upsert(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let (body, wanted) = (body.kept()?, Wanted::of(&query)?);
    let draft = draft(scope(&caller, &query, &body)?, &body)?;
    let saved = apply(&deps, &caller, draft, &wanted).await?;
    Ok(saved.answer(|record| {
        let mut answer = render(record);
        answer["newlyCreated"] = (saved.change == Change::Created).into();
        answer
    }))
}

async fn list(Call(deps, caller, query): Call) -> ApiResult {
    let filter = Filter {
        search: query.one("searchTerm")?.map(str::to_owned),
        identifiers: Vec::new(),
        types: query.all("type").map(str::to_owned).collect(),
    };
    let (scope, page) = (query.scope(&caller)?, Page::ng(&query)?);
    let (found, total) = entity::list(&deps, &scope, Kind::Overrides, None, &filter, page).await?;
    let mut content = Vec::with_capacity(found.len());
    for leads in found {
        let place = find_place(&deps, scope.clone(), leads.id.as_str()).await?;
        if let Some(record) = entity::find(&deps, &place).await? {
            content.push(render(&record));
        }
    }
    Ok(success(page.render(content, total)))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = find_place(&deps, query.scope(&caller)?, &id).await?;
    let before = entity::get(&deps, &place).await?;
    let found = in_git::shown(&deps, &query, &before).await?;
    let mut answer = render(&found.record);
    if let Some(git) = &found.record.git {
        answer["entityGitInfo"] = shown::with_drift(&before, git);
    }
    if let Some(fault) = found.fault {
        answer["entityValidityDetails"] =
            json!({"valid": false, "invalidYaml": found.record.yaml, "message": fault});
    }
    Ok(success(answer))
}

async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = find_place(&deps, query.scope(&caller)?, &id).await?;
    entity::delete(&deps, &caller, &place).await?;
    unpoint(&deps, &place.scope, &id).await?;
    Ok(success(Value::Bool(true)))
}

/// Takes overrides over that are in Git already. What the request says of what they are for is what the file must say.
async fn import(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let (body, wanted) = (body.kept()?, Wanted::of(&query)?);
    let scope = scope(&caller, &query, &body)?;
    let taken = |yaml: String| {
        let draft = Draft::of_yaml(scope.clone(), Kind::Overrides, yaml)?;
        differs("identifier", &body, &draft.identifier)?;
        let stored = flat::parsed(Kind::Overrides, &draft.yaml).map(|parsed| parsed.to_json());
        let stored = stored.unwrap_or_default();
        for field in TARGET {
            differs(field, &body, stored[*field].as_str().unwrap_or_default())?;
        }
        Ok(draft)
    };
    let file = wanted.file("filePath")?;
    let draft = in_git::import(&deps, (&wanted, &scope), file, taken).await?;
    point(&deps, &draft).await?;
    let saved = entity::create(&deps, &caller, draft).await?;
    Ok(saved.answer(named))
}

/// Refuses a body that names something else than the YAML does.
fn differs(field: &str, body: &Value, written: &str) -> ApiResult<()> {
    let named = body.get(field).and_then(Value::as_str).unwrap_or_default();
    if named.is_empty() || named == written {
        return Ok(());
    }
    let message = format!("the YAML says `{written}`, the request `{named}`");
    Err(ApiError::field(field, message))
}

/// What is told of overrides that were taken over or moved.
fn named(record: &EntityRecord) -> Value {
    json!({"identifier": identifier_of(record), "governanceMetadata": null})
}

async fn move_config(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = find_place(&deps, query.scope(&caller)?, &id).await?;
    let saved = routes::move_config(&deps, &caller, &query, place).await?;
    Ok(saved.answer(named))
}

async fn place_anew(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = find_place(&deps, query.scope(&caller)?, &id).await?;
    let saved = routes::place_anew(&deps, &caller, &Wanted::of(&query)?, place).await?;
    Ok(saved.answer(named))
}
