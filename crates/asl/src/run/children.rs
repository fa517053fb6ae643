//! `Parallel` and inline `Map`: starting children, gathering their outputs, letting them go.

use serde_json::{Map, Value};

use super::map_run::{Limits, too_many_failed};
use super::scope::Extra;
use super::{Failure, Mock, Run, state_events, state_of};
use crate::definition::{Definition, Kind, MapState, State};
use crate::history::{EventType, details};
use crate::jsonata::QueryError;
use crate::record::{Branch, Children, Phase};
use crate::template::Template;

/// Iterations of an inline `Map` at once, at most (Developer Guide, "Map state processing modes").
const MOST_CONCURRENT: usize = 40;

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

    pub(super) fn start_map(
        &mut self,
        id: u32,
        state: &State,
        map: &MapState,
    ) -> Result<(), Failure> {
        let effective = self.effective(id, state)?;
        if state.paths.is_some() {
            self.note("afterInputPath", &effective);
        }
        let reads = map.distributed.as_ref().is_some_and(|d| d.reader.is_some());
        let items = if reads {
            self.trial.as_mut().and_then(|trial| trial.items.take())
        } else {
            Some(self.items(id, state, map, &effective)?)
        };
        let limits = self.limits(id, map, &effective)?;
        if let Some(mock) = self.mock() {
            return self.end_mocked_map(id, mock, limits, items.map_or(0, |items| items.len()));
        }
        if let Some(distributed) = &map.distributed {
            self.start_map_run(id, distributed, items, limits);
            return Ok(());
        }
        self.start_iterations(id, map, items.unwrap_or_default(), limits, &effective)
    }

    fn start_iterations(
        &mut self,
        id: u32,
        map: &MapState,
        items: Vec<Value>,
        limits: Limits,
        effective: &Value,
    ) -> Result<(), Failure> {
        let max_concurrency = match limits.concurrency {
            0 => MOST_CONCURRENT,
            most => most.min(MOST_CONCURRENT),
        };
        let inputs = self.selected(id, map, &items, effective)?;
        let total = items.len();
        let started = details([("length", Some(total.into()))]);
        self.branch_event(id, EventType::MapStateStarted, started);
        // The items are kept apart from the inputs only where a selector makes them differ.
        self.set_phase(
            id,
            Phase::Children(Children {
                items: inputs.unwrap_or(items),
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

    fn items(
        &mut self,
        id: u32,
        state: &State,
        map: &MapState,
        effective: &Value,
    ) -> Result<Vec<Value>, Failure> {
        let Some(template) = &map.items else {
            return match (effective, &state.paths) {
                (Value::Array(items), _) => Ok(items.clone()),
                (_, Some(_)) => Err(no_array("$")),
                (other, None) => {
                    let message = format!("Map state input must be an array but was: {other}");
                    Err(self.failed_query(id, QueryError::query(message, None)))
                }
            };
        };
        let items = self.evaluate(id, Some(template), "Items", Extra::of(effective))?;
        match (items, template) {
            (Some(Value::Array(items)), _) => {
                if state.paths.is_some() {
                    self.note("afterItemsPath", &Value::Array(items.clone()));
                }
                Ok(items)
            }
            (_, Template::Query(query, _)) => Err(no_array(query.reference())),
            (other, _) => {
                let other = other.unwrap_or_default();
                Err(self.wrong_type(id, template, "Items", "array", &other))
            }
        }
    }

    fn limits(&mut self, id: u32, map: &MapState, effective: &Value) -> Result<Limits, Failure> {
        let concurrency = self.whole(
            id,
            map.max_concurrency.as_ref(),
            "MaxConcurrency",
            effective,
        )?;
        self.note("maxConcurrency", &concurrency.unwrap_or(0).into());
        let count = self.whole(
            id,
            map.tolerated_count.as_ref(),
            "ToleratedFailureCount",
            effective,
        )?;
        if let Some(count) = count {
            self.note("toleratedFailureCount", &count.into());
        }
        let percentage = self.percentage(id, map.tolerated_percentage.as_ref(), effective)?;
        if let Some(percentage) = percentage {
            self.note("toleratedFailurePercentage", &percentage.into());
        }
        Ok(Limits {
            concurrency: usize::try_from(concurrency.unwrap_or(0)).unwrap_or(usize::MAX),
            tolerated_count: count,
            tolerated_percentage: percentage,
        })
    }

    fn percentage(
        &self,
        id: u32,
        template: Option<&Template>,
        root: &Value,
    ) -> Result<Option<f64>, Failure> {
        const FIELD: &str = "ToleratedFailurePercentage";
        let Some(template) = template else {
            return Ok(None);
        };
        let value = self.evaluate(id, Some(template), FIELD, Extra::of(root))?;
        let value = value.unwrap_or_default();
        let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
        match number.filter(|number| (0.0..=100.0).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong_type(id, template, FIELD, "number", &value)),
        }
    }

    /// `ItemSelector` for every item, evaluated with the context of its iteration.
    pub(super) fn selected(
        &self,
        id: u32,
        map: &MapState,
        items: &[Value],
        effective: &Value,
    ) -> Result<Option<Vec<Value>>, Failure> {
        let (Some(selector), Some(branch)) = (&map.selector, self.branches.get(&id)) else {
            return Ok(None);
        };
        let mut inputs = Vec::with_capacity(items.len());
        // A stand-in for each iteration, which sees what the Map state sees, and its item.
        let mut iteration = branch.clone();
        iteration.phase = Phase::Run;
        for (index, item) in items.iter().enumerate() {
            iteration.parent = Some((id, index));
            iteration.item = Some(item.clone());
            let value = self
                .with_bindings(&iteration, Extra::of(effective), |bindings| {
                    selector.evaluate("ItemSelector", bindings)
                })
                .map_err(|error| self.failed_query(id, error))?;
            inputs.push(value);
        }
        Ok(Some(inputs))
    }

    /// Ends a state of which only the outcome is given.
    fn end_mocked(&mut self, id: u32, mock: Mock) -> Result<(), Failure> {
        match mock {
            Mock::Result(result) => self.finish_state(id, Some(result)),
            Mock::Failure { error, cause } => Err(Failure::named(error, cause)),
        }
    }

    fn end_mocked_map(
        &mut self,
        id: u32,
        mock: Mock,
        limits: Limits,
        total: usize,
    ) -> Result<(), Failure> {
        let failures = self.trial.as_ref().and_then(|trial| trial.failures);
        if matches!(mock, Mock::Result(_))
            && limits.exceeded(failures.unwrap_or(0), total) == Some(true)
        {
            return Err(too_many_failed());
        }
        self.end_mocked(id, mock)
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
            .item(id, &definition, index)
            .unwrap_or_else(|| input.clone());
        let started = self.iteration_event(id, EventType::MapIterationStarted, index, previous);
        self.start_child((id, index), map.processor, input, Some(item), started);
    }

    /// The item behind an input that a selector made.
    fn item(&self, id: u32, definition: &Definition, index: usize) -> Option<Value> {
        let branch = self.branches.get(&id)?;
        let state = state_of(definition, branch)?;
        let Kind::Map(map) = &state.kind else {
            return None;
        };
        map.selector.as_ref()?;
        let effective = self.effective(id, state).ok()?;
        let items = match &map.items {
            None => effective,
            Some(template) => self
                .with_bindings(branch, Extra::of(&effective), |bindings| {
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

/// The failure of a `Map` whose items are no array. AWS gives this sentence alone.
fn no_array(path: &str) -> Failure {
    Failure::runtime(format!("Reference path \"{path}\" must point to array."))
}
