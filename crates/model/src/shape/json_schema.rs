//! Shapes as JSON Schema (draft 7), for editors.
//!
//! Every [`Object`] becomes a definition. What the checker knows beyond JSON Schema stays with it: that an
//! expression parses, that identifiers are unique, that an empty field of any name is harmless.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::{Group, Need, Object, Rule, Shape, Typed};

/// A document whose only keys are these, each with its shape.
pub(crate) fn document(roots: &[(&'static str, Shape)]) -> Value {
    let mut writer = Writer::default();
    let keys: Map<String, Value> = roots
        .iter()
        .map(|(key, shape)| ((*key).to_owned(), writer.shape(*shape, How::Whole)))
        .collect();
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": keys,
        "additionalProperties": false,
        "minProperties": 1,
        "maxProperties": 1,
        "definitions": writer.definitions(),
    })
}

/// How much of an object has to be there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum How {
    Whole,
    /// See [`Shape::Body`].
    Body,
    /// See [`Shape::Part`].
    Part,
}

#[derive(Default)]
struct Writer {
    /// Name of each object that was met, by its address: objects are statics.
    names: HashMap<(usize, How), String>,
    written: BTreeMap<String, Value>,
}

impl Writer {
    fn definitions(mut self) -> BTreeMap<String, Value> {
        let text = json!({ "type": ["string", "null"], "pattern": "<\\+" });
        self.written.insert("expression".to_owned(), text);
        self.written
    }

    fn shape(&mut self, shape: Shape, how: How) -> Value {
        let below = if how == How::Body { How::Whole } else { how };
        match shape {
            Shape::Any => json!(true),
            Shape::Text | Shape::Condition => text(None),
            Shape::By(rule) => text(Some(pattern(rule))),
            Shape::Bool => or_expression(vec![
                json!({ "type": "boolean" }),
                json!({ "enum": ["true", "false"] }),
            ]),
            Shape::Int(low, high) => or_expression(vec![
                bounded("integer", low, high),
                json!({ "type": "string", "pattern": "^-?[0-9]*$" }),
            ]),
            Shape::Number(low, high) => {
                let digits = json!({ "type": "string", "pattern": "^-?[0-9.]*$" });
                or_expression(vec![bounded("number", low, high), digits])
            }
            Shape::OneOf(names) => or_expression(vec![json!({ "enum": names })]),
            Shape::List(item) => {
                let items = self.shape(*item, below);
                or_expression(vec![json!({ "type": "array", "items": items })])
            }
            Shape::Map(item) => {
                let values = self.shape(*item, below);
                or_expression(vec![
                    json!({ "type": "object", "additionalProperties": values }),
                ])
            }
            Shape::Or(first, second) => {
                json!({ "anyOf": [self.shape(*first, below), self.shape(*second, below)] })
            }
            Shape::Object(object) => self.reference(object, below),
            Shape::Body(object) => {
                self.reference(object, if how == How::Part { how } else { How::Body })
            }
            Shape::Part(whole) => self.shape(*whole, How::Part),
            Shape::Noted(inner, advice) => {
                json!({ "description": advice, "allOf": [self.shape(*inner, below)] })
            }
        }
    }

    fn reference(&mut self, object: &'static Object, how: How) -> Value {
        let key = (std::ptr::from_ref(object).addr(), how);
        let name = match self.names.get(&key) {
            Some(name) => name.clone(),
            None => {
                let name = self.name(object, how);
                self.names.insert(key, name.clone());
                // The name is taken before what is below is written: objects may hold themselves.
                self.written.insert(name.clone(), json!(true));
                let written = self.object(object, how);
                self.written.insert(name.clone(), written);
                name
            }
        };
        or_expression(vec![json!({ "$ref": format!("#/definitions/{name}") })])
    }

    fn name(&self, object: &Object, how: How) -> String {
        let words = object.title.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<_> = words
            .filter(|word| !matches!(*word, "" | "a" | "an" | "the"))
            .collect();
        let prefix = match how {
            How::Whole => "",
            How::Body => "body-of-",
            How::Part => "part-of-",
        };
        let name = format!("{prefix}{}", words.join("-"));
        if !self.written.contains_key(&name) {
            return name;
        }
        let mut names = (2..).map(|n: u32| format!("{name}-{n}"));
        names
            .find(|name| !self.written.contains_key(name))
            .unwrap_or(name)
    }

    fn object(&mut self, object: &'static Object, how: How) -> Value {
        let mut fields = Map::new();
        let mut required = Vec::new();
        for field in object.all_fields() {
            if fields.contains_key(field.name) {
                continue;
            }
            let elsewhere = how == How::Body && matches!(field.name, "identifier" | "name");
            if field.need == Need::Must && !elsewhere && how != How::Part {
                required.push(field.name);
            }
            let below = if how == How::Part { how } else { How::Whole };
            fields.insert(field.name.to_owned(), self.shape(field.shape, below));
        }
        for (name, advice) in object.ignored {
            fields.insert(
                (*name).to_owned(),
                json!({ "description": format!("Has no effect: {advice}.") }),
            );
        }
        let choices = object
            .typed()
            .map(|typed| self.typed(typed, &mut fields, how));
        let mut out = json!({ "title": object.title, "type": "object", "properties": fields });
        let mut set = |key: &str, value: Value| {
            if let Value::Object(out) = &mut out {
                out.insert(key.to_owned(), value);
            }
        };
        if !object.open {
            set("additionalProperties", json!(false));
        }
        if !required.is_empty() {
            set("required", json!(required));
        }
        if let Some(choices) = choices {
            set("allOf", json!(choices));
        }
        if !object.one_of.is_empty() && how != How::Part {
            let one = |name: &&str| json!({ "required": [name] });
            set("oneOf", object.one_of.iter().map(one).collect());
        }
        let groups: Vec<_> = object
            .groups
            .iter()
            .filter_map(|group| rule_of(group, how))
            .collect();
        if !groups.is_empty() {
            let all = out
                .as_object_mut()
                .map(|out| out.entry("allOf").or_insert(json!([])));
            if let Some(Value::Array(all)) = all {
                all.extend(groups);
            }
        }
        out
    }

    /// One rule per type for the field that it decides; both fields are added to `fields`.
    fn typed(&mut self, typed: Typed, fields: &mut Map<String, Value>, how: How) -> Vec<Value> {
        let known: Vec<_> = typed.known().collect();
        fields.insert(
            typed.by.to_owned(),
            or_expression(vec![json!({ "enum": known })]),
        );
        fields.entry(typed.field).or_insert(json!(true));
        let below = if how == How::Part { how } else { How::Whole };
        let rules = typed.shapes.iter().map(|(name, shape)| {
            json!({
                "if": { "properties": { typed.by: { "const": name } }, "required": [typed.by] },
                "then": { "properties": { typed.field: self.shape(*shape, below) } },
            })
        });
        rules.collect()
    }
}

/// A rule about fields that stand together.
fn rule_of(group: &Group, how: How) -> Option<Value> {
    let there = |name: &&str| json!({ "required": [name] });
    match group {
        Group::AtLeastOne(names) if how != How::Part => {
            let any: Vec<_> = names.iter().map(there).collect();
            Some(json!({ "anyOf": any }))
        }
        Group::AtMostOne(names) => {
            let pairs = names.iter().enumerate().flat_map(|(index, one)| {
                names[index + 1..]
                    .iter()
                    .map(move |other| json!({ "required": [one, other] }))
            });
            let pairs: Vec<_> = pairs.collect();
            Some(json!({ "not": { "anyOf": pairs } }))
        }
        Group::With(field, chosen, wanted) if how != How::Part => Some(json!({
            "if": { "properties": { *field: { "const": chosen } }, "required": [field] },
            "then": { "required": [wanted] },
        })),
        Group::AtLeastOne(_) | Group::With(..) => None,
    }
}

/// An expression may stand for any value, and nothing for an absent one.
fn or_expression(mut forms: Vec<Value>) -> Value {
    forms.push(json!({ "$ref": "#/definitions/expression" }));
    forms.push(json!({ "type": "null" }));
    json!({ "anyOf": forms })
}

/// Numbers and booleans are read as their text.
fn text(pattern: Option<&str>) -> Value {
    let mut out = json!({ "type": ["string", "number", "boolean", "null"] });
    if let (Some(pattern), Value::Object(out)) = (pattern, &mut out) {
        out.insert("pattern".to_owned(), format!("{pattern}|<\\+").into());
    }
    out
}

fn bounded(kind: &str, low: i64, high: i64) -> Value {
    let mut out = Map::from_iter([("type".to_owned(), kind.into())]);
    if low > i64::MIN {
        out.insert("minimum".to_owned(), low.into());
    }
    if high < i64::MAX {
        out.insert("maximum".to_owned(), high.into());
    }
    Value::Object(out)
}

/// The rule as a regular expression, without the texts with expressions that every field takes.
fn pattern(rule: Rule) -> &'static str {
    match rule {
        Rule::Identifier => "^[a-zA-Z_][0-9a-zA-Z_]{0,127}$",
        Rule::Name => "^[-a-zA-Z_0-9.][-0-9a-zA-Z_\\s.]{0,127}$",
        Rule::Variable => "^[a-zA-Z_][-0-9a-zA-Z_.$]{0,127}$",
        Rule::Duration => "^\\s*([0-9]+[smhdw]\\s*)*$",
        Rule::Poll => "^(0|\\s*([0-9]+[smhdw]\\s*)*)$",
        Rule::Flag => "^[a-zA-Z][-0-9a-zA-Z_]*$",
        Rule::Treatment => "^[0-9a-zA-Z][-0-9a-zA-Z_.]*$",
        Rule::FlagTag => "^[-0-9a-zA-Z_:]+$",
        Rule::Window => "^[1-9][0-9]*[mMhH]$",
        Rule::Number => "^([-+]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)?)?$",
        Rule::Version => "^[0-9a-zA-Z][^\\s/&]{0,127}$",
        Rule::Reference | Rule::Filled => "\\S",
    }
}
