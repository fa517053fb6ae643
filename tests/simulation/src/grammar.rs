//! From a seed to a pipeline.

use fastrand::Rng;
use slipway_model::status::ErrorType;

use crate::ast::{
    Action, Child, Group, Http, Image, Kind, Loop, Node, Pipeline, Script, Stage, Step, Strategy,
    Turns, Wanted, When,
};

/// Most steps of a pipeline, so that a case is quick to run and to read.
const MOST_STEPS: u32 = 14;

/// Longer than any run, in seconds.
const FOREVER: u64 = 10_000_000;

/// Makes up pipelines.
pub struct Grammar<'r> {
    random: &'r mut Rng,
    steps: u32,
    names: u32,
}

/// Where strategies stand.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Step,
    Group,
    Stage,
}

impl<'r> Grammar<'r> {
    /// A grammar that draws from `random`.
    pub fn new(random: &'r mut Rng) -> Self {
        Self {
            random,
            steps: 0,
            names: 0,
        }
    }

    /// A pipeline.
    pub fn pipeline(&mut self) -> Pipeline {
        let groups = (0..self.random.usize(1..4))
            .map(|_| self.stages())
            .collect();
        let mut pipeline = Pipeline {
            groups,
            timeout: self.one_in(8).then(|| self.time(120, 20_000)),
        };
        if self.one_in(6) {
            self.add_loops(&mut pipeline);
        }
        if self.one_in(5) {
            self.add_barrier(&mut pipeline);
        }
        if self.one_in(8) {
            self.add_queues(&mut pipeline);
            part_those_in_queue(&mut pipeline);
        }
        if self.one_in(6) {
            self.add_deployment(&mut pipeline);
            part_those_in_line(&mut pipeline);
        }
        if self.one_in(8) {
            self.add_requests(&mut pipeline);
        }
        if self.one_in(10) {
            self.add_child(&mut pipeline);
        }
        pipeline
    }

    fn one_in(&mut self, number: u32) -> bool {
        self.random.u32(0..number) == 0
    }

    /// A time between the two, short ones as likely as long ones.
    fn time(&mut self, from: u64, to: u64) -> u64 {
        #[expect(clippy::cast_precision_loss, reason = "they are a few hours")]
        let (low, high) = ((from as f64).ln(), (to as f64).ln());
        let time = (low + (high - low) * self.random.f64()).exp();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is between the two"
        )]
        let time = time as u64;
        time.clamp(from, to)
    }

    fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("{kind}{}", self.names)
    }

    fn stages(&mut self) -> Vec<Stage> {
        let count = if self.one_in(3) {
            self.random.usize(2..4)
        } else {
            1
        };
        (0..count).map(|_| self.stage()).collect()
    }

    fn stage(&mut self) -> Stage {
        let id = self.name("stage");
        let steps = self.nodes(0, 4);
        let rollback = match self.one_in(2) {
            true => self.nodes(2, 2),
            false => Vec::new(),
        };
        Stage {
            id,
            deploys: None,
            when: self.when(),
            steps,
            rollback,
            strategies: self.strategies(Level::Stage),
            timeout: self.one_in(8).then(|| self.time(60, 10_000)),
            turns: None,
        }
    }

    fn turns(&mut self) -> Turns {
        Turns {
            how: [Loop::Repeat, Loop::Matrix, Loop::Parallelism][self.random.usize(0..3)],
            count: self.random.usize(2..4),
            at_once: self.random.usize(0..3),
        }
    }

    fn nodes(&mut self, depth: u32, most: usize) -> Vec<Node> {
        let count = self.random.usize(1..=most);
        (0..count).map(|_| self.node(depth)).collect()
    }

    fn node(&mut self, depth: u32) -> Node {
        let room = depth < 3 && self.steps < MOST_STEPS;
        match self.random.u32(0..8) {
            0 if room => self.group(depth),
            1 if room => {
                let count = self.random.usize(2..4);
                let branch = |grammar: &mut Self| match grammar.one_in(3) {
                    true => grammar.group(depth + 1),
                    false => Node::Step(grammar.step()),
                };
                Node::Parallel((0..count).map(|_| branch(self)).collect())
            }
            _ => Node::Step(self.step()),
        }
    }

    fn group(&mut self, depth: u32) -> Node {
        let id = self.name("group");
        let nodes = self.nodes(depth + 1, 3);
        let strategies = self.strategies(Level::Group);
        let rollback = match self.one_in(3) {
            true => self.nodes(3, 2),
            false => Vec::new(),
        };
        Node::Group(Group {
            id,
            nodes,
            rollback,
            when: self.when(),
            strategies,
        })
    }

    fn step(&mut self) -> Step {
        self.steps += 1;
        let kind = match self.random.u32(0..20) {
            0..=4 => Kind::Wait(self.time(1, 7_000)),
            5..=9 => Kind::Script(Script::Good),
            10..=13 => Kind::Script(Script::Bad),
            14..=15 => Kind::Script(Script::BadUntil(self.random.u32(1..4))),
            16 => Kind::Script(Script::Vanishes),
            _ => Kind::Approval(self.random.usize(1..3)),
        };
        let timeout = match (&kind, self.one_in(6)) {
            (Kind::Wait(time), false) => time + 600,
            _ => self.time(10, 9_000),
        };
        Step {
            id: self.name("step"),
            kind,
            timeout,
            when: self.when(),
            strategies: self.strategies(Level::Step),
            turns: self.one_in(12).then(|| self.turns()),
        }
    }

    fn when(&mut self) -> When {
        if !self.one_in(4) {
            return When::DEFAULT;
        }
        let status = match self.random.u32(0..4) {
            0 => Wanted::Success,
            1 => Wanted::Failure,
            _ => Wanted::All,
        };
        let condition = self.one_in(4).then(|| self.random.bool());
        When { status, condition }
    }

    fn strategies(&mut self, level: Level) -> Vec<Strategy> {
        let none = match level {
            Level::Step => 2,
            Level::Group => 2,
            Level::Stage => 3,
        };
        if (level == Level::Stage) == self.one_in(none) {
            return Vec::new();
        }
        let mut strategies = Vec::new();
        if self.one_in(4) {
            const SOME: [ErrorType; 4] = [
                ErrorType::Timeout,
                ErrorType::ApprovalRejection,
                ErrorType::UserMarkedFailure,
                ErrorType::DelegateRestart,
            ];
            strategies.push(Strategy {
                errors: vec![SOME[self.random.usize(0..SOME.len())]],
                action: self.action(level, true, true),
            });
        }
        if strategies.is_empty() || self.one_in(2) {
            strategies.push(Strategy {
                errors: Vec::new(),
                action: self.action(level, true, true),
            });
        }
        strategies
    }

    /// An action; what a retry or a question falls back on cannot be one of its kind again.
    fn action(&mut self, level: Level, may_retry: bool, may_ask: bool) -> Action {
        match self.random.u32(0..16) {
            0 => Action::Ignore,
            1 => Action::MarkAsSuccess,
            2 => Action::MarkAsFailure,
            3 => Action::Abort,
            4..=5 if level == Level::Group => Action::StepGroupRollback,
            6..=9 if may_retry => Action::Retry {
                group: level == Level::Group && self.random.bool(),
                count: self.random.u32(1..4),
                after: self.time(1, 900),
                then: Box::new(self.action(level, false, may_ask)),
            },
            10..=11 if may_ask => Action::Ask {
                timeout: self.time(60, 4_000),
                then: Box::new(self.action(level, may_retry, false)),
            },
            12 => Action::Ignore,
            13 => Action::PipelineRollback,
            _ => Action::StageRollback,
        }
    }

    /// Lets stages that stand alone loop.
    fn add_loops(&mut self, pipeline: &mut Pipeline) {
        for group in &mut pipeline.groups {
            if let [stage] = group.as_mut_slice()
                && self.one_in(2)
            {
                stage.turns = Some(self.turns());
            }
        }
    }

    /// Lets a stage run another pipeline.
    fn add_child(&mut self, pipeline: &mut Pipeline) {
        let child = Child {
            time: self.time(1, 7_000),
            good: !self.one_in(3),
        };
        let timeout = self.one_in(3).then(|| self.time(60, 9_000));
        let stage = Stage {
            id: self.name("stage"),
            deploys: None,
            when: self.when(),
            steps: vec![Node::Step(Step {
                id: "pipeline".to_owned(),
                kind: Kind::Chained(child),
                timeout: timeout.unwrap_or(FOREVER),
                when: When::DEFAULT,
                strategies: Vec::new(),
                turns: None,
            })],
            rollback: Vec::new(),
            strategies: self.strategies(Level::Stage),
            timeout,
            turns: None,
        };
        let at = self.random.usize(0..=pipeline.groups.len());
        pipeline.groups.insert(at, vec![stage]);
    }

    /// Lets stages ask a server.
    fn add_requests(&mut self, pipeline: &mut Pipeline) {
        for stage in pipeline.groups.iter_mut().flatten() {
            let kind = Kind::Http(Http {
                posts: self.random.bool(),
                good: !self.one_in(3),
            });
            let timeout = self.time(60, 900);
            let at = self.random.usize(0..=stage.steps.len());
            stage.steps.insert(at, self.plain(kind, timeout));
        }
    }

    /// Lets stages, or branches of a stage, meet.
    fn add_barrier(&mut self, pipeline: &mut Pipeline) {
        let Some(group) = pipeline.groups.iter_mut().find(|group| group.len() > 1) else {
            return;
        };
        for stage in group {
            let timeout = self.time(600, 9_000);
            let at = self.random.usize(0..=stage.steps.len());
            stage
                .steps
                .insert(at, self.plain(Kind::Barrier("gate".to_owned()), timeout));
        }
    }

    /// Lets stages take turns.
    fn add_queues(&mut self, pipeline: &mut Pipeline) {
        for stage in pipeline.groups.iter_mut().flatten() {
            if !self.one_in(2) {
                continue;
            }
            let kind = Kind::Queue {
                key: "line".to_owned(),
                run: self.one_in(3),
            };
            let timeout = self.time(600, 9_000);
            let at = self.random.usize(0..=stage.steps.len());
            stage.steps.insert(at, self.plain(kind, timeout));
        }
    }

    /// Lets a stage deploy, or several that take turns.
    fn add_deployment(&mut self, pipeline: &mut Pipeline) {
        for stage in pipeline.groups.iter_mut().flatten() {
            if !self.one_in(2) {
                continue;
            }
            let image = if self.one_in(3) {
                Image::Missing
            } else {
                Image::Good
            };
            stage.deploys = Some(image);
            let any_error = |action| Strategy {
                errors: Vec::new(),
                action,
            };
            stage.strategies = vec![any_error(match self.random.u32(0..8) {
                0..=1 => Action::MarkAsFailure,
                2 => Action::PipelineRollback,
                _ => Action::StageRollback,
            })];
            let at = self.random.usize(0..=stage.steps.len());
            stage.steps.insert(at, self.deployment(Kind::Deploy));
            stage.rollback.insert(0, self.deployment(Kind::Undo));
        }
    }

    fn deployment(&mut self, kind: Kind) -> Node {
        Node::Step(Step {
            id: self.name("step"),
            kind,
            timeout: 3_000,
            when: When::DEFAULT,
            strategies: Vec::new(),
            turns: None,
        })
    }

    fn plain(&mut self, kind: Kind, timeout: u64) -> Node {
        Node::Step(Step {
            id: self.name("step"),
            kind,
            timeout,
            when: When::DEFAULT,
            strategies: self.strategies(Level::Step),
            turns: None,
        })
    }
}

/// Leaves stages out of a barrier that come to it behind a key which another one at it has to itself: the plan refuses them.
fn part_those_in_queue(pipeline: &mut Pipeline) {
    let place = |nodes: &[Node], is: fn(&Kind) -> bool| {
        nodes
            .iter()
            .position(|node| matches!(node, Node::Step(step) if is(&step.kind)))
    };
    for group in &mut pipeline.groups {
        let mut known = false;
        for stage in group {
            let queue = place(&stage.steps, |kind| {
                matches!(kind, Kind::Queue { run: false, .. })
            });
            let barrier = place(&stage.steps, |kind| matches!(kind, Kind::Barrier(_)));
            let (Some(queue), Some(barrier)) = (queue, barrier) else {
                continue;
            };
            if queue < barrier && (known || stage.turns.is_some()) {
                stage.steps.remove(barrier);
            }
            known |= queue < barrier;
        }
    }
}

/// Leaves stages out of a barrier that deploy to where another one at it does: the plan refuses them, as one of the two
/// begins when the other has ended.
fn part_those_in_line(pipeline: &mut Pipeline) {
    for group in &mut pipeline.groups {
        let mut known = Vec::new();
        for stage in group {
            let Some(image) = stage.deploys else { continue };
            if known.contains(&image) {
                stage.steps.retain(|node| {
                    !matches!(node, Node::Step(step) if matches!(step.kind, Kind::Barrier(_)))
                });
            }
            known.push(image);
        }
    }
}
