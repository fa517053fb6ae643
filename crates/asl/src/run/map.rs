//! `Map`: its items, its limits, and what its iterations get.

use serde_json::Value;

use super::limits::Limits;
use super::map_children::too_many_failed;
use super::scope::{Extra, Place, longer_than_allowed};
use super::{Failure, Mock, Run, state_of};
use crate::definition::{Definition, InputType, Kind, MapState, State};
use crate::history::{EventType, details};
use crate::items::{self, Items};
use crate::jsonata::{QueryError, length};
use crate::record::{Children, Phase};
use crate::template::Template;

/// Iterations of an inline `Map` at once, at most (Developer Guide, "Map state processing modes").
const MOST_CONCURRENT: usize = 40;
/// Most bytes of the inputs that a selector makes for one `Map`: all of them are kept until it ends.
const MOST_INPUTS: usize = 256 * 1024 * 1024;

impl Run {
    pub(super) fn start_map(
        &mut self,
        id: u32,
        state: &State,
        map: &MapState,
    ) -> Result<(), Failure> {
        let effective = self.seen(id, state)?;
        let concurrency = self.concurrency(id, map, &effective)?;
        let reads = map.distributed.as_ref().is_some_and(|d| d.reader.is_some());
        let items = if reads {
            self.given_items(map)?
        } else {
            Some(self.items(id, state, map, &effective)?)
        };
        self.note("maxConcurrency", &concurrency.into());
        // What is tolerated is read after the start, unlike how many may run.
        let length = items.as_ref().map_or(0, |items| items.values.len());
        let started = details([("length", Some(length.into()))]);
        self.branch_event(id, EventType::MapStateStarted, started);
        let limits = Limits {
            concurrency,
            ..self.tolerated(id, map, &effective)?
        };
        if let Some(mock) = self.mock() {
            let items = items.unwrap_or_else(|| Items::array(Vec::new()));
            let total = items.values.len();
            self.inputs(id, map, items, &effective)?;
            return self.end_mocked_map(id, mock, limits, total);
        }
        if let Some(distributed) = &map.distributed {
            self.start_map_run(id, distributed, items, limits);
            return Ok(());
        }
        // Inline only: what it iterates over is an array.
        let items = items.unwrap_or_else(|| Items::array(Vec::new()));
        self.start_iterations(id, map, items, limits, &effective)
    }

    /// The items that a test gives in the place of those that a reader would read.
    fn given_items(&mut self, map: &MapState) -> Result<Option<Items>, Failure> {
        let reader = map.distributed.as_ref().and_then(|d| d.reader.as_ref());
        let given = self.trial.as_mut().and_then(|trial| trial.items.take());
        let (Some(reader), Some(given)) = (reader, given) else {
            return Ok(None);
        };
        let items = items::parse(&reader.input, &given)
            .map_err(|cause| Failure::new("States.ItemReaderFailed", cause))?;
        if matches!(&reader.input, InputType::Json { pointer: Some(_) }) {
            self.note("afterItemsPointer", &items.whole());
        }
        Ok(Some(items))
    }

    /// What the iterations or children of a `Map` get: its items, selected and put together.
    pub(super) fn inputs(
        &mut self,
        id: u32,
        map: &MapState,
        items: Items,
        effective: &Value,
    ) -> Result<Vec<Value>, Failure> {
        let mut inputs = match self.selected(id, map, &items, effective)? {
            None => items.inputs(),
            Some(selected) => {
                self.note("afterItemSelector", &Value::Array(selected.clone()));
                selected
            }
        };
        if let Some(batcher) = map.distributed.as_ref().and_then(|d| d.batcher.as_ref()) {
            let most = self.map_number(
                id,
                batcher.max_items.as_ref(),
                "MaxItemsPerBatch",
                effective,
            )?;
            let bytes = self.map_number(
                id,
                batcher.max_bytes.as_ref(),
                "MaxInputBytesPerBatch",
                effective,
            )?;
            let input = self.evaluate(
                id,
                batcher.input.as_ref(),
                "BatchInput",
                Extra::of(effective),
            )?;
            inputs = items::batches(inputs, most, bytes, input.as_ref());
            self.note("afterItemBatcher", &Value::Array(inputs.clone()));
        }
        Ok(inputs)
    }

    fn start_iterations(
        &mut self,
        id: u32,
        map: &MapState,
        items: Items,
        limits: Limits,
        effective: &Value,
    ) -> Result<(), Failure> {
        let max_concurrency = match limits.concurrency {
            0 => MOST_CONCURRENT,
            most => most.min(MOST_CONCURRENT),
        };
        let inputs = self.selected(id, map, &items, effective)?;
        let total = items.values.len();
        // The items are kept apart from the inputs only where a selector makes them differ.
        self.set_phase(
            id,
            Phase::Children(Children {
                items: inputs.unwrap_or(items.values),
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
    ) -> Result<Items, Failure> {
        // AWS was recorded to refuse objects in inline Maps, whatever the guide says of them.
        let is_iterable =
            |value: &Value| value.is_array() || (value.is_object() && map.distributed.is_some());
        let Some(template) = &map.items else {
            if let Some(items) = Items::of(effective.clone()).filter(|_| is_iterable(effective)) {
                return Ok(items);
            }
            if state.paths.is_some() {
                return Err(no_array("$"));
            }
            let message = format!("Map state input must be an array but was: {effective}");
            return Err(self.failed_query(id, QueryError::query(message, None)));
        };
        let items = self.evaluate(id, Some(template), "Items", Extra::of(effective))?;
        let given = items.unwrap_or_default();
        if is_iterable(&given) {
            if state.paths.is_some() {
                self.note("afterItemsPath", &given);
            }
            return Ok(Items::of(given).unwrap_or_else(|| Items::array(Vec::new())));
        }
        match template {
            Template::Query(query, _) => Err(no_array(query.reference())),
            template => Err(self.wrong_type(id, template, "Items", "array", &given)),
        }
    }

    /// `ItemSelector` for every item, evaluated with the context of its iteration.
    fn selected(
        &self,
        id: u32,
        map: &MapState,
        items: &Items,
        effective: &Value,
    ) -> Result<Option<Vec<Value>>, Failure> {
        let (Some(selector), Some(branch)) = (&map.selector, self.branches.get(&id)) else {
            return Ok(None);
        };
        let (mut inputs, mut bytes) = (Vec::new(), 0);
        // A stand-in for each iteration, which sees what the Map state sees, and its item.
        let mut iteration = branch.clone();
        iteration.phase = Phase::Run;
        for (index, item) in items.values.iter().enumerate() {
            iteration.parent = Some((id, index));
            iteration.item = Some(item.clone());
            let extra = Extra {
                place: Place {
                    key: items.key(index),
                    source: Some(&items.source),
                },
                ..Extra::of(effective)
            };
            let value = self
                .with_bindings(&iteration, extra, |bindings| {
                    selector.evaluate("ItemSelector", bindings)
                })
                .map_err(|error| self.failed_query(id, error))?;
            bytes += length(&value, MOST_INPUTS);
            if longer_than_allowed(&value) || bytes > MOST_INPUTS {
                return Err(Failure::too_long(&branch.state));
            }
            inputs.push(value);
        }
        Ok(Some(inputs))
    }

    /// The item behind an input that a selector made.
    pub(super) fn item(&self, id: u32, definition: &Definition, index: usize) -> Option<Value> {
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
}

/// The failure of a `Map` whose items are no array. AWS gives this sentence alone.
fn no_array(path: &str) -> Failure {
    Failure::runtime(format!("Reference path \"{path}\" must point to array.")).of_field()
}
