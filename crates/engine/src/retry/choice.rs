//! Whether a failed run can go on, from where, and what of it stays. Pure.

use std::collections::BTreeSet;

use slipway_model::id::{RunId, StageId};
use slipway_plan::{Plan, StagePlan};
use slipway_store::record::{RunRecord, StageSummary};

use super::root_started_ms;
use crate::runs::summary;
use crate::stage::written;

/// How old the first run of a chain of retries may be: 30 days, as Harness has it.
const OLDEST_MS: i64 = 30 * 24 * 60 * 60 * 1_000;

/// What a retry does with the stages of a run; all others run as after any stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Their results are taken over, in the order of the plan.
    pub(super) kept: Vec<StageId>,
    /// They run again, and with them the run goes on.
    pub(super) again: Vec<StageId>,
}

/// Whether a run failed and is young enough.
pub(super) fn may_retry(run: &RunRecord, now_ms: i64) -> Result<(), String> {
    let id = &run.id;
    if let Some(origin) = run.undoes() {
        return Err(format!(
            "run {id} is the rollback of run {}: ask for that rollback again, not for a retry",
            origin.run
        ));
    }
    if !run.status.is_final() {
        return Err(format!(
            "run {id} has not ended ({:?}): wait for its end or abort it, then retry it",
            run.status
        ));
    }
    if run.status.is_good() {
        return Err(format!(
            "run {id} ended {:?}: there is nothing to retry, run it again as a whole",
            run.status
        ));
    }
    if now_ms.saturating_sub(root_started_ms(run)) > OLDEST_MS {
        return Err(format!(
            "run {id} cannot be retried any more: its first run began more than 30 days ago"
        ));
    }
    if let Some(parent) = &run.parent {
        return Err(format!(
            "run {id} is a part of run {}: retry that one",
            parent.run
        ));
    }
    if run.plan.is_none() {
        return Err(format!("run {id} was never planned: run it again"));
    }
    Ok(())
}

/// The groups of a run that it can be retried from: up to the first in which a stage failed.
pub(super) fn groups(
    plan: &Plan,
    stages: &[StageSummary],
) -> Result<Vec<Vec<StageSummary>>, String> {
    let mut found = Vec::new();
    for group in &plan.groups {
        let group: Vec<StageSummary> = group.iter().map(|stage| summary(stages, stage)).collect();
        let failed = !group.iter().all(stands);
        found.push(group);
        if failed {
            return Ok(found);
        }
    }
    Err("none of its stages failed: run it again as a whole".to_owned())
}

/// Whether what a stage did is there: it succeeded, and was not rolled back with its run.
pub(super) fn stands(stage: &StageSummary) -> bool {
    stage.status.is_good() && stage.undo.is_none()
}

/// Whether the pipeline still has the stages that it had: what a run did is no result of others. Harness refuses to
/// take a run up again too when stages were added, deleted or renamed since; what is in them may change.
pub(super) fn same_stages(run: &RunId, before: &Plan, now: &Plan) -> Result<(), String> {
    let (before, now) = (shape(before), shape(now));
    if before == now {
        return Ok(());
    }
    Err(format!(
        "the stages of the pipeline have changed since run {run}: it had {}, it has {} now; run it again as a whole",
        told(&before),
        told(&now)
    ))
}

/// The stages of each group as the pipeline writes them; the waves of a loop are one group.
fn shape(plan: &Plan) -> Vec<BTreeSet<&str>> {
    let groups = plan.groups.iter();
    let mut shape: Vec<BTreeSet<&str>> = groups
        .map(|group| group.iter().map(written).collect())
        .collect();
    shape.dedup();
    shape
}

fn told(shape: &[BTreeSet<&str>]) -> String {
    let group = |stages: &BTreeSet<&str>| {
        let names: Vec<&str> = stages.iter().copied().collect();
        names.join(" beside ")
    };
    shape.iter().map(group).collect::<Vec<_>>().join(", ")
}

/// What a retry from the stages `wanted` takes over. In the group where it begins, stages that succeeded are
/// taken over unless `all` shall run, or nothing failed beside them.
pub(super) fn taken(
    run: &RunId,
    plan: &Plan,
    stages: &[StageSummary],
    wanted: &[String],
    all: bool,
) -> Result<Taken, String> {
    let is_wanted = |stage: &StagePlan| {
        let names = [stage.id.as_str(), written(stage)];
        wanted.iter().any(|name| names.contains(&name.as_str()))
    };
    for name in wanted {
        let mut known = plan.groups.iter().flatten();
        if !known.any(|stage| name == stage.id.as_str() || name == written(stage)) {
            return Err(format!(
                "run {run} has no stage `{name}`; it has {}",
                told(&shape(plan))
            ));
        }
    }
    let first = plan
        .groups
        .iter()
        .position(|group| group.iter().any(is_wanted));
    let Some((before, group)) = first.and_then(|first| {
        let (before, rest) = plan.groups.split_at(first);
        Some((before, rest.first()?))
    }) else {
        return Err(format!("no stage of run {run} is named to go on from"));
    };
    let together: BTreeSet<&str> = group.iter().map(written).collect();
    let mut later = plan
        .groups
        .iter()
        .flatten()
        .filter(|stage| is_wanted(stage));
    if let Some(other) = later.find(|stage| !together.contains(written(stage))) {
        return Err(format!(
            "stage `{}` does not run beside {}: name one stage to go on from, or several of one parallel block",
            other.id,
            told(&[together])
        ));
    }
    let good = |stage: &StagePlan| stands(&summary(stages, stage));
    for stage in before.iter().flatten() {
        let known = summary(stages, stage);
        if !stands(&known) {
            let how = match known.undo {
                Some(_) => "was rolled back with the run".to_owned(),
                None => format!("is {:?}", known.status),
            };
            return Err(format!(
                "stage `{}` of run {run} {how}: go on from it, or from an earlier one",
                stage.id
            ));
        }
    }
    let failed = !group.iter().all(good);
    let runs_again = |stage: &&StagePlan| match (all, failed) {
        (true, _) => true,
        (false, true) => !good(stage),
        (false, false) => is_wanted(stage),
    };
    let (again, beside): (Vec<&StagePlan>, Vec<&StagePlan>) = group.iter().partition(runs_again);
    let kept = before.iter().flatten().chain(beside);
    Ok(Taken {
        kept: kept.map(|stage| stage.id.clone()).collect(),
        again: again.into_iter().map(|stage| stage.id.clone()).collect(),
    })
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
