//! Steps, step groups and what surrounds them.

use std::time::Duration;

use serde_json::Value;
use slipway_model::id::{EntityId, NodeId};
use slipway_model::{Code, Diagnostic, Ref, schema};

use super::known::Known;
use super::{Resolver, texts};
use crate::{
    FailureStrategy, GroupPlan, Node, ParallelPlan, StagePlan, StepPlan, When, WhenStatus, fit,
};

/// Time limit of a step that names none (docs: platform/pipelines/failure-handling/timeout-settings).
const STEP_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Where nodes are being planned.
struct Place<'a> {
    /// Fully qualified name of the list.
    list: String,
    /// The stage's deployment type.
    deployment: Option<&'a str>,
}

impl Resolver<'_> {
    /// `execution` of a stage's spec.
    pub(super) fn execution(&mut self, spec: Ref<'_>, plan: &mut StagePlan, known: &Known<'_>) {
        let Some(execution) = spec.get("execution") else {
            return;
        };
        let deployment = plan.deployment_type.clone();
        let mut nodes = |name: &str| {
            let list = format!("stages.{}.spec.execution.{name}", plan.identifier);
            let place = Place {
                list,
                deployment: deployment.as_deref(),
            };
            self.nodes(execution.get(name), &place, known)
        };
        plan.steps = nodes("steps");
        plan.rollback_steps = nodes("rollbackSteps");
    }

    fn nodes(&mut self, list: Option<Ref<'_>>, place: &Place<'_>, known: &Known<'_>) -> Vec<Node> {
        let items = list.into_iter().flat_map(Ref::items).enumerate();
        items
            .filter_map(|(index, item)| self.node(item, index, place, known))
            .collect()
    }

    fn node(
        &mut self,
        item: Ref<'_>,
        index: usize,
        place: &Place<'_>,
        known: &Known<'_>,
    ) -> Option<Node> {
        if let Some(step) = item.get("step") {
            return self.step(step, place, known).map(Node::Step);
        }
        if let Some(group) = item.get("stepGroup") {
            return self.group(group, place, known).map(Node::Group);
        }
        let branches = item.get("parallel")?;
        // Elements of a parallel block are called as if they stood in the list around it.
        let id = NodeId::new(format!("{}[{index}]", place.list));
        let branches = branches.items().enumerate().filter_map(|(inner, item)| {
            let list = format!("{}[{index}].parallel", place.list);
            let nested = Place { list, ..*place };
            let place = if item.get("parallel").is_some() {
                &nested
            } else {
                place
            };
            self.node(item, inner, place, known)
        });
        let branches = branches.collect();
        Some(Node::Parallel(ParallelPlan { id, branches }))
    }

    fn group(&mut self, group: Ref<'_>, place: &Place<'_>, known: &Known<'_>) -> Option<GroupPlan> {
        let identifier = group.get_text("identifier")?;
        for (field, what) in [
            ("strategy", "the looping `strategy`"),
            ("stepGroupInfra", "the container infrastructure"),
        ] {
            if let Some(value) = group.get(field) {
                self.unsupported(value, &format!("{what} of step group `{identifier}`"), "");
                return None;
            }
        }
        let id = format!("{}.{identifier}", place.list);
        let list = |name: &str| Place {
            list: format!("{id}.{name}"),
            deployment: place.deployment,
        };
        Some(GroupPlan {
            identifier: EntityId::new(identifier),
            name: group.get_text("name").unwrap_or(identifier).to_owned(),
            when: self.when(group, "stageStatus"),
            failure_strategies: self.failure_strategies(group),
            nodes: self.nodes(group.get("steps"), &list("steps"), known),
            rollback_steps: self.nodes(group.get("rollbackSteps"), &list("rollbackSteps"), known),
            id: NodeId::new(id),
        })
    }

    fn step(&mut self, step: Ref<'_>, place: &Place<'_>, known: &Known<'_>) -> Option<StepPlan> {
        let identifier = step.get_text("identifier")?;
        for (field, what) in [
            ("strategy", "the looping `strategy`"),
            ("enforce", "the policy set"),
        ] {
            if let Some(value) = step.get(field) {
                self.unsupported(value, &format!("{what} of step `{identifier}`"), "");
            }
        }
        let type_field = step.get("type")?;
        let step_type = type_field.text()?;
        self.fits(type_field, step_type, identifier, place);
        Some(StepPlan {
            id: NodeId::new(format!("{}.{identifier}", place.list)),
            identifier: EntityId::new(identifier),
            name: step.get_text("name").unwrap_or(identifier).to_owned(),
            step_type: step_type.to_owned(),
            spec: schema::step_spec(step),
            when: self.when(step, "stageStatus"),
            failure_strategies: self.failure_strategies(step),
            timeout: self.timeout(step, known).unwrap_or(STEP_TIMEOUT),
        })
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
