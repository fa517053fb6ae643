//! Service instances: what runs now of what was deployed, by deployment type.

use slipway_model::status::{ErrorType, Failure};
use slipway_store::record::{DeployedRecord, InstanceRecord};

use crate::context::StepServices;
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
