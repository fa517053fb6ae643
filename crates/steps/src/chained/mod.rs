//! `Pipeline`: the step of a stage that runs another pipeline and waits for its end. Source:
//! developer.harness.io, *Pipeline chaining in Harness*; the plan makes it (`slipway_plan`, `resolve/chained.rs`).

mod child;
mod inputs;

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;
use slipway_engine::abort::abort_run;
use slipway_engine::error_name::ErrorName;
use slipway_engine::signal::{pause_with, stopped_by};
use slipway_engine::unstarted::start_execution;
use slipway_model::id::{EntityId, OrgId, PrincipalId, ProjectId, RunId};
use slipway_model::status::{Failure, Status};
use slipway_plan::CHAINED;
use slipway_store::record::NodeRecord;

use crate::context::{StepContext, run_failure, store_failure};
use crate::step::{Progress, Step, Undo};
use crate::variable::{read, wrong};

/// A run whose start was refused is started again after this time.
const START_AGAIN: Duration = Duration::from_secs(15);

/// Its one command unit.
const UNIT: &str = "Execute";

/// The run that a step has started; `None` for steps of other types.
pub fn run_of(node: &NodeRecord) -> Option<RunId> {
    let own = node.node_type == CHAINED;
    own.then(|| child::made_of(&node.run, &node.id, node.attempt, node.started_ms))
}

/// The step.
pub struct Pipeline;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    org: OrgId,
    project: ProjectId,
    pipeline: EntityId,
    #[serde(default)]
    inputs: Value,
    #[serde(default)]
    input_set_references: Vec<EntityId>,
    #[serde(default)]
    outputs: Vec<Output>,
}

/// What the stage tells the stages after it.
#[derive(Deserialize)]
struct Output {
    name: String,
    /// Evaluated where the other pipeline has ended, with what is known there.
    value: Value,
}

#[async_trait]
impl Step for Pipeline {
    fn step_type(&self) -> &'static str {
        CHAINED
    }

    fn units(&self) -> &'static [&'static str] {
        &[UNIT]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        read::<Spec>(spec).err().into_iter().collect()
    }

    fn own_expressions(&self) -> &'static [&'static str] {
        &["inputs", "outputs"]
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("the other run is a run of its own, with a rollback of its own")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let step = cx.step().identifier.to_string();
        let spec: Spec = read(cx.spec()).map_err(|message| wrong(&step, &message))?;
        let id = child::id(cx);
        let found = cx.store().find_run(&id).await;
        let found = found.map_err(|error| store_failure("read the run of the stage", &error))?;
        let run = match found {
            Some(run) => run,
            None => {
                cx.unit_started(UNIT);
                let run = child::start(cx, &spec, id).await?;
                let text = format!("Run {} of pipeline {} began.", run.id, run.pipeline);
                cx.info(UNIT, text);
                run
            }
        };
        if run.status.is_final() {
            return child::ended(cx, &spec, &run).await.map(Progress::Done);
        }
        if run.status == Status::NotStarted {
            let started = start_execution(&cx.starts().runs, &run.id).await;
            if let Err(error) = started {
                // It is recorded, and so it will run.
                tracing::warn!(run.id = %run.id, error = %error.full_text(), "the run of a stage is not started yet");
                return Ok(Progress::Again(START_AGAIN));
            }
        }
        // Whatever is said about this run wakes the step: the other run is paused, and goes on, with it.
        let paused = Box::pin(pause_with(&cx.starts().runs, &run, cx.heard())).await;
        paused.map_err(|error| run_failure("pause the run of the stage", &error))?;
        Ok(Progress::Hold {
            time: cx.time_left(),
            status: Status::AsyncWaiting,
        })
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let parent = cx.store().get_run(cx.run()).await;
        let parent = parent.map_err(|error| store_failure("read the run", &error))?;
        let marked = stopped_by(&parent, cx.node(), cx.attempt()).cloned();
        let who = parent.abort.map(|(who, _)| who).or(marked);
        let who = who.unwrap_or_else(|| PrincipalId::new("slipway"));
        match abort_run(&cx.starts().runs, &child::id(cx), &who).await {
            Ok(()) => Ok(()),
            // It has ended, or never begun.
            Err(error) if matches!(error.name(), ErrorName::Conflict | ErrorName::NotFound) => {
                Ok(())
            }
            Err(error) => Err(run_failure("abort the run of the stage", &error)),
        }
    }
}
