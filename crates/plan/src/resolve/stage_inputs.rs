//! Variables of stages that are asked for when the stage begins: `<+input>.executionInput()` as their value
//! (developer.harness.io, *Use runtime input*, "Supply runtime input during execution").
//!
//! The stage gets a first step that asks for them, and the variables become references to what it was given.

use std::time::Duration;

use serde_json::{Map, Value, json};
use slipway_model::id::{EntityId, NodeId};
use slipway_model::inputs::RuntimeInput;

use crate::{Node, STAGE_INPUTS, StagePlan, StepPlan, Variable};

/// Identifier of the step that asks. Harness has none of that name; its own begin with a letter by custom.
const STEP: &str = "__inputs";

/// How long a stage waits for its inputs where its own time is not up before. Harness names no limit; it is that of
/// an approval.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// The step that asks for the variables of the stage `id` that want it, which are changed to what it will know; `None`
/// where none wants it.
pub(super) fn asking(id: &str, variables: &mut [Variable]) -> Option<StepPlan> {
    let mut asked = Map::new();
    let mut numbers = Vec::new();
    for variable in variables
        .iter_mut()
        .filter(|variable| asks(&variable.value))
    {
        let name = variable.name.as_str();
        let known = json!(format!(
            "<+pipeline.stages.{id}.spec.execution.steps.{STEP}.output.variables.{name}>"
        ));
        asked.insert(
            name.to_owned(),
            std::mem::replace(&mut variable.value, known),
        );
        if variable.kind == "Number" {
            numbers.push(name.to_owned());
        }
    }
    if asked.is_empty() {
        return None;
    }
    Some(StepPlan {
        id: NodeId::new(format!("stages.{id}.spec.execution.steps.{STEP}")),
        identifier: EntityId::new(STEP),
        name: "Inputs of the stage".to_owned(),
        step_type: STAGE_INPUTS.to_owned(),
        spec: json!({"variables": asked, "numbers": numbers}),
        when: None,
        failure_strategies: Vec::new(),
        delegate_selectors: Vec::new(),
        connector: None,
        manifests: Vec::new(),
        timeout: PATIENCE,
        iteration: None,
    })
}

/// Lets variables of a stage `old` read what the step of the turn `new` of it was given.
pub(crate) fn in_turn(variables: &mut [Variable], old: &str, new: &str) {
    let place = |id: &str| format!("<+pipeline.stages.{id}.spec.execution.steps.{STEP}.");
    for variable in variables {
        let read = variable.value.as_str();
        if let Some(rest) = read.and_then(|text| text.strip_prefix(&place(old))) {
            variable.value = json!(format!("{}{rest}", place(new)));
        }
    }
}

/// Puts the step that asks before all others of its stage.
pub(super) fn ask_first(plan: &mut StagePlan, step: Option<StepPlan>) {
    if let Some(mut step) = step {
        // The stage's own limit would end it without a word about inputs.
        step.timeout = step
            .timeout
            .min(plan.timeout.saturating_sub(Duration::from_secs(1)));
        plan.steps.insert(0, Node::Step(step));
    }
}

fn asks(value: &Value) -> bool {
    let text = value.as_str();
    text.and_then(RuntimeInput::parse)
        .is_some_and(|request| request.execution)
}
