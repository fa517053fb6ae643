//! `$a.b = 'c'`: what most conditions of `Choice` states are. Where the path leads through objects to a value of the
//! literal's type, the answer is known without an evaluator.

use serde_json::Value;

use super::{Bindings, follow, plain_path};

/// A plain path that is compared with a literal.
#[derive(Debug)]
pub(super) struct Comparison {
    path: Vec<String>,
    literal: Value,
}

impl Comparison {
    /// Reads `path = literal`; `None` for everything else.
    pub(super) fn parse(source: &str) -> Option<Self> {
        let (path, literal) = source.split_once('=')?;
        Some(Self {
            path: plain_path(path.trim())?,
            literal: literal_of(literal.trim())?,
        })
    }

    /// Whether they are equal; `None` hands over to the evaluator, which knows what is equal to what is missing, and to
    /// values of other types.
    pub(super) fn holds(&self, bindings: &Bindings<'_>) -> Option<bool> {
        match (follow(&self.path, bindings)?, &self.literal) {
            (Value::String(found), Value::String(literal)) => Some(found == literal),
            (Value::Bool(found), Value::Bool(literal)) => Some(found == literal),
            _ => None,
        }
    }
}

/// A text in quotes without escapes, `true` or `false`.
fn literal_of(text: &str) -> Option<Value> {
    match text {
        "true" => return Some(Value::Bool(true)),
        "false" => return Some(Value::Bool(false)),
        _ => {}
    }
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let plain = !inner.contains(['\'', '"', '\\']);
    plain.then(|| Value::String(inner.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use jiff::Timestamp;
    use serde_json::{Map, json};

    use super::super::Expression;
    use super::*;

    #[test]
    fn what_is_known_at_once_is_what_the_evaluator_says() {
        let inputs = [
            json!({"next": {"directive": "Done"}, "watch": true}),
            json!({"next": {"directive": "Pause"}, "watch": false}),
            json!({"next": {"directive": ["Done"]}, "watch": [true]}),
            json!({"next": {"directive": 1}, "watch": "true"}),
            json!({"next": [{"directive": "Done"}], "watch": null}),
            json!({"next": "Done"}),
            json!({}),
        ];
        let sources = [
            "$states.input.next.directive = 'Done'",
            "$states.input.next.directive=\"Done\"",
            "$states.input.watch = true",
            "$states.input.watch = false",
        ];
        let none = Map::new();
        let mut known = 0;
        for source in sources {
            let expression = Expression::parse(source).expect("an expression");
            // Without the shortcut.
            let whole = Expression::parse(&format!("({source})")).expect("an expression");
            assert!(expression.comparison.is_some() && whole.comparison.is_none());
            for input in &inputs {
                let bindings = Bindings {
                    input,
                    root: input,
                    result: None,
                    error_output: None,
                    context: &|| Value::Null,
                    variables: &[&none],
                    now: Timestamp::UNIX_EPOCH,
                    spent: Cell::new(0),
                };
                let said = whole.evaluate("Condition", &bindings);
                let found = expression.evaluate("Condition", &bindings);
                assert_eq!(found.clone().ok(), said.ok(), "{source}: {input}");
                let comparison = expression.comparison.as_ref();
                known += usize::from(comparison.is_some_and(|one| one.holds(&bindings).is_some()));
            }
        }
        assert_eq!(known, 8, "texts and flags are known at once");
    }

    #[test]
    fn only_a_path_and_one_literal_are_a_comparison() {
        for other in [
            "$a",
            "$a = 1",
            "$a = $b",
            "$a = 'x' and $b = 'y'",
            "$a = 'it''s'",
            "$a = 'x\\n'",
            "$a = 'x' & 'y'",
            "$a != 'x'",
            "$a >= 'x'",
            "$a := 'x'",
            "'x' = $a",
            "$f() = 'x'",
            "$a[0] = 'x'",
            "$a.b = '",
        ] {
            assert!(Comparison::parse(other).is_none(), "{other}");
        }
        assert!(Comparison::parse("$a.b = ''").is_some());
    }
}
