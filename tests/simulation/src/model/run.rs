//! Runs and stages.

use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

use slipway_model::status::{ErrorType, Status};
use tokio::sync::Notify;

use super::abort::stops;
use super::section::{Flow, Halt, Place, Section};
use super::state::{NodeState, StageState, State};
use super::verdict::{Failed, Verdict, judge};
use super::{Asked, Delays, Model};
use crate::ast::{Image, Stage, Stop, Story, Wanted, Word};

/// A pipeline's own limit where none is written: that of Harness's team plan.
const PIPELINE_TIMEOUT: u64 = 30 * 24 * 3_600;

/// A run.
pub(super) struct Run {
    pub(super) model: Rc<Model>,
    pub(super) number: usize,
    state: RefCell<State>,
    woken: Notify,
}

impl Run {
    pub(super) fn new(model: Rc<Model>, number: usize) -> Self {
        Self {
            model,
            number,
            state: RefCell::default(),
            woken: Notify::new(),
        }
    }

    pub(super) fn state(&self) -> Ref<'_, State> {
        self.state.borrow()
    }

    pub(super) fn state_mut(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// People are asked about a step; each attempt asks anew.
    pub(super) fn asks(&self, node: &str, votes: bool, count: usize) {
        let at_ms = self.model.now();
        let mut state = self.state_mut();
        let attempts = state
            .nodes
            .get(node)
            .map_or(1, |node| node.attempt as usize + 1);
        let often = if votes { count } else { attempts };
        let asked = Asked {
            node: node.to_owned(),
            votes,
            at_ms,
            often,
        };
        if !state
            .asked
            .iter()
            .any(|one| one.node == node && one.often == often)
        {
            state.asked.push(asked);
        }
    }

    pub(super) fn story(&self) -> Story {
        let state = self.state();
        let mut story = Story {
            run: state.ended.map(|status| format!("{status:?}")),
            ..Story::default()
        };
        for (id, stage) in &state.stages {
            story.note(id, 0, stage.status);
        }
        for (id, node) in &state.nodes {
            story.note(id, node.attempt, node.status);
        }
        story
    }

    /// Everything that waits looks again.
    pub(super) fn wake(&self) {
        self.state_mut().wakes += 1;
        self.woken.notify_waiters();
    }

    /// Waits until `at_ms`, or until it is woken, or somebody gives a place in a line back.
    pub(super) async fn hold_until(&self, at_ms: u64) {
        let moved = self.model.lines.moved.notified();
        tokio::select! {
            biased;
            () = moved => {}
            () = self.rest_until(at_ms) => {}
        }
    }

    /// Waits until `at_ms`, or until it is woken.
    pub(super) async fn rest_until(&self, at_ms: u64) {
        let woken = self.woken.notified();
        tokio::select! {
            biased;
            // Of those that a word wakes, any may be the first.
            () = woken => self.model.settles().await,
            () = self.model.sleep_until(at_ms) => self.model.settles().await,
        }
    }

    pub(super) fn abort(&self) {
        let now = self.model.now();
        self.state_mut().aborts(now);
        self.wake();
    }

    /// From its start to its end; answers when that was.
    pub(super) async fn play(&self) -> u64 {
        let model = &self.model;
        let start = model.case.starts[self.number] * 1_000;
        model.sleep_until(start).await;
        model.passes().await;
        let limit = model.case.pipeline.timeout.unwrap_or(PIPELINE_TIMEOUT) * 1_000;
        let groups = &model.case.pipeline.groups;
        for (index, stages) in groups.iter().enumerate() {
            let places = places(stages);
            let plays = stages.iter().map(|stage| async {
                let _place = places.acquire().await.expect("it is open");
                let part = Some((self.number, stage.id.clone()));
                let plays = self.stage(index, stage, start + limit, limit);
                Delays::of(part, plays).await;
            });
            futures::future::join_all(plays).await;
        }
        self.undo_all().await;
        let state = self.state();
        let stopped = state.stages.values().any(|stage| stage.stopped);
        let all = state.stages.values().map(|stage| stage.status);
        let status = worst(all.chain(stopped.then_some(Status::Aborted)));
        drop(state);
        self.state_mut().ended = Some(status);
        model.lines.leave(&self.holder(None));
        model.now()
    }

    /// Who holds keys: the run, or a stage of it.
    pub(super) fn holder(&self, stage: Option<&str>) -> String {
        format!("{}/{}", self.number, stage.unwrap_or("-"))
    }

    async fn stage(&self, group: usize, stage: &Stage, run_deadline: u64, run_limit: u64) {
        let model = &self.model;
        model.passes().await;
        let unbegun = if self.state().is_aborted() || self.is_barred(group) {
            Some(Status::Aborted)
        } else if !self.lets(group, stage) {
            Some(Status::Skipped)
        } else if model.now() >= run_deadline {
            Some(Status::Expired)
        } else {
            None
        };
        if let Some(status) = unbegun {
            self.ends(stage, StageState::of(status));
            return;
        }
        self.goes_on(stage);
        if let Some(ended) = self.held_back(stage, run_deadline).await {
            self.ends(stage, ended);
            return;
        }
        let running = StageState::of(Status::Running);
        self.state_mut().stages.insert(stage.id.clone(), running);
        let own = stage.timeout.map_or(run_limit, |limit| limit * 1_000);
        let deadline = (model.now() + own).min(run_deadline);
        let section = Section::new(stage, Some(deadline));
        let list = stage.list();
        let flow = Box::pin(self.walk(&section, &Place::top(&list), &stage.steps)).await;
        if matches!(flow, Flow::Halt(_)) {
            // Another function ends the stage then: what happens in that instant is heard there, or not.
            model.settles().await;
        }
        let ended = self.after(stage, flow).await;
        model.passes().await;
        self.ends(stage, ended);
    }

    /// How a stage that deploys ends instead of beginning: frozen, or when it has its infrastructure at last, something
    /// else.
    async fn held_back(&self, stage: &Stage, run_deadline: u64) -> Option<StageState> {
        stage.deploys?;
        let frozen = || {
            let frozen = self.is_frozen();
            frozen.then(|| StageState::of(Status::AbortedByFreeze))
        };
        if let Some(frozen) = frozen() {
            return Some(frozen);
        }
        let held = self.takes_infrastructure(stage).await;
        let word = self.state_mut().waiting.remove(&stage.id).flatten();
        if !held {
            return Some(match word.filter(|_| !self.is_aborted(&stage.id)) {
                Some(expires) => self.given_up(stage, expires),
                None => StageState::of(Status::Aborted),
            });
        }
        if self.model.now() >= run_deadline {
            return Some(StageState::of(Status::Expired));
        }
        frozen()
    }

    /// How a stage ends that somebody gave up while it waited: as its failure strategies say, and nobody is asked.
    fn given_up(&self, stage: &Stage, expires: bool) -> StageState {
        let (error, status) = match expires {
            true => (ErrorType::Timeout, Status::Expired),
            false => (ErrorType::UserMarkedFailure, Status::Failed),
        };
        match judged(stage, error, status) {
            Verdict::Over { status, halt } => {
                if status == Status::Aborted {
                    self.abort();
                }
                StageState {
                    undoes_run: halt == Some(Halt::Run),
                    ..StageState::of(status)
                }
            }
            _ => StageState::of(status),
        }
    }

    /// Whether nothing may begin to be deployed now.
    fn is_frozen(&self) -> bool {
        let now = self.model.now() / 60_000;
        let freeze = self.model.case.freeze;
        freeze.is_some_and(|freeze| (freeze.from..freeze.from + freeze.length).contains(&now))
    }

    /// Whether somebody aborted a stage before those of a group: then none of them begins.
    fn is_barred(&self, group: usize) -> bool {
        let state = self.state();
        let mut earlier = self.model.case.pipeline.groups[..group].iter().flatten();
        earlier.any(|stage| state.was_aborted_alone(&stage.id))
    }

    /// Whether earlier stages let this one run.
    fn lets(&self, group: usize, stage: &Stage) -> bool {
        let state = self.state();
        let earlier = self.model.case.pipeline.groups[..group].iter().flatten();
        let earlier: Vec<&StageState> = earlier
            .filter_map(|one| state.stages.get(&one.id))
            .collect();
        let ends = |one: &&StageState| one.undoes_run || one.status == Status::AbortedByFreeze;
        if earlier.iter().any(ends) {
            return false;
        }
        let harmed = earlier.iter().any(|one| !one.status.is_good());
        // A stage that was rolled back is no failure to those that wait for one; an ignored failure is.
        let failed = earlier.iter().any(|one| {
            one.status == Status::IgnoreFailed || (!one.status.is_good() && !one.rolled_back)
        });
        let fits = match stage.when.status {
            Wanted::Success => !harmed,
            Wanted::Failure => failed,
            Wanted::All => true,
        };
        fits && stage.when.condition != Some(false)
    }

    /// Waits for the one infrastructure; not when the run or the stage is aborted meanwhile, or given up.
    async fn takes_infrastructure(&self, stage: &Stage) -> bool {
        let holder = self.holder(Some(&stage.id));
        let key = format!("infrastructure/{:?}", stage.deploys);
        loop {
            let given_up = self
                .state()
                .waiting
                .get(&stage.id)
                .is_some_and(Option::is_some);
            if self.is_aborted(&stage.id) || given_up {
                self.model.lines.leave(&holder);
                return false;
            }
            if self.model.lines.take(&key, &holder) {
                let mut state = self.state_mut();
                if !state.undoing {
                    state.deployed.push(stage.id.clone());
                }
                return true;
            }
            // One that has ended is rolled back with its run: no word about the run is about that.
            if !self.state().stages.contains_key(&stage.id) {
                self.state_mut()
                    .waiting
                    .entry(stage.id.clone())
                    .or_default();
            }
            self.hold_until(u64::MAX / 4).await;
        }
    }

    /// What becomes of a stage whose steps came out so; rolls it back where that is wanted.
    async fn after(&self, stage: &Stage, flow: Flow) -> StageState {
        let steps = stage.list();
        let status = self.section_status(&steps, &stage.steps);
        let (status, undo) = match flow {
            Flow::Through => (status, Undo::Nothing),
            Flow::Halt(_) if self.is_aborted(&stage.id) => (Status::Aborted, Undo::Nothing),
            Flow::Halt(Halt::Abort) => (Status::Aborted, Undo::Nothing),
            Flow::Halt(Halt::Failure { stage: false }) => (status, Undo::Nothing),
            Flow::Halt(Halt::Failure { stage: true } | Halt::Group { .. }) => (status, Undo::Stage),
            Flow::Halt(Halt::Run) => (status, Undo::Run),
            Flow::Halt(Halt::Deadline) => {
                let undo = undo_when_late(stage);
                (worst([status, Status::Expired]), undo)
            }
        };
        let ended = StageState {
            undoes_run: undo == Undo::Run,
            ..StageState::of(status)
        };
        if undo != Undo::Stage || !self.can_be_undone(stage) {
            return ended;
        }
        self.model.passes().await;
        let undone = self.rolls_back(stage).await;
        let was = self.section_status(&steps, &stage.steps);
        let status = match was {
            _ if self.is_aborted(&stage.id) && !undone => Status::Aborted,
            good if good.is_good() => Status::Errored,
            status => status,
        };
        StageState {
            rolled_back: true,
            ..StageState::of(status)
        }
    }

    /// Runs the rollback steps of a stage; whether all went well.
    async fn rolls_back(&self, stage: &Stage) -> bool {
        let mut good = true;
        for (place, group) in self.groups_to_undo(stage) {
            // What a group did itself is not done again.
            if !self.has_begun_in(place.list()) {
                let section = Section::new(stage, None);
                let flow = Box::pin(self.walk(&section, &place, &group.rollback)).await;
                if matches!(flow, Flow::Halt(Halt::Abort | Halt::Deadline)) {
                    return false;
                }
            }
            good &= self.section_status(place.list(), &group.rollback).is_good();
        }
        let section = Section::new(stage, None);
        let list = stage.rollback_list();
        let flow = Box::pin(self.walk(&section, &Place::top(&list), &stage.rollback)).await;
        let rolled = self.section_status(&list, &stage.rollback);
        good && matches!(flow, Flow::Through) && rolled.is_good()
    }

    /// Rolls the whole run back where a stage has failed so: groups in reverse, the stages of a group side by side, but for
    /// those that deployed one service, of which the last one comes first.
    async fn undo_all(&self) {
        let wanted = {
            let state = self.state();
            !state.is_aborted() && state.stages.values().any(|stage| stage.undoes_run)
        };
        if !wanted {
            return;
        }
        let groups = &self.model.case.pipeline.groups;
        let due = |stage: &&Stage| {
            let state = self.state();
            let ended = state.stages.get(&stage.id);
            let begun =
                ended.is_some_and(|ended| ended.status != Status::Skipped && !ended.rolled_back);
            drop(state);
            begun && self.can_be_undone(stage)
        };
        let due: Vec<Vec<&Stage>> = groups
            .iter()
            .rev()
            .map(|stages| stages.iter().filter(due).collect())
            .collect();
        let ids = due.iter().flatten().map(|stage| stage.id.as_str());
        self.state_mut().undoes(ids);
        for stages in due {
            let mut lines: Vec<Vec<&Stage>> = Vec::new();
            for stage in stages {
                let service = stage.deploys.map(Image::service);
                let known = lines.iter_mut().find(|line| {
                    let first = line.first().and_then(|first| first.deploys);
                    service.is_some() && first.map(Image::service) == service
                });
                match known {
                    Some(line) => line.push(stage),
                    None => lines.push(vec![stage]),
                }
            }
            let undo = lines.into_iter().map(|mut line| async move {
                let deployed = |stage: &&Stage| {
                    let state = self.state();
                    state.deployed.iter().position(|id| *id == stage.id)
                };
                line.sort_by_key(deployed);
                for stage in line.into_iter().rev() {
                    let part = Some((self.number, stage.id.clone()));
                    Delays::of(part, self.undoes(stage)).await;
                }
            });
            futures::future::join_all(undo).await;
        }
    }

    async fn undoes(&self, stage: &Stage) {
        self.model.passes().await;
        self.goes_on(stage);
        let held = stage.deploys.is_none() || self.takes_infrastructure(stage).await;
        // What another run has deployed since is left alone, and then nothing of the stage is undone.
        let outrun = stage.deploys.is_some() && self.model.was_overtaken();
        let stopped = |run: &Self| run.is_aborted(&stage.id);
        let undone = held && !outrun && !stopped(self) && self.rolls_back(stage).await;
        let stopped = !undone && stopped(self);
        if let Some(ended) = self.state_mut().stages.get_mut(&stage.id) {
            ended.rolled_back = undone;
            ended.stopped = stopped;
            ended.undoing = false;
        }
        self.comes_to_rest(stage);
        self.model.passes().await;
        self.model.lines.leave(&self.holder(Some(&stage.id)));
    }

    /// Whether a stage ran steps, and has others that roll it back as far as it came.
    fn can_be_undone(&self, stage: &Stage) -> bool {
        let undoing = !stage.rollback.is_empty() || !self.groups_to_undo(stage).is_empty();
        undoing && self.any_step_ran_in(&stage.list())
    }

    /// Whether a node below a list began in its round.
    fn has_begun_in(&self, list: &str) -> bool {
        let list = format!("{list}.");
        let state = self.state();
        let mut known = state.nodes.iter().filter(|(_, node)| !node.forgotten);
        known.any(|(id, _)| id.starts_with(&list))
    }

    /// Whether a step below a list began and was not skipped.
    pub(super) fn any_step_ran_in(&self, list: &str) -> bool {
        let list = format!("{list}.");
        let state = self.state();
        let steps = self.model.case.pipeline.steps();
        let is_step = |id: &str| {
            steps.iter().any(|(known, step)| match step.turns {
                None => known == id,
                Some(turns) => turns
                    .postfixes()
                    .any(|postfix| *id == format!("{known}{postfix}")),
            })
        };
        let mut begun = state.nodes.iter().filter(|(id, _)| id.starts_with(&list));
        begun.any(|(id, node)| is_step(id) && node.status != Status::Skipped)
    }

    fn ends(&self, stage: &Stage, ended: StageState) {
        self.state_mut().stages.insert(stage.id.clone(), ended);
        self.comes_to_rest(stage);
        self.model.lines.leave(&self.holder(Some(&stage.id)));
        if !self.model.case.pipeline.barriers().is_empty() {
            self.wake();
        }
    }

    /// Somebody says something; what does not fit is refused.
    pub(super) fn hears(&self, word: &Word) {
        if self.state().ended.is_some() || !self.has_begun() {
            return;
        }
        let now = self.model.now();
        let mut state = self.state_mut();
        let heard = match word {
            Word::Abort => {
                state.aborts(now);
                true
            }
            Word::AbortStage(stage) => state.aborts_stage(stage, now),
            Word::StopStage(stage, stop) => state.stops_stage(stage, *stop, now),
            Word::Pause if state.paused.is_some() => false,
            Word::Pause => state.paused.replace(now).is_none(),
            Word::Resume => state.paused.take().is_some(),
            Word::MarkAsFailed | Word::Expire => {
                let expires = *word == Word::Expire;
                let stop = if expires { Stop::Expire } else { Stop::Fail };
                let open = state.nodes.values_mut().filter(|node| node.open);
                open.for_each(|node| {
                    node.stopped.get_or_insert((stop, now));
                });
                state.waiting.values_mut().for_each(|word| {
                    word.get_or_insert(expires);
                });
                true
            }
            Word::MarkNode(id) => {
                // Of a step that loops: whichever of its turns run, or wait to be tried again.
                let nodes = state.nodes.iter_mut();
                let named = nodes.filter(|(known, _)| *known == id || is_turn(known, id));
                let mut heard = false;
                for (_, node) in named.filter(|(_, node)| !node.asks) {
                    heard |= stops(node, Stop::Fail, now);
                }
                heard
            }
            Word::Vote {
                node,
                who,
                approves,
            } => {
                let aborted = state.is_aborted();
                with(&mut state, node, |node| {
                    let new = !node.votes.iter().any(|(voter, _)| voter == who);
                    let counts = node.votes_wanted && new && !aborted;
                    if counts {
                        node.votes.push((who.clone(), *approves));
                    }
                    counts
                })
            }
            Word::Answer { node: id, action } => with(&mut state, id, |node| {
                // A rollback is not rolled back.
                let undoes = matches!(*action, "StageRollback" | "PipelineRollback");
                let refused = undoes && id.contains(".rollbackSteps.");
                let counts = node.asks && node.answer.is_none() && !refused;
                if counts {
                    node.answer = Some((action, now));
                }
                counts
            }),
        };
        drop(state);
        if heard {
            self.wake();
        }
    }

    fn has_begun(&self) -> bool {
        self.model.now() >= self.model.case.starts[self.number] * 1_000
    }
}

/// What is undone when a stage has ended.
#[derive(Clone, Copy, PartialEq)]
enum Undo {
    Nothing,
    Stage,
    Run,
}

/// What the stage's own strategies say about a timeout of the stage itself.
fn undo_when_late(stage: &Stage) -> Undo {
    match judged(stage, ErrorType::Timeout, Status::Expired) {
        Verdict::Over { halt, .. } => match halt {
            Some(Halt::Failure { stage: true } | Halt::Group { .. }) => Undo::Stage,
            Some(Halt::Run) => Undo::Run,
            _ => Undo::Nothing,
        },
        _ => Undo::Nothing,
    }
}

/// What the stage's own strategies say about a failure that no step stands for.
fn judged(stage: &Stage, error: ErrorType, status: Status) -> Verdict {
    let failed = Failed {
        error,
        status,
        at_ms: 0,
        answer: None,
        now_ms: u64::MAX,
    };
    let levels = [(&[][..], u32::MAX), (&stage.strategies[..], u32::MAX)];
    judge(&levels, &failed)
}

/// As many stages of a group at a time as its loop says.
fn places(stages: &[Stage]) -> tokio::sync::Semaphore {
    let most = stages
        .iter()
        .find_map(|stage| stage.turns)
        .map_or(0, |turns| turns.at_once);
    tokio::sync::Semaphore::new(match most {
        0 => stages.len(),
        most => most,
    })
}

/// Whether `id` is that of a turn of the step `looped`.
fn is_turn(id: &str, looped: &str) -> bool {
    let turn = id
        .strip_prefix(looped)
        .and_then(|rest| rest.strip_prefix('_'));
    turn.is_some_and(|turn| turn.bytes().all(|byte| byte.is_ascii_digit()))
}

fn with(state: &mut State, id: &str, change: impl FnOnce(&mut NodeState) -> bool) -> bool {
    state.nodes.get_mut(id).is_some_and(change)
}

/// What several come to together (FEATURES 5): the worst of them.
pub(super) fn worst(statuses: impl IntoIterator<Item = Status>) -> Status {
    const ORDER: [Status; 8] = [
        Status::Success,
        Status::IgnoreFailed,
        Status::Expired,
        Status::ApprovalRejected,
        Status::Failed,
        Status::Errored,
        Status::AbortedByFreeze,
        Status::Aborted,
    ];
    let place = |status: Status| match status {
        Status::Skipped => 0,
        status => ORDER.iter().position(|one| *one == status).unwrap_or(5),
    };
    let worst = statuses.into_iter().map(place).max().unwrap_or(0);
    ORDER[worst]
}
