//! Runtime inputs of a pipeline: input sets, overlays, what a pipeline asks for, and what sets make of it.

mod merge;
mod ng;
mod v1;

use axum::Router;
use serde_json::{Value, json};
use slipway_model::entity::{self as language, Kind};
use slipway_model::id::Scope;
use slipway_model::inputs;
use slipway_store::record::EntityRecord;

use crate::Deps;
use crate::entity::{self, Draft, Place};
use crate::error::{ApiError, ApiResult};
use crate::git::shown;
use crate::runs;
use crate::wire::{self, tags_map};

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .merge(ng::routes())
        .merge(merge::routes())
        .merge(v1::routes())
}

/// What `entity_type` says of an overlay.
const OVERLAY: &str = "OVERLAY_INPUT_SET";

fn is_overlay(record: &EntityRecord) -> bool {
    record.entity_type.as_deref() == Some(OVERLAY)
}

/// A draft of an input set or an overlay that belongs to the pipeline that the request names. `id` is the
/// identifier of the path, where it has one.
pub(crate) fn draft(
    scope: Scope,
    kind: Kind,
    pipeline: &str,
    yaml: String,
    id: Option<&str>,
) -> ApiResult<Draft> {
    let draft = Draft::of_yaml(scope, kind, yaml)?;
    let owner = draft.place.parent.as_ref().map(|owner| owner.as_str());
    if owner != Some(pipeline) {
        let owner = owner.unwrap_or_default();
        let message = format!("the YAML says `{owner}`, the request `{pipeline}`");
        return Err(ApiError::field("pipelineIdentifier", message));
    }
    if let Some(id) = id.filter(|id| *id != draft.place.id.as_str()) {
        let message = format!("the YAML says `{}`, the request `{id}`", draft.place.id);
        return Err(ApiError::field("identifier", message));
    }
    Ok(draft)
}

/// The set of a place when it is of the kind that the path is for.
async fn find(deps: &Deps, place: &Place, overlay: bool) -> ApiResult<EntityRecord> {
    let record = entity::get(deps, place).await?;
    match is_overlay(&record) == overlay {
        true => Ok(record),
        false => Err(place.not_found()),
    }
}

/// What is wrong with an input set, now that its pipeline is what it is: `None` when it still fits. Of an
/// overlay its sets say that themselves.
fn fault(pipeline: Option<&EntityRecord>, record: &EntityRecord) -> Option<String> {
    if is_overlay(record) {
        return None;
    }
    let Some(pipeline) = pipeline else {
        return Some("its pipeline does not exist any more".to_owned());
    };
    let set = language::parse(Kind::InputSet.key(), &record.yaml);
    let checked = match (set, runs::read(pipeline)) {
        (Ok(set), Ok(pipeline)) => inputs::check_set(&set, &pipeline),
        (Err(found), _) => Err(found),
        (_, Err(error)) => return Some(error.message().to_owned()),
    };
    let found = checked.err()?;
    let told: Vec<String> = found.iter().map(ToString::to_string).collect();
    Some(told.join("\n"))
}

/// What every form of an input set has in lists.
fn summary(record: &EntityRecord, fault: Option<&str>) -> Value {
    json!({
        "identifier": record.id.as_str(),
        "name": record.name,
        "description": record.description,
        "pipelineIdentifier": record.parent.as_ref().map(|id| id.as_str()),
        "inputSetType": record.entity_type,
        "tags": tags_map(&record.tags),
        "isOutdated": fault.is_some(),
        "outdated": fault.is_some(),
        "storeType": shown::store_type(record),
        "connectorRef": shown::connector(record),
        "gitDetails": shown::details(record),
        "createdAt": record.created_ms,
        "lastUpdatedAt": record.updated_ms,
        "entityValidityDetails": {"valid": true, "invalidYaml": null},
        "inputSetErrorDetails": fault,
    })
}

/// A set with its YAML.
fn render(record: &EntityRecord, fault: Option<&str>) -> Value {
    let (yaml, references) = match is_overlay(record) {
        true => ("overlayInputSetYaml", references(record)),
        false => ("inputSetYaml", Vec::new()),
    };
    json!({
        "accountId": record.scope.account.as_str(),
        "orgIdentifier": wire::org(&record.scope),
        "projectIdentifier": wire::project(&record.scope),
        "pipelineIdentifier": record.parent.as_ref().map(|id| id.as_str()),
        "identifier": record.id.as_str(),
        "name": record.name,
        "description": record.description,
        "tags": tags_map(&record.tags),
        yaml: record.yaml,
        "inputSetReferences": references,
        "invalidInputSetReferences": {},
        "errorResponse": false,
        "inputSetErrorWrapper": fault.map(|fault| json!({"message": fault})),
        "outdated": fault.is_some(),
        "storeType": shown::store_type(record),
        "connectorRef": shown::connector(record),
        "gitDetails": shown::details(record),
        "entityValidityDetails": {"valid": true, "invalidYaml": null},
        "version": record.version,
    })
}

fn references(record: &EntityRecord) -> Vec<String> {
    let parsed = language::parse(Kind::OverlayInputSet.key(), &record.yaml).ok();
    let named = parsed.map(|overlay| inputs::references(&overlay));
    let named = named.unwrap_or_default();
    named.iter().map(ToString::to_string).collect()
}
