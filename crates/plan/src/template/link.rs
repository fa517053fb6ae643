//! A link to a template, followed.

use std::collections::HashSet;
use std::iter;
use std::sync::Arc;

use slipway_model::graft::Part;
use slipway_model::id::{EntityId, Scope};
use slipway_model::inputs;
use slipway_model::{Code, Diagnostic, Kind, Parsed, Ref, Tree};

use super::{Expander, MOST_DEPTH, MOST_USES, Role};
use crate::reference::{Found, Reference, place_of};

/// Fields of a template's spec that say something about the template and nothing about the element.
const OF_THE_TEMPLATE: &[&str] = &[
    "stageType",
    "identifier",
    "name",
    "orgIdentifier",
    "projectIdentifier",
];

/// The templates from a document down to the one that is being put in.
#[derive(Clone)]
pub(super) struct Chain {
    /// Where the references of the innermost one are looked up.
    scope: Scope,
    way: Vec<Reference>,
}

impl Chain {
    pub(super) fn new(scope: Scope) -> Self {
        let way = Vec::new();
        Self { scope, way }
    }

    /// The chain as text, `account.a 1.0 → b`.
    fn shown(&self, from: usize) -> String {
        let names: Vec<String> = self.way[from..].iter().map(name_of).collect();
        names.join(" → ")
    }
}

/// The link of an element, if it has one.
pub(super) fn of(element: Ref<'_>) -> Option<Ref<'_>> {
    element
        .get("template")
        .filter(|link| link.get("templateRef").is_some())
}

/// The reference that a link makes from `scope`: with its version below the template, without one to the
/// template's stable version.
pub(crate) fn reference(scope: &Scope, written: &str, version: Option<&str>) -> Reference {
    let (scope, id) = scope.resolve(written);
    match version {
        Some(version) => Reference {
            scope,
            kind: Kind::Template.key(),
            parent: Some(id),
            id: EntityId::new(version),
        },
        None => Reference {
            scope,
            kind: Kind::Template.key(),
            parent: None,
            id,
        },
    }
}

impl Expander<'_> {
    /// The element with its template put in.
    pub(super) fn linked(
        &mut self,
        element: Ref<'_>,
        link: Ref<'_>,
        (role, wanted): (Role, &'static str),
        chain: &Chain,
        level: usize,
    ) -> Part {
        let layers = self.layers(link, wanted, chain);
        let mut pairs = Vec::new();
        let mut known = HashSet::new();
        let own = (element, chain);
        let below = layers.iter().map(|(tree, chain)| (tree.root(), chain));
        for (depth, (layer, chain)) in iter::once(own).chain(below).enumerate() {
            for (key, place, value) in layer.fields() {
                let skipped = depth > 0 && OF_THE_TEMPLATE.contains(&key);
                if key == "template" || value.is_null() || skipped || !known.insert(key) {
                    continue;
                }
                let part = self.value(value, role.below(key), chain, level + 1);
                pairs.push(self.graft.pair(layer, key, place, part));
            }
        }
        self.graft.map(element, pairs)
    }

    /// The specs that make up what a link stands for, outermost first: the spec of a template may be nothing
    /// but a link itself.
    fn layers(&mut self, link: Ref<'_>, wanted: &str, chain: &Chain) -> Vec<(Tree, Chain)> {
        let mut layers: Vec<(Tree, Chain)> = Vec::new();
        let mut next = self.layer(link, wanted, chain);
        while let Some((tree, chain)) = next {
            next = of(tree.root()).and_then(|link| self.layer(link, wanted, &chain));
            layers.push((tree, chain));
        }
        layers
    }

    fn layer(&mut self, link: Ref<'_>, wanted: &str, chain: &Chain) -> Option<(Tree, Chain)> {
        let (template, below) = self.follow(link, wanted, chain)?;
        Some((self.filled(&template, link)?, below))
    }

    /// The template that a link names, and the chain that ends in it.
    pub(super) fn follow(
        &mut self,
        link: Ref<'_>,
        wanted: &str,
        chain: &Chain,
    ) -> Option<(Arc<Parsed>, Chain)> {
        self.uses += 1;
        if self.uses > MOST_USES {
            self.over = true;
            let message = format!("more than {MOST_USES} links to templates");
            self.fault(Code::Limit, link, message);
            return None;
        }
        let reference = self.reference(link, chain)?;
        if let Some(from) = chain.way.iter().position(|known| *known == reference) {
            let message = format!(
                "templates link to one another in a circle: {} → {}",
                chain.shown(from),
                name_of(&reference)
            );
            self.fault(Code::Loop, link, message);
            return None;
        }
        if chain.way.len() >= MOST_DEPTH {
            let message = format!(
                "at most {MOST_DEPTH} templates may stand inside of one another: {}",
                chain.shown(0)
            );
            self.fault(Code::Limit, link, message);
            return None;
        }
        self.source.asked.borrow_mut().push(&reference);
        let Some(Found::Entity(template)) = self.source.entities.get(&reference) else {
            let message = format!(
                "the template {} does not exist in {}",
                name_of(&reference),
                place_of(&reference.scope)
            );
            self.fault(Code::NotFound, link, message);
            return None;
        };
        let own = template.head.entity_type.as_deref().unwrap_or_default();
        if own != wanted {
            let message = format!(
                "the template {} is of type {own}; here stands one of type {wanted}",
                name_of(&reference)
            );
            self.fault(Code::BadValue, link, message);
            return None;
        }
        let mut below = chain.clone();
        below.scope = reference.scope.clone();
        below.way.push(reference);
        Some((template, below))
    }

    fn reference(&mut self, link: Ref<'_>, chain: &Chain) -> Option<Reference> {
        for field in ["templateRef", "versionLabel"] {
            if let Some(value) = link.get(field).filter(|value| value.is_expression()) {
                let message = format!("`{field}` must be a fixed name, not an expression");
                self.fault(Code::BadValue, value, message);
                return None;
            }
        }
        for (field, advice) in [
            ("templateOverrides", "write the fields beside `template`"),
            ("templateVariables", "give the values in `templateInputs`"),
        ] {
            let value = link.get(field);
            if let Some(value) =
                value.filter(|value| value.entries().len() + value.items().len() > 0)
            {
                let message = format!("`{field}` is not supported by this version yet; {advice}");
                self.fault(Code::NotSupported, value, message);
            }
        }
        let version = link.get_text("versionLabel").map(str::trim);
        let version = version.filter(|version| !version.is_empty());
        let written = link.get_text("templateRef")?.trim();
        Some(reference(&chain.scope, written, version))
    }

    /// The spec of a template with the inputs of a link.
    fn filled(&mut self, template: &Parsed, link: Ref<'_>) -> Option<Tree> {
        let Some(spec) = template.body().get("spec") else {
            let message = format!("the template `{}` has no `spec`", template.head.identifier);
            self.fault(Code::MissingField, link, message);
            return None;
        };
        let given = link.get("templateInputs").filter(|given| given.is_map());
        let given: Vec<Ref<'_>> = given.into_iter().collect();
        let filled = inputs::fill(spec, &given, "template.spec", self.source.unfilled);
        filled
            .map_err(|faults| {
                let message = format!(
                    "`templateInputs` do not fit the template `{}`; see the next faults",
                    template.head.identifier
                );
                self.fault(Code::BadInput, link, message);
                self.faults.extend(faults);
            })
            .ok()
    }

    fn fault(&mut self, code: Code, at: Ref<'_>, message: impl Into<String>) {
        self.faults.push_with(|| Diagnostic::at(code, at, message));
    }
}

/// A template as people call it, with its version.
fn name_of(reference: &Reference) -> String {
    let prefix = match (&reference.scope.org, &reference.scope.project) {
        (_, Some(_)) => "",
        (Some(_), None) => "org.",
        (None, None) => "account.",
    };
    match &reference.parent {
        Some(template) => format!("`{prefix}{template}` version {}", reference.id),
        None => format!("`{prefix}{}`", reference.id),
    }
}
