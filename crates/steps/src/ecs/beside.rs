//! Services beside the main one that a stage deploys: its canary, the version before it, or what was deployed there
//! earlier and goes on. Their tasks are instances too.
//!
//! They stand in the record of what was deployed. A canary is written there before it is created, and only
//! what stands there is ever deleted as one: a service that merely has such a name is somebody's.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::id::RunId;
use slipway_model::status::Failure;
use slipway_plan::Node;
use slipway_store::record::{DeployedRecord, InstanceRecord};

use super::instances::{records, running};
use super::service::{Standing, describe};
use super::site::Site;
use super::task_definition::short;
use crate::context::{StepContext, store_failure};
use crate::instances::connector;

/// Field of a record's target that holds them.
pub(super) const FIELD: &str = "beside";

/// A service beside the main one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Beside {
    pub(super) service_name: String,
    /// What it was deployed with.
    pub(super) task_definition_arn: String,
    /// The run that deployed it.
    pub(super) run: RunId,
    pub(super) role: Role,
}

/// What a service beside the main one is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Role {
    Canary,
    /// The next version, which does not serve yet (blue-green).
    Green,
    /// The version that a new one replaces step by step.
    Before,
    /// One that was deployed earlier under another name or before others, and that nobody has taken away. It is counted
    /// for as long as it is there; nobody deletes it.
    Left,
}

impl Beside {
    fn left(self) -> Self {
        Self {
            role: Role::Left,
            ..self
        }
    }

    /// Whether `runs` is the task definition that it was deployed with.
    pub(super) fn runs(&self, runs: Option<&str>) -> bool {
        runs.is_some_and(|runs| short(runs) == short(&self.task_definition_arn))
    }
}

/// Those of a record.
pub(super) fn of(target: &Value) -> Vec<Beside> {
    Vec::deserialize(&target[FIELD]).unwrap_or_default()
}

/// What is noted as deployed where the stage deploys to, if it is in this region and cluster.
pub(super) async fn record(
    cx: &StepContext<'_>,
    site: &Site,
) -> Result<Option<DeployedRecord>, Failure> {
    let stage = cx.stage();
    let (Some(service), Some(environment), Some(infrastructure)) =
        (&stage.service, &stage.environment, &stage.infrastructure)
    else {
        return Ok(None);
    };
    let place = (
        &service.identifier,
        &environment.identifier,
        &infrastructure.identifier,
    );
    let found = cx.store().find_deployed(&cx.plan().scope, place).await;
    let found = found.map_err(|error| store_failure("read what was deployed", &error))?;
    Ok(found.filter(|deployed| {
        deployed.target["region"] == site.aws.region && deployed.target["cluster"] == site.cluster
    }))
}

/// Those where the stage deploys to.
pub(super) async fn noted(cx: &StepContext<'_>, site: &Site) -> Result<Vec<Beside>, Failure> {
    let record = record(cx, site).await?;
    Ok(record.map_or_else(Vec::new, |record| of(&record.target)))
}

/// Says that a canary is still there, and how it goes away.
pub(super) fn told_left(site: &Site, canary: &Beside) -> String {
    let name = &canary.service_name;
    format!(
        "Canary service {name} in {site} stays, with {}: the next EcsCanaryDelete or EcsCanaryDeploy of this service and \
         environment deletes it, or `aws ecs delete-service --force --region {} --cluster {} --service {name}`.",
        short(&canary.task_definition_arn),
        site.aws.region,
        site.cluster
    )
}

/// Warns in the run of a canary that an earlier run left, where no step of this stage deletes it.
pub(super) async fn warn_of_canary(
    cx: &mut StepContext<'_>,
    site: &Site,
    unit: &'static str,
) -> Result<(), Failure> {
    let deletes =
        |step_type: &str| step_type == "EcsCanaryDelete" || step_type == "EcsCanaryDeploy";
    if has_step(&cx.stage().steps, &deletes) {
        return Ok(());
    }
    for known in noted(cx, site).await? {
        if known.role == Role::Canary
            && known.run != *cx.run()
            && let Standing::Active(_) = describe(site, &known.service_name).await?
        {
            let (run, left) = (known.run.clone(), told_left(site, &known));
            let warning =
                format!("{left} Run {run} left it, and no step of this stage deletes it.");
            cx.warn_of_run(unit, &warning).await?;
        }
    }
    Ok(())
}

/// Whether one of the steps below some nodes is of a type.
fn has_step(nodes: &[Node], is: &dyn Fn(&str) -> bool) -> bool {
    nodes.iter().any(|node| match node {
        Node::Step(step) => is(&step.step_type),
        Node::Group(group) => has_step(&group.nodes, is),
        Node::Parallel(parallel) => has_step(&parallel.branches, is),
    })
}

/// Notes that `beside` is about to be created beside the service `main`.
pub(super) async fn add(
    cx: &mut StepContext<'_>,
    site: &Site,
    main: &str,
    beside: Beside,
) -> Result<(), Failure> {
    change(cx, site, main, |all| {
        all.retain(|known| known.service_name != beside.service_name);
        all.push(beside);
    })
    .await
}

/// Notes which version is replaced by `main` step by step; `None` when none is any more. One of before that still has
/// tasks is left.
pub(super) async fn set_before(
    cx: &mut StepContext<'_>,
    (site, main): (&Site, &str),
    before: Option<Beside>,
) -> Result<(), Failure> {
    let mut left = Vec::new();
    for known in noted(cx, site).await? {
        let name = known.service_name.as_str();
        let named = before.as_ref().is_some_and(|one| one.service_name == name);
        if known.role == Role::Before && name != main && !named && works(site, name).await? {
            left.push(known.left());
        }
    }
    change(cx, site, main, |all| {
        all.retain(|known| {
            let again = before
                .as_ref()
                .is_some_and(|one| one.service_name == known.service_name);
            known.role != Role::Before && !again
        });
        all.extend(left);
        all.extend(before);
    })
    .await
}

/// Whether a service is to have tasks. Those of one that is scaled down only drain.
async fn works(site: &Site, name: &str) -> Result<bool, Failure> {
    Ok(match describe(site, name).await? {
        Standing::Active(found) => found.service.desired_count() > 0,
        Standing::Absent | Standing::Draining => false,
    })
}

/// What stands beside `main` from now on: what stood beside it, and the main service of before where that was another one
/// and works. Services that were left and are gone are forgotten.
pub(super) async fn kept(
    site: &Site,
    main: &str,
    before: Option<&DeployedRecord>,
) -> Result<Vec<Beside>, Failure> {
    let Some(before) = before else {
        return Ok(Vec::new());
    };
    let mut kept = Vec::new();
    for known in of(&before.target) {
        let name = known.service_name.as_str();
        let gone = known.role == Role::Left
            && matches!(
                describe(site, name).await?,
                Standing::Absent | Standing::Draining
            );
        if name != main && !gone {
            kept.push(known);
        }
    }
    let text = |field: &str| before.target[field].as_str().unwrap_or_default();
    let (name, arn) = (text("serviceName"), text("taskDefinitionArn"));
    let known = kept.iter().any(|one| one.service_name == name);
    if name != main && !known && !arn.is_empty() && works(site, name).await? {
        kept.push(Beside {
            service_name: name.to_owned(),
            task_definition_arn: arn.to_owned(),
            run: before.deployer().clone(),
            role: Role::Left,
        });
    }
    Ok(kept)
}

/// The run that deployed the service `name` of a record.
pub(super) fn run_of(deployed: &DeployedRecord, name: &str) -> Option<RunId> {
    if deployed.target["serviceName"] == name {
        return Some(deployed.deployer().clone());
    }
    let mut beside = of(&deployed.target).into_iter();
    let found = beside.find(|beside| beside.service_name == name);
    found.map(|beside| beside.run)
}

/// Changes what stands beside the service `main`.
async fn change(
    cx: &mut StepContext<'_>,
    site: &Site,
    main: &str,
    change: impl FnOnce(&mut Vec<Beside>) + Send,
) -> Result<(), Failure> {
    let mut deployed = match record(cx, site).await? {
        Some(deployed) => deployed,
        None => match first(cx, site, main)? {
            Some(deployed) => deployed,
            None => return Ok(()),
        },
    };
    let mut all = of(&deployed.target);
    change(&mut all);
    deployed.target[FIELD] = json!(all);
    put(cx, &deployed).await
}

/// Notes that the service `name` is gone, and counts what is left.
pub(super) async fn remove(
    cx: &mut StepContext<'_>,
    site: &Site,
    name: &str,
) -> Result<(), Failure> {
    match forget(cx, site, name).await? {
        true => recount(cx, site).await,
        false => Ok(()),
    }
}

/// Notes that the service `name` is gone; whether anything is noted there.
pub(super) async fn forget(
    cx: &mut StepContext<'_>,
    site: &Site,
    name: &str,
) -> Result<bool, Failure> {
    let Some(mut deployed) = record(cx, site).await? else {
        return Ok(false);
    };
    let mut all = of(&deployed.target);
    all.retain(|known| known.service_name != name);
    deployed.target[FIELD] = json!(all);
    put(cx, &deployed).await?;
    Ok(true)
}

/// Counts again what runs where the stage deploys to.
pub(super) async fn recount(cx: &mut StepContext<'_>, site: &Site) -> Result<(), Failure> {
    let Some(deployed) = record(cx, site).await? else {
        return Ok(());
    };
    let now = cx.clock().now_ms();
    let main = deployed.target["serviceName"].as_str().unwrap_or_default();
    let tasks = running(site, main).await?;
    let mut found = records(site, main, &deployed, &tasks, now);
    found.extend(instances(site, &deployed, now).await?);
    let counted = cx.store().put_instances(&deployed, &found).await;
    counted.map_err(|error| store_failure("store the instances", &error))
}

/// Counts again when the service `name` is one of those that are counted where the stage deploys to.
pub(super) async fn recount_if_ours(
    cx: &mut StepContext<'_>,
    site: &Site,
    name: &str,
) -> Result<(), Failure> {
    let Some(deployed) = record(cx, site).await? else {
        return Ok(());
    };
    let beside = of(&deployed.target);
    match deployed.target["serviceName"] == name
        || beside.iter().any(|one| one.service_name == name)
    {
        true => recount(cx, site).await,
        false => Ok(()),
    }
}

/// The instances of all services beside the main one of `deployed`.
pub(super) async fn instances(
    site: &Site,
    deployed: &DeployedRecord,
    now_ms: i64,
) -> Result<Vec<InstanceRecord>, Failure> {
    let mut found = Vec::new();
    for beside in of(&deployed.target) {
        let mut tasks = running(site, &beside.service_name).await?;
        if beside.role == Role::Left {
            // Whoever deployed something else there since has made it theirs.
            tasks.retain(|task| beside.runs(task.task_definition_arn()));
        }
        let mut own = deployed.clone();
        own.run = beside.run;
        own.restores = None;
        own.target["taskDefinitionArn"] = json!(beside.task_definition_arn);
        found.extend(records(site, &beside.service_name, &own, &tasks, now_ms));
    }
    Ok(found)
}

/// The record of a stage whose service was never deployed; `None` where nothing is tracked.
fn first(cx: &StepContext<'_>, site: &Site, main: &str) -> Result<Option<DeployedRecord>, Failure> {
    let stage = cx.stage();
    let (Some(service), Some(environment), Some(infrastructure)) =
        (&stage.service, &stage.environment, &stage.infrastructure)
    else {
        return Ok(None);
    };
    Ok(Some(DeployedRecord {
        scope: cx.plan().scope.clone(),
        service: service.identifier.clone(),
        environment: environment.identifier.clone(),
        infrastructure: infrastructure.identifier.clone(),
        deployment_type: "ECS".to_owned(),
        target: json!({
            "region": site.aws.region,
            "cluster": site.cluster,
            "serviceName": main,
            "taskDefinitionArn": null,
            "connector": connector(cx, infrastructure)?,
        }),
        run: cx.run().clone(),
        restores: None,
        artifact: None,
        before: None,
        counted: None,
        uncounted: None,
    }))
}

async fn put(cx: &StepContext<'_>, deployed: &DeployedRecord) -> Result<(), Failure> {
    let put = cx.store().put_deployed(deployed).await;
    put.map_err(|error| store_failure("note what is deployed", &error))
}
