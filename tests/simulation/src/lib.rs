//! The simulation: random pipelines, random words of people and random faults, on the real machines, functions, store
//! and sandbox in virtual time, checked against a model. A seed decides everything and replays exactly.
//!
//! ```text
//! seed ──▶ grammar ──▶ Case ──▶ play (the real thing) ──▶ Seen ──▶ check ◀── model (an interpreter of its own)
//!                        ▲                                           │
//!                        └────────────── shrink ◀────────────────────┘
//! ```
//!
//! Checked after each case: every run has one final status, and it, those of its stages and of all nodes are what the
//! model says; the run ends when the model says; no delegate did anything twice; no wait, hold, place in a line or
//! execution is left; a stage that was rolled back says how that went; nothing moves after the end.
//!
//! [`deliveries`] does the same for what starts runs: webhooks from the sender to the run.

pub mod ast;
pub mod check;
pub mod crew;
pub mod deliveries;
mod effects;
pub mod faults;
pub mod grammar;
pub mod model;
pub mod notices;
pub mod play;
mod search;
pub mod seed;
pub mod seen;
pub mod shrink;
pub mod yaml;

use ast::Case;
use check::Judged;
use faults::Traced;

/// What was found.
pub struct Finding {
    /// The smallest case that shows it.
    pub case: Case,
    /// What does not hold.
    pub wrong: String,
}

/// How often the model is asked about a seed where its first answer is not what was seen.
const ANSWERS: u64 = 30_000;
/// The same while a case is shrunk.
const FEW_ANSWERS: u64 = 200;

/// Plays the case of a seed and checks it.
///
/// # Errors
/// What does not hold, with the smallest case that shows it.
pub fn simulate(seed: u64) -> Result<Judged, Box<Finding>> {
    let case = seed::case(seed);
    let wrong = match examine(&case, ANSWERS) {
        Ok(judged) => return Ok(judged),
        Err(wrong) => wrong,
    };
    let smaller = shrink::shrink(&case, |case| examine(case, FEW_ANSWERS).is_err());
    Err(Box::new(match examine(&smaller, ANSWERS) {
        Err(wrong) => Finding {
            case: smaller,
            wrong,
        },
        // What it was shrunk to is one of the rarer right answers.
        Ok(_) => Finding { case, wrong },
    }))
}

/// Plays a case and checks it; the model is asked so many times.
///
/// # Errors
/// What does not hold.
pub fn examine(case: &Case, answers: u64) -> Result<Judged, String> {
    let play = || check::check(case, &play::play(case, Traced::No), answers);
    std::panic::catch_unwind(play).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("a panic: {}", text.unwrap_or_default()))
    })
}

/// Plays the case of a seed as it is and checks it, and prints what functions do meanwhile: for one that does not end.
///
/// # Errors
/// What does not hold.
pub fn trace(seed: u64) -> Result<Judged, String> {
    let case = seed::case(seed);
    println!("{}", told(&case));
    let seen = play::play(&case, Traced::Printed);
    for (number, run) in seen.runs.iter().enumerate() {
        let seconds = run.ended_ms / 1_000;
        println!("run {number} after {seconds} s:\n{}", run.story.told());
    }
    println!("the model says:\n{}", first_answer(&case));
    check::check(&case, &seen, ANSWERS)
}

/// What the model says of a case where nothing is late.
fn first_answer(case: &Case) -> String {
    let outcomes = model::play(case, model::Delays::none());
    let outcomes = outcomes.iter().enumerate();
    let told: Vec<String> = outcomes
        .map(|(number, outcome)| {
            let seconds = outcome.ended_ms / 1_000;
            format!("run {number} after {seconds} s:\n{}", outcome.story.told())
        })
        .collect();
    told.join("\n")
}

/// A case for people: the pipeline, what is said and what goes wrong.
fn told(case: &Case) -> String {
    let mut lines = vec![
        yaml::pipeline(&case.pipeline, case.notices.is_some()),
        format!("runs start after (s): {:?}", case.starts),
        format!("{:?}", case.freeze),
    ];
    let words = case.words.iter();
    lines.extend(
        words.map(|said| format!("after {} s, run {}: {:?}", said.at, said.run, said.word)),
    );
    let faults = case.faults.iter();
    lines.extend(faults.map(|fault| format!("fault: {fault:?}")));
    lines.join("\n")
}

impl Finding {
    /// For people: what is wrong, the pipeline, what was said and went wrong, and what functions did.
    pub fn told(&self) -> String {
        let mut lines = vec![
            format!("seed {}: {}", self.case.seed, self.wrong),
            String::new(),
            told(&self.case),
        ];
        let seen = play::play(&self.case, Traced::Kept);
        lines.push("trace:".to_owned());
        lines.extend(seen.trace);
        for (number, run) in seen.runs.iter().enumerate() {
            lines.push(format!("run {number} after {} s:", run.ended_ms / 1_000));
            lines.push(run.story.told());
        }
        lines.push("the model says:".to_owned());
        lines.push(first_answer(&self.case));
        lines.join("\n")
    }
}
