//! What several steps take: how many instances.

use serde_json::Value;
use slipway_model::status::Failure;

use super::group::Group;
use super::invalid;
use crate::deployment::spec::{Kind, check as check_fields, count, given};
use crate::variable::is_expression;

/// Sizes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Sizes {
    pub(super) min: i64,
    pub(super) max: i64,
    pub(super) desired: i64,
}

/// A group that nothing ran before gets these when it is to be as what runs (Harness's ASG tutorial).
const FIRST: Sizes = Sizes {
    min: 0,
    max: 10,
    desired: 6,
};

/// Faults of `instances` before a run.
pub(super) fn check_instances(spec: &Value) -> Vec<String> {
    let instances = &spec["instances"];
    if instances.is_null() || instances.as_str().is_some_and(is_expression) {
        return Vec::new();
    }
    match instances["type"].as_str() {
        Some("CurrentRunning") => Vec::new(),
        Some(kind) if is_expression(kind) => Vec::new(),
        Some("Fixed") => {
            let own = &instances["spec"];
            let known = [
                ("min", Kind::Count),
                ("max", Kind::Count),
                ("desired", Kind::Count),
                ("type", Kind::Other),
            ];
            let mut faults = check_fields(own, &known);
            for name in ["min", "max", "desired"] {
                if !given(own, name) {
                    faults.push(format!("`{name}` is missing"));
                }
            }
            if faults.is_empty()
                && let Err(why) = ordered(own)
            {
                faults.push(why);
            }
            let under = |fault| format!("`instances`: {fault}");
            faults.into_iter().map(under).collect()
        }
        _ => vec!["`instances.type` must be Fixed or CurrentRunning".to_owned()],
    }
}

/// Whether the numbers that are known already are in order.
fn ordered(spec: &Value) -> Result<(), String> {
    let number = |name: &str| count(spec, name).ok().flatten();
    match (number("min"), number("max"), number("desired")) {
        (Some(min), Some(max), _) if min > max => Err(format!(
            "`min` is {min} and `max` is {max}: no number of instances is between them"
        )),
        (Some(min), _, Some(desired)) if desired < min => Err(format!(
            "`desired` is {desired}, less than `min`, which is {min}"
        )),
        (_, Some(max), Some(desired)) if desired > max => Err(format!(
            "`desired` is {desired}, more than `max`, which is {max}"
        )),
        _ => Ok(()),
    }
}

/// The sizes that a group is to get: those of the step, those of the group that runs, or those of the manifest.
pub(super) fn sizes(
    spec: &Value,
    configuration: &Value,
    running: Option<&Group>,
) -> Result<Sizes, Failure> {
    let instances = &spec["instances"];
    let same = crate::deployment::spec::flag(spec, "useAlreadyRunningInstances")?;
    let kind = instances["type"].as_str().map(str::trim);
    let sizes = match kind {
        Some("Fixed") => numbers(&instances["spec"], ["min", "max", "desired"], "`instances`")?,
        Some("CurrentRunning") => running.map_or(FIRST, Group::sizes),
        None if same => running.map_or(FIRST, Group::sizes),
        None => numbers(
            configuration,
            ["MinSize", "MaxSize", "DesiredCapacity"],
            "the AsgConfiguration manifest",
        )?,
        Some(_) => {
            return Err(invalid("`instances.type` must be Fixed or CurrentRunning."));
        }
    };
    let Sizes { min, max, desired } = sizes;
    if min > max || !(min..=max).contains(&desired) {
        return Err(invalid(format!(
            "a group cannot have at least {min}, at most {max} and now {desired} instances."
        )));
    }
    Ok(sizes)
}

fn numbers(from: &Value, [min, max, desired]: [&str; 3], what: &str) -> Result<Sizes, Failure> {
    let missing = |name: &str| invalid(format!("`{name}` of {what} is missing."));
    let least = count(from, min)?.ok_or_else(|| missing(min))?;
    Ok(Sizes {
        min: least,
        max: count(from, max)?.ok_or_else(|| missing(max))?,
        // AWS's rule.
        desired: count(from, desired)?.unwrap_or(least),
    })
}

/// Faults of `instanceSelection` before a run.
pub(super) fn check_selection(spec: &Value) -> Vec<String> {
    let selection = &spec["instanceSelection"];
    if selection.as_str().is_some_and(is_expression) {
        return Vec::new();
    }
    let (field, most) = match selection["type"].as_str() {
        Some(kind) if is_expression(kind) => return Vec::new(),
        Some("Count") => ("count", i64::from(i32::MAX)),
        Some("Percentage") => ("percentage", 100),
        None if selection.is_null() => return vec!["`instanceSelection` is missing".to_owned()],
        _ => return vec!["`instanceSelection.type` must be Count or Percentage".to_owned()],
    };
    let own = &selection["spec"];
    if !given(own, field) {
        return vec![format!("`{field}` of `instanceSelection` is missing")];
    }
    let written = own[field].as_str().is_some_and(is_expression);
    match count(own, field) {
        _ if written => Vec::new(),
        Ok(Some(number)) if number <= most => Vec::new(),
        Ok(_) => vec![format!(
            "`{field}` of `instanceSelection` must be at most {most}"
        )],
        Err(_) => vec![format!(
            "`{field}` of `instanceSelection` must be a whole number from 0"
        )],
    }
}

/// How many instances `instanceSelection` is of `whole`; a part of something is never nothing.
pub(super) fn selected(spec: &Value, whole: i64) -> Result<i64, Failure> {
    let selection = &spec["instanceSelection"];
    let own = &selection["spec"];
    let missing = || invalid("`instanceSelection` is missing or empty.");
    match selection["type"].as_str().map(str::trim) {
        Some("Count") => count(own, "count")?.ok_or_else(missing),
        Some("Percentage") => {
            let percentage = count(own, "percentage")?.ok_or_else(missing)?;
            if percentage > 100 {
                return Err(invalid(
                    "`percentage` of `instanceSelection` must be at most 100.",
                ));
            }
            Ok(crate::deployment::spec::tasks(
                percentage,
                "Percentage",
                whole,
            ))
        }
        _ => Err(invalid(
            "`instanceSelection.type` must be Count or Percentage.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn faults_are_told_before_the_run() {
        let fixed = |min: Value, max: Value, desired: Value| json!({"instances": {"type": "Fixed", "spec": {"min": min, "max": max, "desired": desired}}});
        let table = [
            (json!({}), ""),
            (fixed(json!(1), json!(2), json!(2)), ""),
            (fixed(json!("<+a>"), json!(0), json!(0)), ""),
            (
                fixed(json!(3), json!(2), json!(2)),
                "`instances`: `min` is 3 and `max` is 2: no number of instances is between them",
            ),
            (
                fixed(json!(0), json!(2), json!(5)),
                "`instances`: `desired` is 5, more than `max`, which is 2",
            ),
            (
                fixed(json!(-1), json!(2), Value::Null),
                "`instances`: `min` must be a whole number from 0; `instances`: `desired` is missing",
            ),
            (
                json!({"instances": {"type": "Some"}}),
                "`instances.type` must be Fixed or CurrentRunning",
            ),
        ];
        for (spec, faults) in table {
            assert_eq!(check_instances(&spec).join("; "), faults, "{spec}");
        }
        let selection = |kind: &str, field: &str, value: Value| json!({"instanceSelection": {"type": kind, "spec": {field: value}}});
        let table = [
            (selection("Count", "count", json!(2)), ""),
            (selection("Percentage", "percentage", json!("<+p>")), ""),
            (json!({}), "`instanceSelection` is missing"),
            (
                selection("Percentage", "percentage", json!(150)),
                "`percentage` of `instanceSelection` must be at most 100",
            ),
            (
                selection("Percentage", "count", json!(1)),
                "`percentage` of `instanceSelection` is missing",
            ),
        ];
        for (spec, faults) in table {
            assert_eq!(check_selection(&spec).join("; "), faults, "{spec}");
        }
        assert_eq!(
            selected(&selection("Percentage", "percentage", json!(10)), 3).ok(),
            Some(1)
        );
    }
}
