//! Specs whose fields are all true or false, written as booleans, as texts or as expressions.

use serde_json::Value;
use slipway_model::status::{ErrorType, Failure};

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
        let flag = |name: &str| match &spec[name] {
            Value::Null => Ok(false),
            Value::Bool(flag) => Ok(*flag),
            Value::String(text) if text.trim().is_empty() => Ok(false),
            Value::String(text) if text.trim().eq_ignore_ascii_case("true") => Ok(true),
            Value::String(text) if text.trim().eq_ignore_ascii_case("false") => Ok(false),
            _ => Err(Failure {
                error: ErrorType::Unknown,
                message: format!(
                    "Invalid request: `{name}` of EcsRollingDeploy must be true or false."
                ),
                left_behind: None,
            }),
        };
        Ok(Self {
            same_as_running: flag(FLAGS[0])?,
            force: flag(FLAGS[1])?,
            skip_scaling: flag(FLAGS[2])?,
        })
    }
}

/// Faults of a spec whose fields are all booleans or texts for them.
pub(super) fn check_flags(spec: &Value, known: &[&str]) -> Vec<String> {
    let fields = spec.as_object().into_iter().flatten();
    fields
        .filter_map(|(name, value)| {
            if !known.contains(&name.as_str()) {
                let near = known.iter().find(|k| strsim::jaro_winkler(k, name) > 0.85);
                let hint = near
                    .map(|near| format!("; did you mean `{near}`?"))
                    .unwrap_or_default();
                return Some(format!("`{name}` is not a field of this step{hint}"));
            }
            let fits = match value {
                Value::Null | Value::Bool(_) => true,
                Value::String(text) => {
                    let text = text.trim();
                    text.is_empty() || text.contains("<+") || text.parse::<bool>().is_ok()
                }
                _ => false,
            };
            (!fits).then(|| format!("`{name}` must be true or false"))
        })
        .collect()
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
