//! Tables of what stages make of each other.

use serde_json::json;
use slipway_model::id::{NodeId, StageId};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::WhenStatus;
use slipway_store::record::StageSummary;

use super::{AfterSteps, Gate, after_rollback, after_steps, gate, run_ending};
use crate::fixture::{on, stage, step, when};
use crate::lane::{Facts, NodeFact};

fn ended(status: Status, rolled_back: bool) -> StageSummary {
    StageSummary {
        id: StageId::new("s"),
        name: "s".to_owned(),
        stage_type: "Custom".to_owned(),
        status,
        started_ms: Some(1),
        ended_ms: Some(2),
        failure: None,
        rolled_back,
        undoes_run: false,
        taken_apart: false,
        undo: None,
    }
}

#[test]
fn a_stage_runs_by_what_earlier_ones_came_to() {
    use WhenStatus::{All, Failure, Success};
    let table = [
        (vec![], Success, true),
        (vec![ended(Status::Success, false)], Success, true),
        (vec![ended(Status::Skipped, false)], Success, true),
        (vec![ended(Status::IgnoreFailed, false)], Success, true),
        (vec![ended(Status::Failed, false)], Success, false),
        (vec![ended(Status::Failed, true)], Success, false),
        (vec![ended(Status::Expired, false)], Success, false),
        (vec![ended(Status::Success, false)], Failure, false),
        (vec![ended(Status::Failed, false)], Failure, true),
        // One that was rolled back does not count as failed, one whose failure was ignored does.
        (vec![ended(Status::Failed, true)], Failure, false),
        (vec![ended(Status::IgnoreFailed, false)], Failure, true),
        (vec![ended(Status::Failed, true)], All, true),
    ];
    for (earlier, wanted, runs) in table {
        let mut next = stage("next", Vec::new());
        next.when = Some(when(wanted, None));
        let told = gate(&next, &earlier);
        assert_eq!(
            told == Gate::Run,
            runs,
            "{wanted:?} after {earlier:?}: {told:?}"
        );
    }
    let mut next = stage("next", Vec::new());
    next.when = Some(when(Success, Some("<+x>")));
    assert_eq!(gate(&next, &[]), Gate::Condition("<+x>"));
}

#[test]
fn a_run_is_as_bad_as_its_worst_stage() {
    use Status::{Aborted, Errored, Expired, Failed, IgnoreFailed, NotStarted, Skipped, Success};
    let table: &[(&[Status], bool, Status)] = &[
        (&[], false, Success),
        (&[Success, Skipped], false, Success),
        (&[Success, IgnoreFailed], false, IgnoreFailed),
        (&[Failed, Skipped], false, Failed),
        (&[Expired, Success], false, Expired),
        (&[Expired, Failed], false, Failed),
        (&[Errored, Failed], false, Errored),
        (&[Aborted, NotStarted], true, Aborted),
        (&[Success, NotStarted], true, Aborted),
        // The wish came too late.
        (&[Success, Success], true, Success),
        (&[Failed], true, Failed),
    ];
    for (statuses, aborted, wanted) in table {
        let stages: Vec<_> = statuses
            .iter()
            .map(|status| ended(*status, false))
            .collect();
        let ending = run_ending(&stages, *aborted);
        assert_eq!(ending.status, *wanted, "{statuses:?} {aborted}");
    }
}

fn fact(status: Status, message: &str) -> NodeFact {
    NodeFact {
        attempt: 0,
        status,
        started_ms: 0,
        ended_ms: Some(1),
        failure: (!status.is_good()).then(|| Failure {
            error: ErrorType::Unknown,
            message: message.to_owned(),
            left_behind: None,
        }),
        asked_ms: None,
        round: 0,
        base: 0,
        refused: Vec::new(),
        undecided: false,
    }
}

fn facts(of: &[(&str, Status, &str)]) -> Facts {
    let nodes = of
        .iter()
        .map(|(id, status, text)| (NodeId::new(*id), fact(*status, text)));
    Facts {
        nodes: nodes.collect(),
        ..Facts::default()
    }
}

#[test]
fn the_end_tells_what_is_left_behind() {
    let mut deploy = stage("deploy", vec![step("a"), step("b")]);
    let failed = facts(&[("a", Status::Success, ""), ("b", Status::Failed, "No.")]);
    let text = |failure: Option<Failure>| {
        let failure = failure.expect("a failure");
        format!(
            "{} | {}",
            failure.message,
            failure.left_behind.unwrap_or_default()
        )
    };

    let AfterSteps::End(ending) = after_steps(&deploy, &failed, 9) else {
        panic!("there is nothing to roll back with");
    };
    insta::assert_snapshot!(text(ending.failure), @"Step b: No. | not rolled back; these steps had begun: a, b");

    let mut cut = failed.clone();
    let stopped = cut.nodes.get_mut(&NodeId::new("b")).expect("a step");
    if let Some(failure) = &mut stopped.failure {
        failure.left_behind = Some("Service web is without its scaling.".to_owned());
    }
    let AfterSteps::End(ending) = after_steps(&deploy, &cut, 9) else {
        panic!("there is nothing to roll back with");
    };
    insta::assert_snapshot!(text(ending.failure), @"Step b: No. | not rolled back; these steps had begun: a, b. Service web is without its scaling.");

    deploy.rollback_steps = vec![step("undo")];
    assert_eq!(after_steps(&deploy, &failed, 9), AfterSteps::RollBack);

    let mut cleanly = failed.clone();
    cleanly
        .nodes
        .insert(NodeId::new("undo"), fact(Status::Success, ""));
    let ending = after_rollback(&deploy, &cleanly, &[], 9);
    assert_eq!(ending.status, Status::Failed);
    insta::assert_snapshot!(text(ending.failure), @"Step b: No. The stage was rolled back cleanly. | ");

    let ending = after_rollback(
        &deploy,
        &cleanly,
        &["service web keeps 0 tasks".to_owned()],
        9,
    );
    insta::assert_snapshot!(text(ending.failure), @"Step b: No. The stage was rolled back. | service web keeps 0 tasks");

    let mut told = cut.clone();
    told.nodes
        .insert(NodeId::new("undo"), fact(Status::Success, ""));
    let ending = after_rollback(&deploy, &told, &["service web keeps 0 tasks".to_owned()], 9);
    insta::assert_snapshot!(text(ending.failure), @"Step b: No. The stage was rolled back. | Service web is without its scaling. service web keeps 0 tasks");
    let ending = after_rollback(&deploy, &told, &[], 9);
    insta::assert_snapshot!(text(ending.failure), @"Step b: No. The stage was rolled back. | Service web is without its scaling.");

    let mut ignored = failed.clone();
    let denied = NodeFact {
        status: Status::IgnoreFailed,
        ..fact(Status::Failed, "Denied.")
    };
    ignored.nodes.insert(NodeId::new("undo"), denied);
    let ending = after_rollback(&deploy, &ignored, &[], 9);
    insta::assert_snapshot!(text(ending.failure), @"Step b: No. The stage was rolled back. | rollback step undo failed and that was ignored: Denied.");

    let mut badly = failed.clone();
    badly
        .nodes
        .insert(NodeId::new("undo"), fact(Status::Failed, "Denied."));
    let ending = after_rollback(&deploy, &badly, &[], 9);
    insta::assert_snapshot!(text(ending.failure), @"Step b: No. | rolling back failed. Step undo: Denied. Nothing more is tried: look at what runs there, put it right, then run the pipeline again.");

    let ending = after_rollback(&deploy, &failed, &[], 9);
    insta::assert_snapshot!(text(ending.failure), @"Step b: No. | rolling back did not come to its end. Nothing more is tried: look at what runs there, put it right, then run the pipeline again.");

    deploy.failure_strategies = vec![on("AllErrors", "Abort", json!(null))];
    let aborted = facts(&[("a", Status::Aborted, "Stopped.")]);
    let AfterSteps::End(ending) = after_steps(&deploy, &aborted, 9) else {
        panic!("an abort rolls nothing back");
    };
    assert_eq!(ending.status, Status::Aborted);
}

#[test]
fn a_lane_that_was_lost_is_an_error_and_rolls_back_what_had_begun() {
    let mut deploy = stage("deploy", vec![step("a"), step("b")]);
    deploy.rollback_steps = vec![step("undo")];
    let lost = facts(&[("a", Status::Success, "")]);
    assert_eq!(after_steps(&deploy, &lost, 9), AfterSteps::RollBack);

    deploy.failure_strategies.clear();
    let AfterSteps::End(ending) = after_steps(&deploy, &lost, 9) else {
        panic!("no strategy asks for a rollback");
    };
    assert_eq!(ending.status, Status::Errored);
}
