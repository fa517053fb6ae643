//! Queries of the JSONPath side of the language: what may stand behind a key that ends in `.$`, and in the
//! fields whose name ends in `Path`.

use serde_json::Value;

use crate::intrinsic::Call;
use crate::jsonata::{Bindings, QueryError};
use crate::jsonpath::{JsonPath, NoValue};

/// Where a query looks.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    /// `$`: the value that the field applies to.
    Value(JsonPath),
    /// `$$`: the context object.
    Context(JsonPath),
    /// `$name`.
    Variable(String, JsonPath),
    /// An intrinsic function.
    Call(Box<Call>),
}

/// A parsed query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Query {
    text: String,
    source: Source,
}

/// Which words AWS uses for a query that finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wording {
    /// Of payload templates, `ErrorPath` and `CausePath`.
    Template,
    /// Of `InputPath` and the other paths.
    Path,
}

impl Query {
    /// Parses a path or an intrinsic function; `None` if the text is neither.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.starts_with("States.") {
            return Call::parse(text).map(Self::of_call);
        }
        Self::path(text)
    }

    /// Parses a path: of the value, the context object or a variable.
    pub(crate) fn path(text: &str) -> Option<Self> {
        let source = if let Some(path) = text.strip_prefix("$$") {
            Source::Context(JsonPath::parse(&format!("${path}"))?)
        } else if is_name_start(text.get(1..).unwrap_or_default()) && text.starts_with('$') {
            let rest = text.get(1..)?;
            let end = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            let (name, path) = rest.split_at_checked(end)?;
            Source::Variable(name.to_owned(), JsonPath::parse(&format!("${path}"))?)
        } else {
            Source::Value(JsonPath::parse(text)?)
        };
        Some(Self {
            text: text.to_owned(),
            source,
        })
    }

    pub(crate) fn of_call(call: Call) -> Self {
        Self {
            text: call.source.clone(),
            source: Source::Call(Box::new(call)),
        }
    }

    /// As it stands in the definition.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Adds the names of the variables that the query mentions.
    pub(crate) fn variables(&self, names: &mut Vec<String>) {
        match &self.source {
            Source::Variable(name, _) => names.push(name.clone()),
            Source::Call(call) => call.queries().for_each(|query| query.variables(names)),
            Source::Value(_) | Source::Context(_) => {}
        }
    }

    /// The path as errors of references show it: without what tells the context object apart.
    pub(crate) fn reference(&self) -> &str {
        match &self.source {
            Source::Context(_) => self.text.get(1..).unwrap_or_default(),
            _ => &self.text,
        }
    }

    /// The value of the query for `field`.
    pub(crate) fn evaluate(
        &self,
        field: &str,
        wording: Wording,
        bindings: &Bindings<'_>,
    ) -> Result<Value, QueryError> {
        let value = self.find(field, wording, bindings)?;
        bindings.spend(&value)?;
        Ok(value)
    }

    fn find(
        &self,
        field: &str,
        wording: Wording,
        bindings: &Bindings<'_>,
    ) -> Result<Value, QueryError> {
        let context;
        let (path, root) = match &self.source {
            Source::Call(call) => return self.call(call, field, wording, bindings),
            Source::Value(path) => (path, Some(bindings.root)),
            Source::Context(path) => {
                context = (bindings.context)();
                (path, Some(&context))
            }
            Source::Variable(name, path) => (path, bindings.variable(name)),
        };
        let found = match root {
            Some(root) => path.select(root),
            None => Err(NoValue::Missing(format!(
                "No results for path: {}",
                path.canonical()
            ))),
        };
        found.map_err(|none| match none {
            NoValue::Missing(why) => self.missing(field, wording, &why, root),
            NoValue::TooMany => QueryError::runtime(format!(
                "The path '{}' visits more values than an evaluation may",
                self.text
            )),
        })
    }

    fn missing(
        &self,
        field: &str,
        wording: Wording,
        why: &str,
        root: Option<&Value>,
    ) -> QueryError {
        QueryError::runtime(match wording {
            Wording::Template => format!(
                "The JSONPath '{}' specified for the field '{field}' could not be found in the input '{}'",
                self.text,
                root.unwrap_or(&Value::Null)
            ),
            Wording::Path => format!("Invalid path '{}' : {why}", self.text),
        })
    }

    fn call(
        &self,
        call: &Call,
        field: &str,
        wording: Wording,
        bindings: &Bindings<'_>,
    ) -> Result<Value, QueryError> {
        call.evaluate(|query| query.evaluate(field, wording, bindings))?
            .map_err(|why| {
                QueryError::intrinsic(format!(
                    "The function '{}' had the following error: {why}",
                    self.text
                ))
            })
    }

    /// The value in `input` alone, for tests of functions.
    #[cfg(test)]
    pub(crate) fn of_input(&self, input: &Value) -> Option<Value> {
        match &self.source {
            Source::Value(path) => path.select(input).ok(),
            Source::Call(call) => call
                .evaluate(|query| query.of_input(input).ok_or(()))
                .ok()?
                .ok(),
            _ => None,
        }
    }
}

fn is_name_start(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
