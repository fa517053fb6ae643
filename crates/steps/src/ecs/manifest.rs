//! The manifests of an ECS service, read, resolved and checked.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_model::status::Failure;

use crate::context::StepContext;
use crate::deployment::invalid;
use crate::deployment::manifest::{Reader, kept, once};

/// What a rolling deployment needs of the manifests. Secrets are holes: it is stored as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Documents {
    /// To register, or the ARN that the service names (`ecsTaskDefinitionArn`).
    pub(super) task_definition: TaskDefinition,
    /// `CreateService`, without what the deployment decides (`cluster`, `taskDefinition`).
    pub(super) service: Value,
    /// `RegisterScalableTarget`, each without `ResourceId`.
    pub(super) scalable_targets: Vec<Value>,
    /// `PutScalingPolicy`, each without `ResourceId`.
    pub(super) scaling_policies: Vec<Value>,
}

/// Where the task definition comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum TaskDefinition {
    Document(Value),
    Arn(String),
}

impl Documents {
    /// Reads them all, logging each. Expressions may use `names` besides those of the run.
    fn fetch(
        cx: &mut StepContext<'_>,
        names: &[(&str, slipway_expr::Value)],
    ) -> Result<Self, Failure> {
        let stage = cx.stage();
        let Some(service) = &stage.service else {
            return Err(invalid(format!(
                "Stage {} has no service, and step {} deploys one.",
                stage.identifier,
                cx.step().identifier
            )));
        };
        if service.manifests.is_empty() {
            return Err(invalid(format!(
                "No manifests found in stage {}. {} step requires a manifest defined in stage service \
                 definition",
                stage.identifier,
                cx.step().step_type
            )));
        }
        let arn = match cx.evaluate(&service.spec["ecsTaskDefinitionArn"])? {
            Value::String(arn) if !arn.trim().is_empty() => Some(arn.trim().to_owned()),
            _ => None,
        };
        let mut reader = Reader {
            cx,
            manifests: &service.manifests,
            names,
        };
        let task_definition = match arn {
            Some(arn) => TaskDefinition::Arn(arn),
            None => {
                let definition = reader.one("EcsTaskDefinition", "RegisterTaskDefinition")?;
                if definition["family"].is_null() || definition["family"] == "" {
                    return Err(invalid("The EcsTaskDefinition manifest has no `family`."));
                }
                TaskDefinition::Document(definition)
            }
        };
        let mut definition = reader.one("EcsServiceDefinition", "CreateService")?;
        reader.take_out(
            &mut definition,
            &["taskDefinition", "cluster", "clientToken"],
        );
        let mut scalable_targets =
            reader.all("EcsScalableTargetDefinition", "RegisterScalableTarget")?;
        let mut scaling_policies = reader.all("EcsScalingPolicyDefinition", "PutScalingPolicy")?;
        for document in scalable_targets.iter_mut().chain(&mut scaling_policies) {
            reader.take_out(document, &["ResourceId"]);
        }
        Ok(Self {
            task_definition,
            service: definition,
            scalable_targets,
            scaling_policies,
        })
    }

    /// Reads them once, and keeps them: `key` is where they are from then on.
    pub(super) async fn once(
        cx: &mut StepContext<'_>,
        key: &mut Option<String>,
    ) -> Result<Self, Failure> {
        once(cx, key, |cx| Self::fetch(cx, &[])).await
    }

    /// The same, with names that only the step knows.
    pub(super) async fn once_with(
        cx: &mut StepContext<'_>,
        key: &mut Option<String>,
        names: &[(&str, slipway_expr::Value)],
    ) -> Result<Self, Failure> {
        once(cx, key, |cx| Self::fetch(cx, names)).await
    }

    /// Gets back what another step of the stage kept under `key`.
    pub(super) async fn again(cx: &StepContext<'_>, key: &str) -> Result<Self, Failure> {
        kept(cx, key).await
    }

    /// `serviceName` of the service definition.
    pub(super) fn service_name(&self) -> Result<&str, Failure> {
        match self.service["serviceName"].as_str() {
            Some(name) if !name.is_empty() => Ok(name),
            _ => Err(invalid(
                "The EcsServiceDefinition manifest has no `serviceName`.".to_owned(),
            )),
        }
    }
}
