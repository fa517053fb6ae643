//! `Parallel` and inline `Map`: starting children, gathering their outputs, letting them go.

use serde_json::{Map, Value};

use super::scope::Extra;
use super::{Failure, Run, state_events, state_of};
use crate::definition::{Kind, MapState};
use crate::history::{EventType, details};
use crate::jsonata::QueryError;
use crate::record::{Branch, Children, Phase};

/// Iterations of an inline `Map` at once, at most (Developer Guide, "Map state processing modes").
const MOST_CONCURRENT: usize = 40;

impl Run {
    pub(super) fn start_parallel(
        &mut self,
        id: u32,
        arguments: Option<&crate::template::Template>,
        machines: &[usize],
    ) -> Result<(), Failure> {
        let input = match self.evaluate(id, arguments, "Arguments", Extra::default())? {
            Some(arguments) => arguments,
            None => self
                .branches
                .get(&id)
                .map_or(Value::Null, |b| b.input.clone()),
        };
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

    pub(super) fn start_map(&mut self, id: u32, map: &MapState) -> Result<(), Failure> {
        let items = self.items(id, map)?;
        let max_concurrency = self.max_concurrency(id, map)?;
        let inputs = self.selected(id, map, &items)?;
        let total = items.len();
        let started = details([("length", Some(total.into()))]);
        self.branch_event(id, EventType::MapStateStarted, started);
        // The items are kept apart from the inputs only where a selector makes them differ.
        self.set_phase(
            id,
            Phase::Children(Children {
                items: inputs.unwrap_or_else(|| items.clone()),
                total,
                max_concurrency,
            }),
        );
        if total == 0 {
            return self.finish_children(id);
        }
        let previous = self.previous_of(id);
        for index in 0..total.min(max_concurrency) {
            self.start_iteration(id, index, previous);
        }
        Ok(())
    }

    fn items(&self, id: u32, map: &MapState) -> Result<Vec<Value>, Failure> {
        let Some(template) = &map.items else {
            let input = self
                .branches
                .get(&id)
                .map_or(Value::Null, |b| b.input.clone());
            return match input {
                Value::Array(items) => Ok(items),
                other => Err(self.failed_query(
                    id,
                    QueryError {
                        message: format!("Map state input must be an array but was: {other}"),
                        location: None,
                    },
                )),
            };
        };
        match self.evaluate(id, Some(template), "Items", Extra::default())? {
            Some(Value::Array(items)) => Ok(items),
            other => {
                let other = other.unwrap_or_default();
                Err(self.wrong_type(id, template, "Items", "array", &other))
            }
        }
    }

    fn max_concurrency(&self, id: u32, map: &MapState) -> Result<usize, Failure> {
        let Some(template) = &map.max_concurrency else {
            return Ok(MOST_CONCURRENT);
        };
        let value = self
            .evaluate(id, Some(template), "MaxConcurrency", Extra::default())?
            .unwrap_or_default();
        match value.as_u64() {
            Some(0) => Ok(MOST_CONCURRENT),
            Some(most) => Ok(usize::try_from(most)
                .unwrap_or(MOST_CONCURRENT)
                .min(MOST_CONCURRENT)),
            None => Err(self.wrong_type(id, template, "MaxConcurrency", "number", &value)),
        }
    }

    /// `ItemSelector` for every item, evaluated with the context of its iteration.
    fn selected(
        &self,
        id: u32,
        map: &MapState,
        items: &[Value],
    ) -> Result<Option<Vec<Value>>, Failure> {
        let (Some(selector), Some(branch)) = (&map.selector, self.branches.get(&id)) else {
            return Ok(None);
        };
        let mut inputs = Vec::with_capacity(items.len());
        // A stand-in for each iteration, which sees what the Map state sees, and its item.
        let mut iteration = branch.clone();
        for (index, item) in items.iter().enumerate() {
            iteration.parent = Some((id, index));
            iteration.item = Some(item.clone());
            let value = self
                .with_bindings(&iteration, Extra::default(), |bindings| {
                    selector.evaluate("ItemSelector", bindings)
                })
                .map_err(|error| self.failed_query(id, error))?;
            inputs.push(value);
        }
        Ok(Some(inputs))
    }

    fn previous_of(&self, id: u32) -> u64 {
        self.branches.get(&id).map_or(0, |branch| branch.previous)
    }

    /// Starts iteration `index` of the `Map` in branch `id`.
    fn start_iteration(&mut self, id: u32, index: usize, previous: u64) {
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
            .item(branch, map, index)
            .unwrap_or_else(|| input.clone());
        let started = self.iteration_event(id, EventType::MapIterationStarted, index, previous);
        self.start_child((id, index), map.processor, input, Some(item), started);
    }

    /// The item behind an input that a selector made.
    fn item(&self, branch: &Branch, map: &MapState, index: usize) -> Option<Value> {
        map.selector.as_ref()?;
        let items = match &map.items {
            None => branch.input.clone(),
            Some(template) => self
                .with_bindings(branch, Extra::default(), |bindings| {
                    template.evaluate("Items", bindings)
                })
                .ok()?,
        };
        items.get(index).cloned()
    }

    fn iteration_event(&mut self, id: u32, kind: EventType, index: usize, previous: u64) -> u64 {
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

    fn is_map(&self, id: u32) -> bool {
        self.branches
            .get(&id)
            .and_then(|branch| state_of(&self.definition, branch))
            .is_some_and(|state| matches!(state.kind, Kind::Map(_)))
    }

    /// Children started, children done, children in all, and how many may run at once.
    fn progress(&self, id: u32) -> (usize, usize, usize, usize) {
        let children = self.children_of(id);
        let done = children.iter().filter(|(_, c)| self.is_done(*c)).count();
        match self.branches.get(&id).map(|branch| &branch.phase) {
            Some(Phase::Children(c)) => (children.len(), done, c.total, c.max_concurrency),
            _ => (children.len(), done, children.len(), 0),
        }
    }

    /// All children are done: their outputs, in order, are the result.
    fn finish_children(&mut self, id: u32) -> Result<(), Failure> {
        let mut outputs = Vec::new();
        for (_, child) in self.children_of(id) {
            if let Some(Branch {
                phase: Phase::Done { output },
                ..
            }) = self.drop_branch(child)
            {
                outputs.push(output);
            }
        }
        let kind = if self.is_map(id) {
            EventType::MapStateSucceeded
        } else {
            EventType::ParallelStateSucceeded
        };
        // The exit follows what this event follows: so AWS records it.
        let previous = self.previous_of(id);
        self.event(kind, previous, None);
        self.set_phase(id, Phase::Run);
        self.finish_state(id, Some(Value::Array(outputs)))
    }

    /// Child `child` has failed: its siblings are let go, and the state around them fails.
    pub(super) fn fail_children(&mut self, parent: u32, child: u32, failure: &Failure) {
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
            self.abort_branch(sibling);
            if is_map {
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
