//! Service instances: what runs now of what was deployed, by deployment type.

use slipway_model::status::{ErrorType, Failure};
use slipway_plan::{ConnectorPlan, InfrastructurePlan};
use slipway_store::record::{DeployedRecord, InstanceRecord};

use crate::context::{StepContext, StepServices};
use crate::{asg, ecs, lambda};

/// What runs now of `deployed`, seen with the credentials of its connector.
pub async fn count(
    services: &StepServices,
    deployed: &DeployedRecord,
) -> Result<Vec<InstanceRecord>, Failure> {
    match deployed.deployment_type.as_str() {
        "Asg" => asg::instances::count(services, deployed).await,
        "AwsLambda" => lambda::instances::count(services, deployed).await,
        "ECS" => ecs::instances::count(services, deployed).await,
        other => Err(Failure {
            error: ErrorType::Unknown,
            message: format!("This version cannot count instances of deployment type {other}."),
            left_behind: None,
        }),
    }
}

/// The infrastructure's connector with its expressions resolved, to count with later.
pub(crate) fn connector(
    cx: &StepContext<'_>,
    infrastructure: &InfrastructurePlan,
) -> Result<ConnectorPlan, Failure> {
    match &infrastructure.connector {
        Some(connector) => Ok(ConnectorPlan {
            spec: cx.evaluate(&connector.spec)?,
            ..connector.clone()
        }),
        None => Err(no_connector(infrastructure.identifier.as_str())),
    }
}

/// Instances that nobody can look for.
pub(crate) fn no_connector(infrastructure: &str) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!(
            "Infrastructure {infrastructure} has no AWS connector to count instances with."
        ),
        left_behind: None,
    }
}
