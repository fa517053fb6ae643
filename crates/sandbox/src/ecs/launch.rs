//! Where tasks are launched, and what ECS refuses of it before it launches any.

use serde_json::Value;

use super::task_definition::TaskDefinition;
use super::values::{LAUNCH_TYPES, check_items, check_one};
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Most subnets and security groups of a task (ECS API reference, `AwsVpcConfiguration`).
const MOST_OF_NETWORK: [(&str, usize); 2] = [("subnets", 16), ("securityGroups", 5)];
/// Platform versions of Fargate for Linux and for Windows.
const PLATFORMS: [&str; 6] = ["LATEST", "1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0"];
/// Most placement strategies and constraints (ECS API reference, `CreateService`).
const MOST_STRATEGIES: usize = 5;
const MOST_CONSTRAINTS: usize = 10;

/// The launch type that a request or deployment leads to: its own, that of its capacity providers, or EC2.
pub(crate) fn launch_type(settings: &Document) -> String {
    if let Some(own) = settings.get("launchType").and_then(Value::as_str) {
        return own.to_owned();
    }
    let fargate = providers(settings).any(|name| name.starts_with("FARGATE"));
    if fargate { "FARGATE" } else { "EC2" }.to_owned()
}

/// Names in the capacity provider strategy of a request or deployment.
pub(super) fn providers(settings: &Document) -> impl Iterator<Item = &str> {
    let strategy = settings.get("capacityProviderStrategy");
    let providers = strategy.and_then(Value::as_array).into_iter().flatten();
    providers.filter_map(|one| one.get("capacityProvider").and_then(Value::as_str))
}

pub(super) fn network(settings: &Document) -> Option<&Document> {
    let configuration = settings.get("networkConfiguration")?;
    configuration.get("awsvpcConfiguration")?.as_object()
}

fn refuse(message: impl Into<String>) -> Result<(), ApiError> {
    Err(ApiError::invalid_parameter(message))
}

/// Whether a definition can run as `settings` say, in AWS's words where it cannot.
pub(super) fn check(definition: &TaskDefinition, settings: &Document) -> Result<(), ApiError> {
    check_one(Fields(settings), "", "launchType", LAUNCH_TYPES)?;
    let launch_type = launch_type(settings);
    let known = ["EC2", "FARGATE"].contains(&launch_type.as_str());
    if known && !definition.compatibilities.contains(&launch_type) {
        return refuse(format!(
            "Task definition does not support launch_type {launch_type}."
        ));
    }
    check_platform(Fields(settings), &launch_type)?;
    let Some(vpc) = network(settings).map(Fields) else {
        return match definition.is_awsvpc() {
            true => refuse(
                "Network Configuration must be provided when networkMode 'awsvpc' is specified.",
            ),
            false => Ok(()),
        };
    };
    if !definition.is_awsvpc() {
        return refuse(
            "Network Configuration is not valid for the given networkMode of this task definition.",
        );
    }
    if vpc.list("subnets")?.is_empty() {
        return refuse("subnets can not be empty.");
    }
    for (member, most) in MOST_OF_NETWORK {
        if vpc.list(member)?.len() > most {
            return refuse(format!("{member} can have at most {most} items."));
        }
    }
    let path = "networkConfiguration.awsvpcConfiguration.";
    check_one(vpc, path, "assignPublicIp", &["ENABLED", "DISABLED"])?;
    if vpc.text("assignPublicIp")? == Some("ENABLED") && launch_type != "FARGATE" {
        return refuse("Assign public IP is not supported for this launch type.");
    }
    Ok(())
}

fn check_platform(settings: Fields<'_>, launch_type: &str) -> Result<(), ApiError> {
    match settings.text("platformVersion")? {
        Some(_) if launch_type == "EC2" => {
            refuse("The platform version must be null when specifying an EC2 launch type.")
        }
        Some(version) if launch_type == "FARGATE" && !PLATFORMS.contains(&version) => {
            Err(ApiError::client(
                "PlatformUnknownException",
                "The specified platform does not exist.",
            ))
        }
        _ => Ok(()),
    }
}

/// Whether tasks of a launch type can be placed as a request asks for.
pub(super) fn check_placement(request: Fields<'_>, launch_type: &str) -> Result<(), ApiError> {
    let strategies = request.objects("placementStrategy")?;
    let constraints = request.objects("placementConstraints")?;
    check_items(
        request,
        "",
        "placementStrategy",
        "type",
        &["random", "spread", "binpack"],
    )?;
    check_items(
        request,
        "",
        "placementConstraints",
        "type",
        &["distinctInstance", "memberOf"],
    )?;
    for (what, items, most) in [
        ("strategies", &strategies, MOST_STRATEGIES),
        ("constraints", &constraints, MOST_CONSTRAINTS),
    ] {
        if !items.is_empty() && launch_type == "FARGATE" {
            return refuse(format!(
                "Placement {what} are not supported with FARGATE launch type."
            ));
        }
        if items.len() > most {
            return refuse(format!("Maximum number of {what} is {most}."));
        }
    }
    for strategy in strategies.into_iter().map(Fields) {
        let field = strategy.text("field")?.unwrap_or_default();
        let counted = ["cpu", "memory"].contains(&field.to_ascii_lowercase().as_str());
        if strategy.text("type")? == Some("binpack") && !counted {
            return refuse(format!("binpack field '{field}' is invalid."));
        }
    }
    for constraint in constraints.into_iter().map(Fields) {
        let expression = constraint.text("expression")?.is_some();
        if constraint.text("type")? == Some("distinctInstance") && expression {
            return refuse("distinctInstance expression should not be specified.");
        }
    }
    Ok(())
}
