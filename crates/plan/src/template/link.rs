//! A link to a template, followed.

use std::collections::HashSet;
use std::iter;
use std::sync::Arc;

use slipway_model::graft::Part;
use slipway_model::id::{EntityId, Scope};
use slipway_model::inputs::{self, RuntimeInput, Unfilled};
use slipway_model::{Code, Diagnostic, Kind, Parsed, Ref, Tree};

use slipway_model::schema::overridable;

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

/// The spec of a template that a link stands for.
struct Layer {
    /// The spec with its inputs.
    tree: Tree,
    /// Fields that the link may override.
    allowed: Vec<&'static str>,
    /// The chain that ends in the template.
    chain: Chain,
}

/// What the spec of a template is called in messages.
const SPEC: &str = "template.spec";

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
        let below = layers.iter().map(|layer| (layer.tree.root(), &layer.chain));
        for (depth, (layer, chain)) in iter::once(own).chain(below).enumerate() {
            // What a link overrides goes before what stands beside it, and before its template.
            let allowed = layers.get(depth).map_or(&[][..], |below| &below.allowed);
            if let Some(over) = of(layer).and_then(|link| link.get("templateOverrides")) {
                for (key, place, value) in over.fields() {
                    if allowed.contains(&key) && !value.is_null() && known.insert(key) {
                        let part = self.value(value, Role::Other, chain, level + 1);
                        pairs.push(self.graft.pair(over, key, place, part));
                    }
                }
            }
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
    fn layers(&mut self, link: Ref<'_>, wanted: &str, chain: &Chain) -> Vec<Layer> {
        let mut layers: Vec<Layer> = Vec::new();
        let mut next = self.layer(link, wanted, chain);
        while let Some(layer) = next {
            next = of(layer.tree.root()).and_then(|link| self.layer(link, wanted, &layer.chain));
            layers.push(layer);
        }
        layers
    }

    fn layer(&mut self, link: Ref<'_>, wanted: &str, chain: &Chain) -> Option<Layer> {
        let (template, below) = self.follow(link, wanted, chain)?;
        let direct = below.way.len() == 1;
        Some(Layer {
            tree: self.filled(&template, link, direct)?,
            allowed: self.allowed(&template, link, wanted),
            chain: below,
        })
    }

    /// The fields that a template lets its users override. Others are told: as in Harness they stay as the
    /// template has them.
    fn allowed(&mut self, template: &Parsed, link: Ref<'_>, wanted: &str) -> Vec<&'static str> {
        let Some(over) = link.get("templateOverrides").filter(|over| over.is_map()) else {
            return Vec::new();
        };
        let list = template.body().get("allowedOverrides");
        let single = list.filter(|list| !list.is_list());
        let names = list.into_iter().flat_map(Ref::items).chain(single);
        let names: Vec<_> = names.filter_map(Ref::text).collect();
        let fields = overridable(wanted).filter(|(name, _)| names.contains(name));
        let allowed: Vec<_> = fields.map(|(_, field)| field).collect();
        for (key, value) in over.entries().filter(|(key, _)| !allowed.contains(key)) {
            self.faults.warn_with(|| {
                let message = format!(
                    "`{key}` is not overridden: the template `{}` does not have it in `allowedOverrides`",
                    template.head.identifier
                );
                Diagnostic::at(Code::BadInput, value, message)
            });
        }
        allowed
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
        let variables = link.get("templateVariables");
        if let Some(value) =
            variables.filter(|value| value.entries().len() + value.items().len() > 0)
        {
            let message = "`templateVariables` is not supported by this version yet; give the values in `templateInputs`";
            self.fault(Code::NotSupported, value, message);
        }
        let version = link.get_text("versionLabel").map(str::trim);
        let version = version.filter(|version| !version.is_empty());
        let written = link.get_text("templateRef")?.trim();
        Some(reference(&chain.scope, written, version))
    }

    /// The spec of a template with the inputs of a link; `direct` is a link of the document itself, not one of
    /// another template.
    pub(super) fn filled(
        &mut self,
        template: &Parsed,
        link: Ref<'_>,
        direct: bool,
    ) -> Option<Tree> {
        let Some(spec) = template.body().get("spec") else {
            let message = format!("the template `{}` has no `spec`", template.head.identifier);
            self.fault(Code::MissingField, link, message);
            return None;
        };
        let written = link.get("templateInputs");
        let given: Vec<Ref<'_>> = written.into_iter().filter(|given| given.is_map()).collect();
        let asked_later = written.is_some_and(|value| RuntimeInput::of(value).is_some());
        let unfilled = match self.source.unfilled {
            Unfilled::Note if !direct || asked_later => Unfilled::Keep,
            other => other,
        };
        match inputs::fill_noting(spec, &given, SPEC, unfilled) {
            Ok((tree, notes)) => {
                for note in notes {
                    self.faults.push(lacking(template, link, &note));
                }
                Some(tree)
            }
            Err(faults) => {
                let message = format!(
                    "`templateInputs` do not fit the template `{}`; see the next faults",
                    template.head.identifier
                );
                self.fault(Code::BadInput, link, message);
                self.faults.extend(faults);
                None
            }
        }
    }

    fn fault(&mut self, code: Code, at: Ref<'_>, message: impl Into<String>) {
        self.faults.push_with(|| Diagnostic::at(code, at, message));
    }
}

/// That a link does not give an input that its template asks for.
fn lacking(template: &Parsed, link: Ref<'_>, note: &Diagnostic) -> Diagnostic {
    let field = note.path.strip_prefix(SPEC).unwrap_or(&note.path);
    let message = format!(
        "the template `{}` asks for `{}`, which `templateInputs` does not give: a run is refused without it",
        template.head.identifier,
        field.trim_start_matches('.')
    );
    let at = link.get("templateInputs").unwrap_or(link);
    let found = Diagnostic::at(Code::MissingInput, at, message).warning();
    match &note.expected {
        Some(expected) => found.expected(expected.as_str()),
        None => found,
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
