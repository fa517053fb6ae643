//! Entities and files that a pipeline refers to.

use std::sync::Arc;

use slipway_model::id::{EntityId, Scope};
use slipway_model::{Code, Kind, Parsed, Ref, inputs};

use super::known::Known;
use super::{Resolver, source};
use crate::reference::{FILE, FOLDER, place_of};
use crate::{Found, Reference, template};

impl Resolver<'_> {
    pub(super) fn find(&self, reference: &Reference) -> Option<Found> {
        self.asked.borrow_mut().push(reference);
        self.request.entities.get(reference)
    }

    /// The entity that a value refers to from `scope`, with the scope it lives in and the reference as it is
    /// after expressions. A fault where there is none.
    pub(super) fn entity(
        &mut self,
        kind: Kind,
        value: Ref<'_>,
        scope: &Scope,
        parent: Option<&EntityId>,
        known: &Known<'_>,
    ) -> Option<Referred> {
        let written = self.text(value, known)?;
        self.named(kind, written, value, scope, parent)
    }

    /// As [`Resolver::entity`], with the reference as it is after expressions.
    pub(super) fn named(
        &mut self,
        kind: Kind,
        written: String,
        value: Ref<'_>,
        scope: &Scope,
        parent: Option<&EntityId>,
    ) -> Option<Referred> {
        let written = written.trim().to_owned();
        if written.is_empty() {
            let message = format!("no {} is named here", name_of(kind));
            self.fault(Code::MissingField, value, message);
            return None;
        }
        let (scope, id) = match parent {
            // An infrastructure lives where its environment does.
            Some(_) => (scope.clone(), EntityId::new(written.as_str())),
            None => scope.resolve(&written),
        };
        let reference = Reference {
            scope,
            kind: kind.key(),
            parent: parent.cloned(),
            id,
        };
        let Some(Found::Entity(entity)) = self.find(&reference) else {
            let message = format!(
                "the {} `{}` does not exist in {}",
                name_of(kind),
                reference.id,
                below(&reference)
            );
            self.fault(Code::NotFound, value, message);
            return None;
        };
        Some(Referred {
            entity,
            scope: reference.scope,
            written,
        })
    }

    /// A file of the file store as YAML names it: `/path`, `org:/path`, `account:/path`.
    pub(super) fn stored_file(&self, scope: &Scope, written: &str) -> Option<Arc<str>> {
        let (reference, _) = in_file_store(scope, written, None);
        match self.find(&reference)? {
            Found::File(content) => Some(content),
            Found::Entity(_) | Found::Many(_) | Found::Files(_) => None,
        }
    }

    /// The files below a folder of the file store, each by the path that would name it here.
    pub(super) fn stored_folder(
        &self,
        scope: &Scope,
        written: &str,
    ) -> Option<Vec<(String, String)>> {
        let folder = written.trim_end_matches('/');
        let (reference, prefix) = in_file_store(scope, folder, Some(FOLDER));
        match self.find(&reference)? {
            Found::Files(files) => {
                let named = files
                    .into_iter()
                    .map(|(path, text)| (format!("{prefix}{path}"), text.to_string()));
                Some(named.collect())
            }
            Found::Entity(_) | Found::Many(_) | Found::File(_) => None,
        }
    }

    /// An entity with the inputs that its reference gives filled in, and its templates put in; the faults
    /// are noted.
    pub(super) fn filled(
        &mut self,
        found: &Referred,
        given: Option<Ref<'_>>,
        at: Ref<'_>,
        known: &mut Known<'_>,
    ) -> Option<Parsed> {
        let entity = &found.entity;
        let given: Vec<_> = given.into_iter().filter(|given| given.is_map()).collect();
        let whole = inputs::merge_entity(entity, &given).and_then(|filled| {
            let source = source(self.request, self.asked);
            let expanded = template::expand(&source, &filled, &found.scope)?;
            Ok(expanded.unwrap_or_else(|| (filled, Vec::new())))
        });
        match whole {
            Ok((filled, notes)) => {
                self.faults.extend(notes);
                self.refuse_execution_inputs(filled.body());
                self.scope_variables(filled.body(), known);
                Some(filled)
            }
            Err(faults) => {
                let message = format!(
                    "the {} `{}` lacks inputs, or has wrong ones; see the next faults",
                    name_of(entity.head.kind),
                    entity.head.identifier
                );
                self.fault(Code::MissingInput, at, message);
                self.faults.extend(faults);
                None
            }
        }
    }
}

/// The reference of a file or folder of the file store, and what stands before the path of it.
fn in_file_store<'w>(
    scope: &Scope,
    written: &'w str,
    parent: Option<&str>,
) -> (Reference, &'w str) {
    let (scope, bare) = match written.split_once(':') {
        Some((prefix @ ("account" | "org"), bare)) => {
            (scope.resolve(&format!("{prefix}.")).0, bare)
        }
        _ => (scope.clone(), written),
    };
    let reference = Reference {
        scope,
        kind: FILE,
        parent: parent.map(EntityId::new),
        id: EntityId::new(bare),
    };
    (reference, &written[..written.len() - bare.len()])
}

/// An entity that was referred to.
pub(super) struct Referred {
    pub(super) entity: Arc<Parsed>,
    pub(super) scope: Scope,
    pub(super) written: String,
}

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Infrastructure => "infrastructure definition",
        other => other.key(),
    }
}

fn below(reference: &Reference) -> String {
    let place = place_of(&reference.scope);
    match &reference.parent {
        Some(parent) => format!("environment `{parent}` of {place}"),
        None => place,
    }
}
