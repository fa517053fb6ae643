//! When a rule applies: kept and checked as AWS does; nothing is ever matched, because nothing is sent.

use serde_json::{Value, json};

use super::request::{missing, validation};
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Most values of all conditions of a rule (ELB quotas).
const MOST_VALUES: usize = 5;
/// Fields, the members that configure them, and whether a rule can have only one of them.
const FIELDS: [(&str, &str, bool); 6] = [
    ("host-header", "HostHeaderConfig", true),
    ("http-header", "HttpHeaderConfig", false),
    ("http-request-method", "HttpRequestMethodConfig", true),
    ("path-pattern", "PathPatternConfig", true),
    ("query-string", "QueryStringConfig", false),
    ("source-ip", "SourceIpConfig", true),
];

/// Reads the conditions of a rule, as responses show them.
pub(super) fn read(items: &[&Document]) -> Result<Vec<Value>, ApiError> {
    if items.is_empty() {
        return Err(missing("Conditions"));
    }
    let mut conditions: Vec<Value> = Vec::new();
    let mut values = 0;
    for item in items {
        let item = Fields(item);
        let field = item.text("Field")?.ok_or_else(|| missing("Field"))?;
        let known = FIELDS.iter().find(|(known, ..)| *known == field);
        let &(_, config, single) = known.ok_or_else(|| {
            let names: Vec<&str> = FIELDS.iter().map(|(name, ..)| *name).collect();
            validation(format!(
                "Condition field '{field}' must be one of '[{}]'",
                names.join(", ")
            ))
        })?;
        if single && conditions.iter().any(|one| one["Field"] == field) {
            return Err(validation(format!(
                "A rule can only have one '{field}' condition"
            )));
        }
        let (condition, number) = read_one(item, field, config)?;
        values += number;
        conditions.push(condition);
    }
    if values > MOST_VALUES {
        return Err(validation(format!(
            "A rule can only have '{MOST_VALUES}' condition values"
        )));
    }
    Ok(conditions)
}

/// A condition, and how many values it has.
fn read_one(item: Fields<'_>, field: &str, config: &str) -> Result<(Value, usize), ApiError> {
    // Two of the fields have an older form too.
    let has_short_form = ["host-header", "path-pattern"].contains(&field);
    let given = item.object(config)?;
    let values = match given {
        Some(given) => Fields(given).list("Values")?,
        None if has_short_form => item.list("Values")?,
        None => return Err(missing(config)),
    };
    if values.is_empty() {
        return Err(validation("A condition value must be specified"));
    }
    let mut full = given.cloned().unwrap_or_default();
    full.insert("Values".into(), json!(values));
    if field == "http-header" && !full.contains_key("HttpHeaderName") {
        return Err(missing("HttpHeaderName"));
    }
    let mut condition = json!({"Field": field, config: full});
    if has_short_form {
        condition["Values"] = json!(values);
    }
    Ok((condition, values.len()))
}
