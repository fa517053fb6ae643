//! What a value may look like, as data, and the check of a tree against it.
//!
//! The shapes themselves are in [`crate::schema`]. Rules that hold everywhere, as in Harness: a null
//! reads as an absent field, and a text with an expression (`<+…>`) may stand for any value.

use crate::tree::Ref;

mod at;
mod check;
mod decode;
pub(crate) mod json_schema;
mod rule;

pub(crate) use check::check;
pub(crate) use decode::to_json;
pub(crate) use rule::Rule;

/// What a value may look like.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// Anything; kept as it is.
    Any,
    /// A text. Harness reads numbers and booleans as their text here.
    Text,
    /// A text that is one expression, with or without `<+…>`: one that does not parse is worth a warning,
    /// because Harness finds out when it runs.
    Condition,
    /// A text by a rule.
    By(Rule),
    /// `true` or `false`, as a boolean or a text.
    Bool,
    /// A whole number from the first to the second.
    Int(i64, i64),
    /// A number from the first to the second, with decimals or without.
    Number(i64, i64),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A list of such values.
    List(&'static Shape),
    /// A mapping with keys of the user's choice.
    Map(&'static Shape),
    /// One or the other: the first for mappings and lists, the second for scalars.
    Or(&'static Shape, &'static Shape),
    /// A mapping with known keys.
    Object(&'static Object),
    /// The body of a template: such a mapping without the identifier and the name that whoever uses it gives.
    Body(&'static Object),
    /// Part of such a value: what it must have may stand elsewhere, as in an input set.
    Part(&'static Shape),
    /// Such a value, with a warning.
    Noted(&'static Shape, &'static str),
}

impl Shape {
    /// Whether an empty mapping would not do.
    fn asks_for_something(self) -> bool {
        match self {
            Self::Object(object) | Self::Body(object) => object.asks_for_something(),
            _ => false,
        }
    }
}

/// A mapping with known keys.
pub(crate) struct Object {
    /// What it is called in messages.
    pub(crate) title: &'static str,
    /// Its own fields.
    pub(crate) fields: &'static [Field],
    /// Objects whose fields it has too.
    pub(crate) also: &'static [&'static Object],
    /// A field whose shape the value of another one decides.
    pub(crate) typed: Option<Typed>,
    /// Exactly one of these fields must be there; none are named when that does not apply.
    pub(crate) one_of: &'static [&'static str],
    /// Further rules about which fields stand together.
    pub(crate) groups: &'static [Group],
    /// Fields that real documents hold and Harness does not read, with what to do about them.
    pub(crate) ignored: &'static [(&'static str, &'static str)],
    /// Whether it may have fields that are not listed, because Harness has no schema for it: these are
    /// worth a warning.
    pub(crate) open: bool,
}

/// Fields of which some must be there, or not together.
pub(crate) enum Group {
    /// One of them or more.
    AtLeastOne(&'static [&'static str]),
    /// Only one of them, or none.
    AtMostOne(&'static [&'static str]),
    /// The one with any of the others: where the first says the second, the third must be there.
    With(&'static str, &'static str, &'static str),
}

/// One field of an object.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) need: Need,
    pub(crate) shape: Shape,
}

/// Whether a field has to be there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Without it, the document is refused.
    Must,
    /// Without it, the document is accepted with a warning.
    Should,
    /// It may be left out.
    May,
}

/// `type` and `spec`: the first says what the second looks like.
#[derive(Clone, Copy)]
pub(crate) struct Typed {
    /// Name of the field that decides, `type` nearly always.
    pub(crate) by: &'static str,
    /// Name of the field that is decided, `spec` nearly always.
    pub(crate) field: &'static str,
    /// Types with their shape.
    pub(crate) shapes: &'static [(&'static str, Shape)],
    /// Types that are known by name; anything goes in their `spec`.
    pub(crate) names: &'static [&'static str],
}

impl Typed {
    fn shape(&self, name: &str) -> Option<Shape> {
        // The one long table, that of step types, is in order.
        let found = match self.shapes.binary_search_by_key(&name, |(known, _)| known) {
            Ok(index) => self.shapes.get(index),
            Err(_) => self.shapes.iter().find(|(known, _)| *known == name),
        };
        found
            .map(|(_, shape)| *shape)
            .or_else(|| self.names.contains(&name).then_some(Shape::Any))
    }

    fn known(&self) -> impl Iterator<Item = &'static str> {
        self.shapes
            .iter()
            .map(|(name, _)| *name)
            .chain(self.names.iter().copied())
    }
}

impl Object {
    fn all_fields(&'static self) -> impl Iterator<Item = &'static Field> {
        self.fields
            .iter()
            .chain(self.also.iter().flat_map(|object| object.fields))
    }

    fn typed(&self) -> Option<Typed> {
        self.typed
            .or_else(|| self.also.iter().find_map(|object| object.typed))
    }

    /// What to do about a field that is known to mean nothing.
    fn advice(&'static self, name: &str) -> Option<&'static str> {
        let also = self.also.iter().flat_map(|object| object.ignored);
        let mut ignored = self.ignored.iter().chain(also);
        ignored
            .find(|(known, _)| *known == name)
            .map(|(_, advice)| *advice)
    }

    /// Whether an empty mapping would not do.
    fn asks_for_something(&'static self) -> bool {
        let some = |group: &Group| matches!(group, Group::AtLeastOne(_));
        !self.one_of.is_empty()
            || self.groups.iter().any(some)
            || self.all_fields().any(|field| field.need == Need::Must)
    }

    /// The shape that `value` chose for its field that another one decides, `spec` nearly always.
    fn chosen(&'static self, value: Ref<'_>) -> Option<(&'static str, Shape)> {
        let typed = self.typed()?;
        let shape = value.get_text(typed.by).and_then(|text| typed.shape(text));
        Some((typed.field, shape.unwrap_or(Shape::Any)))
    }

    /// The shape of one field, as far as there is such a field; `chosen` comes from [`Object::chosen`], and says more of its
    /// field than the list of fields where both know it.
    fn shape_of(&'static self, name: &str, chosen: Option<(&'static str, Shape)>) -> Option<Shape> {
        let chosen = chosen.filter(|(field, _)| *field == name);
        let own = self.all_fields().find(|field| field.name == name);
        match (chosen, own) {
            (None | Some((_, Shape::Any)), Some(own)) => Some(own.shape),
            (Some((_, shape)), _) => Some(shape),
            (None, None) => None,
        }
    }
}
