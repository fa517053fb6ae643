//! Harness's JSON Schemas, walked for what step types and stage types take.
//!
//! Knows of draft-07 what those files use: references, `allOf`, alternatives, `if` with `then`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::shared;

/// Deepest path of fields that is followed.
const DEEPEST: usize = 12;

/// Definitions that stand for values of any form, or that belong to other kinds of entities.
const ENDS: &[&str] = &[
    "ExecutionElementConfig",
    "FailureStrategyConfig",
    "JsonNode",
    "ManifestConfigWrapper",
    "ManifestSourceWrapper",
    "NGVariable",
    "NumberNGVariable",
    "OutputNGVariable",
    "SecretNGVariable",
    "StoreConfigWrapper",
    "StringNGVariable",
];

/// What a schema says of one type of step or stage.
#[derive(Debug, Default)]
pub struct Declared {
    /// Every field that its specs declare, at any depth, with the smallest document around it.
    pub fields: BTreeMap<String, Value>,
    /// Values that the schema accepts, one of each form and each name of an enumeration, with the path that they
    /// stand at and the smallest document around them.
    pub samples: Vec<(String, Value)>,
    /// Fields beside `spec`.
    pub frame: BTreeSet<String>,
    /// Fields that all of its specs require.
    pub required: BTreeSet<String>,
}

/// The step types of a schema file.
pub fn step_types(file: &str) -> BTreeMap<String, Declared> {
    declared(file, |schema| schema.step_nodes())
}

/// The stage types of a schema file.
pub fn stage_types(file: &str) -> BTreeMap<String, Declared> {
    declared(file, |schema| schema.stage_nodes())
}

fn declared(file: &str, nodes: fn(Schema<'_>) -> Vec<&Value>) -> BTreeMap<String, Declared> {
    let path = shared().join("schema").join(file);
    let text = std::fs::read_to_string(&path).expect("a schema");
    let root: Value = serde_json::from_str(&text).expect("JSON");
    let schema = Schema { root: &root };
    let mut types: BTreeMap<String, Declared> = BTreeMap::new();
    for node in nodes(schema) {
        for (name, spec) in schema.specs(node) {
            let mut found = schema.declared(spec);
            let frame = node["properties"].as_object().into_iter().flatten();
            found.frame = frame.map(|(name, _)| name.clone()).collect();
            match types.get_mut(&name) {
                Some(known) => {
                    known.fields.extend(found.fields);
                    known.frame.extend(found.frame);
                    known.samples.extend(found.samples);
                    known
                        .required
                        .retain(|field| found.required.contains(field));
                }
                None => _ = types.insert(name, found),
            }
        }
    }
    types
}

#[derive(Clone, Copy)]
struct Schema<'a> {
    root: &'a Value,
}

impl<'a> Schema<'a> {
    /// The definitions that some list of steps refers to.
    fn step_nodes(self) -> Vec<&'a Value> {
        let stages = &self.root["definitions"]["pipeline"]["stages"];
        let stages = stages.as_object().expect("stages");
        let lists = stages.values().filter_map(|stage| {
            stage["ExecutionWrapperConfig"]["properties"]["step"]["oneOf"].as_array()
        });
        let names: BTreeSet<&str> = lists
            .flatten()
            .filter_map(|node| node["$ref"].as_str())
            .collect();
        names
            .into_iter()
            .filter_map(|name| self.definition(name))
            .collect()
    }

    /// The stages that a pipeline may have.
    fn stage_nodes(self) -> Vec<&'a Value> {
        let families = self.root["definitions"]["pipeline"]["stages"].as_object();
        let nodes = families
            .into_iter()
            .flatten()
            .filter_map(|(_, family)| family.as_object());
        let stages = nodes
            .flatten()
            .filter(|(name, _)| name.ends_with("StageNode"));
        stages.map(|(_, node)| node).collect()
    }

    fn declared(self, spec: &'a Value) -> Declared {
        let mut walk = Walk {
            schema: self,
            types: Declared::default(),
            on_path: Vec::new(),
        };
        walk.value(spec, &[]);
        walk.types.required = self.required(spec);
        walk.types
    }

    fn definition(self, name: &str) -> Option<&'a Value> {
        self.root.pointer(name.strip_prefix('#')?)
    }

    /// The node itself, behind references.
    fn follow(self, mut node: &'a Value) -> &'a Value {
        while let (Some(name), None) = (node["$ref"].as_str(), node.get("properties")) {
            match self.definition(name) {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }

    /// The types of a step node, each with its spec.
    fn specs(self, node: &'a Value) -> Vec<(String, &'a Value)> {
        let conditions = node["allOf"].as_array().into_iter().flatten();
        let chosen = conditions.filter_map(|condition| {
            let name = condition["if"]["properties"]["type"]["const"].as_str()?;
            Some((
                name.to_owned(),
                condition["then"]["properties"].get("spec")?,
            ))
        });
        chosen.collect()
    }

    /// An object with all that it is composed of.
    fn parts(self, node: &'a Value) -> Vec<&'a Value> {
        let mut parts = vec![node];
        for part in node["allOf"].as_array().into_iter().flatten() {
            parts.extend(self.parts(self.follow(part)));
        }
        parts
    }

    /// Values that a field may have, as far as they are no mappings of their own.
    fn samples(self, node: &'a Value) -> Vec<Value> {
        let alternatives = |name: &str| node[name].as_array().into_iter().flatten();
        let mut nodes: Vec<_> = alternatives("oneOf").chain(alternatives("anyOf")).collect();
        if nodes.is_empty() {
            nodes.push(node);
        }
        let nodes: Vec<_> = nodes.into_iter().map(|node| self.follow(node)).collect();
        // A free text beside anything but a list stands for expressions.
        let typed = nodes.iter().any(|node| {
            let form = node["type"].as_str();
            matches!(form, Some("boolean" | "integer" | "number" | "object"))
                || node.get("properties").is_some()
        });
        let values = nodes.iter().flat_map(|node| sample(node));
        values
            .filter(|value| !(typed && value.is_string()))
            .collect()
    }

    fn required(self, spec: &'a Value) -> BTreeSet<String> {
        let parts = self.parts(self.follow(spec));
        let lists = parts.iter().filter_map(|part| part["required"].as_array());
        lists
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect()
    }
}

/// Values that a node without alternatives accepts.
fn sample(node: &Value) -> Vec<Value> {
    if let Some(names) = node["enum"].as_array() {
        return names.clone();
    }
    if let Some(name) = node.get("const") {
        return vec![name.clone()];
    }
    match node["type"].as_str() {
        Some("string") if node.get("pattern").is_none() => vec![json!("a text")],
        Some("boolean") => vec![json!(true), json!("false")],
        Some("integer" | "number") => {
            let least = node["minimum"].as_i64().unwrap_or(1);
            vec![json!(least), json!(least.to_string())]
        }
        Some("array") => match sample(&node["items"]) {
            items if items.is_empty() => Vec::new(),
            items => vec![Value::Array(items)],
        },
        Some("object") if node.get("properties").is_none() => {
            match sample(&node["additionalProperties"]) {
                values if values.is_empty() => Vec::new(),
                values => vec![json!({"a": values[0]})],
            }
        }
        _ => Vec::new(),
    }
}

/// One step on the way from a spec to a field.
#[derive(Clone)]
enum Segment {
    /// A field, with another one that decides what it holds.
    Field(String, Option<(String, String)>),
    /// An item of a list.
    Item,
}

struct Walk<'a> {
    schema: Schema<'a>,
    types: Declared,
    on_path: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn value(&mut self, node: &'a Value, path: &[Segment]) {
        let name = node["$ref"]
            .as_str()
            .and_then(|name| name.rsplit('/').next());
        if let Some(name) = name {
            let internal =
                name.starts_with("ParameterField") && name != "ParameterFieldMatrixConfigInterface";
            if ENDS.contains(&name) || internal || self.on_path.contains(&name) {
                return;
            }
        }
        if path.len() > DEEPEST {
            return;
        }
        self.on_path.extend(name);
        let node = self.schema.follow(node);
        for alternatives in ["oneOf", "anyOf"] {
            for each in node[alternatives].as_array().into_iter().flatten() {
                self.value(each, path);
            }
        }
        if let Some(items) = node.get("items") {
            self.value(items, &[path, &[Segment::Item]].concat());
        }
        for part in self.schema.parts(node) {
            self.fields(part, path, None);
            if let Some((by, value)) = deciding(part) {
                self.fields(self.schema.follow(&part["then"]), path, Some((by, value)));
            }
        }
        if name.is_some() {
            self.on_path.pop();
        }
    }

    fn fields(&mut self, node: &'a Value, path: &[Segment], by: Option<(String, String)>) {
        for (name, value) in node["properties"].as_object().into_iter().flatten() {
            // What the schema's generator left behind.
            let remark = name == "description" && value.get("type").is_none();
            let told = value["description"]
                .as_str()
                .is_some_and(|text| text.starts_with("This is the description"));
            if name.starts_with('$') || remark || told || value.is_boolean() {
                continue;
            }
            let path = [path, &[Segment::Field(name.clone(), by.clone())]].concat();
            let expression = json!("<+input>");
            self.types
                .fields
                .insert(shown(&path), around(&path, expression));
            // Any text may name a type, as far as the schema knows.
            let free = name != "type" || self.schema.follow(value).get("enum").is_some();
            for sample in self.schema.samples(value).into_iter().filter(|_| free) {
                let sample = (shown(&path), around(&path, sample));
                self.types.samples.push(sample);
            }
            self.value(value, &path);
        }
    }
}

/// The field and the value that an `if` asks for.
fn deciding(part: &Value) -> Option<(String, String)> {
    let condition = part["if"]["properties"].as_object()?;
    let (name, value) = condition.iter().next()?;
    let value = value["const"]
        .as_str()
        .or_else(|| value["enum"][0].as_str())?;
    Some((name.clone(), value.to_owned()))
}

/// The path as diagnostics write it, from the spec.
fn shown(path: &[Segment]) -> String {
    path.iter()
        .fold(String::new(), |text, segment| match segment {
            Segment::Field(name, None) => format!("{text}.{name}"),
            Segment::Field(name, Some((by, value))) => format!("{text}({by}={value}).{name}"),
            Segment::Item => format!("{text}[0]"),
        })
}

/// The smallest value that has the field at the end of the path, with this value.
fn around(path: &[Segment], value: Value) -> Value {
    path.iter()
        .rev()
        .fold(value, |inner, segment| match segment {
            Segment::Item => json!([inner]),
            Segment::Field(name, by) => {
                let mut fields = Map::new();
                if let Some((by, value)) = by {
                    fields.insert(by.clone(), json!(value));
                }
                fields.insert(name.clone(), inner);
                Value::Object(fields)
            }
        })
}
