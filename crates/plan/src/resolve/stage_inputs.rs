//! Inputs that are asked for when a stage or a step group begins: `<+input>.executionInput()` as the value of one of its
//! variables, or among what a stage gives its service, environment and infrastructure (developer.harness.io, *Use runtime
//! input*, "Supply runtime input during execution").
//!
//! The stage or group gets a first step that asks, and what is asked for becomes a reference to what that step was given.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use slipway_model::id::NodeId;
use slipway_model::inputs::RuntimeInput;
use slipway_model::{Parsed, Ref};

use crate::chosen::flatten;
use crate::{CHAINED, Node, STAGE_INPUTS, StagePlan, StepPlan, Variable, When, WhenStatus};

/// Identifier of the step that asks. Harness has none of that name; its own begin with a letter by custom.
const STEP: &str = "__inputs";

/// How long a stage waits for its inputs where its own time is not up before. Harness names no limit; it is that of
/// an approval.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Where a stage says what it deploys and where.
const PLACES: &[&str] = &[
    "service",
    "services",
    "environment",
    "environments",
    "environmentGroup",
];

/// Fields that hold what a stage gives to what it refers to.
const GIVEN: &[&str] = &[
    "serviceInputs",
    "environmentInputs",
    "serviceOverrideInputs",
    "inputs",
];

/// Names that say nothing about an input to whoever is asked for it.
const NOISE: &[&str] = &[
    "serviceInputs",
    "environmentInputs",
    "inputs",
    "values",
    "value",
    "serviceDefinition",
    "spec",
    "infrastructureDefinition",
    "infrastructureDefinitions",
];

/// What stages ask for beside their variables, by the `identifier` of the stage.
pub(super) type Later = HashMap<String, Vec<Asked>>;

/// One input of a stage.
pub(super) struct Asked {
    /// What whoever is asked calls it.
    name: String,
    /// `<+input>…`, as it is written.
    request: String,
    /// Whether it must be a number.
    number: bool,
}

/// Whether a text reads what is given when a stage or step group begins.
pub(super) fn reads_given(text: &str) -> bool {
    text.contains(&format!("steps.{STEP}.output."))
}

/// What a stage or group of this name (`stages.deploy.spec.execution.steps`) was given.
fn given(list: &str, name: &str) -> String {
    format!("<+pipeline.{list}.{STEP}.output.variables.{name}>")
}

fn steps_of(stage: &str) -> String {
    format!("stages.{stage}.spec.execution.steps")
}

/// The pipeline with references in the place of all that its stages ask for, but for variables, and what that is.
pub(super) fn set_aside(pipeline: Parsed) -> (Parsed, Later) {
    let mut later = Later::new();
    let asks = |value: Ref<'_>| asks_text(value.scalar());
    if !pipeline.body().scalars().any(asks) {
        return (pipeline, later);
    }
    let mut stages = Vec::new();
    if let Some(list) = pipeline.body().get("stages") {
        flatten(list, &mut stages);
    }
    let mut texts = Vec::new();
    for stage in stages {
        let (Some(id), Some(spec)) = (stage.get_text("identifier"), stage.get("spec")) else {
            continue;
        };
        if stage.get_text("type") == Some(CHAINED) {
            continue;
        }
        let mut found = Vec::new();
        for place in PLACES {
            if let Some(value) = spec.get(place) {
                open(value, &mut vec![(*place).to_owned()], false, &mut found);
            }
        }
        let asked: &mut Vec<Asked> = later.entry(id.to_owned()).or_default();
        for (value, names, number) in found {
            let name = name_of(&names, asked);
            texts.push((value, given(&steps_of(id), &name)));
            asked.push(Asked {
                name,
                request: value.scalar().unwrap_or_default().to_owned(),
                number,
            });
        }
    }
    later.retain(|_, asked| !asked.is_empty());
    (pipeline.with_texts(&texts), later)
}

/// What is asked for in a value that a stage gives, with the names on the way to it, and whether it is a number.
fn open<'r>(
    value: Ref<'r>,
    names: &mut Vec<String>,
    number: bool,
    found: &mut Vec<(Ref<'r>, Vec<String>, bool)>,
) {
    let is_given = names.iter().any(|name| GIVEN.contains(&name.as_str()));
    let whole = names
        .last()
        .is_some_and(|name| GIVEN.contains(&name.as_str()));
    let request = RuntimeInput::of(value).filter(|request| request.execution);
    if request.is_some() && is_given && !whole {
        found.push((value, names.clone(), number));
        return;
    }
    let number = value.get_text("type") == Some("Number");
    for (key, inner) in value.entries() {
        names.push(key.to_owned());
        open(inner, names, number, found);
        names.pop();
    }
    for (index, item) in value.items().enumerate() {
        names.push(called(item).map_or_else(|| index.to_string(), str::to_owned));
        open(item, names, false, found);
        names.pop();
    }
}

fn called(item: Ref<'_>) -> Option<&str> {
    let item = ["manifest", "configFile", "sidecar"]
        .iter()
        .find_map(|wrapper| item.get(wrapper))
        .unwrap_or(item);
    let mut names = ["identifier", "name", "serviceRef", "environmentRef"].iter();
    let name = names.find_map(|key| item.get_text(key));
    name.filter(|name| !name.contains("<+"))
}

/// A name that expressions can say and nothing else that is asked for has.
fn name_of(names: &[String], taken: &[Asked]) -> String {
    let telling = names.iter().filter(|name| !NOISE.contains(&name.as_str()));
    let plain = |name: &String| name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let name = telling.map(plain).collect::<Vec<_>>().join("_");
    let is_free = |name: &str| taken.iter().all(|other| other.name != name);
    if is_free(&name) {
        return name;
    }
    let mut numbered = (2..).map(|number: usize| format!("{name}_{number}"));
    numbered.find(|name| is_free(name)).unwrap_or(name)
}

/// The step that asks, being made.
#[derive(Default)]
pub(super) struct Question {
    asked: Map<String, Value>,
    numbers: Vec<String>,
}

impl Question {
    /// Asks for the variables that want it, which are changed to what the step will know. `list` is the list of nodes
    /// that the step will be the first of.
    pub(super) fn of_variables(list: &str, variables: &mut [Variable]) -> Self {
        let mut question = Self::default();
        for variable in variables
            .iter_mut()
            .filter(|variable| asks(&variable.value))
        {
            let name = variable.name.clone();
            let known = json!(given(list, &name));
            let request = std::mem::replace(&mut variable.value, known);
            question.add(&name, request, variable.kind == "Number");
        }
        question
    }

    /// As [`Question::of_variables`], for the variables of a stage.
    pub(super) fn of_stage(id: &str, variables: &mut [Variable]) -> Self {
        Self::of_variables(&steps_of(id), variables)
    }

    fn add(&mut self, name: &str, request: Value, number: bool) {
        if number {
            self.numbers.push(name.to_owned());
        }
        self.asked.insert(name.to_owned(), request);
    }

    /// The step, which is the first of `list`; `None` where nothing is asked for.
    fn step(self, list: &str, name: &str) -> Option<StepPlan> {
        if self.asked.is_empty() {
            return None;
        }
        Some(StepPlan::ahead(
            NodeId::new(format!("{list}.{STEP}")),
            (STEP, name),
            (
                STAGE_INPUTS,
                json!({"variables": self.asked, "numbers": self.numbers}),
            ),
            PATIENCE,
        ))
    }

    /// Puts the step that asks before all others of its stage, where anything is asked for: what `question` has, and
    /// what the stage that is written as `own` reads of `later`.
    pub(super) fn ask_first(mut self, plan: &mut StagePlan, own: &str, later: &Later) {
        let id = plan.id.to_string();
        if let Some(later) = later.get(own) {
            if own != id {
                in_turn(plan, own, &id);
            }
            let texts = [
                serde_json::to_string(&plan.service),
                serde_json::to_string(&plan.environment),
                serde_json::to_string(&plan.infrastructure),
            ];
            let texts: Vec<String> = texts.into_iter().filter_map(Result::ok).collect();
            for asked in later {
                let read = given(&steps_of(&id), &asked.name);
                if texts.iter().any(|text| text.contains(&read)) {
                    self.add(&asked.name, json!(asked.request), asked.number);
                }
            }
        }
        if let Some(mut step) = self.step(&steps_of(&id), "Inputs of the stage") {
            // The stage's own limit would end it without a word about inputs.
            step.timeout = step
                .timeout
                .min(plan.timeout.saturating_sub(Duration::from_secs(1)));
            plan.steps.insert(0, Node::Step(step));
        }
    }

    /// Puts the step that asks before all others of a step group. It asks whenever the group begins, whatever failed
    /// before.
    pub(super) fn ask_first_in_group(self, list: &str, nodes: &mut Vec<Node>) {
        if let Some(mut step) = self.step(list, "Inputs of the step group") {
            step.when = Some(When {
                status: WhenStatus::All,
                condition: None,
            });
            nodes.insert(0, Node::Step(step));
        }
    }
}

/// Lets what a stage `old` reads of its own inputs be read of the step of the turn `new` of it.
pub(crate) fn in_turn(stage: &mut StagePlan, old: &str, new: &str) {
    let place = |id: &str| format!("<+pipeline.{}.{STEP}.", steps_of(id));
    let (old, new) = (place(old), place(new));
    relocate(&mut stage.variables, &old, &new);
    relocate(&mut stage.service, &old, &new);
    relocate(&mut stage.environment, &old, &new);
    relocate(&mut stage.infrastructure, &old, &new);
}

/// Lets variables of a step group, whose name begins with `old` and now with `new`, read the inputs of the latter.
pub(crate) fn group_in_turn(variables: &mut [Variable], old: &str, new: &str) {
    let (old, new) = (format!("<+pipeline.{old}"), format!("<+pipeline.{new}"));
    for variable in variables {
        let read = variable.value.as_str().filter(|text| reads_given(text));
        if let Some(rest) = read.and_then(|text| text.strip_prefix(&old)) {
            variable.value = json!(format!("{new}{rest}"));
        }
    }
}

/// Replaces a text in all texts of a part of a plan. Both are names between dots, which JSON writes as they are.
fn relocate<T: Serialize + DeserializeOwned>(part: &mut T, old: &str, new: &str) {
    let Ok(json) = serde_json::to_string(part) else {
        return;
    };
    if json.contains(old)
        && let Ok(moved) = serde_json::from_str(&json.replace(old, new))
    {
        *part = moved;
    }
}

fn asks(value: &Value) -> bool {
    asks_text(value.as_str())
}

fn asks_text(text: Option<&str>) -> bool {
    text.and_then(RuntimeInput::parse)
        .is_some_and(|request| request.execution)
}

/// What to do about an input at this path that nothing asks for in time; `None` where it is asked for.
pub(super) fn too_early(path: &str) -> Option<&'static str> {
    let variable = |of: &str| path.contains(of) && path.ends_with(".value");
    let asked = path.contains(".step.spec.")
        || variable(".stage.variables[")
        || variable(".stepGroup.variables[");
    if asked {
        return None;
    }
    let reasons: &[(&[&str], &str)] = &[
        (
            &["pipeline.variables["],
            ": stages, step groups and steps ask when they begin, and a pipeline has begun before anybody can be asked; put the variable into the stage that needs it",
        ),
        (
            &[
                ".when.",
                ".multiDeploymentConfig.when",
                ".condition",
                ".failureStrategies",
            ],
            ": it is asked for when the element begins, and this decides whether and how it does; give the input when the run starts, or refer to a variable of an earlier stage that asks",
        ),
        (
            &[".stage.spec.inputs."],
            ": a stage that runs another pipeline asks for nothing before that; let a stage or step of the other pipeline ask, or refer to a variable of an earlier stage that asks",
        ),
        (
            &[".timeout"],
            ": time is counted from the beginning of the element, and it asks then; give the input when the run starts",
        ),
        (
            &[".strategy."],
            ": how often an element runs is decided before any of its turns can ask; loop over a variable of an earlier stage that asks",
        ),
        (
            &[
                "Ref",
                ".identifier",
                ".stage.spec.environment",
                ".stage.spec.service",
            ],
            ": what is deployed and where decides the plan of a run, which is made before it begins; give the input when the run starts",
        ),
    ];
    let found = reasons
        .iter()
        .find(|(parts, _)| parts.iter().any(|part| path.contains(part)));
    Some(found.map_or(
        "; give the input when the run starts, or refer to a variable of the stage that asks",
        |(_, reason)| reason,
    ))
}
