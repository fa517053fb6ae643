//! Reads the fields that hold queries: templates, paths, and numbers and texts that a query may give.

use serde_json::Value;

use super::DefinitionError;
use super::fields::{Fields, Result, invalid};
use crate::query::{Query, Wording};
use crate::template::{BadTemplate, Template, inner};

impl Fields<'_> {
    /// A payload template.
    pub(super) fn template(&self, name: &str) -> Result<Option<Template>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let parsed = if self.is_jsonata() {
            Template::jsonata(value)
        } else {
            Template::jsonpath(value)
        };
        parsed.map(Some).map_err(|bad| self.bad_template(name, bad))
    }

    fn bad_template(&self, name: &str, bad: BadTemplate) -> DefinitionError {
        let at = |path: &str| format!("{}{path}", self.at(name));
        match bad {
            BadTemplate::Expression { message, path } => DefinitionError {
                code: "INVALID_JSONATA_EXPRESSION",
                message: without_code(&message).to_owned(),
                path: at(&path),
            },
            BadTemplate::Query { key, path } => DefinitionError::schema(
                &at(&path),
                format!(
                    "The value for the field '{key}' must be a valid JSONPath or a valid intrinsic function call"
                ),
            ),
            BadTemplate::Depth { path } => {
                DefinitionError::schema(&at(&path), "The template nests too deep")
            }
        }
    }

    /// `Assign`: an object with names of variables.
    pub(super) fn assign(&self) -> Result<Option<Template>> {
        let path = self.at("Assign");
        match self.get("Assign") {
            None => return Ok(None),
            Some(Value::Object(variables)) => {
                for key in variables.keys() {
                    let name = match key.strip_suffix(".$") {
                        Some(name) if !self.is_jsonata() => name,
                        _ => key,
                    };
                    if let Some((code, message)) = bad_variable(name) {
                        return Err(DefinitionError {
                            code,
                            message,
                            path,
                        });
                    }
                }
            }
            Some(_) => return invalid(&path, "Expected value of type Object"),
        }
        self.template("Assign")
    }

    /// A path or an intrinsic function.
    pub(super) fn query(&self, name: &str) -> Result<Option<Query>> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        match Query::parse(text) {
            Some(query) => Ok(Some(query)),
            None => invalid(&self.at(name), "Value must be a valid JSONPath."),
        }
    }

    /// Refuses `name` and `namePath` together.
    pub(super) fn one_of_pair(&self, name: &str) -> Result<()> {
        self.only_one(&[name, &format!("{name}Path")], false)
    }

    /// The query in `namePath`, of a JSONPath state.
    fn path_of(&self, name: &str, wording: Wording) -> Result<Option<Template>> {
        if self.is_jsonata() {
            return Ok(None);
        }
        let query = self.query(&format!("{name}Path"))?;
        Ok(query.map(|query| Template::Query(query, wording)))
    }

    /// A field that is a whole number within `range`, a JSONata expression, or in JSONPath a path under
    /// the name with `Path` behind it.
    pub(super) fn whole_or_query(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<Template>> {
        match self.get(name) {
            Some(Value::String(text)) if self.is_jsonata() && inner(text).is_some() => {
                self.template(name)
            }
            None => self.path_of(name, Wording::Path),
            Some(_) => {
                let number = self.whole(name, range)?;
                Ok(number.map(|number| Template::Literal(number.into())))
            }
        }
    }

    /// As [`Fields::whole_or_query`], for any number up to 100.
    pub(super) fn percentage_or_query(&self, name: &str) -> Result<Option<Template>> {
        match self.get(name) {
            Some(Value::String(text)) if self.is_jsonata() && inner(text).is_some() => {
                self.template(name)
            }
            None => self.path_of(name, Wording::Path),
            Some(value) => match self.number(name)? {
                Some(number) if (0.0..=100.0).contains(&number) => {
                    Ok(Some(Template::Literal(value.clone())))
                }
                _ => invalid(&self.at(name), "Expected a number from 0 to 100"),
            },
        }
    }

    /// A field that is a text, perhaps an expression, or in JSONPath a path.
    pub(super) fn text_or_query(&self, name: &str) -> Result<Option<Template>> {
        if !self.has(name) {
            return self.path_of(name, Wording::Path);
        }
        let text = self.text(name)?;
        if self.is_jsonata() {
            return self.template(name);
        }
        Ok(text.map(|text| Template::Literal(text.into())))
    }

    /// As [`Fields::text_or_query`], of `Error` and `Cause`, whose paths AWS words as templates.
    pub(super) fn message(&self, name: &str) -> Result<Option<Template>> {
        self.one_of_pair(name)?;
        match self.path_of(name, Wording::Template)? {
            Some(path) => Ok(Some(path)),
            None => self.text_or_query(name),
        }
    }
}

/// What a JSONata parser says, without the code that it starts with: `S0207: `.
fn without_code(message: &str) -> &str {
    match message.split_once(": ") {
        Some((code, rest)) if code.len() == 5 && code.starts_with(['S', 'D', 'T']) => rest,
        _ => message,
    }
}

/// Code and text of a variable that cannot have its name.
fn bad_variable(name: &str) -> Option<(&'static str, String)> {
    if name == "states" {
        let message = "Cannot assign to reserved variable '$states'.".to_owned();
        return Some(("RESERVED_VARIABLE_NAME", message));
    }
    (!is_variable(name)).then(|| {
        (
            "INVALID_VARIABLE_NAME",
            format!(
                "Invalid variable name '{name}': the variable name contains invalid characters."
            ),
        )
    })
}

/// Developer Guide, "Passing data between states with variables": Unicode identifiers of at most 80
/// characters.
fn is_variable(name: &str) -> bool {
    name.chars().count() <= 80
        && name
            .chars()
            .enumerate()
            .all(|(i, c)| c == '_' || c.is_alphabetic() || (i > 0 && c.is_alphanumeric()))
        && !name.is_empty()
}
