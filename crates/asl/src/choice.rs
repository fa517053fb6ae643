//! Choice rules of JSONPath states (<https://states-language.net>, "Choice State").

use std::cmp::Ordering;

use serde_json::Value;

use crate::jsonata::{Bindings, QueryError};
use crate::query::{Query, Wording};
use crate::time::extended_offset;

/// The condition of a rule.
#[derive(Debug)]
pub(crate) enum Test {
    And(Vec<Test>),
    Or(Vec<Test>),
    Not(Box<Test>),
    Compare {
        variable: Query,
        of: Kind,
        relation: Relation,
        with: Operand,
    },
    Is {
        variable: Query,
        what: Is,
        expected: bool,
    },
}

/// What kind of values a comparison is for; a value of another kind makes it false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    Boolean,
    Timestamp,
}

/// The relation that a comparison asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `StringMatches`: `*` stands for any characters, `\*` for itself.
    Matches,
}

/// What a variable is asked to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Is {
    Null,
    Present,
    Number,
    Text,
    Boolean,
    Timestamp,
}

/// The other side of a comparison.
#[derive(Debug)]
pub(crate) enum Operand {
    Literal(Value),
    Path(Query),
}

impl Test {
    /// Whether the condition holds. A variable that is missing is an error, except to `IsPresent`.
    pub(crate) fn holds(&self, bindings: &Bindings<'_>) -> Result<bool, QueryError> {
        match self {
            Self::And(tests) => {
                for test in tests {
                    if !test.holds(bindings)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Or(tests) => {
                for test in tests {
                    if test.holds(bindings)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(test) => Ok(!test.holds(bindings)?),
            Self::Is {
                variable,
                what: Is::Present,
                expected,
            } => Ok(value(variable, bindings).is_ok() == *expected),
            Self::Is {
                variable,
                what,
                expected,
            } => Ok(what.fits(&value(variable, bindings)?) == *expected),
            Self::Compare {
                variable,
                of,
                relation,
                with,
            } => {
                let left = value(variable, bindings)?;
                let right = match with {
                    Operand::Literal(value) => value.clone(),
                    Operand::Path(query) => value(query, bindings)?,
                };
                Ok(compare(&left, *of, *relation, &right))
            }
        }
    }

    /// Adds the names of the variables that the condition mentions.
    pub(crate) fn variables(&self, names: &mut Vec<String>) {
        match self {
            Self::And(tests) | Self::Or(tests) => {
                tests.iter().for_each(|test| test.variables(names));
            }
            Self::Not(test) => test.variables(names),
            Self::Is { variable, .. } => variable.variables(names),
            Self::Compare { variable, with, .. } => {
                variable.variables(names);
                if let Operand::Path(query) = with {
                    query.variables(names);
                }
            }
        }
    }
}

fn value(query: &Query, bindings: &Bindings<'_>) -> Result<Value, QueryError> {
    query
        .evaluate("Variable", Wording::Path, bindings)
        .map_err(|_| {
            QueryError::runtime(format!(
                "Invalid path '{}': The choice state's condition path references an invalid value.",
                query.text()
            ))
        })
}

impl Is {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Present => true,
            Self::Number => value.is_number(),
            Self::Text => value.is_string(),
            Self::Boolean => value.is_boolean(),
            Self::Timestamp => value.as_str().and_then(extended_offset).is_some(),
        }
    }
}

fn compare(left: &Value, of: Kind, relation: Relation, right: &Value) -> bool {
    if relation == Relation::Matches {
        return match (left.as_str(), right.as_str()) {
            (Some(text), Some(pattern)) => matches(text, pattern),
            _ => false,
        };
    }
    let order = match of {
        Kind::Text => both(left, right, Value::as_str).map(|(a, b)| a.cmp(b)),
        Kind::Boolean => both(left, right, Value::as_bool).map(|(a, b)| a.cmp(&b)),
        Kind::Number => both(left, right, Value::as_f64).and_then(|(a, b)| a.partial_cmp(&b)),
        Kind::Timestamp => both(left, right, |value| {
            value.as_str().and_then(extended_offset)
        })
        .map(|(a, b)| a.cmp(&b)),
    };
    order.is_some_and(|order| relation.fits(order))
}

fn both<'a, T>(
    left: &'a Value,
    right: &'a Value,
    read: impl Fn(&'a Value) -> Option<T>,
) -> Option<(T, T)> {
    Some((read(left)?, read(right)?))
}

impl Relation {
    fn fits(self, order: Ordering) -> bool {
        match self {
            Self::Equal | Self::Matches => order.is_eq(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// Whether `pattern` stands for the whole text. Goes back to the last `*` only, so that the time is
/// bounded by the product of both lengths.
fn matches(text: &str, pattern: &str) -> bool {
    let pattern = tokens(pattern);
    let text: Vec<char> = text.chars().collect();
    let (mut t, mut p) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(c) = text.get(t) {
        match pattern.get(p) {
            Some(None) => {
                star = Some((p, t));
                p += 1;
            }
            Some(Some(expected)) if expected == c => {
                t += 1;
                p += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(Option::is_none)
}

/// The characters of a pattern; `None` for a `*` that is not escaped.
fn tokens(pattern: &str) -> Vec<Option<char>> {
    let mut tokens = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' => None,
            '\\' if matches!(chars.peek(), Some('*' | '\\')) => chars.next(),
            c => Some(c),
        });
    }
    tokens
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Kind, Relation, compare, matches};

    #[test]
    fn patterns() {
        let cases = [
            ("log-1.txt", "log-*.txt", true),
            ("log-.txt", "log-*.txt", true),
            ("log-1.txt2", "log-*.txt", false),
            ("a*b", "a\\*b", true),
            ("aXb", "a\\*b", false),
            ("a\\b", "a\\\\b", true),
            ("", "*", true),
            ("abcabc", "*abc", true),
            ("anything", "***", true),
        ];
        for (text, pattern, expected) in cases {
            assert_eq!(matches(text, pattern), expected, "{text} {pattern}");
        }
        assert!(!matches(
            &"a".repeat(5_000),
            &format!("{}b", "*a".repeat(500))
        ));
    }

    #[test]
    fn a_value_of_another_kind_never_compares() {
        let values = [
            json!(null),
            json!(1),
            json!("x"),
            json!(true),
            json!([]),
            json!({}),
        ];
        for (kind, own) in [(Kind::Text, 2), (Kind::Number, 1), (Kind::Boolean, 3)] {
            for (i, value) in values.iter().enumerate() {
                let equal = compare(value, kind, Relation::Equal, &values[own]);
                assert_eq!(equal, i == own, "{value} as {kind:?}");
            }
        }
    }

    #[test]
    fn times_compare_by_instant() {
        let (a, b) = (
            json!("2012-10-09T19:00:55Z"),
            json!("2012-10-09T20:00:55+01:00"),
        );
        assert!(compare(&a, Kind::Timestamp, Relation::Equal, &b));
        let no_offset = json!("2012-10-09T19:00:55");
        assert!(!compare(
            &no_offset,
            Kind::Timestamp,
            Relation::LessOrEqual,
            &a
        ));
    }
}
