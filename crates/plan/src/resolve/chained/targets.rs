//! What a chained pipeline gives to the services, environments and infrastructures that it deploys to, its inputs filled
//! in: what these ask for is known before the parent begins, unless an expression or a person still decides it.

use slipway_model::id::{EntityId, Scope};
use slipway_model::inputs::{self, RuntimeInput};
use slipway_model::{Diagnostic, Kind, Parsed, Ref};

use crate::form::HELD;
use crate::resolve::Resolver;
use crate::{Found, Reference};

impl Resolver<'_> {
    /// The faults of the inputs that a pipeline in `scope` gives to what it names. What does not exist is not looked at:
    /// it is told when the pipeline is planned.
    pub(super) fn target_faults(&self, pipeline: Ref<'_>, scope: &Scope) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        self.below(pipeline, scope, &mut found);
        found
    }

    fn below(&self, value: Ref<'_>, scope: &Scope, found: &mut Vec<Diagnostic>) {
        for (reference, held, kind) in HELD {
            let Some((place, id)) = value.get(reference).and_then(|name| named(name, scope)) else {
                continue;
            };
            let Some(entity) = self.at(*kind, &place, None, &id) else {
                continue;
            };
            found.extend(faults_of(&entity, value.get(held)));
            if *kind != Kind::Environment {
                continue;
            }
            let listed = value.get("infrastructureDefinitions").into_iter();
            for item in listed.flat_map(Ref::items) {
                let own = item.get("identifier").and_then(|name| fixed(name));
                let own = own.map(EntityId::new);
                let found_there =
                    own.and_then(|own| self.at(Kind::Infrastructure, &place, Some(&id), &own));
                if let Some(infrastructure) = found_there {
                    found.extend(faults_of(&infrastructure, item.get("inputs")));
                }
            }
        }
        for (key, inner) in value.entries() {
            // What a template leaves open may be all that it is given here.
            if key != "template" {
                self.below(inner, scope, found);
            }
        }
        for item in value.items() {
            self.below(item, scope, found);
        }
    }

    fn at(
        &self,
        kind: Kind,
        scope: &Scope,
        parent: Option<&EntityId>,
        id: &EntityId,
    ) -> Option<std::sync::Arc<Parsed>> {
        let reference = Reference {
            scope: scope.clone(),
            kind: kind.key(),
            parent: parent.cloned(),
            id: id.clone(),
        };
        match self.find(&reference)? {
            Found::Entity(entity) => Some(entity),
            Found::Many(_) | Found::File(_) | Found::Files(_) => None,
        }
    }
}

/// A name that no expression decides.
fn fixed(name: Ref<'_>) -> Option<&str> {
    let text = name.text().map(str::trim)?;
    (!text.is_empty() && !text.contains("<+")).then_some(text)
}

fn named(name: Ref<'_>, scope: &Scope) -> Option<(Scope, EntityId)> {
    fixed(name).map(|text| scope.resolve(text))
}

/// What is wrong with the inputs of an entity; nothing where some are still to come.
fn faults_of(entity: &Parsed, given: Option<Ref<'_>>) -> Vec<Diagnostic> {
    let comes_later = |given: Ref<'_>| {
        given.is_expression()
            || given
                .scalars()
                .any(|value| RuntimeInput::of(value).is_some())
    };
    if given.is_some_and(comes_later) {
        return Vec::new();
    }
    let given: Vec<_> = given.into_iter().filter(|given| given.is_map()).collect();
    inputs::merge_entity(entity, &given)
        .err()
        .unwrap_or_default()
}
