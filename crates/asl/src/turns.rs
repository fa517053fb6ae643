//! Whose turn it is: of the executions that are started from outside, only so many begin at once, and few while others
//! are being started.
//!
//! A start is answered when it is durable. What it sets going competes with the next starts for the same processors and
//! the same file; left alone, a burst of starts is accepted as slowly as all of its work is done. So those that find no
//! turn stand in line, first come, first served: recorded as started, open, and with no history but that. While starts
//! keep coming, few are let in ([`Share`]); when none came for a moment, as many as there are turns. That moment is as
//! long as the process takes to look after everybody who is ready, so that it is short where processors are idle: nobody
//! waits for the sake of a rule.
//!
//! A turn ends when nothing is under way for the execution, or for one that it has started, in this process; or after
//! [`PATIENCE`], because what takes longer waits for somebody else.
//!
//! Whatever goes on never stands in line: answers, tokens, times, children, and what a function starts that was invoked
//! for an execution. Nor does the line keep what is in it: the journal does, and the next process on it reads it from there.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use slipway_clock::Share;

use crate::engine::Inner;
use crate::error::ApiError;
use crate::record::{Awaited, Execution, Phase};
use crate::run::Run;
use crate::sync::lock;

/// How long one execution keeps another from beginning.
const PATIENCE: Duration = Duration::from_millis(250);
/// Time between two looks at the line. Whoever is ready meanwhile is looked after first.
const BREATH: Duration = Duration::from_millis(1);

tokio::task_local! {
    /// Set in what a function does that was invoked for an execution.
    static GOES_ON: ();
}

/// Runs a function that was invoked for an execution: what it starts is a part of what goes on.
pub(crate) async fn going_on<T>(invocation: impl Future<Output = T>) -> T {
    GOES_ON.scope((), invocation).await
}

/// Whether this is done for an execution.
fn is_going_on() -> bool {
    GOES_ON.try_with(|()| ()).is_ok()
}

/// The turns of one engine.
pub(crate) struct Turns {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What is at work in somebody's turn: the execution, and whose turn it is.
    at_work: HashMap<u64, u64>,
    /// Turns, by the execution that was started.
    turns: HashMap<u64, Held>,
    /// Oldest first.
    line: VecDeque<u64>,
    /// Whether somebody lets in those who wait.
    kept: bool,
    share: Share,
}

struct Held {
    /// How many executions are at work in it.
    at_work: usize,
    since: Timestamp,
}

impl Turns {
    /// So many at once; all of them for `None`, as on AWS.
    pub(crate) fn new(most: Option<usize>) -> Self {
        Self {
            most: most.map_or(usize::MAX, |most| most.max(1)),
            state: Mutex::default(),
        }
    }

    /// Whether anybody may have to wait.
    pub(crate) fn is_bounded(&self) -> bool {
        self.most < usize::MAX
    }

    /// How many stand in line.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.state).line.len()
    }

    /// Takes a turn for a new execution, or joins that of its parent; where it must wait, `false`.
    pub(crate) fn take(&self, number: u64, execution: &Execution, now: Timestamp) -> bool {
        if !self.is_bounded() {
            return true;
        }
        let mut state = lock(&self.state);
        match execution.parent {
            Some(parent) => state.join(number, parent.execution),
            // Whoever starts an express execution may wait for its end, and its history is nowhere else.
            None if execution.express || is_going_on() => {}
            None if state.line.is_empty() && state.turns.len() < self.most => {
                state.begin(number, now);
            }
            None => return false,
        }
        true
    }

    /// Notes that nothing is under way for an execution in this process.
    pub(crate) fn rests(&self, number: u64) {
        if self.is_bounded() {
            lock(&self.state).leave(number);
        }
    }

    /// Puts executions into the line; whether somebody must be found who lets them in.
    fn line_up(&self, numbers: &[u64]) -> bool {
        let mut state = lock(&self.state);
        state.line.extend(numbers);
        state.share.come(numbers.len() as u64);
        !std::mem::replace(&mut state.kept, true)
    }

    /// Those whose turn it is by now; `None` where nobody waits any more.
    fn next(&self, now: Timestamp) -> Option<Vec<u64>> {
        let mut state = lock(&self.state);
        if state.line.is_empty() {
            state.kept = false;
            return None;
        }
        state.turns.retain(|_, held| is_short(held.since, now));
        let free = self.most.saturating_sub(state.turns.len());
        let count = free.min(state.share.due(now)).min(state.line.len());
        let next: Vec<u64> = state.line.drain(..count).collect();
        for number in &next {
            state.begin(*number, now);
            state.share.let_in(now);
        }
        Some(next)
    }
}

/// Whether less than [`PATIENCE`] has passed.
fn is_short(since: Timestamp, now: Timestamp) -> bool {
    let patience = SignedDuration::try_from(PATIENCE).unwrap_or(SignedDuration::MAX);
    now.duration_since(since) < patience
}

impl State {
    fn begin(&mut self, number: u64, since: Timestamp) {
        self.at_work.insert(number, number);
        self.turns.insert(number, Held { at_work: 1, since });
    }

    fn join(&mut self, number: u64, parent: u64) {
        let Some(turn) = self.at_work.get(&parent).copied() else {
            return;
        };
        if let Some(held) = self.turns.get_mut(&turn) {
            held.at_work += 1;
            self.at_work.insert(number, turn);
        }
    }

    fn leave(&mut self, number: u64) {
        let Some(turn) = self.at_work.remove(&number) else {
            return;
        };
        if let Some(held) = self.turns.get_mut(&turn) {
            held.at_work -= 1;
            if held.at_work == 0 {
                self.turns.remove(&turn);
            }
        }
    }
}

impl Inner {
    /// Does all of `work`, also where whoever asked for it goes away meanwhile: what is half done by then may have been
    /// written with the commit of somebody else, and nobody would look after it before the next process does.
    pub(crate) async fn whole<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Result<T, ApiError> {
        let done = match is_going_on() {
            true => self.tracked(going_on(work)),
            false => self.tracked(work),
        };
        // It ends without an answer only where it panicked, or the process ends.
        done.await
            .unwrap_or_else(|_| Err(ApiError::shutting_down()))
    }

    /// Lets executions wait for their turn that are in the journal and have not begun.
    pub(crate) fn line_up(self: &Arc<Self>, numbers: &[u64]) {
        if !numbers.is_empty() && self.turns.line_up(numbers) {
            self.track(let_in(Arc::clone(self)));
        }
    }
}

/// Lets in those who wait, until nobody does.
async fn let_in(engine: Arc<Inner>) {
    while let Some(next) = engine.turns.next(engine.clock.now()) {
        for number in next {
            if !engine.wake(number) {
                // Somebody had something to say to it, and it has begun.
                engine.turns.rests(number);
            }
        }
        tokio::select! {
            biased;
            () = engine.stop.cancelled() => return,
            () = engine.clock.sleep(BREATH) => {}
        }
    }
}

impl Run {
    /// Whether it has not begun yet.
    pub(crate) fn is_unbegun(&self) -> bool {
        self.execution.parent.is_none()
            && !self.execution.express
            && self
                .phases()
                .all(|(_, phase)| matches!(phase, Phase::Enter))
            && self.has_only_started()
    }

    /// Whether something is under way for it in this process, which a turn is for.
    pub(crate) fn is_at_work(&self) -> bool {
        self.phases().any(|(_, phase)| match phase {
            Phase::Enter | Phase::Run | Phase::MapRun(_) => true,
            Phase::Task(task) => is_under_way(&task.awaited),
            _ => false,
        })
    }
}

/// Whether a task waits for something that this process does at once.
fn is_under_way(awaited: &Awaited) -> bool {
    match awaited {
        Awaited::Function { .. } => true,
        Awaited::FunctionThenToken { submitted, .. } => !submitted,
        Awaited::Child { child, .. } => child.is_none(),
        Awaited::Service { submitted, .. } => submitted.is_none(),
        Awaited::Worker { .. } | Awaited::Token => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(millisecond).unwrap()
    }

    /// How many are let in one look after the other, while so many come before each.
    fn looks<const N: usize>(turns: &Turns, from_ms: i64, comes: [u64; N]) -> [usize; N] {
        let mut looks = (from_ms..).zip(comes);
        std::array::from_fn(|_| {
            let (now_ms, come) = looks.next().unwrap();
            turns.line_up(&(0..come).map(|n| 1_000_000 + n).collect::<Vec<_>>());
            let next = turns.next(at(now_ms)).unwrap_or_default();
            // Their work is quickly done.
            next.iter().for_each(|number| turns.rests(*number));
            next.len()
        })
    }

    #[test]
    fn few_begin_while_many_come_and_all_turns_are_taken_when_nobody_does() {
        let turns = Turns::new(Some(4));
        assert_eq!(looks(&turns, 0, [20, 5, 7, 40, 1]), [1, 0, 1, 2, 0]);
        assert_eq!(looks(&turns, 5, [0, 0, 0, 1, 0]), [4, 4, 4, 0, 4]);
    }

    #[test]
    fn one_at_a_time_begins_however_slowly_others_come() {
        let turns = Turns::new(Some(4));
        looks(&turns, 0, [20]);
        let mut begun = 0;
        for second in 1..=10 {
            begun += looks(&turns, second * 1_000, [1])[0];
        }
        assert_eq!(begun, 10);
    }

    #[test]
    fn a_turn_lasts_until_all_of_its_executions_rest() {
        let turns = Turns::new(Some(1));
        let mut state = lock(&turns.state);
        state.begin(1, at(0));
        state.join(2, 1);
        state.join(3, 2);
        // Of nobody's turn.
        state.join(5, 4);
        for (number, left) in [(1, 1), (1, 1), (5, 1), (2, 1), (3, 0)] {
            state.leave(number);
            assert_eq!(state.turns.len(), left, "{number}");
        }
        assert!(state.at_work.is_empty());
    }
}
