//! The children of a map run: starting them, counting them, and what too many failures do.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::limits::Limits;
use super::scope::Extra;
use super::{Effect, Failure, Run};
use crate::definition::MachineType;
use crate::error::ApiError;
use crate::items;
use crate::record::{Execution, Status};

/// Error of a map run with too many failed children.
const TOO_MANY_FAILED: &str = "States.ExceedToleratedFailureThreshold";
const TOO_MANY_FAILED_CAUSE: &str = "The specified tolerated failure threshold was exceeded";

/// How far a map run is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    next: usize,
    /// Children that run, with their numbers once they are known.
    pub(super) running: BTreeMap<usize, Option<u64>>,
    pub(super) outcomes: BTreeMap<usize, Option<Value>>,
    pub(super) failed: usize,
}

/// The failure of a map run with too many failed children.
pub(super) fn too_many_failed() -> Failure {
    Failure::new(TOO_MANY_FAILED, TOO_MANY_FAILED_CAUSE)
}

/// What stands in `Parent::attempt` for child `index` of the map run that started with event `started`.
fn child_attempt(started: u64, index: usize) -> u64 {
    (started << 32) | u64::try_from(index).unwrap_or(u64::from(u32::MAX))
}

/// Event and index of such an attempt.
pub(crate) fn map_run_of(attempt: u64) -> (u64, usize) {
    let index = usize::try_from(attempt & u64::from(u32::MAX)).unwrap_or(usize::MAX);
    (attempt >> 32, index)
}

impl Run {
    /// Starts as many children as may run.
    pub(super) fn start_children(&mut self, id: u32) {
        let definition = self.definition();
        let Some((_, map, distributed, map_run)) = self.map_run(&definition, id) else {
            return;
        };
        let inputs = map_run.inputs.unwrap_or_default();
        let express = distributed.kind == MachineType::Express;
        let progress = self.map_runs.entry(id).or_default();
        let mut effects = Vec::new();
        while progress.running.len() < map_run.max_concurrency
            && let Some(input) = inputs.get(progress.next)
        {
            let index = progress.next;
            progress.next += 1;
            progress.running.insert(index, None);
            effects.push(Effect::StartIteration {
                branch: id,
                attempt: child_attempt(map_run.started, index),
                map_run: map_run.arn.clone(),
                index,
                processor: map.processor,
                express,
                input: input.to_string(),
            });
        }
        let is_done = progress.running.is_empty();
        self.step.effects.extend(effects);
        if is_done {
            self.end_children(id);
        }
    }

    /// A child has been started, or could not be.
    pub(super) fn iteration_started(
        &mut self,
        id: u32,
        attempt: u64,
        result: Result<(u64, Execution), ApiError>,
    ) -> bool {
        let (started, index) = map_run_of(attempt);
        if !self.is_map_run(id, started) {
            return false;
        }
        let Some(progress) = self.map_runs.get_mut(&id) else {
            return false;
        };
        match result {
            Err(_) => self.iteration_ended(id, index, None),
            Ok((_, execution)) if execution.status != Status::Running => {
                self.iteration_ended(id, index, output_of(&execution));
            }
            Ok((number, _)) => {
                if let Some(running) = progress.running.get_mut(&index) {
                    *running = Some(number);
                }
            }
        }
        true
    }

    /// A child has ended.
    pub(super) fn iteration_closed(&mut self, id: u32, attempt: u64, execution: &Execution) {
        let (started, index) = map_run_of(attempt);
        if self.is_map_run(id, started) {
            self.iteration_ended(id, index, output_of(execution));
        }
    }

    fn iteration_ended(&mut self, id: u32, index: usize, output: Option<Value>) {
        let Some(progress) = self.map_runs.get_mut(&id) else {
            return;
        };
        if progress.running.remove(&index).is_none() {
            return;
        }
        progress.failed += usize::from(output.is_none());
        progress.outcomes.insert(index, output);
        if !self.has_failed_too_often(id) {
            self.start_children(id);
        }
    }

    /// Starts and fails what new limits of a map run let start or make fail.
    pub(super) fn look_at_children(&mut self, id: u32) {
        let is_going_on = |progress: &Progress| !progress.running.is_empty();
        if self.map_runs.get(&id).is_some_and(is_going_on) && !self.has_failed_too_often(id) {
            self.start_children(id);
        }
    }

    /// Fails a map run of which more children have failed than what is tolerated.
    fn has_failed_too_often(&mut self, id: u32) -> bool {
        let failed = self.map_runs.get(&id).map_or(0, |progress| progress.failed);
        let definition = self.definition();
        let Some((_, _, _, map_run)) = self.map_run(&definition, id) else {
            return true;
        };
        let limits = Limits {
            concurrency: 0,
            tolerated_count: map_run.tolerated_count,
            tolerated_percentage: map_run.tolerated_percentage,
        };
        let total = map_run.inputs.map_or(0, |inputs| inputs.len());
        // Without a threshold the first failure is one too many.
        let is_exceeded = limits.exceeded(failed, total).unwrap_or(failed > 0);
        if is_exceeded {
            self.fail_map_run(id, too_many_failed());
        }
        is_exceeded
    }

    /// All children have ended: their outputs are the result, or are written where the definition says.
    fn end_children(&mut self, id: u32) {
        let definition = self.definition();
        let Some((state, _, distributed, map_run)) = self.map_run(&definition, id) else {
            return;
        };
        let Some(writer) = &distributed.writer else {
            let progress = self.map_runs.get(&id);
            let outputs = progress
                .into_iter()
                .flat_map(|progress| progress.outcomes.values().flatten().cloned());
            let outputs = Value::Array(outputs.collect());
            return self.finish_map_run(id, outputs);
        };
        let evaluated = self.effective(id, state).and_then(|effective| {
            self.evaluate(
                id,
                writer.arguments.as_ref(),
                "Arguments",
                Extra::of(&effective),
            )
        });
        match evaluated {
            Err(failure) => self.fail_map_run(id, failure),
            Ok(parameters) => {
                let progress = self.map_runs.get(&id);
                let results = items::results(progress.map(|p| &p.outcomes), &map_run.arn);
                self.step.effects.push(Effect::WriteResults {
                    branch: id,
                    started: map_run.started,
                    call: self.s3_call(id, "putObject", parameters.unwrap_or_default()),
                    map_run: map_run.arn,
                    results,
                });
            }
        }
    }
}

/// The output of a child that succeeded.
fn output_of(execution: &Execution) -> Option<Value> {
    if execution.status != Status::Succeeded {
        return None;
    }
    let output = execution.output.as_deref().unwrap_or("null");
    Some(serde_json::from_str(output).unwrap_or_else(|_| json!(Map::new())))
}
