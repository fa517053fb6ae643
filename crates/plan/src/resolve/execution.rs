//! Steps, step groups and what surrounds them.

use std::time::Duration;

use serde_json::Value;
use slipway_model::id::{EntityId, NodeId};
use slipway_model::names::MOST_STEPS;
use slipway_model::{Code, Diagnostic, Ref, duration, schema};

use super::known::Known;
use super::looping::{Loop, Looping, Turn};
use super::stage_inputs::Question;
use super::{Resolver, texts, unplanned};
use crate::{
    FailureStrategy, GroupPlan, Iteration, Node, ParallelPlan, RunLoop, StagePlan, StepPlan, When,
    WhenStatus, fit,
};

/// Time limit of a step that names none (docs: platform/pipelines/failure-handling/timeout-settings).
const STEP_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Time limit of an approval that names none (docs: platform/approvals/adding-harness-approval-stages, "Set timeout").
const APPROVAL_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Most bytes of all texts of steps in loops, each counted as often as it is repeated.
const MOST_REPEATED_BYTES: usize = 16 * 1024 * 1024;

/// Where nodes are being planned.
struct Place<'a> {
    /// Fully qualified name of the list.
    list: String,
    /// The stage's deployment type.
    deployment: Option<&'a str>,
    /// Delegate selectors of the nearest step group that has any.
    selectors: &'a [String],
}

/// What an element is called, in its turn of a loop.
struct Called {
    id: String,
    identifier: String,
    name: String,
    iteration: Option<Iteration>,
}

impl Resolver<'_> {
    /// `execution` of a stage's spec.
    pub(super) fn execution(&mut self, spec: Ref<'_>, plan: &mut StagePlan, known: &mut Known<'_>) {
        let Some(execution) = spec.get("execution") else {
            return;
        };
        let deployment = plan.deployment_type.clone();
        let mut nodes = |name: &str| {
            let list = format!("stages.{}.spec.execution.{name}", plan.id);
            let place = Place {
                list,
                deployment: deployment.as_deref(),
                selectors: &[],
            };
            self.nodes(execution.get(name), &place, known)
        };
        plan.steps = nodes("steps");
        plan.rollback_steps = nodes("rollbackSteps");
    }

    fn nodes(
        &mut self,
        list: Option<Ref<'_>>,
        place: &Place<'_>,
        known: &mut Known<'_>,
    ) -> Vec<Node> {
        let mut out = Vec::new();
        for (index, item) in list.into_iter().flat_map(Ref::items).enumerate() {
            self.node(item, index, place, known, &mut out);
        }
        out
    }

    /// Plans an item of a list: one node, or those of a loop.
    fn node(
        &mut self,
        item: Ref<'_>,
        index: usize,
        place: &Place<'_>,
        known: &mut Known<'_>,
        out: &mut Vec<Node>,
    ) {
        let kinds = [("step", "step"), ("stepGroup", "step group")];
        let element = kinds
            .iter()
            .find_map(|(key, what)| Some((item.get(key)?, *key, *what)));
        if let Some((element, key, what)) = element {
            let identifier = element.get_text("identifier").unwrap_or_default();
            let what = format!("{what} `{identifier}`");
            match self.looping(element, &what, known) {
                Looping::None => out.extend(self.element(element, key, place, known, None)),
                Looping::Known(found) => self.turns(element, key, found, place, known, out),
                Looping::Later => out.extend(self.later(element, key, place, known)),
            }
            return;
        }
        let Some(branches) = item.get("parallel") else {
            return;
        };
        // Elements of a parallel block are called as if they stood in the list around it.
        let id = NodeId::new(format!("{}[{index}]", place.list));
        let mut planned = Vec::new();
        for (inner, item) in branches.items().enumerate() {
            let list = format!("{}[{index}].parallel", place.list);
            let nested = Place { list, ..*place };
            let place = match item.get("parallel") {
                Some(_) => &nested,
                None => place,
            };
            self.node(item, inner, place, known, &mut planned);
        }
        out.push(Node::Parallel(ParallelPlan {
            id,
            branches: planned,
            concurrency: 0,
            skips_queued: false,
            each: None,
        }));
    }

    /// The turns of a loop: a block of them side by side, called as the element is.
    fn turns(
        &mut self,
        element: Ref<'_>,
        key: &str,
        found: Loop,
        place: &Place<'_>,
        known: &mut Known<'_>,
        out: &mut Vec<Node>,
    ) {
        let identifier = element.get_text("identifier").unwrap_or_default();
        let concurrency = found
            .turns
            .first()
            .map_or(0, |turn| turn.iteration.concurrency);
        let has_turns = !found.turns.is_empty();
        let mut nodes = Vec::new();
        for turn in found.turns {
            if self.faults.is_full() {
                return;
            }
            known.turns.push(turn.iteration.clone());
            nodes.extend(self.element(element, key, place, known, Some(&turn)));
            known.turns.pop();
        }
        // A loop of no turns is shown as skipped.
        if nodes.is_empty() && has_turns {
            return;
        }
        out.push(Node::Parallel(ParallelPlan {
            id: NodeId::new(format!("{}.{identifier}", place.list)),
            branches: nodes,
            concurrency,
            skips_queued: found.skips_queued,
            each: None,
        }));
    }

    /// An element that loops over what the run brings forth: a block that has it as its one branch.
    fn later(
        &mut self,
        element: Ref<'_>,
        key: &str,
        place: &Place<'_>,
        known: &mut Known<'_>,
    ) -> Option<Node> {
        let identifier = element.get_text("identifier")?;
        let each = run_loop(element)?;
        Some(Node::Parallel(ParallelPlan {
            id: NodeId::new(format!("{}.{identifier}", place.list)),
            branches: vec![self.element(element, key, place, known, None)?],
            concurrency: 0,
            skips_queued: each.skips_queued(),
            each: Some(each),
        }))
    }

    fn element(
        &mut self,
        element: Ref<'_>,
        key: &str,
        place: &Place<'_>,
        known: &mut Known<'_>,
        turn: Option<&Turn>,
    ) -> Option<Node> {
        let own = element.get_text("identifier")?;
        let name = element.get_text("name").unwrap_or(own);
        let (identifier, name) = match turn {
            Some(turn) => (
                format!("{own}{}", turn.iteration.postfix()),
                turn.name(name),
            ),
            None => (own.to_owned(), name.to_owned()),
        };
        let called = Called {
            id: format!("{}.{identifier}", place.list),
            identifier,
            name,
            iteration: turn.map(|turn| turn.iteration.clone()),
        };
        match key {
            "step" => self.step(element, called, place, known).map(Node::Step),
            _ => self.group(element, called, place, known).map(Node::Group),
        }
    }

    fn group(
        &mut self,
        group: Ref<'_>,
        called: Called,
        place: &Place<'_>,
        known: &mut Known<'_>,
    ) -> Option<GroupPlan> {
        let Called { id, identifier, .. } = &called;
        if let Some(value) = group.get("stepGroupInfra") {
            let what = format!("the container infrastructure of step group `{identifier}`");
            self.unsupported(value, &what, "");
            return None;
        }
        self.look_over(group, "a step group", unplanned::GROUP);
        let own = self.selectors(group, known);
        let selectors = if own.is_empty() {
            place.selectors
        } else {
            own.as_slice()
        };
        let list = |name: &str| Place {
            list: format!("{id}.{name}"),
            deployment: place.deployment,
            selectors,
        };
        let mut variables = self.variables(group.get("variables"), "stepGroup.variables");
        let steps = list("steps");
        let question = Question::of_variables(&steps.list, &mut variables);
        let mut nodes = self.nodes(group.get("steps"), &steps, known);
        question.ask_first_in_group(&steps.list, &mut nodes);
        Some(GroupPlan {
            variables,
            when: self.when(group, "stageStatus"),
            failure_strategies: self.failure_strategies(group),
            timeout: self.timeout(group, known),
            nodes,
            rollback_steps: self.nodes(group.get("rollbackSteps"), &list("rollbackSteps"), known),
            id: NodeId::new(called.id),
            identifier: EntityId::new(called.identifier),
            name: called.name,
            iteration: called.iteration,
        })
    }

    fn step(
        &mut self,
        step: Ref<'_>,
        called: Called,
        place: &Place<'_>,
        known: &mut Known<'_>,
    ) -> Option<StepPlan> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            if self.steps == MOST_STEPS + 1 {
                let message =
                    format!("with its loops the pipeline has more than {MOST_STEPS} steps");
                self.fault(Code::Limit, step, message);
            }
            return None;
        }
        if self.repeats_too_much(step, known) {
            return None;
        }
        self.look_over(step, "a step", unplanned::STEP);
        let type_field = step.get("type")?;
        let step_type = type_field.text()?;
        self.fits(type_field, step_type, &called.identifier, place);
        if step_type == "Barrier" {
            self.check_barrier(step, &called.id);
        }
        let own = self.selectors(step, known);
        let timeout = self.timeout(step, known);
        let timeout = timeout.unwrap_or_else(|| usual_timeout(step_type));
        if step_type == "Wait" {
            self.tell_long_wait(step, timeout);
        }
        Some(StepPlan {
            step_type: step_type.to_owned(),
            spec: schema::step_spec(step),
            when: self.when(step, "stageStatus"),
            failure_strategies: self.failure_strategies(step),
            delegate_selectors: if own.is_empty() {
                place.selectors.to_vec()
            } else {
                own
            },
            connector: self
                .step_connector(step, step_type, &called.identifier, known)
                .map(Box::new),
            manifests: self.step_manifests(step, (step_type, called.identifier.as_str()), known),
            timeout,
            id: NodeId::new(called.id),
            identifier: EntityId::new(called.identifier),
            name: called.name,
            iteration: called.iteration,
        })
    }

    /// Counts the texts of steps in loops, which a document's own limits do not bound.
    fn repeats_too_much(&mut self, step: Ref<'_>, known: &Known<'_>) -> bool {
        if known.turns.is_empty() {
            return false;
        }
        let texts = step.scalars().filter_map(Ref::scalar);
        self.repeated += texts.map(str::len).sum::<usize>();
        if self.repeated <= MOST_REPEATED_BYTES {
            return false;
        }
        let message = format!(
            "the steps of all turns of loops together have more than {MOST_REPEATED_BYTES} bytes of text"
        );
        self.fault(Code::Limit, step, message);
        true
    }

    /// Tells of a `Wait` that its own time limit ends before it is over.
    fn tell_long_wait(&mut self, step: Ref<'_>, timeout: Duration) {
        let Some(field) = step.at(&["spec", "duration"]) else {
            return;
        };
        let text = field.text().unwrap_or_default();
        if duration::parse(text).is_ok_and(|length| length >= timeout) {
            let limit = duration::shown(timeout);
            self.faults.warn_with(|| {
                let message = format!(
                    "a wait of {text} does not end within the timeout of its step, {limit}: it will expire"
                );
                Diagnostic::at(Code::BadValue, field, message)
                    .expected("a longer `timeout` of the step")
            });
        }
    }

    /// Whether a step can run, and in this stage.
    fn fits(&mut self, field: Ref<'_>, step_type: &str, identifier: &str, place: &Place<'_>) {
        let types = fit::deployment_types(step_type);
        match (types, place.deployment) {
            (Some(types), Some(own)) if !types.contains(&own) => {
                let message = format!(
                    "the step `{identifier}` of type {step_type} belongs into a stage that deploys {}; this one deploys {own}",
                    types.join(" or ")
                );
                self.fault(Code::BadValue, field, message);
            }
            // Where a stage says it in a way that is not supported, that is told; and the language knows which steps stand
            // in stages that deploy nothing.
            (Some(_), None) if self.is_draft => {}
            (Some(types), None) => {
                let message = format!(
                    "the step `{identifier}` of type {step_type} belongs into a Deployment stage that deploys {}",
                    types.join(" or ")
                );
                self.fault(Code::BadValue, field, message);
            }
            _ => {}
        }
        if !(self.request.runnable)(step_type) {
            self.unsupported(
                field,
                &format!("the type `{step_type}` of step `{identifier}`"),
                "",
            );
        }
    }

    pub(super) fn when(&mut self, element: Ref<'_>, status: &str) -> Option<When> {
        let when = element.get("when").filter(|when| when.is_map())?;
        let status = match when.get_text(status) {
            Some("Failure") => WhenStatus::Failure,
            Some("All") => WhenStatus::All,
            _ => WhenStatus::Success,
        };
        let condition = when
            .get("condition")
            .filter(|condition| condition.text().is_some_and(|text| !text.trim().is_empty()));
        if let Some(condition) = condition
            && let Some(Err(error)) = condition.text().map(slipway_expr::check_condition)
        {
            let message = format!("the condition does not parse: {error}");
            self.faults
                .push(Diagnostic::at(Code::BadExpression, condition, message));
        }
        let condition = condition.and_then(Ref::text).map(str::to_owned);
        Some(When { status, condition })
    }

    pub(super) fn failure_strategies(&mut self, element: Ref<'_>) -> Vec<FailureStrategy> {
        let list = element.get("failureStrategies");
        let strategies = list.into_iter().flat_map(Ref::items).filter_map(|item| {
            let on_failure = item.get("onFailure")?;
            let action = on_failure.get("action")?;
            Some(FailureStrategy {
                errors: texts(on_failure.get("errors")),
                action: action.get_text("type")?.to_owned(),
                spec: action.get("spec").map_or(Value::Null, Ref::to_json),
            })
        });
        strategies.collect()
    }
}

/// Time limit of a step of this type that names none.
fn usual_timeout(step_type: &str) -> Duration {
    match step_type {
        "HarnessApproval" | "JiraApproval" | "ServiceNowApproval" | "CustomApproval" => {
            APPROVAL_TIMEOUT
        }
        _ => STEP_TIMEOUT,
    }
}

/// The loop of an element that goes over what the run brings forth.
pub(super) fn run_loop(element: Ref<'_>) -> Option<RunLoop> {
    let identifier = element.get_text("identifier")?;
    Some(RunLoop {
        of: EntityId::new(identifier),
        name: element.get_text("name").unwrap_or(identifier).to_owned(),
        strategy: element.get("strategy")?.to_json(),
    })
}
