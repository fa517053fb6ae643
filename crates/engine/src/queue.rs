//! Queues: `Queue` steps hold a key of the account, first come first served, until their stage or run has ended.
//! Source: docs platform/pipelines/controlling-pipelines/control-resource-usage-with-queue-steps. They say nothing of a run
//! that asks for what it has. It does not wait for itself: what a stage holds, its run may take over, what a run holds, its
//! stages have as well, and so have the runs of pipelines that it runs, since they are parts of it. Such runs take turns among themselves, and hold the key too: one that outlives its parent, because it
//! is still being stopped, has it until it ends.

use serde_json::Value;
use slipway_model::id::{AccountId, NodeId, PrincipalId, RunId, StageId};
use slipway_model::status::Status;
use slipway_plan::{Node, Plan};
use slipway_store::record::{Again, NodeRecord, RunRecord, SignalRecord};
use slipway_store::{Claim, Holder, StoreError, Turn};

use crate::error::{Doing, RunError};
use crate::runs::Runs;
use crate::wake::wake;

/// The step type.
pub const STEP: &str = "Queue";

/// What the line of a hold is woken by: the run behind this is to look again.
const RUN: &str = "run:";

/// How long a key is held: the `scope` of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Until the stage has ended.
    Stage,
    /// Until the run has ended.
    Pipeline,
}

impl Scope {
    /// Reads it as YAML spells it.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "Stage" => Some(Self::Stage),
            "Pipeline" => Some(Self::Pipeline),
            _ => None,
        }
    }

    /// Who holds a key for this long. Steps of one stage, or of one run, hold it together.
    pub(crate) fn holder(self, run: &RunId, stage: &StageId) -> Holder {
        Holder {
            run: run.clone(),
            stage: match self {
                Self::Stage => stage.clone(),
                Self::Pipeline => StageId::new(""),
            },
            attempt: 0,
        }
    }
}

/// The hold of a key.
pub(crate) fn hold(account: &AccountId, key: &str) -> String {
    format!("queue/{account}/{key}")
}

/// What is noted of who stands in line, so that [`release_stage`] and [`release_run`] find it.
fn token(run: &RunId) -> String {
    format!("{RUN}{run}")
}

/// Takes a key for a stage of a run, or a place in its line. Asking again keeps the place. Those that the run holds it
/// for too, and that waited for others until now, are called.
///
/// # Errors
/// When the store cannot be read or written, or the line is full.
pub async fn take(
    runs: &Runs,
    run: &RunRecord,
    stage: &StageId,
    key: &str,
    scope: Scope,
) -> Result<Turn, RunError> {
    let doing = || format!("take the queue {key} for run {}", run.id);
    let whole = |run: &RunId| Scope::Pipeline.holder(run, stage);
    let above = runs_above(runs, run).await?;
    let mut within: Vec<Holder> = above.iter().map(whole).collect();
    let widens = match scope {
        Scope::Stage => {
            within.push(whole(&run.id));
            None
        }
        Scope::Pipeline => Some(Scope::Stage.holder(&run.id, stage)),
    };
    let claim = Claim {
        holder: scope.holder(&run.id, stage),
        within,
        widens,
        token: Some(token(&run.id)),
    };
    let name = hold(&run.scope.account, key);
    let claimed = runs.store.claim(&name, &claim).await.doing(doing)?;
    for next in claimed.called.iter().filter_map(|token| run_of(token)) {
        let kind = format!("queue:{key}:{}:{stage}:shared", run.id);
        call(runs, &next, key, kind).await?;
    }
    Ok(claimed.turn)
}

/// The runs whose steps run a run, the next one first.
async fn runs_above(runs: &Runs, run: &RunRecord) -> Result<Vec<RunId>, RunError> {
    let mut above = Vec::new();
    let mut parent = run.parent.as_ref().map(|parent| parent.run.clone());
    while let Some(id) = parent {
        let record = runs.run(&id).await?;
        above.push(id);
        parent = record.parent.map(|parent| parent.run);
    }
    Ok(above)
}

fn run_of(token: &str) -> Option<RunId> {
    token.strip_prefix(RUN).map(RunId::new)
}

/// Whether a plan has steps that hold keys.
pub(crate) fn is_used(plan: &Plan) -> bool {
    fn any(nodes: &[Node]) -> bool {
        nodes.iter().any(|node| match node {
            Node::Step(step) => step.step_type == STEP,
            Node::Group(group) => any(&group.nodes) || any(&group.rollback_steps),
            Node::Parallel(parallel) => any(&parallel.branches),
        })
    }
    let mut stages = plan.groups.iter().flatten();
    stages.any(|stage| any(&stage.steps) || any(&stage.rollback_steps))
}

/// Takes the keys again that a run took over with stages of the run that it goes on from: what those held until the
/// end of their run is held until the end of this one. Answers with the first key that it has to wait for; who gives
/// that back wakes the run.
pub(crate) async fn take_over(
    runs: &Runs,
    run: &RunRecord,
    plan: &Plan,
) -> Result<Option<String>, RunError> {
    let again = run
        .origin
        .as_ref()
        .is_some_and(|origin| origin.how == Again::Retry);
    if !again || !is_used(plan) {
        return Ok(None);
    }
    let nodes = runs.nodes(&run.id, None).await?;
    for node in nodes.values().filter(|node| node.status == Status::Success) {
        let kept = *run.doer(&node.stage) != run.id;
        let Some((key, Scope::Pipeline)) = held(node).filter(|_| kept) else {
            continue;
        };
        if take(runs, run, &node.stage, key, Scope::Pipeline).await? != Turn::Held {
            return Ok(Some(key.to_owned()));
        }
    }
    Ok(None)
}

/// What a step holds, and how long; `None` for other steps, and those whose spec was never resolved.
pub(crate) fn held(node: &NodeRecord) -> Option<(&str, Scope)> {
    let field = |name: &str| node.spec.get(name).and_then(Value::as_str);
    let scope = field("scope").and_then(Scope::parse)?;
    (node.node_type == STEP).then_some((field("key")?, scope))
}

/// Gives back what the steps of a stage hold until its end. Repeating it changes nothing.
pub(crate) async fn release_stage<'n>(
    runs: &Runs,
    account: &AccountId,
    nodes: impl Iterator<Item = &'n NodeRecord>,
) -> Result<(), RunError> {
    release(runs, account, nodes, Scope::Stage).await
}

/// Gives back what the steps of a run hold until its end. Repeating it changes nothing.
pub(crate) async fn release_run(
    runs: &Runs,
    account: &AccountId,
    run: &RunId,
) -> Result<(), RunError> {
    let nodes = runs.nodes(run, None).await?;
    release(runs, account, nodes.values(), Scope::Pipeline).await
}

async fn release<'n>(
    runs: &Runs,
    account: &AccountId,
    nodes: impl Iterator<Item = &'n NodeRecord>,
    scope: Scope,
) -> Result<(), RunError> {
    for node in nodes {
        let Some(key) = held(node).and_then(|(key, held)| (held == scope).then_some(key)) else {
            continue;
        };
        let holder = scope.holder(&node.run, &node.stage);
        let next = runs.store.release(&hold(account, key), &holder).await;
        let next = next.doing(|| format!("give back the queue {key}"))?;
        for next in next.iter().filter_map(|token| run_of(token)) {
            let kind = format!("queue:{key}:{}:{}", node.run, node.stage);
            call(runs, &next, key, kind).await?;
        }
    }
    Ok(())
}

/// Tells the next in line. It is recorded, so that a lane that is just about to wait hears it.
async fn call(runs: &Runs, next: &RunId, key: &str, kind: String) -> Result<(), RunError> {
    let signal = SignalRecord {
        run: next.clone(),
        node: NodeId::new(""),
        attempt: 0,
        kind,
        says: "your turn".to_owned(),
        who: PrincipalId::new("slipway"),
        at_ms: runs.clock.now_ms(),
    };
    match runs.store.put_signal(&signal).await {
        Ok(()) | Err(StoreError::AlreadyExists { .. }) => {}
        Err(error) => Err(error).doing(|| format!("call run {next} to the queue {key}"))?,
    }
    wake(runs, next).await
}
