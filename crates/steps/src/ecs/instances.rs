//! Service instances of ECS: one per running task, those included that scaling or people started.

use aws_sdk_ecs::types::{DesiredStatus, Task};
use serde_json::{Value, json};
use slipway_model::status::Failure;
use slipway_plan::{ConnectorPlan, ServicePlan};
use slipway_store::record::{DeployedRecord, InstanceRecord, ReplacedRecord};

use super::DEPLOY;
use super::beside::{self, Role};
use super::site::Site;
use super::task_definition::revision;
use crate::aws::error::{Doing, failure};
use crate::context::{StepContext, StepServices};
use crate::deployment::Replaced;
use crate::instances::{connector, no_connector};
use crate::secrets::Secrets;

/// Most tasks that one `DescribeTasks` takes.
const DESCRIBED_AT_ONCE: usize = 100;

/// Running tasks of a service.
pub(super) async fn running(site: &Site, service: &str) -> Result<Vec<Task>, Failure> {
    let doing = format!("count the tasks of service `{service}` in {site}");
    let (mut arns, mut next) = (Vec::new(), None);
    loop {
        let page = site
            .aws
            .ecs
            .list_tasks()
            .cluster(&site.cluster)
            .service_name(service)
            .desired_status(DesiredStatus::Running)
            .set_next_token(next)
            .send()
            .await;
        let page = match page {
            Ok(page) => page,
            // A deleted service runs nothing.
            Err(error) if crate::aws::error::code(&error) == Some("ServiceNotFoundException") => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(failure(Doing::with(&doing), error)),
        };
        arns.extend(page.task_arns.unwrap_or_default());
        next = page.next_token;
        if next.is_none() {
            break;
        }
    }
    let mut tasks = Vec::new();
    for arns in arns.chunks(DESCRIBED_AT_ONCE) {
        let described = site
            .aws
            .ecs
            .describe_tasks()
            .cluster(&site.cluster)
            .set_tasks(Some(arns.to_vec()))
            .send()
            .await
            .map_err(|error| failure(Doing::with(&doing), error))?;
        tasks.extend(described.tasks.unwrap_or_default());
    }
    tasks.retain(|task| task.last_status() == Some("RUNNING"));
    Ok(tasks)
}

/// What expressions see of an instance (`deploymentInfoOutcome.serverInstanceInfoList[i]`).
pub(super) fn info(site: &Site, service: &str, task: &Task) -> Value {
    let containers: Vec<Value> = task
        .containers()
        .iter()
        .map(|container| {
            json!({
                "name": container.name(),
                "image": container.image(),
                "runtimeId": container.runtime_id(),
                "containerArn": container.container_arn(),
            })
        })
        .collect();
    let definition = task.task_definition_arn();
    json!({
        "type": "EcsServerInstanceInfo",
        "region": site.aws.region,
        "clusterArn": task.cluster_arn(),
        "cluster": site.cluster,
        "serviceName": service,
        "taskArn": task.task_arn(),
        "taskDefinitionArn": definition,
        "version": definition.map(revision),
        "launchType": task.launch_type().map(|kind| kind.as_str()),
        "startedAt": task.started_at().and_then(|at| at.to_millis().ok()),
        "startedBy": task.started_by(),
        "containers": containers,
    })
}

/// The instances that `tasks` are.
pub(super) fn records(
    site: &Site,
    service: &str,
    deployed: &DeployedRecord,
    tasks: &[Task],
    now_ms: i64,
) -> Vec<InstanceRecord> {
    let ours = deployed.target["taskDefinitionArn"].as_str();
    let record = |task: &Task| InstanceRecord {
        scope: deployed.scope.clone(),
        service: deployed.service.clone(),
        environment: deployed.environment.clone(),
        infrastructure: deployed.infrastructure.clone(),
        key: task.task_arn().unwrap_or_default().to_owned(),
        info: info(site, service, task),
        artifact: task
            .containers()
            .first()
            .and_then(|container| container.image())
            .map(str::to_owned),
        run: (task.task_definition_arn() == ours && ours.is_some())
            .then(|| deployed.deployer().clone()),
        seen_ms: now_ms,
    };
    tasks.iter().map(record).collect()
}

/// What a run did to a service.
pub(super) enum Change {
    /// It deployed it, in the place of this; `None` for the first deployment.
    Deployed(Option<ReplacedRecord>),
    /// It brought this deployment back, where it is known.
    Restored(Option<Replaced>),
    /// It deleted it.
    Removed,
}

/// Notes what this run did to a service, which has a task definition now, and what runs of it. Answers with what
/// expressions see.
pub(super) async fn note(
    cx: &mut StepContext<'_>,
    site: &Site,
    (service, task_definition): (&str, &str),
    change: Change,
) -> Result<Vec<Value>, Failure> {
    let tasks = running(site, service).await?;
    let stage = cx.stage();
    let (Some(of), Some(environment), Some(infrastructure)) =
        (&stage.service, &stage.environment, &stage.infrastructure)
    else {
        return Ok(tasks.iter().map(|task| info(site, service, task)).collect());
    };
    let connector = connector(cx, infrastructure)?;
    let known = beside::record(cx, site).await?;
    let other = known.as_ref().map(|known| &known.target["serviceName"]);
    let removed = matches!(change, Change::Removed);
    if removed && other.is_some_and(|other| other != service) {
        // What was deployed there under another name is what it was.
        beside::remove(cx, site, service).await?;
        return Ok(Vec::new());
    }
    let beside = beside::kept(site, service, known.as_ref()).await?;
    let stays = beside.iter().find(|one| {
        one.role == Role::Left && other.is_some_and(|other| *other == one.service_name)
    });
    let stays = stays.map(|one| {
        format!(
            "Service {}, deployed earlier, stays in {site} beside {service}, and nothing takes it away: its tasks go on \
             and are counted. Set its desired count to 0 or delete it where nobody needs it.",
            one.service_name
        )
    });
    let (restores, artifact, before) = match change {
        Change::Deployed(before) => (None, artifact(cx, of)?, before),
        Change::Restored(Some(back)) => (Some(back.run), back.artifact, back.before),
        Change::Restored(None) | Change::Removed => (None, None, None),
    };
    let now = cx.clock().now_ms();
    let deployed = DeployedRecord {
        scope: cx.plan().scope.clone(),
        service: of.identifier.clone(),
        environment: environment.identifier.clone(),
        infrastructure: infrastructure.identifier.clone(),
        deployment_type: "ECS".to_owned(),
        target: json!({
            "region": site.aws.region,
            "cluster": site.cluster,
            "serviceName": service,
            "taskDefinitionArn": task_definition,
            "connector": connector,
            beside::FIELD: beside,
        }),
        run: cx.run().clone(),
        restores,
        artifact,
        before,
        counted: u32::try_from(tasks.len()).ok().map(|count| (count, now)),
        uncounted: None,
    };
    let mut instances = records(site, service, &deployed, &tasks, now);
    instances.extend(beside::instances(site, &deployed, now).await?);
    cx.deployed(&deployed, &instances).await?;
    if let Some(stays) = stays {
        match cx.unit_is_open(DEPLOY) {
            true => cx.warn_of_run(DEPLOY, &stays).await?,
            false => cx.tell_run(&stays).await?,
        }
    }
    Ok(tasks.iter().map(|task| info(site, service, task)).collect())
}

/// The artifact that the stage deploys.
fn artifact(cx: &StepContext<'_>, service: &ServicePlan) -> Result<Option<String>, Failure> {
    let artifact = service.artifact.as_ref();
    let Some(image) = artifact.and_then(|artifact| artifact.image.as_ref()) else {
        return Ok(None);
    };
    Ok(cx.evaluate(&json!(image))?.as_str().map(str::to_owned))
}

/// Counts what runs of `deployed` now, with the credentials of its connector.
pub(crate) async fn count(
    services: &StepServices,
    deployed: &DeployedRecord,
) -> Result<Vec<InstanceRecord>, Failure> {
    let target = &deployed.target;
    let connector: ConnectorPlan = serde_json::from_value(target["connector"].clone())
        .map_err(|_| no_connector(deployed.infrastructure.as_str()))?;
    let field = |name: &str| target[name].as_str().unwrap_or_default().to_owned();
    let (region, service) = (field("region"), field("serviceName"));
    let mut secrets = Secrets::new(&*services.secrets, &deployed.scope);
    let aws = services
        .aws
        .target(
            &connector,
            &connector.spec,
            &deployed.scope,
            &region,
            &mut secrets,
        )
        .await?;
    let site = Site {
        aws,
        cluster: field("cluster"),
        infrastructure: deployed.infrastructure.to_string(),
    };
    let tasks = running(&site, &service).await?;
    let now = services.clock.now_ms();
    let mut found = records(&site, &service, deployed, &tasks, now);
    found.extend(beside::instances(&site, deployed, now).await?);
    Ok(found)
}
