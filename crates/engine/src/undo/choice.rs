//! Whether what a run deployed can be rolled back, and which stages. Pure.

use std::collections::{BTreeMap, BTreeSet};

use slipway_model::id::{RunId, StageId};
use slipway_model::status::Status;
use slipway_plan::{CHAINED, Plan, StagePlan};
use slipway_store::record::{NodeRecord, RunRecord};

use super::Which;
use crate::lane::Facts;
use crate::runs::summary;
use crate::stage::{can_be_undone, has_undoing, written};

/// How old a run may be that is rolled back: 30 days, as Harness has it.
const OLDEST_MS: i64 = 30 * 24 * 60 * 60 * 1_000;

/// Most stages that are rolled back at once: their claims are written together with the run.
const MOST_STAGES: usize = 90;

/// What is left to do of stages that were rolled back before.
#[derive(Debug, PartialEq)]
pub(super) enum Left<'p> {
    /// These.
    Stages(Vec<&'p StagePlan>),
    /// Nothing: this run does all of it, or did the last of it.
    Nothing(RunId),
    /// Another run is at work on some of them, and this is how that is told.
    Busy(String),
}

/// Whether a run is of the kind that is rolled back: it succeeded, not long ago, and is no rollback itself.
pub(super) fn may_undo(run: &RunRecord, now_ms: i64) -> Result<(), String> {
    let id = &run.id;
    if let Some(origin) = run.undoes() {
        return Err(format!(
            "run {id} is itself the rollback of run {}: run the pipeline again to deploy that version",
            origin.run
        ));
    }
    match run.status {
        Status::Success => {}
        Status::IgnoreFailed => {
            return Err(format!(
                "run {id} succeeded only because failures were ignored, and such a run cannot be rolled back: \
                 deploy the version that you want"
            ));
        }
        status if !status.is_final() => {
            return Err(format!(
                "run {id} has not ended ({status:?}): wait for its end, or abort it"
            ));
        }
        Status::Aborted => {
            return Err(format!(
                "run {id} was aborted, and only runs that succeeded can be rolled back: an abort stops a run where it is, and no \
                 rollback step runs after it. Its failure says what it left; deploy the version that you want"
            ));
        }
        status => {
            return Err(format!(
                "run {id} ended {status:?}, and only runs that succeeded can be rolled back: its failure strategies \
                 have decided what was rolled back"
            ));
        }
    }
    if now_ms.saturating_sub(run.started_ms) > OLDEST_MS {
        return Err(format!(
            "run {id} cannot be rolled back any more: it began more than 30 days ago; deploy the version that you want"
        ));
    }
    Ok(())
}

/// What leads on where a run was aborted that had begun to shift requests: the next deployment refuses a rule that sends them to
/// two versions.
pub(super) fn split<'n>(
    run: &RunRecord,
    nodes: impl Iterator<Item = &'n NodeRecord>,
) -> Option<String> {
    let mut kinds = nodes.map(|node| node.node_type.as_str());
    let shifts =
        kinds.find(|kind| ["AsgShiftTraffic", "EcsBlueGreenTrafficShift"].contains(kind))?;
    let how = match shifts {
        "EcsBlueGreenTrafficShift" => {
            "by an EcsBlueGreenTrafficShift of type Standalone on that rule in a stage of its own, or by hand"
        }
        _ => "by `aws elbv2 modify-rule`; the next AsgBlueGreenDeploy gives the whole command",
    };
    (run.status == Status::Aborted).then(|| {
        format!(
            "Where its {shifts} left a listener rule that sends requests to both versions, send all of them to one first, {how}"
        )
    })
}

/// The stages that are asked for, in the order of the plan.
pub(super) fn wanted<'p>(
    run: &RunId,
    plan: &'p Plan,
    which: &Which,
) -> Result<Vec<&'p StagePlan>, String> {
    let stages = || plan.groups.iter().flatten();
    let chosen: Vec<&StagePlan> = match which {
        Which::All => stages().collect(),
        Which::At(place) => stages().filter(|stage| place.is_of(stage)).collect(),
        Which::Named(names) => {
            let is =
                |stage: &StagePlan, name: &str| name == stage.id.as_str() || name == written(stage);
            if let Some(name) = names.iter().find(|name| !stages().any(|s| is(s, name))) {
                let all: BTreeSet<&str> = stages().map(written).collect();
                let all: Vec<&str> = all.into_iter().collect();
                return Err(format!(
                    "run {run} has no stage `{name}`; it has {}",
                    all.join(", ")
                ));
            }
            let any = |stage: &&StagePlan| names.iter().any(|name| is(stage, name));
            stages().filter(any).collect()
        }
    };
    match (chosen.is_empty(), which) {
        (true, Which::At(place)) => Err(format!("no stage of run {run} deploys {place}")),
        (true, _) => Err(format!("no stage of run {run} is named")),
        (false, _) => Ok(chosen),
    }
}

/// Those of the stages that have something to roll back. Without a name, a stage that has nothing is left out; at
/// least one that deployed must be among the others.
pub(super) fn undoable<'p>(
    run: &RunRecord,
    wanted: &[&'p StagePlan],
    facts: &Facts,
    all: bool,
) -> Result<Vec<&'p StagePlan>, String> {
    let can = |stage: &StagePlan| can_be_undone(stage, &summary(&run.stages, stage), facts);
    if let Some(stage) = wanted.iter().find(|stage| !all && !can(stage)) {
        let why = match has_undoing(stage, facts) {
            false => "it has no rollback steps",
            true => "it ran no steps",
        };
        return Err(format!(
            "stage `{}` of run {} cannot be rolled back: {why}",
            stage.id, run.id
        ));
    }
    let found: Vec<&StagePlan> = wanted.iter().copied().filter(|stage| can(stage)).collect();
    if !found.iter().any(|stage| stage.stage_type == "Deployment") {
        let mut chained = wanted.iter().filter(|stage| stage.stage_type == CHAINED);
        let advice = chained.next().map_or_else(String::new, |stage| {
            format!(
                "; stage `{}` ran another pipeline, whose run is rolled back by itself",
                stage.id
            )
        });
        return Err(format!(
            "run {} has nothing to roll back: no Deployment stage of it ran that has rollback steps{advice}",
            run.id
        ));
    }
    if found.len() > MOST_STAGES {
        return Err(format!(
            "run {} has {} stages to roll back, and at most {MOST_STAGES} are at once: name some of them",
            run.id,
            found.len()
        ));
    }
    Ok(found)
}

/// What is left of `stages` when those are taken away that `undos` rolled back or roll back: a stage is rolled back
/// once, unless that fails.
pub(super) fn left<'p>(
    run: &RunId,
    stages: &[&'p StagePlan],
    undos: &BTreeMap<StageId, RunRecord>,
) -> Left<'p> {
    let undone = |stage: &StagePlan| {
        undos.get(&stage.id).is_some_and(|undo| {
            let undo = summary(&undo.stages, stage).undo;
            undo.is_some_and(|undo| undo.status.is_good())
        })
    };
    let rest: Vec<&StagePlan> = stages.iter().copied().filter(|s| !undone(s)).collect();
    let running = |stage: &&StagePlan| {
        let undo = undos.get(&stage.id)?;
        (!undo.status.is_final()).then_some(undo)
    };
    let of_all = || stages.iter().filter_map(|stage| undos.get(&stage.id));
    let newest = || of_all().max_by_key(|undo| undo.started_ms);
    if rest.is_empty()
        && let Some(undo) = newest()
    {
        return Left::Nothing(undo.id.clone());
    }
    let Some(busy) = rest.iter().find_map(running) else {
        return Left::Stages(rest);
    };
    let same = |stage: &&StagePlan| undos.get(&stage.id).is_some_and(|undo| undo.id == busy.id);
    if rest.iter().all(same) {
        return Left::Nothing(busy.id.clone());
    }
    Left::Busy(format!(
        "run {} rolls stages of run {run} back already: wait for its end, then ask again",
        busy.id
    ))
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
