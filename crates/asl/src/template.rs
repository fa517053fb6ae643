//! Payload templates: JSON in a definition whose texts of the form `{% … %}` are JSONata.

use serde_json::{Map, Value};

use crate::jsonata::{Bindings, Expression, QueryError};

/// Deepest nesting of a template: definitions are read with `serde_json`, which stops there too.
const DEEPEST: usize = 128;

/// A payload template, parsed once when the machine is created.
#[derive(Debug)]
pub(crate) enum Template {
    Literal(Value),
    Expression(Expression),
    Array(Vec<Template>),
    Object(Vec<(String, Template)>),
}

/// An expression in a definition that is not JSONata.
#[derive(Debug)]
pub(crate) struct BadExpression {
    pub(crate) source: String,
    pub(crate) message: String,
    /// Where in the template, as `/Payload/runId`.
    pub(crate) path: String,
}

impl Template {
    /// Parses `value`; texts that are not wholly `{% … %}` are literals.
    pub(crate) fn parse(value: &Value) -> Result<Self, BadExpression> {
        Self::parse_at(value, "", 0)
    }

    fn parse_at(value: &Value, path: &str, depth: usize) -> Result<Self, BadExpression> {
        if depth > DEEPEST {
            return Err(BadExpression {
                source: String::new(),
                message: format!("the template nests deeper than {DEEPEST}"),
                path: path.to_owned(),
            });
        }
        let parsed = match value {
            Value::String(text) => match inner(text) {
                Some(source) => Self::Expression(Expression::parse(source).map_err(|message| {
                    BadExpression {
                        source: source.to_owned(),
                        message,
                        path: path.to_owned(),
                    }
                })?),
                None => Self::Literal(value.clone()),
            },
            Value::Array(items) => Self::Array(
                items
                    .iter()
                    .enumerate()
                    .map(|(i, item)| Self::parse_at(item, &format!("{path}/{i}"), depth + 1))
                    .collect::<Result<_, _>>()?,
            ),
            Value::Object(fields) => Self::Object(
                fields
                    .iter()
                    .map(|(key, field)| {
                        let parsed = Self::parse_at(field, &format!("{path}/{key}"), depth + 1)?;
                        Ok((key.clone(), parsed))
                    })
                    .collect::<Result<_, _>>()?,
            ),
            _ => Self::Literal(value.clone()),
        };
        Ok(if parsed.is_literal() {
            Self::Literal(value.clone())
        } else {
            parsed
        })
    }

    fn is_literal(&self) -> bool {
        match self {
            Self::Literal(_) => true,
            Self::Expression(_) => false,
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

    /// Evaluates the template; `field` names it in errors, as `Arguments`.
    pub(crate) fn evaluate(
        &self,
        field: &str,
        bindings: &Bindings<'_>,
    ) -> Result<Value, QueryError> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Expression(expression) => expression.evaluate(field, bindings),
            Self::Array(items) => items
                .iter()
                .enumerate()
                .map(|(i, item)| item.evaluate(&format!("{field}[{i}]"), bindings))
                .collect::<Result<Vec<_>, _>>()
                .map(Value::Array),
            Self::Object(fields) => {
                let mut values = Map::new();
                for (key, template) in fields {
                    let value = template.evaluate(&format!("{field}/{key}"), bindings)?;
                    values.insert(key.clone(), value);
                }
                Ok(Value::Object(values))
            }
        }
    }
}

/// The JSONata inside `{% … %}`.
pub(crate) fn inner(text: &str) -> Option<&str> {
    Some(text.strip_prefix("{%")?.strip_suffix("%}")?.trim())
}
