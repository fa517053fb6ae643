//! Checks of a plan that only the engine can make: what it would have to decide and cannot yet.

use slipway_plan::{FailureStrategy, Node, Plan};

use crate::strategy;

/// Names that `errors` of a failure strategy may hold (FEATURES 6).
const ERROR_TYPES: &[&str] = &[
    "AllErrors",
    "ApprovalRejection",
    "Authentication",
    "Authorization",
    "ConfigurationFailure",
    "Connectivity",
    "DelegateProvisioning",
    "DelegateRestart",
    "InfrastructureFailure",
    "InputTimeoutError",
    "PluginImageFailure",
    "PolicyEvaluationFailure",
    "ResourceLimitsFailure",
    "RetryableTransientFailure",
    "Timeout",
    "Unknown",
    "UserMarkedFailure",
    "Verification",
];

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
        check_strategies(&place, &stage.failure_strategies, &mut faults);
        check_nodes(&stage.steps, &mut faults);
        check_nodes(&stage.rollback_steps, &mut faults);
    }
    faults
}

fn check_nodes(nodes: &[Node], faults: &mut Vec<Fault>) {
    for node in nodes {
        match node {
            Node::Step(step) => {
                check_strategies(step.id.as_str(), &step.failure_strategies, faults);
            }
            Node::Group(group) => {
                check_strategies(group.id.as_str(), &group.failure_strategies, faults);
                check_nodes(&group.nodes, faults);
                if !group.rollback_steps.is_empty() {
                    faults.push(Fault {
                        place: format!("{}.rollbackSteps", group.id),
                        message: "rollback steps of a step group come with a later version; put \
                                  them into the stage's rollbackSteps"
                            .to_owned(),
                    });
                }
            }
            Node::Parallel(parallel) => check_nodes(&parallel.branches, faults),
        }
    }
}

fn check_strategies(place: &str, strategies: &[FailureStrategy], faults: &mut Vec<Fault>) {
    for (index, strategy) in strategies.iter().enumerate() {
        let place = format!("{place}.failureStrategies[{index}].onFailure");
        for error in &strategy.errors {
            if !ERROR_TYPES.contains(&error.as_str()) {
                faults.push(Fault {
                    place: format!("{place}.errors"),
                    message: format!("`{error}` is not an error type of a failure strategy"),
                });
            }
        }
        if let Err(message) = strategy::parse(&strategy.action, &strategy.spec) {
            faults.push(Fault {
                place: format!("{place}.action"),
                message,
            });
        }
    }
}
