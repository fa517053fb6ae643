//! Traces of what lanes do, and a proof by random plans that they end.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use proptest::prelude::{Just, Strategy, any, prop, proptest};
use serde_json::Value;
use slipway_model::id::NodeId;
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::{Node, StagePlan, StepPlan, WhenStatus};

use super::{
    Attempt, Facts, LanePlan, Move, NodeFact, Opening, StopReason, Stopped, judge, next, node_id,
    retry_conditions,
};
use crate::fixture::{With, group, on, parallel, retry, stage, step};
use crate::name::Lane;
use crate::stage::{AfterSteps, after_steps};
use crate::strategy::{self, Answer, Verdict};

/// How a step of a test behaves: fails so many times with an error, then succeeds; or hangs.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Fails(ErrorType, u32),
    Hangs,
}

/// Carries out the moves of a stage's lanes on facts in memory, in the way of the lane functions.
pub(super) struct World<'p> {
    stage: &'p StagePlan,
    pub(super) facts: Facts,
    pub(super) now_ms: i64,
    outcomes: BTreeMap<&'static str, Outcome>,
    conditions: BTreeMap<&'static str, bool>,
    abort_at: Option<&'static str>,
    /// What is said, one word for each question.
    pub(super) answers: VecDeque<&'static str>,
    trace: Vec<String>,
}

impl<'p> World<'p> {
    pub(super) fn new(stage: &'p StagePlan) -> Self {
        Self {
            stage,
            facts: Facts::default(),
            now_ms: 0,
            outcomes: BTreeMap::new(),
            conditions: BTreeMap::new(),
            abort_at: None,
            answers: VecDeque::new(),
            trace: Vec::new(),
        }
    }

    pub(super) fn fails(mut self, step: &'static str, error: ErrorType, times: u32) -> Self {
        self.outcomes.insert(step, Outcome::Fails(error, times));
        self
    }

    /// A person stops an attempt of a step.
    pub(super) fn stopped(&mut self, step: &str, attempt: u32, reason: StopReason, at_ms: i64) {
        let said = Stopped { reason, at_ms };
        self.facts
            .stopped
            .insert((NodeId::new(step), attempt), said);
    }

    pub(super) fn hangs(mut self, step: &'static str) -> Self {
        self.outcomes.insert(step, Outcome::Hangs);
        self
    }

    pub(super) fn walk(&mut self, lane: &Lane) -> Status {
        let plan = LanePlan::of(self.stage, lane).expect("a lane of the stage");
        for _ in 0..2_000 {
            match next(&plan, &self.facts, self.now_ms) {
                Move::Done { status } => return status,
                other => self.carry_out(&plan, other),
            }
        }
        panic!("the lane {lane:?} does not end: {:#?}", self.trace);
    }

    fn carry_out(&mut self, plan: &LanePlan<'p>, next: Move<'p>) {
        match next {
            Move::Evaluate { node, attempt, .. } => {
                let verdict = self.conditions[node_id(node).as_str()];
                let key = (node_id(node).clone(), attempt.number);
                self.facts.conditions.insert(key, verdict);
            }
            Move::Skip {
                node,
                attempt,
                reason,
                ..
            } => {
                self.note(format!("skip {}: {reason}", node_id(node)));
                self.begin(node_id(node), attempt);
                self.record(node_id(node), Status::Skipped, None);
            }
            Move::Settle { node, status } => {
                self.note(format!("settle {node} {status:?}"));
                let failure = self.facts.nodes[node].failure.clone();
                self.record(node, status, failure);
            }
            Move::Hold { until_ms } => self.hold(until_ms),
            Move::Start { node, attempt } => self.start(node, attempt),
            Move::Continue { step, attempt } => self.go_on(plan, step, attempt),
            Move::Stop {
                step,
                attempt,
                reason,
            } => {
                self.note(format!("stop {} ({reason:?})", step.id));
                match reason {
                    StopReason::Abort => self.record(&step.id, Status::Aborted, None),
                    StopReason::StepTimeout
                    | StopReason::GroupTimeout
                    | StopReason::StageTimeout
                    | StopReason::MadeToExpire => {
                        self.fail(plan, step, attempt, ErrorType::Timeout, Status::Expired);
                    }
                    StopReason::MarkedAsFailed | StopReason::MarkedForRollback => {
                        let error = ErrorType::UserMarkedFailure;
                        self.fail(plan, step, attempt, error, Status::Failed);
                    }
                }
            }
            Move::Close { node, status, .. } => {
                self.note(format!("close {} {status:?}", node_id(node)));
                self.record(node_id(node), status, None);
            }
            Move::Fork { parallel } => {
                for branch in 0..parallel.branches.len() {
                    self.walk(&Lane::branch(&self.stage.id, &parallel.id, branch));
                }
                let attempt = self.facts.nodes[&parallel.id].attempt;
                self.facts.joined.insert((parallel.id.clone(), attempt));
            }
            Move::Wait { until_ms } => {
                assert!(until_ms > self.now_ms, "a wait for the past");
                self.now_ms = until_ms;
            }
            Move::Unroll { .. } => {
                unreachable!("whole runs show it: functions/lane-common/tests/loops.rs")
            }
            Move::Done { .. } => unreachable!("handled by the caller"),
        }
    }

    fn start(&mut self, node: Opening<'p>, attempt: Attempt) {
        let (id, what) = match node {
            Opening::Step(step) => (&step.id, "start"),
            Opening::Group(group) => (&group.id, "open"),
            Opening::Parallel(parallel) => (&parallel.id, "open"),
        };
        let before = self.facts.nodes.get(id).map(|fact| fact.attempt);
        assert!(
            before.is_none_or(|before| before < attempt.number),
            "{id} is started once per attempt"
        );
        self.note(format!("{what} {id} #{}", attempt.number));
        if self.abort_at == Some(id.as_str()) {
            self.facts.aborted = true;
        }
        self.begin(id, attempt);
    }

    fn begin(&mut self, id: &NodeId, attempt: Attempt) {
        let fact = NodeFact {
            attempt: attempt.number,
            status: Status::Running,
            started_ms: self.now_ms,
            ended_ms: None,
            failure: None,
            asked_ms: None,
            round: attempt.round,
            base: attempt.base,
            refused: Vec::new(),
            undecided: false,
        };
        self.facts.nodes.insert(id.clone(), fact);
    }

    /// A person says what the test gave them to say, a minute later; or time passes.
    fn hold(&mut self, until_ms: i64) {
        let asks = |fact: &NodeFact| fact.status == Status::InterventionWaiting;
        let nodes = &self.facts.nodes;
        let open = nodes.iter().find(|(_, fact)| asks(fact));
        let open = open.map(|(id, fact)| (id.clone(), fact.attempt));
        match (open, self.answers.pop_front()) {
            (Some(key), Some(action)) if self.now_ms + 60_000 < until_ms => {
                self.now_ms += 60_000;
                self.note(format!("{action} is said of {}", key.0));
                let action = strategy::answer(action).expect("an answer");
                let at_ms = self.now_ms;
                self.facts.answers.insert(key, Answer { action, at_ms });
            }
            _ if self.facts.paused => self.facts.paused = false,
            _ => {
                assert!(until_ms > self.now_ms, "a wait for the past");
                self.now_ms = until_ms;
            }
        }
    }

    fn go_on(&mut self, plan: &LanePlan<'p>, step: &'p StepPlan, attempt: u32) {
        let id = &step.id;
        self.now_ms += 1_000;
        match self.outcomes.get(id.as_str()).copied() {
            Some(Outcome::Hangs) => self.now_ms += 60_000,
            Some(Outcome::Fails(error, times)) if attempt < times => {
                self.fail(plan, step, attempt, error, Status::Failed);
            }
            Some(Outcome::Fails(..)) | None => self.record(id, Status::Success, None),
        }
    }

    fn fail(
        &mut self,
        plan: &LanePlan<'p>,
        step: &'p StepPlan,
        attempt: u32,
        error: ErrorType,
        failed: Status,
    ) {
        let failure = Failure {
            error,
            message: "as the test asked".to_owned(),
            left_behind: None,
        };
        let refused = self.refuse(plan, step, error);
        let now_ms = self.now_ms;
        let verdict = judge(
            plan,
            &self.facts,
            step.into(),
            &failure,
            &refused,
            failed,
            now_ms,
        );
        let status = match verdict {
            Verdict::Again(_) | Verdict::GroupAgain { .. } | Verdict::Proceed => failed,
            Verdict::Ask { .. } => Status::InterventionWaiting,
            Verdict::Over { status, .. } => status,
        };
        self.note(format!("{} #{attempt} {status:?}", step.id));
        self.record(&step.id, status, Some(failure));
    }

    /// The conditions of its retries that do not hold: those that the test says so of.
    fn refuse(&mut self, plan: &LanePlan<'p>, step: &'p StepPlan, error: ErrorType) -> Vec<String> {
        let mut refused = retry_conditions(plan, &self.facts, step.into(), error);
        refused.retain(|condition| condition == "false");
        let fact = self.facts.nodes.get_mut(&step.id).expect("it has begun");
        fact.refused.clone_from(&refused);
        refused
    }

    fn record(&mut self, id: &NodeId, status: Status, failure: Option<Failure>) {
        let now = Some(self.now_ms);
        let asks = status == Status::InterventionWaiting;
        let fact = self.facts.nodes.get_mut(id).expect("it has begun");
        fact.status = status;
        fact.failure = failure;
        fact.ended_ms = now.filter(|_| !asks);
        fact.asked_ms = fact.asked_ms.or(now.filter(|_| asks));
    }

    fn note(&mut self, line: String) {
        self.trace
            .push(format!("{:>6} {line}", self.now_ms / 1_000));
    }

    /// Walks the stage's steps and tells the story: moves, the lane's status, what follows.
    pub(super) fn story(mut self) -> String {
        let status = self.walk(&Lane::steps(&self.stage.id));
        self.note(format!("lane {status:?}"));
        let after = match after_steps(self.stage, &self.facts, self.now_ms) {
            AfterSteps::RollBack => "roll back".to_owned(),
            AfterSteps::End(ending) => format!("end {:?}", ending.status),
            AfterSteps::EndAndUndoRun(ending) => format!("end {:?}, undo the run", ending.status),
        };
        self.note(after);
        self.trace.join("\n")
    }
}

pub(super) fn with_rollback(mut stage: StagePlan) -> StagePlan {
    stage.rollback_steps = vec![step("undo")];
    stage
}

pub(super) fn without_strategy(mut stage: StagePlan) -> StagePlan {
    stage.failure_strategies.clear();
    stage
}

#[test]
fn nodes_run_in_order_and_groups_open_and_close() {
    let stage = stage(
        "deploy",
        vec![step("a"), group("g", vec![step("b"), step("c")]), step("d")],
    );
    insta::assert_snapshot!(World::new(&stage).story(), @r"
         0 start a #0
         1 open g #0
         1 start b #0
         2 start c #0
         3 close g Success
         3 start d #0
         4 lane Success
         4 end Success
    ");
}

#[test]
fn a_failure_halts_the_stage_and_rolls_it_back() {
    let stage = with_rollback(stage(
        "deploy",
        vec![group("g", vec![step("a")]), step("b")],
    ));
    let world = World::new(&stage).fails("a", ErrorType::Unknown, 9);
    insta::assert_snapshot!(world.story(), @r"
         0 open g #0
         0 start a #0
         1 a #0 Failed
         1 close g Failed
         1 lane Failed
         1 roll back
    ");
}

#[test]
fn without_a_strategy_the_rest_runs_by_its_conditions() {
    let steps = vec![
        step("a"),
        step("b"),
        step("c").when(WhenStatus::Failure, None),
        step("d").when(WhenStatus::All, Some("<+no>")),
    ];
    let stage = without_strategy(stage("deploy", steps));
    let mut world = World::new(&stage).fails("a", ErrorType::Unknown, 9);
    world.conditions.insert("d", false);
    insta::assert_snapshot!(world.story(), @r"
         0 start a #0
         1 a #0 Failed
         1 skip b: something failed before, and its stageStatus is Success
         1 start c #0
         2 skip d: its condition is false: <+no>
         2 lane Failed
         2 end Failed
    ");
}

#[test]
fn the_nearest_level_with_a_match_decides() {
    let table = [
        (vec![], vec![], "Failed", "roll back"),
        (
            vec![on("AllErrors", "Ignore", Value::Null)],
            vec![],
            "IgnoreFailed",
            "end IgnoreFailed",
        ),
        (
            vec![on("Timeout", "Ignore", Value::Null)],
            vec![],
            "Failed",
            "roll back",
        ),
        (
            vec![],
            vec![on("AllErrors", "MarkAsSuccess", Value::Null)],
            "Success",
            "end Success",
        ),
        (
            vec![on("AllErrors", "MarkAsFailure", Value::Null)],
            vec![on("AllErrors", "MarkAsSuccess", Value::Null)],
            "Failed",
            "end Failed",
        ),
        (
            vec![
                on("AllErrors", "Ignore", Value::Null),
                on("Connectivity,Verification", "MarkAsSuccess", Value::Null),
            ],
            vec![],
            "Success",
            "end Success",
        ),
        (
            vec![on("Connectivity", "Abort", Value::Null)],
            vec![],
            "Aborted",
            "end Aborted",
        ),
    ];
    for (own, of_group, recorded, after) in table {
        let mut failing = step("a");
        for strategy in own.clone() {
            failing = failing.strategy(strategy);
        }
        let mut around = group("g", vec![failing]);
        for strategy in of_group.clone() {
            around = around.strategy(strategy);
        }
        let stage = with_rollback(stage("deploy", vec![around]));
        let story = World::new(&stage)
            .fails("a", ErrorType::Connectivity, 9)
            .story();
        assert!(
            story.contains(&format!("a #0 {recorded}")),
            "{own:?} {of_group:?}: {story}"
        );
        assert!(story.ends_with(after), "{own:?} {of_group:?}: {story}");
    }
}

#[test]
fn a_step_is_retried_after_its_intervals() {
    let steps = vec![step("a").strategy(retry(2, "10s", "Ignore")), step("b")];
    let stage = stage("deploy", steps);
    insta::assert_snapshot!(World::new(&stage).fails("a", ErrorType::Unknown, 2).story(), @r"
         0 start a #0
         1 a #0 Failed
        11 start a #1
        12 a #1 Failed
        22 start a #2
        23 start b #0
        24 lane Success
        24 end Success
    ");
    insta::assert_snapshot!(World::new(&stage).fails("a", ErrorType::Unknown, 9).story(), @r"
         0 start a #0
         1 a #0 Failed
        11 start a #1
        12 a #1 Failed
        22 start a #2
        23 a #2 IgnoreFailed
        23 start b #0
        24 lane IgnoreFailed
        24 end IgnoreFailed
    ");
}

#[test]
fn branches_of_a_parallel_block_all_end_before_the_failure_counts() {
    let branches = vec![step("a"), group("g", vec![step("b"), step("c")])];
    let stage = with_rollback(stage("deploy", vec![parallel("p", branches), step("d")]));
    insta::assert_snapshot!(World::new(&stage).fails("a", ErrorType::Unknown, 9).story(), @r"
         0 open p #0
         0 start a #0
         1 a #0 Failed
         1 skip g: something failed before, and its stageStatus is Success
         1 close p Failed
         1 lane Failed
         1 roll back
    ");
}

#[test]
fn a_step_that_hangs_expires_and_the_stage_rolls_back() {
    let stage = with_rollback(stage("deploy", vec![step("a"), step("b")]));
    insta::assert_snapshot!(World::new(&stage).hangs("a").story(), @r"
         0 start a #0
       610 stop a (StepTimeout)
       610 a #0 Expired
       610 lane Expired
       610 roll back
    ");
}

#[test]
fn the_limit_of_the_stage_stops_its_step() {
    let stage = with_rollback(stage("deploy", vec![step("a"), step("b")]));
    let mut world = World::new(&stage).hangs("a");
    world.facts.deadline_ms = Some(100_000);
    insta::assert_snapshot!(world.story(), @r"
         0 start a #0
       122 stop a (StageTimeout)
       122 a #0 Expired
       122 lane Expired
       122 roll back
    ");
}

#[test]
fn the_limit_of_a_step_group_stops_its_steps() {
    let mut work = group("g", vec![step("a"), step("b")]);
    let mut around = group("h", Vec::new());
    if let (Node::Group(work), Node::Group(around)) = (&mut work, &mut around) {
        work.timeout = Some(Duration::from_secs(500));
        work.rollback_steps = vec![step("undo")];
        work.failure_strategies = vec![on("Timeout", "StepGroupRollback", Value::Null)];
        around.timeout = Some(Duration::from_secs(4_000));
    }
    if let Node::Group(around) = &mut around {
        around.nodes = vec![work];
    }
    let stage = stage("deploy", vec![around, step("c")]);
    insta::assert_snapshot!(World::new(&stage).hangs("b").hangs("undo").story(), @"
       0 open h #0
       0 open g #0
       0 start a #0
       1 start b #0
     550 stop b (GroupTimeout)
     550 b #0 Expired
     550 start undo #0
    1160 stop undo (StepTimeout)
    1160 undo #0 Expired
    1160 close g Expired
    1160 close h Expired
    1160 lane Expired
    1160 end Expired
    ");
}

#[test]
fn an_abort_stops_the_step_and_rolls_nothing_back() {
    let branches = vec![step("b"), step("c")];
    let steps = vec![step("a"), parallel("p", branches), step("d")];
    let stage = with_rollback(stage("deploy", steps));
    let mut world = World::new(&stage);
    world.abort_at = Some("b");
    insta::assert_snapshot!(world.story(), @r"
         0 start a #0
         1 open p #0
         1 start b #0
         1 stop b (Abort)
         1 close p Aborted
         1 lane Aborted
         1 end Aborted
    ");
}

#[test]
fn a_branch_that_was_lost_is_an_error_and_not_a_loop() {
    let stage = with_rollback(stage(
        "deploy",
        vec![parallel("p", vec![step("a")]), step("b")],
    ));
    let mut world = World::new(&stage);
    let plan = LanePlan::of(&stage, &Lane::steps(&stage.id)).expect("the steps");
    world.start(
        Opening::Parallel(match &stage.steps[0] {
            Node::Parallel(parallel) => parallel,
            _ => unreachable!(),
        }),
        Attempt::default(),
    );
    assert!(matches!(next(&plan, &world.facts, 0), Move::Fork { .. }));
    world.facts.joined.insert((NodeId::new("p"), 0));
    insta::assert_snapshot!(world.story(), @r"
         0 open p #0
         0 close p Errored
         0 lane Errored
         0 end Errored
    ");
}

pub(super) fn any_node() -> impl Strategy<Value = Node> {
    let leaf = (0..6u8, any::<bool>(), 0..3u8).prop_map(|(strategy, when, status)| {
        let mut node = step("?");
        let action = [
            "Ignore",
            "MarkAsSuccess",
            "MarkAsFailure",
            "StageRollback",
            "Abort",
        ];
        node = match action.get(usize::from(strategy)) {
            Some(action) => node.strategy(on("Unknown", action, Value::Null)),
            None => node.strategy(retry(2, "10s", "StageRollback")),
        };
        if when {
            let all = [WhenStatus::All, WhenStatus::Failure, WhenStatus::Success];
            node = node.when(all[usize::from(status)], None);
        }
        node
    });
    leaf.prop_recursive(4, 24, 4, |inner| {
        let nodes = prop::collection::vec(inner, 0..4);
        (nodes, any::<bool>()).prop_map(|(nodes, fork)| match fork {
            true => parallel("?", nodes),
            false => group("?", nodes),
        })
    })
}

/// Gives every node a name of its own.
pub(super) fn number(nodes: &mut [Node], count: &mut usize, ids: &mut Vec<&'static str>) {
    for node in nodes {
        let id: &'static str = format!("n{count}").leak();
        *count += 1;
        ids.push(id);
        match node {
            Node::Step(step) => step.id = NodeId::new(id),
            Node::Group(group) => {
                group.id = NodeId::new(id);
                number(&mut group.nodes, count, ids);
            }
            Node::Parallel(parallel) => {
                parallel.id = NodeId::new(id);
                number(&mut parallel.branches, count, ids);
            }
        }
    }
}

proptest! {
    #[test]
    fn every_lane_ends_and_stays_ended(
        mut nodes in prop::collection::vec(any_node(), 0..5),
        behaviour in prop::collection::vec(0..5u8, 64),
        abort in proptest::option::of(0..64usize),
        deadline in proptest::option::of(0..200i64),
        seconds in Just(20u64),
    ) {
        let mut ids = Vec::new();
        number(&mut nodes, &mut 0, &mut ids);
        let mut stage = with_rollback(stage("deploy", nodes));
        stage.timeout = Duration::from_secs(seconds);
        let mut world = World::new(&stage);
        for (id, kind) in ids.iter().zip(&behaviour) {
            world = match kind {
                0 => world.hangs(id),
                1 => world.fails(id, ErrorType::Unknown, 1),
                2 => world.fails(id, ErrorType::Timeout, 9),
                _ => world,
            };
        }
        world.abort_at = abort.and_then(|index| ids.get(index).copied());
        world.facts.deadline_ms = deadline.map(|seconds| seconds * 1_000);
        let lane = Lane::steps(&stage.id);
        let first = world.walk(&lane);
        let written = world.trace.len();
        assert_eq!(world.walk(&lane), first, "asked again, the lane answers the same");
        assert_eq!(world.trace.len(), written, "an ended lane does nothing more");
        let _ = after_steps(&stage, &world.facts, world.now_ms);
    }
}
