//! `StageInputs`: the step by which a stage asks for its variables when it begins. The plan makes it
//! (`slipway_plan`, `resolve/stage_inputs.rs`); like every step it waits until its inputs are given, and then its work is
//! to hand them on.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use slipway_expr::secret::SecretText;
use slipway_model::number;
use slipway_model::status::Failure;
use slipway_plan::STAGE_INPUTS;

use crate::context::StepContext;
use crate::step::{Progress, Step, Undo};
use crate::variable::{read, wrong};

/// The step.
pub struct StageInputs;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    /// What was given, by name.
    variables: Map<String, Value>,
    /// Names of those that are numbers.
    numbers: Vec<String>,
}

#[async_trait]
impl Step for StageInputs {
    fn step_type(&self) -> &'static str {
        STAGE_INPUTS
    }

    fn units(&self) -> &'static [&'static str] {
        &[]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        read::<Spec>(spec).err().into_iter().collect()
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it changes nothing")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let step = cx.step().identifier.to_string();
        let spec: Spec = read(cx.spec()).map_err(|message| wrong(&step, &message))?;
        let mut variables = spec.variables;
        for name in &spec.numbers {
            if let Some(value) = variables.get_mut(name) {
                let number = number_of(value).ok_or_else(|| {
                    wrong(&step, &format!("the variable `{name}` must be a number"))
                })?;
                *value = number;
            }
        }
        Ok(Progress::Done(json!({"output": {"variables": variables}})))
    }
}

/// A number, which may be given as a text.
fn number_of(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::String(text) => {
            let text = SecretText::decode(text);
            let text = (!text.has_secrets()).then(|| text.encode())?;
            number::parse(text.trim()).map(Value::Number)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::number_of;

    #[test]
    fn numbers_may_be_given_as_texts() {
        let table = [
            (json!(3), Some(json!(3))),
            (json!(" 2.5 "), Some(json!(2.5))),
            (json!("-1"), Some(json!(-1))),
            (json!("007"), Some(json!(7))),
            (json!("three"), None),
            (json!("true"), None),
            (json!(""), None),
            (json!(true), None),
        ];
        for (given, expected) in table {
            assert_eq!(number_of(&given), expected, "{given}");
        }
    }
}
