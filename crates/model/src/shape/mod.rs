//! What a value may look like, as data, and the check of a tree against it.
//!
//! The shapes themselves are in [`crate::schema`]. Rules that hold everywhere, as in Harness: a null
//! reads as an absent field, and a text with an expression (`<+…>`) may stand for any value.

use crate::diagnostic::{Code, Diagnostic, Diagnostics, nearest, shown};
use crate::tree::{Ref, join};

mod decode;
mod rule;

pub(crate) use decode::to_json;
pub(crate) use rule::Rule;

/// What a value may look like.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// Anything; kept as it is.
    Any,
    /// A text. Harness reads numbers and booleans as their text here.
    Text,
    /// A text by a rule.
    By(Rule),
    /// `true` or `false`, as a boolean or a text.
    Bool,
    /// A whole number from the first to the second.
    Int(i64, i64),
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
    /// Fields that real documents hold and Harness does not read, with what to do about them.
    pub(crate) ignored: &'static [(&'static str, &'static str)],
}

/// One field of an object.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) must: bool,
    pub(crate) shape: Shape,
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
        self.shapes
            .iter()
            .find(|(known, _)| *known == name)
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

    /// The shape of one field of `value`, as far as it has one.
    fn field_shape(&'static self, value: Ref<'_>, name: &str) -> Option<Shape> {
        if let Some(field) = self.all_fields().find(|field| field.name == name) {
            return Some(field.shape);
        }
        let typed = self.typed()?;
        if typed.field != name {
            return None;
        }
        let shape = value.get_text(typed.by).and_then(|text| typed.shape(text));
        Some(shape.unwrap_or(Shape::Any))
    }
}

/// Checks a value; `path` is where it stands.
pub(crate) fn check(value: Ref<'_>, shape: Shape, path: &str, out: &mut Diagnostics) {
    Checker { out }.value(value, shape, path);
}

struct Checker<'a> {
    out: &'a mut Diagnostics,
}

impl Checker<'_> {
    fn fault(&mut self, value: Ref<'_>, path: &str, message: String, expected: &str) {
        let fault = Diagnostic::error(Code::BadValue, value.file(), value.place(), message);
        self.out.push(fault.path(path).expected(expected));
    }

    fn value(&mut self, value: Ref<'_>, shape: Shape, path: &str) {
        if value.is_null() || self.out.is_full() {
            return;
        }
        if value.is_expression() {
            return expression(value, path, self.out);
        }
        match shape {
            Shape::Any => self.any(value, path),
            Shape::Or(first, second) => {
                let shape = if value.scalar().is_some() {
                    second
                } else {
                    first
                };
                self.value(value, *shape, path);
            }
            Shape::List(item) => self.list(value, *item, path),
            Shape::Map(item) => self.map(value, *item, path),
            Shape::Object(object) => self.object(value, object, path),
            _ => match value.text() {
                Some(text) => self.scalar(value, text, shape, path),
                None => {
                    let message =
                        format!("{} stands where a single value is expected", value.form());
                    self.fault(value, path, message, &scalar_form(shape));
                }
            },
        }
    }

    fn any(&mut self, value: Ref<'_>, path: &str) {
        for scalar in value.scalars().filter(|scalar| scalar.is_expression()) {
            if let Err(message) = crate::expression::check(scalar.scalar().unwrap_or_default()) {
                let below = scalar.path();
                let path = if below.is_empty() { path } else { &below };
                self.out.push(bad_expression(scalar, path, &message));
            }
        }
    }

    fn list(&mut self, value: Ref<'_>, item: Shape, path: &str) {
        if !value.is_list() {
            // An empty text is what Harness writes for an emptied list.
            if value.text() != Some("") {
                let message = format!("{} stands where a list is expected", value.form());
                self.fault(value, path, message, "a list");
            }
            return;
        }
        for (index, each) in value.items().enumerate() {
            self.value(each, item, &format!("{path}[{index}]"));
        }
    }

    fn map(&mut self, value: Ref<'_>, item: Shape, path: &str) {
        if !value.is_map() {
            if value.text() != Some("") {
                let message = format!("{} stands where a mapping is expected", value.form());
                self.fault(value, path, message, "a mapping");
            }
            return;
        }
        for (key, each) in value.entries() {
            self.value(each, item, &format!("{path}{}", join(key)));
        }
    }

    fn object(&mut self, value: Ref<'_>, object: &'static Object, path: &str) {
        if !value.is_map() {
            let message = format!(
                "{} stands where a mapping ({}) is expected",
                value.form(),
                object.title
            );
            return self.fault(
                value,
                path,
                message,
                &format!("the fields of {}", object.title),
            );
        }
        for (key, each) in value.entries() {
            let below = format!("{path}{}", join(key));
            match object.field_shape(value, key) {
                Some(shape) => self.value(each, shape, &below),
                None => self.unknown_field(value, key, object, &below),
            }
        }
        let missing = |field: &&Field| field.must && value.get(field.name).is_none();
        for field in object.all_fields().filter(missing) {
            let message = format!("`{}` is missing from {}", field.name, object.title);
            let fault = Diagnostic::error(Code::MissingField, value.file(), value.place(), message);
            self.out.push(fault.path(path));
        }
        self.one_of(value, object, path);
        self.type_name(value, object, path);
    }

    fn unknown_field(&mut self, value: Ref<'_>, key: &str, object: &'static Object, path: &str) {
        if self.out.is_full() {
            return;
        }
        let place = value.key_place(key).unwrap_or_default();
        if let Some(advice) = ignored(value, key, object) {
            let message = format!(
                "`{}` has no effect in {}: {advice}",
                shown(key),
                object.title
            );
            let fault = Diagnostic::error(Code::UnknownField, value.file_of(place), place, message);
            return self.out.push(fault.path(path).warning());
        }
        let names = || {
            let typed = object.typed().map(|typed| typed.field);
            let own = object.all_fields().map(|field| field.name).chain(typed);
            // Fields that only Harness itself writes help nobody.
            own.filter(|name| *name != "metadata" && !name.starts_with("__"))
        };
        let message = if key == "<<" {
            "YAML merge keys are not supported; write the fields out".to_owned()
        } else {
            format!("`{}` is no field of {}", shown(key), object.title)
        };
        let suggestion = nearest(key, names());
        let mut fault = Diagnostic::error(Code::UnknownField, value.file_of(place), place, message)
            .path(path)
            .suggest(suggestion);
        if suggestion.is_none() {
            let mut names: Vec<_> = names().collect();
            names.sort_unstable();
            fault = fault.expected(format!("one of {}", names.join(", ")));
        }
        self.out.push(fault);
    }

    fn one_of(&mut self, value: Ref<'_>, object: &'static Object, path: &str) {
        if object.one_of.is_empty() {
            return;
        }
        let present = object
            .one_of
            .iter()
            .filter(|name| value.get(name).is_some());
        let message = match present.count() {
            1 => return,
            0 => format!("{} needs one of these fields", object.title),
            _ => format!("{} may have only one of these fields", object.title),
        };
        self.fault(value, path, message, &object.one_of.join(" or "));
    }

    fn type_name(&mut self, value: Ref<'_>, object: &'static Object, path: &str) {
        let Some(typed) = object.typed() else {
            return;
        };
        let Some(name) = value.get(typed.by).filter(|name| !name.is_expression()) else {
            return;
        };
        let Some(text) = name.text().filter(|text| typed.shape(text).is_none()) else {
            return;
        };
        let message = format!("`{}` is no `{}` of {}", shown(text), typed.by, object.title);
        let path = format!("{path}.{}", typed.by);
        let mut fault = Diagnostic::error(Code::BadValue, name.file(), name.place(), message)
            .path(path)
            .suggest(nearest(text, typed.known()));
        let known: Vec<_> = typed.known().collect();
        if fault.suggestion.is_none() && known.len() <= 40 {
            fault = fault.expected(format!("one of {}", known.join(", ")));
        }
        self.out.push(fault);
    }

    fn scalar(&mut self, value: Ref<'_>, text: &str, shape: Shape, path: &str) {
        let well = match shape {
            Shape::Bool => matches!(
                text,
                "true" | "false" | "True" | "False" | "TRUE" | "FALSE" | ""
            ),
            Shape::Int(low, high) => {
                text.is_empty() || text.parse::<i64>().is_ok_and(|n| (low..=high).contains(&n))
            }
            Shape::OneOf(names) => text.is_empty() || names.contains(&text),
            Shape::By(rule) => rule.holds(text),
            _ => true,
        };
        if !well {
            let message = match shape {
                Shape::By(Rule::Duration) => rule::why_no_duration(text),
                _ => format!("`{}` is not accepted here", shown(text)),
            };
            let fault = Diagnostic::error(Code::BadValue, value.file(), value.place(), message)
                .path(path)
                .expected(scalar_form(shape));
            self.out.push(match shape {
                Shape::OneOf(names) => fault.suggest(nearest(text, names.iter().copied())),
                _ => fault,
            });
        }
    }
}

/// Why an unknown field may stay: it says nothing, or it is known that Harness does not read it there.
fn ignored(value: Ref<'_>, key: &str, object: &Object) -> Option<&'static str> {
    let known = object.ignored.iter().find(|(name, _)| *name == key);
    let field = value.entries().find(|(name, _)| *name == key)?.1;
    let empty = match field.scalar() {
        Some(_) => field.text().is_none_or(str::is_empty),
        None => field.entries().len() == 0 && field.items().len() == 0,
    };
    match known {
        Some((_, advice)) => Some(advice),
        None if empty => Some("it is no field of it, and empty"),
        None => None,
    }
}

fn scalar_form(shape: Shape) -> String {
    match shape {
        Shape::Bool => "true or false".to_owned(),
        Shape::Int(i64::MIN, i64::MAX) => "a whole number".to_owned(),
        Shape::Int(low, i64::MAX) => format!("a whole number of at least {low}"),
        Shape::Int(low, high) => format!("a whole number from {low} to {high}"),
        Shape::OneOf(names) => format!("one of {}", names.join(", ")),
        Shape::By(rule) => rule.form().to_owned(),
        _ => "a text".to_owned(),
    }
}

/// Checks that the expressions of a text parse.
fn expression(value: Ref<'_>, path: &str, out: &mut Diagnostics) {
    if let Err(message) = crate::expression::check(value.scalar().unwrap_or_default()) {
        out.push(bad_expression(value, path, &message));
    }
}

fn bad_expression(value: Ref<'_>, path: &str, message: &str) -> Diagnostic {
    Diagnostic::error(Code::BadExpression, value.file(), value.place(), message).path(path)
}
