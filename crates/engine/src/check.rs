//! Checks of a plan that only the engine can make: what it would have to decide and cannot yet.

use serde_json::Value;
use slipway_model::schema::ERRORS;
use slipway_plan::{FailureStrategy, Node, Plan};

use crate::strategy::{self, Action};

/// A fault of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where, below `pipeline`.
    pub place: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// Faults of a plan, in order; none means that the engine can walk it.
pub fn check(plan: &Plan) -> Vec<Fault> {
    let mut faults = Vec::new();
    for stage in plan.groups.iter().flatten() {
        let place = format!("stages.{}", stage.id);
        check_strategies(&place, &stage.failure_strategies, false, &mut faults);
        check_nodes(&stage.steps, &mut faults);
        check_nodes(&stage.rollback_steps, &mut faults);
    }
    faults
}

fn check_nodes(nodes: &[Node], faults: &mut Vec<Fault>) {
    for node in nodes {
        match node {
            Node::Step(step) => {
                check_strategies(step.id.as_str(), &step.failure_strategies, false, faults);
            }
            Node::Group(group) => {
                check_strategies(group.id.as_str(), &group.failure_strategies, true, faults);
                check_nodes(&group.nodes, faults);
                check_nodes(&group.rollback_steps, faults);
            }
            Node::Parallel(parallel) => check_nodes(&parallel.branches, faults),
        }
    }
}

fn check_strategies(
    place: &str,
    strategies: &[FailureStrategy],
    of_group: bool,
    faults: &mut Vec<Fault>,
) {
    for (index, strategy) in strategies.iter().enumerate() {
        let place = format!("{place}.failureStrategies[{index}].onFailure");
        for error in &strategy.errors {
            if !ERRORS.contains(&error.as_str()) {
                faults.push(Fault {
                    place: format!("{place}.errors"),
                    message: format!("`{error}` is not an error type of a failure strategy"),
                });
            }
        }
        let fault = action_fault(&strategy.action, &strategy.spec, of_group);
        faults.extend(fault.map(|message| Fault {
            place: format!("{place}.action"),
            message,
        }));
    }
}

/// What is wrong with the action of a failure strategy; some are those of a step group's only.
pub(crate) fn action_fault(action: &str, spec: &Value, of_group: bool) -> Option<String> {
    match strategy::parse(action, spec) {
        Err(message) => Some(message),
        Ok(Action::RetryStepGroup(_) | Action::StepGroupRollback) if !of_group => Some(format!(
            "`{action}` is an action of a step group's failure strategy"
        )),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::check;
    use crate::fixture::{With, group, on, plan, stage, step};

    #[test]
    fn what_cannot_be_decided_yet_is_refused_with_its_place() {
        let retry = |spec| on("AllErrors", "Retry", spec);
        let steps = vec![
            step("fine").strategy(retry(json!({"retryCount": "2", "retryIntervals": ["1m 30s"]}))),
            step("none").strategy(retry(json!({"retryCount": 0}))),
            step("odd").strategy(retry(json!({"retryCount": 1, "retryIntervals": ["soon"]}))),
            step("odd_one").strategy(retry(json!({"retryCount": 1, "condition": "<+step.exitCode> =="}))),
            step("if").strategy(retry(json!({"retryCount": 1, "condition": "<+step.exitCode> == 137"}))),
            step("again").strategy(retry(json!({
                "retryCount": 1, "onRetryFailure": {"action": {"type": "Retry", "spec": {"retryCount": 1}}},
            }))),
            group("g", vec![step("typo").strategy(on("Timeouts", "Ignore", json!(null)))])
                .strategy(on("Timeout", "ManualIntervention", json!({"timeout": "1d"})))
                .strategy(on("AllErrors", "ProceedWithDefaultValues", json!(null))),
            step("alone").strategy(on("AllErrors", "StepGroupRollback", json!(null))),
        ];
        let faults = check(&plan(vec![vec![stage("deploy", steps)]]));
        let told: Vec<String> = faults
            .iter()
            .map(|f| format!("{}: {}", f.place, f.message))
            .collect();
        insta::assert_snapshot!(told.join("\n"), @"
        none.failureStrategies[0].onFailure.action: `retryCount` must be a number from 1 to 100
        odd.failureStrategies[0].onFailure.action: `retryIntervals` must be durations such as 10s or 1m 30s
        odd_one.failureStrategies[0].onFailure.action: `condition` does not parse: expected an operand, found the end of the text (byte 19)
        again.failureStrategies[0].onFailure.action: `onRetryFailure` cannot be Retry again
        g.failureStrategies[0].onFailure.action: ManualIntervention needs `onTimeout.action`: what to do when nobody answers
        typo.failureStrategies[0].onFailure.errors: `Timeouts` is not an error type of a failure strategy
        alone.failureStrategies[0].onFailure.action: `StepGroupRollback` is an action of a step group's failure strategy
        ");
    }
}
