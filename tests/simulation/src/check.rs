//! What must hold after every case.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use slipway_model::id::StageId;
use slipway_store::record::UndoRecord;
use slipway_world::tap::{Invocation, Verdict};

use crate::ast::{Case, Fault, Kind, Step};
use crate::effects;
use crate::model::{self, Delays, Outcome};
use crate::notices;
use crate::search::Search;
use crate::seen::{Seen, SeenRun};

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
    let written = case;
    let case = &case.expanded();
    let mut wrong = Vec::new();
    for (number, run) in seen.runs.iter().enumerate() {
        check_run(number, run, &mut wrong);
        let told = notices::check(case, run);
        wrong.extend(told.into_iter().map(|what| format!("run {number}: {what}")));
    }
    if seen.open != 0 {
        wrong.push(format!("{} executions are still open", seen.open));
    }
    for hold in &seen.holds {
        wrong.push(format!("somebody still holds or waits for {hold}"));
    }
    effects::check(case, seen, &mut wrong);
    check_time(case, seen, &mut wrong);
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    against_model(written, seen, answers)
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
        if let Some(undo) = &stage.undo {
            check_undo(&stage.id, undo, &mut say);
            continue;
        }
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

/// A stage that is rolled back with its run says how that went.
fn check_undo(stage: &StageId, undo: &UndoRecord, say: &mut impl FnMut(String)) {
    let told = undo.failure.as_ref();
    if !undo.status.is_final() || undo.ended_ms.is_none() {
        say(format!("rolling back stage {stage} is {:?}", undo.status));
    }
    if undo.status.is_good() == told.is_some() {
        say(format!(
            "rolling back stage {stage} came out as {:?}, and says {told:?}",
            undo.status
        ));
    }
}

/// A run with a time limit ends soon after it, whatever gets lost; what is rolled back has its own time.
fn check_time(case: &Case, seen: &Seen, wrong: &mut Vec<String>) {
    let Some(limit) = case.pipeline.timeout else {
        return;
    };
    let steps = case.pipeline.steps();
    let undo = steps
        .iter()
        .filter(|(id, _)| id.contains(".rollbackSteps."));
    let jumps = case.faults.iter().map(|fault| match fault {
        Fault::Jump { by, .. } => *by,
        _ => 0,
    });
    let more = UNDO * undo.count() as u64 + jumps.sum::<u64>() + LATE;
    for (number, (run, start)) in seen.runs.iter().zip(&case.starts).enumerate() {
        let ended = run.ended_ms / 1_000;
        if ended > start + limit + more {
            wrong.push(format!(
                "run {number} ended after {ended} s, began after {start} s and has {limit} s"
            ));
        }
    }
}

fn against_model(case: &Case, seen: &Seen, answers: u64) -> Result<Judged, String> {
    let Some(slack) = slack(case) else {
        return Ok(Judged::WithoutModel);
    };
    let first = differences(&model::play(case, Delays::none()), seen, slack);
    let mut left: BTreeSet<usize> = first.keys().copied().collect();
    if left.is_empty() {
        return Ok(Judged::Exactly);
    }
    let expanded = case.expanded();
    let mut search = Search::new(&expanded, seen, slack);
    for attempt in 0..answers {
        let delays = search.next(attempt);
        let answer = model::play(case, delays.clone());
        search.learn(&delays, &answer);
        let wrong = differences(&answer, seen, slack);
        match share(case) {
            true if !wrong.is_empty() => {}
            // What becomes of one run says nothing about the other.
            _ => left.retain(|number| wrong.contains_key(number)),
        }
        if left.is_empty() {
            return Ok(Judged::AsOneOfSeveral);
        }
    }
    let wrong: Vec<String> = first.into_values().collect();
    Err(wrong.join("\n"))
}

/// Whether the runs of a case wait for each other.
fn share(case: &Case) -> bool {
    let waits = |(_, step): &(String, &Step)| matches!(step.kind, Kind::Queue { .. });
    case.pipeline.stages().any(|stage| stage.deploys.is_some())
        || case.pipeline.steps().iter().any(waits)
}

/// What of each run is not as expected.
fn differences(expected: &[Outcome], seen: &Seen, slack: Duration) -> BTreeMap<usize, String> {
    let most = u64::try_from(slack.as_millis()).unwrap_or(u64::MAX);
    let mut wrong = BTreeMap::new();
    for (number, (expected, run)) in expected.iter().zip(&seen.runs).enumerate() {
        let mut lines = Vec::new();
        if expected.story != run.story {
            lines.push(format!("run {number}: {}", difference(expected, run)));
        }
        if expected.ended_ms.abs_diff(run.ended_ms) > most {
            let (expected, seen) = (expected.ended_ms / 1_000, run.ended_ms / 1_000);
            lines.push(format!(
                "run {number}: it ended after {seen} s, and the model says {expected} s"
            ));
        }
        if !lines.is_empty() {
            wrong.insert(number, lines.join("\n"));
        }
    }
    wrong
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

/// Longest that a rollback step may take with all its attempts and questions, in seconds.
const UNDO: u64 = 60_000;
/// How long after its time limit a run may end that has nothing to roll back, in seconds.
const LATE: u64 = 3_600;

/// What may be late by no more than this has a place in the model.
const LITTLE: Duration = Duration::from_secs(60);

/// How late things may be by what goes wrong; `None` where that is so long that everything is possible.
fn slack(case: &Case) -> Option<Duration> {
    let case = &case.expanded();
    let waits = case.pipeline.steps().len() as u64;
    let mut slack = Duration::from_secs(3 + waits);
    for (_, step) in case.pipeline.steps() {
        if matches!(step.kind, Kind::Deploy | Kind::Undo) {
            slack += Duration::from_secs(900);
        }
    }
    for fault in &case.faults {
        slack += match fault {
            Fault::Request { verdict, often, .. } => match verdict {
                Verdict::Pass => Duration::ZERO,
                // Lambda is invoked again after a backoff.
                Verdict::Die { .. } => Duration::from_secs(3),
                Verdict::Fail { .. } | Verdict::Throttle => Duration::from_secs(3 * often),
                Verdict::Stall(time) => *time + Duration::from_secs(2),
                Verdict::Lose | Verdict::Late(_) => return None,
                Verdict::Again(_) => Duration::from_secs(1),
            },
            // A wait that nobody ends lasts to its own end.
            Fault::Token { verdict, .. } => match verdict {
                Verdict::Again(_) => Duration::from_secs(1),
                Verdict::Late(time) if *time < LITTLE => *time + Duration::from_secs(1),
                _ => return None,
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
