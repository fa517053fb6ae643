//! Cases as the YAML that a person would write.

use std::fmt::Write;

use crate::ast::{
    Action, Group, Image, Kind, Node, Pipeline, Script, Stage, Step, Strategy, Wanted, When,
};

/// What deployment stages deploy, and where to: two services of which one cannot be pulled.
pub fn target() -> String {
    let text = include_str!("target.yaml");
    let (rest, service) = text.rsplit_once("---\n").unwrap_or((text, ""));
    let services =
        [Image::Good, Image::Missing].map(|image| service.replace("SERVICE", image.service()));
    format!("{rest}---\n{}---\n{}", services[0], services[1])
}

/// The pipeline `sim`.
pub fn pipeline(pipeline: &Pipeline) -> String {
    let mut out = Lines::default();
    out.line(0, "pipeline:");
    for line in [
        "name: sim",
        "identifier: sim",
        "orgIdentifier: default",
        "projectIdentifier: shop",
    ] {
        out.line(1, line);
    }
    if let Some(timeout) = pipeline.timeout {
        out.line(1, &format!("timeout: {timeout}s"));
    }
    let barriers = pipeline.barriers();
    if !barriers.is_empty() {
        out.line(1, "flowControl:");
        out.line(2, "barriers:");
        for name in barriers {
            out.line(3, &format!("- {{identifier: {name}, name: {name}}}"));
        }
    }
    out.line(1, "stages:");
    for group in &pipeline.groups {
        match group.as_slice() {
            [one] => out.stage(2, one),
            several => {
                out.line(2, "- parallel:");
                for stage in several {
                    out.stage(4, stage);
                }
            }
        }
    }
    out.0
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{}{text}", "  ".repeat(depth));
    }

    fn stage(&mut self, depth: usize, stage: &Stage) {
        self.line(depth, "- stage:");
        let depth = depth + 2;
        let kind = match stage.deploys {
            Some(_) => "Deployment",
            None => "Custom",
        };
        self.line(depth, &format!("name: {}", stage.id));
        self.line(depth, &format!("identifier: {}", stage.id));
        self.line(depth, &format!("type: {kind}"));
        if let Some(timeout) = stage.timeout {
            self.line(depth, &format!("timeout: {timeout}s"));
        }
        self.when(depth, "pipelineStatus", &stage.when);
        self.strategies(depth, &stage.strategies);
        self.line(depth, "spec:");
        if let Some(image) = stage.deploys {
            self.target(depth + 1, image);
        }
        self.line(depth + 1, "execution:");
        self.line(depth + 2, "steps:");
        self.nodes(depth + 3, &stage.steps);
        if !stage.rollback.is_empty() {
            self.line(depth + 2, "rollbackSteps:");
            self.nodes(depth + 3, &stage.rollback);
        }
    }

    fn target(&mut self, depth: usize, image: Image) {
        let service = image.service();
        self.line(depth, "deploymentType: ECS");
        self.line(depth, &format!("service: {{serviceRef: {service}}}"));
        self.line(depth, "environment:");
        self.line(depth + 1, "environmentRef: prod");
        self.line(depth + 1, "deployToAll: false");
        self.line(
            depth + 1,
            "infrastructureDefinitions: [{identifier: cluster}]",
        );
    }

    fn nodes(&mut self, depth: usize, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Step(step) => self.step(depth, step),
                Node::Group(group) => self.group(depth, group),
                Node::Parallel(branches) => {
                    self.line(depth, "- parallel:");
                    self.nodes(depth + 2, branches);
                }
            }
        }
    }

    fn group(&mut self, depth: usize, group: &Group) {
        self.line(depth, "- stepGroup:");
        let depth = depth + 2;
        self.line(depth, &format!("name: {}", group.id));
        self.line(depth, &format!("identifier: {}", group.id));
        self.when(depth, "stageStatus", &group.when);
        self.strategies(depth, &group.strategies);
        self.line(depth, "steps:");
        self.nodes(depth + 1, &group.nodes);
        if !group.rollback.is_empty() {
            self.line(depth, "rollbackSteps:");
            self.nodes(depth + 1, &group.rollback);
        }
    }

    fn step(&mut self, depth: usize, step: &Step) {
        self.line(depth, "- step:");
        let depth = depth + 2;
        let (kind, spec) = spec(&step.kind);
        self.line(depth, &format!("name: {}", step.id));
        self.line(depth, &format!("identifier: {}", step.id));
        self.line(depth, &format!("type: {kind}"));
        self.line(depth, &format!("timeout: {}s", step.timeout));
        self.when(depth, "stageStatus", &step.when);
        self.strategies(depth, &step.strategies);
        if let Some(turns) = step.turns {
            let items: Vec<String> = (0..turns.count).map(|n| format!("i{n}")).collect();
            let most = match turns.at_once {
                0 => String::new(),
                most => format!(", maxConcurrency: {most}"),
            };
            let items = items.join(", ");
            let text = format!("strategy: {{repeat: {{items: [{items}]{most}}}}}");
            self.line(depth, &text);
        }
        self.line(depth, &format!("spec: {spec}"));
    }

    fn when(&mut self, depth: usize, field: &str, when: &When) {
        if *when == When::DEFAULT {
            return;
        }
        let status = match when.status {
            Wanted::Success => "Success",
            Wanted::Failure => "Failure",
            Wanted::All => "All",
        };
        self.line(depth, "when:");
        self.line(depth + 1, &format!("{field}: {status}"));
        if let Some(holds) = when.condition {
            let right = if holds { "sim" } else { "other" };
            let text = format!("condition: <+pipeline.identifier> == \"{right}\"");
            self.line(depth + 1, &text);
        }
    }

    fn strategies(&mut self, depth: usize, strategies: &[Strategy]) {
        if strategies.is_empty() {
            return;
        }
        self.line(depth, "failureStrategies:");
        for strategy in strategies {
            let errors: Vec<String> = strategy.errors.iter().map(|e| format!("{e:?}")).collect();
            let errors = match errors.is_empty() {
                true => "AllErrors".to_owned(),
                false => errors.join(", "),
            };
            self.line(depth + 1, "- onFailure:");
            self.line(depth + 3, &format!("errors: [{errors}]"));
            self.line(
                depth + 3,
                &format!("action: {}", self::action(&strategy.action)),
            );
        }
    }
}

fn spec(kind: &Kind) -> (&'static str, String) {
    match kind {
        Kind::Wait(time) => ("Wait", format!("{{duration: {time}s}}")),
        Kind::Script(script) => {
            let script = match script {
                Script::Good => "ok".to_owned(),
                Script::Bad => "fail".to_owned(),
                Script::BadUntil(attempt) => format!("fail until {attempt}"),
                Script::Vanishes => "vanish".to_owned(),
            };
            let spec = format!(
                "{{shell: Bash, onDelegate: true, source: {{type: Inline, spec: {{script: {script}}}}}}}"
            );
            ("ShellScript", spec)
        }
        Kind::Approval(count) => {
            let spec = format!(
                "{{includePipelineExecutionHistory: true, approvers: {{minimumCount: {count}, \
                 disallowPipelineExecutor: false, userGroups: [leads]}}}}"
            );
            ("HarnessApproval", spec)
        }
        Kind::Barrier(name) => ("Barrier", format!("{{barrierRef: {name}}}")),
        Kind::Queue { key, run } => {
            let scope = if *run { "Pipeline" } else { "Stage" };
            ("Queue", format!("{{key: {key}, scope: {scope}}}"))
        }
        Kind::Deploy => ("EcsRollingDeploy", "{}".to_owned()),
        Kind::Undo => ("EcsRollingRollback", "{}".to_owned()),
    }
}

fn action(action: &Action) -> String {
    let plain = |name: &str| format!("{{type: {name}}}");
    match action {
        Action::Ignore => plain("Ignore"),
        Action::MarkAsSuccess => plain("MarkAsSuccess"),
        Action::MarkAsFailure => plain("MarkAsFailure"),
        Action::StageRollback => plain("StageRollback"),
        Action::StepGroupRollback => plain("StepGroupRollback"),
        Action::Abort => plain("Abort"),
        Action::Retry {
            group,
            count,
            after,
            then,
        } => {
            let name = if *group { "RetryStepGroup" } else { "Retry" };
            let then = self::action(then);
            format!(
                "{{type: {name}, spec: {{retryCount: {count}, retryIntervals: [{after}s], \
                 onRetryFailure: {{action: {then}}}}}}}"
            )
        }
        Action::Ask { timeout, then } => {
            let then = self::action(then);
            format!(
                "{{type: ManualIntervention, spec: {{timeout: {timeout}s, onTimeout: {{action: {then}}}}}}}"
            )
        }
    }
}
