//! The two tests over every step of Auto Scaling groups: *do it twice*, and *fail after each call, then roll back and
//! look at the account*.

use serde_json::{Value, json};
use slipway_steps::{STEPS, Undo};

use super::Groups;
use crate::tap::Mode;
use crate::world::Ended;

/// The steps of Auto Scaling groups.
fn steps() -> impl Iterator<Item = (&'static str, Undo)> {
    let own = STEPS.iter().filter(|(name, _)| name.starts_with("Asg"));
    own.map(|(name, step)| (*name, step.undo()))
}

/// Every step type needs a spec, so that a new step cannot come without one.
fn spec(groups: &Groups, step_type: &str) -> Value {
    let half = json!({"type": "Percentage", "spec": {"percentage": 50}});
    let balancer = groups.balancer.as_ref();
    match step_type {
        "AsgBlueGreenDeploy" => match balancer {
            Some(balancer) if balancer.weighted => balancer.shift_spec(),
            Some(balancer) => balancer.swap_spec(),
            None => panic!("a world without a load balancer"),
        },
        "AsgBlueGreenSwapService" => json!({"downsizeOldAsg": true}),
        "AsgShiftTraffic" => json!({"weight": 100, "downsizeOldAsg": true}),
        "AsgCanaryDeploy" => json!({"instanceSelection": {"type": "Count", "spec": {"count": 1}}}),
        "AsgPhasedDeploy" => json!({"instanceSelection": half}),
        "AsgScale" => {
            json!({"asgName": "web", "instanceSelection": {"type": "Count", "spec": {"count": 4}}})
        }
        "AsgSetup" => json!({"resizeStrategy": "resize_new_first"}),
        "AsgRollingDeploy" => json!({"instanceWarmup": 0}),
        "AsgBlueGreenRollback"
        | "AsgCanaryDelete"
        | "AsgRollback"
        | "AsgRollingRollback"
        | "AsgSteadyState" => json!({}),
        other => panic!("step {other} has no spec: add it here"),
    }
}

/// The steps of the same stage that come before a step.
fn before(step_type: &str) -> &'static [&'static str] {
    match step_type {
        "AsgBlueGreenSwapService" | "AsgShiftTraffic" => &["AsgBlueGreenDeploy"],
        "AsgBlueGreenRollback" => &["AsgBlueGreenDeploy", "AsgBlueGreenSwapService"],
        "AsgCanaryDelete" => &["AsgCanaryDeploy"],
        "AsgPhasedDeploy" => &["AsgSetup"],
        "AsgRollback" => &["AsgSetup", "AsgPhasedDeploy"],
        "AsgRollingRollback" | "AsgSteadyState" => &["AsgRollingDeploy"],
        _ => &[],
    }
}

/// The steps that deployed version 1.
fn first(step_type: &str) -> &'static [&'static str] {
    match step_type {
        shift if shift.starts_with("AsgShiftTraffic") => &["AsgBlueGreenDeploy", "AsgShiftTraffic"],
        blue_green if blue_green.starts_with("AsgBlueGreen") => {
            &["AsgBlueGreenDeploy", "AsgBlueGreenSwapService"]
        }
        "AsgSetup" | "AsgPhasedDeploy" | "AsgRollback" => &["AsgSetup", "AsgPhasedDeploy"],
        _ => &["AsgRollingDeploy"],
    }
}

/// Whether a step can stand in a first deployment, and in a later one.
fn trials(step_type: &str) -> &'static [bool] {
    match step_type {
        // There is nothing to scale or to swap before.
        "AsgScale" | "AsgBlueGreenSwapService" | "AsgShiftTraffic" => &[false],
        _ => &[true, false],
    }
}

/// A brisk world in which a step is next: in the first deployment, or in the second.
async fn ready(groups: &Groups, step_type: &str, is_first: bool) -> Groups {
    let mut groups = groups.beside().await;
    let shifts = step_type.starts_with("AsgShiftTraffic");
    if shifts || step_type.starts_with("AsgBlueGreen") {
        groups.balance(shifts).await;
    }
    if !is_first {
        groups.scales("more");
        for step in first(step_type) {
            groups.world.run(step, spec(&groups, step)).await.done();
        }
        groups.world.next_run();
    }
    groups.deploys("ami-2", 3);
    let now = groups.world.clock.now();
    if let Some(balancer) = &mut groups.balancer {
        balancer.since = now;
    }
    for step in before(step_type) {
        groups.world.run(step, spec(&groups, step)).await.done();
    }
    groups
}

/// Where something served before, each request since then was answered.
fn check_requests(groups: &Groups, is_first: bool, what: &str) {
    if let (Some(balancer), false) = (&groups.balancer, is_first) {
        let requests = balancer.requests();
        assert!(requests.sent > 0.0, "{what}: no time has passed");
        assert!(requests.failed == 0.0, "{what}: {requests:?}");
    }
}

/// What must come out however often the step was killed.
async fn outcome(groups: &Groups) -> String {
    groups.quiet().await;
    let changes = [
        "CreateLaunchTemplate",
        "CreateLaunchTemplateVersion",
        "DeleteLaunchTemplate",
        "CreateAutoScalingGroup",
        "UpdateAutoScalingGroup",
        "StartInstanceRefresh",
    ];
    let calls = groups.world.sandbox.calls();
    let done = changes.map(|operation| {
        let done = calls.iter().filter(|call| call.operation == operation);
        let done = done.filter(|call| call.error.is_none()).count();
        format!("{operation} {done}")
    });
    // A repeated request of one attempt makes no second version.
    let versions = groups.ec2("DescribeLaunchTemplates", json!({})).await;
    let latest: Vec<String> = super::list(&versions["launchTemplates"])
        .iter()
        .map(|one| {
            format!(
                "{} {}",
                one["launchTemplateName"], one["latestVersionNumber"]
            )
        })
        .collect();
    format!(
        "{}; {}; {}",
        groups.account().await,
        latest.join(" "),
        done[3..].join(", ")
    )
}

#[tokio::test(start_paused = true)]
async fn a_step_that_dies_after_any_call_does_its_work_once() {
    let store = Groups::new().await;
    for (step_type, undo) in steps() {
        for &is_first in trials(step_type) {
            let expected = {
                let groups = ready(&store, step_type, is_first).await;
                groups.world.tap.set(Mode::Open);
                groups
                    .world
                    .run(step_type, spec(&groups, step_type))
                    .await
                    .done();
                (outcome(&groups).await, groups.world.tap.calls())
            };
            assert!(expected.1 > 1, "{step_type} made {} calls", expected.1);
            for call in 1..=expected.1 {
                let groups = ready(&store, step_type, is_first).await;
                groups.world.tap.set(Mode::DieAfter(call));
                groups
                    .world
                    .run(step_type, spec(&groups, step_type))
                    .await
                    .done();
                let outcome = outcome(&groups).await;
                let what = format!("{step_type}, first {is_first}, died after call {call}");
                check_requests(&groups, is_first, &what);
                let same = match undo {
                    // A restored group may be told twice to be what it is already.
                    Undo::Nothing(_) => outcome.split(';').next() == expected.0.split(';').next(),
                    Undo::Step(_) => outcome == expected.0,
                };
                assert!(same, "{what}: {outcome} instead of {}", expected.0);
            }
        }
    }
}

/// The first step of the stage that a step stands in.
fn beginning(step_type: &str) -> String {
    match (step_type, before(step_type)) {
        // Its world has another load balancer.
        ("AsgShiftTraffic", _) => "AsgShiftTraffic before".to_owned(),
        (_, [first, ..]) => (*first).to_owned(),
        (_, []) => step_type.to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_refused_after_any_call_is_undone_cleanly() {
    let store = Groups::new().await;
    for (step_type, undo) in steps() {
        let Undo::Step(undo) = undo else {
            continue;
        };
        for &is_first in trials(step_type) {
            let before = {
                // As it was before the steps of this stage.
                let groups = ready(&store, &beginning(step_type), is_first).await;
                groups.quiet().await;
                groups.account().await
            };
            let mut refused = 0;
            for call in 0.. {
                let groups = ready(&store, step_type, is_first).await;
                groups.world.tap.set(Mode::RefuseAfter(call));
                let ended = groups.world.run(step_type, spec(&groups, step_type)).await;
                groups.world.tap.set(Mode::Open);
                if let Ended::Done(_) = ended {
                    break;
                }
                refused += 1;
                groups.world.run(undo, json!({})).await.done();
                groups.quiet().await;
                let account = groups.account().await;
                let what = format!("{step_type}, first {is_first}, refused after call {call}");
                assert_eq!(account, before, "{what}");
                check_requests(&groups, is_first, &what);
            }
            assert!(refused > 2, "{step_type} was refused {refused} times only");
        }
    }
}
