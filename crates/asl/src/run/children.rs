//! Children of `Parallel` and inline `Map`: starting them, gathering their outputs, letting them go.

use serde_json::{Map, Value};

use super::failure::TOO_LONG;
use super::scope::Extra;
use super::{Failure, Mock, Run, state_events, state_of};
use crate::definition::{Kind, State};
use crate::history::{EventType, details};
use crate::record::{Branch, Children, Phase};
use crate::template::Template;

impl Run {
    pub(super) fn start_parallel(
        &mut self,
        id: u32,
        state: &State,
        arguments: Option<&Template>,
        machines: &[usize],
    ) -> Result<(), Failure> {
        let input = self.arguments(id, state, arguments, Extra::default())?;
        if let Some(mock) = self.mock() {
            return self.end_mocked(id, mock);
        }
        self.branch_event(id, EventType::ParallelStateStarted, None);
        self.set_phase(
            id,
            Phase::Children(Children {
                items: Vec::new(),
                total: machines.len(),
                max_concurrency: machines.len(),
            }),
        );
        let previous = self.previous_of(id);
        for (index, machine) in machines.iter().enumerate() {
            self.start_child((id, index), *machine, input.clone(), None, previous);
        }
        Ok(())
    }

    /// Ends a state of which only the outcome is given.
    pub(super) fn end_mocked(&mut self, id: u32, mock: Mock) -> Result<(), Failure> {
        match mock {
            Mock::Result(result) => self.finish_state(id, Some(result)),
            Mock::Failure { error, cause } => Err(Failure::named(error, cause)),
        }
    }

    pub(super) fn previous_of(&self, id: u32) -> u64 {
        self.branches.get(&id).map_or(0, |branch| branch.previous)
    }

    /// Starts iteration `index` of the `Map` in branch `id`.
    pub(super) fn start_iteration(&mut self, id: u32, index: usize, previous: u64) {
        let definition = self.definition();
        let Some(branch) = self.branches.get(&id) else {
            return;
        };
        let (Some(Kind::Map(map)), Phase::Children(children)) = (
            state_of(&definition, branch).map(|state| &state.kind),
            &branch.phase,
        ) else {
            return;
        };
        let input = children.items.get(index).cloned().unwrap_or_default();
        let item = self
            .item(id, &definition, index)
            .unwrap_or_else(|| input.clone());
        let started = self.iteration_event(id, EventType::MapIterationStarted, index, previous);
        self.start_child((id, index), map.processor, input, Some(item), started);
    }

    pub(super) fn iteration_event(
        &mut self,
        id: u32,
        kind: EventType,
        index: usize,
        previous: u64,
    ) -> u64 {
        let name = self.branches.get(&id).map(|b| b.state.clone().into());
        let named = details([("name", name), ("index", Some(index.into()))]);
        self.event(kind, previous, named)
    }

    fn start_child(
        &mut self,
        parent: (u32, usize),
        machine: usize,
        input: Value,
        item: Option<Value>,
        previous: u64,
    ) {
        let state = self
            .definition
            .machines
            .get(machine)
            .map(|machine| machine.start_at.clone())
            .unwrap_or_default();
        self.add_branch(Branch {
            parent: Some(parent),
            machine,
            state,
            input,
            item,
            variables: Map::new(),
            previous,
            entered: 0,
            before: 0,
            entered_ms: 0,
            retries: Vec::new(),
            phase: Phase::Enter,
        });
    }

    /// A child has reached its end with `output`.
    pub(super) fn finish_child(&mut self, parent: u32, child: u32, output: Value) {
        let Some(index) = self
            .branches
            .get(&child)
            .and_then(|b| b.parent)
            .map(|p| p.1)
        else {
            return;
        };
        let exit = self.previous_of(child);
        let mut last = exit;
        let is_map = self.is_map(parent);
        if is_map {
            last = self.iteration_event(parent, EventType::MapIterationSucceeded, index, exit);
        }
        self.set_phase(child, Phase::Done { output });
        let (started, done, total, max_concurrency) = self.progress(parent);
        if done == total {
            if let Some(branch) = self.branches.get_mut(&parent) {
                branch.previous = last;
            }
            if let Err(failure) = self.finish_children(parent) {
                self.fail_state(parent, failure);
            }
        } else if is_map && started < total && started - done < max_concurrency {
            self.start_iteration(parent, started, exit);
        }
    }

    pub(super) fn is_map(&self, id: u32) -> bool {
        self.branches
            .get(&id)
            .and_then(|branch| state_of(&self.definition, branch))
            .is_some_and(|state| matches!(state.kind, Kind::Map(_)))
    }

    /// Children started, children done, children in all, and how many may run at once.
    pub(super) fn progress(&self, id: u32) -> (usize, usize, usize, usize) {
        let children = self.children_of(id);
        let done = children.iter().filter(|(_, c)| self.is_done(*c)).count();
        match self.branches.get(&id).map(|branch| &branch.phase) {
            Some(Phase::Children(c)) => (children.len(), done, c.total, c.max_concurrency),
            _ => (children.len(), done, children.len(), 0),
        }
    }

    /// All children are done: their outputs, in order, are the result.
    pub(super) fn finish_children(&mut self, id: u32) -> Result<(), Failure> {
        let mut outputs = Vec::new();
        for (_, child) in self.children_of(id) {
            if let Some(branch) = self.drop_branch(child)
                && let Phase::Done { output } = &branch.phase
            {
                outputs.push(output.clone());
                self.keep_done_aside(child, branch);
            }
        }
        self.keep_phase_aside(id);
        let kind = if self.is_map(id) {
            EventType::MapStateSucceeded
        } else {
            EventType::ParallelStateSucceeded
        };
        // The exit follows what this event follows: so AWS records it.
        let previous = self.previous_of(id);
        self.event(kind, previous, None);
        self.set_phase(id, Phase::Run);
        let left = self.finish_state(id, Some(Value::Array(outputs)));
        if let Err(failure) = &left
            && failure.error.as_deref() == Some(TOO_LONG)
        {
            // It runs again as a whole.
            self.forget_aside(id);
        }
        left
    }

    /// Child `child` has failed: its siblings are let go, and the state around them fails.
    pub(super) fn fail_children(&mut self, parent: u32, child: u32, failure: &Failure) {
        self.keep_aside(parent);
        let previous = self.previous_of(child);
        let is_map = self.is_map(parent);
        let index = self
            .branches
            .get(&child)
            .and_then(|b| b.parent)
            .map(|p| p.1);
        if let (true, Some(index)) = (is_map, index) {
            self.iteration_event(parent, EventType::MapIterationFailed, index, previous);
            self.drop_branch(child);
        }
        for (index, sibling) in self.children_of(parent) {
            let is_done = self.is_done(sibling);
            self.abort_branch(sibling);
            if is_map && !is_done {
                self.iteration_event(parent, EventType::MapIterationAborted, index, previous);
            }
        }
        if let Some(branch) = self.branches.get_mut(&parent) {
            branch.previous = previous;
            branch.phase = Phase::Run;
            self.step.dirty.insert(parent);
        }
        self.fail_state(parent, failure.recorded());
    }

    /// Lets a branch go, with all below it, and records its state as aborted.
    fn abort_branch(&mut self, id: u32) {
        for (_, child) in self.children_of(id) {
            self.abort_branch(child);
        }
        let Some(branch) = self.drop_branch(id) else {
            return;
        };
        self.let_go(&branch);
        let in_state = !matches!(branch.phase, Phase::Enter | Phase::Done { .. });
        let aborted = state_of(&self.definition, &branch)
            .and_then(|state| state_events(&state.kind).2)
            .filter(|_| in_state);
        if let Some(kind) = aborted {
            self.event(kind, branch.previous, None);
        }
    }
}
