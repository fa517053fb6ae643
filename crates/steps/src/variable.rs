//! Variables in the specs of steps (`environmentVariables`, `outputVariables`), and other small shapes
//! that several specs share. Source: NGVariable in the pipeline schema.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use slipway_expr::secret::{SecretRef, SecretText};
use slipway_model::status::{ErrorType, Failure};

/// One variable as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Variable {
    pub(crate) name: String,
    #[serde(rename = "type", default)]
    pub(crate) kind: Kind,
    #[serde(default)]
    pub(crate) value: Value,
    /// The value where `value` says nothing.
    #[serde(default)]
    default: Value,
    #[serde(default)]
    required: Value,
    #[serde(default, rename = "description")]
    _description: Value,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

/// `type` of a variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Kind {
    #[default]
    String,
    Number,
    Secret,
}

impl Variable {
    /// The value as a text that may hold secrets, in its encoded form. The value of a `Secret` variable
    /// is the reference of a secret, or an expression that already gave one.
    pub(crate) fn encoded(&self) -> Result<String, String> {
        let given = match &self.value {
            Value::String(text) if text.is_empty() => &self.default,
            Value::Null => &self.default,
            value => value,
        };
        let text = match given {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if text.is_empty() && flag(&self.required) == Some(true) {
            return Err(format!(
                "variable {}: it is required and has no value",
                self.name
            ));
        }
        if self.kind != Kind::Secret || text.is_empty() || SecretText::decode(&text).has_secrets() {
            return Ok(text);
        }
        SecretRef::new(text)
            .map(|reference| SecretText::secret(reference).encode())
            .map_err(|error| format!("variable {}: {error}", self.name))
    }
}

/// Reads a spec; the message of a fault names the field.
pub(crate) fn read<T: DeserializeOwned>(spec: &Value) -> Result<T, String> {
    T::deserialize(spec).map_err(|error| error.to_string())
}

/// A failure of a step because of what its spec says.
pub(crate) fn wrong(step: &str, message: &str) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!("The spec of step {step} cannot be used: {message}."),
        left_behind: None,
    }
}

/// Whether a text is to be resolved later.
pub(crate) fn is_expression(text: &str) -> bool {
    text.contains("<+")
}

/// `true`, `false` or the same as text; anything else, and expressions, is unknown.
pub(crate) fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(b) => Some(*b),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Selectors as written: a list, one text, or nothing.
pub(crate) fn selectors(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if !text.is_empty() => vec![text.clone()],
        Value::Array(items) => items
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Variable, read};

    #[test]
    fn a_variable_without_a_value_has_its_default() {
        let encoded = |more: Value| {
            let mut spec = json!({"name": "v", "type": "String"});
            for (key, value) in more.as_object().into_iter().flatten() {
                spec[key] = value.clone();
            }
            read::<Variable>(&spec).expect("a variable").encoded()
        };
        assert_eq!(encoded(json!({})), Ok(String::new()));
        assert_eq!(encoded(json!({"default": "d"})), Ok("d".to_owned()));
        assert_eq!(
            encoded(json!({"value": "", "default": 7})),
            Ok("7".to_owned())
        );
        assert_eq!(
            encoded(json!({"value": "v", "default": "d"})),
            Ok("v".to_owned())
        );
        assert_eq!(
            encoded(json!({"default": "d", "required": true})),
            Ok("d".to_owned())
        );
        let empty = encoded(json!({"value": "", "required": "true"}));
        assert_eq!(
            empty,
            Err("variable v: it is required and has no value".to_owned())
        );
    }
}
