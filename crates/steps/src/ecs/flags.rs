//! Specs whose fields are all true or false, written as booleans, as texts or as expressions.

use serde_json::Value;
use slipway_model::status::Failure;

use crate::deployment::spec::{Kind, check, flag};

/// `spec` of `EcsRollingDeploy`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Spec {
    pub(super) same_as_running: bool,
    pub(super) force: bool,
    pub(super) skip_scaling: bool,
}

/// Names of its fields.
pub(super) const FLAGS: [&str; 3] = [
    "sameAsAlreadyRunningInstances",
    "forceNewDeployment",
    "skipApplicationScaling",
];

impl Spec {
    pub(super) fn read(spec: &Value) -> Result<Self, Failure> {
        Ok(Self {
            same_as_running: flag(spec, FLAGS[0])?,
            force: flag(spec, FLAGS[1])?,
            skip_scaling: flag(spec, FLAGS[2])?,
        })
    }
}

/// Faults of a spec whose fields are all booleans or texts for them.
pub(super) fn check_flags(spec: &Value, known: &[&str]) -> Vec<String> {
    check(
        spec,
        &known
            .iter()
            .map(|name| (*name, Kind::Flag))
            .collect::<Vec<_>>(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_flag_is_true_false_or_an_expression() {
        let table = [
            (json!({}), ""),
            (
                json!({"forceNewDeployment": true, "skipApplicationScaling": "false"}),
                "",
            ),
            (
                json!({"forceNewDeployment": "<+pipeline.variables.force>"}),
                "",
            ),
            (
                json!({"forceNewDeployment": null, "sameAsAlreadyRunningInstances": ""}),
                "",
            ),
            (
                json!({"forceNewDeployment": "perhaps"}),
                "`forceNewDeployment` must be true or false",
            ),
            (
                json!({"forceNewDeployment": 1}),
                "`forceNewDeployment` must be true or false",
            ),
            (
                json!({"forceNewDeploymnt": true}),
                "`forceNewDeploymnt` is not a field of this step; did you mean `forceNewDeployment`?",
            ),
            (
                json!({"colour": "blue"}),
                "`colour` is not a field of this step",
            ),
        ];
        for (spec, faults) in table {
            assert_eq!(check_flags(&spec, &FLAGS).join("; "), faults, "{spec}");
        }
        assert!(Spec::read(&json!({"forceNewDeployment": "True"})).is_ok_and(|spec| spec.force));
        assert!(Spec::read(&json!({"forceNewDeployment": "perhaps"})).is_err());
    }
}
