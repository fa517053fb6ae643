//! What a plan refers to, and where it comes from.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use slipway_model::id::{EntityId, Scope};
use slipway_model::{Kind, Parsed};

use crate::artifact::{ArtifactAnswer, WantedArtifact};
use crate::remote::{Fetched, RemoteFiles};

/// [`Reference::kind`] of a file of the file store.
pub const FILE: &str = "file";

/// [`Reference::parent`] of a folder of the file store, which stands for all files below it.
pub const FOLDER: &str = "folder";

/// [`Reference::id`] of all infrastructures of an environment.
pub const EVERY: &str = "*";
/// [`Reference::kind`] of a variable of an account, organization or project.
pub const VARIABLE: &str = "variable";

/// Something that is needed to plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// Where it lives.
    pub scope: Scope,
    /// Root key of its YAML, or [`FILE`].
    pub kind: &'static str,
    /// The environment, for an infrastructure; the template, for a version of it; the `environmentRef`, for
    /// overrides ([`Reference::of_overrides`]); [`FOLDER`] for a folder.
    pub parent: Option<EntityId>,
    /// Identifier; of a version of a template its `versionLabel`. A template without a version stands for its
    /// stable one. For a file or folder its path in the file store, `/dir/name`.
    pub id: EntityId,
}

impl Reference {
    /// Where the overrides of a type (`ENV_SERVICE_OVERRIDE`, …) live in a scope. Environment and service are
    /// references as the overrides write them, `account.prod` for instance.
    pub fn of_overrides(
        scope: Scope,
        kind: &str,
        environment: &str,
        service: Option<&str>,
        infrastructure: Option<&str>,
    ) -> Self {
        let (service, infrastructure) = (
            service.unwrap_or_default(),
            infrastructure.unwrap_or_default(),
        );
        Self {
            scope,
            kind: Kind::Overrides.key(),
            parent: Some(EntityId::new(environment)),
            id: EntityId::new(format!("{kind}/{service}/{infrastructure}")),
        }
    }

    /// Where an entity lives in a scope: the reference by which [`crate::resolve`] asks for it.
    pub fn of(entity: &Parsed, scope: Scope) -> Self {
        let (head, body) = (&entity.head, entity.body());
        let parent = |parent: Option<&EntityId>| parent.cloned();
        let (parent, id) = match head.kind {
            Kind::Infrastructure => {
                let own = head
                    .env_ref
                    .as_ref()
                    .map(|own| scope.resolve(own.as_str()).1);
                (own, head.identifier.clone())
            }
            Kind::Template => {
                let version = head.version_label.clone().unwrap_or_default();
                (Some(head.identifier.clone()), EntityId::new(version))
            }
            Kind::ServiceOverrides => {
                let service = head.service_ref.clone();
                let service = service.unwrap_or_else(|| head.identifier.clone());
                (parent(head.env_ref.as_ref()), service)
            }
            Kind::Overrides => {
                let kind = body.get_text("type").unwrap_or("ENV_GLOBAL_OVERRIDE");
                let environment = head.env_ref.as_ref().map(EntityId::as_str);
                let service = head.service_ref.as_ref().map(EntityId::as_str);
                let infrastructure = body.get_text("infraIdentifier");
                let environment = environment.unwrap_or_default();
                return Self::of_overrides(scope, kind, environment, service, infrastructure);
            }
            Kind::InputSet | Kind::OverlayInputSet => {
                return Self {
                    scope,
                    kind: Kind::InputSet.key(),
                    parent: head.pipeline.clone(),
                    id: head.identifier.clone(),
                };
            }
            _ => (None, head.identifier.clone()),
        };
        Self {
            scope,
            kind: head.kind.key(),
            parent,
            id,
        }
    }
}

/// What was found under a reference.
#[derive(Clone, Debug)]
pub enum Found {
    /// An entity.
    Entity(Arc<Parsed>),
    /// Several entities, of a reference to [`EVERY`] one.
    Many(Vec<Arc<Parsed>>),
    /// The content of a file.
    File(Arc<str>),
    /// The files below a folder of the file store: path and content, in the order of their paths.
    Files(Vec<(String, Arc<str>)>),
}

/// What planning looked up, each once, in the order of asking.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Entities and files of the file store.
    pub references: Vec<Reference>,
    /// Files of other stores.
    pub files: Vec<RemoteFiles>,
    /// Versions of artifacts.
    pub artifacts: Vec<WantedArtifact>,
}

impl Wanted {
    /// Whether nothing was looked up.
    pub fn is_empty(&self) -> bool {
        self.references.is_empty() && self.files.is_empty() && self.artifacts.is_empty()
    }
}

/// What was looked up, each reference once, in the order of asking.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    seen: HashSet<Reference>,
    seen_files: HashSet<RemoteFiles>,
    seen_artifacts: HashSet<WantedArtifact>,
    list: Wanted,
}

impl Asked {
    pub(crate) fn push(&mut self, reference: &Reference) {
        if self.seen.insert(reference.clone()) {
            self.list.references.push(reference.clone());
        }
    }

    pub(crate) fn push_files(&mut self, files: &RemoteFiles) {
        if self.seen_files.insert(files.clone()) {
            self.list.files.push(files.clone());
        }
    }

    pub(crate) fn push_artifact(&mut self, artifact: &WantedArtifact) {
        if self.seen_artifacts.insert(artifact.clone()) {
            self.list.artifacts.push(artifact.clone());
        }
    }

    pub(crate) fn into_wanted(self) -> Wanted {
        self.list
    }

    pub(crate) fn into_list(self) -> Vec<Reference> {
        self.list.references
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

    /// Files of other stores, or why they cannot be had; `None` when nobody has tried to fetch them.
    fn files(&self, wanted: &RemoteFiles) -> Option<Result<Fetched, String>>;

    /// What a registry says, or why it says nothing; `None` when nobody has tried to ask.
    fn artifact(&self, _wanted: &WantedArtifact) -> Option<Result<ArtifactAnswer, String>> {
        None
    }
}

/// Entities that were fetched before.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    found: HashMap<Reference, Option<Found>>,
    fetched: HashMap<RemoteFiles, Result<Fetched, String>>,
    artifacts: HashMap<WantedArtifact, Result<ArtifactAnswer, String>>,
}

impl Snapshot {
    /// Notes what a reference names; `None` notes that it names nothing.
    pub fn put(&mut self, reference: Reference, found: Option<Found>) {
        self.found.insert(reference, found);
    }

    /// Notes what was fetched, or why it cannot be.
    pub fn put_files(&mut self, files: RemoteFiles, fetched: Result<Fetched, String>) {
        self.fetched.insert(files, fetched);
    }

    /// Notes what a registry answered, or why it did not.
    pub fn put_artifact(&mut self, wanted: WantedArtifact, answer: Result<ArtifactAnswer, String>) {
        self.artifacts.insert(wanted, answer);
    }

    /// That of `wanted` about which nothing was noted yet.
    pub fn unknown(&self, wanted: Wanted) -> Wanted {
        let Wanted {
            mut references,
            mut files,
            mut artifacts,
        } = wanted;
        references.retain(|reference| !self.found.contains_key(reference));
        files.retain(|files| !self.fetched.contains_key(files));
        artifacts.retain(|artifact| !self.artifacts.contains_key(artifact));
        Wanted {
            references,
            files,
            artifacts,
        }
    }
}

impl Entities for Snapshot {
    fn get(&self, reference: &Reference) -> Option<Found> {
        self.found.get(reference).cloned().flatten()
    }

    fn files(&self, wanted: &RemoteFiles) -> Option<Result<Fetched, String>> {
        self.fetched.get(wanted).cloned()
    }

    fn artifact(&self, wanted: &WantedArtifact) -> Option<Result<ArtifactAnswer, String>> {
        self.artifacts.get(wanted).cloned()
    }
}
