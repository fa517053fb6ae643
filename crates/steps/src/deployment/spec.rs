//! Small specs, field by field: before a run with expressions in them, and in the run with their values.

use serde_json::Value;
use slipway_model::status::Failure;

use super::invalid;
use crate::variable::is_expression;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// True or false.
    Flag,
    /// A whole number that is not negative.
    Count,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A text.
    Text,
    /// Something that others check.
    Other,
}

/// Faults of a spec before a run: fields that are not among `known`, and values that cannot become right.
pub(crate) fn check(spec: &Value, known: &[(&str, Kind)]) -> Vec<String> {
    let fields = spec.as_object().into_iter().flatten();
    fields
        // The lane loop reads `delegateSelectors`, of every step.
        .filter(|(name, _)| *name != "delegateSelectors")
        .filter_map(
            |(name, value)| match known.iter().find(|(k, _)| k == name) {
                Some((_, kind)) => fault(name, *kind, value),
                None => Some(unknown(name, known)),
            },
        )
        .collect()
}

fn unknown(name: &str, known: &[(&str, Kind)]) -> String {
    let near = known
        .iter()
        .find(|(k, _)| strsim::jaro_winkler(k, name) > 0.85);
    let hint = near
        .map(|(near, _)| format!("; did you mean `{near}`?"))
        .unwrap_or_default();
    format!("`{name}` is not a field of this step{hint}")
}

fn fault(name: &str, kind: Kind, value: &Value) -> Option<String> {
    if value.is_null() || value.as_str().is_some_and(is_expression) {
        return None;
    }
    let empty = value.as_str().is_some_and(|text| text.trim().is_empty());
    let fits = match kind {
        Kind::Flag => empty || as_flag(value).is_some(),
        Kind::Count => empty || as_count(value).is_some(),
        Kind::Choice(words) => {
            empty
                || value
                    .as_str()
                    .is_some_and(|text| words.contains(&text.trim()))
        }
        Kind::Text => value.is_string(),
        Kind::Other => true,
    };
    (!fits).then(|| format!("`{name}` must be {}", wanted(kind)))
}

fn wanted(kind: Kind) -> String {
    match kind {
        Kind::Flag => "true or false".to_owned(),
        Kind::Count => "a whole number from 0".to_owned(),
        Kind::Choice(words) => words.join(" or "),
        Kind::Text => "a text".to_owned(),
        Kind::Other => "given".to_owned(),
    }
}

fn as_flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) if text.trim().eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.trim().eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Whole numbers as YAML or an expression gives them: `3`, `3.0`, `"3"`.
fn as_count(value: &Value) -> Option<i64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    let whole = number.fract() == 0.0 && (0.0..=f64::from(i32::MAX)).contains(&number);
    whole.then_some(number as i64)
}

/// Whether a field says something.
pub(crate) fn given(spec: &Value, name: &str) -> bool {
    match &spec[name] {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

/// A flag with its expressions resolved; false when it is not given.
pub(crate) fn flag(spec: &Value, name: &str) -> Result<bool, Failure> {
    if !given(spec, name) {
        return Ok(false);
    }
    as_flag(&spec[name]).ok_or_else(|| wrong(name, Kind::Flag))
}

/// A number with its expressions resolved.
pub(crate) fn count(spec: &Value, name: &str) -> Result<Option<i64>, Failure> {
    if !given(spec, name) {
        return Ok(None);
    }
    let count = as_count(&spec[name]);
    count.map(Some).ok_or_else(|| wrong(name, Kind::Count))
}

/// One of some words with its expressions resolved.
pub(crate) fn choice(
    spec: &Value,
    name: &str,
    words: &'static [&'static str],
) -> Result<Option<&'static str>, Failure> {
    if !given(spec, name) {
        return Ok(None);
    }
    let chosen = spec[name].as_str().map(str::trim);
    let word = words.iter().find(|word| Some(**word) == chosen);
    word.map(|word| Some(*word))
        .ok_or_else(|| wrong(name, Kind::Choice(words)))
}

/// A text with its expressions resolved; empty ones are none.
pub(crate) fn text(spec: &Value, name: &str) -> Option<String> {
    let text = spec[name].as_str().map(str::trim);
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

fn wrong(name: &str, kind: Kind) -> Failure {
    invalid(format!("`{name}` must be {}.", wanted(kind)))
}

/// How many tasks `count` of a unit are: a count itself, or a percentage of `whole`, rounded up so that a part
/// of something is never nothing.
pub(crate) fn tasks(count: i64, unit: &str, whole: i64) -> i64 {
    match unit {
        "Percentage" => {
            let hundredth = whole.saturating_mul(count);
            hundredth / 100 + i64::from(hundredth % 100 > 0)
        }
        _ => count,
    }
}

/// The units of [`tasks`].
pub(crate) const UNITS: &[&str] = &["Count", "Percentage"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_cannot_become_right_are_told_before_the_run() {
        let known = [
            ("service", Kind::Text),
            ("instances", Kind::Count),
            ("instanceUnit", Kind::Choice(UNITS)),
        ];
        let table = [
            (json!({"instances": 3, "instanceUnit": "Count"}), ""),
            (json!({"instances": "<+x>", "instanceUnit": "<+y>"}), ""),
            (json!({"instances": "4", "delegateSelectors": ["a"]}), ""),
            (
                json!({"instances": -1}),
                "`instances` must be a whole number from 0",
            ),
            (
                json!({"instances": 1.5}),
                "`instances` must be a whole number from 0",
            ),
            (
                json!({"instances": 2_147_483_648_u64}),
                "`instances` must be a whole number from 0",
            ),
            (
                json!({"instanceUnit": "Percent"}),
                "`instanceUnit` must be Count or Percentage",
            ),
            (json!({"service": 7}), "`service` must be a text"),
            (
                json!({"instance": 7}),
                "`instance` is not a field of this step; did you mean `instances`?",
            ),
        ];
        for (spec, faults) in table {
            assert_eq!(check(&spec, &known).join("; "), faults, "{spec}");
        }
        assert!(count(&json!({"instances": "x"}), "instances").is_err());
        assert_eq!(
            count(&json!({"instances": "3.0"}), "instances").ok(),
            Some(Some(3))
        );
        assert!(choice(&json!({"u": "Percent"}), "u", UNITS).is_err());
    }

    #[test]
    fn a_part_of_something_is_never_nothing() {
        let table = [
            ((50, "Percentage", 3), 2),
            ((1, "Percentage", 3), 1),
            ((0, "Percentage", 3), 0),
            ((100, "Percentage", 3), 3),
            ((200, "Percentage", 3), 6),
            ((50, "Percentage", 0), 0),
            ((5, "Count", 3), 5),
        ];
        for ((count, unit, whole), expected) in table {
            assert_eq!(
                tasks(count, unit, whole),
                expected,
                "{count} {unit} of {whole}"
            );
        }
        assert!(tasks(i64::from(i32::MAX), "Percentage", i64::MAX) > 0);
    }
}
