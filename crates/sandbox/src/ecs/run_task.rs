//! New tasks, and the operations `RunTask` and `StopTask`.

use serde_json::{Value, json};

use super::cluster::{self, split_resource};
use super::container::Fate;
use super::deployment::Deployment;
use super::launch::{self, launch_type, network};
use super::placement::{self, Unplaced, Wanted};
use super::service::Service;
use super::service_create::digest;
use super::task::{self, Health, Interface, Owner, Status, Task};
use super::task_definition::{TaskDefinition, find_runnable};
use super::{capacity, load_balancing, role, scheduler, tag, task_view};
use crate::account::Account;
use crate::caller::Caller;
use crate::discovery;
use crate::error::ApiError;
use crate::fields::{Document, Fields, pick};

/// What a new task is to be.
pub(crate) struct Order<'a> {
    region: &'a str,
    cluster: &'a str,
    definition: &'a TaskDefinition,
    owner: Option<Owner>,
    launch_type: String,
    settings: &'a Document,
    drains: bool,
    group: String,
    started_by: Option<String>,
    overrides: Document,
    tags: Document,
    exec: bool,
    request: Option<(String, String)>,
}

impl<'a> Order<'a> {
    /// A task of a service's deployment.
    pub(crate) fn of_service(
        service: &'a Service,
        deployment: &'a Deployment,
        definition: &'a TaskDefinition,
    ) -> Self {
        let mut tags = match text(&service.document, "propagateTags") {
            Some("SERVICE") => service.tags.clone(),
            Some("TASK_DEFINITION") => definition.tags.clone(),
            _ => Document::new(),
        };
        if flag(&service.document, "enableECSManagedTags") {
            tags.insert("aws:ecs:clusterName".into(), json!(service.cluster));
            tags.insert("aws:ecs:serviceName".into(), json!(service.name));
        }
        Self {
            region: &service.region,
            cluster: &service.cluster,
            definition,
            owner: Some(Owner {
                service: service.key(),
                deployment: deployment.id.clone(),
            }),
            launch_type: launch_type(&deployment.settings),
            settings: &deployment.settings,
            drains: service.drains(),
            group: format!("service:{}", service.name),
            started_by: Some(deployment.id.clone()),
            overrides: Document::new(),
            tags,
            exec: flag(&service.document, "enableExecuteCommand"),
            request: None,
        }
    }
}

fn text<'a>(document: &'a Document, name: &str) -> Option<&'a str> {
    document.get(name).and_then(Value::as_str)
}

fn flag(document: &Document, name: &str) -> bool {
    document.get(name).and_then(Value::as_bool).unwrap_or(false)
}

impl Order<'_> {
    pub(super) fn group(&self) -> &str {
        &self.group
    }
}

/// Makes a task of an order, on an EC2 instance where it is not for Fargate; [`task::begin`] starts its life.
pub(crate) fn new_task(account: &mut Account, order: &Order<'_>, host: Option<String>) -> Task {
    let id = account.draw_hex(32);
    let resource = format!("{}/{id}", order.cluster);
    let prefix = format!("arn:aws:ecs:{}:{}", order.region, account.id);
    let containers_prefix = format!("{prefix}:container/{resource}");
    let containers = scheduler::containers(account, order.definition, &containers_prefix);
    let definition = order.definition;
    let is_fargate = order.launch_type == "FARGATE";
    let version = text(order.settings, "platformVersion").filter(|version| *version != "LATEST");
    let platform = is_fargate.then(|| version.unwrap_or("1.4.0").to_owned());
    let awsvpc = definition.is_awsvpc();
    let mut task = Task {
        region: order.region.to_owned(),
        cluster: order.cluster.to_owned(),
        arn: format!("{prefix}:task/{resource}"),
        id,
        owner: order.owner.clone(),
        task_definition: definition.arn.clone(),
        family: definition.family.clone(),
        cpu: definition.cpu.clone(),
        memory: definition.memory.clone(),
        launch_type: order.launch_type.clone(),
        platform_version: platform,
        host,
        interface: awsvpc.then(|| interface(account, order.settings)),
        drains: order.drains,
        targets: Vec::new(),
        registrations: discovery::registrations(order.settings),
        group: order.group.clone(),
        started_by: order.started_by.clone(),
        overrides: order.overrides.clone(),
        tags: order.tags.clone(),
        exec: order.exec,
        request: order.request.clone(),
        containers,
        fate: Fate::Runs,
        status: Status::Provisioning,
        health: Health::Unknown,
        stop: None,
        due: None,
        version: 0,
        created_at: account.now,
        connectivity_at: None,
        pull_started_at: None,
        pull_stopped_at: None,
        started_at: None,
        stopping_at: None,
        execution_stopped_at: None,
        stopped_at: None,
    };
    task.targets = load_balancing::targets(order.settings, &task);
    task
}

fn interface(account: &mut Account, settings: &Document) -> Interface {
    let number = account.draw_digits();
    let subnets = network(settings).and_then(|vpc| vpc.get("subnets")?.as_array());
    let subnets: Vec<&str> = subnets
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    // Tasks spread over the subnets; the remainder is below the length, which fits.
    let nth = usize::try_from(number % subnets.len().max(1) as u64).unwrap_or(0);
    let [a, b, c, d, e, ..] = number.to_be_bytes().map(|byte| byte);
    Interface {
        attachment: account.draw_uuid(),
        subnet: subnets.get(nth).copied().unwrap_or_default().to_owned(),
        eni: format!("eni-0{}", account.draw_hex(16)),
        mac: format!("0a:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}"),
        address: format!("10.0.{}.{}", d, e.clamp(4, 250)),
    }
}

pub(super) fn run(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let cluster = cluster::find(account, caller, request)?;
    let region = cluster.region.clone();
    let prefix = format!("{region}/{}/", cluster.name);
    let identity = match request.text("clientToken")? {
        None => None,
        Some(token) => Some((token.to_owned(), digest(request)?)),
    };
    if let Some((token, digest)) = &identity {
        let before = started_by_token(account, &prefix, token, digest)?;
        if !before.is_empty() {
            return Ok(answer(account, &before, Vec::new()));
        }
    }
    let name = request.required_text("taskDefinition")?;
    let definition = find_runnable(account, &region, name)?.clone();
    let count = request.integer("count")?.unwrap_or(1);
    if !(1..=10).contains(&count) {
        return Err(ApiError::invalid_parameter(
            "Count must be between 1 and 10.",
        ));
    }
    let cluster = cluster::find(account, caller, request)?;
    capacity::check(account, cluster, request)?;
    let mut settings = pick(
        request.0,
        &[
            "launchType",
            "capacityProviderStrategy",
            "platformVersion",
            "networkConfiguration",
        ],
    );
    capacity::default_strategy(cluster, &mut settings);
    let cluster = cluster.name.clone();
    launch::check(&definition, &settings)?;
    launch::check_placement(request, &launch_type(&settings))?;
    overrides(request, &definition)?;
    if let Some(why) = role::refused(account, &definition) {
        return Err(ApiError::client_exception(why));
    }
    let group = request.text("group")?.map(str::to_owned);
    let group = group.unwrap_or_else(|| format!("family:{}", definition.family));
    let wanted = Wanted {
        region: &region,
        cluster: &cluster,
        definition: &definition,
        settings: &settings,
        group: &group,
        apart: placement::is_apart(request.0),
    };
    let order = Order {
        region: &region,
        cluster: &cluster,
        definition: &definition,
        owner: None,
        launch_type: launch_type(&settings),
        settings: &settings,
        drains: false,
        group: group.clone(),
        started_by: request.text("startedBy")?.map(str::to_owned),
        overrides: request.object("overrides")?.cloned().unwrap_or_default(),
        tags: match request.text("propagateTags")? {
            Some("TASK_DEFINITION") => definition.tags.clone(),
            _ => tag::read(request)?,
        },
        exec: request.flag("enableExecuteCommand")?.unwrap_or(false),
        request: identity,
    };
    let mut started = Vec::new();
    let mut failures = Vec::new();
    for _ in 0..count {
        match placement::choose(account, wanted) {
            Ok(host) => {
                let task = new_task(account, &order, host);
                started.push(task::begin(account, task));
            }
            Err(why @ Unplaced::NoInstances { .. }) => {
                return Err(ApiError::invalid_parameter(why.reason()));
            }
            Err(why) => failures.push(why.failure(account, wanted)),
        }
    }
    Ok(answer(account, &started, failures))
}

/// `overrides` name containers of the definition.
fn overrides(request: Fields<'_>, definition: &TaskDefinition) -> Result<(), ApiError> {
    let Some(given) = request.object("overrides")? else {
        return Ok(());
    };
    for one in Fields(given).objects("containerOverrides")? {
        let name = Fields(one).text("name")?.unwrap_or_default();
        if !definition.containers.iter().any(|one| one.name == name) {
            return Err(ApiError::invalid_parameter(format!(
                "Override for container named {name} is not a container in the TaskDefinition."
            )));
        }
    }
    Ok(())
}

fn answer(account: &Account, started: &[String], failures: Vec<Value>) -> Value {
    let tasks = started.iter().filter_map(|key| account.tasks.get(key));
    let views: Vec<Value> = tasks
        .map(|task| task_view::view(account, task, true))
        .collect();
    json!({"tasks": views, "failures": failures})
}

/// What an earlier request with the same `clientToken` started: it is answered again instead of run again. The
/// token in another request is a conflict (ECS API reference, "Ensuring idempotency").
fn started_by_token(
    account: &Account,
    prefix: &str,
    token: &str,
    digest: &str,
) -> Result<Vec<String>, ApiError> {
    let mut started = Vec::new();
    for (key, task) in account.tasks.under(prefix) {
        match &task.request {
            Some((known, same)) if known == token && same == digest => started.push(key.to_owned()),
            Some((known, _)) if known == token => {
                return Err(ApiError::client(
                    "ConflictException",
                    "The provided clientToken is already in use with a different RunTask request.",
                ));
            }
            _ => {}
        }
    }
    Ok(started)
}

pub(super) fn stop(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let cluster = cluster::find(account, caller, request)?;
    let prefix = format!("{}/{}", cluster.region, cluster.name);
    let (_, id) = split_resource(request.required_text("task")?, "task");
    let key = format!("{prefix}/{id}");
    if account.tasks.get(&key).is_none() {
        return Err(ApiError::invalid_parameter(
            "The referenced task was not found.",
        ));
    }
    let reason = request.text("reason")?.unwrap_or("Task stopped by user");
    task::stop_by_user(account, &key, reason);
    let task = account.tasks.get(&key);
    Ok(json!({"task": task.map(|task| task_view::view(account, task, true))}))
}
