//! Services as the wire shows them.

use serde_json::{Value, json};

use super::deployment::Deployment;
use super::launch::launch_type;
use super::service::{Service, find_key};
use super::task::{Status, Task};
use super::{cluster, tag};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, default_to, epoch};

/// Most services of one `DescribeServices`.
const MOST: usize = 10;

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let cluster = cluster::find(account, caller, request)?.name.clone();
    let names = request.texts("services")?;
    if names.is_empty() {
        return Err(ApiError::invalid_parameter("Services cannot be empty."));
    }
    if names.len() > MOST {
        return Err(ApiError::invalid_parameter(format!(
            "Services can have at most {MOST} items."
        )));
    }
    let tags = request.texts("include")?.contains(&"TAGS");
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for name in names {
        let key = find_key(caller, &cluster, name);
        match account.services.get(&key) {
            Some(service) => found.push(view(account, service, tags)),
            None => {
                let (_, resource) = key.split_once('/').unwrap_or_default();
                failures.push(json!({
                    "arn": format!("arn:aws:ecs:{}:{}:service/{resource}", caller.region, account.id),
                    "reason": "MISSING",
                }));
            }
        }
    }
    Ok(json!({"services": found, "failures": failures}))
}

pub(super) fn view(account: &Account, service: &Service, tags: bool) -> Value {
    let live = service.live.iter().filter_map(|key| account.tasks.get(key));
    let live: Vec<&Task> = live.collect();
    let primary = service.primary().or(service.last_completed.as_ref());
    let all = Counts::of(live.iter().copied());
    let mut view = service.document.clone();
    view.extend(shared(&service.settings));
    let mut set = |name: &str, value: Value| {
        view.insert(name.to_owned(), value);
    };
    set("serviceArn", json!(service.arn));
    set("serviceName", json!(service.name));
    set("clusterArn", json!(service.cluster_arn));
    set("status", json!(service.status));
    set("desiredCount", json!(service.desired));
    set("runningCount", json!(all.running));
    set("pendingCount", json!(all.pending));
    if let Some(primary) = primary {
        set("taskDefinition", json!(primary.task_definition));
    }
    let deployments = service.deployments.iter();
    set(
        "deployments",
        deployments
            .map(|one| deployment(service, one, &live))
            .collect(),
    );
    set("events", events(service));
    set("createdAt", epoch(service.created_at));
    set("createdBy", json!(service.created_by));
    set("deploymentConfiguration", configuration(service));
    if let Some(role) = service.document.get("role") {
        set("roleArn", role.clone());
    }
    if tags {
        set("tags", tag::view(&service.tags));
    }
    view.remove("role");
    for list in [
        "loadBalancers",
        "serviceRegistries",
        "placementConstraints",
        "placementStrategy",
    ] {
        default_to(&mut view, list, json!([]));
    }
    default_to(&mut view, "schedulingStrategy", json!("REPLICA"));
    default_to(&mut view, "deploymentController", json!({"type": "ECS"}));
    default_to(&mut view, "propagateTags", json!("NONE"));
    default_to(&mut view, "enableECSManagedTags", json!(false));
    default_to(&mut view, "enableExecuteCommand", json!(false));
    Value::Object(view)
}

/// Members of a deployment that the service shows too.
fn shared(settings: &Document) -> Document {
    let mut shared = crate::fields::omit(
        settings,
        &[
            "serviceConnectConfiguration",
            "volumeConfigurations",
            "vpcLatticeConfigurations",
        ],
    );
    if !shared.contains_key("capacityProviderStrategy") {
        shared.insert("launchType".into(), json!(launch_type(settings)));
    }
    platform(&mut shared, settings);
    shared
}

fn platform(view: &mut Document, settings: &Document) {
    if launch_type(settings) == "FARGATE" {
        default_to(view, "platformVersion", json!("LATEST"));
        default_to(view, "platformFamily", json!("Linux"));
    }
}

fn configuration(service: &Service) -> Value {
    let given = service.document.get("deploymentConfiguration");
    let mut configuration = given
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    default_to(&mut configuration, "maximumPercent", json!(200));
    default_to(&mut configuration, "minimumHealthyPercent", json!(100));
    default_to(
        &mut configuration,
        "deploymentCircuitBreaker",
        json!({"enable": false, "rollback": false}),
    );
    Value::Object(configuration)
}

fn events(service: &Service) -> Value {
    let each = service.events.iter().map(
        |event| json!({"id": event.id, "createdAt": epoch(event.at), "message": event.message}),
    );
    each.collect()
}

/// Tasks by what they count as.
struct Counts {
    running: usize,
    pending: usize,
    /// Not told to stop.
    wanted: usize,
}

impl Counts {
    fn of<'a>(tasks: impl Iterator<Item = &'a Task>) -> Self {
        let mut counts = Self {
            running: 0,
            pending: 0,
            wanted: 0,
        };
        for task in tasks {
            match task.status {
                Status::Running => counts.running += 1,
                status if status < Status::Running => counts.pending += 1,
                _ => {}
            }
            counts.wanted += usize::from(!task.is_stopping());
        }
        counts
    }
}

fn deployment(service: &Service, one: &Deployment, live: &[&Task]) -> Value {
    let own = live.iter().copied().filter(|task| {
        let owner = task.owner.as_ref();
        owner.is_some_and(|owner| owner.deployment == one.id)
    });
    let counts = Counts::of(own);
    let desired = if one.is_primary() {
        json!(service.desired)
    } else {
        json!(counts.wanted)
    };
    let mut view = crate::fields::omit(&one.settings, &["loadBalancers", "serviceRegistries"]);
    if !view.contains_key("capacityProviderStrategy") {
        view.insert("launchType".into(), json!(launch_type(&one.settings)));
    }
    if view
        .get("platformVersion")
        .is_none_or(|version| version == "LATEST")
        && launch_type(&one.settings) == "FARGATE"
    {
        view.insert("platformVersion".into(), json!("1.4.0"));
    }
    platform(&mut view, &one.settings);
    let mut set = |name: &str, value: Value| {
        view.insert(name.to_owned(), value);
    };
    set("id", json!(one.id));
    set("status", json!(one.status));
    set("taskDefinition", json!(one.task_definition));
    set("desiredCount", desired);
    set("pendingCount", json!(counts.pending));
    set("runningCount", json!(counts.running));
    set("failedTasks", json!(one.failed_tasks));
    set("createdAt", epoch(one.created_at));
    set("updatedAt", epoch(one.updated_at));
    set("rolloutState", json!(one.rollout));
    set("rolloutStateReason", json!(one.reason));
    Value::Object(view)
}
