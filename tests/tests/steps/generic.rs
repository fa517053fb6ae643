//! Two tests over every step of the registry: *do it twice*, and *fail after each call, then roll back and look
//! at the account*.

use serde_json::{Value, json};
use slipway_sandbox::Pace;
use slipway_steps::{STEPS, Undo};

use crate::tap::Mode;
use crate::world::{Ended, JOB, World, job, manifest, service_definition, task_definition};

/// How a step type is tried.
struct Trial {
    spec: Value,
    /// Puts the account into the state that the step finds.
    first: bool,
}

/// Every step type needs trials, so that a new step cannot come without them.
fn trials(step_type: &str) -> Vec<Trial> {
    match step_type {
        "EcsBasicRollback" | "EcsServiceSetup" => both(&json!({})),
        "EcsUpgradeContainer" => both(&upgrade(100)),
        "EcsRunTask" => vec![Trial {
            spec: json!({}),
            first: true,
        }],
        "EcsScale" => vec![Trial {
            spec: json!({"service": "web", "instanceUnit": "Percentage", "instances": 200}),
            first: false,
        }],
        "EcsCanaryDelete" | "EcsCanaryDeploy" | "EcsRollingDeploy" | "EcsRollingRollback" => {
            both(&json!({}))
        }
        // They call no target account: nothing can be left there. Their own tests kill them at each save.
        "Barrier" | "HarnessApproval" | "Http" | "Pipeline" | "Queue" | "ShellScript"
        | "StageInputs" | "Wait" => Vec::new(),
        // Their target is no account: `tickets/` kills them at each request to their servers.
        "CustomApproval"
        | "JiraApproval"
        | "JiraCreate"
        | "JiraUpdate"
        | "ServiceNowApproval"
        | "ServiceNowCreate"
        | "ServiceNowImportSet"
        | "ServiceNowUpdate" => Vec::new(),
        other => panic!("step {other} has no trials: add them here"),
    }
}

/// As the first deployment, and after another one.
fn both(spec: &Value) -> Vec<Trial> {
    let trial = |first| Trial {
        spec: spec.clone(),
        first,
    };
    vec![trial(true), trial(false)]
}

/// `spec` of an `EcsUpgradeContainer`.
fn upgrade(percent: u32) -> Value {
    json!({"newServiceInstanceCount": percent, "newServiceInstanceUnit": "Percentage"})
}

/// The steps of the same stage that come before a step.
fn before(step_type: &str) -> Vec<(&'static str, Value)> {
    match step_type {
        "EcsUpgradeContainer" => vec![("EcsServiceSetup", json!({}))],
        "EcsBasicRollback" => vec![
            ("EcsServiceSetup", json!({})),
            ("EcsUpgradeContainer", upgrade(50)),
        ],
        "EcsCanaryDelete" => vec![("EcsCanaryDeploy", json!({}))],
        "EcsRollingRollback" => vec![("EcsRollingDeploy", json!({}))],
        _ => Vec::new(),
    }
}

/// Whether a step undoes another one.
fn undoes(step_type: &str) -> bool {
    let undone = |(_, step): &(&str, &dyn slipway_steps::Step)| matches!(step.undo(), Undo::Step(undo) if undo == step_type);
    STEPS.iter().any(undone)
}

/// A world in which a step is next.
async fn ready(store: &World, step_type: &str, trial: &Trial) -> World {
    let world = world(store, trial).await;
    for (step_type, spec) in before(step_type) {
        world.run(step_type, spec).await.done();
    }
    world
}

/// A brisk world, so that most calls are changes and not looks, in which version 2 is about to be deployed: as the first deployment, or after version 1.
async fn world(store: &World, trial: &Trial) -> World {
    let mut world = store.beside(Pace::brisk()).await;
    if !trial.first {
        world.manifests.push(manifest(
            "EcsScalableTargetDefinition",
            &json!({"minCapacity": 1, "maxCapacity": 8}),
        ));
        world.manifests.push(manifest(
            "EcsScalingPolicyDefinition",
            &json!({"policyName": "P1", "policyType": "TargetTrackingScaling",
                "targetTrackingScalingPolicyConfiguration": {"targetValue": 60,
                "predefinedMetricSpecification": {"predefinedMetricType": "ECSServiceAverageCPUUtilization"}}}),
        ));
        world.run("EcsRollingDeploy", json!({})).await.done();
        world.next_run();
    }
    let scaling: Vec<_> = world.manifests.drain(..).skip(2).collect();
    world.deploys(&task_definition("nginx:2"), &service_definition(3));
    world.manifests.extend(scaling);
    world.step_manifests = job("nginx:exits-0", 2);
    world
}

/// What must come out however often the step was killed.
async fn outcome(world: &World) -> String {
    world.clock.sleep(std::time::Duration::from_secs(300)).await;
    let mut ours: Vec<String> = Vec::new();
    for operation in [
        "RegisterTaskDefinition",
        "CreateService",
        "UpdateService",
        "DeleteService",
    ] {
        let answered = world.sandbox.calls();
        let done = answered
            .iter()
            .filter(|c| c.operation == operation && c.error.is_none())
            .count();
        ours.push(format!("{operation} {done}"));
    }
    ours.push(format!("tasks {}", world.ran(JOB).await));
    format!("{}; {}", world.account().await, ours.join(", "))
}

#[tokio::test(start_paused = true)]
async fn a_step_that_dies_after_any_call_does_its_work_once() {
    let store = World::new().await;
    for (step_type, _) in STEPS {
        for trial in trials(step_type) {
            let undone = undoes(step_type);
            let expected = {
                let world = ready(&store, step_type, &trial).await;
                world.tap.set(Mode::Open);
                world.run(step_type, trial.spec.clone()).await.done();
                let calls = world.tap.calls();
                (outcome(&world).await, calls)
            };
            assert!(expected.1 > 3, "{step_type} made {} calls", expected.1);
            for call in 1..=expected.1 {
                let world = ready(&store, step_type, &trial).await;
                world.tap.set(Mode::DieAfter(call));
                world.run(step_type, trial.spec.clone()).await.done();
                let outcome = outcome(&world).await;
                let same = match undone {
                    // A restored service may be told twice to be what it is already.
                    true => outcome.split(';').next() == expected.0.split(';').next(),
                    false => outcome == expected.0,
                };
                assert!(
                    same,
                    "{step_type}, died after call {call}: {outcome} instead of {}",
                    expected.0
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_refused_after_any_call_is_undone_cleanly() {
    let store = World::new().await;
    for (step_type, step) in STEPS {
        let Undo::Step(undo) = step.undo() else {
            continue;
        };
        for trial in trials(step_type) {
            let before = match trial.first {
                true => ["absent", "INACTIVE"],
                false => ["web:1 2/2 COMPLETED scaled by P1"; 2],
            };
            let mut refused = 0;
            for call in 0.. {
                let world = ready(&store, step_type, &trial).await;
                world.tap.set(Mode::RefuseAfter(call));
                let ended = world.run(step_type, trial.spec.clone()).await;
                world.tap.set(Mode::Open);
                if let Ended::Done(_) = ended {
                    break;
                }
                refused += 1;
                world.run(undo, json!({})).await.done();
                world.clock.sleep(std::time::Duration::from_secs(300)).await;
                let account = world.account().await;
                assert!(
                    before.contains(&account.as_str()),
                    "{step_type}, refused after call {call}: {account}"
                );
            }
            assert!(refused > 3, "{step_type} was refused {refused} times only");
        }
    }
}
