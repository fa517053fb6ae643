//! What approvers are asked for.

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use crate::variable::{flag, is_expression};

/// One of `approverInputs`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// Its name.
    pub name: String,
    #[serde(default)]
    default_value: Option<String>,
    #[serde(default)]
    required: Value,
    /// Values that are allowed, with commas between them.
    #[serde(default)]
    allowed_values: Option<String>,
    /// Likewise, of which one is given.
    #[serde(default)]
    select_one_from: Option<String>,
    /// Likewise, of which some are given, with commas between them.
    #[serde(default)]
    select_many_from: Option<String>,
    /// What the whole value must match.
    #[serde(default)]
    regex: Option<String>,
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

impl Input {
    pub(super) fn default(&self) -> &str {
        self.default_value.as_deref().unwrap_or_default()
    }

    /// What is wrong with it before anybody is asked.
    pub(super) fn fault(&self) -> Option<String> {
        let told = |message: &str| Some(format!("approverInputs.{}: {message}", self.name));
        if self.name.trim().is_empty() {
            return Some("approverInputs: an input has no name".to_owned());
        }
        let rules = [
            &self.allowed_values,
            &self.select_one_from,
            &self.select_many_from,
            &self.regex,
        ];
        let mut rules = rules.into_iter().flatten().peekable();
        if rules.peek().is_none() || rules.any(|rule| is_expression(rule)) {
            return None;
        }
        if let Some(Err(error)) = self.regex.as_deref().map(pattern_of) {
            return told(&error);
        }
        let default = self.default().trim();
        if default.is_empty() || is_expression(default) {
            return None;
        }
        let error = self.take(None).err()?;
        told(&format!("its default `{default}` is not accepted: {error}"))
    }

    /// The value that counts for a given one.
    pub(super) fn take(&self, given: Option<&str>) -> Result<String, String> {
        let name = &self.name;
        let value = given.unwrap_or(self.default()).trim();
        if value.is_empty() {
            return match flag(&self.required) {
                Some(true) => Err(format!("`{name}` is required")),
                _ => Ok(String::new()),
            };
        }
        for list in [&self.allowed_values, &self.select_one_from]
            .into_iter()
            .flatten()
        {
            if !values(list).any(|allowed| allowed == value) {
                return Err(format!("`{name}` is one of {list}"));
            }
        }
        if let Some(list) = &self.select_many_from
            && let Some(other) = values(value).find(|one| !values(list).any(|known| known == *one))
        {
            return Err(format!("`{name}` are some of {list}; `{other}` is not"));
        }
        if let Some(text) = &self.regex {
            let pattern = pattern_of(text).map_err(|error| format!("`{name}`: {error}"))?;
            if !pattern.is_match(value) {
                return Err(format!("`{name}` does not match {text}"));
            }
        }
        Ok(value.to_owned())
    }
}

fn values(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|value| !value.is_empty())
}

/// A pattern for whole values. The crate's matcher is linear in the value, and its size is bounded.
fn pattern_of(text: &str) -> Result<Regex, String> {
    Regex::new(&format!("^(?:{text})$")).map_err(|_| format!("`{text}` is no regular expression"))
}
