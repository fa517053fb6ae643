//! Reads the fields of one object of a definition, and refuses what is left over.

use serde_json::{Map, Value};

use super::DefinitionError;
use crate::template::{Template, inner};

pub(super) type Result<T> = std::result::Result<T, DefinitionError>;

/// One object of a definition with its place.
pub(super) struct Fields<'a> {
    object: &'a Map<String, Value>,
    pub(super) path: String,
}

pub(super) fn invalid<T>(path: &str, message: impl Into<String>) -> Result<T> {
    Err(DefinitionError {
        code: "SCHEMA_VALIDATION_FAILED",
        message: message.into(),
        path: path.to_owned(),
    })
}

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value, path: &str) -> Result<Self> {
        match value.as_object() {
            Some(object) => Ok(Self {
                object,
                path: path.to_owned(),
            }),
            None if path == "/" => invalid("", "Definition must be a valid JSON object"),
            None => invalid(path, "Value must be a valid JSON object"),
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
            Some(key) => invalid(
                &self.at(key),
                format!("Field '{key}' is not supported by Step Functions here"),
            ),
        }
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
            return invalid(&path, "Array must not be empty");
        }
        if names.len() > 1 && names.iter().any(|name| name == "States.ALL") {
            return invalid(
                &path,
                "States.ALL must appear alone and at the end of the list",
            );
        }
        Ok(names)
    }

    /// A payload template.
    pub(super) fn template(&self, name: &str) -> Result<Option<Template>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match Template::parse(value) {
            Ok(template) => Ok(Some(template)),
            Err(bad) => Err(DefinitionError {
                code: "INVALID_JSONATA_EXPRESSION",
                message: format!(
                    "The JSONata expression '{}' cannot be parsed: {}",
                    bad.source, bad.message
                ),
                path: format!("{}{}", self.at(name), bad.path),
            }),
        }
    }

    /// `Assign`: an object with names of variables.
    pub(super) fn assign(&self) -> Result<Option<Template>> {
        let path = self.at("Assign");
        match self.get("Assign") {
            None => return Ok(None),
            Some(Value::Object(variables)) => {
                for name in variables.keys() {
                    if !is_variable(name) {
                        return invalid(&path, format!("Invalid variable name: '{name}'"));
                    }
                }
            }
            Some(_) => return invalid(&path, "Expected value of type Object"),
        }
        self.template("Assign")
    }

    /// A field that is a whole number from 0 or a JSONata expression.
    pub(super) fn whole_or_expression(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<Template>> {
        match self.get(name) {
            Some(Value::String(text)) if inner(text).is_some() => self.template(name),
            _ => {
                let number = self.whole(name, range)?;
                Ok(number.map(|number| Template::Literal(number.into())))
            }
        }
    }

    /// A field that is a text, perhaps an expression.
    pub(super) fn text_or_expression(&self, name: &str) -> Result<Option<Template>> {
        self.text(name)?;
        self.template(name)
    }
}

/// Developer Guide, "Passing data between states with variables": Unicode identifiers of at most 80
/// characters; `states` is reserved.
fn is_variable(name: &str) -> bool {
    name != "states"
        && name.chars().count() <= 80
        && name
            .chars()
            .enumerate()
            .all(|(i, c)| c == '_' || c.is_alphabetic() || (i > 0 && c.is_alphanumeric()))
        && !name.is_empty()
}
