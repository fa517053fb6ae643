//! What must hold after every case.

use std::collections::BTreeSet;
use std::time::Duration;

use slipway_model::status::{Failure, Status};
use slipway_world::tap::{Invocation, Verdict};

use crate::ast::{Case, Fault, Kind, Stage, list_id};
use crate::model::{self, Delays, Outcome};
use crate::play::{Seen, SeenRun};

/// How wide the model's answer was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The model said one thing, and that was seen.
    Exactly,
    /// It was one of several that races make right.
    AsOneOfSeveral,
    /// What goes wrong takes so long that the model has no opinion; everything else was checked.
    WithoutModel,
}

/// Checks a case; the error says all that does not hold. The model is asked again so many times where its first answer
/// is not what was seen.
///
/// # Errors
/// When something does not hold.
pub fn check(case: &Case, seen: &Seen, answers: u64) -> Result<Judged, String> {
    let mut wrong = Vec::new();
    for (number, run) in seen.runs.iter().enumerate() {
        check_run(number, run, &mut wrong);
    }
    if seen.open != 0 {
        wrong.push(format!("{} executions are still open", seen.open));
    }
    for hold in &seen.holds {
        wrong.push(format!("somebody still holds or waits for {hold}"));
    }
    check_deeds(seen, &mut wrong);
    check_services(case, seen, &mut wrong);
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    against_model(case, seen, answers)
}

fn check_run(number: usize, run: &SeenRun, wrong: &mut Vec<String>) {
    let mut say = |what: String| wrong.push(format!("run {number}: {what}"));
    let Some(record) = &run.record else {
        say("it does not end".to_owned());
        return;
    };
    if !record.status.is_final() || record.ended_ms.is_none() {
        say(format!(
            "its machine has ended, and it is {:?}",
            record.status
        ));
    }
    for stage in &record.stages {
        if !stage.status.is_final() {
            say(format!(
                "stage {} is {:?} at the end",
                stage.id, stage.status
            ));
        }
        let undone = |told: &str| told.contains("rolled back cleanly");
        let failure = stage.failure.as_ref();
        let told = failure.is_some_and(|f| f.left_behind.is_some() || undone(&f.message));
        if stage.rolled_back && !stage.status.is_good() && !told {
            say(format!(
                "stage {} was rolled back and does not say how that went",
                stage.id
            ));
        }
    }
    for node in &run.nodes {
        if !node.status.is_final() {
            say(format!(
                "{} #{} is {:?} at the end",
                node.id, node.attempt, node.status
            ));
        }
    }
    for wait in &run.waits {
        say(format!("the wait of {wait} is left behind"));
    }
    if let Some(changed) = &run.changed {
        say(format!(
            "it went on after its end; it was\n{}\nand is\n{changed}",
            run.story.told()
        ));
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
        let within = |id: &str| {
            stages
                .iter()
                .any(|stage| id.starts_with(&list_id(&stage.id, "")))
        };
        let nodes = seen.runs.iter().flat_map(|run| &run.nodes);
        let mut attempts =
            nodes.filter(|node| node.node_type == "EcsRollingDeploy" && within(node.id.as_str()));
        let begun = attempts
            .clone()
            .filter(|node| node.status != Status::Skipped)
            .count();
        if service.revisions > begun {
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
        let undone = summary.rolled_back && summary.failure.as_ref().is_some_and(cleanly);
        if undone && (service.running > 0 || service.desired > 0) {
            wrong.push(format!(
                "stage {} says that it was rolled back cleanly: {service:?}",
                stage.id
            ));
        }
        let deployed = attempts.any(|node| node.status == Status::Success);
        if deployed && !summary.rolled_back && service.running != 2 {
            wrong.push(format!(
                "stage {} has deployed two tasks: {service:?}",
                stage.id
            ));
        }
    }
}

fn against_model(case: &Case, seen: &Seen, answers: u64) -> Result<Judged, String> {
    let Some(slack) = slack(case) else {
        return Ok(Judged::WithoutModel);
    };
    let first = model::play(case, Delays::none());
    let Some(wrong) = differs(&first, seen, slack) else {
        return Ok(Judged::Exactly);
    };
    for attempt in 0..answers {
        let delays = Delays::some(case.seed.wrapping_add(attempt), slack);
        if differs(&model::play(case, delays), seen, slack).is_none() {
            return Ok(Judged::AsOneOfSeveral);
        }
    }
    Err(wrong)
}

fn differs(expected: &[Outcome], seen: &Seen, slack: Duration) -> Option<String> {
    let mut wrong = Vec::new();
    for (number, (expected, run)) in expected.iter().zip(&seen.runs).enumerate() {
        if expected.story != run.story {
            wrong.push(format!("run {number}: {}", difference(expected, run)));
        }
        let most = u64::try_from(slack.as_millis()).unwrap_or(u64::MAX);
        if expected.ended_ms.abs_diff(run.ended_ms) > most {
            let (expected, seen) = (expected.ended_ms / 1_000, run.ended_ms / 1_000);
            wrong.push(format!(
                "run {number}: it ended after {seen} s, and the model says {expected} s"
            ));
        }
    }
    (!wrong.is_empty()).then(|| wrong.join("\n"))
}

fn difference(expected: &Outcome, run: &SeenRun) -> String {
    let (expected, seen) = (expected.story.told(), run.story.told());
    let (model, real): (BTreeSet<&str>, BTreeSet<&str>) =
        (expected.lines().collect(), seen.lines().collect());
    let only = |one: &BTreeSet<&str>, other: &BTreeSet<&str>| {
        let lines: Vec<&str> = one.difference(other).copied().collect();
        lines.join("; ")
    };
    format!(
        "seen: {}\n  the model says: {}",
        only(&real, &model),
        only(&model, &real)
    )
}

/// How late things may be by what goes wrong; `None` where that is so long that everything is possible.
fn slack(case: &Case) -> Option<Duration> {
    let waits = case.pipeline.steps().len() as u64;
    let mut slack = Duration::from_secs(3 + waits);
    for (_, step) in case.pipeline.steps() {
        if matches!(step.kind, Kind::Deploy | Kind::Undo) {
            slack += Duration::from_secs(900);
        }
    }
    for fault in &case.faults {
        slack += match fault {
            Fault::Request { verdict, .. } => match verdict {
                Verdict::Pass => Duration::ZERO,
                // Lambda is invoked again after a backoff.
                Verdict::Die { .. } => Duration::from_secs(3),
                Verdict::Fail { .. } | Verdict::Throttle => Duration::from_secs(3),
                Verdict::Stall(time) => *time + Duration::from_secs(2),
            },
            Fault::Invocation { becomes, .. } => match becomes {
                Invocation::Once | Invocation::Twice => Duration::from_secs(1),
                Invocation::Refused(_) | Invocation::Unheard(_) => Duration::from_secs(3),
            },
            // A delegate's answer may be lost, and its silence lasts a minute.
            Fault::Restart { .. } => Duration::from_secs(65),
            Fault::Jump { .. } => return None,
        };
    }
    Some(slack)
}
