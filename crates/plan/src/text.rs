//! The plan as text for people: what will run, in which order, under which conditions and with which values.
//!
//! Values are shown as they will be, as far as that is known before the run; what is not stays an expression.
//! Secrets are shown by name.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use crate::view::View;
use crate::{
    ConnectorPlan, FailureStrategy, Iteration, ManifestPlan, Node, NotificationPlan, Plan, RunLoop,
    ServicePlan, StagePlan, StepPlan, Variable, When, WhenStatus,
};

/// The plan as readable text, one line per thing, in the order in which it happens.
pub fn text(plan: &Plan) -> String {
    let mut page = Page {
        view: View::of(plan),
        out: String::new(),
    };
    let timeout = duration(plan.timeout);
    page.line(
        0,
        &format!(
            "pipeline {} \"{}\" (at most {timeout})",
            plan.pipeline, plan.name
        ),
    );
    page.variables(1, &plan.variables);
    page.variables(1, &plan.scope_variables);
    page.around(plan);
    for group in &plan.groups {
        match group.as_slice() {
            [stage] => page.stage(1, stage),
            stages => {
                let limits = limits(stages);
                match limits.as_slice() {
                    [(_, limit, turns)] if *turns == stages.len() => {
                        page.line(1, &side_by_side(*limit));
                    }
                    limits => {
                        page.line(1, &side_by_side(0));
                        for (of, limit, _) in limits {
                            page.line(2, &format!("{limit} turns of {of} at a time"));
                        }
                    }
                }
                stages.iter().for_each(|stage| page.stage(2, stage));
            }
        }
    }
    page.out
}

/// The loops among stages side by side that limit themselves: name, limit and how many of the stages are turns of it.
fn limits(stages: &[StagePlan]) -> Vec<(&str, u32, usize)> {
    let mut limits: Vec<(&str, u32, usize)> = Vec::new();
    for turn in stages.iter().filter_map(|stage| stage.iteration.as_ref()) {
        let of = turn.of.as_str();
        match limits.iter_mut().find(|(known, ..)| *known == of) {
            Some((_, _, turns)) => *turns += 1,
            None if turn.concurrency > 0 => limits.push((of, turn.concurrency, 1)),
            None => {}
        }
    }
    limits
}

struct Page<'p> {
    view: View<'p>,
    out: String,
}

impl<'p> Page<'p> {
    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "{:depth$}{text}", "", depth = depth * 2);
    }

    fn variables(&mut self, depth: usize, variables: &[Variable]) {
        for variable in variables {
            let value = match variable.kind.as_str() {
                "Secret" => format!("secret {}", short(&variable.value)),
                _ => self.shown(&variable.value),
            };
            let name = variable.name.trim_start_matches("variable.");
            self.line(depth, &format!("variable {name} = {value}"));
        }
    }

    /// What goes for the whole run and not for one stage.
    fn around(&mut self, plan: &Plan) {
        for barrier in &plan.barriers {
            let line = format!("barrier {} \"{}\"", barrier.identifier, barrier.name);
            self.line(1, &line);
        }
        for rule in &plan.notifications {
            self.line(1, &notification(rule));
        }
        for warning in &plan.warnings {
            self.line(1, &format!("warning {warning}"));
        }
    }

    /// A value as it will be, as far as that is known, on one line.
    fn shown(&self, value: &Value) -> String {
        short(&self.view.resolved(value))
    }

    fn stage(&mut self, depth: usize, stage: &'p StagePlan) {
        self.view.enter(stage);
        let kind = match &stage.deployment_type {
            Some(deployment) => format!("{} of {deployment}", stage.stage_type),
            None => stage.stage_type.clone(),
        };
        let timeout = duration(stage.timeout);
        let when = when(stage.when.as_ref());
        let by_hand = stage.start_within.map_or_else(String::new, |seconds| {
            let limit = duration(Duration::from_secs(seconds));
            format!(", when somebody starts it, within {limit}")
        });
        self.line(
            depth,
            &format!(
                "stage {} \"{}\": {kind} (at most {timeout}){when}{by_hand}",
                stage.id, stage.name
            ),
        );
        let inner = depth + 1;
        if let Some(each) = &stage.each {
            self.line(inner, &later_turns(each));
        }
        self.turn(inner, stage.iteration.as_ref());
        if !stage.delegate_selectors.is_empty() {
            let selectors = stage.delegate_selectors.join(", ");
            self.line(inner, &format!("delegates {selectors}"));
        }
        self.variables(inner, &stage.variables);
        if let Some(service) = &stage.service {
            self.service(inner, service);
        }
        self.place(inner, stage);
        self.strategies(inner, &stage.failure_strategies);
        self.nodes(inner, "steps", &stage.steps);
        self.nodes(inner, "rollback", &stage.rollback_steps);
    }

    /// Which turn of a loop something is, with what the loop hands it.
    fn turn(&mut self, depth: usize, turn: Option<&'p Iteration>) {
        let Some(turn) = turn else {
            return;
        };
        let mut line = format!("turn {} of {} of {}", turn.index + 1, turn.total, turn.of);
        for (axis, value) in &turn.matrix {
            let _ = write!(line, ", {axis} = {}", short(value));
        }
        let more = [("item", &turn.item), ("partition", &turn.partition)];
        for (name, value) in more {
            if let Some(value) = value {
                let _ = write!(line, ", {name} = {}", short(value));
            }
        }
        self.line(depth, &line);
    }

    fn place(&mut self, inner: usize, stage: &StagePlan) {
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
            let spec = self.shown(&infrastructure.spec);
            self.line(
                inner,
                &format!(
                    "infrastructure {} ({}) {spec}",
                    infrastructure.identifier, infrastructure.kind
                ),
            );
            self.connector(inner + 1, infrastructure.connector.as_ref());
        }
    }

    fn connector(&mut self, depth: usize, connector: Option<&ConnectorPlan>) {
        if let Some(connector) = connector {
            let line = format!("connector {} ({})", connector.reference, connector.kind);
            self.line(depth, &line);
        }
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
        let artifacts = service
            .artifact
            .iter()
            .map(|artifact| ("artifact", artifact));
        let sidecars = service.sidecars.iter().map(|sidecar| ("sidecar", sidecar));
        for (what, artifact) in artifacts.chain(sidecars) {
            let version = artifact.image.clone().or_else(|| artifact.tag.clone());
            let version = version.or_else(|| object(&artifact.spec));
            let version = Value::from(version.unwrap_or_else(|| "?".to_owned()));
            let version = match self.view.resolved(&version) {
                Value::String(text) => text,
                other => other.to_string(),
            };
            let line = format!(
                "{what} {} ({}) {version}",
                artifact.identifier, artifact.kind
            );
            self.line(depth + 1, &line);
        }
        self.manifests(depth + 1, &service.manifests);
        for file in &service.config_files {
            let source = source(&file.store, file.commit.as_deref(), &file.files);
            self.line(
                depth + 1,
                &format!("config file {} {source}", file.identifier),
            );
        }
    }

    fn nodes(&mut self, depth: usize, title: &str, nodes: &'p [Node]) {
        if nodes.is_empty() {
            return;
        }
        self.line(depth, title);
        nodes.iter().for_each(|node| self.node(depth + 1, node));
    }

    fn node(&mut self, depth: usize, node: &'p Node) {
        match node {
            Node::Step(step) => self.step(depth, step),
            Node::Group(group) => {
                let when = when(group.when.as_ref());
                let limit = group.timeout.map(duration);
                let limit = limit.map_or_else(String::new, |limit| format!(" within {limit}"));
                let called = format!("{} \"{}\"", group.identifier, group.name);
                self.line(depth, &format!("group {called}{limit}{when}"));
                self.turn(depth + 1, group.iteration.as_ref());
                self.strategies(depth + 1, &group.failure_strategies);
                self.view.turns.extend(&group.iteration);
                group
                    .nodes
                    .iter()
                    .for_each(|node| self.node(depth + 1, node));
                self.nodes(depth + 1, "rollback", &group.rollback_steps);
                if group.iteration.is_some() {
                    self.view.turns.pop();
                }
            }
            Node::Parallel(parallel) => {
                let how = match &parallel.each {
                    Some(each) => later_turns(each),
                    None if parallel.branches.is_empty() => {
                        let id = parallel.id.as_str();
                        let own = id.rsplit('.').next().unwrap_or(id);
                        format!("{own}: a loop of no turns")
                    }
                    None => side_by_side(parallel.concurrency),
                };
                let gives_up = match parallel.skips_queued && parallel.each.is_none() {
                    true => ", the rest given up when one fails",
                    false => "",
                };
                self.line(depth, &format!("{how}{gives_up}"));
                parallel
                    .branches
                    .iter()
                    .for_each(|node| self.node(depth + 1, node));
            }
        }
    }

    fn manifests(&mut self, depth: usize, manifests: &[ManifestPlan]) {
        for manifest in manifests {
            let source = source(&manifest.store, manifest.commit.as_deref(), &manifest.files);
            let line = format!(
                "manifest {} ({}) {source}",
                manifest.identifier, manifest.kind
            );
            self.line(depth, &line);
        }
    }

    fn step(&mut self, depth: usize, step: &'p StepPlan) {
        let (timeout, when) = (duration(step.timeout), when(step.when.as_ref()));
        let title = format!(
            "step {} \"{}\": {} (at most {timeout}){when}",
            step.identifier, step.name, step.step_type
        );
        self.line(depth, &title);
        self.turn(depth + 1, step.iteration.as_ref());
        if !step.delegate_selectors.is_empty() {
            let selectors = step.delegate_selectors.join(", ");
            self.line(depth + 1, &format!("delegates {selectors}"));
        }
        self.connector(depth + 1, step.connector.as_deref());
        self.manifests(depth + 1, &step.manifests);
        self.view.turns.extend(&step.iteration);
        let held = |name: &str| {
            let mut manifests = step.manifests.iter();
            manifests.any(|manifest| manifest.identifier.as_str() == name)
        };
        for (name, value) in step.spec.as_object().into_iter().flatten() {
            if !held(name) {
                self.field(depth + 1, name, value);
            }
        }
        if step.iteration.is_some() {
            self.view.turns.pop();
        }
        self.strategies(depth + 1, &step.failure_strategies);
    }

    /// A field of a step's spec: named values, as of variables, on a line each; lists of nothing are left out.
    fn field(&mut self, depth: usize, name: &str, value: &Value) {
        let named = |item: &Value| item["name"].is_string() && !item["value"].is_null();
        match value.as_array() {
            Some(items) if items.is_empty() => {}
            Some(items) if items.iter().all(named) => {
                self.line(depth, name);
                for item in items {
                    let own = item["name"].as_str().unwrap_or_default();
                    let value = self.shown(&item["value"]);
                    self.line(depth + 1, &format!("{own} = {value}"));
                }
            }
            _ => {
                let value = self.shown(value);
                self.line(depth, &format!("{name} = {value}"));
            }
        }
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

/// A notification rule: whom it tells, and of what. Addresses may be secrets and are not shown.
fn notification(rule: &NotificationPlan) -> String {
    let method = rule.method.as_ref().and_then(|of| of["type"].as_str());
    let method = method.unwrap_or("a template");
    let of = |names: &[String]| match names.is_empty() {
        true => String::new(),
        false => format!(" of {}", names.join(" and ")),
    };
    let events = rule.events.iter().map(|event| {
        let (stages, steps) = (of(&event.stages), of(&event.steps));
        format!("{}{stages}{steps}", event.kind)
    });
    let events: Vec<_> = events.collect();
    let off = if rule.enabled { "" } else { " (disabled)" };
    let own = match &rule.message {
        Some(message) => format!(", with a message of its own ({})", message.kind),
        None => String::new(),
    };
    let own = match &rule.fault {
        Some(fault) => format!(", with the standard message: {fault}"),
        None => own,
    };
    format!(
        "notification \"{}\": {method} on {}{own}{off}",
        rule.name,
        events.join(", ")
    )
}

fn later_turns(each: &RunLoop) -> String {
    format!("for each turn, known when it begins, of {}", each.strategy)
}

fn side_by_side(limit: u32) -> String {
    match limit {
        0 => "side by side".to_owned(),
        1 => "one after the other".to_owned(),
        limit => format!("side by side, at most {limit} at once"),
    }
}

/// Where the content of a store comes from, at which commit, and how much it is.
fn source(store: &Value, commit: Option<&str>, files: &[(String, String)]) -> String {
    let kind = store["type"].as_str().unwrap_or("?");
    let at = commit.map_or_else(String::new, |commit| format!(" at {commit}"));
    let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
    match files {
        // Secret files stay references.
        [] => format!("from {kind}{at}, read by the step"),
        [_] => format!("from {kind}{at}, {bytes} bytes"),
        files => format!("from {kind}{at}, {} files, {bytes} bytes", files.len()),
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

/// The object of a bucket that an artifact source names.
fn object(spec: &Value) -> Option<String> {
    let (bucket, path) = (spec["bucketName"].as_str()?, spec["filePath"].as_str()?);
    Some(format!("s3://{bucket}/{path}"))
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
