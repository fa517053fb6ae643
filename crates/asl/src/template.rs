//! Payload templates: JSON in a definition with queries in it.
//!
//! In JSONata states a text of the form `{% … %}` is an expression, wherever it stands. In JSONPath states
//! a text is a query where its key ends in `.$`; the key loses the ending.

use serde_json::{Map, Value};

use crate::jsonata::{Bindings, Expression, QueryError};
use crate::query::{Query, Wording};

/// Deepest nesting of a template: definitions are read with `serde_json`, which stops there too.
const DEEPEST: usize = 128;
/// The ending of keys whose value is a query.
const QUERY_KEY: &str = ".$";

/// A payload template, parsed once when the machine is created.
#[derive(Debug)]
pub(crate) enum Template {
    Literal(Value),
    Expression(Expression),
    Query(Query, Wording),
    Array(Vec<Template>),
    Object(Vec<(String, Template)>),
}

/// What is wrong with a template.
#[derive(Debug)]
pub(crate) enum BadTemplate {
    /// An expression that is not JSONata.
    Expression {
        message: String,
        /// Where in the template, as `/Payload/runId`.
        path: String,
    },
    /// The value of a key that ends in `.$` is no query.
    Query {
        key: String,
        /// Where the object with the key is.
        path: String,
    },
    /// Deeper than [`DEEPEST`].
    Depth { path: String },
}

impl Template {
    /// Parses the template of a JSONata state; texts that are not wholly `{% … %}` are literals.
    pub(crate) fn jsonata(value: &Value) -> Result<Self, BadTemplate> {
        parse(value, "", 0, &|value, path, _| {
            let Some(source) = value.as_str().and_then(inner) else {
                return Ok(None);
            };
            match Expression::parse(source) {
                Ok(expression) => Ok(Some(Self::Expression(expression))),
                Err(message) => Err(BadTemplate::Expression {
                    message,
                    path: path.to_owned(),
                }),
            }
        })
    }

    /// Parses the template of a JSONPath state.
    pub(crate) fn jsonpath(value: &Value) -> Result<Self, BadTemplate> {
        parse(value, "", 0, &|value, path, key| {
            let Some(key) = key.filter(|key| key.ends_with(QUERY_KEY)) else {
                return Ok(None);
            };
            match value.as_str().and_then(Query::parse) {
                Some(query) => Ok(Some(Self::Query(query, Wording::Template))),
                None => Err(BadTemplate::Query {
                    key: key.to_owned(),
                    path: path.rsplit_once('/').unwrap_or_default().0.to_owned(),
                }),
            }
        })
    }

    fn is_literal(&self) -> bool {
        match self {
            Self::Literal(_) => true,
            Self::Expression(_) | Self::Query(..) => false,
            Self::Array(items) => items.iter().all(Self::is_literal),
            Self::Object(fields) => fields.iter().all(|(_, field)| field.is_literal()),
        }
    }

    /// The whole template as one expression, if it is one.
    pub(crate) fn expression(&self) -> Option<&Expression> {
        match self {
            Self::Expression(expression) => Some(expression),
            _ => None,
        }
    }

    /// Adds the names of the variables that the template mentions.
    pub(crate) fn variables(&self, names: &mut Vec<String>) {
        match self {
            Self::Literal(_) => {}
            Self::Expression(expression) => expression.variables(names),
            Self::Query(query, _) => query.variables(names),
            Self::Array(items) => items.iter().for_each(|item| item.variables(names)),
            Self::Object(fields) => fields.iter().for_each(|(_, field)| field.variables(names)),
        }
    }

    /// Evaluates the template; `field` names it in errors, as `Arguments`.
    pub(crate) fn evaluate(
        &self,
        field: &str,
        bindings: &Bindings<'_>,
    ) -> Result<Value, QueryError> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Expression(expression) => {
                let value = expression.evaluate(field, bindings)?;
                bindings.spend(&value)?;
                Ok(value)
            }
            // By itself a query stands in the field with `Path` behind its name.
            Self::Query(query, wording) => {
                query.evaluate(&format!("{field}Path"), *wording, bindings)
            }
            Self::Array(items) => items
                .iter()
                .enumerate()
                .map(|(i, item)| item.evaluate(&format!("{field}[{i}]"), bindings))
                .collect::<Result<Vec<_>, _>>()
                .map(Value::Array),
            Self::Object(fields) => {
                let mut values = Map::new();
                for (key, template) in fields {
                    let value = match template {
                        // AWS names the key alone here, and the whole way in JSONata states.
                        Self::Query(query, wording) => {
                            query.evaluate(&format!("{key}{QUERY_KEY}"), *wording, bindings)?
                        }
                        template => template.evaluate(&format!("{field}/{key}"), bindings)?,
                    };
                    values.insert(key.clone(), value);
                }
                Ok(Value::Object(values))
            }
        }
    }
}

/// Reads a query out of a value with its place and key; `None` for what is none.
type ReadQuery<'a> =
    &'a dyn Fn(&Value, &str, Option<&str>) -> Result<Option<Template>, BadTemplate>;

fn parse(
    value: &Value,
    path: &str,
    depth: usize,
    query: ReadQuery<'_>,
) -> Result<Template, BadTemplate> {
    parse_member(value, path, None, depth, query)
}

fn parse_member(
    value: &Value,
    path: &str,
    key: Option<&str>,
    depth: usize,
    query: ReadQuery<'_>,
) -> Result<Template, BadTemplate> {
    if depth > DEEPEST {
        return Err(BadTemplate::Depth {
            path: path.to_owned(),
        });
    }
    if let Some(found) = query(value, path, key)? {
        return Ok(found);
    }
    let parsed = match value {
        Value::Array(items) => Template::Array(
            items
                .iter()
                .enumerate()
                .map(|(i, item)| parse_member(item, &format!("{path}/{i}"), None, depth + 1, query))
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(fields) => Template::Object(
            fields
                .iter()
                .map(|(key, field)| {
                    let path = format!("{path}/{key}");
                    let parsed = parse_member(field, &path, Some(key), depth + 1, query)?;
                    let is_query = matches!(parsed, Template::Query(..));
                    let key = key
                        .strip_suffix(QUERY_KEY)
                        .filter(|_| is_query)
                        .unwrap_or(key);
                    Ok((key.to_owned(), parsed))
                })
                .collect::<Result<_, _>>()?,
        ),
        _ => Template::Literal(value.clone()),
    };
    Ok(if parsed.is_literal() {
        Template::Literal(value.clone())
    } else {
        parsed
    })
}

/// The JSONata inside `{% … %}`.
pub(crate) fn inner(text: &str) -> Option<&str> {
    Some(text.strip_prefix("{%")?.strip_suffix("%}")?.trim())
}
