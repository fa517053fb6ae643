//! Runs and stages.

use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

use slipway_model::status::{ErrorType, Status};
use tokio::sync::Notify;

use super::section::{Flow, Halt, Place, Section};
use super::state::{NodeState, StageState, State};
use super::verdict::{Failed, Verdict, judge};
use super::{Asked, Model};
use crate::ast::{Stage, Story, Wanted, Word, list_id};

/// A pipeline's own limit where none is written.
const PIPELINE_TIMEOUT: u64 = 35 * 24 * 3_600;

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

    /// Waits until `at_ms`, or until it is woken.
    pub(super) async fn hold_until(&self, at_ms: u64) {
        let woken = self.woken.notified();
        let moved = self.model.lines.moved.notified();
        tokio::select! {
            biased;
            () = woken => {}
            () = moved => {}
            () = self.model.sleep_until(at_ms) => {}
        }
    }

    pub(super) fn abort(&self) {
        self.state_mut().aborted = true;
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
            let plays = stages
                .iter()
                .map(|stage| self.stage(index, stage, start + limit, limit));
            futures::future::join_all(plays).await;
        }
        let status = worst(self.state().stages.values().map(|stage| stage.status));
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
        let unbegun = if self.state().aborted {
            Some(Status::Aborted)
        } else if !self.lets(group, stage) {
            Some(Status::Skipped)
        } else if model.now() >= run_deadline {
            Some(Status::Expired)
        } else {
            None
        };
        if let Some(status) = unbegun {
            self.ends(stage, status, false);
            return;
        }
        if stage.deploys.is_some() && !self.takes_infrastructure(stage).await {
            self.ends(stage, Status::Aborted, false);
            return;
        }
        let running = StageState {
            status: Status::Running,
            rolled_back: false,
        };
        self.state_mut().stages.insert(stage.id.clone(), running);
        let own = stage.timeout.map_or(run_limit, |limit| limit * 1_000);
        let deadline = (model.now() + own).min(run_deadline);
        let section = Section::new(stage, Some(deadline));
        let list = list_id(&stage.id, "steps");
        let flow = Box::pin(self.walk(&section, &Place::top(&list), &stage.steps)).await;
        let (status, rolled_back) = self.after(stage, flow).await;
        model.passes().await;
        self.ends(stage, status, rolled_back);
    }

    /// Whether earlier stages let this one run.
    fn lets(&self, group: usize, stage: &Stage) -> bool {
        let state = self.state();
        let earlier = self.model.case.pipeline.groups[..group].iter().flatten();
        let earlier: Vec<&StageState> = earlier
            .filter_map(|one| state.stages.get(&one.id))
            .collect();
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

    /// Waits for the one infrastructure; not when the run is aborted meanwhile.
    async fn takes_infrastructure(&self, stage: &Stage) -> bool {
        let holder = self.holder(Some(&stage.id));
        let key = format!("infrastructure/{:?}", stage.deploys);
        loop {
            if self.state().aborted {
                self.model.lines.leave(&holder);
                return false;
            }
            if self.model.lines.take(&key, &holder) {
                return true;
            }
            self.hold_until(u64::MAX / 4).await;
        }
    }

    /// What becomes of a stage whose steps came out so; rolls it back where that is wanted.
    async fn after(&self, stage: &Stage, flow: Flow) -> (Status, bool) {
        let steps = list_id(&stage.id, "steps");
        let status = self.section_status(&steps, &stage.steps);
        let (status, rolls_back) = match flow {
            Flow::Through => return (status, false),
            Flow::Halt(_) if self.state().aborted => return (Status::Aborted, false),
            Flow::Halt(Halt::Abort) => return (Status::Aborted, false),
            Flow::Halt(Halt::Failure { stage }) => (status, stage),
            Flow::Halt(Halt::Group { .. }) => (status, true),
            Flow::Halt(Halt::Deadline) => {
                let rolls_back = self.rolls_back_when_late(stage);
                (worst([status, Status::Expired]), rolls_back)
            }
        };
        if !rolls_back || stage.rollback.is_empty() || !self.any_step_ran(&stage.id) {
            return (status, false);
        }
        self.model.passes().await;
        let section = Section::new(stage, None);
        let list = list_id(&stage.id, "rollbackSteps");
        let flow = Box::pin(self.walk(&section, &Place::top(&list), &stage.rollback)).await;
        let rolled = self.section_status(&list, &stage.rollback);
        let undone = matches!(flow, Flow::Through) && rolled.is_good();
        let was = self.section_status(&steps, &stage.steps);
        let status = match was {
            _ if self.state().aborted && !undone => Status::Aborted,
            good if good.is_good() => Status::Errored,
            status => status,
        };
        (status, true)
    }

    /// What the stage's own strategies say about a timeout of the stage itself.
    fn rolls_back_when_late(&self, stage: &Stage) -> bool {
        let failed = Failed {
            error: ErrorType::Timeout,
            status: Status::Expired,
            at_ms: 0,
            answer: None,
            now_ms: u64::MAX,
        };
        let levels = [(&[][..], u32::MAX), (&stage.strategies[..], u32::MAX)];
        matches!(
            judge(&levels, &failed),
            Verdict::Over {
                halt: Some(Halt::Failure { stage: true } | Halt::Group { .. }),
                ..
            }
        )
    }

    fn any_step_ran(&self, stage: &str) -> bool {
        let list = list_id(stage, "steps.");
        let state = self.state();
        let steps = self.model.case.pipeline.steps();
        let is_step = |id: &str| {
            steps.iter().any(|(known, step)| match step.turns {
                None => known == id,
                Some(turns) => (0..turns.count).any(|turn| *id == format!("{known}_{turn}")),
            })
        };
        let mut begun = state.nodes.iter().filter(|(id, _)| id.starts_with(&list));
        begun.any(|(id, node)| is_step(id) && node.status != Status::Skipped)
    }

    fn ends(&self, stage: &Stage, status: Status, rolled_back: bool) {
        let ended = StageState {
            status,
            rolled_back,
        };
        self.state_mut().stages.insert(stage.id.clone(), ended);
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
                state.aborted = true;
                true
            }
            Word::Pause => !std::mem::replace(&mut state.paused, true),
            Word::Resume => std::mem::replace(&mut state.paused, false),
            Word::MarkAsFailed | Word::Expire => {
                let expires = *word == Word::Expire;
                let open = state.nodes.values_mut().filter(|node| node.open);
                open.for_each(|node| {
                    node.stopped.get_or_insert(expires);
                });
                true
            }
            Word::MarkNode(id) => with(&mut state, id, |node| {
                if node.open {
                    node.stopped.get_or_insert(false);
                }
                node.open
            }),
            Word::Vote {
                node,
                who,
                approves,
            } => {
                let aborted = state.aborted;
                with(&mut state, node, |node| {
                    let new = !node.votes.iter().any(|(voter, _)| voter == who);
                    let counts = node.votes_wanted && new && !aborted;
                    if counts {
                        node.votes.push((who.clone(), *approves));
                    }
                    counts
                })
            }
            Word::Answer { node, action } => with(&mut state, node, |node| {
                let counts = node.asks && node.answer.is_none();
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

fn with(state: &mut State, id: &str, change: impl FnOnce(&mut NodeState) -> bool) -> bool {
    state.nodes.get_mut(id).is_some_and(change)
}

/// What several come to together (FEATURES 5): the worst of them.
pub(super) fn worst(statuses: impl IntoIterator<Item = Status>) -> Status {
    const ORDER: [Status; 7] = [
        Status::Success,
        Status::IgnoreFailed,
        Status::Expired,
        Status::ApprovalRejected,
        Status::Failed,
        Status::Errored,
        Status::Aborted,
    ];
    let place = |status: Status| match status {
        Status::Skipped => 0,
        status => ORDER.iter().position(|one| *one == status).unwrap_or(5),
    };
    let worst = statuses.into_iter().map(place).max().unwrap_or(0);
    ORDER[worst]
}
