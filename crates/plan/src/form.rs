//! What a run of a pipeline asks for: its runtime inputs, with those of the services, environments,
//! infrastructures and templates that it names.

use std::cell::RefCell;

use slipway_model::graft::{Graft, Part};
use slipway_model::inputs::{self, RuntimeInput};
use slipway_model::{Kind, Parsed, Ref, Tree};

use crate::reference::Asked;
use crate::template::reference as template_reference;
use crate::{Found, Reference, Request};

/// Fields that hold the inputs of something that a field beside them names.
pub(crate) const HELD: &[(&str, &str, Kind)] = &[
    ("serviceRef", "serviceInputs", Kind::Service),
    ("environmentRef", "environmentInputs", Kind::Environment),
];

/// The runtime inputs of a pipeline.
pub struct Form {
    /// The pipeline's YAML with only the fields that ask for an input; `None` when nothing is asked for.
    /// `serviceInputs: <+input>` of a service that the pipeline names is opened up to what the service asks
    /// for, and so are inputs of environments, infrastructures and templates.
    pub template: Option<Tree>,
    /// What was looked up: to be asked again with what was found, until nothing new appears.
    pub references: Vec<Reference>,
}

/// The runtime inputs of the request's pipeline; its given inputs do not matter.
pub fn form(request: &Request<'_>) -> Form {
    let mut opener = Opener {
        request,
        asked: RefCell::default(),
        graft: Graft::default(),
    };
    let root = opener.value(request.pipeline.tree.root(), None);
    let opened = opener.graft.finish(root);
    Form {
        template: inputs::template(&opened),
        references: opener.asked.into_inner().into_list(),
    }
}

struct Opener<'a> {
    request: &'a Request<'a>,
    asked: RefCell<Asked>,
    graft: Graft,
}

impl Opener<'_> {
    /// Copies a value with the inputs below it opened up; `environment` is the reference of the environment
    /// around it.
    fn value(&mut self, value: Ref<'_>, environment: Option<&Reference>) -> Part {
        if value.is_list() {
            let items = value.items().map(|item| self.value(item, environment));
            let items = items.collect();
            return self.graft.list(value, items);
        }
        if !value.is_map() {
            return self.graft.copy(value);
        }
        let own = self.named(value, "environmentRef", Kind::Environment);
        let environment = own.as_ref().or(environment);
        let mut pairs = Vec::with_capacity(value.entries().len());
        for (key, place, below) in value.fields() {
            let opened = match RuntimeInput::of(below) {
                Some(_) => self.opened(value, key, environment),
                None => None,
            };
            let part = match opened {
                Some(Some(tree)) => self.graft.copy(tree.root()),
                // What asks for nothing has no inputs to be given.
                Some(None) => continue,
                None => self.value(below, environment),
            };
            pairs.push(self.graft.pair(value, key, place, part));
        }
        self.graft.map(value, pairs)
    }

    /// What stands in the place of an open input that is one for another entity: `None` when it is not,
    /// or the entity is not known.
    fn opened(
        &mut self,
        owner: Ref<'_>,
        key: &str,
        environment: Option<&Reference>,
    ) -> Option<Option<Tree>> {
        if key == "templateInputs" {
            let written = owner
                .get_text("templateRef")
                .filter(|text| !text.contains("<+"))?;
            let version = owner.get_text("versionLabel");
            let reference = template_reference(self.request.scope, written.trim(), version);
            let template = self.found(&reference)?;
            let spec = template.body().get("spec")?;
            return Some(inputs::template_of(spec));
        }
        if let Some((by, _, kind)) = HELD.iter().find(|(_, held, _)| *held == key) {
            let reference = self.named(owner, by, *kind)?;
            let entity = self.found(&reference)?;
            return Some(inputs::template_of(entity.body()));
        }
        if key == "inputs" {
            let environment = environment?;
            let id = owner
                .get_text("identifier")
                .filter(|text| !text.contains("<+"))?;
            let reference = Reference {
                scope: environment.scope.clone(),
                kind: Kind::Infrastructure.key(),
                parent: Some(environment.id.clone()),
                id: slipway_model::id::EntityId::new(id.trim()),
            };
            let entity = self.found(&reference)?;
            return Some(inputs::template_of(entity.body()));
        }
        None
    }

    /// What a field refers to, where that is fixed.
    fn named(&self, owner: Ref<'_>, field: &str, kind: Kind) -> Option<Reference> {
        let written = owner.get_text(field).filter(|text| !text.contains("<+"))?;
        let (scope, id) = self.request.scope.resolve(written.trim());
        Some(Reference {
            scope,
            kind: kind.key(),
            parent: None,
            id,
        })
    }

    fn found(&self, reference: &Reference) -> Option<std::sync::Arc<Parsed>> {
        self.asked.borrow_mut().push(reference);
        match self.request.entities.get(reference)? {
            Found::Entity(entity) => Some(entity),
            Found::Many(_) | Found::File(_) | Found::Files(_) => None,
        }
    }
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;
