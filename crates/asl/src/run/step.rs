//! What a run has decided: writes for the journal, and effects for afterwards.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Run;
use crate::definition::InputType;
use crate::effect::{InvokeSettings, ServiceCall};
use crate::error::JournalError;
use crate::history::Event;
use crate::items::Results;
use crate::journal::{Batch, key};
use crate::record::{Awaited, Branch, MapRunRecord, Status};

/// Something to do once the step is durable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Invoke a function.
    Invoke {
        branch: u32,
        attempt: u64,
        name: String,
        payload: Value,
        settings: InvokeSettings,
    },
    /// Let a worker of an activity take the task.
    Offer {
        branch: u32,
        attempt: u64,
        activity: String,
    },
    /// Start another execution.
    StartChild {
        branch: u32,
        attempt: u64,
        machine: String,
        name: String,
        input: String,
        waits: bool,
    },
    /// See whether the awaited execution has ended.
    CheckChild {
        branch: u32,
        attempt: u64,
        execution: u64,
    },
    /// Stop an execution whose task has gone.
    StopChild { execution: u64 },
    /// Call a service; or, with the answer to a submission, wait for the end of the job.
    Call {
        branch: u32,
        attempt: u64,
        call: ServiceCall,
        submitted: Option<Value>,
    },
    /// Read the items of a distributed `Map`.
    ReadItems {
        branch: u32,
        started: u64,
        call: ServiceCall,
        input: InputType,
    },
    /// Start a child of a distributed `Map`.
    StartIteration {
        branch: u32,
        attempt: u64,
        map_run: String,
        index: usize,
        processor: usize,
        express: bool,
        input: String,
    },
    /// Write the results of a distributed `Map`.
    WriteResults {
        branch: u32,
        started: u64,
        call: ServiceCall,
        map_run: String,
        results: Results,
    },
}

/// What one advance has decided.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) events: Vec<Event>,
    pub(super) dirty: BTreeSet<u32>,
    pub(super) gone: BTreeSet<u32>,
    pub(crate) effects: Vec<Effect>,
    /// States entered.
    pub(crate) transitions: u64,
    pub(super) opened: bool,
    pub(super) closed: bool,
    /// The status that a redriven execution had ended with.
    pub(super) reopened: Option<Status>,
    /// Branches that are no longer what is left of an ended execution.
    pub(super) cleared: Vec<u32>,
    /// What is left of one that has ended without success.
    pub(super) remains: BTreeMap<u32, Branch>,
    /// Map runs that have ended.
    pub(super) map_runs: Vec<MapRunRecord>,
}

impl Run {
    /// Takes what has been decided since the last call, as writes and the rest.
    pub(crate) fn take_step(&mut self) -> Result<(Batch, Step), JournalError> {
        let step = std::mem::take(&mut self.step);
        let mut batch = Batch::default();
        if step.opened {
            self.write_opening(&mut batch);
        }
        if let Some(ended) = step.reopened {
            self.write_reopening(&mut batch, ended);
        }
        for id in &step.cleared {
            batch.delete(key::remain(self.number, *id));
        }
        if let Some(first) = step.events.first() {
            batch.put(key::events(self.number, first.0), &step.events)?;
        }
        for record in &step.map_runs {
            // It may have begun in this very step.
            write_map_run(&mut batch, record)?;
        }
        for id in &step.dirty {
            // What a map run is until it ends: where DescribeMapRun finds it.
            if let Some(record) = self.map_run_record(*id) {
                write_map_run(&mut batch, &record)?;
            }
        }
        for id in &step.gone {
            batch.delete(key::branch(self.number, *id));
        }
        for id in &step.dirty {
            if let Some(branch) = self.branches.get(id) {
                batch.put(key::branch(self.number, *id), branch)?;
            }
        }
        if step.opened || step.closed || step.reopened.is_some() {
            batch.put(key::execution(self.number), &self.execution)?;
        }
        if step.closed {
            self.write_closing(&mut batch);
        }
        for (id, branch) in &step.remains {
            batch.put(key::remain(self.number, *id), branch)?;
        }
        Ok((batch, step))
    }

    fn write_opening(&self, batch: &mut Batch) {
        let Self {
            number, execution, ..
        } = self;
        let nothing = Vec::new;
        batch.put_bytes(key::name(&execution.arn), number.to_be_bytes().to_vec());
        batch.put_bytes(key::open(*number), nothing());
        let list = execution.listed_under();
        batch.put_bytes(key::listed(list, None, *number), nothing());
        let running = key::listed(list, Some(Status::Running), *number);
        batch.put_bytes(running, nothing());
    }

    fn write_reopening(&self, batch: &mut Batch, ended: Status) {
        let Self {
            number, execution, ..
        } = self;
        let listed = |status| key::listed(execution.listed_under(), Some(status), *number);
        batch.put_bytes(key::open(*number), Vec::new());
        batch.delete(listed(ended));
        batch.put_bytes(listed(Status::Running), Vec::new());
    }

    fn write_closing(&self, batch: &mut Batch) {
        let Self {
            number, execution, ..
        } = self;
        let listed = |status| key::listed(execution.listed_under(), Some(status), *number);
        batch.delete(key::open(*number));
        batch.delete(listed(Status::Running));
        batch.put_bytes(listed(execution.status), Vec::new());
    }
}

fn write_map_run(batch: &mut Batch, record: &MapRunRecord) -> Result<(), JournalError> {
    batch.put(key::map_run(&record.arn), record)?;
    let listed = key::map_run_of(&record.execution, &record.arn);
    batch.put_bytes(listed, Vec::new());
    Ok(())
}

/// What must be asked for (again) for a task that waits.
pub(super) fn pending_effect(branch: u32, attempt: u64, awaited: &Awaited) -> Option<Effect> {
    match awaited {
        Awaited::Function {
            name,
            payload,
            settings,
        }
        | Awaited::FunctionThenToken {
            name,
            payload,
            submitted: false,
            settings,
        } => Some(Effect::Invoke {
            branch,
            attempt,
            name: name.clone(),
            payload: payload.clone(),
            settings: settings.as_deref().cloned().unwrap_or_default(),
        }),
        Awaited::Worker {
            activity,
            started: false,
            ..
        } => Some(Effect::Offer {
            branch,
            attempt,
            activity: activity.clone(),
        }),
        Awaited::Child {
            machine,
            name,
            input,
            waits,
            child: None,
        } => Some(Effect::StartChild {
            branch,
            attempt,
            machine: machine.clone(),
            name: name.clone(),
            input: input.clone(),
            waits: *waits,
        }),
        Awaited::Service { call, submitted }
            if submitted.is_none() || call.action.contains(".sync") =>
        {
            Some(Effect::Call {
                branch,
                attempt,
                call: call.clone(),
                submitted: submitted.clone(),
            })
        }
        Awaited::Child {
            child: Some(execution),
            ..
        } => Some(Effect::CheckChild {
            branch,
            attempt,
            execution: *execution,
        }),
        _ => None,
    }
}
