use slipway_model::id::RunId;
use slipway_model::status::Status;
use slipway_plan::{Plan, StagePlan};
use slipway_store::record::{Again, Origin, RunRecord, StageSummary};

use super::{groups, may_retry, same_stages, taken};
use crate::fixture::{plan, run, stage, turn};
use crate::runs::not_started;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// `a b+c d`: groups of stages.
fn planned(text: &str) -> Plan {
    let group = |group: &str| -> Vec<StagePlan> {
        let turns = |id: &str| match id.strip_suffix('*') {
            Some(of) => (0..3)
                .map(|index| {
                    let mut stage = stage(&format!("{of}_{index}"), Vec::new());
                    stage.iteration = Some(turn(of, index, 3, 0));
                    stage
                })
                .collect(),
            None => vec![stage(id, Vec::new())],
        };
        group.split('+').flat_map(turns).collect()
    };
    plan(text.split(' ').map(group).collect())
}

/// `a:Success b:Failed`: how stages ended.
fn ended(plan: &Plan, text: &str) -> Vec<StageSummary> {
    let status = |id: &str| {
        let mut words = text.split(' ').filter_map(|word| word.split_once(':'));
        match words.find(|(known, _)| *known == id).map(|(_, s)| s) {
            Some("s") => Status::Success,
            Some("i") => Status::IgnoreFailed,
            Some("k") => Status::Skipped,
            Some("f") => Status::Failed,
            Some("a") => Status::Aborted,
            _ => Status::NotStarted,
        }
    };
    let stages = plan.groups.iter().flatten();
    stages
        .map(|stage| StageSummary {
            status: status(stage.id.as_str()),
            ..not_started(stage)
        })
        .collect()
}

fn names<'a>(ids: impl IntoIterator<Item = &'a slipway_model::id::StageId>) -> String {
    let ids: Vec<&str> = ids.into_iter().map(|id| id.as_str()).collect();
    ids.join(" ")
}

#[test]
fn what_is_taken_over_and_what_runs_again() {
    for (pipeline, statuses, wanted, all, expected) in [
        ("a b c", "a:s b:f c:k", "b", false, "a | b"),
        ("a b c", "a:s b:f c:k", "a", false, " | a"),
        ("a b c", "a:i b:f c:k", "b", false, "a | b"),
        ("a b+c d", "a:s b:s c:f d:k", "c", false, "a b | c"),
        ("a b+c d", "a:s b:s c:f d:k", "b c", false, "a b | c"),
        ("a b+c d", "a:s b:s c:f d:k", "c", true, "a | b c"),
        ("a b+c+d", "a:s b:s c:f d:a", "d", false, "a b | c d"),
        ("a b+c d", "a:s b:s c:s d:f", "b", false, "a c | b"),
        ("a b+c d", "a:s b:s c:s d:f", "b", true, "a | b c"),
        (
            "a b*",
            "a:s b_0:s b_1:f b_2:s",
            "b",
            false,
            "a b_0 b_2 | b_1",
        ),
        (
            "a b*",
            "a:s b_0:s b_1:f b_2:s",
            "b_1",
            true,
            "a | b_0 b_1 b_2",
        ),
        (
            "a b c",
            "a:s b:f c:k",
            "x",
            false,
            "run r has no stage `x`; it has a, b, c",
        ),
        (
            "a b c",
            "a:s b:f c:k",
            "c",
            false,
            "stage `b` of run r is Failed: go on from it, or from an earlier one",
        ),
        (
            "a b c",
            "a:a",
            "b",
            false,
            "stage `a` of run r is Aborted: go on from it, or from an earlier one",
        ),
        (
            "a b+c d",
            "a:f",
            "a d",
            false,
            "stage `d` does not run beside a: name one stage to go on from, or several of one parallel block",
        ),
        (
            "a",
            "a:f",
            "",
            false,
            "no stage of run r is named to go on from",
        ),
    ] {
        let plan = planned(pipeline);
        let wanted: Vec<String> = wanted.split_whitespace().map(str::to_owned).collect();
        let found = taken(
            &RunId::new("r"),
            &plan,
            &ended(&plan, statuses),
            &wanted,
            all,
        );
        let found = match found {
            Ok(taken) => format!("{} | {}", names(&taken.kept), names(&taken.again)),
            Err(why) => why,
        };
        assert_eq!(
            found, expected,
            "{pipeline} {statuses} from {wanted:?}, all: {all}"
        );
    }
}

#[test]
fn a_run_is_offered_from_its_beginning_to_where_it_failed() {
    let plan = planned("a b+c d e");
    let offered = |statuses: &str| {
        groups(&plan, &ended(&plan, statuses)).map(|groups| {
            let ids: Vec<String> = groups
                .iter()
                .map(|group| names(group.iter().map(|stage| &stage.id)))
                .collect();
            ids.join(", ")
        })
    };
    assert_eq!(offered("a:s b:s c:f d:k e:s").as_deref(), Ok("a, b c"));
    assert_eq!(offered("").as_deref(), Ok("a"));
    assert_eq!(
        offered("a:s b:s c:i d:s e:s"),
        Err("none of its stages failed: run it again as a whole".to_owned())
    );
}

#[test]
fn a_pipeline_with_other_stages_is_refused_and_loops_may_turn_more_often() {
    let id = RunId::new("r");
    let same = |before: &str, now: &str| same_stages(&id, &planned(before), &planned(now));
    assert_eq!(same("a b+c d", "a c+b d"), Ok(()));
    assert_eq!(same("a b* b*", "a b*"), Ok(()));
    for (before, now) in [
        ("a b", "a"),
        ("a b", "b a"),
        ("a b c", "a b+c"),
        ("a", "a b"),
    ] {
        let why = same(before, now).unwrap_err();
        assert!(why.contains("have changed since run r"), "{why}");
    }
    assert_eq!(
        same("a b+c", "a b d").unwrap_err(),
        "the stages of the pipeline have changed since run r: it had a, b beside c, it has a, b, d now; run it again as a whole"
    );
}

#[test]
fn only_runs_that_failed_within_thirty_days_are_retried() {
    let plan = planned("a");
    let of = |status, days: i64| {
        let run = RunRecord {
            status,
            plan: Some("digest".to_owned()),
            started_ms: 0,
            ..run(&plan)
        };
        may_retry(&run, days * DAY_MS)
    };
    for status in [
        Status::Failed,
        Status::Errored,
        Status::Aborted,
        Status::AbortedByFreeze,
        Status::Expired,
        Status::ApprovalRejected,
    ] {
        assert_eq!(of(status, 30), Ok(()), "{status:?}");
    }
    for (status, days, why) in [
        (Status::Running, 0, "has not ended"),
        (Status::NotStarted, 0, "has not ended"),
        (Status::Success, 0, "nothing to retry"),
        (Status::IgnoreFailed, 0, "nothing to retry"),
        (Status::Failed, 31, "more than 30 days ago"),
    ] {
        let refusal = of(status, days).unwrap_err();
        assert!(refusal.contains(why), "{refusal}");
    }
    // A retry is as old as its first run.
    let old = RunRecord {
        status: Status::Failed,
        plan: Some("digest".to_owned()),
        started_ms: 29 * DAY_MS,
        origin: Some(Origin {
            run: RunId::new("r0"),
            how: Again::Retry,
            root: RunId::new("r0"),
            root_started_ms: 0,
            stages: Vec::new(),
            kept: Vec::new(),
        }),
        ..run(&plan)
    };
    assert!(may_retry(&old, 31 * DAY_MS).is_err());
}
