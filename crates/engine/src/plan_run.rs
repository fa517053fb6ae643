//! The use case of `Plan` in the pipeline machine: which stages run, in which order.

use serde::Serialize;
use slipway_model::id::{RunId, StageId};
use slipway_model::status::Status;
use slipway_plan::{Plan, StagePlan};
use slipway_store::StoreError;
use slipway_store::record::RunRecord;

use crate::begin::{LaneStart, begins_at_once};
use crate::copy::take_over;
use crate::error::{Doing, RunError};
use crate::name;
use crate::notify::{Event, warn_of_plan};
use crate::runs::Runs;

/// Answer of `Plan`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Planned {
    /// Groups that run one after the other.
    pub groups: Vec<Group>,
    /// Which part of the run they are ([`slipway_plan::Plan::parts`]), from 0.
    pub part: usize,
}

/// Stages that the machine walks together, in lines side by side.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Group {
    /// The lines.
    pub lines: Vec<Line>,
    /// The limit of the narrowest line, and all stages: what machines read that are older than lines. An execution goes on
    /// with the definition that it began with.
    pub concurrency: u32,
    /// See `concurrency`.
    pub stages: Vec<StageStart>,
}

/// Stages that share a limit of how many run at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// How many run at once; 0 is no limit. Stages in order are one line of concurrency 1, which saves a
    /// state for each.
    pub concurrency: u32,
    /// The stages.
    pub stages: Vec<StageStart>,
}

impl Group {
    /// A group of lines.
    pub(crate) fn of(lines: Vec<Line>) -> Self {
        let mut group = Self {
            lines,
            ..Self::default()
        };
        let limits = group.lines.iter().map(|line| line.concurrency);
        group.concurrency = limits.filter(|limit| *limit > 0).min().unwrap_or(0);
        let stages = group.lines.iter().flat_map(|line| &line.stages);
        group.stages = stages.cloned().collect();
        group
    }

    /// Appends a stage to a group whose stages run in order.
    fn append(&mut self, stage: StageStart) {
        if let Some(line) = self.lines.first_mut() {
            line.stages.push(stage.clone());
        }
        self.stages.push(stage);
    }

    fn is_in_order(&self) -> bool {
        matches!(self.lines.as_slice(), [line] if line.concurrency == 1)
    }
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
    let (record, plan) = runs.load_written(run).await?;
    take_over(runs, &record).await?;
    if record.status == Status::NotStarted {
        warn_of_plan(runs, run, &plan).await?;
        let begun = begin(runs, &record, &plan).await;
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

/// Records that a run is running, and its first stage with it where that is sure to begin.
async fn begin(runs: &Runs, run: &RunRecord, plan: &Plan) -> Result<(), StoreError> {
    if let Some(first) = begins_at_once(run, plan, runs.clock.now_ms()) {
        match runs.store.begin_run(run, Some(&first)).await {
            // Another invocation was faster, and the stage may have gone on since.
            Err(StoreError::Conflict { .. }) => {}
            begun => return begun,
        }
    }
    runs.store.begin_run(run, None).await
}

/// Groups of a plan, with neighbours of one stage each drawn together, without stages whose results were
/// taken over from another run.
pub fn groups(run: &RunRecord, planned: &[Vec<StagePlan>]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for stages in planned {
        let own = |stage: &&StagePlan| *run.doer(&stage.id) == run.id;
        let stages: Vec<&StagePlan> = stages.iter().filter(own).collect();
        match (groups.last_mut(), stages.as_slice()) {
            (_, []) => {}
            (Some(last), [stage]) if last.is_in_order() => last.append(start(&run.id, stage)),
            _ => groups.push(Group::of(lines(&run.id, &stages))),
        }
    }
    groups
}

/// The lines of stages side by side: each loop that limits how many of its turns run at once has its own, the others
/// share one.
fn lines(run: &RunId, stages: &[&StagePlan]) -> Vec<Line> {
    let mut lines: Vec<(Option<&str>, Line)> = Vec::new();
    for stage in stages {
        let limited = stage.iteration.as_ref();
        let limited = limited.filter(|turn| turn.concurrency > 0);
        let name = limited.map(|turn| turn.of.as_str());
        let start = start(run, stage);
        match lines.iter_mut().find(|(known, _)| *known == name) {
            Some((_, line)) => line.stages.push(start),
            None => lines.push((
                name,
                Line {
                    concurrency: limited.map_or(0, |turn| turn.concurrency),
                    stages: vec![start],
                },
            )),
        }
    }
    let mut lines: Vec<Line> = lines.into_iter().map(|(_, line)| line).collect();
    if let ([_], [line]) = (stages, lines.as_mut_slice()) {
        // Alone it may as well be the first of several in order.
        line.concurrency = line.concurrency.max(1);
    }
    lines
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
            groups(run, &plan.groups).iter().map(shown).collect()
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
    }

    fn shown(group: &Group) -> String {
        let line = |line: &Line| {
            let names: Vec<&str> = line.stages.iter().map(|s| s.execution.as_str()).collect();
            format!("{}: {}", line.concurrency, names.join(" "))
        };
        group.lines.iter().map(line).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_stage_begins_with_its_run_where_nothing_decides_about_it_and_nothing_is_waited_for() {
        let plain = || StagePlan {
            stage_type: "Approval".to_owned(),
            ..stage("a", Vec::new())
        };
        let sure = |run: &RunRecord, stages: Vec<StagePlan>| {
            let plan = plan(vec![stages, vec![plain()]]);
            begins_at_once(run, &plan, 7).map(|first| (first.id, first.status, first.started_ms))
        };
        let run = crate::fixture::run(&plan(Vec::new()));
        let begun = (StageId::new("a"), Status::Running, Some(7));
        assert_eq!(sure(&run, vec![plain()]), Some(begun));

        let frozen = stage("a", Vec::new());
        let asked = StagePlan {
            start_within: Some(60),
            ..plain()
        };
        let conditional = StagePlan {
            when: Some(slipway_plan::When {
                status: slipway_plan::WhenStatus::Success,
                condition: Some("<+input>".to_owned()),
            }),
            ..plain()
        };
        for unsure in [
            vec![frozen],
            vec![asked],
            vec![conditional],
            vec![plain(), plain()],
        ] {
            assert_eq!(sure(&run, unsure), None);
        }
        let aborted = RunRecord {
            abort: Some((slipway_model::id::PrincipalId::new("sam"), 1)),
            ..run
        };
        assert_eq!(sure(&aborted, vec![plain()]), None);
    }

    #[test]
    fn a_loop_limits_its_own_turns_only() {
        let turns = |of: &str, count: usize, limit: u32| -> Vec<StagePlan> {
            let turn = |index| {
                let mut stage = stage(&format!("{of}_{index}"), Vec::new());
                stage.iteration = Some(crate::fixture::turn(of, index, count, limit));
                stage
            };
            (0..count).map(turn).collect()
        };
        let mut beside = vec![stage("a", Vec::new())];
        beside.extend(turns("s", 3, 2));
        beside.extend(turns("t", 2, 1));
        beside.extend(turns("u", 2, 0));
        beside.push(stage("b", Vec::new()));
        let plan = plan(vec![beside, turns("v", 2, 1), vec![stage("c", Vec::new())]]);
        let run = RunRecord {
            id: RunId::new("r"),
            ..crate::fixture::run(&plan)
        };
        let groups = groups(&run, &plan.groups);
        let shown: Vec<String> = groups.iter().map(shown).collect();
        assert_eq!(
            shown,
            [
                "0: r-a-0 r-u_0-0 r-u_1-0 r-b-0, 2: r-s_0-0 r-s_1-0 r-s_2-0, 1: r-t_0-0 r-t_1-0",
                "1: r-v_0-0 r-v_1-0 r-c-0"
            ]
        );
        // Machines that know no lines keep within every limit.
        assert_eq!((groups[0].concurrency, groups[0].stages.len()), (1, 9));
        assert_eq!(groups[1].stages.len(), 3);
    }
}
