//! The fields of a spec, as the language's JSON Schema has them.

use serde_json::Value;

/// Fields that every step has, or that only machines write.
const EVERYWHERE: [&str; 4] = ["delegateSelectors", "metadata", "__uuid", "__yamlNode"];

/// Objects within objects are shown so deep.
const DEPTH: usize = 4;

/// A choice between more types than this is not spelt out.
const TYPES: usize = 3;

/// One field.
pub(crate) struct Field {
    /// Its way from the spec, with dots; `[]` for the items of a list.
    pub(crate) name: String,
    pub(crate) holds: String,
    pub(crate) required: bool,
}

/// The spec of a step type; `None` where no step in YAML has that type.
pub(crate) fn spec_of<'s>(schema: &'s Value, step_type: &str) -> Option<&'s Value> {
    let rules = schema.pointer("/definitions/step/allOf")?.as_array()?;
    let rule = rules
        .iter()
        .find(|rule| rule.pointer("/if/properties/type/const") == Some(&step_type.into()))?;
    object(schema, rule.pointer("/then/properties/spec")?)
}

/// The fields of an object and of those in it.
pub(crate) fn fields(schema: &Value, object: &Value) -> Vec<Field> {
    let mut found = Vec::new();
    collect(schema, object, "", "", 0, &mut found);
    found
}

fn collect(
    schema: &Value,
    object: &Value,
    path: &str,
    note: &str,
    depth: usize,
    found: &mut Vec<Field>,
) {
    let required = object["required"].as_array().cloned().unwrap_or_default();
    let properties = object["properties"].as_object().into_iter().flatten();
    for (name, value) in properties {
        // What a `type` decides is shown below it.
        if EVERYWHERE.contains(&name.as_str()) || *value == Value::Bool(true) && name == "spec" {
            continue;
        }
        let name_here = format!("{path}{name}");
        found.push(Field {
            name: name_here.clone(),
            holds: format!("{}{note}", holds(schema, value)),
            required: required.contains(&name.as_str().into()),
        });
        inside(schema, value, &name_here, note, depth, found);
    }
    let rules = object["allOf"].as_array().cloned().unwrap_or_default();
    if rules.len() > TYPES {
        return;
    }
    for rule in &rules {
        let by = rule.pointer("/if/properties").and_then(Value::as_object);
        let Some((by, decided)) = by.and_then(|by| by.iter().next()) else {
            continue;
        };
        let word = decided["const"].as_str().unwrap_or("?");
        let note = format!(", with `{by}: {word}`");
        let then = rule.pointer("/then/properties").and_then(Value::as_object);
        for (name, value) in then.into_iter().flatten() {
            inside(schema, value, &format!("{path}{name}"), &note, depth, found);
        }
    }
}

/// What is in the object, or the list of objects, that a field holds.
fn inside(
    schema: &Value,
    value: &Value,
    name: &str,
    note: &str,
    depth: usize,
    found: &mut Vec<Field>,
) {
    if depth >= DEPTH {
        return;
    }
    if let Some(inner) = object(schema, value) {
        collect(schema, inner, &format!("{name}."), note, depth + 1, found);
    } else if let Some(inner) = items(value).and_then(|items| object(schema, items)) {
        collect(schema, inner, &format!("{name}[]."), note, depth + 1, found);
    }
}

/// The object that a value may be.
fn object<'s>(schema: &'s Value, value: &'s Value) -> Option<&'s Value> {
    if let Some(name) = value["$ref"].as_str() {
        let found = schema.pointer(name.strip_prefix('#')?)?;
        return (found["type"] == "object").then_some(found);
    }
    let choices = value["anyOf"].as_array().or(value["allOf"].as_array())?;
    choices.iter().find_map(|one| object(schema, one))
}

fn items(value: &Value) -> Option<&Value> {
    if let Some(items) = value.get("items") {
        return Some(items);
    }
    value["anyOf"].as_array()?.iter().find_map(items)
}

/// What a value may be, in words.
fn holds(schema: &Value, value: &Value) -> String {
    let mut words: Vec<String> = Vec::new();
    alternatives(schema, value, &mut words);
    words.dedup();
    match words.is_empty() {
        true => "anything".to_owned(),
        false => words.join(" or "),
    }
}

fn alternatives(schema: &Value, value: &Value, words: &mut Vec<String>) {
    let first = words.is_empty();
    let mut add = |word: String| {
        if !words.contains(&word) {
            words.push(word);
        }
    };
    if let Some(name) = value["$ref"].as_str() {
        if name.ends_with("/expression") {
            return;
        }
        let title = schema.pointer(name.trim_start_matches('#'));
        let title = title.and_then(|found| found["title"].as_str());
        return add(title.unwrap_or("an object").to_owned());
    }
    for name in ["anyOf", "allOf"] {
        if let Some(choices) = value[name].as_array() {
            for one in choices {
                alternatives(schema, one, words);
            }
            return;
        }
    }
    if let Some(choices) = value["enum"].as_array() {
        let choices: Vec<String> = choices
            .iter()
            .filter_map(|one| Some(format!("`{}`", one.as_str()?)))
            .collect();
        // A truth may be written as a text.
        if choices != ["`true`", "`false`"] {
            add(choices.join(", "));
        }
        return;
    }
    match &value["type"] {
        Value::String(kind) => match kind.as_str() {
            "boolean" => add("true or false".to_owned()),
            "integer" | "number" => add(number(value, kind)),
            "array" => {
                let item = value.get("items").map(|items| holds(schema, items));
                add(format!("a list: {}", item.unwrap_or_default()));
            }
            "object" => add("a mapping".to_owned()),
            // Digits in a text are a number.
            "string" if first => add("a text".to_owned()),
            _ => {}
        },
        Value::Array(kinds) if kinds.iter().any(|kind| kind == "string") => {
            add("a text".to_owned());
        }
        _ => {}
    }
}

fn number(value: &Value, kind: &str) -> String {
    let word = if kind == "integer" {
        "a whole number"
    } else {
        "a number"
    };
    match (value["minimum"].as_i64(), value["maximum"].as_i64()) {
        (Some(low), Some(high)) => format!("{word} from {low} to {high}"),
        (Some(low), None) => format!("{word} from {low}"),
        (None, Some(high)) => format!("{word} up to {high}"),
        (None, None) => word.to_owned(),
    }
}
