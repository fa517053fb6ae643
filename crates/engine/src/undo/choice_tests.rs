use std::collections::BTreeMap;

use slipway_model::id::{EntityId, RunId, StageId};
use slipway_model::status::Status;
use slipway_plan::{Plan, StagePlan};
use slipway_store::record::{Again, Origin, RunRecord, StageSummary, UndoRecord};

use super::super::Place;
use super::{Left, Which, left, may_undo, wanted};
use crate::fixture::{plan, run, stage, turn};
use crate::runs::not_started;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// `a`, then the turns of `b`.
fn planned() -> Plan {
    let turns = (0..2).map(|index| {
        let mut stage = stage(&format!("b_{index}"), Vec::new());
        stage.iteration = Some(turn("b", index, 2, 0));
        stage
    });
    plan(vec![vec![stage("a", Vec::new())], turns.collect()])
}

fn ended(status: Status) -> RunRecord {
    RunRecord {
        status,
        started_ms: 0,
        ..run(&planned())
    }
}

#[test]
fn only_young_runs_that_succeeded_are_rolled_back() {
    let undoes = RunRecord {
        origin: Some(Origin {
            run: RunId::new("q"),
            how: Again::Rollback,
            root: RunId::new("q"),
            root_started_ms: 0,
            stages: Vec::new(),
            kept: Vec::new(),
        }),
        ..ended(Status::Success)
    };
    for (run, days, expected) in [
        (ended(Status::Success), 30, None),
        (ended(Status::Success), 31, Some("more than 30 days ago")),
        (
            ended(Status::IgnoreFailed),
            1,
            Some("failures were ignored"),
        ),
        (ended(Status::Failed), 1, Some("ended Failed")),
        (
            ended(Status::Aborted),
            1,
            Some("was aborted, and only runs that succeeded"),
        ),
        (ended(Status::Skipped), 1, Some("ended Skipped")),
        (ended(Status::Running), 1, Some("has not ended (Running)")),
        (undoes, 1, Some("is itself the rollback of run q")),
    ] {
        let found = may_undo(&run, days * DAY_MS);
        match expected {
            None => assert_eq!(found, Ok(())),
            Some(why) => assert!(
                found.as_ref().is_err_and(|found| found.contains(why)),
                "{found:?}"
            ),
        }
    }
}

#[test]
fn stages_are_named_as_the_pipeline_or_the_plan_does() {
    let plan = planned();
    let run = RunId::new("r");
    let named = |names: &[&str]| {
        let which = Which::Named(names.iter().map(|name| (*name).to_owned()).collect());
        let found = wanted(&run, &plan, &which);
        found.map(|found| found.iter().map(|s| s.id.to_string()).collect::<Vec<_>>())
    };
    let ids = |text: &str| Ok(text.split(' ').map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(named(&["b", "a"]), ids("a b_0 b_1"));
    assert_eq!(named(&["b_1"]), ids("b_1"));
    assert_eq!(named(&[]), Err("no stage of run r is named".to_owned()));
    let unknown = "run r has no stage `c`; it has a, b".to_owned();
    assert_eq!(named(&["a", "c"]), Err(unknown));
    let place = Place {
        service: EntityId::new("s"),
        environment: EntityId::new("e"),
        infrastructure: EntityId::new("i"),
    };
    let nowhere = wanted(&run, &plan, &Which::At(place));
    let why = "no stage of run r deploys service s to environment e (infrastructure i)";
    assert_eq!(nowhere, Err(why.to_owned()));
}

/// A rollback `id` that stands so, with how its stages came out.
fn undo(id: &str, status: Status, plan: &Plan, stages: &[(&str, Status)]) -> RunRecord {
    let summary = |stage: &StagePlan| {
        let found = stages.iter().find(|(known, _)| *known == stage.id.as_str());
        StageSummary {
            undo: found.map(|(_, status)| UndoRecord {
                status: *status,
                started_ms: None,
                ended_ms: None,
                failure: None,
            }),
            ..not_started(stage)
        }
    };
    RunRecord {
        id: RunId::new(id),
        status,
        stages: plan.groups.iter().flatten().map(summary).collect(),
        ..run(plan)
    }
}

#[test]
fn a_stage_is_rolled_back_once_unless_that_fails() {
    use Status::{Aborted, Failed, Running, Success};
    let plan = plan(vec![vec![stage("a", Vec::new()), stage("b", Vec::new())]]);
    let all: Vec<&StagePlan> = plan.groups.iter().flatten().collect();
    let of = RunId::new("r");
    let rest = |names: &[&str]| {
        let kept = all.iter().copied();
        Left::Stages(kept.filter(|s| names.contains(&s.id.as_str())).collect())
    };
    for (undos, expected) in [
        (vec![], rest(&["a", "b"])),
        (
            vec![undo("u", Success, &plan, &[("a", Success), ("b", Success)])],
            Left::Nothing(RunId::new("u")),
        ),
        (
            vec![undo("u", Failed, &plan, &[("a", Failed), ("b", Success)])],
            rest(&["a"]),
        ),
        (
            vec![undo("u", Aborted, &plan, &[("b", Success)])],
            rest(&["a"]),
        ),
        (
            vec![undo("u", Running, &plan, &[("b", Running)])],
            Left::Nothing(RunId::new("u")),
        ),
    ] {
        // The newest rollback of each stage is the one of all of them here.
        let known: BTreeMap<StageId, RunRecord> = undos
            .iter()
            .flat_map(|undo| all.iter().map(|s| (s.id.clone(), undo.clone())))
            .collect();
        assert_eq!(left(&of, &all, &known), expected);
    }
    // Only one of two is at work.
    let busy = undo("u", Running, &plan, &[("a", Running)]);
    let known = BTreeMap::from([(StageId::new("a"), busy)]);
    let found = left(&of, &all, &known);
    assert!(
        matches!(&found, Left::Busy(why) if why.contains("run u rolls stages of run r back already")),
        "{found:?}"
    );
}
