//! From a seed to a whole case: the pipeline, what people say meanwhile, and what goes wrong.

use fastrand::Rng;
use slipway_world::tap::{Invocation, Place, Verdict};

use crate::ast::{Case, Fault, Said, Word};
use crate::grammar::Grammar;
use crate::model::{self, Delays};

/// The answers to a failure.
const ANSWERS: [&str; 7] = [
    "Retry",
    "Retry",
    "Ignore",
    "MarkAsSuccess",
    "MarkAsFailure",
    "StageRollback",
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
    };
    if random.u32(0..3) > 0 {
        answers(&mut case, &mut random);
    }
    if random.u32(0..3) == 0 {
        interrupts(&mut case, &mut random);
    }
    faults(&mut case, &mut random);
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
            let steps = case.pipeline.steps();
            let (node, _) = &steps[random.usize(0..steps.len())];
            let word = Word::MarkNode(node.clone());
            case.words.push(Said { at, run, word });
        }
    }
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
    let after = random.bool();
    let verdict = match random.u32(0..8) {
        0..=3 => Verdict::Die { after },
        4..=5 => Verdict::Fail { after },
        6 => Verdict::Throttle,
        // Lambda kills a function at its limit: nothing goes on later than that.
        _ => Verdict::Stall(std::time::Duration::from_secs(random.u64(1..LIMIT))),
    };
    match random.u32(0..20) {
        0..=11 => Fault::Request {
            place: Place::Store,
            number: random.u64(1..120),
            verdict,
        },
        12..=14 => Fault::Request {
            place: Place::Workflows,
            number: random.u64(1..6),
            verdict,
        },
        15..=17 => Fault::Invocation {
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
