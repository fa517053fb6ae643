//! What swap and traffic shift have in common: which version may serve, and what is noted when it does.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::beside::{self, Beside, Role};
use super::super::instances::{self, Change};
use super::super::rollback::Before;
use super::super::scaling::Scaling;
use super::super::service::{Described, Standing, describe};
use super::super::site::Site;
use super::super::task_definition::short;
use super::super::{divergence, served};
use super::balancer::{self, Rule};
use super::create::Phase as Creating;
use super::forward::Forward;
use super::made::Made;
use super::{Blue, Patience, tag, wrong};
use crate::context::StepContext;
use crate::deployment::Replaced;
use crate::deployment::invalid;

/// What `EcsBlueGreenCreateService` of this stage made, when it ended well.
pub(super) fn created(cx: &StepContext<'_>) -> Result<Made, Failure> {
    let made = Made::read(cx)?;
    made.filter(|made| made.phase == Creating::Done)
        .ok_or_else(|| {
            invalid(format!(
                "{} needs a step of type EcsBlueGreenCreateService before it in stage {}, and none has ended well.",
                cx.step().step_type,
                cx.stage().identifier
            ))
        })
}

/// Refuses a new version that is not what was deployed; waits while not all of its targets are healthy.
pub(super) async fn check_new(
    cx: &mut StepContext<'_>,
    site: &Site,
    made: &Made,
    (patience, unit): (&mut Patience, &'static str),
) -> Result<Option<Duration>, Failure> {
    let (name, routes) = (&made.handover.new, &made.handover.routes);
    let found = match describe(site, name).await? {
        Standing::Active(found) if made.is_ours(found.service.task_definition()) => found,
        Standing::Active(found) => {
            let runs = found.service.task_definition();
            return Err(wrong(format!(
                "Service {name} in {site} gets no requests: it runs {}, which this stage did not deploy.",
                short(runs.unwrap_or("an unknown task definition"))
            )));
        }
        Standing::Absent | Standing::Draining => {
            return Err(wrong(format!(
                "Service {name} in {site} gets no requests: somebody or something else deleted it after it was \
                 deployed."
            )));
        }
    };
    let wanted = i64::from(found.service.desired_count());
    if wanted == 0 {
        return Err(wrong(format!(
            "Service {name} in {site} gets no requests: somebody or something else scaled it to 0 tasks after it was \
             deployed."
        )));
    }
    let targets = (routes.stage_group.as_str(), wanted);
    patience.look(cx, site, targets, unit).await
}

/// Refuses target groups that are to get more requests of a rule than now and have nothing to answer them; waits while
/// their targets are checked.
pub(super) async fn check_groups(
    cx: &mut StepContext<'_>,
    site: &Site,
    (rule, wanted): (&Rule, &Forward),
    (patience, unit): (&mut Patience, &'static str),
) -> Result<Option<Duration>, Failure> {
    let groups = wanted.groups.iter().map(|one| one.group.as_str());
    for group in groups.filter(|group| wanted.gives_more(&rule.forward, group)) {
        let health = balancer::health(site, group).await?;
        if health.healthy > 0 {
            continue;
        }
        let name = &rule.place.rule;
        if health.waiting == 0 {
            return Err(wrong(format!(
                "Target group {group} gets no more requests of listener rule {name}: it has no targets to answer them. \
                 Deploy into it first, or give it a weight of 0."
            )));
        }
        if health.unused == health.waiting {
            return Err(wrong(format!(
                "Target group {group} gets no more requests of listener rule {name}: its targets are not checked while no \
                 rule names it. Let a shift before this one name it with a weight of 0."
            )));
        }
        return patience.look(cx, site, (group, 1), unit).await;
    }
    Ok(None)
}

/// Whether what a service was told last is what serves in it: somebody may have updated it in place, and that has not come up
/// or goes on. Its tasks end when it is scaled down, and what it was told last is what AWS would start then.
pub(super) async fn what_serves(
    cx: &mut StepContext<'_>,
    site: &Site,
    (blue, found): (&mut Blue, Described),
    unit: &'static str,
) -> Result<(), Failure> {
    let name = blue.name.clone();
    let noted = divergence::noted(cx, site, &name).await?;
    let running = found.service.running_count();
    let rolling = served::rolling(&found.service);
    let runs = noted.as_ref().map(|noted| noted.runs.as_str());
    let (service, passed_over) = served::kept(found, runs);
    let before = Before {
        service,
        running,
        scaling: None,
        passed_over,
    };
    let known = blue.serves.is_some();
    before
        .task_definition()
        .clone_into(&mut blue.task_definition);
    blue.serves = None;
    if before.passed_over.is_some() {
        if !known {
            divergence::tell(cx, site, (&name, &before), noted.as_ref(), unit).await?;
        }
        blue.serves = Some(Box::new(before));
    } else if let Some(came) = rolling {
        let runs = short(&blue.task_definition);
        let warning = format!(
            "Service {name} in {site} serves, and somebody else updates it to {runs}, which is on its way ({came}). The \
             deployment goes on; a rollback brings back {runs}, unless it is seen to fail before the requests move."
        );
        cx.warn_of_run(unit, &warning).await?;
    }
    Ok(())
}

/// What serves, as it is now: scaling may have changed it since it was written down, and an update that was on its way then
/// may have come up or failed.
pub(super) async fn as_it_is(
    cx: &mut StepContext<'_>,
    site: &Site,
    blue: &Blue,
    unit: &'static str,
) -> Result<Blue, Failure> {
    let Standing::Active(found) = describe(site, &blue.name).await? else {
        return Err(wrong(format!(
            "Service {} in {site} served when this stage began, and somebody or something else has deleted it since. \
             Nothing is swapped.",
            blue.name
        )));
    };
    let mut now = Blue {
        desired: i64::from(found.service.desired_count()),
        running: i64::from(found.service.running_count()),
        scaling: Scaling::describe(site, &blue.name).await?,
        ..blue.clone()
    };
    let runs = found.service.task_definition().unwrap_or_default();
    let unsettled = found.service.deployments().len() > 1 || blue.serves.is_some();
    // What somebody told it since is theirs.
    if unsettled && blue.may_run().contains(&runs) {
        what_serves(cx, site, (&mut now, *found), unit).await?;
    }
    Ok(now)
}

/// Tags the new service as what serves and the old one as what does not.
pub(super) async fn serve(
    cx: &mut StepContext<'_>,
    site: &Site,
    made: &Made,
    unit: &'static str,
) -> Result<(), Failure> {
    let arn = made.arn.as_deref().unwrap_or_default();
    tag::set(cx, site, (&made.handover.new, arn), tag::BLUE, unit).await?;
    match &made.handover.blue {
        Some(old) => tag::set(cx, site, (&old.name, &old.arn), tag::GREEN, unit).await,
        None => Ok(()),
    }
}

/// Notes that the new service serves, and what stands beside it. Answers with the step's outputs.
pub(super) async fn note(
    cx: &mut StepContext<'_>,
    site: &Site,
    made: &Made,
) -> Result<Value, Failure> {
    let handover = &made.handover;
    let name = handover.new.as_str();
    let arn = made.task_definition.as_deref().unwrap_or_default();
    let before = match &handover.blue {
        Some(blue) => {
            let record = beside::record(cx, site).await?;
            let run = record.and_then(|record| beside::run_of(&record, &blue.name));
            Some(Beside {
                service_name: blue.name.clone(),
                task_definition_arn: blue.task_definition.clone(),
                run: run.unwrap_or_else(|| cx.run().clone()),
                role: Role::Before,
            })
        }
        None => None,
    };
    beside::set_before(cx, (site, name), before).await?;
    let replaced = handover.blue.as_ref();
    let replaced = replaced.map(|_| Replaced::record(handover.replaced.as_ref()));
    let instances = instances::note(cx, site, (name, arn), Change::Deployed(replaced)).await?;
    let outcome = json!({"serverInstanceInfoList": instances});
    Ok(json!({
        "output": {
            "serviceName": name,
            "oldServiceName": handover.blue.as_ref().map(|blue| &blue.name),
            "taskDefinitionArn": arn,
            "deploymentInfoOutcome": outcome,
        },
        "deploymentInfoOutcome": outcome,
    }))
}
