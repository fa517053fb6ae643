//! `RegisterTaskDefinition`: what is refused, what is filled in, and the new revision.

use serde_json::{Value, json};

use super::cluster::is_name;
use super::task_definition::{
    ContainerSpec, Port, TaskDefinition, TaskDefinitionStatus, latest, row_key,
};
use super::{fargate, launch_rules, role, rules, tag};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, default_to, omit};
use crate::iam::trust;

/// Largest task definition, bytes (ECS service quotas).
const LARGEST: usize = 64 * 1024;

pub(super) fn register(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let family = request
        .text("family")?
        .filter(|family| !family.is_empty())
        .ok_or_else(|| ApiError::client_exception("Family should not be null or empty."))?;
    if !is_name(family) {
        return Err(ApiError::client_exception(
            "Family contains invalid characters.",
        ));
    }
    let network_mode = request.text("networkMode")?;
    let wants_fargate = request
        .texts("requiresCompatibilities")?
        .contains(&"FARGATE");
    let mut document = omit(request.0, &["tags"]);
    let size = Size::read(request)?;
    size.write(&mut document);
    let containers = containers(request, size.memory.is_some())?;
    rules::check(request, &size)?;
    let on_fargate = launch_rules::check(request, &size);
    let runs_on_fargate = on_fargate.is_ok();
    if wants_fargate {
        on_fargate?;
    }
    let one_port = matches!(network_mode, Some("awsvpc" | "host"));
    complete(&mut document, one_port);
    for name in role::MEMBERS {
        let role = request.text(name)?.filter(|role| !role.is_empty());
        if let Some(role) = role {
            trust::pass(account, caller, role, role::SERVICE)?;
        }
    }
    let tags = tag::read(request)?;
    let text = Value::Object(document).to_string();
    if text.len() > LARGEST {
        return Err(ApiError::client_exception(format!(
            "Actual length: '{}'. Max allowed length is '{LARGEST}' bytes.",
            text.len()
        )));
    }
    let revision = latest(account, &caller.region, family).map_or(1, |row| row.revision + 1);
    let row = TaskDefinition {
        family: family.to_owned(),
        revision,
        arn: format!(
            "arn:aws:ecs:{}:{}:task-definition/{family}:{revision}",
            caller.region, account.id
        ),
        status: TaskDefinitionStatus::Active,
        document: text,
        tags,
        network_mode: network_mode.unwrap_or("bridge").to_owned(),
        compatibilities: compatibilities(runs_on_fargate),
        containers,
        cpu: size.cpu.map(|cpu| cpu.to_string()),
        memory: size.memory.map(|memory| memory.to_string()),
        registered_at: account.now,
        registered_by: caller.arn.clone(),
        deregistered_at: None,
    };
    let answer = json!({"taskDefinition": row.view(), "tags": tag::view(&row.tags)});
    let key = row_key(&caller.region, family, revision);
    account.task_definitions.put(key, row);
    Ok(answer)
}

/// CPU units and memory in MiB of a task.
pub(super) struct Size {
    pub(super) cpu: Option<i64>,
    pub(super) memory: Option<i64>,
}

impl Size {
    fn read(request: Fields<'_>) -> Result<Self, ApiError> {
        let unit = |name: &str, parse: fn(&str) -> Option<i64>| match request.text(name)? {
            None | Some("") => Ok(None),
            Some(text) => parse(text).map(Some).ok_or_else(|| {
                ApiError::client_exception(format!("Invalid '{name}' setting for task."))
            }),
        };
        Ok(Self {
            cpu: unit("cpu", fargate::cpu_units)?,
            memory: unit("memory", fargate::memory_mib)?,
        })
    }

    /// AWS gives back plain units, however they were written.
    fn write(&self, document: &mut Document) {
        if let Some(cpu) = self.cpu {
            document.insert("cpu".into(), json!(cpu.to_string()));
        }
        if let Some(memory) = self.memory {
            document.insert("memory".into(), json!(memory.to_string()));
        }
    }
}

fn compatibilities(fargate: bool) -> Vec<String> {
    let mut names = vec!["EC2".to_owned()];
    if fargate {
        names.push("FARGATE".to_owned());
    }
    names
}

fn containers(request: Fields<'_>, has_memory: bool) -> Result<Vec<ContainerSpec>, ApiError> {
    let definitions = request.objects("containerDefinitions")?;
    if definitions.is_empty() {
        return Err(ApiError::client_exception(
            "Container list cannot be empty.",
        ));
    }
    let mut specs: Vec<ContainerSpec> = Vec::new();
    for definition in definitions {
        let spec = container(Fields(definition), has_memory)?;
        if specs.iter().any(|other| other.name == spec.name) {
            return rules::refuse("Container names must be unique within a task definition.");
        }
        specs.push(spec);
    }
    if !specs.iter().any(|spec| spec.essential) {
        return Err(ApiError::client_exception(
            "At least one container in the task definition must be marked as essential.",
        ));
    }
    Ok(specs)
}

fn container(definition: Fields<'_>, has_memory: bool) -> Result<ContainerSpec, ApiError> {
    let empty = |what: &str| {
        ApiError::client_exception(format!("Container.{what} should not be null or empty."))
    };
    let text = |name: &str| Ok(definition.text(name)?.filter(|text| !text.is_empty()));
    let name = text("name")?.ok_or_else(|| empty("name"))?;
    let image = text("image")?.ok_or_else(|| empty("image"))?;
    if !is_name(name) {
        return Err(ApiError::client_exception(format!(
            "Invalid container name '{name}'."
        )));
    }
    let own_memory = definition.integer("memory")?.is_some()
        || definition.integer("memoryReservation")?.is_some();
    if !own_memory && !has_memory {
        return Err(ApiError::client_exception(format!(
            "Invalid setting for container '{name}'. At least one of 'memory' or \
             'memoryReservation' must be specified."
        )));
    }
    Ok(ContainerSpec {
        name: name.to_owned(),
        image: image.to_owned(),
        essential: definition.flag("essential")?.unwrap_or(true),
        has_health_check: definition.object("healthCheck")?.is_some(),
        has_command: !definition.list("command")?.is_empty(),
        ports: ports(definition)?,
    })
}

fn ports(container: Fields<'_>) -> Result<Vec<Port>, ApiError> {
    let mut ports = Vec::new();
    for mapping in container.objects("portMappings")? {
        let mapping = Fields(mapping);
        // A range of ports has no single one; load balancers cannot use it.
        if let Some(port) = mapping.integer("containerPort")? {
            ports.push(Port {
                container: port,
                host: mapping.integer("hostPort")?.unwrap_or(0),
            });
        }
    }
    Ok(ports)
}

/// Fills in what AWS shows though nobody wrote it. With `one_port`, ports of the host are those of the containers.
fn complete(document: &mut Document, one_port: bool) {
    default_to(document, "volumes", json!([]));
    default_to(document, "placementConstraints", json!([]));
    let Some(Value::Array(containers)) = document.get_mut("containerDefinitions") else {
        return;
    };
    for container in containers.iter_mut().filter_map(Value::as_object_mut) {
        default_to(container, "cpu", json!(0));
        default_to(container, "essential", json!(true));
        for list in [
            "portMappings",
            "environment",
            "mountPoints",
            "volumesFrom",
            "systemControls",
        ] {
            default_to(container, list, json!([]));
        }
        let Some(Value::Array(ports)) = container.get_mut("portMappings") else {
            continue;
        };
        for port in ports.iter_mut().filter_map(Value::as_object_mut) {
            default_to(port, "protocol", json!("tcp"));
            let same = port.get("containerPort").cloned().filter(|_| one_port);
            if port.get("hostPort").is_none_or(|host| *host == json!(0)) {
                port.insert("hostPort".into(), same.unwrap_or(json!(0)));
            }
        }
    }
}
