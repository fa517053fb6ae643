//! Templates: what an element links to is put in its place, before anything else is resolved.
//!
//! An element `{identifier, name, template: {templateRef, versionLabel, templateInputs}}` becomes its own
//! identifier and name with the `spec` of the template, its runtime inputs filled in from `templateInputs`.
//! Templates may link to templates. Every value keeps the file, line and column it was written at, so faults
//! inside of a template name the template.
//!
//! Bounds: [`MOST_DEPTH`] templates inside of one another, [`MOST_USES`] links, [`MOST_NODES`] values and
//! [`MOST_BYTES`] of text in the result: a template that doubles itself twenty times is refused while it grows.

mod insert;
mod link;

use std::cell::RefCell;
use std::sync::Arc;

use slipway_model::graft::{Graft, Part};
use slipway_model::id::Scope;
use slipway_model::inputs::Unfilled;
use slipway_model::{Code, Diagnostic, Diagnostics, Parsed, Ref, Severity, Tree, entity};

use crate::reference::Asked;
use crate::{Entities, Reference};

use link::Chain;
pub(crate) use link::reference;

/// Most templates inside of one another.
pub const MOST_DEPTH: usize = 20;
/// Most links to templates in one document.
pub const MOST_USES: usize = 5_000;
/// Most values of a document after its templates were put in: as many as a written one may have.
pub const MOST_NODES: usize = slipway_model::yaml::MOST_NODES;
/// Most bytes of all texts of a document after its templates were put in.
pub const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Deepest nesting of the result, as of a written document with some room for what templates add.
const MOST_LEVELS: usize = 200;

/// Keys that make a document worth a walk.
const LINKING: &[&str] = &["template", "insert"];

/// Where linked templates come from, and what becomes of their open inputs.
pub(crate) struct Source<'a> {
    pub(crate) entities: &'a dyn Entities,
    pub(crate) asked: &'a RefCell<Asked>,
    pub(crate) unfilled: Unfilled,
}

/// The entity with every linked template put in, and what its author should know of that; `None` when it links
/// to none. `scope` is where it lives.
///
/// # Errors
/// Links to nothing, to a template of another type or in a circle, inputs that do not fit, and everything that
/// the result is not well-formed for.
pub(crate) fn expand(
    source: &Source<'_>,
    entity: &Parsed,
    scope: &Scope,
) -> Result<Option<(Parsed, Vec<Diagnostic>)>, Vec<Diagnostic>> {
    if !entity.tree.mentions(LINKING) {
        return Ok(None);
    }
    let (tree, notes) = expand_tree(source, &entity.tree, scope)?;
    let expanded = entity::from_tree(tree)?;
    Ok(Some((expanded, notes)))
}

/// A document with every linked template put in, not checked against the fields that Harness knows.
///
/// # Errors
/// As [`expand`], but for the last.
pub(crate) fn expand_tree(
    source: &Source<'_>,
    tree: &Tree,
    scope: &Scope,
) -> Result<(Tree, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut expander = Expander::new(source);
    let chain = Chain::new(scope.clone());
    let root = expander.value(tree.root(), Role::Root, &chain, 0);
    let Expander { faults, graft, .. } = expander;
    faults.finish(graft.finish(root))
}

/// What is wrong with an entity's links to templates, as far as these are known.
pub struct Links {
    /// Errors: inputs that the template does not ask for or allow, templates of another type or in a circle.
    /// Warnings: templates that do not exist, and inputs that are not given.
    pub found: Vec<Diagnostic>,
    /// What was looked up: to be asked again with what was found, until nothing new appears.
    pub references: Vec<Reference>,
}

/// Follows every link of an entity to a template; `scope` is where the entity lives.
pub fn links(entity: &Parsed, scope: &Scope, entities: &dyn Entities) -> Links {
    let asked = RefCell::default();
    let source = Source {
        entities,
        asked: &asked,
        unfilled: Unfilled::Note,
    };
    let mut expander = Expander::new(&source);
    if entity.tree.mentions(LINKING) {
        let chain = Chain::new(scope.clone());
        expander.value(entity.tree.root(), Role::Root, &chain, 0);
    }
    let mut found = expander.faults.into_vec();
    for fault in &mut found {
        // What is saved later may still come to exist.
        if fault.code == Code::NotFound {
            fault.severity = Severity::Warning;
        }
    }
    Links {
        found,
        references: asked.into_inner().into_list(),
    }
}

/// The deployment template that `customDeploymentRef` names.
///
/// # Errors
/// When there is none, or it is of another type.
pub(crate) fn deployment(
    source: &Source<'_>,
    link: Ref<'_>,
    scope: &Scope,
) -> Result<Arc<Parsed>, Vec<Diagnostic>> {
    let mut expander = Expander::new(source);
    let found = expander.follow(link, "CustomDeployment", &Chain::new(scope.clone()));
    let (found, _) = expander.faults.finish(found)?;
    found.map(|(template, _)| template).ok_or_else(Vec::new)
}

/// The spec of the notification template that a rule links to, with the inputs of the link.
///
/// # Errors
/// When there is none, it is of another type, or lacks inputs.
pub(crate) fn notification(
    source: &Source<'_>,
    link: Ref<'_>,
    scope: &Scope,
) -> Result<Tree, Vec<Diagnostic>> {
    let mut expander = Expander::new(source);
    let found = expander.follow(link, "Notification", &Chain::new(scope.clone()));
    let spec = found.and_then(|(template, _)| expander.filled(&template, link, true));
    let (spec, _) = expander.faults.finish(spec)?;
    spec.ok_or_else(Vec::new)
}

/// What a value is, as far as it decides which type of template may stand in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Root,
    Pipeline,
    Stage,
    StepGroup,
    Step,
    Connector,
    SecretManager,
    Artifacts,
    ArtifactSource,
    /// A list of stages or steps, where `insert` may stand.
    Elements,
    Other,
}

impl Role {
    /// The role of the value of a key; items of a list have that of the list.
    fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Root, "pipeline") => Self::Pipeline,
            (Self::Root, "connector") => Self::Connector,
            (Self::Connector, "spec") => Self::SecretManager,
            (_, "stage") => Self::Stage,
            (_, "stepGroup") => Self::StepGroup,
            (_, "step") => Self::Step,
            (_, "artifacts") => Self::Artifacts,
            (
                Self::Artifacts | Self::ArtifactSource,
                "primary" | "sources" | "sidecars" | "sidecar",
            ) => Self::ArtifactSource,
            (_, "stages" | "steps" | "rollbackSteps" | "parallel") => Self::Elements,
            _ => Self::Other,
        }
    }

    /// `type` of the templates that may stand in the place of such a value.
    fn template_type(self) -> Option<&'static str> {
        match self {
            Self::Pipeline => Some("Pipeline"),
            Self::Stage => Some("Stage"),
            Self::StepGroup => Some("StepGroup"),
            Self::Step => Some("Step"),
            Self::SecretManager => Some("SecretManager"),
            Self::ArtifactSource => Some("ArtifactSource"),
            Self::Root | Self::Connector | Self::Artifacts | Self::Elements | Self::Other => None,
        }
    }
}

struct Expander<'a> {
    source: &'a Source<'a>,
    faults: Diagnostics,
    graft: Graft,
    uses: usize,
    /// Whether a bound was passed: nothing is added any more.
    over: bool,
}

impl<'a> Expander<'a> {
    fn new(source: &'a Source<'a>) -> Self {
        Self {
            source,
            faults: Diagnostics::default(),
            graft: Graft::default(),
            uses: 0,
            over: false,
        }
    }
}

impl Expander<'_> {
    fn value(&mut self, value: Ref<'_>, role: Role, chain: &Chain, level: usize) -> Part {
        if self.is_over(value, level) {
            return self.graft.text(value, "");
        }
        if value.is_list() {
            let items = self.items(value, role, chain, level);
            return self.graft.list(value, items);
        }
        if !value.is_map() {
            return self.graft.copy(value);
        }
        if let (Some(wanted), Some(link)) = (role.template_type(), link::of(value)) {
            return self.linked(value, link, (role, wanted), chain, level);
        }
        let mut pairs = Vec::with_capacity(value.entries().len());
        for (key, place, below) in value.fields() {
            let part = self.value(below, role.below(key), chain, level + 1);
            pairs.push(self.graft.pair(value, key, place, part));
        }
        self.graft.map(value, pairs)
    }

    fn items(&mut self, list: Ref<'_>, role: Role, chain: &Chain, level: usize) -> Vec<Part> {
        let mut parts = Vec::with_capacity(list.items().len());
        for item in list.items() {
            match item.get("insert").filter(|_| role == Role::Elements) {
                Some(insert) => self.insert(item, insert, chain, level + 1, &mut parts),
                None => parts.push(self.value(item, role, chain, level + 1)),
            }
        }
        parts
    }

    /// Whether a bound is passed; says so once.
    fn is_over(&mut self, at: Ref<'_>, level: usize) -> bool {
        if self.over {
            return true;
        }
        let message = if level > MOST_LEVELS {
            format!("with its templates the document is nested deeper than {MOST_LEVELS} levels")
        } else if self.graft.len() > MOST_NODES {
            format!("with its templates the document has more than {MOST_NODES} values")
        } else if self.graft.bytes() > MOST_BYTES {
            format!("with its templates the document has more than {MOST_BYTES} bytes of text")
        } else {
            return false;
        };
        self.over = true;
        self.faults.push(Diagnostic::at(Code::Limit, at, message));
        true
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
