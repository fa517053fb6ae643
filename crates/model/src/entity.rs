//! Entities: a YAML text read, checked field by field, with what lists and look-ups need of it.

use crate::diagnostic::{Code, Diagnostic, Diagnostics, nearest, shown};
use crate::id::{EntityId, OrgId, ProjectId};
use crate::shape;
use crate::tree::{Place, Ref, Tree};
use crate::yaml::Fault;
use crate::{freeze, names, schema, yaml};

pub use crate::kind::Kind;

/// What lists, look-ups and the REST API show of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityHead {
    /// What it is.
    pub kind: Kind,
    /// `identifier`.
    pub identifier: EntityId,
    /// `name`.
    pub name: String,
    /// `description`, unless empty.
    pub description: Option<String>,
    /// `tags`, in order.
    pub tags: Vec<(String, String)>,
    /// `orgIdentifier`.
    pub org: Option<OrgId>,
    /// `projectIdentifier`.
    pub project: Option<ProjectId>,
    /// `environmentRef` of an infrastructure or of overrides.
    pub env_ref: Option<EntityId>,
    /// `serviceRef` of overrides.
    pub service_ref: Option<EntityId>,
    /// The pipeline that an input set, an overlay or a trigger belongs to.
    pub pipeline: Option<EntityId>,
    /// `versionLabel` of a template.
    pub version_label: Option<String>,
    /// `type`: of a connector (`Aws`), environment (`Production`), infrastructure (`ECS`), secret, template
    /// (`Step`), overrides (`ENV_GLOBAL_OVERRIDE`), or of a service's definition (`ECS`) or a trigger's source
    /// (`Webhook`).
    pub entity_type: Option<String>,
}

/// An entity that was read and found well-formed.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// What it is and is called.
    pub head: EntityHead,
    /// The document, with the place of every key and value.
    pub tree: Tree,
    /// What its author should look at.
    pub warnings: Vec<Diagnostic>,
}

impl Parsed {
    /// The value under the root key.
    pub fn body(&self) -> Ref<'_> {
        body(&self.tree, self.head.kind)
    }

    /// A value of the entity as JSON, with the types of its fields: what Harness reads as text is a JSON
    /// string even where it looks like a number.
    pub fn to_json(&self) -> serde_json::Value {
        shape::to_json(self.body(), schema::root(self.head.kind))
    }

    /// The entity with other texts in the place of some of its scalars, which must be its own.
    #[must_use]
    pub fn with_texts(&self, texts: &[(Ref<'_>, String)]) -> Self {
        let mut tree = self.tree.clone();
        for (value, text) in texts {
            tree.set_text(*value, text);
        }
        Self {
            tree,
            ..self.clone()
        }
    }
}

fn body(tree: &Tree, kind: Kind) -> Ref<'_> {
    tree.root().get(kind.key()).unwrap_or(tree.root())
}

/// Reads a text that holds one entity. `file` names the text in messages.
///
/// # Errors
/// Every fault that was found, at most [`crate::diagnostic::MOST_DIAGNOSTICS`] and one.
pub fn parse(file: &str, text: &str) -> Result<Parsed, Vec<Diagnostic>> {
    from_tree(yaml::parse(file, text).map_err(|fault| vec![*fault])?)
}

/// Reads a text that holds one or more entities, each a document of its own.
///
/// # Errors
/// Every fault of every document.
pub fn parse_documents(file: &str, text: &str) -> Result<Vec<Parsed>, Vec<Diagnostic>> {
    let trees = yaml::parse_documents(file, text).map_err(|fault| vec![*fault])?;
    let mut faults = Diagnostics::default();
    let mut entities = Vec::new();
    if trees.is_empty() {
        let start = Place {
            file: 0,
            line: 1,
            column: 1,
        };
        let message = "the text holds no YAML document";
        faults.push(Diagnostic::error(Code::Syntax, file, start, message));
    }
    for tree in trees {
        match from_tree(tree) {
            Ok(entity) => entities.push(entity),
            Err(found) => faults.extend(found),
        }
    }
    faults.finish(entities).map(|(entities, _)| entities)
}

/// Checks a document that was read before, or built.
///
/// # Errors
/// Every fault that was found.
pub fn from_tree(tree: Tree) -> Result<Parsed, Vec<Diagnostic>> {
    let kind = kind_of(&tree).map_err(|fault| vec![*fault])?;
    let mut found = Diagnostics::default();
    let value = body(&tree, kind);
    shape::check(value, schema::root(kind), kind.key(), &mut found);
    names::check(value, kind, &mut found);
    match kind {
        Kind::Pipeline => schema::rules::pipeline(value, &mut found),
        Kind::Template => schema::rules::template(value, &mut found),
        Kind::Freeze => freeze::check(value, &mut found),
        _ => {}
    }
    let head = head_of(value, kind);
    let (head, warnings) = found.finish(head)?;
    Ok(Parsed {
        head,
        tree,
        warnings,
    })
}

fn kind_of(tree: &Tree) -> Result<Kind, Fault> {
    let root = tree.root();
    let keys = || Kind::ALL.map(Kind::key);
    let expected = format!("one root key of {}", keys().join(", "));
    if !root.is_map() {
        let message = format!("{} stands where an entity is expected", root.form());
        let fault = Diagnostic::about(Code::UnknownKind, tree, message);
        return Err(fault.expected(expected).into());
    }
    let mut entries = root.entries();
    let Some((key, value)) = entries.next() else {
        let fault = Diagnostic::about(Code::UnknownKind, tree, "the document is empty");
        return Err(fault.expected(expected).into());
    };
    let place = root.key_place(key).unwrap_or_default();
    let Some(kind) = Kind::from_key(key) else {
        let message = format!("`{}` is no kind of entity", shown(key));
        let fault =
            Diagnostic::error(Code::UnknownKind, root.file(), place, message).path(shown(key));
        let near = nearest(key, keys());
        let fault = match near {
            Some(_) => fault.suggest(near),
            None => fault.expected(expected),
        };
        return Err(fault.into());
    };
    if let Some((second, _)) = entries.next() {
        let place = root.key_place(second).unwrap_or_default();
        let message = format!(
            "a second root key, `{}`, stands beside `{key}`",
            shown(second)
        );
        return Err(Box::new(
            Diagnostic::error(Code::UnknownKind, root.file(), place, message)
                .path(shown(second))
                .expected("one entity per document; separate documents with `---`"),
        ));
    }
    if !value.is_map() {
        let message = format!(
            "{} stands where the fields of `{key}` are expected",
            value.form()
        );
        return Err(Diagnostic::at(Code::BadValue, value, message).into());
    }
    Ok(kind)
}

fn head_of(value: Ref<'_>, kind: Kind) -> EntityHead {
    let text = |key: &str| {
        value
            .get_text(key)
            .filter(|text| !text.trim().is_empty())
            .map(str::to_owned)
    };
    let identifier = text("identifier").unwrap_or_else(|| match kind {
        Kind::Overrides | Kind::ServiceOverrides => override_identifier(value),
        _ => String::new(),
    });
    let entity_type = match kind {
        Kind::Service => value.at(&["serviceDefinition", "type"]),
        Kind::Trigger => value.at(&["source", "type"]),
        Kind::Pipeline => None,
        _ => value.get("type"),
    };
    let pipeline = match kind {
        Kind::InputSet | Kind::OverlayInputSet | Kind::Trigger => value
            .at(&["pipeline", "identifier"])
            .or_else(|| value.get("pipelineIdentifier"))
            .and_then(Ref::text)
            .map(EntityId::new),
        _ => None,
    };
    EntityHead {
        kind,
        name: text("name").unwrap_or_else(|| identifier.clone()),
        identifier: EntityId::new(identifier),
        description: text("description"),
        tags: tags(value),
        org: text("orgIdentifier").map(OrgId::new),
        project: text("projectIdentifier").map(ProjectId::new),
        env_ref: text("environmentRef").map(EntityId::new),
        service_ref: text("serviceRef").map(EntityId::new),
        pipeline,
        version_label: text("versionLabel"),
        entity_type: entity_type.and_then(Ref::text).map(str::to_owned),
    }
}

/// Overrides have no identifier of their own: it is made of what they are for, as in Harness.
fn override_identifier(value: Ref<'_>) -> String {
    let parts = [
        "environmentRef",
        "serviceRef",
        "clusterIdentifier",
        "infraIdentifier",
    ];
    let parts: Vec<_> = parts.iter().filter_map(|key| value.get_text(key)).collect();
    parts.join("_").replace('.', "_")
}

/// `tags` of an element.
pub fn tags(value: Ref<'_>) -> Vec<(String, String)> {
    let Some(tags) = value.get("tags") else {
        return Vec::new();
    };
    tags.entries()
        .map(|(key, value)| (key.to_owned(), value.text().unwrap_or_default().to_owned()))
        .collect()
}

#[cfg(test)]
#[path = "entity_tests.rs"]
mod tests;
