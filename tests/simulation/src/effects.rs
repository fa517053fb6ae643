//! What runs did to the world outside: delegates, servers, other pipelines, the account.

use std::collections::BTreeSet;

use slipway_engine::signal::warnings;
use slipway_model::status::{Failure, Status};
use slipway_store::record::{NodeRecord, UndoRecord};
use slipway_world::tap::{Place, Verdict};

use crate::ast::{Case, Fault, Kind, Stage};
use crate::seen::{Seen, SeenChild, SeenRun};

/// Adds what was done twice, or is not as the runs say that they left it.
pub(crate) fn check(case: &Case, seen: &Seen, wrong: &mut Vec<String>) {
    check_deeds(seen, wrong);
    check_requests(case, seen, wrong);
    check_children(case, seen, wrong);
    check_services(case, seen, wrong);
}

/// What is posted is never posted twice, and what succeeded was asked.
fn check_requests(case: &Case, seen: &Seen, wrong: &mut Vec<String>) {
    for (id, step) in case.pipeline.steps() {
        let Kind::Http(http) = &step.kind else {
            continue;
        };
        for (number, run) in seen.runs.iter().enumerate() {
            let (begun, good) = attempts(run, |node| node.identifier.as_str() == step.id);
            let asked = run.asked.iter().filter(|asked| **asked == step.id).count();
            if (http.posts && asked > begun) || asked < good {
                wrong.push(format!(
                    "run {number}: {id} asked {asked} times in {begun} attempts, of which {good} were good"
                ));
            }
        }
    }
}

/// How many attempts of some steps began, and how many succeeded by themselves and not because a failure strategy
/// says so.
fn attempts(run: &SeenRun, of: impl Fn(&NodeRecord) -> bool) -> (usize, usize) {
    let begun = |node: &&NodeRecord| of(node) && node.status != Status::Skipped;
    let begun = run.nodes.iter().filter(begun);
    let good = |node: &&NodeRecord| node.status == Status::Success && node.failure.is_none();
    (begun.clone().count(), begun.filter(good).count())
}

/// Each attempt of a stage that runs another pipeline has one run of it, which ends well where the attempt does.
fn check_children(case: &Case, seen: &Seen, wrong: &mut Vec<String>) {
    let chained = |stage: &&Stage| stage.child().is_some();
    for (number, run) in seen.runs.iter().enumerate() {
        for stage in case.pipeline.stages().filter(chained) {
            let (begun, good) = attempts(run, |node| stage.has(node.id.as_str()));
            let own = |child: &&SeenChild| child.stage == stage.id;
            let children: Vec<&SeenChild> = run.children.iter().filter(own).collect();
            let well = |child: &&&SeenChild| child.status == Status::Success;
            let left = |child: &&SeenChild| !child.status.is_final() || child.waits > 0;
            let ended_well = children.iter().filter(well).count();
            if children.len() > begun || ended_well < good || children.iter().any(left) {
                wrong.push(format!(
                    "run {number}: stage {} began {begun} times, {good} of them good, and leaves the runs {children:?}",
                    stage.id
                ));
            }
        }
    }
}

/// A delegate's work is done once per attempt.
fn check_deeds(seen: &Seen, wrong: &mut Vec<String>) {
    let mut known = BTreeSet::new();
    for deed in &seen.deeds {
        if !known.insert(deed) {
            wrong.push(format!("the delegate did {deed} twice"));
        }
    }
}

/// The account is as the runs say that they left it.
fn check_services(case: &Case, seen: &Seen, wrong: &mut Vec<String>) {
    for service in &seen.services {
        let deploys = |stage: &&Stage| {
            stage
                .deploys
                .is_some_and(|image| image.service() == service.name)
        };
        let stages: Vec<&Stage> = case.pipeline.stages().filter(deploys).collect();
        let within = |id: &str| stages.iter().any(|stage| stage.has(id));
        let nodes = seen.runs.iter().flat_map(|run| &run.nodes);
        let mut attempts =
            nodes.filter(|node| node.node_type == "EcsRollingDeploy" && within(node.id.as_str()));
        let begun = attempts
            .clone()
            .filter(|node| node.status != Status::Skipped)
            .count();
        // A client that hears of no success tries again.
        let unheard = case.faults.iter().map(|fault| match fault {
            Fault::Request {
                place: Place::Target,
                often,
                verdict: Verdict::Fail { after: true },
                ..
            } => usize::try_from(*often).unwrap_or(usize::MAX),
            _ => 0,
        });
        if service.revisions > begun + unheard.sum::<usize>() {
            wrong.push(format!(
                "{begun} attempts to deploy registered more than that: {service:?}"
            ));
        }
        let [stage] = stages.as_slice() else { continue };
        let [run] = seen.runs.as_slice() else {
            continue;
        };
        let record = run.record.iter().flat_map(|record| &record.stages);
        let Some(summary) = record.into_iter().find(|one| one.id.as_str() == stage.id) else {
            continue;
        };
        let cleanly = |failure: &Failure| failure.message.contains("rolled back cleanly");
        // What no rollback step undid is told of beside the failure.
        let warned = run.record.iter().any(|record| {
            let said = format!("Stage {} was rolled back:", stage.id);
            warnings(record)
                .iter()
                .any(|warning| warning.says.starts_with(&said))
        });
        let with_run = |undo: &UndoRecord| undo.status.is_good() && !warned;
        let undone = summary.undo.as_ref().is_some_and(with_run)
            || (summary.rolled_back && summary.failure.as_ref().is_some_and(cleanly));
        if undone && (service.running > 0 || service.desired > 0) {
            wrong.push(format!(
                "stage {} says that it was rolled back cleanly: {service:?}",
                stage.id
            ));
        }
        let deployed = attempts.any(|node| node.status == Status::Success);
        let untouched = !summary.rolled_back && summary.undo.is_none();
        if deployed && untouched && service.running != 2 {
            wrong.push(format!(
                "stage {} has deployed two tasks: {service:?}",
                stage.id
            ));
        }
    }
}
