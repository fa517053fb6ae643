//! Steps: their attempts, and what becomes of their failures.

use slipway_model::status::{ErrorType, Status};

use super::HEARTBEAT;
use super::run::Run;
use super::section::{Flow, Gate, GroupThen, Halt, Place, Section};
use super::verdict::{Failed, Verdict, judge, rolls_back};
use crate::ast::{Image, Kind, Script, Step, Stop};

/// Longest wait that nothing cuts short, in milliseconds.
const SLEEP: u64 = 1_000;
/// What the machine waits for a delegate beyond the step's limit, less the second that a heartbeat is shorter.
const GRACE: u64 = 9_000;
/// How long a deployment takes, in milliseconds; about.
const DEPLOY: u64 = 60_000;
/// How long it may take.
const LONG_DEPLOY: u64 = 400_000;

/// How an attempt ended.
enum End {
    Good,
    Failed(ErrorType, Status),
    Aborted,
}

/// What follows a failure.
enum After {
    Again(u64),
    Flow(Flow),
}

impl Run {
    pub(super) async fn step<'c>(
        &self,
        section: &Section<'c>,
        place: &Place<'c>,
        step: &'c Step,
        id: &str,
    ) -> Flow {
        let turn_of = place.loop_of(step);
        match self
            .gate(section, (id, turn_of.as_deref()), &step.when)
            .await
        {
            Gate::Open => {}
            Gate::Skipped => return Flow::Through,
            Gate::Halted(halt) => return Flow::Halt(halt),
        }
        let mut retried = 0;
        loop {
            self.begins(id, true);
            self.stops_with_group(place, id);
            let end = self.attempt(section, step, id).await;
            self.model.passes().await;
            let (error, status) = match end {
                End::Good => {
                    self.closes(id, Status::Success);
                    return Flow::Through;
                }
                End::Aborted => {
                    self.closes(id, Status::Aborted);
                    return Flow::Halt(Halt::Abort);
                }
                End::Failed(error, status) => (error, status),
            };
            match self
                .failed(section, place, (step, id, retried), error, status)
                .await
            {
                After::Flow(flow) => return flow,
                After::Again(at_ms) => {
                    self.set(id, |node| node.comes_again = true);
                    if let Some(halt) = self.again_at(section, id, at_ms).await {
                        self.set(id, |node| node.comes_again = false);
                        return Flow::Halt(halt);
                    }
                    retried += 1;
                }
            }
        }
    }

    async fn attempt(&self, section: &Section<'_>, step: &Step, id: &str) -> End {
        let model = &self.model;
        let started = model.now();
        // The time of a pipeline that is run is that of its stage.
        let expires = match step.kind {
            Kind::Chained(_) => u64::MAX / 4,
            _ => started + step.timeout * 1_000,
        };
        let limit = section
            .deadline
            .map_or(expires, |deadline| deadline.min(expires));
        let mut vanished = false;
        let mut waits_until = None;
        // There may be nothing to undo.
        let at_once = step.kind == Kind::Undo && model.one_in(2);
        let deployed = match at_once {
            true => started,
            false if model.one_in(4) => started + model.between(DEPLOY / 2, DEPLOY, LONG_DEPLOY),
            false => started + model.between(DEPLOY - 15_000, DEPLOY, DEPLOY + 30_000),
        };
        if let Kind::Chained(_) = &step.kind {
            // The other run begins after this step.
            model.passes().await;
        }
        if let Kind::Wait(_) | Kind::Script(Script::Vanishes) = &step.kind
            && model.is_held_up()
        {
            // The time of a step goes on where the function is held up that has begun it.
            model.passes().await;
        }
        let given = model.now();
        loop {
            if let Kind::Barrier(name) = &step.kind
                && (model.reads_late() || self.sees_abort_late(&section.stage.id))
                && self.at_barrier(name, id) == Some(false)
            {
                return End::Failed(ErrorType::Unknown, Status::Failed);
            }
            if let Kind::Queue { key, run } = &step.kind
                && self.sees_abort_late(&section.stage.id)
                && self.takes_turn(section, key, *run)
            {
                return End::Good;
            }
            let halted = self.stops(section);
            let node = self.state().nodes.get(id).cloned();
            let (Some(node), false) = (node, halted == Some(Halt::Abort)) else {
                return End::Aborted;
            };
            let late = halted.is_some() || model.now() >= expires;
            // Said in time, it counts however late it is heard.
            let said = node.stopped.filter(|(_, at_ms)| !late || *at_ms < limit);
            match said.map(|(stop, _)| stop) {
                Some(Stop::Fail | Stop::RollBack) => {
                    return End::Failed(ErrorType::UserMarkedFailure, Status::Failed);
                }
                None if !late => {}
                Some(Stop::Expire) | None => {
                    return End::Failed(ErrorType::Timeout, Status::Expired);
                }
            }
            match &step.kind {
                Kind::Wait(time) => {
                    let over = started + time * 1_000;
                    if model.now() >= over {
                        return End::Good;
                    }
                    self.nap_until(over.min(limit)).await;
                    if model.is_held_up() {
                        model.passes().await;
                    }
                }
                Kind::Script(Script::Vanishes) if vanished => {
                    return End::Failed(ErrorType::DelegateRestart, Status::Failed);
                }
                Kind::Script(script) => {
                    let first = model.works().await;
                    if first && self.is_stopped(section, id) {
                        continue;
                    }
                    if *script != Script::Vanishes {
                        // Whoever reads the result may be late, and then the step is.
                        model.passes().await;
                        if model.now() >= limit || self.is_stopped(section, id) {
                            continue;
                        }
                        return played(*script, node.attempt);
                    }
                    // Nobody answers for the task; the machine notices its silence.
                    vanished = true;
                    let silence = model.silent_from(given) + HEARTBEAT;
                    model.sleep_until(silence.min(limit + GRACE)).await;
                }
                Kind::Approval(count) => {
                    if node.votes.iter().any(|(_, approves)| !approves) {
                        let rejected = ErrorType::ApprovalRejection;
                        return End::Failed(rejected, Status::ApprovalRejected);
                    }
                    if node.votes.len() >= *count {
                        return End::Good;
                    }
                    self.set(id, |node| node.votes_wanted = true);
                    self.asks(id, true, *count);
                    self.hold_until(limit).await;
                }
                Kind::Barrier(name) => match self.at_barrier(name, id) {
                    Some(true) => return End::Good,
                    Some(false) => return End::Failed(ErrorType::Unknown, Status::Failed),
                    None => {
                        self.hold_until(limit).await;
                        // Whoever opens it may be late to tell.
                        model.passes().await;
                    }
                },
                Kind::Queue { key, run } => {
                    if self.takes_turn(section, key, *run) {
                        return End::Good;
                    }
                    self.hold_until(limit).await;
                    model.passes().await;
                }
                // It is paused with the run around: neither its wait begins meanwhile, nor what follows that.
                Kind::Chained(child) => match waits_until {
                    Some(over) if model.now() < over => {
                        self.hold_until(over.min(limit)).await;
                        model.passes().await;
                    }
                    _ if self.is_paused() => self.hold_until(limit).await,
                    None => waits_until = Some(model.now() + child.time * 1_000),
                    Some(_) if child.good => return End::Good,
                    Some(_) => return End::Failed(ErrorType::Unknown, Status::Failed),
                },
                Kind::Http(http) => {
                    model.works().await;
                    // Whoever asks may be late.
                    model.passes().await;
                    if model.now() >= limit || self.is_stopped(section, id) {
                        continue;
                    }
                    // What is interrupted while it posts does not know whether it was heard.
                    let interrupted = http.posts && model.goes_wrong();
                    return match http.good && !interrupted {
                        true => End::Good,
                        false => End::Failed(ErrorType::Unknown, Status::Failed),
                    };
                }
                Kind::Deploy | Kind::Undo => {
                    let over = deployed;
                    let image = section.stage.deploys;
                    let missing = step.kind == Kind::Deploy && image == Some(Image::Missing);
                    let overtaken = step.kind == Kind::Undo && model.was_overtaken();
                    match missing || overtaken {
                        _ if model.now() < over => {}
                        true => return End::Failed(ErrorType::Unknown, Status::Failed),
                        false => return End::Good,
                    }
                    self.nap_until(over.min(limit)).await;
                }
            }
        }
    }

    /// Whether it is a step's turn in its queue.
    fn takes_turn(&self, section: &Section<'_>, key: &str, run: bool) -> bool {
        let line = format!("queue/{key}");
        let holder = self.holder((!run).then_some(&*section.stage.id));
        // What the run holds as a whole, its stages need not wait for.
        !run && self.model.lines.is_held_by(&line, &self.holder(None))
            || self.model.lines.take(&line, &holder)
    }

    /// Whether somebody has stopped a step that runs.
    fn is_stopped(&self, section: &Section<'_>, id: &str) -> bool {
        let state = self.state();
        let stopped = |node: &super::state::NodeState| node.stopped.is_some();
        self.is_aborted(&section.stage.id) || state.nodes.get(id).is_some_and(stopped)
    }

    /// Where an attempt of a group is stopped, nothing of it runs but what rolls it back.
    fn stops_with_group(&self, place: &Place<'_>, id: &str) {
        let said = {
            let state = self.state();
            let mut groups = place.groups_running().rev();
            groups.find_map(|group| state.nodes.get(group)?.stopped)
        };
        if let Some(stop) = said {
            self.set(id, |node| {
                node.stopped.get_or_insert(stop);
            });
        }
    }

    /// Short waits pass; longer ones are cut short by whatever is said.
    pub(super) async fn nap_until(&self, at_ms: u64) {
        match at_ms.saturating_sub(self.model.now()) {
            ..=SLEEP => self.model.sleep_until(at_ms).await,
            _ => self.rest_until(at_ms).await,
        }
    }

    pub(super) fn set(&self, id: &str, change: impl FnOnce(&mut super::state::NodeState)) {
        if let Some(node) = self.state_mut().nodes.get_mut(id) {
            change(node);
        }
    }

    async fn failed<'c>(
        &self,
        section: &Section<'c>,
        place: &Place<'c>,
        (step, id, retried): (&'c Step, &str, u32),
        error: ErrorType,
        status: Status,
    ) -> After {
        let levels = place.levels((&step.strategies, retried), section.stage);
        let mut failed = Failed {
            error,
            status,
            at_ms: self.model.now(),
            answer: None,
            now_ms: self.model.now(),
        };
        let mut asked = false;
        loop {
            failed.now_ms = self.model.now();
            failed.answer = self.state().nodes.get(id).and_then(|node| node.answer);
            let ruled = self.state().nodes.get(id).and_then(|node| node.stopped);
            let verdict = match (ruled, error) {
                (Some((Stop::RollBack, _)), ErrorType::UserMarkedFailure) => rolls_back(status),
                _ => judge(&levels, &failed),
            };
            if asked && self.is_aborted(&section.stage.id) {
                self.closes(id, Status::Aborted);
                return After::Flow(Flow::Halt(Halt::Abort));
            }
            match verdict {
                Verdict::Again(after) => {
                    self.fails(id, status);
                    return After::Again(failed_at(&failed, asked) + after);
                }
                Verdict::GroupAgain { level, after } => {
                    self.fails(id, status);
                    let then = GroupThen::Again {
                        at_ms: failed_at(&failed, asked) + after,
                    };
                    let depth = place.depth() - level;
                    return After::Flow(Flow::Halt(Halt::Group { depth, then }));
                }
                Verdict::Over { status, halt } => {
                    let flow = self.over(section, place, (step, id), status, halt).await;
                    return After::Flow(flow);
                }
                Verdict::Ask { until } => {
                    if self.stops(section) == Some(Halt::Deadline) {
                        self.fails(id, Status::Expired);
                        return After::Flow(Flow::Halt(Halt::Deadline));
                    }
                    asked = true;
                    self.asks(id, false, 1);
                    self.set(id, |node| {
                        node.status = Status::InterventionWaiting;
                        node.open = false;
                        node.votes_wanted = false;
                        node.asks = true;
                    });
                    let limit = section.deadline.unwrap_or(u64::MAX / 4);
                    self.hold_until(until.min(limit)).await;
                }
            }
        }
    }

    /// A failure that nothing is tried about any more.
    async fn over(
        &self,
        section: &Section<'_>,
        place: &Place<'_>,
        (step, id): (&Step, &str),
        status: Status,
        halt: Option<Halt>,
    ) -> Flow {
        if status == Status::Aborted {
            section.fails(place, place.loop_of(step));
            self.closes(id, status);
            // The function tells the others after it has recorded that, and may be held up between.
            self.model.passes().await;
            self.abort();
            return Flow::Halt(Halt::Abort);
        }
        match status.is_good() {
            true => self.closes(id, status),
            false => {
                section.fails(place, place.loop_of(step));
                self.fails(id, status);
            }
        }
        match halt {
            None => Flow::Through,
            Some(Halt::Group { depth: level, then }) => Flow::Halt(Halt::Group {
                depth: place.depth() - level,
                then,
            }),
            Some(halt) => Flow::Halt(halt),
        }
    }

    fn fails(&self, id: &str, status: Status) {
        self.closes(id, status);
        if !self.model.case.pipeline.barriers().is_empty() {
            self.wake();
        }
    }
}

/// When a failure was over: a question takes its time.
fn failed_at(failed: &Failed, asked: bool) -> u64 {
    if asked { failed.now_ms } else { failed.at_ms }
}

/// How a script ends that is not stopped.
fn played(script: Script, attempt: u32) -> End {
    let good = match script {
        Script::Good => true,
        Script::Bad | Script::Vanishes => false,
        Script::BadUntil(first) => attempt >= first,
    };
    match good {
        true => End::Good,
        false => End::Failed(ErrorType::Unknown, Status::Failed),
    }
}
