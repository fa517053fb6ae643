//! What `RegisterTaskDefinition` refuses of settings that name one another or go together, in AWS's words (API reference,
//! *ContainerDefinition*; developer guide, "Task definition parameters").

use super::register::Size;
use super::{launch_rules, values};
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Most containers of a task definition (ECS service quotas).
const MOST_CONTAINERS: usize = 10;
/// Highest number of a port.
const LAST_PORT: i64 = 65_535;
/// What the `awslogs` driver cannot do without.
const AWSLOGS: [&str; 2] = ["awslogs-region", "awslogs-group"];

/// A rule that was broken.
pub(super) fn refuse<T>(message: impl Into<String>) -> Result<T, ApiError> {
    Err(ApiError::client_exception(message))
}

/// Checks containers that have a name and an image each, whatever the task is launched on.
pub(super) fn check(request: Fields<'_>, size: &Size) -> Result<(), ApiError> {
    values::check_definition(request)?;
    let containers = request.objects("containerDefinitions")?;
    let containers: Vec<Fields<'_>> = containers.into_iter().map(Fields).collect();
    if containers.len() > MOST_CONTAINERS {
        return refuse("Too many containers.");
    }
    let mode = request.text("networkMode")?.unwrap_or("bridge");
    for &container in &containers {
        ports(container, mode)?;
        memory(container, size)?;
        mounts(request, container, &containers)?;
        logs(container, &AWSLOGS)?;
        needs(container, &containers)?;
        if !container.list("secrets")?.is_empty() && launch_rules::executes_as(request)?.is_none() {
            return refuse(
                "When you are specifying container secrets, you must also specify a value for 'executionRoleArn'.",
            );
        }
    }
    order(&containers)?;
    sums(&containers, size)
}

fn name<'a>(container: Fields<'a>) -> Result<&'a str, ApiError> {
    Ok(container.text("name")?.unwrap_or_default())
}

fn find<'a>(containers: &[Fields<'a>], wanted: &str) -> Result<Option<Fields<'a>>, ApiError> {
    for &container in containers {
        if name(container)? == wanted {
            return Ok(Some(container));
        }
    }
    Ok(None)
}

/// A host port is free to choose in `bridge` mode only.
fn ports(container: Fields<'_>, mode: &str) -> Result<(), ApiError> {
    let mappings = container.objects("portMappings")?;
    if mode == "none" && !mappings.is_empty() {
        return refuse("Port mappings are not supported when networkMode=none.");
    }
    for mapping in mappings.into_iter().map(Fields) {
        let invalid = |what: &str| {
            let name = name(container)?;
            refuse(format!("Invalid '{what}' setting for container '{name}'."))
        };
        let (inside, host) = (
            mapping.integer("containerPort")?,
            mapping.integer("hostPort")?,
        );
        if mapping.text("containerPortRange")?.is_some() {
            if inside.or(host).is_some() {
                return refuse("cannot specify both single port and port range");
            }
            continue;
        }
        let Some(inside) = inside.filter(|port| (1..=LAST_PORT).contains(port)) else {
            return invalid("containerPort");
        };
        let host = host.unwrap_or(0);
        if !(0..=LAST_PORT).contains(&host) {
            return invalid("hostPort");
        }
        // 0 is as good as nothing: AWS fills in the container's port.
        if ["awsvpc", "host"].contains(&mode) && ![0, inside].contains(&host) {
            return refuse(format!(
                "When networkMode={mode}, the host ports and container ports in port mappings must match."
            ));
        }
    }
    if mode != "awsvpc" {
        return Ok(());
    }
    for (member, what) in [
        ("links", "Links are not supported"),
        ("dnsServers", "DNS servers are not supported on container"),
    ] {
        if !container.list(member)?.is_empty() {
            return refuse(format!("{what} when networkMode=awsvpc."));
        }
    }
    Ok(())
}

fn memory(container: Fields<'_>, size: &Size) -> Result<(), ApiError> {
    let own = container.integer("memory")?;
    let reserved = container.integer("memoryReservation")?;
    let name = name(container)?;
    if let (Some(own), Some(reserved)) = (own, reserved)
        && own < reserved
    {
        return refuse(format!(
            "Invalid setting for container '{name}'. 'memory' must be greater than or equal to 'memoryReservation'."
        ));
    }
    if let (Some(own), Some(task)) = (own, size.memory)
        && own > task
    {
        return refuse(format!(
            "The 'memory' setting for container '{name}' is greater than for the task."
        ));
    }
    Ok(())
}

/// What all containers have together may not be more than the task has.
fn sums(containers: &[Fields<'_>], size: &Size) -> Result<(), ApiError> {
    for (member, of_task, limit) in [
        ("cpu", "cpu", size.cpu),
        ("memoryReservation", "memory", size.memory),
    ] {
        let mut sum: i64 = 0;
        for container in containers {
            sum = sum.saturating_add(container.integer(member)?.unwrap_or(0));
        }
        if limit.is_some_and(|limit| sum > limit) {
            return refuse(format!(
                "The sum of all container '{member}' values cannot be greater than the value of the task '{of_task}'."
            ));
        }
    }
    Ok(())
}

/// Volumes and containers that a container takes its files from must be there.
fn mounts(
    request: Fields<'_>,
    container: Fields<'_>,
    containers: &[Fields<'_>],
) -> Result<(), ApiError> {
    let volumes = request.objects("volumes")?;
    let known = |name: &str| {
        volumes
            .iter()
            .any(|one| one.get("name") == Some(&name.into()))
    };
    for mount in container.objects("mountPoints")?.into_iter().map(Fields) {
        let volume = mount.text("sourceVolume")?.unwrap_or("null");
        if !known(volume) {
            return refuse(format!("Unknown volume '{volume}'."));
        }
    }
    for from in container.objects("volumesFrom")?.into_iter().map(Fields) {
        let source = from.text("sourceContainer")?.unwrap_or("null");
        if find(containers, source)?.is_none() {
            return refuse(format!(
                "Invalid 'volumesFrom' setting. Unknown container: '{source}'."
            ));
        }
    }
    Ok(())
}

/// The options that the `awslogs` driver must be given.
pub(super) fn logs(container: Fields<'_>, required: &[&str]) -> Result<(), ApiError> {
    let Some(given) = container.object("logConfiguration")?.map(Fields) else {
        return Ok(());
    };
    if given.text("logDriver")? != Some("awslogs") {
        return Ok(());
    }
    let none = Document::new();
    let options = Fields(given.object("options")?.unwrap_or(&none));
    let mut missing = Vec::new();
    for option in required {
        if options.text(option)?.is_none_or(str::is_empty) {
            missing.push(*option);
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => refuse(format!(
            "Log driver awslogs requires options: {}",
            missing.join(", ")
        )),
    }
}

/// Containers that a container waits for.
fn needed<'a>(container: Fields<'a>) -> Result<Vec<(&'a str, &'a str)>, ApiError> {
    let each = container.objects("dependsOn")?.into_iter().map(Fields);
    each.map(|one| {
        let text = |member: &str| Ok(one.text(member)?.unwrap_or_default());
        Ok((text("containerName")?, text("condition")?))
    })
    .collect()
}

/// A container waits for others of its task, and only for what can happen to them.
fn needs(container: Fields<'_>, containers: &[Fields<'_>]) -> Result<(), ApiError> {
    for (other, condition) in needed(container)? {
        let Some(found) = find(containers, other)? else {
            return refuse(format!(
                "Cannot depend on container + '{other}' because it does not exist"
            ));
        };
        let essential = found.flag("essential")?.unwrap_or(true);
        match condition {
            // The task would end with it.
            "COMPLETE" | "SUCCESS" if essential => {
                return refuse(
                    "A dependency container with SUCCESS or COMPLETE condition cannot be an essential container",
                );
            }
            "HEALTHY" if found.object("healthCheck")?.is_none() => {
                return refuse(
                    "A dependency container with HEALTHY condition must have health check configured",
                );
            }
            _ => {}
        }
    }
    Ok(())
}

/// No container waits for itself, neither directly nor through others.
fn order(containers: &[Fields<'_>]) -> Result<(), ApiError> {
    let mut waiting: Vec<(&str, Vec<&str>)> = Vec::new();
    for &container in containers {
        let needed = needed(container)?.into_iter();
        waiting.push((name(container)?, needed.map(|(other, _)| other).collect()));
    }
    // Those that wait for none of the rest could start; where none could, they wait for one another.
    while !waiting.is_empty() {
        let names: Vec<&str> = waiting.iter().map(|(name, _)| *name).collect();
        let before = waiting.len();
        waiting.retain(|(_, needed)| needed.iter().any(|other| names.contains(other)));
        if waiting.len() == before {
            return refuse("Container dependencies should not have a cycle");
        }
    }
    Ok(())
}
