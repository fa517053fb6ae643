//! The plan as text for people.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use crate::{
    FailureStrategy, Node, Plan, ServicePlan, StagePlan, StepPlan, Variable, When, WhenStatus,
};

/// The plan as readable text, one line per thing, in the order in which it happens.
pub fn text(plan: &Plan) -> String {
    let mut page = Page::default();
    let timeout = duration(plan.timeout);
    page.line(
        0,
        &format!(
            "pipeline {} \"{}\" (at most {timeout})",
            plan.pipeline, plan.name
        ),
    );
    page.variables(1, &plan.variables);
    for group in &plan.groups {
        match group.as_slice() {
            [stage] => page.stage(1, stage),
            stages => {
                page.line(1, "side by side");
                stages.iter().for_each(|stage| page.stage(2, stage));
            }
        }
    }
    page.out
}

#[derive(Default)]
struct Page {
    out: String,
}

impl Page {
    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "{:depth$}{text}", "", depth = depth * 2);
    }

    fn variables(&mut self, depth: usize, variables: &[Variable]) {
        for variable in variables {
            let value = match variable.kind.as_str() {
                "Secret" => format!("secret {}", short(&variable.value)),
                _ => short(&variable.value),
            };
            self.line(depth, &format!("variable {} = {value}", variable.name));
        }
    }

    fn stage(&mut self, depth: usize, stage: &StagePlan) {
        let kind = match &stage.deployment_type {
            Some(deployment) => format!("{} of {deployment}", stage.stage_type),
            None => stage.stage_type.clone(),
        };
        let timeout = duration(stage.timeout);
        let when = when(stage.when.as_ref());
        self.line(
            depth,
            &format!(
                "stage {} \"{}\": {kind} (at most {timeout}){when}",
                stage.id, stage.name
            ),
        );
        let inner = depth + 1;
        self.variables(inner, &stage.variables);
        if let Some(service) = &stage.service {
            self.service(inner, service);
        }
        if let Some(environment) = &stage.environment {
            self.line(
                inner,
                &format!(
                    "environment {} ({})",
                    environment.identifier, environment.kind
                ),
            );
            self.variables(inner + 1, &environment.variables);
        }
        if let Some(infrastructure) = &stage.infrastructure {
            let spec = short(&infrastructure.spec);
            self.line(
                inner,
                &format!(
                    "infrastructure {} ({}) {spec}",
                    infrastructure.identifier, infrastructure.kind
                ),
            );
            if let Some(connector) = &infrastructure.connector {
                self.line(
                    inner + 1,
                    &format!("connector {} ({})", connector.reference, connector.kind),
                );
            }
        }
        self.strategies(inner, &stage.failure_strategies);
        self.nodes(inner, "steps", &stage.steps);
        self.nodes(inner, "rollback", &stage.rollback_steps);
    }

    fn service(&mut self, depth: usize, service: &ServicePlan) {
        self.line(
            depth,
            &format!(
                "service {} ({})",
                service.identifier, service.deployment_type
            ),
        );
        self.variables(depth + 1, &service.variables);
        if let Some(artifact) = &service.artifact {
            let image = artifact
                .image
                .as_deref()
                .or(artifact.tag.as_deref())
                .unwrap_or("?");
            self.line(
                depth + 1,
                &format!(
                    "artifact {} ({}) {image}",
                    artifact.identifier, artifact.kind
                ),
            );
        }
        for manifest in &service.manifests {
            let store = manifest.store["type"].as_str().unwrap_or("?");
            let bytes: usize = manifest.files.iter().map(|(_, text)| text.len()).sum();
            let size = match manifest.files.is_empty() {
                true => "fetched by the step".to_owned(),
                false => format!("{bytes} bytes"),
            };
            self.line(
                depth + 1,
                &format!(
                    "manifest {} ({}) from {store}, {size}",
                    manifest.identifier, manifest.kind
                ),
            );
        }
    }

    fn nodes(&mut self, depth: usize, title: &str, nodes: &[Node]) {
        if nodes.is_empty() {
            return;
        }
        self.line(depth, title);
        nodes.iter().for_each(|node| self.node(depth + 1, node));
    }

    fn node(&mut self, depth: usize, node: &Node) {
        match node {
            Node::Step(step) => self.step(depth, step),
            Node::Group(group) => {
                let when = when(group.when.as_ref());
                self.line(
                    depth,
                    &format!("group {} \"{}\"{when}", group.identifier, group.name),
                );
                self.strategies(depth + 1, &group.failure_strategies);
                group
                    .nodes
                    .iter()
                    .for_each(|node| self.node(depth + 1, node));
                self.nodes(depth + 1, "rollback", &group.rollback_steps);
            }
            Node::Parallel(parallel) => {
                self.line(depth, "side by side");
                parallel
                    .branches
                    .iter()
                    .for_each(|node| self.node(depth + 1, node));
            }
        }
    }

    fn step(&mut self, depth: usize, step: &StepPlan) {
        let (timeout, when) = (duration(step.timeout), when(step.when.as_ref()));
        let title = format!(
            "step {} \"{}\": {} (at most {timeout}){when}",
            step.identifier, step.name, step.step_type
        );
        self.line(depth, &title);
        for (name, value) in step.spec.as_object().into_iter().flatten() {
            self.line(depth + 1, &format!("{name} = {}", short(value)));
        }
        self.strategies(depth + 1, &step.failure_strategies);
    }

    fn strategies(&mut self, depth: usize, strategies: &[FailureStrategy]) {
        for strategy in strategies {
            let spec = match &strategy.spec {
                Value::Null => String::new(),
                spec => format!(" {}", short(spec)),
            };
            self.line(
                depth,
                &format!(
                    "on {}: {}{spec}",
                    strategy.errors.join(", "),
                    strategy.action
                ),
            );
        }
    }
}

fn when(when: Option<&When>) -> String {
    let Some(when) = when else {
        return String::new();
    };
    let status = match when.status {
        WhenStatus::Success => "nothing failed",
        WhenStatus::Failure => "something failed",
        WhenStatus::All => "always",
    };
    match &when.condition {
        Some(condition) => format!(" when {status} and {}", condition.replace('\n', " ")),
        None => format!(" when {status}"),
    }
}

/// A value on one line, cut where it is long.
fn short(value: &Value) -> String {
    const LONGEST: usize = 100;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn duration(duration: Duration) -> String {
    let mut left = duration.as_secs();
    let mut out = String::new();
    for (unit, seconds) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] {
        if left >= seconds {
            let _ = write!(out, "{}{unit}", left / seconds);
            left %= seconds;
        }
    }
    if out.is_empty() { "0s".to_owned() } else { out }
}
