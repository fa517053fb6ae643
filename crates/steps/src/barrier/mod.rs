//! `Barrier`: waits until every place of the pipeline with the same `barrierRef` has been reached. Source:
//! BarrierStepInfo in the pipeline schema; docs: platform/pipelines/barriers.
//!
//! Who arrives records it as a signal of the run, which wakes the others. A place that is skipped by its condition is not
//! waited for; one that fails, is given up after a failure before it, or whose stage ends badly before it, fails the
//! others.
//!
//! A rollback has barriers of its own, where stages wait for one another that are rolled back. A stage that ends without
//! a rollback is not waited for.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use slipway_engine::lane::{GIVEN_UP, UNDECIDED};
use slipway_model::id::{NodeId, StageId};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::{Node, Plan};
use slipway_store::record::{NodeRecord, RunRecord, StageSummary};

use crate::context::StepContext;
use crate::step::{Progress, Step, Undo};
use crate::variable::{read, wrong};

/// Kind of the signal that says who has arrived.
const KIND: &str = "barrier";

/// The step.
pub struct Barrier;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    barrier_ref: String,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

/// Where a place of a barrier stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Reached,
    Awaited,
    /// It will not be reached, and nothing went wrong.
    Passed,
    /// It will not be reached, and this is why, after its name.
    Failed(&'static str),
}

#[async_trait]
impl Step for Barrier {
    fn step_type(&self) -> &'static str {
        "Barrier"
    }

    fn units(&self) -> &'static [&'static str] {
        &[]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        read::<Spec>(spec).err().into_iter().collect()
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it changes nothing")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let step = cx.step().identifier.to_string();
        let spec: Spec = read(cx.spec()).map_err(|message| wrong(&step, &message))?;
        let name = spec.barrier_ref;
        cx.say(KIND, &name).await?;
        let (run, nodes) = cx.run_so_far().await?;
        let mut awaited = 0_usize;
        for (_, node, place) in standing(cx.plan(), &name, &run, &nodes) {
            match place {
                Place::Reached | Place::Passed => {}
                Place::Awaited => awaited += 1,
                Place::Failed(why) => {
                    return Err(Failure {
                        error: ErrorType::Unknown,
                        message: format!("Barrier {name} cannot be passed: {node} {why}."),
                        left_behind: None,
                    });
                }
            }
        }
        Ok(match awaited {
            0 => Progress::Done(json!({"output": {"barrierRef": name}})),
            _ => Progress::Hold {
                time: cx.time_left(),
                status: Status::ResourceWaiting,
            },
        })
    }
}

/// The steps that a barrier still waits for, each with its stage; `nodes` are those of the run, oldest attempts first.
pub fn awaited<'p>(
    plan: &'p Plan,
    name: &str,
    run: &RunRecord,
    nodes: &[NodeRecord],
) -> Vec<(&'p StageId, &'p NodeId)> {
    let all = standing(plan, name, run, nodes).into_iter();
    let awaited = all.filter(|(_, _, place)| *place == Place::Awaited);
    awaited.map(|(stage, node, _)| (stage, node)).collect()
}

/// Where each place of a barrier stands.
fn standing<'p>(
    plan: &'p Plan,
    name: &str,
    run: &RunRecord,
    nodes: &[NodeRecord],
) -> Vec<(&'p StageId, &'p NodeId, Place)> {
    let stands = |at: At<'p>| {
        let newest = |id: &NodeId| nodes.iter().rev().find(|record| record.id == *id);
        let unrun = |record: &NodeRecord| {
            record.status == Status::Skipped || record.progress.get(UNDECIDED).is_some()
        };
        // What does not begin has steps that nothing is recorded of.
        let mut around = at.around.iter().copied();
        let record = around.find(|group| newest(group).is_some_and(unrun));
        let record = record.unwrap_or(at.node);
        let record = newest(record);
        let arrived = run
            .signals
            .iter()
            .any(|signal| signal.kind == KIND && signal.node == *at.node);
        let ended = run.stages.iter().find(|known| known.id == *at.stage);
        let given_up = |record: &NodeRecord| record.progress[GIVEN_UP] == true;
        let ended = ended.map(|stage| match at.undoes {
            true => undone(stage),
            false => (
                stage.status,
                "is not reached, because its stage failed before it",
            ),
        });
        let place = place(
            record.map(|record| (record.status, given_up(record))),
            arrived,
            ended,
        );
        (at.stage, at.node, place)
    };
    places(plan, name).into_iter().map(stands).collect()
}

/// How the rollback of a stage stands, and what that means for those who wait for it where it is over.
fn undone(stage: &StageSummary) -> (Status, &'static str) {
    let status = match &stage.undo {
        Some(undo) => undo.status,
        None if stage.rolled_back || !stage.status.is_final() => stage.status,
        // It is not rolled back.
        None => Status::Skipped,
    };
    (
        status,
        "is not reached, because its stage could not be rolled back that far",
    )
}

/// Where a place stands by the newest record of its step and whether that was given up, whether somebody arrived there,
/// and its stage: that, or its rollback, and why nobody comes where that went wrong.
fn place(
    step: Option<(Status, bool)>,
    arrived: bool,
    stage: Option<(Status, &'static str)>,
) -> Place {
    let failed = |status: Status| status.is_final() && !status.is_good();
    match (step, stage) {
        (Some((Status::Skipped, true)), _) => {
            Place::Failed("is not reached, because something failed before it")
        }
        (Some((Status::Skipped, false)), _) => Place::Passed,
        (Some((status, _)), _) if failed(status) => Place::Failed("failed"),
        _ if arrived => Place::Reached,
        (Some((status, _)), _) if status.is_final() => Place::Passed,
        (_, Some((stage, why))) if failed(stage) => Place::Failed(why),
        (_, Some((stage, _))) if stage.is_final() => Place::Passed,
        _ => Place::Awaited,
    }
}

/// A step that waits at a barrier.
struct At<'p> {
    stage: &'p StageId,
    node: &'p NodeId,
    /// The groups and loops around it, from the outside in.
    around: Vec<&'p NodeId>,
    /// Whether it is a rollback step.
    undoes: bool,
}

/// The steps of a plan that wait at a barrier. Those of one barrier are all of stages' steps or all of rollbacks
/// (`slipway_plan` refuses others), and none of the rollbacks of groups meets any.
fn places<'p>(plan: &'p Plan, name: &str) -> Vec<At<'p>> {
    fn search<'p>(
        nodes: &'p [Node],
        name: &str,
        groups: &mut Vec<&'p NodeId>,
        found: &mut Vec<(&'p NodeId, Vec<&'p NodeId>)>,
    ) {
        for node in nodes {
            match node {
                Node::Step(step) => {
                    let named = step.spec.get("barrierRef").and_then(Value::as_str);
                    if step.step_type == "Barrier" && named == Some(name) {
                        found.push((&step.id, groups.clone()));
                    }
                }
                Node::Group(group) => {
                    groups.push(&group.id);
                    search(&group.nodes, name, groups, found);
                    groups.pop();
                }
                Node::Parallel(parallel) => {
                    groups.push(&parallel.id);
                    search(&parallel.branches, name, groups, found);
                    groups.pop();
                }
            }
        }
    }
    let mut places = Vec::new();
    for stage in plan.groups.iter().flatten() {
        for (nodes, undoes) in [(&stage.steps, false), (&stage.rollback_steps, true)] {
            let mut found = Vec::new();
            search(nodes, name, &mut Vec::new(), &mut found);
            let here = found.into_iter().map(|(node, around)| At {
                stage: &stage.id,
                node,
                around,
                undoes,
            });
            places.extend(here);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use slipway_model::id::StageId;
    use slipway_store::record::{StageSummary, UndoRecord};

    use super::{Place, Status, place, undone};

    const EARLY: &str = "is not reached, because its stage failed before it";

    #[test]
    fn a_place_is_awaited_until_it_cannot_be_reached() {
        let table = [
            (None, false, None, Place::Awaited),
            (None, false, Some(Status::Running), Place::Awaited),
            (None, false, Some(Status::Skipped), Place::Passed),
            (None, false, Some(Status::Success), Place::Passed),
            (None, false, Some(Status::Failed), Place::Failed(EARLY)),
            (None, false, Some(Status::Aborted), Place::Failed(EARLY)),
            (Some((Status::Skipped, false)), false, None, Place::Passed),
            (
                Some((Status::Skipped, true)),
                false,
                None,
                Place::Failed("is not reached, because something failed before it"),
            ),
            // Its condition cannot be told, and that is ignored.
            (
                Some((Status::IgnoreFailed, false)),
                false,
                Some(Status::Running),
                Place::Passed,
            ),
            (Some((Status::Running, false)), true, None, Place::Reached),
            (
                Some((Status::ResourceWaiting, false)),
                true,
                Some(Status::Running),
                Place::Reached,
            ),
            (
                Some((Status::Success, false)),
                true,
                Some(Status::Success),
                Place::Reached,
            ),
            (
                Some((Status::Expired, false)),
                true,
                Some(Status::Running),
                Place::Failed("failed"),
            ),
        ];
        for (step, arrived, stage, expected) in table {
            assert_eq!(
                place(step, arrived, stage.map(|stage| (stage, EARLY))),
                expected,
                "{step:?} {arrived} {stage:?}"
            );
        }
    }

    #[test]
    fn a_rollback_is_awaited_until_its_stage_has_none_or_it_is_over() {
        let stage = |status, rolled_back, undo: Option<Status>| StageSummary {
            id: StageId::new("s"),
            name: "s".to_owned(),
            stage_type: "Custom".to_owned(),
            status,
            started_ms: None,
            ended_ms: None,
            failure: None,
            rolled_back,
            undoes_run: false,
            taken_apart: false,
            undo: undo.map(|status| UndoRecord {
                status,
                started_ms: None,
                ended_ms: None,
                failure: None,
            }),
        };
        let table = [
            (stage(Status::NotStarted, false, None), Place::Awaited),
            (stage(Status::Running, false, None), Place::Awaited),
            (stage(Status::Success, false, None), Place::Passed),
            (stage(Status::Failed, false, None), Place::Passed),
            (
                stage(Status::Success, false, Some(Status::NotStarted)),
                Place::Awaited,
            ),
            (
                stage(Status::Success, false, Some(Status::Running)),
                Place::Awaited,
            ),
            (
                stage(Status::Success, true, Some(Status::Success)),
                Place::Passed,
            ),
        ];
        for (stage, expected) in table {
            let told = (stage.status, stage.undo.clone());
            assert_eq!(
                place(None, false, Some(undone(&stage))),
                expected,
                "{told:?}"
            );
        }
        for stage in [
            stage(Status::Failed, true, None),
            stage(Status::Failed, false, Some(Status::Aborted)),
        ] {
            let place = place(None, false, Some(undone(&stage)));
            assert!(matches!(place, Place::Failed(why) if why.contains("rolled back")));
        }
    }
}
