//! The specs of the blue-green steps.

use serde_json::Value;
use slipway_model::status::Failure;

use super::balancer::Place;
use crate::deployment::invalid;
use crate::deployment::spec::{Kind, check, count, flag, given, text};
use crate::variable::{self, is_expression};

/// Fields of `EcsBlueGreenCreateService`. `forceNewDeployment` is not in Harness's schema and stands in pipelines
/// all the same.
const CREATE: &[(&str, Kind)] = &[
    ("enableAutoScalingInSwapStep", Kind::Flag),
    ("forceNewDeployment", Kind::Flag),
    ("isTrafficShift", Kind::Flag),
    ("loadBalancer", Kind::Text),
    ("prodListener", Kind::Text),
    ("prodListenerRuleArn", Kind::Text),
    ("sameAsAlreadyRunningInstances", Kind::Flag),
    ("stageListener", Kind::Text),
    ("stageListenerRuleArn", Kind::Text),
    ("stageTargetGroupArn", Kind::Text),
    ("updateGreenService", Kind::Flag),
];

/// What is in the ARN that a field holds.
const ARNS: &[(&str, &str)] = &[
    ("prodListener", ":listener/"),
    ("prodListenerRuleArn", ":listener-rule/"),
    ("stageListener", ":listener/"),
    ("stageListenerRuleArn", ":listener-rule/"),
    ("stageTargetGroupArn", ":targetgroup/"),
    ("listener", ":listener/"),
    ("listenerRuleArn", ":listener-rule/"),
    ("targetGroupArn", ":targetgroup/"),
];

/// Faults of the spec of `EcsBlueGreenCreateService`.
pub(super) fn check_create(spec: &Value) -> Vec<String> {
    let mut faults = check(spec, CREATE);
    faults.extend(missing(
        spec,
        &["loadBalancer", "prodListener", "prodListenerRuleArn"],
    ));
    faults.extend(not_arns(spec));
    match variable::flag(&spec["isTrafficShift"]) {
        Some(true) => {
            if variable::flag(&spec["enableAutoScalingInSwapStep"]) == Some(true) {
                faults.push(
                    "`enableAutoScalingInSwapStep` cannot be true with `isTrafficShift`: there is no swap step then"
                        .to_owned(),
                );
            }
        }
        None if given(spec, "isTrafficShift") => {}
        _ => {
            for name in ["stageListener", "stageListenerRuleArn"] {
                if !given(spec, name) {
                    faults.push(format!(
                        "`{name}` is missing: only with `isTrafficShift: true` there is one rule for both versions"
                    ));
                }
            }
        }
    }
    faults
}

fn missing(spec: &Value, names: &[&str]) -> Vec<String> {
    let missing = names.iter().filter(|name| !given(spec, name));
    missing.map(|name| format!("`{name}` is missing")).collect()
}

fn not_arns(spec: &Value) -> Vec<String> {
    let wrong = |(name, part): &&(&str, &str)| {
        let text = spec[*name].as_str().map(str::trim).unwrap_or_default();
        let fits = text.starts_with("arn:") && text.contains(part);
        !text.is_empty() && !is_expression(text) && !fits
    };
    let wrong = ARNS.iter().filter(wrong);
    wrong
        .map(|(name, part)| {
            format!("`{name}` must be an ARN (arn:aws:elasticloadbalancing:…{part}…)")
        })
        .collect()
}

/// `spec` of `EcsBlueGreenCreateService` with its expressions resolved.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Create {
    pub(super) balancer: String,
    pub(super) prod: Place,
    /// `None` with a traffic shift.
    pub(super) stage: Option<Place>,
    pub(super) stage_group: Option<String>,
    pub(super) same_as_running: bool,
    pub(super) scale_in_swap: bool,
    pub(super) update_green: bool,
    pub(super) force: bool,
}

impl Create {
    pub(super) fn read(spec: &Value) -> Result<Self, Failure> {
        let faults = check_create(spec);
        if !faults.is_empty() {
            return Err(invalid(format!("{}.", faults.join("; "))));
        }
        let shift = flag(spec, "isTrafficShift")?;
        let place = |listener, rule| Place {
            listener: text(spec, listener).unwrap_or_default(),
            rule: text(spec, rule).unwrap_or_default(),
        };
        Ok(Self {
            balancer: text(spec, "loadBalancer").unwrap_or_default(),
            prod: place("prodListener", "prodListenerRuleArn"),
            stage: (!shift).then(|| place("stageListener", "stageListenerRuleArn")),
            stage_group: text(spec, "stageTargetGroupArn").filter(|_| shift),
            same_as_running: flag(spec, "sameAsAlreadyRunningInstances")?,
            scale_in_swap: flag(spec, "enableAutoScalingInSwapStep")?,
            update_green: flag(spec, "updateGreenService")?,
            force: flag(spec, "forceNewDeployment")?,
        })
    }
}

/// Fields of `EcsBlueGreenSwapTargetGroups`.
const SWAP: &[(&str, Kind)] = &[
    ("doNotDownsizeOldService", Kind::Flag),
    ("downsizeOldServiceDelayInSecs", Kind::Count),
];

/// Faults of the spec of `EcsBlueGreenSwapTargetGroups`.
pub(super) fn check_swap(spec: &Value) -> Vec<String> {
    check(spec, SWAP)
}

/// `spec` of `EcsBlueGreenSwapTargetGroups` with its expressions resolved.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Swap {
    pub(super) keep_old: bool,
    /// Seconds before the old service is scaled down.
    pub(super) delay: u64,
}

impl Swap {
    pub(super) fn read(spec: &Value) -> Result<Self, Failure> {
        let delay = count(spec, "downsizeOldServiceDelayInSecs")?.unwrap_or(0);
        Ok(Self {
            keep_old: flag(spec, "doNotDownsizeOldService")?,
            delay: u64::try_from(delay).unwrap_or(0),
        })
    }
}

/// Heaviest weight of a target group (ELBv2 API reference, `TargetGroupTuple`).
const HEAVIEST: i64 = 999;

/// Most target groups of a rule (ELB quotas).
const MOST_GROUPS: usize = 5;

/// `spec` of `EcsBlueGreenTrafficShift` with its expressions resolved.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shift {
    /// Percentage of the requests that the new version gets.
    Inherit(i32),
    Standalone {
        balancer: String,
        place: Place,
        /// Target groups and weights.
        groups: Vec<(String, i32)>,
    },
}

const WRAPPER: &str = "ecsTrafficShiftWrapper";

/// Faults of the spec of `EcsBlueGreenTrafficShift`.
pub(super) fn check_shift(spec: &Value) -> Vec<String> {
    let mut faults = check(spec, &[(WRAPPER, Kind::Other)]);
    let (wrapper, own) = (&spec[WRAPPER], &spec[WRAPPER]["spec"]);
    match wrapper["type"].as_str() {
        Some("Inherit") => {
            faults.extend(check(own, &[("weightPercentage", Kind::Count)]));
            faults.extend(missing(own, &["weightPercentage"]));
            let weight = count(own, "weightPercentage");
            if matches!(weight, Ok(Some(weight)) if weight > 100) {
                faults.push("`weightPercentage` must be from 0 to 100".to_owned());
            }
        }
        Some("Standalone") => {
            faults.extend(check(
                own,
                &[
                    ("forwardConfig", Kind::Other),
                    ("listener", Kind::Text),
                    ("listenerRuleArn", Kind::Text),
                    ("loadBalancer", Kind::Text),
                ],
            ));
            faults.extend(missing(
                own,
                &["loadBalancer", "listener", "listenerRuleArn"],
            ));
            faults.extend(not_arns(own));
            faults.extend(check_forward(&own["forwardConfig"]));
        }
        Some(text) if is_expression(text) => {}
        _ => faults.push(format!(
            "`{WRAPPER}` must have `type: Inherit` or `type: Standalone`"
        )),
    }
    faults
}

fn check_forward(config: &Value) -> Vec<String> {
    if config.as_str().is_some_and(is_expression) {
        return Vec::new();
    }
    let tuples = config.as_array().map(Vec::as_slice).unwrap_or_default();
    if tuples.is_empty() || tuples.len() > MOST_GROUPS {
        return vec![format!(
            "`forwardConfig` must be a list of 1 to {MOST_GROUPS} target groups with their weights"
        )];
    }
    let fields = [
        ("description", Kind::Text),
        ("targetGroupArn", Kind::Text),
        ("weight", Kind::Count),
    ];
    let mut faults = Vec::new();
    let mut known: Vec<&str> = Vec::new();
    for tuple in tuples {
        faults.extend(check(tuple, &fields));
        faults.extend(missing(tuple, &["targetGroupArn", "weight"]));
        faults.extend(not_arns(tuple));
        if matches!(count(tuple, "weight"), Ok(Some(weight)) if weight > HEAVIEST) {
            faults.push(format!("`weight` must be from 0 to {HEAVIEST}"));
        }
        let group = tuple["targetGroupArn"].as_str().map(str::trim);
        let group = group.filter(|group| !is_expression(group));
        if let Some(group) = group {
            if known.contains(&group) {
                faults.push(format!("`forwardConfig` has target group {group} twice"));
            }
            known.push(group);
        }
    }
    let nothing = |tuple: &Value| count(tuple, "weight").ok().flatten() == Some(0);
    if tuples.iter().all(nothing) {
        faults
            .push("`forwardConfig` has only weights of 0: no request would be answered".to_owned());
    }
    faults
}

impl Shift {
    pub(super) fn read(spec: &Value) -> Result<Self, Failure> {
        let faults = check_shift(spec);
        if !faults.is_empty() {
            return Err(invalid(format!("{}.", faults.join("; "))));
        }
        let own = &spec[WRAPPER]["spec"];
        let small = |number: Option<i64>| i32::try_from(number.unwrap_or(0)).unwrap_or(0);
        if spec[WRAPPER]["type"] == "Inherit" {
            return Ok(Self::Inherit(small(count(own, "weightPercentage")?)));
        }
        let mut groups = Vec::new();
        for tuple in own["forwardConfig"].as_array().into_iter().flatten() {
            let group = text(tuple, "targetGroupArn").unwrap_or_default();
            groups.push((group, small(count(tuple, "weight")?)));
        }
        Ok(Self::Standalone {
            balancer: text(own, "loadBalancer").unwrap_or_default(),
            place: Place {
                listener: text(own, "listener").unwrap_or_default(),
                rule: text(own, "listenerRuleArn").unwrap_or_default(),
            },
            groups,
        })
    }
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
