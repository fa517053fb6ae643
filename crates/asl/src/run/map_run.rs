//! Distributed `Map`: children that are executions of their own, under one map run.
//!
//! The branch keeps the inputs of its children and writes nothing while they run: how far they are is in
//! memory, and after a restart each is started again by its name, which finds the one that there is. So a
//! map run costs the parent two commits, however many children it has.

use jiff::Timestamp;
use serde_json::Value;

use super::limits::{Limits, MAX_ITEMS};
use super::redrive::goes_on;
use super::scope::Extra;
use super::{Effect, Failure, Run, state_of};
use crate::definition::{Definition, Distributed, Kind, MapState, State};
use crate::effect::ServiceCall;
use crate::error::ApiError;
use crate::history::{EventType, details};
use crate::items::Items;
use crate::record::{MapRun, MapRunRecord, Phase, Redrives, Status};

/// Children at once, at most (Developer Guide, "Service quotas").
const MOST_CONCURRENT: usize = 10_000;
/// Children at once where the definition sets no limit. AWS starts all; here each is a task in this process.
const CONCURRENT: usize = 1_000;

impl Run {
    /// Starts the map run of branch `id`; `items` are missing where a reader must give them.
    pub(super) fn start_map_run(
        &mut self,
        id: u32,
        distributed: &Distributed,
        items: Option<Items>,
        limits: Limits,
    ) {
        let length = items.as_ref().map_or(0, |items| items.values.len());
        let arn = self.map_run_arn(distributed.label.as_deref());
        let named = details([("mapRunArn", Some(arn.clone().into()))]);
        let event = self.branch_event(id, EventType::MapRunStarted, named);
        let phase = MapRun {
            branch: id,
            arn,
            started: event,
            start_ms: self.now.as_millisecond(),
            inputs: None,
            items: length,
            max_concurrency: at_once(limits.concurrency),
            tolerated_count: limits.tolerated_count,
            tolerated_percentage: limits.tolerated_percentage,
            writing: false,
            redrives: Redrives::default(),
        };
        self.set_phase(id, Phase::MapRun(Box::new(phase)));
        let begun = match items {
            None => self.read_items(id),
            Some(items) => self.take_items(id, items),
        };
        if let Err(failure) = begun {
            self.fail_map_run(id, failure);
        }
    }

    fn map_run_arn(&self, label: Option<&str>) -> String {
        let home: Vec<&str> = self.execution.arn.split(':').take(5).collect();
        let fresh = || uuid::Uuid::new_v4().to_string();
        format!(
            "{}:mapRun:{}/{}:{}",
            home.join(":"),
            self.execution.machine_name,
            label.map_or_else(fresh, str::to_owned),
            fresh()
        )
    }

    /// The state and map run of a branch.
    pub(super) fn map_run<'a>(
        &self,
        definition: &'a Definition,
        id: u32,
    ) -> Option<(&'a State, &'a MapState, &'a Distributed, MapRun)> {
        let branch = self.branches.get(&id)?;
        let Phase::MapRun(map_run) = &branch.phase else {
            return None;
        };
        let state = state_of(definition, branch)?;
        let Kind::Map(map) = &state.kind else {
            return None;
        };
        Some((state, map, map.distributed.as_ref()?, (**map_run).clone()))
    }

    /// Asks for the items.
    fn read_items(&mut self, id: u32) -> Result<(), Failure> {
        let definition = self.definition();
        let Some((state, _, distributed, map_run)) = self.map_run(&definition, id) else {
            return Ok(());
        };
        let Some(reader) = &distributed.reader else {
            return Ok(());
        };
        let effective = self.effective(id, state)?;
        let parameters = self.evaluate(
            id,
            reader.arguments.as_ref(),
            "Arguments",
            Extra::of(&effective),
        )?;
        let action = if reader.lists_objects {
            "listObjectsV2"
        } else {
            "getObject"
        };
        self.step.effects.push(Effect::ReadItems {
            branch: id,
            started: map_run.started,
            call: self.s3_call(id, action, parameters.unwrap_or_default()),
            input: reader.input.clone(),
        });
        Ok(())
    }

    pub(super) fn s3_call(&self, id: u32, action: &str, parameters: Value) -> ServiceCall {
        ServiceCall {
            service: "s3".to_owned(),
            action: action.to_owned(),
            parameters,
            state: self
                .branches
                .get(&id)
                .map_or_else(String::new, |branch| branch.state.clone()),
        }
    }

    /// The items have come, or cannot.
    pub(crate) fn items_read(
        &mut self,
        now: Timestamp,
        id: u32,
        started: u64,
        result: Result<Items, String>,
    ) {
        self.now = now;
        if !self.is_map_run(id, started) {
            return;
        }
        match result {
            Err(cause) => self.fail_map_run(id, Failure::new("States.ItemReaderFailed", cause)),
            Ok(items) => {
                if let Err(failure) = self.take_items(id, items) {
                    self.fail_map_run(id, failure);
                }
            }
        }
    }

    pub(super) fn is_map_run(&self, id: u32, started: u64) -> bool {
        let phase = self.branches.get(&id).map(|branch| &branch.phase);
        matches!(phase, Some(Phase::MapRun(map_run)) if map_run.started == started)
    }

    /// Makes the children's inputs out of the items, and starts the first children.
    fn take_items(&mut self, id: u32, mut items: Items) -> Result<(), Failure> {
        let definition = self.definition();
        let Some((state, map, distributed, _)) = self.map_run(&definition, id) else {
            return Ok(());
        };
        let effective = self.effective(id, state)?;
        if let Some(reader) = &distributed.reader {
            let most = self.map_number(id, reader.max_items.as_ref(), MAX_ITEMS, &effective)?;
            if let Some(most) = most.filter(|most| *most > 0) {
                items.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            }
        }
        let count = items.values.len();
        let inputs = self.inputs(id, map, items, &effective)?;
        if let Some(branch) = self.branches.get_mut(&id)
            && let Phase::MapRun(map_run) = &mut branch.phase
        {
            map_run.inputs = Some(inputs);
            map_run.items = count;
            self.step.dirty.insert(id);
        }
        self.start_children(id);
        Ok(())
    }

    /// Goes on with a map run after a restart.
    pub(super) fn resume_map_run(&mut self, id: u32) {
        let definition = self.definition();
        let Some((_, _, _, map_run)) = self.map_run(&definition, id) else {
            return;
        };
        if map_run.inputs.is_some() {
            self.start_children(id);
        } else if let Err(failure) = self.read_items(id) {
            self.fail_map_run(id, failure);
        }
    }

    /// The results have been written, or could not be.
    pub(crate) fn results_written(
        &mut self,
        now: Timestamp,
        id: u32,
        started: u64,
        result: Result<Value, String>,
    ) {
        self.now = now;
        if !self.is_map_run(id, started) {
            return;
        }
        match result {
            Ok(written) => self.finish_map_run(id, written),
            Err(cause) => self.fail_map_run(id, Failure::new("States.ResultWriterFailed", cause)),
        }
    }

    pub(super) fn finish_map_run(&mut self, id: u32, result: Value) {
        self.end_map_run(id, Status::Succeeded);
        self.map_runs.remove(&id);
        let run_started = self.branches.get(&id).map_or(0, |branch| branch.previous);
        let ended = self.branch_event(id, EventType::MapRunSucceeded, None);
        self.event(EventType::MapStateSucceeded, ended, None);
        self.set_phase(id, Phase::Run);
        if let Some(branch) = self.branches.get_mut(&id)
            && branch.before != 0
        {
            // AWS records the exit after the start of the run, except of the first state of an execution.
            branch.previous = run_started;
        }
        if let Err(failure) = self.finish_state(id, Some(result)) {
            self.fail_state(id, failure);
        }
    }

    /// Ends a map run that has failed; its children are stopped.
    pub(super) fn fail_map_run(&mut self, id: u32, failure: Failure) {
        self.end_map_run(id, Status::Failed);
        self.stop_map_run(id);
        self.branch_event(id, EventType::MapRunFailed, failure.details());
        if goes_on(&failure) {
            self.keep_phase_aside(id);
        }
        self.set_phase(id, Phase::Run);
        self.fail_state(id, failure.recorded());
    }

    /// Stops the children of a map run.
    pub(super) fn stop_map_run(&mut self, id: u32) {
        let running = self.map_runs.remove(&id).unwrap_or_default().running;
        for execution in running.into_values().flatten() {
            self.step.effects.push(Effect::StopChild { execution });
        }
    }

    fn end_map_run(&mut self, id: u32, status: Status) {
        if let Some(Phase::MapRun(map_run)) = self.phase(id).cloned() {
            self.record_map_run(&map_run, status);
        }
    }

    /// Keeps what `DescribeMapRun` shows after the end.
    pub(super) fn record_map_run(&mut self, map_run: &MapRun, status: Status) {
        let record = MapRunRecord {
            status,
            stop_ms: Some(self.now.as_millisecond()),
            ..self.map_run_stands(map_run)
        };
        self.step.map_runs.push(record);
    }

    /// The map run that a branch waits for, as it stands.
    pub(super) fn map_run_record(&self, id: u32) -> Option<MapRunRecord> {
        match self.phase(id)? {
            Phase::MapRun(map_run) => Some(self.map_run_stands(map_run)),
            _ => None,
        }
    }

    /// Changes the limits of a map run under way, as `UpdateMapRun` does.
    pub(crate) fn update_map_run(
        &mut self,
        now: Timestamp,
        arn: &str,
        change: &Change,
    ) -> Result<(), ApiError> {
        self.now = now;
        let found = self
            .branches
            .iter_mut()
            .find_map(|(id, branch)| match &mut branch.phase {
                Phase::MapRun(map_run) if map_run.arn == arn => Some((*id, map_run)),
                _ => None,
            });
        let Some((id, map_run)) = found else {
            return Err(map_run_has_ended(arn));
        };
        if let Some(most) = change.concurrency {
            map_run.max_concurrency = at_once(most);
        }
        map_run.tolerated_count = change.tolerated_count.or(map_run.tolerated_count);
        map_run.tolerated_percentage = change.tolerated_percentage.or(map_run.tolerated_percentage);
        self.step.dirty.insert(id);
        self.look_at_children(id);
        Ok(())
    }

    fn map_run_stands(&self, map_run: &MapRun) -> MapRunRecord {
        let progress = self.map_runs.get(&map_run.branch);
        let failed = progress.map_or(0, |progress| progress.failed);
        MapRunRecord {
            arn: map_run.arn.clone(),
            execution: self.execution.arn.clone(),
            machine: self.execution.machine.clone(),
            start_ms: map_run.start_ms,
            stop_ms: None,
            status: Status::Running,
            max_concurrency: map_run.max_concurrency,
            tolerated_count: map_run.tolerated_count.unwrap_or(0),
            tolerated_percentage: map_run.tolerated_percentage.unwrap_or(0.0),
            items: map_run.items,
            children: map_run.inputs.as_ref().map_or(0, Vec::len),
            succeeded: progress.map_or(0, |progress| progress.outcomes.len() - failed),
            failed,
            started: map_run.started,
            redrives: map_run.redrives.clone(),
        }
    }
}

/// What `UpdateMapRun` changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Change {
    /// 0 for any number.
    pub(crate) concurrency: Option<usize>,
    pub(crate) tolerated_count: Option<u64>,
    pub(crate) tolerated_percentage: Option<f64>,
}

/// Children at once, where 0 sets no limit.
fn at_once(most: usize) -> usize {
    match most {
        0 => CONCURRENT,
        most => most.min(MOST_CONCURRENT),
    }
}

/// The API error for changes to a map run that does not run.
pub(crate) fn map_run_has_ended(arn: &str) -> ApiError {
    ApiError::validation(format!("The Map Run is not running: '{arn}'"))
}
