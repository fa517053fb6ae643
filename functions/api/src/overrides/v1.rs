//! Overrides V1: `/ng/api/environmentsV2/serviceOverrides`, one for a service in an environment.

use axum::Router;
use axum::routing::get;
use serde_json::{Map, Value, json};
use slipway_model::Tree;
use slipway_model::entity::Kind;
use slipway_model::id::{EntityId, Scope};
use slipway_store::record::EntityRecord;

use super::v2;
use crate::Deps;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{self, Draft, Filter, Place};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::identifier;
use crate::page::Page;
use crate::wire;

pub(crate) fn routes() -> Router<Deps> {
    Router::new().route(
        "/ng/api/environmentsV2/serviceOverrides",
        get(list).post(upsert).delete(remove),
    )
}

fn render(record: &EntityRecord) -> Value {
    let inner = json!({
        "accountId": record.scope.account.as_str(),
        "orgIdentifier": wire::org(&record.scope),
        "projectIdentifier": wire::project(&record.scope),
        "environmentRef": record.parent.as_ref().map(|id| id.as_str()),
        "serviceRef": record.id.as_str(),
        "yaml": record.yaml,
    });
    let mut item = inner.clone();
    item["serviceOverride"] = inner;
    item["createdAt"] = record.created_ms.into();
    item["lastModifiedAt"] = record.updated_ms.into();
    item
}

/// The overrides of an environment: those of version 1, then those of version 2 that are made for it.
async fn list(Call(deps, caller, query): Call) -> ApiResult {
    let written = query.required("environmentIdentifier")?;
    let environment = identifier::reference("environmentIdentifier", written)?;
    let service = query.one("serviceIdentifier")?;
    let (scope, page) = (query.scope(&caller)?, Page::ng(&query)?);
    let all = Page {
        index: 0,
        size: 10_000,
    };
    let mut items = Vec::new();
    for kind in [Kind::ServiceOverrides, Kind::Overrides] {
        let everything = Filter::default();
        let parent = Some(&environment);
        let (found, _) = entity::list(&deps, &scope, kind, parent, &everything, all).await?;
        items.extend(found.iter().map(|record| match kind {
            Kind::Overrides => v2::render(record),
            _ => render(record),
        }));
    }
    items.retain(|item| service.is_none_or(|service| item["serviceRef"] == service));
    let total = items.len();
    Ok(success(page.render(page.cut(items), total)))
}

/// The YAML of a body names environment and service or leaves both to the request; then they are put in.
fn draft(scope: Scope, body: &Value) -> ApiResult<Draft> {
    let text = |field: &str| {
        let text = body.get(field).and_then(Value::as_str);
        text.filter(|text| !text.trim().is_empty())
            .ok_or_else(|| ApiError::field(field, "must not be empty"))
    };
    let (environment, service) = (text("environmentIdentifier")?, text("serviceIdentifier")?);
    let yaml = text("yaml")?;
    let kind = Kind::ServiceOverrides;
    let mut yaml = yaml.to_owned();
    if let Ok(tree) = slipway_model::yaml::parse(kind.key(), &yaml)
        && let Some(inner) = tree.root().get(kind.key())
        && (inner.get("environmentRef").is_none() || inner.get("serviceRef").is_none())
    {
        let mut fields = Map::new();
        fields.insert("environmentRef".to_owned(), environment.into());
        fields.insert("serviceRef".to_owned(), service.into());
        if let Value::Object(written) = inner.to_json() {
            fields.extend(written);
        }
        let root = json!({ kind.key(): fields });
        yaml = slipway_model::emit::to_yaml(&Tree::from_json(kind.key(), &root));
    }
    let draft = Draft::of_yaml(scope, kind, yaml)?;
    let own = draft.place.parent.as_ref().map(EntityId::as_str);
    for (field, yaml, request) in [
        ("environmentRef", own.unwrap_or_default(), environment),
        ("serviceRef", draft.place.id.as_str(), service),
    ] {
        if yaml != request {
            let message = format!("the YAML says `{yaml}`, the request `{request}`");
            return Err(ApiError::field(field, message));
        }
    }
    Ok(draft)
}

async fn upsert(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let body = body.object()?;
    let scope = v2::scope(&caller, &query, &body)?;
    let saved = entity::upsert(&deps, &caller, draft(scope, &body)?).await?;
    Ok(saved.answer(render))
}

async fn remove(Call(deps, caller, query): Call) -> ApiResult {
    let reference = |field: &str| identifier::reference(field, query.required(field)?);
    let place = Place {
        scope: query.scope(&caller)?,
        kind: Kind::ServiceOverrides,
        parent: Some(reference("environmentIdentifier")?),
        id: reference("serviceIdentifier")?,
    };
    entity::delete(&deps, &caller, &place).await?;
    Ok(success(Value::Bool(true)))
}
