//! Reads the fields of one object of a definition, and refuses what is left over.

use serde_json::{Map, Value};

use super::DefinitionError;

pub(super) type Result<T> = std::result::Result<T, DefinitionError>;

/// What AWS says of a literal that is no time.
pub(super) const NO_TIMESTAMP: &str = "String does not match RFC3339 timestamp format";

/// What AWS says of `States.ALL` among other errors or before other entries.
pub(super) const ALL_IS_ALONE: &str = "States.ALL must appear alone and at end of list";

/// Fields of JSONPath states, which a JSONata state refuses.
const JSONPATH: [&str; 24] = [
    "InputPath",
    "OutputPath",
    "ResultPath",
    "Parameters",
    "ResultSelector",
    "ItemsPath",
    "Result",
    "SecondsPath",
    "TimestampPath",
    "TimeoutSecondsPath",
    "HeartbeatSecondsPath",
    "ErrorPath",
    "CausePath",
    "MaxConcurrencyPath",
    "ToleratedFailureCountPath",
    "ToleratedFailurePercentagePath",
    "MaxItemsPath",
    "MaxItemsPerBatchPath",
    "MaxInputBytesPerBatchPath",
    "CSVHeadersPath",
    "Variable",
    "And",
    "Or",
    "Not",
];
/// Fields of JSONata states, which a JSONPath state refuses.
const JSONATA: [&str; 4] = ["Output", "Arguments", "Items", "Condition"];

/// One object of a definition with its place and its query language.
pub(super) struct Fields<'a> {
    object: &'a Map<String, Value>,
    pub(super) path: String,
    jsonata: bool,
}

/// Refuses a text that is none of `values`.
pub(super) fn none_of<T>(path: &str, values: &[&str]) -> Result<T> {
    let values = values.join(", ");
    invalid(
        path,
        format!("Value should be one of the following: [{values}]"),
    )
}

pub(super) fn invalid<T>(path: &str, message: impl Into<String>) -> Result<T> {
    Err(DefinitionError::schema(path, message))
}

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value, path: &str, jsonata: bool) -> Result<Self> {
        match value.as_object() {
            Some(object) => Ok(Self {
                object,
                path: path.to_owned(),
                jsonata,
            }),
            None if path == "/" => invalid("", "Definition must be a valid JSON object"),
            None => invalid(path, "Value must be a valid JSON object"),
        }
    }

    /// An object inside this one.
    pub(super) fn inner(&self, value: &'a Value, path: &str) -> Result<Self> {
        Self::of(value, path, self.jsonata)
    }

    /// The same object in the language that it names itself.
    pub(super) fn in_language(self, jsonata: bool) -> Self {
        Self { jsonata, ..self }
    }

    pub(super) fn is_jsonata(&self) -> bool {
        self.jsonata
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.object.keys().map(String::as_str)
    }

    /// The field with what a task or branch gets.
    pub(super) fn arguments(&self) -> &'static str {
        if self.jsonata {
            "Arguments"
        } else {
            "Parameters"
        }
    }

    /// Refuses fields of the other query language.
    pub(super) fn refuse_other_language(&self) -> Result<()> {
        let (language, other, others): (_, _, &[&str]) = if self.jsonata {
            ("JSONata", "JSONPath", &JSONPATH)
        } else {
            ("JSONPath", "JSONata", &JSONATA)
        };
        match others.iter().find(|name| self.has(name)) {
            None => Ok(()),
            Some(name) => invalid(
                &self.path,
                format!(
                    "The QueryLanguage is set to '{language}', but field '{name}' is only supported for the '{other}' QueryLanguage"
                ),
            ),
        }
    }

    /// The place of a field.
    pub(super) fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.path.trim_end_matches('/'))
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.object.contains_key(name)
    }

    /// Refuses if one of `names` is missing, naming all that are, as AWS does.
    pub(super) fn require(&self, names: &[&str]) -> Result<()> {
        let missing: Vec<&str> = names.iter().copied().filter(|n| !self.has(n)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        invalid(
            &self.path,
            format!("These fields are required: [{}]", missing.join(", ")),
        )
    }

    /// Refuses fields other than `known`.
    pub(super) fn allow(&self, known: &[&str]) -> Result<()> {
        match self
            .object
            .keys()
            .find(|key| !known.contains(&key.as_str()))
        {
            None => Ok(()),
            Some(key) => self.unsupported(key),
        }
    }

    /// Refuses a field that has no place here.
    pub(super) fn unsupported<T>(&self, key: &str) -> Result<T> {
        invalid(&self.path, format!("Field '{key}' is not supported"))
    }

    /// Refuses two of `names`, and with `needed` also none of them.
    pub(super) fn only_one(&self, names: &[&str], needed: bool) -> Result<()> {
        let verdict = match names.iter().filter(|name| self.has(name)).count() {
            0 if needed => "This object should have only one of the following fields",
            0 | 1 => return Ok(()),
            _ => "There should only be one of the following fields",
        };
        invalid(&self.path, format!("{verdict}: [{}]", names.join(", ")))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => invalid(&self.at(name), "Expected value of type String"),
        }
    }

    pub(super) fn required_text(&self, name: &str) -> Result<&'a str> {
        self.require(&[name])?;
        Ok(self.text(name)?.unwrap_or_default())
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => invalid(&self.at(name), "Expected value of type Boolean"),
        }
    }

    /// A whole number within `range`.
    pub(super) fn whole(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.as_u64() {
            Some(number) if range.contains(&number) => Ok(Some(number)),
            _ => invalid(
                &self.at(name),
                format!(
                    "Expected value of type Integer from {} to {}",
                    range.start(),
                    range.end()
                ),
            ),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<f64>> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => match value.as_f64() {
                Some(number) => Ok(Some(number)),
                None => invalid(&self.at(name), "Expected value of type Number"),
            },
        }
    }

    pub(super) fn list(&self, name: &str) -> Result<&'a [Value]> {
        match self.get(name) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => invalid(&self.at(name), "Expected value of type Array"),
        }
    }

    /// A list of error names, at least one, with `States.ALL` alone.
    pub(super) fn errors(&self) -> Result<Vec<String>> {
        let path = self.at("ErrorEquals");
        self.require(&["ErrorEquals"])?;
        let mut names = Vec::new();
        for value in self.list("ErrorEquals")? {
            match value.as_str() {
                Some(name) => names.push(name.to_owned()),
                None => return invalid(&path, "Expected value of type String"),
            }
        }
        if names.is_empty() {
            return invalid(&path, "Value cannot be empty");
        }
        if names.len() > 1 && names.iter().any(|name| name == "States.ALL") {
            return invalid(&path, ALL_IS_ALONE);
        }
        Ok(names)
    }
}
