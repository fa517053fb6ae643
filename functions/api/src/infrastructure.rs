//! Infrastructure definitions: `/ng/api/infrastructures`; the wrapper in answers is `infrastructure`.

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use serde_json::{Value, json};
use slipway_model::entity::Kind;
use slipway_model::id::{EntityId, Scope};
use slipway_store::record::EntityRecord;

use crate::Deps;
use crate::auth::Caller;
use crate::call::Call;
use crate::entity::{self, Filter, Place};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::flat::{self, Form};
use crate::page::Page;
use crate::place::beside;
use crate::query::Query;
use crate::wire::{self, tags_map};

const FORM: Form = Form {
    kind: Kind::Infrastructure,
    wrapper: "infrastructure",
    render,
};

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route("/ng/api/infrastructures", FORM.save().get(list))
        .route("/ng/api/infrastructures/upsert", FORM.upsert())
        .route("/ng/api/infrastructures/{id}", get(one).delete(remove))
}

/// An infrastructure as every answer wraps it.
pub(crate) fn render(record: &EntityRecord) -> Value {
    let mut answer = json!({
        "infrastructure": {
            "accountId": record.scope.account.as_str(),
            "identifier": record.id.as_str(),
            "orgIdentifier": wire::org(&record.scope),
            "projectIdentifier": wire::project(&record.scope),
            "name": record.name,
            "description": record.description,
            "tags": tags_map(&record.tags),
            "environmentRef": record.parent.as_ref().map(|id| id.as_str()),
            "type": record.entity_type,
            "deploymentType": deployment_type(record),
            "yaml": record.yaml,
        },
        "createdAt": record.created_ms,
        "lastModifiedAt": record.updated_ms,
        "entityValidityDetails": {"valid": true, "invalidYaml": null},
        "governanceMetadata": null,
    });
    flat::kept(&mut answer[FORM.wrapper], record);
    answer
}

/// `deploymentType` of the YAML; the type of the infrastructure when it cannot be read.
fn deployment_type(record: &EntityRecord) -> Option<String> {
    let parsed = flat::parsed(Kind::Infrastructure, &record.yaml);
    let written = parsed.and_then(|p| p.body().get_text("deploymentType").map(str::to_owned));
    written.or_else(|| record.entity_type.clone())
}

/// The place of an infrastructure. The official CLI leaves its environment out when it reads before an
/// update: then the one environment of the scope that has such an infrastructure is taken.
async fn place(deps: &Deps, caller: &Caller, query: &Query, id: &str) -> ApiResult<Place> {
    let at = |scope: &Scope, parent: EntityId| -> ApiResult<Place> {
        let id = crate::identifier::entity(id)?;
        Ok(Place {
            scope: scope.clone(),
            kind: Kind::Infrastructure,
            parent: Some(parent),
            id,
        })
    };
    let scope = query.scope(caller)?;
    if let Some(environment) = query.one("environmentIdentifier")? {
        return at(&scope, beside(&scope, environment_id(environment)?));
    }
    let (all, everything) = (
        Page {
            index: 0,
            size: 10_000,
        },
        Filter::default(),
    );
    let (environments, _) =
        entity::list(deps, &scope, Kind::Environment, None, &everything, all).await?;
    let mut found: Option<Place> = None;
    for environment in environments {
        let candidate = at(&scope, environment.id)?;
        if entity::find(deps, &candidate).await?.is_none() {
            continue;
        }
        if found.is_some() {
            let message = "must be given: several environments have an infrastructure of this name";
            return Err(ApiError::field("environmentIdentifier", message));
        }
        found = Some(candidate);
    }
    match found {
        Some(place) => Ok(place),
        None => Err(ApiError::not_found(format!(
            "Infrastructure Definition with identifier [{id}] in {} not found",
            crate::scope::describe(&scope)
        ))),
    }
}

/// An environment may be one of a wider scope: `account.prod`.
fn environment_id(text: &str) -> ApiResult<EntityId> {
    crate::identifier::reference("environmentIdentifier", text)
}

async fn list(Call(deps, caller, query): Call) -> ApiResult {
    let filter = Filter {
        search: query.one("searchTerm")?.map(str::to_owned),
        identifiers: query.all("infraIdentifiers").map(str::to_owned).collect(),
        types: query.all("deploymentType").map(str::to_owned).collect(),
    };
    let (scope, page) = (query.scope(&caller)?, Page::ng(&query)?);
    let environment = environment_id(query.required("environmentIdentifier")?)?;
    let environment = beside(&scope, environment);
    let (found, total) = entity::list(
        &deps,
        &scope,
        Kind::Infrastructure,
        Some(&environment),
        &filter,
        page,
    )
    .await?;
    Ok(success(
        page.render(found.iter().map(render).collect(), total),
    ))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = place(&deps, &caller, &query, &id).await?;
    let record = entity::get(&deps, &place).await?;
    FORM.show(&deps, &query, &record).await
}

async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = place(&deps, &caller, &query, &id).await?;
    entity::delete(&deps, &caller, &place).await?;
    Ok(success(Value::Bool(true)))
}
