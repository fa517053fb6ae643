//! One open execution: its branches, and the rules that move them.
//!
//! A [`Run`] decides and writes nothing: it collects events, changed branches and [`Effect`]s in a
//! [`Step`], which the driver commits and then carries out. The same calls in the same order give the
//! same step, whatever happened to the process in between.

mod answer;
mod awaited;
mod children;
mod due;
mod enter;
mod failure;
mod flow;
mod limits;
mod map;
mod map_children;
mod map_run;
mod nested;
mod outcome;
mod redrive;
mod scope;
mod step;
mod task;
mod trial;
mod wait;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::definition::{Definition, Kind, State};
use crate::history::{Details, Event, EventType, details};
use crate::record::{Awaited, Branch, Execution, Phase, Status};

pub(crate) use answer::task_is_over;
pub(crate) use failure::Failure;
use map_children::Progress;
pub(crate) use map_children::map_run_of;
pub(crate) use map_run::{Change, map_run_has_ended};
pub(crate) use outcome::Answer;
use step::pending_effect;
pub(crate) use step::{Effect, Step};
pub(crate) use trial::{Mock, Trial};

/// Most events of one execution (Developer Guide, "Service quotas").
const MOST_EVENTS: u64 = 25_000;
/// Most bytes of a payload (Developer Guide, "Service quotas": 256 KiB).
pub(crate) const LONGEST_PAYLOAD: usize = 262_144;
/// States entered per commit: a loop that never waits must not keep others from running.
const STATES_PER_STEP: u64 = 64;

/// What a run must ask about the world while it decides.
pub(crate) trait World {
    fn activity_exists(&self, arn: &str) -> bool;
    fn region(&self) -> &str;
}

/// An open execution in memory.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) number: u64,
    pub(crate) execution: Execution,
    definition: Arc<Definition>,
    branches: BTreeMap<u32, Branch>,
    ready: VecDeque<u32>,
    next_event: u64,
    next_branch: u32,
    now: Timestamp,
    step: Step,
    /// How far the distributed `Map`s are, by branch. Rebuilt from their children after a restart.
    map_runs: BTreeMap<u32, Progress>,
    /// Branches as they stood before a failure that is on its way up let them go.
    fallen: BTreeMap<u32, Branch>,
    /// Set where one state runs by itself.
    pub(crate) trial: Option<Box<Trial>>,
}

impl Run {
    /// A new execution, with its first event.
    pub(crate) fn start(
        number: u64,
        execution: Execution,
        definition: Arc<Definition>,
        input: Value,
        now: Timestamp,
    ) -> Self {
        let machine = execution.processor.unwrap_or_default();
        let start_at = definition
            .machines
            .get(machine)
            .map(|machine| machine.start_at.clone())
            .unwrap_or_default();
        let role = execution.role.clone();
        let mut run = Self {
            number,
            execution,
            definition,
            branches: BTreeMap::new(),
            ready: VecDeque::new(),
            next_event: 1,
            next_branch: 0,
            now,
            step: Step {
                opened: true,
                ..Step::default()
            },
            map_runs: BTreeMap::new(),
            fallen: BTreeMap::new(),
            trial: None,
        };
        let started = details([
            ("input", Some(input.clone())),
            ("roleArn", Some(role.into())),
        ]);
        run.event(EventType::ExecutionStarted, 0, started);
        run.add_branch(Branch {
            parent: None,
            machine,
            state: start_at,
            input,
            item: None,
            variables: Map::new(),
            // AWS records 0 before the first state, not the start event.
            previous: 0,
            entered: 0,
            before: 0,
            entered_ms: 0,
            retries: Vec::new(),
            phase: Phase::Enter,
        });
        run
    }

    /// An open execution from the journal, with what was under way when the process ended.
    pub(crate) fn resume(
        number: u64,
        execution: Execution,
        definition: Arc<Definition>,
        branches: Vec<(u32, Branch)>,
        last_event: u64,
        now: Timestamp,
    ) -> Self {
        let mut run = Self::read(number, execution, definition, branches, last_event, now);
        let ids: Vec<u32> = run.branches.keys().copied().collect();
        for id in ids {
            run.resume_branch(id);
        }
        run
    }

    fn read(
        number: u64,
        execution: Execution,
        definition: Arc<Definition>,
        branches: Vec<(u32, Branch)>,
        last_event: u64,
        now: Timestamp,
    ) -> Self {
        Self {
            number,
            execution,
            definition,
            next_branch: branches.last().map_or(0, |(id, _)| id + 1),
            branches: branches.into_iter().collect(),
            ready: VecDeque::new(),
            next_event: last_event + 1,
            now,
            step: Step::default(),
            map_runs: BTreeMap::new(),
            fallen: BTreeMap::new(),
            trial: None,
        }
    }

    fn resume_branch(&mut self, id: u32) {
        let now_ms = self.now.as_millisecond();
        let Some(branch) = self.branches.get_mut(&id) else {
            return;
        };
        match &mut branch.phase {
            Phase::Enter | Phase::Run => self.ready.push_back(id),
            Phase::Task(task) => {
                // Heartbeats are not written down: after a restart the worker has a whole interval.
                if let (Some(_), Some(seconds)) = (task.heartbeat_ms, task.heartbeat_seconds) {
                    task.heartbeat_ms = Some(now_ms.saturating_add(seconds.saturating_mul(1000)));
                }
                if let Some(effect) = pending_effect(id, task.attempt, &task.awaited) {
                    self.step.effects.push(effect);
                }
            }
            Phase::MapRun(_) => self.resume_map_run(id),
            _ => {}
        }
    }

    /// Moves every branch as far as it goes without waiting, within one step's bounds.
    pub(crate) fn advance(&mut self, now: Timestamp, world: &dyn World) {
        self.now = now;
        let stop_at = self.step.transitions + STATES_PER_STEP;
        while self.step.transitions < stop_at && self.is_open() {
            if self.next_event + 10 > MOST_EVENTS {
                let failure = Failure::runtime(
                    "The execution reached the maximum number of history events (25000).",
                );
                self.fail_execution(0, &failure);
                return;
            }
            let Some(id) = self.ready.pop_front() else {
                return;
            };
            self.move_branch(id, world);
        }
    }

    /// Whether nothing is lost where this is dropped and made again by [`Run::resume`]: it waits for time, for a token
    /// or for an execution, and nothing is under way for it in this process.
    pub(crate) fn can_rest(&self) -> bool {
        let rests = |branch: (&u32, &Branch)| match &branch.1.phase {
            Phase::Wait { .. }
            | Phase::Backoff { .. }
            | Phase::Children(_)
            | Phase::Done { .. } => true,
            // Heartbeats are not written down.
            Phase::Task(task) => {
                let effect = pending_effect(*branch.0, task.attempt, &task.awaited);
                task.heartbeat_seconds.is_none()
                    && matches!(effect, None | Some(Effect::CheckChild { .. }))
            }
            Phase::Enter | Phase::Run | Phase::MapRun(_) => false,
        };
        !self.execution.express && self.trial.is_none() && self.branches.iter().all(rests)
    }

    /// Whether branches can move without waiting.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_open() && !self.ready.is_empty()
    }

    /// Whether nothing happened to it since it was started.
    pub(crate) fn has_only_started(&self) -> bool {
        self.next_event == 2
    }

    pub(crate) fn is_open(&self) -> bool {
        self.execution.status == Status::Running
    }

    /// Whether there is something to commit or to do.
    pub(crate) fn has_step(&self) -> bool {
        !self.step.events.is_empty() || !self.step.dirty.is_empty() || !self.step.effects.is_empty()
    }

    /// Records an event; gives its id.
    fn event(&mut self, kind: EventType, previous: u64, details: Option<Details>) -> u64 {
        let id = self.next_event;
        self.next_event += 1;
        let at = self.now.as_millisecond();
        self.step
            .events
            .push(Event(id, previous, at, kind, details));
        id
    }

    /// Records an event that a branch's next one follows.
    fn branch_event(&mut self, branch: u32, kind: EventType, details: Option<Details>) -> u64 {
        let previous = self.branches.get(&branch).map_or(0, |b| b.previous);
        let id = self.event(kind, previous, details);
        if let Some(branch) = self.branches.get_mut(&branch) {
            branch.previous = id;
        }
        self.step.dirty.insert(branch);
        id
    }

    fn add_branch(&mut self, branch: Branch) -> u32 {
        let id = self.next_branch;
        self.next_branch += 1;
        self.branches.insert(id, branch);
        self.step.dirty.insert(id);
        self.step.gone.remove(&id);
        self.ready.push_back(id);
        id
    }

    /// Forgets a branch; gives it, for a last look.
    fn drop_branch(&mut self, id: u32) -> Option<Branch> {
        self.step.dirty.remove(&id);
        self.step.gone.insert(id);
        self.ready.retain(|ready| *ready != id);
        self.branches.remove(&id)
    }

    /// What each branch is doing.
    pub(crate) fn phases(&self) -> impl Iterator<Item = (u32, &Phase)> {
        let branches = self.branches.iter();
        branches.map(|(id, branch)| (*id, &branch.phase))
    }

    /// What a branch is doing.
    pub(crate) fn phase(&self, id: u32) -> Option<&Phase> {
        self.branches.get(&id).map(|branch| &branch.phase)
    }

    fn set_phase(&mut self, id: u32, phase: Phase) {
        if let Some(branch) = self.branches.get_mut(&id) {
            branch.phase = phase;
            self.step.dirty.insert(id);
        }
    }

    /// Ends the execution with `status`; whatever is under way is let go.
    fn close(&mut self, status: Status) {
        self.execution.status = status;
        self.execution.stop_ms = Some(self.now.as_millisecond());
        self.step.closed = true;
        if status != Status::Succeeded && self.keeps_remains() {
            self.keep_remains();
        }
        let ids: Vec<u32> = self.branches.keys().copied().collect();
        for id in ids {
            if let Some(branch) = self.drop_branch(id) {
                self.let_go(&branch);
            }
        }
    }

    /// Stops the executions that a branch waits for.
    fn let_go(&mut self, branch: &Branch) {
        if let Phase::MapRun(map_run) = &branch.phase {
            self.record_map_run(map_run, Status::Aborted);
            self.stop_map_run(map_run.branch);
        }
        if let Phase::Task(task) = &branch.phase
            && let Awaited::Child {
                waits: true,
                child: Some(execution),
                ..
            } = task.awaited
        {
            self.step.effects.push(Effect::StopChild { execution });
        }
    }

    /// Ends the execution as `StopExecution` does.
    pub(crate) fn stop(&mut self, now: Timestamp, error: Option<String>, cause: Option<String>) {
        self.now = now;
        let stopped = details([
            ("error", error.clone().map(Value::from)),
            ("cause", cause.clone().map(Value::from)),
        ]);
        self.event(EventType::ExecutionAborted, 0, stopped);
        self.execution.error = error;
        self.execution.cause = cause;
        self.close(Status::Aborted);
    }

    fn time_out_execution(&mut self) {
        self.event(EventType::ExecutionTimedOut, 0, details([]));
        self.close(Status::TimedOut);
    }
}

/// The state that a branch is in.
fn state_of<'a>(definition: &'a Definition, branch: &Branch) -> Option<&'a State> {
    definition.state(branch.machine, &branch.state)
}

/// Entered, exited and aborted events of a kind of state; kinds that cannot be left have no exit.
fn state_events(kind: &Kind) -> (EventType, Option<EventType>, Option<EventType>) {
    use EventType as E;
    match kind {
        Kind::Pass { .. } => (E::PassStateEntered, Some(E::PassStateExited), None),
        Kind::Succeed => (E::SucceedStateEntered, Some(E::SucceedStateExited), None),
        Kind::Choice(_) => (E::ChoiceStateEntered, Some(E::ChoiceStateExited), None),
        Kind::Fail { .. } => (E::FailStateEntered, None, None),
        Kind::Task(_) => (
            E::TaskStateEntered,
            Some(E::TaskStateExited),
            Some(E::TaskStateAborted),
        ),
        Kind::Wait(_) => (
            E::WaitStateEntered,
            Some(E::WaitStateExited),
            Some(E::WaitStateAborted),
        ),
        Kind::Parallel { .. } => (
            E::ParallelStateEntered,
            Some(E::ParallelStateExited),
            Some(E::ParallelStateAborted),
        ),
        Kind::Map(_) => (
            E::MapStateEntered,
            Some(E::MapStateExited),
            Some(E::MapStateAborted),
        ),
    }
}
