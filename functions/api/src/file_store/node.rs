//! What is known of a file or folder.

use serde_json::{Map, Value, json};
use slipway_model::Tree;
use slipway_model::entity::Kind;
use slipway_model::id::Scope;
use slipway_store::record::EntityRecord;

use super::ROOT;
use crate::error::{ApiError, ApiResult};
use crate::{flat, identifier, wire};

/// A file or folder.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) is_folder: bool,
    /// Identifier of the folder that it is in.
    pub(super) parent: String,
    /// `/folder/name`; set when it is stored.
    pub(super) path: String,
    /// `MANIFEST_FILE`, `CONFIG` or `SCRIPT`.
    pub(super) usage: Option<String>,
    pub(super) mime_type: Option<String>,
    pub(super) description: Option<String>,
    pub(super) tags: Value,
}

impl Node {
    /// A stored node.
    pub(super) fn of(record: &EntityRecord) -> ApiResult<Self> {
        let parsed = flat::parsed(Kind::File, &record.yaml);
        Self::of_object(&parsed.map(|parsed| parsed.to_json()).unwrap_or_default())
    }

    /// A node as a request or a document describes it.
    pub(super) fn of_object(object: &Value) -> ApiResult<Self> {
        let text = |field: &str| {
            let text = object.get(field).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let wanted = |field: &str| {
            let text = text(field);
            text.ok_or_else(|| ApiError::field(field, "must not be empty"))
        };
        let (id, name, kind) = (wanted("identifier")?, wanted("name")?, wanted("type")?);
        identifier::check("identifier", &id)?;
        check_name(&name)?;
        let parent = text("parentIdentifier").unwrap_or_else(|| ROOT.to_owned());
        identifier::check("parentIdentifier", &parent)?;
        if id == ROOT || id == parent {
            return Err(ApiError::field("identifier", "is that of its folder"));
        }
        Ok(Self {
            id,
            name,
            is_folder: match kind.as_str() {
                "FOLDER" => true,
                "FILE" => false,
                _ => return Err(ApiError::field("type", "must be FILE or FOLDER")),
            },
            parent,
            path: text("path").unwrap_or_default(),
            usage: text("fileUsage"),
            mime_type: text("mimeType"),
            description: text("description"),
            tags: tags(object.get("tags"))?,
        })
    }

    /// As it is stored.
    pub(super) fn yaml(&self, scope: &Scope) -> String {
        let mut fields = Map::new();
        for (field, value) in [
            ("identifier", Some(self.id.as_str())),
            ("name", Some(self.name.as_str())),
            ("description", self.description.as_deref()),
            ("orgIdentifier", wire::org(scope)),
            ("projectIdentifier", wire::project(scope)),
            ("type", Some(self.kind())),
            ("parentIdentifier", Some(self.parent.as_str())),
            ("path", Some(self.path.as_str())),
            ("fileUsage", self.usage.as_deref()),
            ("mimeType", self.mime_type.as_deref()),
        ] {
            fields.extend(value.map(|value| (field.to_owned(), value.into())));
        }
        fields.insert("tags".to_owned(), self.tags.clone());
        let root = json!({ Kind::File.key(): fields });
        slipway_model::emit::to_yaml(&Tree::from_json(Kind::File.key(), &root))
    }

    fn kind(&self) -> &'static str {
        if self.is_folder { "FOLDER" } else { "FILE" }
    }

    /// As answers show it.
    pub(super) fn render(&self, record: &EntityRecord) -> Value {
        json!({
            "accountIdentifier": record.scope.account.as_str(),
            "orgIdentifier": wire::org(&record.scope),
            "projectIdentifier": wire::project(&record.scope),
            "identifier": self.id,
            "name": self.name,
            "type": self.kind(),
            "parentIdentifier": self.parent,
            "path": self.path,
            "fileUsage": self.usage,
            "mimeType": self.mime_type,
            "description": self.description,
            "tags": wire::tags_list(&record.tags),
            "draft": false,
            "createdBy": null,
            "lastModifiedBy": null,
            "lastModifiedAt": record.updated_ms,
        })
    }
}

/// A name is one part of a path, whoever reads the path later.
fn check_name(name: &str) -> ApiResult<()> {
    let odd = |c: char| c.is_control() || matches!(c, '/' | '\\' | ':');
    if name.contains(odd) || name == "." || name == ".." || name.len() > 255 {
        let message = "must be at most 255 bytes without `/`, `\\` and `:`, and not `.` or `..`";
        return Err(ApiError::field("name", message));
    }
    Ok(())
}

/// Tags as a map, from a map or the list of `{key, value}` that answers have.
fn tags(given: Option<&Value>) -> ApiResult<Value> {
    let wrong = || ApiError::field("tags", "must be a map of strings or a list of {key, value}");
    match given {
        None | Some(Value::Null) => Ok(json!({})),
        Some(Value::Object(map)) => Ok(Value::Object(map.clone())),
        Some(Value::Array(items)) => {
            let mut map = Map::new();
            for item in items {
                let key = item.get("key").and_then(Value::as_str).ok_or_else(wrong)?;
                let value = item.get("value").and_then(Value::as_str);
                map.insert(key.to_owned(), value.unwrap_or_default().into());
            }
            Ok(Value::Object(map))
        }
        Some(_) => Err(wrong()),
    }
}
