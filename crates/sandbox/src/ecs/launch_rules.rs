//! What Fargate asks of a task definition beyond what ECS does, in AWS's words (developer guide, "Task definition
//! differences for Fargate"). A definition that says nothing of Fargate may break these rules, and runs on instances only.

use super::fargate;
use super::register::Size;
use super::rules::{logs, refuse};
use crate::ecr;
use crate::error::ApiError;
use crate::fields::Fields;

/// Log drivers that Fargate has.
const LOG_DRIVERS: [&str; 3] = ["awslogs", "splunk", "awsfirelens"];

/// The role that the agent pulls images and writes logs with.
pub(super) fn executes_as<'a>(request: Fields<'a>) -> Result<Option<&'a str>, ApiError> {
    Ok(request
        .text("executionRoleArn")?
        .filter(|role| !role.is_empty()))
}

/// Whether Fargate can run the definition.
pub(super) fn check(request: Fields<'_>, size: &Size) -> Result<(), ApiError> {
    if request.text("networkMode")? != Some("awsvpc") {
        return refuse("Fargate only supports network mode ‘awsvpc’.");
    }
    let missing = |name: &str| {
        ApiError::client_exception(format!(
            "Fargate requires that '{name}' be defined at the task level."
        ))
    };
    let cpu = size.cpu.ok_or_else(|| missing("cpu"))?;
    let memory = size.memory.ok_or_else(|| missing("memory"))?;
    fargate::check(cpu, memory)?;
    let unsupported = |what: &str| {
        refuse(format!(
            "Fargate compatible task definitions do not support {what}"
        ))
    };
    if request.text("ipcMode")?.is_some() {
        return unsupported("ipcMode");
    }
    if !request.list("placementConstraints")?.is_empty() {
        return unsupported("constraints");
    }
    for volume in request.objects("volumes")?.into_iter().map(Fields) {
        if volume.object("dockerVolumeConfiguration")?.is_some() {
            return unsupported("dockerVolumeConfiguration");
        }
        let host = volume.object("host")?.map(Fields);
        if let Some(host) = host
            && host.text("sourcePath")?.is_some()
        {
            return unsupported("sourcePath");
        }
    }
    let role = executes_as(request)?;
    for container in request.objects("containerDefinitions")? {
        self::container(Fields(container), role)?;
    }
    Ok(())
}

fn container(container: Fields<'_>, role: Option<&str>) -> Result<(), ApiError> {
    if container.flag("privileged")? == Some(true) {
        return refuse("Fargate requires that the 'privileged' setting be 'false'.");
    }
    if !container.list("dockerSecurityOptions")?.is_empty() {
        return refuse("Fargate compatible task definitions do not support dockerSecurityOptions");
    }
    if let Some(linux) = container.object("linuxParameters")?.map(Fields)
        && !linux.list("devices")?.is_empty()
    {
        return refuse("Fargate compatible task definitions do not support devices");
    }
    let needs_role = |what: &str| {
        refuse(format!(
            "Fargate requires task definition to have execution role ARN to support {what}."
        ))
    };
    if role.is_none() && ecr::is_private(container.text("image")?.unwrap_or_default()) {
        return needs_role("ECR images");
    }
    let Some(logging) = container.object("logConfiguration")?.map(Fields) else {
        return Ok(());
    };
    let driver = logging.text("logDriver")?.unwrap_or_default();
    if !LOG_DRIVERS.contains(&driver) {
        return refuse(format!(
            "{driver} is not a valid log driver. Must be one of [{}]",
            LOG_DRIVERS.join(", ")
        ));
    }
    if driver == "awslogs" && role.is_none() {
        return needs_role("log driver awslogs");
    }
    logs(container, &["awslogs-stream-prefix"])
}
