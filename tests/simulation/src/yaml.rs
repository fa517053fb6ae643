//! Cases as the YAML that a person would write.

use std::fmt::Write;

use crate::ast::{
    Action, Freeze, Group, Http, Image, Kind, Loop, Node, Pipeline, Script, Stage, Step, Strategy,
    Turns, Wanted, When,
};

/// Stands for the address of the server that `Http` steps ask, whose port is another one each time.
pub const SERVER: &str = "http://server";

/// What deployment stages deploy, and where to: two services of which one cannot be pulled.
pub fn target() -> String {
    let text = include_str!("target.yaml");
    let (rest, service) = text.rsplit_once("---\n").unwrap_or((text, ""));
    let services =
        [Image::Good, Image::Missing].map(|image| service.replace("SERVICE", image.service()));
    format!("{rest}---\n{}---\n{}", services[0], services[1])
}

/// A freeze of production. Virtual time begins at midnight.
pub fn freeze(freeze: Freeze) -> String {
    let Freeze { from, length } = freeze;
    let (hour, minute) = (from / 60, from % 60);
    // Twelve comes before one.
    let hour = if hour == 0 { 12 } else { hour };
    format!(
        "freeze:\n  name: stop\n  identifier: stop\n  orgIdentifier: default\n  projectIdentifier: shop\n  \
         status: Enabled\n  entityConfigs:\n    - name: production\n      entities:\n        \
         - {{type: Service, filterType: All}}\n        \
         - {{type: EnvType, filterType: Equals, entityRefs: [Production]}}\n  windows:\n    \
         - {{timeZone: UTC, startTime: '2026-01-01 {hour:02}:{minute:02} AM', duration: {length}m}}\n"
    )
}

/// Identifier of the pipeline that a stage runs.
pub fn child_of(stage: &str) -> String {
    format!("child_{stage}")
}

/// The pipelines that stages run.
pub fn children(pipeline: &Pipeline) -> Vec<String> {
    let step = |id: &str, kind| {
        Node::Step(Step {
            id: id.to_owned(),
            kind,
            timeout: 100_000,
            when: When::DEFAULT,
            strategies: Vec::new(),
            turns: None,
        })
    };
    let child = |stage: &Stage| {
        let child = stage.child()?;
        let script = match child.good {
            true => Script::Good,
            false => Script::Bad,
        };
        let inner = Stage {
            id: "inner".to_owned(),
            deploys: None,
            when: When::DEFAULT,
            steps: vec![
                step("wait", Kind::Wait(child.time)),
                step("end", Kind::Script(script)),
            ],
            rollback: Vec::new(),
            strategies: Vec::new(),
            timeout: None,
            turns: None,
        };
        let whole = Pipeline {
            groups: vec![vec![inner]],
            timeout: None,
        };
        Some(self::pipeline(&whole, false).replace("sim\n", &format!("{}\n", child_of(&stage.id))))
    };
    pipeline.stages().filter_map(child).collect()
}

/// The pipeline `sim`; all its events are told to the server where that is wanted.
pub fn pipeline(pipeline: &Pipeline, notices: bool) -> String {
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
    if notices {
        out.line(1, "notificationRules:");
        let rule = format!(
            "- {{name: all, identifier: all, enabled: true, pipelineEvents: [{{type: AllEvents}}, {{type: PipelineEnd}}], \
             notificationMethod: {{type: Webhook, spec: {{webhookUrl: '{SERVER}/told'}}}}}}"
        );
        out.line(2, &rule);
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
        let kind = match (stage.deploys, stage.child()) {
            (Some(_), _) => "Deployment",
            (None, Some(_)) => "Pipeline",
            (None, None) => "Custom",
        };
        self.line(depth, &format!("name: {}", stage.id));
        self.line(depth, &format!("identifier: {}", stage.id));
        self.line(depth, &format!("type: {kind}"));
        if let Some(timeout) = stage.timeout {
            self.line(depth, &format!("timeout: {timeout}s"));
        }
        self.when(depth, "pipelineStatus", &stage.when);
        self.strategies(depth, &stage.strategies);
        self.turns(depth, stage.turns);
        if stage.child().is_some() {
            let child = child_of(&stage.id);
            self.line(
                depth,
                &format!("spec: {{org: default, project: shop, pipeline: {child}}}"),
            );
            return;
        }
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
        let spec = spec.replace("STEP", &step.id);
        self.line(depth, &format!("name: {}", step.id));
        self.line(depth, &format!("identifier: {}", step.id));
        self.line(depth, &format!("type: {kind}"));
        self.line(depth, &format!("timeout: {}s", step.timeout));
        self.when(depth, "stageStatus", &step.when);
        self.strategies(depth, &step.strategies);
        self.turns(depth, step.turns);
        self.line(depth, &format!("spec: {spec}"));
    }

    fn turns(&mut self, depth: usize, turns: Option<Turns>) {
        let Some(turns) = turns else { return };
        let items: Vec<String> = (0..turns.count).map(|n| format!("i{n}")).collect();
        let most = match turns.at_once {
            0 => String::new(),
            most => format!(", maxConcurrency: {most}"),
        };
        let items = items.join(", ");
        let text = match turns.how {
            Loop::Repeat => format!("{{repeat: {{items: [{items}]{most}}}}}"),
            Loop::Matrix => format!("{{matrix: {{item: [{items}], one: [only]{most}}}}}"),
            Loop::Parallelism => format!("{{parallelism: {}{most}}}", turns.count),
        };
        self.line(depth, &format!("strategy: {text}"));
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
        Kind::Http(Http { posts, good }) => {
            let method = if *posts { "POST" } else { "GET" };
            let code = if *good { 200 } else { 201 };
            let spec = format!(
                "{{url: '{SERVER}/ask?run=<+pipeline.executionId>&step=STEP', method: {method}, \
                 assertion: <+httpResponseCode> == {code}}}"
            );
            ("Http", spec)
        }
        // Written as a stage.
        Kind::Chained(_) => ("Pipeline", "{}".to_owned()),
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
        Action::PipelineRollback => plain("PipelineRollback"),
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
