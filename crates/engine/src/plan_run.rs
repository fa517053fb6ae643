//! The use case of `Plan` in the pipeline machine: which stages run, in which order.

use serde::Serialize;
use slipway_model::id::{RunId, StageId};
use slipway_model::status::Status;
use slipway_plan::StagePlan;
use slipway_store::record::RunRecord;

use crate::begin::LaneStart;
use crate::copy::take_over;
use crate::error::{Doing, RunError};
use crate::name;
use crate::notify::Event;
use crate::runs::Runs;

/// Answer of `Plan`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Planned {
    /// Groups that run one after the other.
    pub groups: Vec<Group>,
    /// Which part of the run they are ([`slipway_plan::Plan::parts`]), from 0.
    pub part: usize,
}

/// Stages that the machine walks together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// How many run at once; 0 is no limit. Stages in order are one group of concurrency 1, which saves a
    /// state for each.
    pub concurrency: u32,
    /// The stages.
    pub stages: Vec<StageStart>,
}

/// How to start a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageStart {
    /// Name of the execution.
    pub execution: String,
    /// Its input.
    pub input: StageInput,
}

/// Input of the stage machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StageInput {
    /// The run.
    pub run_id: RunId,
    /// The stage.
    pub stage_id: StageId,
    /// 0 for the first attempt.
    pub attempt: u32,
    /// The lane of its rollback steps, where the stage has ended and is rolled back with its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roll_back: Option<LaneStart>,
}

/// Records that a run is running, and tells the order of its stages, up to the first that loop over what the run
/// brings forth until then ([`crate::stage_loop`]). The plan itself was made when the run
/// was accepted, so that its faults were told to who asked for it. A run that goes on from another one, or rolls it
/// back, takes over first what that one did. Repeating it changes nothing.
pub async fn plan_run(runs: &Runs, run: &RunId) -> Result<Planned, RunError> {
    take_over(runs, &runs.run(run).await?).await?;
    let (record, plan) = runs.load_written(run).await?;
    if record.status == Status::NotStarted {
        let begun = runs.store.begin_run(&record).await;
        begun.doing(|| format!("record that run {run} is running"))?;
    }
    runs.tell(run, &plan, &[Event::PipelineStart]).await;
    let first = plan.parts().into_iter().next().unwrap_or_default();
    let first = plan.groups.get(first).unwrap_or_default();
    Ok(Planned {
        groups: groups(&record, first),
        part: 0,
    })
}

/// Groups of a plan, with neighbours of one stage each drawn together, without stages whose results were
/// taken over from another run.
pub fn groups(run: &RunRecord, planned: &[Vec<StagePlan>]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for stages in planned {
        let own = |stage: &&StagePlan| *run.doer(&stage.id) == run.id;
        let stages: Vec<&StagePlan> = stages.iter().filter(own).collect();
        let starts = stages.iter().map(|stage| start(&run.id, stage));
        match groups.last_mut() {
            _ if stages.is_empty() => {}
            Some(last) if last.concurrency == 1 && stages.len() == 1 => last.stages.extend(starts),
            _ => groups.push(Group {
                concurrency: concurrency(&stages),
                stages: starts.collect(),
            }),
        }
    }
    groups
}

/// How many stages of a group run at once: all of them, unless a loop among them says less.
fn concurrency(stages: &[&StagePlan]) -> u32 {
    let loops = stages.iter().filter_map(|stage| stage.iteration.as_ref());
    let limits = loops
        .map(|turn| turn.concurrency)
        .filter(|limit| *limit > 0);
    limits.min().unwrap_or(u32::from(stages.len() == 1))
}

fn start(run: &RunId, stage: &StagePlan) -> StageStart {
    StageStart {
        execution: name::stage_execution(run, &stage.id, 0),
        input: StageInput {
            run_id: run.clone(),
            stage_id: stage.id.clone(),
            attempt: 0,
            roll_back: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use slipway_store::record::{Again, Origin};

    use super::*;
    use crate::fixture::{plan, stage};

    #[test]
    fn stages_in_order_share_a_group_and_parallel_ones_have_their_own() {
        let of = |ids: &[&str]| {
            ids.iter()
                .map(|id| stage(id, Vec::new()))
                .collect::<Vec<_>>()
        };
        let plan = plan(vec![of(&["a"]), of(&["b"]), of(&["c", "d"]), of(&["e"])]);
        let run = RunRecord {
            id: RunId::new("r"),
            ..crate::fixture::run(&plan)
        };
        let told = |run: &RunRecord| -> Vec<String> {
            let group = |group: &Group| {
                let names: Vec<&str> = group.stages.iter().map(|s| s.execution.as_str()).collect();
                format!("{}: {}", group.concurrency, names.join(" "))
            };
            groups(run, &plan.groups).iter().map(group).collect()
        };
        assert_eq!(told(&run), ["1: r-a-0 r-b-0", "0: r-c-0 r-d-0", "1: r-e-0"]);
        // What an earlier run did is not done again.
        let kept = |ids: &[&str]| RunRecord {
            origin: Some(Origin {
                run: RunId::new("q"),
                how: Again::Retry,
                root: RunId::new("q"),
                root_started_ms: 0,
                stages: Vec::new(),
                kept: ids
                    .iter()
                    .map(|id| (StageId::new(*id), RunId::new("q")))
                    .collect(),
            }),
            ..run.clone()
        };
        assert_eq!(told(&kept(&["a", "b", "c"])), ["1: r-d-0 r-e-0"]);
        assert_eq!(
            told(&kept(&["a"])),
            ["1: r-b-0", "0: r-c-0 r-d-0", "1: r-e-0"]
        );
        let mut turns = of(&["t_0", "t_1", "t_2"]);
        for (turn, stage) in turns.iter_mut().enumerate() {
            stage.iteration = Some(crate::fixture::turn("t", turn, 3, 2));
        }
        let limited = crate::fixture::plan(vec![turns]);
        assert_eq!(groups(&run, &limited.groups)[0].concurrency, 2);
    }
}
