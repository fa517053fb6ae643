//! Environments: `/ng/api/environmentsV2`.

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use serde_json::{Value, json};
use slipway_model::entity::Kind;
use slipway_store::record::EntityRecord;

use crate::Deps;
use crate::auth::Caller;
use crate::call::Call;
use crate::entity::{self, Filter, Place};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::flat::{self, Form};
use crate::page::Page;
use crate::query::Query;
use crate::wire::{self, tags_map};

const FORM: Form = Form {
    kind: Kind::Environment,
    wrapper: "environment",
    render,
};

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route("/ng/api/environmentsV2", FORM.save().get(list))
        .route("/ng/api/environmentsV2/upsert", FORM.upsert())
        .route("/ng/api/environmentsV2/{id}", get(one).delete(remove))
}

/// An environment as every answer wraps it.
pub(crate) fn render(record: &EntityRecord) -> Value {
    let mut answer = json!({
        "environment": {
            "accountId": record.scope.account.as_str(),
            "identifier": record.id.as_str(),
            "orgIdentifier": wire::org(&record.scope),
            "projectIdentifier": wire::project(&record.scope),
            "name": record.name,
            "description": record.description,
            "deleted": false,
            "tags": tags_map(&record.tags),
            "type": record.entity_type,
            "version": record.version,
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

fn place(caller: &Caller, query: &Query, id: &str) -> ApiResult<Place> {
    Place::of(query.scope(caller)?, Kind::Environment, id)
}

async fn list(Call(deps, caller, query): Call) -> ApiResult {
    let filter = Filter {
        search: query.one("searchTerm")?.map(str::to_owned),
        identifiers: query
            .all("envIdentifiers")
            .chain(query.all("envIdentifier"))
            .map(str::to_owned)
            .collect(),
        types: query.all("envType").map(str::to_owned).collect(),
    };
    let (scope, page) = (query.scope(&caller)?, Page::ng(&query)?);
    let (found, total) =
        entity::list(&deps, &scope, Kind::Environment, None, &filter, page).await?;
    Ok(success(
        page.render(found.iter().map(render).collect(), total),
    ))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    FORM.show(&deps, &query, &record).await
}

async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = place(&caller, &query, &id)?;
    check_empty(&deps, &place).await?;
    entity::delete(&deps, &caller, &place).await?;
    Ok(success(Value::Bool(true)))
}

/// Infrastructures go before their environment: nobody could reach them after it.
async fn check_empty(deps: &Deps, place: &Place) -> ApiResult<()> {
    let (first, all) = (Page { index: 0, size: 1 }, Filter::default());
    let kind = Kind::Infrastructure;
    let (_, count) = entity::list(deps, &place.scope, kind, Some(&place.id), &all, first).await?;
    match count {
        0 => Ok(()),
        _ => Err(ApiError::invalid(format!(
            "Environment [{}] still has {count} infrastructure definitions: delete them first",
            place.id
        ))),
    }
}
