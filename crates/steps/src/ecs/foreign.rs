//! Whether a service is what a deployment, or what was there before it, made of it ([`crate::deployment::Foreign`]).
//!
//! Told by its task definition; and after a rolling deployment, which changes more than that, by the settings that
//! `UpdateService` knows. AWS's circuit breaker brings back what was there before, so it is no other hand.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use slipway_model::status::Failure;

use super::rollback::{Before, RollbackData, keepable};
use super::rolling_deploy::{Phase, State};
use super::service::Described;
use super::site::Site;
use super::task_definition::short;
use crate::aws::document::fields;
use crate::deployment::Foreign;

/// Fields of `UpdateService` that are no setting, or that AWS moves by itself: scaling the count, ECS the version of its
/// platform.
const NOT_COMPARED: &[&str] = &[
    "cluster",
    "deploymentController",
    "desiredCount",
    "forceNewDeployment",
    "platformVersion",
    "service",
    "taskDefinition",
];

/// Digests of settings by field: values may hold secrets.
pub(super) type Digests = BTreeMap<String, String>;

/// The settings of a service as AWS shows it. What is empty counts as what is not there.
pub(super) fn digests(service: &Value) -> Digests {
    let service = keepable(service.clone());
    let compared = fields("UpdateService").filter(|name| !NOT_COMPARED.contains(name));
    let told = compared.filter_map(|name| {
        let value = plain(service.get(name)?)?;
        let digest = Sha256::digest(value.to_string());
        let digest = digest.iter().map(|byte| format!("{byte:02x}"));
        Some((name.to_owned(), digest.collect()))
    });
    told.collect()
}

/// A value with its members in order and without those that say nothing; `None` when nothing is left.
fn plain(value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::Number(number) if number.as_f64() == Some(0.0) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(items) => {
            let items: Vec<Value> = items.iter().filter_map(plain).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(members) => {
            let members = members.iter();
            let mut members: Vec<(String, Value)> = members
                .filter_map(|(name, member)| Some((name.clone(), plain(member)?)))
                .collect();
            members.sort_by(|one, other| one.0.cmp(&other.0));
            (!members.is_empty()).then(|| Value::Object(members.into_iter().collect::<Map<_, _>>()))
        }
        other => Some(other.clone()),
    }
}

/// Refuses a service that a deployment replaced, and that runs something else by now than one of `ran`, what served first: it
/// only ever changed how many tasks there are.
pub(super) fn check(
    site: &Site,
    (name, found): (&str, &Described),
    (ran, desired): (&[&str], i64),
) -> Result<(), Failure> {
    let runs = found.service.task_definition().unwrap_or_default();
    if ran.iter().any(|ran| short(runs) == short(ran)) {
        return Ok(());
    }
    let ran = ran.first().copied().unwrap_or_default();
    Err(Foreign {
        resource: format!("Service {name} in {site}"),
        found: format!("it runs {}", named(runs)),
        put: None,
        before: Some(format!("{} with {desired} tasks", short(ran))),
    }
    .left())
}

/// A service that this run created, and that runs something else by now.
pub(super) fn created(
    (site, name): (&Site, &str),
    runs: Option<&str>,
    put: Option<&str>,
) -> Failure {
    let foreign = Foreign {
        resource: format!("Service {name} in {site}"),
        found: format!("it runs {}", named(runs.unwrap_or_default())),
        put: put.map(|put| short(put).to_owned()),
        before: None,
    };
    foreign.left()
}

fn named(runs: &str) -> &str {
    match runs {
        "" => "an unknown task definition",
        runs => short(runs),
    }
}

/// What the attempts of a rolling deployment may have made of a service.
pub(super) struct Ours {
    /// The service before the first of them.
    before: Option<Before>,
    /// Their task definitions, oldest first.
    definitions: Vec<String>,
    put: Vec<Digests>,
    /// Fields of changes whose answers did not come.
    unheard: Vec<String>,
    /// Whether a creation was cut off before its answer came.
    created_unheard: bool,
}

impl Ours {
    pub(super) fn of(data: &RollbackData, attempts: &[State]) -> Self {
        let mut ours = Self {
            before: data.before.clone(),
            definitions: Vec::new(),
            put: Vec::new(),
            unheard: Vec::new(),
            created_unheard: false,
        };
        for state in attempts {
            if state.phase < Phase::Change {
                continue;
            }
            let registered = state.task_definition.as_ref();
            ours.definitions
                .extend(registered.map(|registered| registered.arn.clone()));
            match &state.put {
                Some(put) => ours.put.push(put.clone()),
                None => {
                    ours.created_unheard |= data.before.is_none();
                    ours.unheard.extend(state.sent.iter().cloned());
                }
            }
        }
        ours
    }

    /// Refuses a service that somebody else changed. `now` is how AWS shows it.
    pub(super) fn check(&self, site: &Site, name: &str, now: &Value) -> Result<(), Failure> {
        let Some(found) = self.foreign(now) else {
            return Ok(());
        };
        let told = |before: &Before| {
            let (runs, desired) = (short(before.task_definition()), before.desired());
            format!("{runs} with {desired} tasks")
        };
        Err(Foreign {
            resource: format!("Service {name} in {site}"),
            found,
            put: self.definitions.last().map(|arn| short(arn).to_owned()),
            before: self.before.as_ref().map(told),
        }
        .left())
    }

    /// What is there and is nobody's of this run, as a clause.
    fn foreign(&self, now: &Value) -> Option<String> {
        let runs = now["taskDefinition"].as_str().unwrap_or_default();
        let before = self.before.as_ref();
        let passed_over = before.and_then(|before| before.passed_over.as_ref());
        let known = self.definitions.iter().any(|arn| arn == runs)
            || before.is_some_and(|before| before.task_definition() == runs)
            || passed_over.is_some_and(|passed_over| passed_over.task_definition == runs);
        if !known {
            return Some(format!("it runs {}", named(runs)));
        }
        let other = self.settings(&digests(now));
        (!other.is_empty()).then(|| {
            format!(
                "it runs {} with another `{}`",
                short(runs),
                other.join("`, `")
            )
        })
    }

    /// Settings that are neither as before nor as this run put them.
    fn settings(&self, now: &Digests) -> Vec<&'static str> {
        if self.created_unheard {
            return Vec::new();
        }
        let before = self.before.as_ref();
        let passed_over = before.and_then(|before| before.passed_over.as_ref());
        let passed_over = passed_over.map(|passed_over| &passed_over.settings);
        let before = before.map(|before| digests(&before.service));
        let known = before.iter().chain(passed_over).chain(&self.put);
        let known: Vec<&Digests> = known.collect();
        let compared = fields("UpdateService").filter(|name| !NOT_COMPARED.contains(name));
        let other = compared.filter(|name| {
            let heard = !self.unheard.iter().any(|sent| sent == name);
            heard && known.iter().all(|known| known.get(*name) != now.get(*name))
        });
        other.collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ours(put: Option<&Value>, sent: &[&str]) -> Ours {
        let before = json!({"taskDefinition": "arn:t/web:1", "desiredCount": 2, "networkConfiguration": {"a": [1]}});
        Ours {
            before: Some(Before {
                service: before,
                running: 2,
                scaling: None,
                passed_over: None,
            }),
            definitions: vec!["arn:t/web:2".to_owned()],
            put: put.map(digests).into_iter().collect(),
            unheard: sent.iter().map(|name| (*name).to_owned()).collect(),
            created_unheard: false,
        }
    }

    #[test]
    fn what_the_run_or_aws_did_is_no_other_hand() {
        let put = json!({"taskDefinition": "arn:t/web:2", "networkConfiguration": {"a": [2]}});
        for (now, sent) in [
            // As it was, also brought back by the circuit breaker, and scaled meanwhile.
            (
                json!({"taskDefinition": "arn:t/web:1", "desiredCount": 7, "networkConfiguration": {"a": [1]}}),
                None,
            ),
            (put.clone(), None),
            // AWS shows what is empty or leaves it out.
            (
                json!({"taskDefinition": "arn:t/web:2", "networkConfiguration": {"a": [2], "b": []}, "loadBalancers": []}),
                None,
            ),
            // Cut off before the answer.
            (
                json!({"taskDefinition": "arn:t/web:2", "networkConfiguration": {"a": [2]}}),
                Some("networkConfiguration"),
            ),
        ] {
            let ours = match sent {
                None => ours(Some(&put), &[]),
                Some(sent) => ours(None, &[sent]),
            };
            assert_eq!(ours.foreign(&now), None, "{now}");
        }
    }

    #[test]
    fn another_task_definition_or_setting_is_somebody_elses() {
        let put = json!({"taskDefinition": "arn:t/web:2", "networkConfiguration": {"a": [2]}});
        let ours = ours(Some(&put), &[]);
        let told = |now: Value| ours.foreign(&now).unwrap_or_default();
        assert_eq!(
            told(json!({"taskDefinition": "arn:t/web:7", "networkConfiguration": {"a": [2]}})),
            "it runs web:7"
        );
        assert_eq!(
            told(
                json!({"taskDefinition": "arn:t/web:2", "networkConfiguration": {"a": [3]}, "loadBalancers": [{"x": 1}]})
            ),
            "it runs web:2 with another `loadBalancers`, `networkConfiguration`"
        );
    }
}
