//! Entities whose wire form is a JSON object under a wrapper, with no YAML beside it: organizations,
//! projects, connectors and secrets. They are stored as the YAML that a person would write.

use serde_json::{Map, Value};
use slipway_model::Tree;
use slipway_model::entity::Kind;
use slipway_model::id::{OrgId, ProjectId, Scope};
use slipway_store::record::EntityRecord;

use crate::auth::Caller;
use crate::entity::Draft;
use crate::error::{ApiError, ApiResult};
use crate::query::{self, Query};
use crate::{flat, identifier, wire};

/// Fields of each kind's YAML; all others of a body are read-only or of no meaning, and are left out.
fn fields(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Organization => &["name", "identifier", "description", "tags"],
        Kind::Project => &[
            "name",
            "identifier",
            "orgIdentifier",
            "color",
            "modules",
            "description",
            "tags",
        ],
        Kind::UserGroup => &[
            "name",
            "identifier",
            "orgIdentifier",
            "projectIdentifier",
            "description",
            "tags",
            "users",
            "notificationConfigs",
        ],
        _ => &[
            "name",
            "identifier",
            "orgIdentifier",
            "projectIdentifier",
            "description",
            "tags",
            "type",
            "spec",
        ],
    }
}

/// The object under the wrapper, which is also the root key of the YAML.
pub(crate) fn inner(kind: Kind, body: &Value) -> ApiResult<&Map<String, Value>> {
    let wrapper = kind.key();
    body.get(wrapper)
        .and_then(Value::as_object)
        .ok_or_else(|| ApiError::field(wrapper, "must be an object"))
}

/// A draft of the object in a body. `path_id` is the identifier of the path, where it has one.
pub(crate) fn draft(
    scope: Scope,
    kind: Kind,
    body: &Value,
    path_id: Option<&str>,
) -> ApiResult<Draft> {
    let object = inner(kind, body)?;
    let id = match object.get("identifier") {
        None | Some(Value::Null) => path_id.unwrap_or_default(),
        Some(Value::String(id)) => id,
        Some(_) => return Err(ApiError::field("identifier", "must be a string")),
    };
    identifier::check("identifier", id)?;
    if path_id.is_some_and(|path| path != id) {
        return Err(ApiError::field(
            "identifier",
            "is not that of the path and cannot be changed",
        ));
    }
    let mut kept = Map::new();
    for field in fields(kind) {
        if let Some(value) = object.get(*field).filter(|value| !value.is_null()) {
            kept.insert((*field).to_owned(), value.clone());
        }
    }
    kept.insert("identifier".to_owned(), id.into());
    // The scope of the request is where it lives, whatever spelling the body had.
    for (field, value) in [
        ("orgIdentifier", scope.org.as_ref().map(|o| o.as_str())),
        (
            "projectIdentifier",
            scope.project.as_ref().map(|p| p.as_str()),
        ),
    ] {
        match value {
            Some(value) if fields(kind).contains(&field) => {
                kept.insert(field.to_owned(), value.into());
            }
            _ => {
                kept.shift_remove(field);
            }
        }
    }
    let mut root = Map::new();
    root.insert(kind.key().to_owned(), Value::Object(kept));
    let yaml = slipway_model::emit::to_yaml(&Tree::from_json(kind.key(), &Value::Object(root)));
    Draft::of_yaml(scope, kind, yaml)
}

/// The scope of a wrapped object: its own, else that of the query.
pub(crate) fn scope(caller: &Caller, query: &Query, kind: Kind, body: &Value) -> ApiResult<Scope> {
    let object = inner(kind, body)?;
    let one = |field: &str| -> ApiResult<Option<String>> {
        let written = object
            .get(field)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty());
        let Some(text) = written.or(query.one(field)?) else {
            return Ok(None);
        };
        identifier::check(field, text).map(|id| Some(id.to_owned()))
    };
    let org = one("orgIdentifier")?.map(OrgId::new);
    let project = one("projectIdentifier")?.map(ProjectId::new);
    query::scope(caller, org, project)
}

/// The object as it was stored, in the form of its bodies.
pub(crate) fn object(kind: Kind, record: &EntityRecord) -> Map<String, Value> {
    let mut stored = match flat::parsed(kind, &record.yaml).map(|parsed| parsed.to_json()) {
        Some(Value::Object(stored)) => stored,
        _ => Map::new(),
    };
    stored.insert("identifier".to_owned(), record.id.as_str().into());
    stored.insert("name".to_owned(), record.name.as_str().into());
    stored.insert(
        "description".to_owned(),
        record.description.as_deref().into(),
    );
    stored.insert("orgIdentifier".to_owned(), wire::org(&record.scope).into());
    stored.insert(
        "projectIdentifier".to_owned(),
        wire::project(&record.scope).into(),
    );
    stored.insert("tags".to_owned(), wire::tags_map(&record.tags));
    stored.insert("type".to_owned(), record.entity_type.as_deref().into());
    stored
        .entry("spec")
        .or_insert_with(|| Value::Object(Map::new()));
    stored
}
