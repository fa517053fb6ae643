//! From a seed to a whole case: the pipeline, what people say meanwhile, and what goes wrong.

use std::time::Duration;

use fastrand::Rng;
use slipway_world::tap::{Invocation, Place, Verdict};

use crate::ast::{Case, Fault, Freeze, Said, Stop, Word};
use crate::grammar::Grammar;
use crate::model::{self, Delays, Span};

/// The answers to a failure.
const ANSWERS: [&str; 8] = [
    "Retry",
    "Retry",
    "Ignore",
    "MarkAsSuccess",
    "MarkAsFailure",
    "StageRollback",
    "PipelineRollback",
    "Abort",
];

/// A little less than the time limit of functions, in seconds.
const LIMIT: u64 = 55;

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut random = Rng::with_seed(seed);
    let pipeline = Grammar::new(&mut random).pipeline();
    let mut starts = vec![0];
    if random.u32(0..8) == 0 {
        starts.push(random.u64(0..900));
    }
    let mut case = Case {
        seed,
        pipeline,
        starts,
        words: Vec::new(),
        faults: Vec::new(),
        notices: None,
        freeze: None,
    };
    let deploys = case.pipeline.stages().any(|stage| stage.deploys.is_some());
    if deploys && random.u32(0..3) == 0 {
        case.freeze = Some(Freeze {
            from: random.u64(0..60),
            length: random.u64(30..120),
        });
    }
    if random.u32(0..12) == 0 {
        // The server does not know who asks when it turns requests away.
        let away = if case.has_server() { 1 } else { 3 };
        case.notices = Some(random.usize(0..away));
    }
    if random.u32(0..3) > 0 {
        answers(&mut case, &mut random);
    }
    if random.u32(0..3) == 0 {
        interrupts(&mut case, &mut random);
    }
    faults(&mut case, &mut random);
    // Drawn last: the other seeds mean what they meant before there was such a word.
    if random.u32(0..6) == 0 {
        about_stage(&mut case, &mut random);
    }
    case
}

/// People answer what they are asked, as the model tells when that is.
fn answers(case: &mut Case, random: &mut Rng) {
    for _ in 0..6 {
        let outcomes = model::play(case, Delays::none());
        let known = |run: usize, node: &str, case: &Case| {
            let about = |said: &&Said| match &said.word {
                Word::Vote { node: of, .. } | Word::Answer { node: of, .. } => of == node,
                _ => false,
            };
            case.words
                .iter()
                .filter(about)
                .filter(|said| said.run == run)
                .count()
        };
        let asked = outcomes.iter().enumerate().find_map(|(run, outcome)| {
            let mut asked = outcome.asked.iter();
            asked
                .find(|asked| known(run, &asked.node, case) < asked.often)
                .map(|asked| (run, asked.clone()))
        });
        let Some((run, asked)) = asked else { return };
        let at = asked.at_ms / 1_000 + random.u64(1..1_200);
        let node = asked.node.clone();
        let word = match asked.votes {
            true => Word::Vote {
                node,
                who: ["kim", "sam", "lou"][random.usize(0..3)].to_owned(),
                approves: random.u32(0..5) > 0,
            },
            false => Word::Answer {
                node,
                action: ANSWERS[random.usize(0..ANSWERS.len())],
            },
        };
        case.words.push(Said { at, run, word });
    }
}

/// Somebody stops, pauses or fails what runs.
fn interrupts(case: &mut Case, random: &mut Rng) {
    let outcomes = model::play(case, Delays::none());
    let run = random.usize(0..outcomes.len());
    let end = (outcomes[run].ended_ms / 1_000).clamp(2, 100_000);
    let mut say = |at, word| case.words.push(Said { at, run, word });
    let at = random.u64(1..=end);
    match random.u32(0..6) {
        0..=1 => say(at, Word::Abort),
        2 => {
            say(at, Word::Pause);
            say(at + random.u64(1..3_000), Word::Resume);
        }
        3 => say(at, Word::MarkAsFailed),
        4 => say(at, Word::Expire),
        _ => {
            let steps = case.expanded().pipeline;
            let steps = steps.steps();
            let (node, _) = &steps[random.usize(0..steps.len())];
            let word = Word::MarkNode(node.clone());
            case.words.push(Said { at, run, word });
        }
    }
}

/// Somebody stops one stage while it goes on.
fn about_stage(case: &mut Case, random: &mut Rng) {
    let outcomes = model::play(case, Delays::none());
    let run = random.usize(0..outcomes.len());
    // Others are over before anybody could say anything.
    let long = |span: &&Span| span.to_ms >= span.from_ms + 2_000;
    let spans: Vec<&Span> = outcomes[run].spans.iter().filter(long).collect();
    if spans.is_empty() {
        return;
    }
    let span = spans[random.usize(0..spans.len())];
    let at = random.u64(span.from_ms / 1_000 + 1..=span.to_ms / 1_000);
    let stage = span.stage.clone();
    let word = match random.u32(0..5) {
        0..=1 => Word::AbortStage(stage),
        2 => Word::StopStage(stage, Stop::Fail),
        3 => Word::StopStage(stage, Stop::Expire),
        _ => Word::StopStage(stage, Stop::RollBack),
    };
    case.words.push(Said { at, run, word });
}

fn faults(case: &mut Case, random: &mut Rng) {
    let count = match random.u32(0..10) {
        0..=3 => 0,
        4..=7 => 1,
        _ => random.u32(2..4),
    };
    for _ in 0..count {
        let fault = fault(case, random);
        let restarts = |fault: &Fault| matches!(fault, Fault::Restart { .. });
        if !(restarts(&fault) && case.faults.iter().any(restarts)) {
            case.faults.push(fault);
        }
    }
}

fn fault(case: &Case, random: &mut Rng) -> Fault {
    match random.u32(0..24) {
        0..=11 => request(Place::Store, 120, random),
        12..=13 => request(Place::Workflows, 6, random),
        // Time stands still for whoever talks to a server, also where a target must be asked again.
        14 if !case.has_server() => request(Place::Target, 40, random),
        14..=17 => Fault::Token {
            number: random.u64(1..10),
            verdict: match random.u32(0..6) {
                0 => Verdict::Lose,
                1..=2 => Verdict::Late(Duration::from_secs(random.u64(1..3_000))),
                3 => Verdict::Again(Duration::ZERO),
                _ => Verdict::Again(Duration::from_secs(random.u64(1..3_000))),
            },
        },
        18..=20 => Fault::Invocation {
            number: random.u64(1..30),
            becomes: match random.u32(0..4) {
                0..=1 => Invocation::Twice,
                2 => Invocation::Refused("Lambda.TooManyRequestsException"),
                _ => Invocation::Unheard("Lambda.ServiceException"),
            },
        },
        _ => {
            let outcomes = model::play(case, Delays::none());
            let end = (outcomes[0].ended_ms / 1_000).clamp(2, 100_000);
            let at = random.u64(1..=end);
            match random.u32(0..3) {
                0 => Fault::Jump {
                    at,
                    by: random.u64(1..8_000),
                },
                _ => Fault::Restart { at },
            }
        }
    }
}

/// Something about the requests to a service, one of the first `most`.
fn request(place: Place, most: u64, random: &mut Rng) -> Fault {
    let after = random.bool();
    let verdict = match random.u32(0..8) {
        0..=3 => Verdict::Die { after },
        4..=5 => Verdict::Fail { after },
        6 => Verdict::Throttle,
        // Lambda kills a function at its limit: nothing goes on later than that.
        _ => Verdict::Stall(Duration::from_secs(random.u64(1..LIMIT))),
    };
    let refuses = matches!(verdict, Verdict::Fail { .. } | Verdict::Throttle);
    // Clients try thrice. What a step does about a target that goes on refusing is the step's own affair.
    let often = match place {
        Place::Target if refuses => random.u64(1..3),
        _ if refuses && random.bool() => random.u64(2..9),
        _ => 1,
    };
    Fault::Request {
        place,
        number: random.u64(1..most),
        often,
        verdict,
    }
}
