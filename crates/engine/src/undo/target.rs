//! Where runs deploy to, and whose deployment is there.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;
use slipway_model::id::{EntityId, RunId, Scope};
use slipway_plan::{Plan, StagePlan};
use slipway_store::record::{DeployedRecord, ReplacedRecord, RunRecord};

use super::Which;
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::runs::{Runs, StageOfRun, summary};

/// A service on an infrastructure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The service.
    pub service: EntityId,
    /// The environment.
    pub environment: EntityId,
    /// The infrastructure.
    pub infrastructure: EntityId,
}

impl Place {
    /// Where a stage deploys to.
    fn of(stage: &StagePlan) -> Option<Self> {
        Some(Self {
            service: stage.service.as_ref()?.identifier.clone(),
            environment: stage.environment.as_ref()?.identifier.clone(),
            infrastructure: stage.infrastructure.as_ref()?.identifier.clone(),
        })
    }

    /// Whether a stage deploys there.
    pub(super) fn is_of(&self, stage: &StagePlan) -> bool {
        Self::of(stage).as_ref() == Some(self)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "service {} to environment {} (infrastructure {})",
            self.service, self.environment, self.infrastructure
        )
    }
}

/// What is deployed at a place, and how to roll it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployed {
    /// The run to roll back: the one that deployed it, or the newest retry that took its work over.
    pub run: RunId,
    /// Its stages that deployed there.
    pub stages: Which,
    /// The artifact that runs.
    pub artifact: Option<String>,
    /// What a rollback brings back; `None` where this is the first deployment.
    pub before: Option<ReplacedRecord>,
    /// Why it cannot be rolled back whatever the run says.
    pub refusal: Option<String>,
}

/// What is deployed at a place.
///
/// # Errors
/// `NotFound` when nothing was deployed there, and when the store cannot be read.
pub async fn deployed_at(runs: &Runs, scope: &Scope, place: &Place) -> Result<Deployed, RunError> {
    let Some(record) = read(runs, scope, place).await? else {
        let message = format!("nothing has deployed {place}");
        return Err(RunError::refused(ErrorName::NotFound, message));
    };
    let deployer = runs.run(record.deployer()).await?;
    let retries = runs.store.list_retries(deployer.root()).await;
    let retries = retries.doing(|| format!("list the retries of run {}", deployer.id))?;
    Ok(Deployed {
        run: retries.into_iter().next_back().unwrap_or(deployer.id),
        stages: Which::At(place.clone()),
        refusal: rolled_back_already(runs, &record).await?,
        artifact: record.artifact,
        before: record.before,
    })
}

/// The place that is meant by some of its names: the one where something was deployed last, of several.
///
/// # Errors
/// `NotFound` when nothing was deployed to such a place, and when the store cannot be read.
pub async fn find_place(
    runs: &Runs,
    scope: &Scope,
    (service, environment, infrastructure): (&EntityId, &EntityId, Option<&EntityId>),
) -> Result<Place, RunError> {
    let all = runs.store.list_deployed_in(scope).await;
    let all = all.doing(|| "list what was deployed".to_owned())?;
    let mut newest: Option<(i64, Place)> = None;
    for record in all {
        let fits = record.service == *service
            && record.environment == *environment
            && infrastructure.is_none_or(|id| record.infrastructure == *id);
        if !fits {
            continue;
        }
        let began = runs.run(&record.run).await?.started_ms;
        let place = Place {
            service: record.service,
            environment: record.environment,
            infrastructure: record.infrastructure,
        };
        if newest.as_ref().is_none_or(|(known, _)| *known < began) {
            newest = Some((began, place));
        }
    }
    newest.map(|(_, place)| place).ok_or_else(|| {
        let of = infrastructure.map_or_else(String::new, |id| format!(" (infrastructure {id})"));
        let message =
            format!("nothing has deployed service {service} to environment {environment}{of}");
        RunError::refused(ErrorName::NotFound, message)
    })
}

/// Why what a stage of a run deployed cannot be rolled back: something else is there, or nothing was before it.
/// `tried` are runs that tried to roll the run back.
pub(super) async fn refusal(
    runs: &Runs,
    run: &RunRecord,
    plan: &Plan,
    stage: &StagePlan,
    tried: &BTreeSet<&RunId>,
) -> Result<Option<String>, RunError> {
    let Some(place) = Place::of(stage) else {
        return Ok(None);
    };
    let Some(there) = read(runs, &plan.scope, &place).await? else {
        return Ok(None);
    };
    if tried.contains(&there.run) {
        return Ok(None);
    }
    let doer = run.doer(&stage.id);
    let ended_ms = summary(&run.stages, stage).ended_ms.unwrap_or(i64::MAX);
    let own = there.deployer() == doer;
    if !own && !beside(&there).contains(doer) {
        let later = came_after(runs, &there.run, &place, ended_ms).await?;
        return Ok(Some(match later {
            true => another(&there, &place, run),
            false => left_nothing(&there, &place, run),
        }));
    }
    if let Some(later) = put_beside_later(runs, &there, (doer, ended_ms), &place).await? {
        return Ok(Some(format!(
            "run {later} has put another version of {place} beside that of run {} since: roll run {later} back first, or \
             deploy the version that you want",
            run.id
        )));
    }
    if !own
        && is_green(&there, doer)
        && came_after(runs, there.deployer(), &place, ended_ms).await?
    {
        // Of what it stood beside nothing is left, and its rollback would bring that back beside what serves now.
        return Ok(Some(another(&there, &place, run)));
    }
    if !own {
        // What it has put beside the version that is there goes away again, whatever that version is.
        return Ok(None);
    }
    if let Some(why) = rolled_back_already(runs, &there).await? {
        return Ok(Some(why));
    }
    if is_only_beside(&there, doer) {
        // There is nothing to go back to, and nothing that serves either: what it put there goes away.
        return Ok(None);
    }
    Ok(there.before.is_none().then(|| {
        format!(
            "run {} was the first that deployed {place}: there is no earlier version to go back to; delete the service \
             by hand, or deploy another version",
            run.id
        )
    }))
}

fn another(there: &DeployedRecord, place: &Place, run: &RunRecord) -> String {
    match &there.restores {
        Some(restored) => format!(
            "run {} brought {place} back to what run {restored} had deployed, after run {}: only the newest deployment \
             can be rolled back",
            there.run, run.id
        ),
        None => format!(
            "run {} has deployed {place} since run {}: only the newest deployment can be rolled back; roll run {} \
             back, or deploy the version that you want",
            there.run, run.id, there.run
        ),
    }
}

fn left_nothing(there: &DeployedRecord, place: &Place, run: &RunRecord) -> String {
    format!(
        "run {} left no version of {place}: what is there is what run {} deployed before it; there is nothing to roll back",
        run.id,
        there.deployer()
    )
}

/// The runs that put a version beside the one that is there: a canary, or the next one of a blue-green deployment.
fn beside(there: &DeployedRecord) -> Vec<RunId> {
    let versions = array(&there.target["beside"]).filter(|version| goes(version));
    let groups = array(&there.target["groups"]).filter(|group| is_beside(group));
    let runs = versions.map(|version| &version["run"]);
    let runs = runs.chain(groups.map(|group| &group["by"]["run"]));
    runs.filter_map(Value::as_str).map(RunId::new).collect()
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Whether a version goes away again with the run that put it there. What served before a newer one stands beside that, too,
/// and is no matter of a rollback of its own run.
fn goes(version: &Value) -> bool {
    let role = version["role"].as_str();
    role.is_none_or(|role| ["canary", "green"].contains(&role))
}

/// Whether an Auto Scaling group is a canary.
fn is_canary(group: &Value) -> bool {
    group["strategy"] == "Canary"
}

/// Whether an Auto Scaling group stands beside the one that serves: a canary, or the next version of a blue-green
/// deployment, to which no requests went yet.
fn is_beside(group: &Value) -> bool {
    is_canary(group) || group["by"]["green"] == true
}

/// Whether nothing was ever deployed at a place but what a run put beside what was to come.
fn is_only_beside(there: &DeployedRecord, doer: &RunId) -> bool {
    let target = &there.target;
    let main = match there.deployment_type.as_str() {
        "ECS" => target["taskDefinitionArn"]
            .as_str()
            .is_some_and(|arn| !arn.is_empty()),
        "Asg" => !array(&target["groups"]).all(is_beside),
        _ => true,
    };
    !main && beside(there).contains(doer)
}

/// Whether what a run put beside the version that serves is the next one of it, and no canary.
fn is_green(there: &DeployedRecord, doer: &RunId) -> bool {
    let mut groups = array(&there.target["groups"]);
    groups.any(|group| group["by"]["green"] == true && group["by"]["run"] == doer.as_str())
}

/// What stages of a run that cannot be rolled back have left beside the versions that serve, and how it goes away.
pub(super) async fn left_beside(
    runs: &Runs,
    run: &RunRecord,
    plan: &Plan,
    stages: &[&StagePlan],
) -> Result<Option<String>, RunError> {
    let mut left = Vec::new();
    for stage in stages {
        let Some(place) = Place::of(stage) else {
            continue;
        };
        let Some(there) = read(runs, &plan.scope, &place).await? else {
            continue;
        };
        left.extend(canaries_of(&there, run.doer(&stage.id)));
    }
    Ok((!left.is_empty()).then(|| format!("It left {}", left.join(", and "))))
}

/// The canaries of a run, each with who deletes it.
fn canaries_of(there: &DeployedRecord, doer: &RunId) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let target = &there.target;
    let region = text(&target["region"]);
    let services = array(&target["beside"])
        .filter(|version| version["role"] == "canary" && version["run"] == doer.as_str())
        .map(|version| {
            let (name, cluster) = (text(&version["serviceName"]), text(&target["cluster"]));
            format!(
                "canary service {name} in cluster {cluster}: the next EcsCanaryDelete of that service and environment deletes \
                 it, or `aws ecs delete-service --force --region {region} --cluster {cluster} --service {name}`"
            )
        });
    let groups = array(&target["groups"])
        .filter(|group| is_canary(group) && group["by"]["run"] == doer.as_str())
        .map(|group| {
            let name = text(&group["name"]);
            format!(
                "canary Auto Scaling group {name}: `aws autoscaling delete-auto-scaling-group --force-delete --region {region} \
                 --auto-scaling-group-name {name}` deletes it"
            )
        });
    services.chain(groups).collect()
}

/// The run that put a version beside what another one deployed, after that one's stage had ended.
async fn put_beside_later(
    runs: &Runs,
    there: &DeployedRecord,
    (doer, ended_ms): (&RunId, i64),
    place: &Place,
) -> Result<Option<RunId>, RunError> {
    for other in beside(there) {
        if other != *doer && came_after(runs, &other, place, ended_ms).await? {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

/// A deployment that a rollback brought back is not rolled back itself before somebody deploys again.
async fn rolled_back_already(
    runs: &Runs,
    there: &DeployedRecord,
) -> Result<Option<String>, RunError> {
    let Some(restored) = &there.restores else {
        return Ok(None);
    };
    let last = runs.run(&there.run).await?;
    Ok(last.undoes().map(|origin| {
        format!(
            "run {} has rolled run {} back to what run {restored} had deployed: deploy something before the next \
             rollback",
            last.id, origin.run
        )
    }))
}

async fn read(
    runs: &Runs,
    scope: &Scope,
    place: &Place,
) -> Result<Option<DeployedRecord>, RunError> {
    let ids = (&place.service, &place.environment, &place.infrastructure);
    let found = runs.store.find_deployed(scope, ids).await;
    found.doing(|| format!("read who deployed {place}"))
}

/// The run that deployed where a stage is about to be rolled back with its run or after it, where it is none that the
/// stage may be rolled back over: it was faster than the rollback.
pub(crate) async fn taken_by(runs: &Runs, of_run: &StageOfRun) -> Result<Option<RunId>, RunError> {
    let Some(place) = Place::of(of_run.stage()) else {
        return Ok(None);
    };
    let Some(there) = read(runs, &of_run.plan.scope, &place).await? else {
        return Ok(None);
    };
    let doer = of_run.run.doer(&of_run.stage().id);
    let own = there.deployer() == doer || there.run == of_run.run.id;
    if own || beside(&there).contains(doer) {
        return Ok(None);
    }
    let Some(origin) = of_run.run.undoes() else {
        let ended_ms = of_run.summary().ended_ms.unwrap_or(i64::MAX);
        let since = deployed_after(runs, &there.run, &place, ended_ms).await?;
        return Ok(since.then_some(there.run));
    };
    // An earlier rollback of the same run, which failed further on.
    let last = runs.run(&there.run).await?;
    let same = last.undoes().is_some_and(|other| other.run == origin.run);
    Ok((!same).then_some(there.run))
}

/// As [`deployed_after`]. The stages of a run that rolls another one back say when that one deployed; a run that is not
/// kept any more is an old one.
async fn came_after(
    runs: &Runs,
    other: &RunId,
    place: &Place,
    ended_ms: i64,
) -> Result<bool, RunError> {
    match runs.run(other).await {
        Ok(run) if run.undoes().is_some() => Ok(run.started_ms > ended_ms),
        Ok(_) => deployed_after(runs, other, place, ended_ms).await,
        Err(error) if error.name() == ErrorName::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether `other` changed the place after a stage that ended at `ended_ms`. What the stage itself deployed may never have
/// been noted, where it failed: then what is noted is older, and it goes back to that.
async fn deployed_after(
    runs: &Runs,
    other: &RunId,
    place: &Place,
    ended_ms: i64,
) -> Result<bool, RunError> {
    let (run, plan) = runs.load(other).await?;
    let of_place = plan
        .groups
        .iter()
        .flatten()
        .filter(|stage| place.is_of(stage));
    let mut known =
        of_place.filter_map(|stage| run.stages.iter().find(|known| known.id == stage.id));
    // One stage at a time has the infrastructure: another was there before this one began, or after it ended.
    Ok(known.any(|stage| {
        stage.started_ms.is_some() && stage.ended_ms.is_none_or(|other_ms| other_ms > ended_ms)
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use slipway_model::id::{AccountId, OrgId, ProjectId};

    use super::*;

    fn there(kind: &str, target: Value) -> DeployedRecord {
        let id = EntityId::new;
        DeployedRecord {
            scope: Scope::project(
                AccountId::new("acme"),
                OrgId::new("default"),
                ProjectId::new("shop"),
            ),
            service: id("web"),
            environment: id("prod"),
            infrastructure: id("main"),
            deployment_type: kind.to_owned(),
            target,
            run: RunId::new("one"),
            restores: None,
            artifact: None,
            before: None,
            counted: None,
            uncounted: None,
        }
    }

    /// What a run put beside what serves goes with it; what served before stands there too and does not.
    #[test]
    fn whose_versions_go_away_again() {
        let version = |role: &str, run: &str| json!({"serviceName": "w", "role": role, "run": run});
        let group = |strategy: &str, run: &str| json!({"name": "w", "strategy": strategy, "by": {"run": run}});
        let green = |run: &str| json!({"name": "w", "strategy": "BlueGreen", "by": {"run": run, "green": true}});
        let table = [
            (
                "ECS",
                json!({"taskDefinitionArn": "web:1", "beside": [version("before", "a"),
                    version("canary", "b"), version("left", "c"), version("green", "d")]}),
                "b d",
                "",
            ),
            (
                "ECS",
                json!({"taskDefinitionArn": null, "beside": [version("canary", "one")]}),
                "one",
                "one",
            ),
            // Lambda names no role.
            (
                "AwsLambda",
                json!({"version": "1", "beside": [{"version": "2", "run": "a"}]}),
                "a",
                "",
            ),
            (
                "Asg",
                json!({"groups": [group("Rolling", "a"), group("Canary", "b")]}),
                "b",
                "",
            ),
            (
                "Asg",
                json!({"groups": [group("Canary", "one")]}),
                "one",
                "one",
            ),
            (
                "Asg",
                json!({"groups": [group("BlueGreen", "a"), green("b")]}),
                "b",
                "",
            ),
            ("Asg", json!({"groups": [green("one")]}), "one", "one"),
            ("Asg", json!({"groups": []}), "", ""),
        ];
        for (kind, target, goes, only) in table {
            let there = there(kind, target);
            let found = beside(&there);
            let found: Vec<&str> = found.iter().map(RunId::as_str).collect();
            assert_eq!(found.join(" "), goes, "{there:?}");
            let run = RunId::new("one");
            assert_eq!(is_only_beside(&there, &run), only == "one", "{there:?}");
        }
    }

    /// It is not rolled back any more once another run has deployed; a canary is.
    #[test]
    fn what_is_no_canary_is_told_from_one() {
        let group = |strategy: &str, run: &str, green: bool| json!({"name": "w", "strategy": strategy, "by": {"run": run, "green": green}});
        let target = json!({"groups": [group("Phased", "a", false), group("Phased", "b", true), group("Canary", "c", false)]});
        let there = there("Asg", target);
        let green = |run: &str| is_green(&there, &RunId::new(run));
        assert_eq!(["a", "b", "c", "d"].map(green), [false, true, false, false]);
    }

    #[test]
    fn what_a_run_left_is_told_with_the_command_that_deletes_it() {
        let service = json!({"region": "eu-west-1", "cluster": "main", "beside": [
            {"serviceName": "webCanary", "role": "canary", "run": "one"},
            {"serviceName": "web__1", "role": "before", "run": "one"}]});
        let group = json!({"region": "eu-west-1", "groups": [
            {"name": "web__Canary", "strategy": "Canary", "by": {"run": "one"}},
            {"name": "web", "strategy": "Rolling", "by": {"run": "one"}}]});
        for (kind, target, command) in [
            (
                "ECS",
                service,
                "`aws ecs delete-service --force --region eu-west-1 --cluster main --service webCanary`",
            ),
            (
                "Asg",
                group,
                "`aws autoscaling delete-auto-scaling-group --force-delete --region eu-west-1 --auto-scaling-group-name \
                 web__Canary`",
            ),
        ] {
            let there = there(kind, target);
            let told = canaries_of(&there, &RunId::new("one"));
            assert!(told.len() == 1 && told[0].contains(command), "{told:?}");
            assert!(canaries_of(&there, &RunId::new("two")).is_empty());
        }
    }
}
