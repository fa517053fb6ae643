//! `Wait`: lets time pass. Source: WaitStepInfo in the pipeline schema.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::duration;
use slipway_model::status::Failure;

use crate::context::StepContext;
use crate::step::{Progress, Step, Undo};
use crate::variable::{is_expression, read, wrong};

/// The step.
pub struct Wait;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    duration: String,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

/// When the wait is over; decided once, so that a crash does not start it anew.
#[derive(Default, Serialize, Deserialize)]
struct State {
    until_ms: Option<i64>,
}

#[async_trait]
impl Step for Wait {
    fn step_type(&self) -> &'static str {
        "Wait"
    }

    fn units(&self) -> &'static [&'static str] {
        &[]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        match read::<Spec>(spec) {
            Err(message) => vec![message],
            Ok(spec) if is_expression(&spec.duration) => Vec::new(),
            Ok(spec) => duration::parse(&spec.duration)
                .err()
                .map(|error| format!("duration: {error}"))
                .into_iter()
                .collect(),
        }
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it changes nothing")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let step = cx.step().identifier.to_string();
        let spec: Spec = read(cx.spec()).map_err(|message| wrong(&step, &message))?;
        let state: State = cx.saved()?;
        let now = cx.clock().now_ms();
        let until = match state.until_ms {
            Some(until) => until,
            None => {
                // What an expression computed may be no time at all; written out it is refused before.
                let length = duration::parse_from_zero(&spec.duration)
                    .map_err(|error| wrong(&step, &format!("duration: {error}")))?;
                let until =
                    now.saturating_add(i64::try_from(length.as_millis()).unwrap_or(i64::MAX));
                cx.save(&State {
                    until_ms: Some(until),
                })
                .await?;
                until
            }
        };
        match u64::try_from(until - now) {
            Ok(left) if left > 0 => Ok(Progress::Again(Duration::from_millis(left))),
            _ => Ok(Progress::Done(
                json!({"output": {"duration": spec.duration}}),
            )),
        }
    }
}
