//! Lists of steps, groups and parallel blocks.

use std::cell::RefCell;

use slipway_model::status::Status;

use super::run::{Run, worst};
use super::state::NodeState;
use super::verdict::Level;
use crate::ast::{Group, Node, Stage, Step, Strategy, Turns, Wanted, When};

/// How a list came out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Flow {
    /// What follows may run.
    Through,
    /// What follows does not run.
    Halt(Halt),
}

/// Why what follows does not run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Halt {
    /// The stage or run is out of time.
    Deadline,
    /// A failure; whether the stage is rolled back.
    Failure { stage: bool },
    /// A failure that rolls the whole run back.
    Run,
    /// A failure that a group answers: the one with so many groups around it.
    Group { depth: usize, then: GroupThen },
    /// The run is aborted, or the stage.
    Abort,
}

/// What becomes of the group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum GroupThen {
    /// It begins again then.
    Again { at_ms: u64 },
    /// Its rollback steps run.
    RollBack,
}

impl Halt {
    /// Of two branches side by side, the one that counts.
    fn or(self, other: Self) -> Self {
        let rank = |halt: Self| match halt {
            Self::Deadline => (0, 0),
            Self::Failure { stage: false } => (1, 0),
            Self::Group { depth, .. } => (2, usize::MAX - depth),
            Self::Failure { stage: true } => (3, 0),
            Self::Run => (4, 0),
            Self::Abort => (5, 0),
        };
        if rank(other) > rank(self) {
            other
        } else {
            self
        }
    }
}

/// What `stageStatus` looks at: the steps of a stage, or the rollback steps of a stage or group.
pub(super) struct Section<'c> {
    pub(super) stage: &'c Stage,
    pub(super) deadline: Option<u64>,
    failures: RefCell<Vec<Failure>>,
}

/// A failure for good.
struct Failure {
    /// The groups around it.
    groups: Vec<String>,
    /// The loop that it is a turn of.
    turn_of: Option<String>,
}

impl<'c> Section<'c> {
    pub(super) fn new(stage: &'c Stage, deadline: Option<u64>) -> Self {
        Self {
            stage,
            deadline,
            failures: RefCell::default(),
        }
    }

    pub(super) fn fails(&self, place: &Place<'_>, turn_of: Option<String>) {
        let groups = place.groups.iter().map(|group| group.id.clone());
        self.failures.borrow_mut().push(Failure {
            groups: groups.collect(),
            turn_of,
        });
    }

    fn forgets(&self, group: &str) {
        let within = |failure: &Failure| failure.groups.iter().any(|one| one == group);
        self.failures.borrow_mut().retain(|known| !within(known));
    }

    /// Whether something failed, as a turn of this loop sees it: other turns do not count.
    fn has_failed(&self, turn_of: Option<&str>) -> bool {
        let failures = self.failures.borrow();
        let counts = |failure: &Failure| turn_of.is_none() || failure.turn_of.as_deref() != turn_of;
        failures.iter().any(counts)
    }
}

/// A group on the way to a node.
#[derive(Clone)]
pub(super) struct Around<'c> {
    id: String,
    strategies: &'c [Strategy],
    retried: u32,
}

/// Where a list is.
#[derive(Clone)]
pub(super) struct Place<'c> {
    list: String,
    /// From the outside in.
    groups: Vec<Around<'c>>,
}

impl<'c> Place<'c> {
    pub(super) fn top(list: &str) -> Self {
        Self {
            list: list.to_owned(),
            groups: Vec::new(),
        }
    }

    /// The loop that a step here is the turns of, where it loops.
    pub(super) fn loop_of(&self, step: &Step) -> Option<String> {
        let looped = step.turns.as_ref();
        looped.map(|_| format!("{}.{}", self.list, step.id))
    }

    pub(super) fn depth(&self) -> usize {
        self.groups.len()
    }

    /// The levels around a step, nearest first.
    pub(super) fn levels(&self, step: Level<'c>, stage: &'c Stage) -> Vec<Level<'c>> {
        let groups = self.groups.iter().rev();
        let groups = groups.map(|group| (group.strategies, group.retried));
        let stage = (&stage.strategies[..], 0);
        std::iter::once(step).chain(groups).chain([stage]).collect()
    }

    /// The groups around whose own steps are here, or below: not those that are being rolled back.
    pub(super) fn groups_running(&self) -> impl DoubleEndedIterator<Item = &str> {
        let runs = |group: &&Around<'c>| {
            let within = self.list.strip_prefix(&group.id);
            within.is_some_and(|within| !within.contains(".rollbackSteps"))
        };
        self.groups.iter().filter(runs).map(|group| &*group.id)
    }

    pub(super) fn list(&self) -> &str {
        &self.list
    }

    fn inside(&self, id: &str, part: &str, group: Around<'c>) -> Self {
        let mut groups = self.groups.clone();
        groups.push(group);
        Self {
            list: format!("{id}.{part}"),
            groups,
        }
    }
}

impl Run {
    /// Walks a list.
    pub(super) async fn walk<'c>(
        &self,
        section: &Section<'c>,
        place: &Place<'c>,
        nodes: &'c [Node],
    ) -> Flow {
        for (index, node) in nodes.iter().enumerate() {
            let flow = match node {
                Node::Parallel(branches) => {
                    let id = format!("{}[{index}]", place.list);
                    let branches: Vec<Branch<'c>> = branches.iter().map(Branch::Node).collect();
                    Box::pin(self.side_by_side(section, place, &id, &branches, 0)).await
                }
                other => Box::pin(self.node(section, place, other)).await,
            };
            if flow != Flow::Through {
                return flow;
            }
        }
        Flow::Through
    }

    async fn node<'c>(&self, section: &Section<'c>, place: &Place<'c>, node: &'c Node) -> Flow {
        match node {
            Node::Step(step) => match step.turns {
                None => {
                    let id = format!("{}.{}", place.list, step.id);
                    self.step(section, place, step, &id).await
                }
                Some(turns) => self.turns(section, place, step, turns).await,
            },
            Node::Group(group) => self.group(section, place, group).await,
            Node::Parallel(_) => panic!("a block in a block"),
        }
    }

    async fn turns<'c>(
        &self,
        section: &Section<'c>,
        place: &Place<'c>,
        step: &'c Step,
        turns: Turns,
    ) -> Flow {
        let id = format!("{}.{}", place.list, step.id);
        let each = turns.postfixes();
        let each = each.map(|postfix| Branch::Turn(step, format!("{id}{postfix}")));
        let branches: Vec<Branch<'c>> = each.collect();
        Box::pin(self.side_by_side(section, place, &id, &branches, turns.at_once)).await
    }

    async fn side_by_side<'c>(
        &self,
        section: &Section<'c>,
        place: &Place<'c>,
        id: &str,
        branches: &[Branch<'c>],
        at_once: usize,
    ) -> Flow {
        if let Some(halt) = self.may_begin(section).await {
            let unread = self.misses_abort(section, !section.has_failed(None));
            if halt != Halt::Abort || !unread {
                return Flow::Halt(halt);
            }
        }
        self.begins(id, false);
        self.model.forks().await;
        let places = tokio::sync::Semaphore::new(match at_once {
            0 => branches.len(),
            most => most,
        });
        let plays = branches.iter().map(|branch| async {
            let _turn = places.acquire().await.expect("it is open");
            match branch {
                Branch::Node(node) => Box::pin(self.node(section, place, node)).await,
                Branch::Turn(step, id) => Box::pin(self.step(section, place, step, id)).await,
            }
        });
        let flows = futures::future::join_all(plays).await;
        let halts = flows.into_iter().filter_map(|flow| match flow {
            Flow::Halt(halt) => Some(halt),
            Flow::Through => None,
        });
        let flow = halts.reduce(Halt::or).map_or(Flow::Through, Flow::Halt);
        let flow = self.cut_by_abort(section, flow).await;
        let statuses = branches
            .iter()
            .filter_map(|branch| self.branch_status(place, branch));
        let status = worst(statuses.chain(cut(flow)));
        self.closes(id, status);
        flow
    }

    /// What cuts a block or group short whose time is up: an abort comes first, where it is known when that is closed. The
    /// time of a run is up for all of it in one instant, and a failure strategy may abort the run for it.
    async fn cut_by_abort(&self, section: &Section<'_>, flow: Flow) -> Flow {
        if flow != Flow::Halt(Halt::Deadline) {
            return flow;
        }
        self.model.settles().await;
        match self.is_aborted(&section.stage.id) && self.model.one_in(2) {
            true => Flow::Halt(Halt::Abort),
            false => flow,
        }
    }

    fn branch_status(&self, place: &Place<'_>, branch: &Branch<'_>) -> Option<Status> {
        let id = match branch {
            Branch::Turn(_, id) => id.clone(),
            Branch::Node(Node::Step(step)) => format!("{}.{}", place.list, step.id),
            Branch::Node(Node::Group(group)) => format!("{}.{}", place.list, group.id),
            Branch::Node(Node::Parallel(_)) => return None,
        };
        self.state().nodes.get(&id).map(|node| node.status)
    }

    async fn group<'c>(&self, section: &Section<'c>, place: &Place<'c>, group: &'c Group) -> Flow {
        let id = format!("{}.{}", place.list, group.id);
        match self.gate(section, (&id, None), &group.when).await {
            Gate::Open => {}
            Gate::Skipped => return Flow::Through,
            Gate::Halted(halt) => return Flow::Halt(halt),
        }
        let mut retried = 0;
        loop {
            self.begins(&id, false);
            self.set(&id, |node| node.retried = retried);
            let around = Around {
                id: id.clone(),
                strategies: &group.strategies,
                retried,
            };
            let inside = place.inside(&id, "steps", around.clone());
            let mut flow = Box::pin(self.walk(section, &inside, &group.nodes)).await;
            if let Flow::Halt(Halt::Group {
                depth,
                then: GroupThen::RollBack,
            }) = flow
                && depth == place.depth()
            {
                // The groups in it first.
                let mut groups = Vec::new();
                let steps = place.inside(&id, "steps", around.clone());
                self.find_groups(&steps, &group.nodes, &mut groups);
                groups.push((place.inside(&id, "rollbackSteps", around), group));
                flow = Flow::Halt(Halt::Failure { stage: false });
                for (inside, group) in groups {
                    // Nothing cuts a rollback short.
                    let undo = Section::new(section.stage, None);
                    let undone = Box::pin(self.walk(&undo, &inside, &group.rollback)).await;
                    if let Flow::Halt(Halt::Abort | Halt::Deadline) = undone {
                        flow = undone;
                        break;
                    }
                }
            }
            let flow = self.cut_by_abort(section, flow).await;
            let status = self.section_status(&format!("{id}.steps"), &group.nodes);
            self.closes(&id, worst([status].into_iter().chain(cut(flow))));
            match flow {
                Flow::Halt(Halt::Group {
                    depth,
                    then: GroupThen::Again { at_ms },
                }) if depth == place.depth() => {
                    self.set(&id, |node| node.comes_again = true);
                    if let Some(halt) = self.again_at(section, &id, at_ms).await {
                        self.set(&id, |node| node.comes_again = false);
                        return Flow::Halt(halt);
                    }
                    section.forgets(&id);
                    self.forgets(&format!("{id}."));
                    retried += 1;
                }
                flow => return flow,
            }
        }
    }

    /// The groups that are rolled back with their stage, in that order, each with the place of its rollback steps: those
    /// in which a step ran, the last one first, inner ones before those around them.
    pub(super) fn groups_to_undo<'c>(&self, stage: &'c Stage) -> Vec<(Place<'c>, &'c Group)> {
        let mut found = Vec::new();
        self.find_groups(&Place::top(&stage.list()), &stage.steps, &mut found);
        found
    }

    fn find_groups<'c>(
        &self,
        place: &Place<'c>,
        nodes: &'c [Node],
        found: &mut Vec<(Place<'c>, &'c Group)>,
    ) {
        for node in nodes.iter().rev() {
            let group = match node {
                Node::Step(_) => continue,
                Node::Parallel(branches) => {
                    self.find_groups(place, branches, found);
                    continue;
                }
                Node::Group(group) => group,
            };
            let id = format!("{}.{}", place.list, group.id);
            let known = self.state().nodes.get(&id).cloned();
            let around = Around {
                id: id.clone(),
                strategies: &group.strategies,
                retried: known.map_or(0, |node| if node.forgotten { 0 } else { node.retried }),
            };
            let inside = place.inside(&id, "steps", around.clone());
            self.find_groups(&inside, &group.nodes, found);
            if !group.rollback.is_empty() && self.any_step_ran_in(&inside.list) {
                found.push((place.inside(&id, "rollbackSteps", around), group));
            }
        }
    }

    /// What the nodes of a list that have begun come to together.
    pub(super) fn section_status(&self, list: &str, nodes: &[Node]) -> Status {
        let state = self.state();
        let ids = nodes.iter().enumerate().map(|(index, node)| match node {
            Node::Step(step) => format!("{list}.{}", step.id),
            Node::Group(group) => format!("{list}.{}", group.id),
            Node::Parallel(_) => format!("{list}[{index}]"),
        });
        let known = ids.filter_map(|id| state.nodes.get(&id).filter(|node| !node.forgotten));
        worst(known.map(|node| node.status))
    }

    /// Whether something may begin now; waits while the run is paused.
    async fn may_begin(&self, section: &Section<'_>) -> Option<Halt> {
        self.model.passes().await;
        let deadline = section.deadline.unwrap_or(u64::MAX / 4);
        loop {
            if let Some(halt) = self.stops(section) {
                return Some(halt);
            }
            if !self.is_paused() {
                return None;
            }
            self.hold_until(deadline).await;
        }
    }

    /// What stops everything.
    pub(super) fn stops(&self, section: &Section<'_>) -> Option<Halt> {
        if self.is_aborted(&section.stage.id) {
            return Some(Halt::Abort);
        }
        let late = section
            .deadline
            .is_some_and(|deadline| self.model.now() >= deadline);
        late.then_some(Halt::Deadline)
    }

    /// Waits for the time of another attempt; one that is stopped before has nothing to wait for.
    pub(super) async fn again_at(
        &self,
        section: &Section<'_>,
        id: &str,
        at_ms: u64,
    ) -> Option<Halt> {
        loop {
            if let Some(halt) = self.may_begin(section).await {
                return Some(halt);
            }
            let stopped = |node: &NodeState| node.stopped_next.is_some();
            let stopped = self.state().nodes.get(id).is_some_and(stopped);
            if stopped || self.model.now() >= at_ms {
                return None;
            }
            self.nap_until(at_ms.min(section.deadline.unwrap_or(u64::MAX)))
                .await;
        }
    }

    pub(super) async fn gate(
        &self,
        section: &Section<'_>,
        (id, turn_of): (&str, Option<&str>),
        when: &When,
    ) -> Gate {
        let halt = self.may_begin(section).await;
        let fits = match when.status {
            Wanted::Success => !section.has_failed(turn_of),
            Wanted::Failure => section.has_failed(turn_of),
            Wanted::All => true,
        };
        if let Some(halt) = halt
            && (halt != Halt::Abort || !self.misses_abort(section, fits))
        {
            return Gate::Halted(halt);
        }
        if fits && when.condition != Some(false) {
            return Gate::Open;
        }
        self.begins(id, false);
        self.closes(id, Status::Skipped);
        if let Some(node) = self.state_mut().nodes.get_mut(id) {
            node.given_up = !fits && when.status == Wanted::Success;
        }
        if !self.model.case.pipeline.barriers().is_empty() {
            // Who waits at a barrier for it waits for nobody, or fails.
            self.wake();
        }
        Gate::Skipped
    }

    /// Whether something begins all the same after an abort: of a failure and the abort that it brings about, only the
    /// failure may be known yet, or neither.
    fn misses_abort(&self, section: &Section<'_>, nothing_failed: bool) -> bool {
        let late = || self.sees_abort_late(&section.stage.id);
        match nothing_failed {
            true => late(),
            false => self.model.reads_late() || late(),
        }
    }

    /// Another attempt of a node.
    pub(super) fn begins(&self, id: &str, open: bool) {
        let mut state = self.state_mut();
        let before = state.nodes.get(id);
        let node = NodeState {
            attempt: before.map_or(0, |node| node.attempt + 1),
            status: Status::Running,
            open,
            votes_wanted: false,
            asks: false,
            // Said before it began.
            stopped: before.and_then(|node| node.stopped_next.map(|stop| (stop, 0))),
            comes_again: false,
            stopped_next: None,
            votes: Vec::new(),
            answer: None,
            arrived: before.is_some_and(|node| node.arrived),
            given_up: false,
            retried: 0,
            forgotten: false,
        };
        state.nodes.insert(id.to_owned(), node);
    }

    pub(super) fn closes(&self, id: &str, status: Status) {
        if let Some(node) = self.state_mut().nodes.get_mut(id) {
            node.status = status;
            node.open = false;
            node.asks = false;
            node.votes_wanted = false;
        }
    }

    /// A group begins again: what its nodes came to does not count any more.
    fn forgets(&self, within: &str) {
        let mut state = self.state_mut();
        let nodes = state.nodes.iter_mut();
        for (_, node) in nodes.filter(|(id, _)| id.starts_with(within)) {
            node.forgotten = true;
        }
    }
}

/// Something that runs beside others.
enum Branch<'c> {
    Node(&'c Node),
    Turn(&'c Step, String),
}

/// Whether a node runs.
pub(super) enum Gate {
    Open,
    Skipped,
    Halted(Halt),
}

fn cut(flow: Flow) -> Option<Status> {
    match flow {
        Flow::Halt(Halt::Abort) => Some(Status::Aborted),
        Flow::Halt(Halt::Deadline) => Some(Status::Expired),
        _ => None,
    }
}
