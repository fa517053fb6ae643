//! Queues: `Queue` steps hold a key of the account, first come first served, until their stage or run has ended.
//! Source: docs platform/pipelines/controlling-pipelines/control-resource-usage-with-queue-steps.

use serde_json::Value;
use slipway_model::id::{AccountId, NodeId, PrincipalId, RunId, StageId};
use slipway_model::status::Status;
use slipway_plan::{Node, Plan};
use slipway_store::record::{Again, NodeRecord, RunRecord, SignalRecord};
use slipway_store::{Holder, StoreError, Turn};

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
    pub fn holder(self, run: &RunId, stage: &StageId) -> Holder {
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
pub fn hold(account: &AccountId, key: &str) -> String {
    format!("queue/{account}/{key}")
}

/// What is noted of who stands in line, so that [`release_stage`] and [`release_run`] find it.
pub fn token(run: &RunId) -> String {
    format!("{RUN}{run}")
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
        let holder = Scope::Pipeline.holder(&run.id, &node.stage);
        let name = hold(&plan.scope.account, key);
        let turn = runs.store.hold(&name, &holder, Some(&token(&run.id))).await;
        let turn = turn.doing(|| format!("take the queue {key} again for run {}", run.id))?;
        if turn != Turn::Held {
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
        if let Some(run) = next.as_deref().and_then(|token| token.strip_prefix(RUN)) {
            call(runs, &RunId::new(run), node, key).await?;
        }
    }
    Ok(())
}

/// Tells the next in line. It is recorded, so that a lane that is just about to wait hears it.
async fn call(runs: &Runs, next: &RunId, node: &NodeRecord, key: &str) -> Result<(), RunError> {
    let signal = SignalRecord {
        run: next.clone(),
        node: NodeId::new(""),
        attempt: 0,
        kind: format!("queue:{key}:{}:{}", node.run, node.stage),
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
