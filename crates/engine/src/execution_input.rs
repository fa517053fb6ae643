//! Inputs that a step asks for when it begins: `<+input>.executionInput()` in its spec. Source: developer.harness.io,
//! *Use runtime input*, "Supply runtime input during execution".
//!
//! A step that asks waits, as `InputWaiting`, until somebody gives all of its inputs, at most for its own time limit.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use slipway_model::id::NodeId;
use slipway_model::inputs::RuntimeInput;
use slipway_model::number;
use slipway_store::record::RunRecord;

/// Kind of the signal that gives a step its inputs; it says a JSON object, values by field.
pub(crate) const INPUT: &str = "input";

/// An input that a step asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Where in the spec it is: names between dots; items of a list go by their `name` or `identifier`, or their number.
    pub field: String,
    /// What is allowed, and the default.
    pub request: RuntimeInput,
    /// Whether it must be a number.
    pub number: bool,
}

/// The inputs that a spec asks for, in order.
pub fn asked(spec: &Value) -> Vec<Asked> {
    let mut found = Vec::new();
    walk(spec, "", &mut |field, request| {
        found.push(Asked {
            field: field.to_owned(),
            request: request.clone(),
            number: is_number(spec, field),
        });
    });
    found
}

/// Whether a variable that a stage or step group asks for is of type `Number`: the step that asks says so.
fn is_number(spec: &Value, field: &str) -> bool {
    let name = field.strip_prefix("variables.");
    let mut numbers = spec["numbers"].as_array().into_iter().flatten();
    numbers.any(|number| number.as_str().is_some_and(|number| Some(number) == name))
}

/// Whether a spec asks for any input.
pub fn asks(spec: &Value) -> bool {
    let mut any = false;
    walk(spec, "", &mut |_, _| any = true);
    any
}

fn walk(value: &Value, field: &str, visit: &mut impl FnMut(&str, &RuntimeInput)) {
    match value {
        Value::String(text) => {
            if let Some(request) = RuntimeInput::parse(text).filter(|request| request.execution) {
                visit(field, &request);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &below(field, &called(item, index)), visit);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                walk(value, &below(field, name), visit);
            }
        }
        _ => {}
    }
}

fn called(item: &Value, index: usize) -> String {
    let name = item.get("name").or_else(|| item.get("identifier"));
    let name = name
        .and_then(Value::as_str)
        .filter(|name| !name.contains("<+"));
    name.map_or_else(|| index.to_string(), str::to_owned)
}

fn below(field: &str, name: &str) -> String {
    match field {
        "" => name.to_owned(),
        field => format!("{field}.{name}"),
    }
}

/// What is given, with the defaults of what is not; or all that is wrong with it.
///
/// # Errors
/// Fields that the step does not ask for, values that are not allowed, and fields that lack both value and default.
pub fn complete(
    asked: &[Asked],
    given: &Map<String, Value>,
) -> Result<Map<String, Value>, Vec<String>> {
    let mut faults = Vec::new();
    for name in given.keys() {
        if !asked.iter().any(|input| input.field == *name) {
            let known: Vec<&str> = asked.iter().map(|input| input.field.as_str()).collect();
            faults.push(format!(
                "the step does not ask for `{name}`; it asks for {}",
                known.join(", ")
            ));
        }
    }
    let mut all = Map::new();
    for input in asked {
        let default = || input.request.default.clone().map(Value::from);
        let Some(value) = given.get(&input.field).cloned().or_else(default) else {
            faults.push(format!("`{}` has no value and no default", input.field));
            continue;
        };
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        if let Err(expected) = input.request.check(&text) {
            faults.push(format!("`{}` must be {expected}", input.field));
        }
        if input.number && !text.contains("<+") && number::parse(text.trim()).is_none() {
            faults.push(format!("`{}` must be a number", input.field));
        }
        all.insert(input.field.clone(), value);
    }
    match faults.is_empty() {
        true => Ok(all),
        false => Err(faults),
    }
}

/// A spec with its inputs filled in.
pub fn filled(spec: &Value, given: &Map<String, Value>) -> Value {
    fill(spec, "", given)
}

fn fill(value: &Value, field: &str, given: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) if RuntimeInput::parse(text).is_some_and(|input| input.execution) => {
            given.get(field).cloned().unwrap_or_else(|| value.clone())
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| fill(item, &below(field, &called(item, index)), given))
            .collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), fill(value, &below(field, name), given)))
            .collect(),
        other => other.clone(),
    }
}

/// The inputs that an attempt of a step was given, once it was.
pub fn given(run: &RunRecord, node: &NodeId, attempt: u32) -> Option<Map<String, Value>> {
    let mut signals = run.signals.iter();
    let found = signals
        .find(|signal| signal.kind == INPUT && signal.node == *node && signal.attempt == attempt)?;
    serde_json::from_str(&found.says).ok()
}

/// When attempts of steps were given their inputs.
pub(crate) fn given_at(run: &RunRecord) -> BTreeMap<(NodeId, u32), i64> {
    let signals = run.signals.iter().filter(|signal| signal.kind == INPUT);
    signals
        .map(|signal| ((signal.node.clone(), signal.attempt), signal.at_ms))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{asked, complete, filled};

    #[test]
    fn fields_are_named_checked_and_filled_in() {
        let spec = json!({
            "shell": "Bash",
            "script": "<+input>.executionInput()",
            "environmentVariables": [{"name": "ZONE", "value": "<+input>.default(eu).allowedValues(eu,us).executionInput()"}],
            "list": ["fixed", "<+input>.regex(v[0-9]+).executionInput()", "<+input>.default(x)"],
        });
        let inputs = asked(&spec);
        let mut fields: Vec<&str> = inputs.iter().map(|input| input.field.as_str()).collect();
        fields.sort_unstable();
        assert_eq!(
            fields,
            ["environmentVariables.ZONE.value", "list.1", "script"]
        );

        let given = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default();
        let wrong = complete(
            &inputs,
            &given(
                json!({"list.1": "w1", "shell": "x", "environmentVariables.ZONE.value": "mars"}),
            ),
        );
        insta::assert_snapshot!(wrong.unwrap_err().join("\n"), @"
        the step does not ask for `shell`; it asks for script, environmentVariables.ZONE.value, list.1
        `script` has no value and no default
        `environmentVariables.ZONE.value` must be one of eu, us
        `list.1` must be a text that matches v[0-9]+
        ");

        let ports =
            json!({"variables": {"port": "<+input>.executionInput()"}, "numbers": ["port"]});
        let ports = asked(&ports);
        let port = |value| complete(&ports, &given(json!({"variables.port": value})));
        assert_eq!(
            port(json!("eighty")),
            Err(vec!["`variables.port` must be a number".to_owned()])
        );
        assert!(port(json!("080")).is_ok() && port(json!(80)).is_ok());

        let all = complete(
            &inputs,
            &given(json!({"list.1": "v1", "script": "echo hi"})),
        )
        .unwrap();
        assert_eq!(
            filled(&spec, &all),
            json!({
                "shell": "Bash",
                "script": "echo hi",
                "environmentVariables": [{"name": "ZONE", "value": "eu"}],
                "list": ["fixed", "v1", "<+input>.default(x)"],
            })
        );
    }
}
