//! What a plan refers to, and where it comes from.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use slipway_model::Parsed;
use slipway_model::id::{EntityId, Scope};

/// [`Reference::kind`] of a file of the file store (or of a Git repository, see [`Reference::id`]).
pub const FILE: &str = "file";

/// Something that is needed to plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// Where it lives.
    pub scope: Scope,
    /// Root key of its YAML, or [`FILE`].
    pub kind: &'static str,
    /// The environment, for an infrastructure; the template, for a version of it.
    pub parent: Option<EntityId>,
    /// Identifier; of a version of a template its `versionLabel`. A template without a version stands for its
    /// stable one. For a file its path in the file store, `/dir/name`; for one in another store
    /// `<store type>:<connectorRef>:<repoName>:<branch or commit>:<path>`.
    pub id: EntityId,
}

/// What was found under a reference.
#[derive(Clone, Debug)]
pub enum Found {
    /// An entity.
    Entity(Arc<Parsed>),
    /// The content of a file.
    File(Arc<str>),
}

/// What was looked up, each reference once, in the order of asking.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    seen: HashSet<Reference>,
    list: Vec<Reference>,
}

impl Asked {
    pub(crate) fn push(&mut self, reference: &Reference) {
        if self.seen.insert(reference.clone()) {
            self.list.push(reference.clone());
        }
    }

    pub(crate) fn into_list(self) -> Vec<Reference> {
        self.list
    }
}

/// A scope for messages.
pub(crate) fn place_of(scope: &Scope) -> String {
    match (&scope.org, &scope.project) {
        (Some(org), Some(project)) => format!("project `{project}` of organization `{org}`"),
        (Some(org), None) => format!("organization `{org}`"),
        _ => "the account".to_owned(),
    }
}

/// Gives entities and files by reference.
pub trait Entities {
    /// What a reference names; `None` when there is no such thing.
    fn get(&self, reference: &Reference) -> Option<Found>;
}

/// Entities that were fetched before.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    found: HashMap<Reference, Option<Found>>,
}

impl Snapshot {
    /// Notes what a reference names; `None` notes that it names nothing.
    pub fn put(&mut self, reference: Reference, found: Option<Found>) {
        self.found.insert(reference, found);
    }

    /// Those of `references` about which nothing was noted yet.
    pub fn unknown(&self, references: Vec<Reference>) -> Vec<Reference> {
        references
            .into_iter()
            .filter(|reference| !self.found.contains_key(reference))
            .collect()
    }
}

impl Entities for Snapshot {
    fn get(&self, reference: &Reference) -> Option<Found> {
        self.found.get(reference).cloned().flatten()
    }
}
