//! What a case must come to, told by an interpreter of its own: no store, no machines, no tokens, no crashes. It
//! follows the documents (FEATURES 6 to 9, `docs/ARCHITECTURE.md`) and shares no code with `crates/engine`.
//!
//! Where things happen at almost the same time more than one result is right: the interpreter is asked again with other
//! [`Delays`], and answers one story for each.

mod abort;
mod barrier;
mod delays;
mod run;
mod section;
mod span;
mod state;
mod step;
mod verdict;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;

use slipway_world::tap::Verdict;

use crate::ast::{Case, Fault, Stage, Story};
pub use delays::{Delays, Part};
use run::Run;

/// Longest silence of a delegate, in milliseconds.
const HEARTBEAT: u64 = 60_000;

/// How one run came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Its statuses.
    pub story: Story,
    /// When it ended, in milliseconds after the first start.
    pub ended_ms: u64,
    /// When people were asked, and about what.
    pub asked: Vec<Asked>,
    /// When stages went on.
    pub spans: Vec<Span>,
}

/// A stage goes on, or is rolled back with its run.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The stage.
    pub stage: String,
    /// From when, in milliseconds after the first start.
    pub from_ms: u64,
    /// Until when; the same while it goes on.
    pub to_ms: u64,
}

/// People are asked about a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The step.
    pub node: String,
    /// Whether for approvals, or else about its failure.
    pub votes: bool,
    /// When, in milliseconds after the first start.
    pub at_ms: u64,
    /// How many answers would do, in all.
    pub often: usize,
}

/// What all runs of a case share.
struct Model {
    case: Case,
    from: Instant,
    delays: RefCell<Delays>,
    lines: state::Lines,
}

impl Model {
    /// Something begins or ends, perhaps late.
    async fn passes(&self) {
        let delay = self.delays.borrow_mut().next();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    /// What happens at the same time as this comes before it, or after it.
    async fn settles(&self) {
        let instant = {
            let mut delays = self.delays.borrow_mut();
            match delays.none {
                true => Duration::ZERO,
                false => delays.instant(),
            }
        };
        if !instant.is_zero() {
            tokio::time::sleep(instant).await;
        }
    }

    /// The machine starts the branches of a block, or the turns of a loop: whatever is said meanwhile, none has begun.
    async fn forks(&self) {
        let instant = {
            let mut delays = self.delays.borrow_mut();
            match delays.none {
                true => Duration::ZERO,
                false => delays.fork(),
            }
        };
        if !instant.is_zero() {
            tokio::time::sleep(instant).await;
        }
    }

    /// A delegate works for an instant. Answers whether what is said meanwhile comes before its result.
    async fn works(&self) -> bool {
        let (instant, first) = {
            let mut delays = self.delays.borrow_mut();
            match delays.none {
                true => (Duration::ZERO, false),
                false => (delays.work(), delays.random().u32(0..4) > 0),
            }
        };
        if !instant.is_zero() {
            tokio::time::sleep(instant).await;
        }
        first
    }

    /// Whether one of the faults of the case hits here.
    fn goes_wrong(&self) -> bool {
        !self.case.faults.is_empty() && self.one_in(4)
    }

    /// Whether functions may be held up by what goes wrong.
    fn is_held_up(&self) -> bool {
        !self.case.faults.is_empty()
    }

    /// Whether others have deployed since to where a stage is rolled back with its run.
    fn was_overtaken(&self) -> bool {
        let deploys = |stage: &&Stage| stage.deploys.is_some();
        let stages = self.case.pipeline.stages().filter(deploys).count();
        stages * self.case.starts.len() > 1 && self.one_in(3)
    }

    /// Whether a function that is held up between two reads sees an end and not yet the abort that it brings about.
    fn reads_late(&self) -> bool {
        let stops = |fault: &Fault| {
            matches!(
                fault,
                Fault::Request {
                    verdict: Verdict::Stall(_) | Verdict::Fail { .. } | Verdict::Throttle,
                    ..
                }
            )
        };
        self.case.faults.iter().any(stops) && self.one_in(3)
    }

    /// From when on the machine waits for a delegate's word: it waits anew when Step Functions restarts.
    fn silent_from(&self, started: u64) -> u64 {
        let restarts = self.case.faults.iter().filter_map(|fault| match fault {
            Fault::Restart { at } => Some(at * 1_000),
            _ => None,
        });
        let mut within = restarts.filter(|at| (started..started + HEARTBEAT).contains(at));
        let restart = within.next().filter(|_| self.one_in(2));
        restart.unwrap_or(started)
    }

    fn one_in(&self, number: u32) -> bool {
        let mut delays = self.delays.borrow_mut();
        !delays.none && delays.random().u32(0..number) == 0
    }

    /// A time of the account's own.
    fn between(&self, least: u64, usual: u64, most: u64) -> u64 {
        let mut delays = self.delays.borrow_mut();
        match delays.none {
            true => usual,
            false => delays.random().u64(least..most),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.from.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn sleep_until(&self, at_ms: u64) {
        tokio::time::sleep_until(self.from + Duration::from_millis(at_ms)).await;
    }
}

/// Plays a case; one outcome for each of its runs.
///
/// # Panics
/// When the interpreter is stuck: that is a fault of the model.
pub fn play(case: &Case, delays: Delays) -> Vec<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let model = Rc::new(Model {
            case: case.expanded(),
            from: Instant::now(),
            delays: RefCell::new(delays),
            lines: state::Lines::default(),
        });
        let runs: Vec<Rc<Run>> = (0..case.starts.len())
            .map(|number| Rc::new(Run::new(Rc::clone(&model), number)))
            .collect();
        let plays = futures::future::join_all(runs.iter().map(|run| run.play()));
        let people = people(&model, &runs);
        let ((), ends) = tokio::join!(people, plays);
        let outcomes = runs.iter().zip(ends);
        outcomes
            .map(|(run, ended_ms)| Outcome {
                story: run.story(),
                ended_ms,
                asked: run.asked(),
                spans: run.spans(),
            })
            .collect()
    })
}

/// Everybody says what they have to say, when they have to.
async fn people(model: &Model, runs: &[Rc<Run>]) {
    let mut words = model.case.words.clone();
    words.sort_by_key(|said| said.at);
    for said in &words {
        model.sleep_until(said.at * 1_000).await;
        model.settles().await;
        if let Some(run) = runs.get(said.run) {
            run.hears(&said.word);
        }
    }
}
