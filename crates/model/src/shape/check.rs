//! The check of a tree against a shape.

use super::at::At;
use super::{Group, Need, Object, Rule, Shape, rule};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, nearest, shown};
use crate::number;
use crate::tree::{Place, Ref};

/// Checks a value; `path` is where it stands.
pub(crate) fn check(value: Ref<'_>, shape: Shape, path: &str, out: &mut Diagnostics) {
    let mut checker = Checker {
        out,
        unknown: 0,
        part: false,
    };
    checker.value(value, shape, At::start(path));
}

/// Most fields of a document that are none: finding what each may mean costs a look at every field.
const MOST_UNKNOWN: usize = 100;

struct Checker<'a> {
    out: &'a mut Diagnostics,
    /// Fields that are none, so far.
    unknown: usize,
    /// Whether what is checked is only part of a value, so that nothing is missing from it.
    part: bool,
}

impl Checker<'_> {
    fn fault(&mut self, value: Ref<'_>, at: At<'_>, message: String, expected: &str) {
        let fault = Diagnostic::error(Code::BadValue, value.file(), value.place(), message);
        self.out.push(fault.path(at.to_string()).expected(expected));
    }

    fn value(&mut self, value: Ref<'_>, shape: Shape, at: At<'_>) {
        if value.is_null() || self.out.is_full() {
            return;
        }
        if matches!(shape, Shape::Condition) {
            self.condition(value, at);
        }
        if value.is_expression() {
            return expression(value, at, self.out);
        }
        match shape {
            Shape::Any => self.any(value, at),
            Shape::Or(first, second) => {
                let shape = if value.scalar().is_some() {
                    second
                } else {
                    first
                };
                self.value(value, *shape, at);
            }
            Shape::List(item) => self.list(value, *item, at),
            Shape::Map(item) => self.map(value, *item, at),
            Shape::Object(object) => self.object(value, object, &[], at),
            Shape::Body(object) => self.object(value, object, &["identifier", "name"], at),
            Shape::Part(whole) => {
                let before = std::mem::replace(&mut self.part, true);
                self.value(value, *whole, at);
                self.part = before;
            }
            Shape::Noted(inner, advice) => {
                self.out.warn_with(|| {
                    let file = value.file();
                    Diagnostic::error(Code::BadValue, file, value.place(), advice)
                        .path(at.to_string())
                });
                self.value(value, *inner, at);
            }
            _ => match value.text() {
                Some(text) => self.scalar(value, text, shape, at),
                None if self.spelt_out(value, at) => {}
                None => {
                    let message =
                        format!("{} stands where a single value is expected", value.form());
                    self.fault(value, at, message, &scalar_form(shape));
                }
            },
        }
    }

    /// Whether a mapping is an expression spelt out as in an example of Harness's schema
    /// (`expression: {expressionValue: <+…>}`): kept with a warning, because nothing reads it.
    fn spelt_out(&mut self, value: Ref<'_>, at: At<'_>) -> bool {
        let Some(inner) = value.at(&["expression", "expressionValue"]) else {
            return false;
        };
        expression(inner, at, self.out);
        self.out.warn_with(|| {
            let message = "an expression in this form has no effect; write it as a text";
            Diagnostic::error(Code::BadValue, value.file(), value.place(), message)
                .path(at.to_string())
        });
        true
    }

    fn condition(&mut self, value: Ref<'_>, at: At<'_>) {
        let text = value.text().unwrap_or_default();
        if let Err(message) = crate::expression::check_condition(text) {
            self.out
                .warn_with(|| bad_expression(value, at.to_string(), &message));
        }
    }

    fn any(&mut self, value: Ref<'_>, at: At<'_>) {
        for scalar in value.scalars().filter(|scalar| scalar.is_expression()) {
            if self.out.is_full() {
                return;
            }
            if let Err(message) = crate::expression::check(scalar.scalar().unwrap_or_default()) {
                let below = scalar.path();
                let path = if below.is_empty() {
                    at.to_string()
                } else {
                    below
                };
                self.out.push(bad_expression(scalar, path, &message));
            }
        }
    }

    fn list(&mut self, value: Ref<'_>, item: Shape, at: At<'_>) {
        if !value.is_list() {
            // An empty text is what Harness writes for an emptied list.
            if value.text() != Some("") && !self.spelt_out(value, at) {
                let message = format!("{} stands where a list is expected", value.form());
                self.fault(value, at, message, "a list");
            }
            return;
        }
        for (index, each) in value.items().enumerate() {
            self.value(each, item, at.item(index));
        }
    }

    fn map(&mut self, value: Ref<'_>, item: Shape, at: At<'_>) {
        if !value.is_map() {
            if value.text() != Some("") {
                let message = format!("{} stands where a mapping is expected", value.form());
                self.fault(value, at, message, "a mapping");
            }
            return;
        }
        for (key, each) in value.entries() {
            self.value(each, item, at.key(key));
        }
    }

    /// Checks a mapping; `elsewhere` are fields that need not be there although the object must have them.
    fn object(&mut self, value: Ref<'_>, object: &'static Object, elsewhere: &[&str], at: At<'_>) {
        if !value.is_map() {
            let title = object.title;
            let message = format!(
                "{} stands where a mapping ({title}) is expected",
                value.form()
            );
            return self.fault(value, at, message, &format!("the fields of {title}"));
        }
        let chosen = object.chosen(value);
        for (key, place, each) in value.fields() {
            match object.shape_of(key, chosen) {
                Some(shape) => self.value(each, shape, at.key(key)),
                None => self.unknown_field(value, (key, place, each), object, at.key(key)),
            }
        }
        self.missing(value, object, elsewhere, at);
        self.missing_choice(value, object, chosen, at);
        self.one_of(value, object, at);
        self.groups(value, object, at);
        self.type_name(value, object, at);
    }

    fn missing(&mut self, value: Ref<'_>, object: &'static Object, elsewhere: &[&str], at: At<'_>) {
        if self.part {
            return;
        }
        let needed = object.all_fields().filter(|field| {
            field.need != Need::May
                && !elsewhere.contains(&field.name)
                && value.get(field.name).is_none()
        });
        for field in needed {
            let fault = || {
                let message = format!("`{}` is missing from {}", field.name, object.title);
                Diagnostic::error(Code::MissingField, value.file(), value.place(), message)
                    .path(at.to_string())
            };
            match field.need {
                Need::Must => self.out.push_with(fault),
                Need::Should | Need::May => self.out.warn_with(fault),
            }
        }
    }

    /// Notes that a field is missing which another one says must hold something.
    fn missing_choice(
        &mut self,
        value: Ref<'_>,
        object: &'static Object,
        chosen: Option<(&'static str, Shape)>,
        at: At<'_>,
    ) {
        let absent = |field: &str| value.get(field).is_none();
        let Some((field, _)) = chosen
            .filter(|(field, shape)| !self.part && shape.asks_for_something() && absent(field))
        else {
            return;
        };
        let name = object.typed().and_then(|typed| value.get_text(typed.by));
        self.out.push_with(|| {
            let name = shown(name.unwrap_or_default());
            let message = format!(
                "`{field}` is missing from {} of type `{name}`",
                object.title
            );
            Diagnostic::error(Code::MissingField, value.file(), value.place(), message)
                .path(at.to_string())
        });
    }

    /// A field that the object does not have. The official schemas accept these nearly everywhere and Harness
    /// does not read them: worth a warning, but a slip of a name that it does read is refused.
    fn unknown_field(
        &mut self,
        within: Ref<'_>,
        (key, place, field): (&str, Place, Ref<'_>),
        object: &'static Object,
        at: At<'_>,
    ) {
        if self.out.is_full() {
            return;
        }
        let file = field.file_of(place);
        let ignore = |out: &mut Diagnostics, advice: &str| {
            out.warn_with(|| {
                let title = object.title;
                let message = format!("`{}` has no effect in {title}: {advice}", shown(key));
                Diagnostic::error(Code::UnknownField, file, place, message).path(at.to_string())
            });
        };
        if let Some(advice) = ignored(field, key, object) {
            // An empty list says what its absence says, and editors write such.
            let says_nothing = field.is_list() && field.items().len() == 0;
            return match object.advice(key) {
                Some(_) if says_nothing => {}
                _ => ignore(self.out, advice),
            };
        }
        if key == "<<" {
            let message = "YAML merge keys are not supported; write the fields out";
            let fault = Diagnostic::error(Code::UnknownField, file, place, message);
            return self.out.push(fault.path(at.to_string()));
        }
        self.unknown += 1;
        if self.unknown > MOST_UNKNOWN {
            let message = format!("more than {MOST_UNKNOWN} fields are none that Harness has");
            let fault = || Diagnostic::error(Code::Limit, file, place, message);
            return self.out.push_with(|| fault().path(at.to_string()));
        }
        // What is nearly a field is a slip, unless that field is there as well.
        let slip = near(key, object).filter(|name| within.get(name).is_none());
        let fault = || unknown(key, slip, object, file, place, at);
        match slip {
            Some(_) if !object.open => self.out.push_with(fault),
            _ => self.out.warn_with(fault),
        }
    }

    fn one_of(&mut self, value: Ref<'_>, object: &'static Object, at: At<'_>) {
        if object.one_of.is_empty() {
            return;
        }
        let present = object
            .one_of
            .iter()
            .filter(|name| value.get(name).is_some());
        let message = match present.count() {
            1 => return,
            0 if self.part => return,
            0 => format!("{} needs one of these fields", object.title),
            _ => format!("{} may have only one of these fields", object.title),
        };
        self.fault(value, at, message, &object.one_of.join(" or "));
    }

    fn groups(&mut self, value: Ref<'_>, object: &'static Object, at: At<'_>) {
        for group in object.groups {
            let there = |names: &[&str]| {
                names
                    .iter()
                    .filter(|name| value.get(name).is_some())
                    .count()
            };
            let (message, expected) = match group {
                Group::AtLeastOne(names) if !self.part && there(names) == 0 => (
                    format!("{} needs at least one of these fields", object.title),
                    names.join(" or "),
                ),
                Group::AtMostOne(names) if there(names) > 1 => (
                    format!("{} may have only one of these fields", object.title),
                    names.join(" or "),
                ),
                Group::With(field, chosen, wanted)
                    if !self.part
                        && value.get_text(field) == Some(chosen)
                        && value.get(wanted).is_none() =>
                {
                    let message = format!(
                        "`{wanted}` is missing from {} with `{field}` {chosen}",
                        object.title
                    );
                    self.out.push_with(|| {
                        let fault = Diagnostic::error(
                            Code::MissingField,
                            value.file(),
                            value.place(),
                            message,
                        );
                        fault.path(at.to_string())
                    });
                    continue;
                }
                _ => continue,
            };
            self.fault(value, at, message, &expected);
        }
    }

    fn type_name(&mut self, value: Ref<'_>, object: &'static Object, at: At<'_>) {
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
        let mut fault = Diagnostic::error(Code::BadValue, name.file(), name.place(), message)
            .path(at.key(typed.by).to_string())
            .suggest(nearest(text, typed.known()));
        let known: Vec<_> = typed.known().collect();
        if fault.suggestion.is_none() && known.len() <= 40 {
            fault = fault.expected(format!("one of {}", known.join(", ")));
        }
        self.out.push(fault);
    }

    fn scalar(&mut self, value: Ref<'_>, text: &str, shape: Shape, at: At<'_>) {
        let well = match shape {
            Shape::Bool => matches!(
                text,
                "true" | "false" | "True" | "False" | "TRUE" | "FALSE" | ""
            ),
            Shape::Int(low, high) => {
                text.is_empty() || text.parse::<i64>().is_ok_and(|n| (low..=high).contains(&n))
            }
            Shape::Number(low, high) => text.is_empty() || is_number(text, low, high),
            Shape::OneOf(names) => text.is_empty() || names.contains(&text),
            Shape::By(rule) => rule.holds(text),
            _ => true,
        };
        if well {
            if matches!(shape, Shape::By(Rule::Number)) {
                self.spelling(value, text, at);
            }
            return;
        }
        let message = match shape {
            Shape::By(Rule::Duration) => rule::why_no_duration(text),
            _ => format!("`{}` is not accepted here", shown(text)),
        };
        let fault = Diagnostic::error(Code::BadValue, value.file(), value.place(), message)
            .path(at.to_string())
            .expected(scalar_form(shape));
        self.out.push(match shape {
            Shape::OneOf(names) => fault.suggest(nearest(text, names.iter().copied())),
            _ => fault,
        });
    }

    /// Notes that a number is not told as it is written (`007`, `1.50`).
    fn spelling(&mut self, value: Ref<'_>, text: &str, at: At<'_>) {
        let read = number::parse(text).map(|number| number.to_string());
        if let Some(read) = read.filter(|read| read != text) {
            self.out.warn_with(|| {
                let message = format!(
                    "`{}` is the number {read} and told so; where its spelling matters, it is a String",
                    shown(text)
                );
                Diagnostic::error(Code::BadValue, value.file(), value.place(), message)
                    .path(at.to_string())
            });
        }
    }
}

/// That there is no such field, with the one that was meant or all that there are.
fn unknown(
    key: &str,
    slip: Option<&str>,
    object: &'static Object,
    file: &str,
    place: Place,
    at: At<'_>,
) -> Diagnostic {
    let message = match slip {
        Some(_) => format!("`{}` is no field of {}", shown(key), object.title),
        None => format!(
            "`{}` is no field of {} and has no effect",
            shown(key),
            object.title
        ),
    };
    let fault = Diagnostic::error(Code::UnknownField, file, place, message).path(at.to_string());
    if slip.is_some() {
        return fault.suggest(slip);
    }
    let mut names: Vec<_> = field_names(object).collect();
    names.sort_unstable();
    fault.expected(format!("one of {}", names.join(", ")))
}

/// The field that is nearest to an unknown one.
fn near(key: &str, object: &'static Object) -> Option<&'static str> {
    nearest(key, field_names(object))
}

/// Names of fields for people; those that only Harness itself writes help nobody.
fn field_names(object: &'static Object) -> impl Iterator<Item = &'static str> {
    let typed = object.typed().map(|typed| typed.field);
    let own = object.all_fields().map(|field| field.name).chain(typed);
    own.filter(|name| *name != "metadata" && !name.starts_with("__"))
}

/// Why an unknown field may stay: it says nothing, or it is known that Harness does not read it there.
fn ignored(field: Ref<'_>, key: &str, object: &'static Object) -> Option<&'static str> {
    let known = object.advice(key);
    let empty = match field.scalar() {
        Some(_) => field.text().is_none_or(str::is_empty),
        None => field.entries().len() == 0 && field.items().len() == 0,
    };
    match known {
        Some(advice) => Some(advice),
        None if empty => Some("it is no field of it, and empty"),
        None => None,
    }
}

/// Whether a text is a finite number within the bounds.
fn is_number(text: &str, low: i64, high: i64) -> bool {
    let within = |number: f64| number.is_finite() && low as f64 <= number && number <= high as f64;
    text.parse::<f64>().is_ok_and(within)
}

fn scalar_form(shape: Shape) -> String {
    match shape {
        Shape::Bool => "true or false".to_owned(),
        Shape::Int(i64::MIN, i64::MAX) => "a whole number".to_owned(),
        Shape::Int(low, i64::MAX) => format!("a whole number of at least {low}"),
        Shape::Int(low, high) => format!("a whole number from {low} to {high}"),
        Shape::Number(i64::MIN, i64::MAX) => "a number".to_owned(),
        Shape::Number(low, high) => format!("a number from {low} to {high}"),
        Shape::OneOf(names) => format!("one of {}", names.join(", ")),
        Shape::By(rule) => rule.form().to_owned(),
        _ => "a text".to_owned(),
    }
}

/// Checks that the expressions of a text parse.
fn expression(value: Ref<'_>, at: At<'_>, out: &mut Diagnostics) {
    if let Err(message) = crate::expression::check(value.scalar().unwrap_or_default()) {
        out.push(bad_expression(value, at.to_string(), &message));
    }
}

fn bad_expression(value: Ref<'_>, path: String, message: &str) -> Diagnostic {
    Diagnostic::error(Code::BadExpression, value.file(), value.place(), message).path(path)
}
