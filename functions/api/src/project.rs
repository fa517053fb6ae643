//! Projects: `/ng/api/projects`.

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use serde_json::{Value, json};
use slipway_model::entity::Kind;
use slipway_model::id::{OrgId, ProjectId, Scope};
use slipway_store::record::EntityRecord;

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::bundle;
use crate::call::Call;
use crate::entity::{self, Filter, Place};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::identifier;
use crate::page::Page;
use crate::query::Query;
use crate::wire::{self, tags_map};

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route("/ng/api/projects", get(list).post(create))
        .route("/ng/api/projects/list", get(list))
        .route("/ng/api/projects/{id}", get(one).put(update).delete(remove))
}

/// A project as every answer wraps it.
pub(crate) fn render(record: &EntityRecord) -> Value {
    let parsed = crate::flat::parsed(Kind::Project, &record.yaml);
    let written = parsed.map(|p| p.to_json()).unwrap_or_default();
    let modules = written.get("modules").filter(|m| m.is_array()).cloned();
    json!({
        "project": {
            "orgIdentifier": wire::org(&record.scope),
            "identifier": record.id.as_str(),
            "name": record.name,
            "color": written.get("color").and_then(Value::as_str).unwrap_or("#0063f7"),
            "modules": modules.unwrap_or_else(|| json!(["CD"])),
            "description": record.description.as_deref().unwrap_or_default(),
            "tags": tags_map(&record.tags),
        },
        "createdAt": record.created_ms,
        "lastModifiedAt": record.updated_ms,
        "isFavorite": false,
    })
}

fn org_scope(caller: &Caller, org: &str) -> ApiResult<Scope> {
    identifier::check("orgIdentifier", org)?;
    Ok(Scope::org(caller.account.clone(), OrgId::new(org)))
}

fn place(caller: &Caller, query: &Query, id: &str) -> ApiResult<Place> {
    Place::of(
        org_scope(caller, query.required("orgIdentifier")?)?,
        Kind::Project,
        id,
    )
}

async fn list(Call(deps, caller, query): Call) -> ApiResult {
    let filter = Filter {
        search: query.one("searchTerm")?.map(str::to_owned),
        identifiers: query.all("identifiers").map(str::to_owned).collect(),
        types: Vec::new(),
    };
    let page = Page::ng(&query)?;
    let mut found = Vec::new();
    for scope in org_scopes(&deps, &caller, &query).await? {
        let all = Page {
            index: 0,
            size: 10_000,
        };
        let (records, _) = entity::list(&deps, &scope, Kind::Project, None, &filter, all).await?;
        found.extend(records);
    }
    let total = found.len();
    let content = page.cut(found).iter().map(render).collect();
    Ok(success(page.render(content, total)))
}

/// The organizations that a list looks into: those that were named, else all.
async fn org_scopes(deps: &Deps, caller: &Caller, query: &Query) -> ApiResult<Vec<Scope>> {
    let named: Vec<&str> = query
        .all("orgIdentifier")
        .chain(query.all("orgIdentifiers"))
        .collect();
    if !named.is_empty() {
        return named
            .into_iter()
            .map(|org| org_scope(caller, org))
            .collect();
    }
    let account = Scope::account(caller.account.clone());
    let (all, everything) = (
        Page {
            index: 0,
            size: 10_000,
        },
        Filter::default(),
    );
    let (orgs, _) =
        entity::list(deps, &account, Kind::Organization, None, &everything, all).await?;
    orgs.iter()
        .map(|org| org_scope(caller, org.id.as_str()))
        .collect()
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    Ok(success(render(&record)))
}

/// The organization of a body, which may also stand in the query.
fn scope_of(caller: &Caller, query: &Query, body: &Value) -> ApiResult<Scope> {
    let inner = body.get("project").unwrap_or(body);
    let written = inner
        .get("orgIdentifier")
        .and_then(Value::as_str)
        .filter(|org| !org.is_empty());
    match written {
        Some(org) => org_scope(caller, org),
        None => org_scope(caller, query.required("orgIdentifier")?),
    }
}

async fn create(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let body = body.object()?;
    let scope = scope_of(&caller, &query, &body)?;
    let draft = bundle::draft(scope, Kind::Project, &body, None)?;
    let saved = entity::create(&deps, &caller, draft).await?;
    Ok(saved.answer(render))
}

async fn update(Call(deps, caller, query): Call, Path(id): Path<String>, body: Body) -> ApiResult {
    let body = body.object()?;
    let scope = scope_of(&caller, &query, &body)?;
    let draft = bundle::draft(scope, Kind::Project, &body, Some(&id))?;
    let saved = entity::update(&deps, &caller, draft).await?;
    Ok(saved.answer(render))
}

/// Kinds whose entities keep a project from being deleted.
const HELD_BY: &[Kind] = &[
    Kind::Pipeline,
    Kind::Service,
    Kind::Environment,
    Kind::EnvironmentGroup,
    Kind::Overrides,
    Kind::Connector,
    Kind::Secret,
    Kind::Template,
    Kind::Variable,
    Kind::Freeze,
    Kind::UserGroup,
];

async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = place(&caller, &query, &id)?;
    let mut inside = place.scope.clone();
    inside.project = Some(ProjectId::new(place.id.as_str()));
    for kind in HELD_BY {
        let first = Page { index: 0, size: 1 };
        let (_, count) =
            entity::list(&deps, &inside, *kind, None, &Filter::default(), first).await?;
        if count > 0 {
            let noun = entity::noun(*kind).to_lowercase();
            return Err(ApiError::invalid(format!(
                "Project [{id}] still holds entities ({count} of kind {noun}): delete them first"
            )));
        }
    }
    entity::delete(&deps, &caller, &place).await?;
    Ok(success(Value::Bool(true)))
}
