//! How stages begin and end: conditions on earlier stages, rolling back, what is left behind. Pure.

use slipway_model::id::StageId;
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::{CHAINED, Node, StagePlan, WhenStatus};
use slipway_store::record::StageSummary;

use crate::lane::{
    Facts, Halt, LanePlan, WalkOutcome, any_step_ran, groups_to_undo, node_id, steps_verdict, worst,
};
use crate::name::Lane;
use crate::strategy::{self, Failed, Level, Undo, Verdict};

/// Whether a stage runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate<'p> {
    /// It runs.
    Run,
    /// It does not, and this is why.
    Skip(String),
    /// It does if this condition holds.
    Condition(&'p str),
}

/// What follows the steps of a stage.
#[derive(Clone, Debug, PartialEq)]
pub enum AfterSteps {
    /// Its rollback steps.
    RollBack,
    /// Its end.
    End(Ending),
    /// Its end, and the rollback of the whole run when its other stages have ended.
    EndAndUndoRun(Ending),
}

/// How a stage or a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// Its status.
    pub status: Status,
    /// Why it failed, and what is left behind.
    pub failure: Option<Failure>,
}

/// Decides by `when` whether `stage` runs after `earlier` stages.
///
/// `Success`, the default, wants that nothing failed; `Failure` does not see a stage that was rolled back
/// as failed, but sees one whose failure was ignored (developer.harness.io, *Failure strategies take
/// precedence over conditional executions*).
pub fn gate<'p>(stage: &'p StagePlan, earlier: &[StageSummary]) -> Gate<'p> {
    let wanted = stage
        .when
        .as_ref()
        .map_or(WhenStatus::Success, |w| w.status);
    let harmed = earlier.iter().any(|stage| !stage.status.is_good());
    if earlier.iter().any(|stage| stage.undoes_run) {
        return Gate::Skip("the run is being rolled back".to_owned());
    }
    // No stage runs after one that was frozen, whatever its condition (developer.harness.io, *Freeze deployments*).
    if earlier
        .iter()
        .any(|stage| stage.status == Status::AbortedByFreeze)
    {
        return Gate::Skip("a freeze stopped the run at an earlier stage".to_owned());
    }
    let failed = earlier.iter().any(|stage| {
        stage.status == Status::IgnoreFailed || (!stage.status.is_good() && !stage.rolled_back)
    });
    match wanted {
        WhenStatus::Success if harmed => {
            return Gate::Skip("an earlier stage did not succeed".to_owned());
        }
        WhenStatus::Failure if !failed => {
            return Gate::Skip(
                "no earlier stage failed, and its pipelineStatus is Failure".to_owned(),
            );
        }
        WhenStatus::Success | WhenStatus::Failure | WhenStatus::All => {}
    }
    match stage
        .when
        .as_ref()
        .and_then(|when| when.condition.as_deref())
    {
        Some(condition) => Gate::Condition(condition),
        None => Gate::Run,
    }
}

/// Decides what follows when the lane of a stage's steps has ended, or was lost.
pub fn after_steps(stage: &StagePlan, facts: &Facts, now_ms: i64) -> AfterSteps {
    let lane = steps_lane(stage);
    let by_stage = |error, status| by_stage(stage, error, status, now_ms);
    let (status, undo) = match steps_verdict(&lane, facts, now_ms) {
        // An abort never rolls back (developer.harness.io, *Abort a pipeline*).
        WalkOutcome::Unfinished | WalkOutcome::Halted(_) if facts.aborted => {
            (Status::Aborted, Undo::Nothing)
        }
        WalkOutcome::Walked => (section_status(&stage.steps, facts), Undo::Nothing),
        WalkOutcome::Halted(Halt::Abort) => (Status::Aborted, Undo::Nothing),
        WalkOutcome::Halted(Halt::Failure { undo }) => (section_status(&stage.steps, facts), undo),
        // A group answers for what halts it; none is around the stage's own nodes.
        WalkOutcome::Halted(Halt::Group { .. }) => {
            (section_status(&stage.steps, facts), Undo::Stage)
        }
        WalkOutcome::Halted(Halt::Deadline) => (
            worst([section_status(&stage.steps, facts), Status::Expired]),
            by_stage(ErrorType::Timeout, Status::Expired),
        ),
        WalkOutcome::Unfinished => (
            Status::Errored,
            by_stage(ErrorType::Unknown, Status::Errored),
        ),
    };
    let ran = steps_that_ran(&stage.steps, facts);
    if undo == Undo::Stage && has_undoing(stage, facts) && !ran.is_empty() {
        return AfterSteps::RollBack;
    }
    if undo == Undo::Run {
        let failure = failure_of(stage, facts, status);
        return AfterSteps::EndAndUndoRun(Ending { status, failure });
    }
    let mut failure = failure_of(stage, facts, status);
    if let Some(failure) = &mut failure
        && stage.stage_type == "Deployment"
        && !ran.is_empty()
    {
        let ran = ran.join(", ");
        let more = failure.left_behind.take();
        let more = more.map_or_else(String::new, |left| format!(". {left}"));
        failure.left_behind = Some(format!(
            "not rolled back; these steps had begun: {ran}{more}"
        ));
    }
    AfterSteps::End(Ending { status, failure })
}

/// Decides how a stage ended whose rollback lane has ended, or was lost. `stays` is what its steps changed and no step
/// takes back, as clauses.
pub fn after_rollback(stage: &StagePlan, facts: &Facts, stays: &[String], now_ms: i64) -> Ending {
    let lane = LanePlan::of(stage, &Lane::rollback(&stage.id));
    let walked =
        lane.is_some_and(|lane| steps_verdict(&lane, facts, now_ms) == WalkOutcome::Walked);
    let undone = walked && undone_status(stage, facts).is_good();
    let status = match section_status(&stage.steps, facts) {
        _ if facts.aborted && !undone => Status::Aborted,
        // The steps' lane was lost, or the stage ran out of time between two steps.
        status if status.is_good() => Status::Errored,
        status => status,
    };
    let mut failure = failure_of(stage, facts, status);
    if let Some(failure) = &mut failure {
        let ignored = undoing(stage, facts).flat_map(|nodes| ignored_steps(nodes, facts));
        let stays: Vec<String> = ignored.chain(stays.iter().cloned()).collect();
        let stays = (!stays.is_empty()).then(|| stays.join("; "));
        // What the failing step itself told of is no matter of the rollback, and stays.
        let own = failure.left_behind.take();
        failure.left_behind = match (undone, stays) {
            (true, None) if own.is_none() => {
                failure
                    .message
                    .push_str(" The stage was rolled back cleanly.");
                None
            }
            (true, stays) => {
                failure.message.push_str(" The stage was rolled back.");
                let all: Vec<String> = own.into_iter().chain(stays).collect();
                Some(all.join(" "))
            }
            (false, None) => Some(rollback_trouble(stage, facts)),
            (false, Some(stays)) => Some(format!("{} {stays}", rollback_trouble(stage, facts))),
        };
    }
    Ending { status, failure }
}

/// How rolling back a stage that had ended before came out, when its rollback lane has ended or was lost.
pub fn after_undo(stage: &StagePlan, facts: &Facts, now_ms: i64) -> Ending {
    let lane = LanePlan::of(stage, &Lane::rollback(&stage.id));
    let walked =
        lane.is_some_and(|lane| steps_verdict(&lane, facts, now_ms) == WalkOutcome::Walked);
    if walked && undone_status(stage, facts).is_good() {
        return Ending {
            status: Status::Success,
            failure: None,
        };
    }
    let status = match facts.aborted {
        true => Status::Aborted,
        false => worst([undone_status(stage, facts), Status::Failed]),
    };
    Ending {
        status,
        failure: Some(Failure {
            error: ErrorType::Unknown,
            message: format!("Stage {} could not be rolled back.", stage.identifier),
            left_behind: Some(rollback_trouble(stage, facts)),
        }),
    }
}

/// Whether there is something to roll back in a stage that has ended.
pub fn can_be_undone(stage: &StagePlan, summary: &StageSummary, facts: &Facts) -> bool {
    summary.status.is_final()
        && summary.status != Status::Skipped
        && !summary.rolled_back
        && has_undoing(stage, facts)
        && any_step_ran(&stage.steps, facts)
}

/// How a run ended whose stages came out as `stages`; those that never began do not count.
pub fn run_ending(stages: &[StageSummary], aborted: bool) -> Ending {
    let begun = || stages.iter().filter(|s| s.status != Status::NotStarted);
    let unfinished = begun().count() < stages.len();
    let stopped = |stage: &StageSummary| {
        let undo = stage.undo.as_ref();
        undo.is_some_and(|undo| undo.status == Status::Aborted)
    };
    let cut = ((aborted && unfinished) || begun().any(stopped)).then_some(Status::Aborted);
    let status = worst(begun().map(|stage| stage.status).chain(cut));
    let mut failure = begun()
        .filter(|stage| !stage.status.is_good())
        .find_map(|stage| stage.failure.clone());
    if let Some(failure) = &mut failure {
        tell_of_undoing(stages, failure);
    }
    Ending { status, failure }
}

/// How a run ended that was to roll back the stages `wanted` of another one, whose stages are `stages`.
pub fn undo_ending(stages: &[StageSummary], wanted: &[StageId], aborted: bool) -> Ending {
    let unbegun = |stage: &StageSummary| {
        let (status, why) = match aborted {
            true => (Status::Aborted, "the run was aborted before it began"),
            false => (
                Status::Errored,
                "it could not begin; the run's execution has the reason",
            ),
        };
        let failure = Failure {
            error: ErrorType::Unknown,
            message: format!("Stage {} was not rolled back: {why}.", stage.id),
            left_behind: None,
        };
        (status, Some(failure))
    };
    let wanted = stages.iter().filter(|stage| wanted.contains(&stage.id));
    let undone: Vec<_> = wanted
        .map(|stage| match &stage.undo {
            Some(undo) => (undo.status, undo.failure.clone()),
            None => unbegun(stage),
        })
        .collect();
    let status = worst(undone.iter().map(|(status, _)| *status));
    // The last stage came first.
    let mut failures = undone.into_iter().rev().filter_map(|(_, failure)| failure);
    let failure = failures.next().map(|first| {
        let more = failures.map(told);
        let left: Vec<String> = first.left_behind.clone().into_iter().chain(more).collect();
        Failure {
            left_behind: (!left.is_empty()).then(|| left.join(" ")),
            ..first
        }
    });
    Ending { status, failure }
}

/// A failure with what it left behind.
fn told(failure: Failure) -> String {
    match failure.left_behind {
        Some(left) => format!("{} {left}", failure.message),
        None => failure.message,
    }
}

/// Adds to the failure of a run how rolling back its stages came out.
fn tell_of_undoing(stages: &[StageSummary], failure: &mut Failure) {
    let undone = |good: bool| {
        let chosen = stages.iter().filter(move |stage| {
            let undo = stage.undo.as_ref();
            undo.is_some_and(|undo| undo.status.is_good() == good)
        });
        chosen.map(|stage| stage.id.as_str()).collect::<Vec<_>>()
    };
    let good = undone(true).join(", ");
    if !good.is_empty() {
        let text = format!(" The run was rolled back: {good}.");
        failure.message.push_str(&text);
    }
    let troubles = stages.iter().filter_map(|stage| {
        let failure = stage.undo.as_ref()?.failure.clone()?;
        Some(told(failure))
    });
    let left: Vec<String> = failure
        .left_behind
        .take()
        .into_iter()
        .chain(troubles)
        .chain(runs_that_stay(stages))
        .collect();
    failure.left_behind = (!left.is_empty()).then(|| left.join(" "));
}

/// The runs of other pipelines that stages of a run that was rolled back had begun: each is a run of its own, which Harness
/// does not roll back either.
fn runs_that_stay(stages: &[StageSummary]) -> Option<String> {
    let undone = stages.iter().any(|stage| stage.undoes_run);
    let ran = |stage: &&StageSummary| {
        stage.stage_type == CHAINED && stage.started_ms.is_some() && stage.status != Status::Skipped
    };
    let ran: Vec<&str> = stages
        .iter()
        .filter(ran)
        .map(|stage| stage.id.as_str())
        .collect();
    (undone && !ran.is_empty()).then(|| {
        format!(
            "What other pipelines deployed for this run stays: stage {} ran one; roll its run back by itself.",
            ran.join(", ")
        )
    })
}

fn steps_lane(stage: &StagePlan) -> LanePlan<'_> {
    LanePlan {
        lane: Lane::steps(&stage.id),
        stage,
        nodes: &stage.steps,
        section: &stage.steps,
        groups: Vec::new(),
        block: None,
    }
}

/// What the stage's own strategies want undone after a failure that no step stands for. Nothing is tried again, and
/// nobody is asked.
fn by_stage(stage: &StagePlan, error: ErrorType, status: Status, now_ms: i64) -> Undo {
    match verdict(stage, error, status, now_ms) {
        Verdict::Over {
            halt: Some(Undo::Stage | Undo::Group(_)),
            ..
        } => Undo::Stage,
        Verdict::Over {
            halt: Some(Undo::Run),
            ..
        } => Undo::Run,
        _ => Undo::Nothing,
    }
}

/// What the stage's own strategies make of a failure that no step stands for.
fn verdict(stage: &StagePlan, error: ErrorType, status: Status, now_ms: i64) -> Verdict {
    let level = |strategies| Level {
        strategies,
        retried: u32::MAX,
    };
    let failed = Failed {
        is_group: false,
        refused: &[],
        error,
        status,
        at_ms: i64::MIN,
        limit_ms: None,
        answer: None,
        now_ms,
    };
    let levels = [level(&[][..]), level(&stage.failure_strategies)];
    strategy::judge(&levels, &failed)
}

/// How a stage ends that fails before it begins, and whether its run is rolled back then: as its own failure strategies
/// say. Nobody is asked, and nothing is tried again.
pub(crate) fn unbegun(
    stage: &StagePlan,
    error: ErrorType,
    failed: Status,
    now_ms: i64,
) -> (Status, bool) {
    match verdict(stage, error, failed, now_ms) {
        Verdict::Over { status, halt } => (status, halt == Some(Undo::Run)),
        _ => (failed, false),
    }
}

fn section_status(nodes: &[Node], facts: &Facts) -> Status {
    worst(nodes.iter().filter_map(|node| facts.status(node_id(node))))
}

fn failure_of(stage: &StagePlan, facts: &Facts, status: Status) -> Option<Failure> {
    if status.is_good() {
        return None;
    }
    let first = failed_steps(&stage.steps, facts).into_iter().next();
    // A loop that could not be taken apart has no step that failed.
    let block = || {
        let mut all = facts.nodes.values();
        all.find_map(|fact| fact.failure.clone().filter(|_| !fact.status.is_good()))
    };
    Some(first.or_else(block).unwrap_or_else(|| Failure {
        error: match status {
            Status::Expired => ErrorType::Timeout,
            _ => ErrorType::Unknown,
        },
        message: match status {
            Status::Expired => format!("Stage {} ran out of time.", stage.identifier),
            Status::Aborted => format!("Stage {} was aborted.", stage.identifier),
            _ => format!(
                "Stage {} stopped without an end; its execution in Step Functions has the reason.",
                stage.identifier
            ),
        },
        left_behind: None,
    }))
}

/// What a person does where nothing more is done by itself: a rollback is not rolled back.
const BY_HAND: &str =
    "Nothing more is tried: look at what runs there, put it right, then run the pipeline again.";

/// The lists of steps that roll a stage back, in order: those of its groups, and its own.
fn undoing<'p>(stage: &'p StagePlan, facts: &Facts) -> impl Iterator<Item = &'p [Node]> {
    let groups = groups_to_undo(stage, facts).into_iter();
    let groups = groups.filter_map(|way| way.last().map(|group| group.rollback_steps.as_slice()));
    groups.chain([stage.rollback_steps.as_slice()])
}

/// Whether a stage, as far as it came, has steps that roll it back.
pub(crate) fn has_undoing(stage: &StagePlan, facts: &Facts) -> bool {
    undoing(stage, facts).any(|nodes| !nodes.is_empty())
}

fn undone_status(stage: &StagePlan, facts: &Facts) -> Status {
    worst(undoing(stage, facts).map(|nodes| section_status(nodes, facts)))
}

fn rollback_trouble(stage: &StagePlan, facts: &Facts) -> String {
    let mut failed = undoing(stage, facts).flat_map(|nodes| failed_steps(nodes, facts));
    match failed.next() {
        Some(failure) => {
            let more = failure.left_behind.map(|l| format!(" Left behind: {l}"));
            let told = format!("{}{}", failure.message, more.unwrap_or_default());
            let told = told.trim_end();
            let stop = if told.ends_with(['.', '!', '?']) {
                ""
            } else {
                "."
            };
            format!("rolling back failed. {told}{stop} {BY_HAND}")
        }
        None => format!("rolling back did not come to its end. {BY_HAND}"),
    }
}

/// Failures of the steps below `nodes`, in order, each with the step's name in front.
fn failed_steps(nodes: &[Node], facts: &Facts) -> Vec<Failure> {
    let mut failures = Vec::new();
    each_step(nodes, &mut |step| {
        let Some(fact) = facts.nodes.get(&step.id) else {
            return;
        };
        if let (false, Some(failure)) = (fact.status.is_good(), &fact.failure) {
            let mut failure = failure.clone();
            failure.message = format!("Step {}: {}", step.identifier, failure.message);
            failures.push(failure);
        }
    });
    failures
}

/// Failures of rollback steps that a failure strategy or a person had ignored: what the step was to bring back is not known
/// to be back.
fn ignored_steps(nodes: &[Node], facts: &Facts) -> Vec<String> {
    let mut ignored = Vec::new();
    each_step(nodes, &mut |step| {
        let fact = facts.nodes.get(&step.id);
        let Some(fact) = fact.filter(|fact| fact.status == Status::IgnoreFailed) else {
            return;
        };
        let why = fact.failure.as_ref().map(|failure| told(failure.clone()));
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        ignored.push(format!(
            "rollback step {} failed and that was ignored{why}",
            step.identifier
        ));
    });
    ignored
}

fn steps_that_ran(nodes: &[Node], facts: &Facts) -> Vec<String> {
    let mut ran = Vec::new();
    each_step(nodes, &mut |step| {
        let status = facts.status(&step.id);
        if status.is_some_and(|status| status != Status::Skipped) {
            ran.push(step.identifier.to_string());
        }
    });
    ran
}

/// The identifier of a stage in the pipeline: a turn of a loop has one of its own.
pub(crate) fn written(stage: &StagePlan) -> &str {
    match &stage.iteration {
        Some(turn) => turn.of.as_str(),
        None => stage.identifier.as_str(),
    }
}

/// Visits every step below `nodes`, in the order of the YAML.
pub(crate) fn each_step<'p>(nodes: &'p [Node], visit: &mut impl FnMut(&'p slipway_plan::StepPlan)) {
    for node in nodes {
        match node {
            Node::Step(step) => visit(step),
            other => each_step(crate::lane::children(other), visit),
        }
    }
}

#[cfg(test)]
#[path = "stage_tests.rs"]
mod tests;
