//! `Queue`: waits until no other stage or run holds the key, and holds it then. What a run holds as a whole, its stages
//! need not wait for, and neither do the runs of pipelines that it runs: these take turns among themselves. A stage that
//! holds the key may ask for it again with the scope Pipeline: its run has it from then on. Source: QueueStepInfo in the
//! pipeline schema; [`slipway_engine::queue`] gives it back.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use slipway_engine::queue::{Scope, take};
use slipway_model::status::{Failure, Status};
use slipway_store::Turn;

use crate::context::{StepContext, run_failure, store_failure};
use crate::step::{Progress, Step, Undo};
use crate::variable::{is_expression, read, wrong};

/// Longest key, in characters.
const LONGEST_KEY: usize = 512;

/// The step.
pub struct Queue;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    key: String,
    scope: String,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

impl Spec {
    fn scope(&self) -> Result<Scope, String> {
        Scope::parse(&self.scope)
            .ok_or_else(|| format!("scope: `{}`; Pipeline and Stage are known", self.scope))
    }

    fn fault(&self) -> Option<String> {
        let length = self.key.chars().count();
        if self.key.trim().is_empty() || length > LONGEST_KEY {
            return Some(format!("key: expected 1 to {LONGEST_KEY} characters"));
        }
        let open = is_expression(&self.scope);
        self.scope().err().filter(|_| !open)
    }
}

#[async_trait]
impl Step for Queue {
    fn step_type(&self) -> &'static str {
        "Queue"
    }

    fn units(&self) -> &'static [&'static str] {
        &[]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        match read::<Spec>(spec) {
            Err(message) => vec![message],
            Ok(spec) => spec.fault().into_iter().collect(),
        }
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it is given back when its stage or run ends")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let step = cx.step().identifier.to_string();
        let spec: Spec = read(cx.spec()).map_err(|message| wrong(&step, &message))?;
        if let Some(fault) = spec.fault() {
            return Err(wrong(&step, &fault));
        }
        let scope = spec.scope().map_err(|message| wrong(&step, &message))?;
        let runs = &cx.starts().runs;
        let run = cx.store().get_run(cx.run()).await;
        let run = run.map_err(|error| store_failure("read the run", &error))?;
        let turn = take(runs, &run, &cx.stage().id, &spec.key, scope).await;
        match turn.map_err(|error| run_failure("take a place in the queue", &error))? {
            Turn::Held => Ok(Progress::Done(json!({"output": {"key": spec.key}}))),
            Turn::Waiting(_) => Ok(Progress::Hold {
                time: cx.time_left(),
                status: Status::ResourceWaiting,
            }),
        }
    }
}
