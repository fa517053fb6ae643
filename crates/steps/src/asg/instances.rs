//! Service instances of Auto Scaling groups: one per instance that a group has, those included that scaling or people
//! started.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::id::RunId;
use slipway_model::status::Failure;
use slipway_plan::ConnectorPlan;
use slipway_store::record::{DeployedRecord, InstanceRecord, ReplacedRecord};

use super::group::{Group, Member, described};
use super::site::Site;
use super::template::Version;
use crate::context::{StepContext, StepServices, store_failure};
use crate::deployment::Replaced;
use crate::instances::no_connector;
use crate::secrets::Secrets;

/// Field of the target of a [`DeployedRecord`] that holds its groups.
const GROUPS: &str = "groups";

/// Who let a group start its instances from what it starts them from, as far as it is known: somebody else may have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct By {
    /// The run.
    #[serde(default)]
    run: Option<RunId>,
    /// What it deployed.
    #[serde(default)]
    artifact: Option<String>,
    /// Whether it serves nothing yet: the next version of a blue-green deployment, which goes again with its run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    green: bool,
}

impl By {
    /// The run that is going on.
    pub(super) fn this(cx: &StepContext<'_>) -> Result<Self, Failure> {
        Ok(Self {
            run: Some(cx.run().clone()),
            artifact: artifact(cx)?,
            green: false,
        })
    }

    /// The run that is going on, whose version serves nothing yet.
    pub(super) fn this_beside(cx: &StepContext<'_>) -> Result<Self, Failure> {
        Ok(Self {
            green: true,
            ..Self::this(cx)?
        })
    }

    /// Who deployed `version` to a group, as it is noted.
    pub(super) async fn noted(
        cx: &StepContext<'_>,
        group: &str,
        version: Option<&Version>,
    ) -> Result<Self, Failure> {
        let noted = noted(cx).await?;
        let groups = noted.as_ref().map(groups).unwrap_or_default();
        Ok(Self::of(&groups, group, version).unwrap_or_default())
    }

    fn of(groups: &[Counted], group: &str, version: Option<&Version>) -> Option<Self> {
        let version = version?;
        let is = |one: &&Counted| {
            let known = one.version.as_ref();
            one.name == group
                && known
                    .is_some_and(|known| known.id == version.id && known.number == version.number)
        };
        groups.iter().find(is)?.by.clone()
    }
}

/// A group that Slipway answers for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counted {
    /// Its name.
    pub(super) name: String,
    /// What the newest deployment lets it start instances from.
    pub(super) version: Option<Version>,
    /// `Rolling`, `Canary`, `BlueGreen` or `Phased`.
    pub(super) strategy: String,
    /// Whether it serves production.
    pub(super) production: bool,
    /// Who deployed the version. Earlier versions of Slipway did not write it down: what the record says was said of all
    /// groups then.
    #[serde(default)]
    pub(super) by: Option<By>,
}

/// What a run did to a place.
pub(super) enum Change {
    /// It deployed there, in the place of this; `None` for the first deployment.
    Deployed(Option<ReplacedRecord>),
    /// It brought this deployment back, where it is known.
    Restored(Option<Replaced>),
    /// It changed nothing of what was deployed: only groups are counted anew.
    Beside,
}

impl Change {
    /// Who deployed what is there again, where a rollback step of an earlier version wrote down no more than that.
    fn restores(&self) -> Option<By> {
        match self {
            Self::Restored(Some(back)) => Some(By {
                run: Some(back.run.clone()),
                artifact: back.artifact.clone(),
                green: false,
            }),
            Self::Restored(None) | Self::Deployed(_) | Self::Beside => None,
        }
    }
}

/// What expressions see of an instance (`deploymentInfoOutcome.serverInstanceInfoList[i]`).
fn info(region: &str, group: &Counted, member: Member<'_>) -> Value {
    json!({
        "type": "AsgServerInstanceInfo",
        "region": region,
        "asgName": group.name,
        "instanceId": member.id(),
        "executionStrategy": group.strategy,
        "production": group.production,
        "launchTemplateVersion": member.0["LaunchTemplate"]["Version"],
        "availabilityZone": member.0["AvailabilityZone"],
        "lifecycleState": member.0["LifecycleState"],
        "healthStatus": member.0["HealthStatus"],
    })
}

/// Instances of groups, and what is to be stored of them.
fn seen(
    region: &str,
    groups: &[Counted],
    found: &[Group],
    (deployed, now_ms): (&DeployedRecord, i64),
) -> Vec<InstanceRecord> {
    let mut records = Vec::new();
    for counted in groups {
        let group = found.iter().find(|group| group.name() == counted.name);
        let members = group.map(Group::members).unwrap_or_default();
        for member in members.into_iter().filter(Member::counts) {
            let version = counted.version.as_ref();
            let ours = version.is_some_and(|version| member.runs(version));
            let by = counted.by.as_ref().filter(|_| ours);
            records.push(InstanceRecord {
                scope: deployed.scope.clone(),
                service: deployed.service.clone(),
                environment: deployed.environment.clone(),
                infrastructure: deployed.infrastructure.clone(),
                key: member.id().to_owned(),
                info: info(region, counted, member),
                artifact: by.and_then(|by| by.artifact.clone()),
                run: by.and_then(|by| by.run.clone()),
                seen_ms: now_ms,
            });
        }
    }
    records
}

/// What is noted as deployed where the stage deploys to.
pub(super) async fn noted(cx: &StepContext<'_>) -> Result<Option<DeployedRecord>, Failure> {
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
    found.map_err(|error| store_failure("read what was deployed", &error))
}

/// The version of a group that is noted as deployed, and by whom.
pub(super) async fn version_of(
    cx: &StepContext<'_>,
    group: &str,
) -> Result<Option<(Version, Option<RunId>)>, Failure> {
    let noted = noted(cx).await?;
    let groups = noted.as_ref().map(groups).unwrap_or_default();
    let found = groups.into_iter().find(|one| one.name == group);
    Ok(found.and_then(|one| Some((one.version?, one.by.and_then(|by| by.run)))))
}

/// The run that put a version beside the one that serves, which has not taken over whole.
pub(super) async fn run_beside(cx: &StepContext<'_>) -> Result<Option<RunId>, Failure> {
    let noted = noted(cx).await?;
    let groups = noted.as_ref().map(groups).unwrap_or_default();
    let mut green = groups.into_iter().filter_map(|group| group.by);
    Ok(green.find(|by| by.green).and_then(|by| by.run))
}

/// Names of the groups that serve production as the newest run left them that deployed whole, or that brought a deployment back.
pub(super) fn deployed_groups(deployed: &DeployedRecord) -> Vec<String> {
    let by_it = |group: &Counted| {
        let run = group.by.as_ref().and_then(|by| by.run.as_ref());
        group.production && run == Some(deployed.deployer())
    };
    let groups = groups(deployed).into_iter().filter(by_it);
    groups.map(|group| group.name).collect()
}

/// The groups that a record counts, each with who deployed it.
pub(super) fn groups(deployed: &DeployedRecord) -> Vec<Counted> {
    let groups = serde_json::from_value(deployed.target[GROUPS].clone());
    let mut groups: Vec<Counted> = groups.unwrap_or_default();
    for group in &mut groups {
        group.by.get_or_insert_with(|| By {
            run: Some(deployed.deployer().clone()),
            artifact: deployed.artifact.clone(),
            green: false,
        });
    }
    groups
}

/// Notes what this run did, and what runs of these groups and of the others that were noted before and are not named in
/// `gone`. Answers with what expressions see of the instances of `mine`.
pub(super) async fn note(
    cx: &mut StepContext<'_>,
    site: &Site,
    (mine, gone): (&[Counted], &[&str]),
    change: Change,
) -> Result<Vec<Value>, Failure> {
    let before = noted(cx).await?;
    let others = before.as_ref().map(groups).unwrap_or_default();
    let mut mine = mine.to_vec();
    for group in mine.iter_mut().filter(|group| group.by.is_none()) {
        let known = By::of(&others, &group.name, group.version.as_ref());
        group.by = Some(known.or_else(|| change.restores()).unwrap_or_default());
    }
    let mut all = mine.clone();
    for other in others {
        let named = gone.contains(&other.name.as_str());
        if !named && !all.iter().any(|one| one.name == other.name) {
            all.push(other);
        }
    }
    let names: Vec<&str> = all.iter().map(|group| group.name.as_str()).collect();
    let found = match names.is_empty() {
        true => Vec::new(),
        false => described(site, &names).await?,
    };
    let told = |deployed: &DeployedRecord, now| {
        let records = seen(&site.aws.region, &mine, &found, (deployed, now));
        records.into_iter().map(|record| record.info).collect()
    };
    let now = cx.clock().now_ms();
    let Some(mut deployed) = record(cx, before.as_ref(), change)? else {
        return Ok(Vec::new());
    };
    deployed.target = json!({
        "region": site.aws.region,
        GROUPS: all,
        "connector": connector(cx)?,
    });
    let records = seen(&site.aws.region, &all, &found, (&deployed, now));
    deployed.counted = u32::try_from(records.len()).ok().map(|count| (count, now));
    cx.deployed(&deployed, &records).await?;
    Ok(told(&deployed, now))
}

/// The record of what is deployed now; `None` for stages that have no place to note it at.
fn record(
    cx: &StepContext<'_>,
    noted: Option<&DeployedRecord>,
    change: Change,
) -> Result<Option<DeployedRecord>, Failure> {
    let stage = cx.stage();
    let (Some(service), Some(environment), Some(infrastructure)) =
        (&stage.service, &stage.environment, &stage.infrastructure)
    else {
        return Ok(None);
    };
    let new = DeployedRecord {
        scope: cx.plan().scope.clone(),
        service: service.identifier.clone(),
        environment: environment.identifier.clone(),
        infrastructure: infrastructure.identifier.clone(),
        deployment_type: "Asg".to_owned(),
        target: Value::Null,
        run: cx.run().clone(),
        restores: None,
        artifact: None,
        before: None,
        counted: None,
        uncounted: None,
    };
    Ok(Some(match change {
        Change::Deployed(before) => DeployedRecord {
            artifact: artifact(cx)?,
            before,
            ..new
        },
        Change::Restored(Some(back)) => DeployedRecord {
            restores: Some(back.run),
            artifact: back.artifact,
            before: back.before,
            ..new
        },
        Change::Restored(None) => new,
        Change::Beside => noted.cloned().unwrap_or(new),
    }))
}

/// The version of the artifact that the stage deploys.
fn artifact(cx: &StepContext<'_>) -> Result<Option<String>, Failure> {
    let service = cx.stage().service.as_ref();
    let artifact = service.and_then(|service| service.artifact.as_ref());
    let Some(tag) = artifact.and_then(|artifact| artifact.tag.as_ref()) else {
        return Ok(None);
    };
    Ok(cx.evaluate(&json!(tag))?.as_str().map(str::to_owned))
}

/// The infrastructure's connector with its expressions resolved, to count with later.
fn connector(cx: &StepContext<'_>) -> Result<Option<ConnectorPlan>, Failure> {
    let infrastructure = cx.stage().infrastructure.as_ref();
    let Some(connector) = infrastructure.and_then(|one| one.connector.as_ref()) else {
        return Ok(None);
    };
    Ok(Some(ConnectorPlan {
        spec: cx.evaluate(&connector.spec)?,
        ..connector.clone()
    }))
}

/// Counts what runs of `deployed` now, with the credentials of its connector.
pub(crate) async fn count(
    services: &StepServices,
    deployed: &DeployedRecord,
) -> Result<Vec<InstanceRecord>, Failure> {
    let target = &deployed.target;
    let connector: ConnectorPlan = serde_json::from_value(target["connector"].clone())
        .map_err(|_| no_connector(deployed.infrastructure.as_str()))?;
    let region = target["region"].as_str().unwrap_or_default();
    let mut secrets = Secrets::new(&*services.secrets, &deployed.scope);
    let scope = &deployed.scope;
    let aws = services
        .aws
        .target(&connector, &connector.spec, scope, region, &mut secrets);
    let site = Site {
        aws: aws.await?,
        infrastructure: deployed.infrastructure.to_string(),
        base: None,
    };
    let groups = groups(deployed);
    let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let found = described(&site, &names).await?;
    Ok(seen(
        region,
        &groups,
        &found,
        (deployed, services.clock.now_ms()),
    ))
}
