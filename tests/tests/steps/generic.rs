//! Two tests over every step of the registry: *do it twice*, and *fail after each call, then roll back and look
//! at the account*.

use serde_json::{Value, json};
use slipway_sandbox::Pace;
use slipway_steps::{STEPS, Undo};

use crate::balancer::{Balancer, Kind, balanced_definition, inherit_spec, without_stopped};
use crate::tap::Mode;
use crate::world::{Ended, JOB, World, job, service_definition, task_definition};

/// How a step type is tried.
struct Trial {
    spec: Spec,
    /// Puts the account into the state that the step finds.
    first: bool,
}

/// `spec` of a step.
#[derive(Clone)]
enum Spec {
    Plain(Value),
    /// Of a step that needs a load balancer.
    Balanced(Kind, fn(&Balancer) -> Value),
}

impl Spec {
    fn of(&self, world: &World) -> Value {
        match (self, &world.balancer) {
            (Self::Plain(spec), _) => spec.clone(),
            (Self::Balanced(_, spec), Some(balancer)) => spec(balancer),
            (Self::Balanced(..), None) => panic!("a world without a load balancer"),
        }
    }
}

/// Every step type needs trials, so that a new step cannot come without them.
fn trials(step_type: &str) -> Vec<Trial> {
    match step_type {
        "AwsLambdaCanaryDeploy"
        | "AwsLambdaCanaryRollback"
        | "AwsLambdaDeploy"
        | "AwsLambdaRollback" => both(&json!({})),
        "AwsLambdaTrafficShift" => {
            let mut trials = both(&percentage(25));
            trials.extend(both(&percentage(100)));
            trials
        }
        "EcsBasicRollback" | "EcsServiceSetup" => both(&json!({})),
        "EcsUpgradeContainer" => both(&upgrade(100)),
        "EcsRunTask" => vec![Trial {
            spec: Spec::Plain(json!({})),
            first: true,
        }],
        "EcsScale" => {
            let spec = json!({"service": "web", "instanceUnit": "Percentage", "instances": 200});
            vec![Trial {
                spec: Spec::Plain(spec),
                first: false,
            }]
        }
        "EcsBlueGreenCreateService" => {
            let mut trials = balanced(Kind::Own, Balancer::swap_spec);
            trials.extend(balanced(Kind::Weighted, shift).pop());
            trials
        }
        "EcsBlueGreenSwapTargetGroups" => balanced(Kind::Own, |_| json!({})),
        "EcsBlueGreenRollback" => {
            let mut trials = balanced(Kind::Own, |_| json!({}));
            trials.extend(balanced(Kind::Weighted, |_| json!({})));
            trials
        }
        "EcsBlueGreenTrafficShift" => balanced(Kind::Weighted, |_| inherit_spec(100)),
        "StandAloneTrafficShiftRollback" => balanced(Kind::Weighted, |_| json!({}))
            .pop()
            .into_iter()
            .collect(),
        "EcsCanaryDelete" | "EcsCanaryDeploy" | "EcsRollingDeploy" | "EcsRollingRollback" => {
            both(&json!({}))
        }
        // They call no target account: nothing can be left there. Their own tests kill them at each save.
        "Barrier" | "HarnessApproval" | "Http" | "PinArtifacts" | "Pipeline" | "Queue"
        | "ShellScript" | "StageInputs" | "Wait" => Vec::new(),
        // Their target is no account: `tickets/` kills them at each request to their servers.
        "CustomApproval"
        | "JiraApproval"
        | "JiraCreate"
        | "JiraUpdate"
        | "ServiceNowApproval"
        | "ServiceNowCreate"
        | "ServiceNowImportSet"
        | "ServiceNowUpdate" => Vec::new(),
        // `asg/generic.rs` tries them, in an account with groups.
        asg if asg.starts_with("Asg") => Vec::new(),
        other => panic!("step {other} has no trials: add them here"),
    }
}

/// As the first deployment, and after another one.
fn both(spec: &Value) -> Vec<Trial> {
    of_both(&Spec::Plain(spec.clone()))
}

fn of_both(spec: &Spec) -> Vec<Trial> {
    let trial = |first| Trial {
        spec: spec.clone(),
        first,
    };
    vec![trial(true), trial(false)]
}

/// The same behind a load balancer.
fn balanced(kind: Kind, spec: fn(&Balancer) -> Value) -> Vec<Trial> {
    of_both(&Spec::Balanced(kind, spec))
}

/// A creation for a traffic shift, to the target group that gets no requests.
fn shift(balancer: &Balancer) -> Value {
    balancer.shift_spec(1)
}

/// `spec` of an `EcsUpgradeContainer`.
fn upgrade(percent: u32) -> Value {
    json!({"newServiceInstanceCount": percent, "newServiceInstanceUnit": "Percentage"})
}

/// `spec` of an `AwsLambdaTrafficShift`.
fn percentage(share: u32) -> Value {
    json!({"trafficPercentage": share})
}

/// The steps of the same stage that come before a step.
fn before(step_type: &str, of: &Spec) -> Vec<(&'static str, Spec)> {
    let plain = |step_type, spec| (step_type, Spec::Plain(spec));
    let shifts = matches!(of, Spec::Balanced(Kind::Weighted, _));
    let create = |spec: fn(&Balancer) -> Value| {
        ("EcsBlueGreenCreateService", Spec::Balanced(Kind::Own, spec))
    };
    match step_type {
        "AwsLambdaCanaryRollback" => vec![
            plain("AwsLambdaCanaryDeploy", json!({})),
            plain("AwsLambdaTrafficShift", percentage(10)),
        ],
        "AwsLambdaRollback" => vec![plain("AwsLambdaDeploy", json!({}))],
        "AwsLambdaTrafficShift" => vec![plain("AwsLambdaCanaryDeploy", json!({}))],
        "EcsUpgradeContainer" => vec![plain("EcsServiceSetup", json!({}))],
        "EcsBasicRollback" => vec![
            plain("EcsServiceSetup", json!({})),
            plain("EcsUpgradeContainer", upgrade(50)),
        ],
        "EcsCanaryDelete" => vec![plain("EcsCanaryDeploy", json!({}))],
        "EcsRollingRollback" => vec![plain("EcsRollingDeploy", json!({}))],
        "EcsBlueGreenSwapTargetGroups" => vec![create(Balancer::swap_spec)],
        "EcsBlueGreenRollback" if shifts => vec![
            create(shift),
            plain("EcsBlueGreenTrafficShift", inherit_spec(30)),
        ],
        "EcsBlueGreenRollback" => vec![
            create(Balancer::swap_spec),
            plain("EcsBlueGreenSwapTargetGroups", json!({})),
        ],
        "EcsBlueGreenTrafficShift" => vec![create(shift)],
        "StandAloneTrafficShiftRollback" => vec![
            create(shift),
            (
                "EcsBlueGreenTrafficShift",
                Spec::Balanced(Kind::Weighted, |balancer| balancer.standalone_spec(1, 2)),
            ),
        ],
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
    let world = match step_type.starts_with("AwsLambda") {
        true => functions(store, trial).await,
        false => world(store, trial).await,
    };
    for (step_type, spec) in before(step_type, &trial.spec) {
        world.run(step_type, spec.of(&world)).await.done();
    }
    world
}

/// A brisk world, so that most calls are changes and not looks, in which version 2 is about to be deployed: as the first deployment, or after version 1.
async fn world(store: &World, trial: &Trial) -> World {
    let mut world = store.beside(Pace::brisk()).await;
    if let Spec::Balanced(kind, _) = &trial.spec {
        world.balance(*kind).await;
    }
    let balancer = world.balancer.clone();
    if !trial.first {
        world.scales();
        for (step_type, spec) in first_steps(&trial.spec) {
            world.run(step_type, spec.of(&world)).await.done();
        }
        world.next_run();
    }
    let scaling: Vec<_> = world.manifests.drain(..).skip(2).collect();
    let definition = match balancer {
        Some(_) => balanced_definition(3),
        None => service_definition(3),
    };
    world.deploys(&task_definition("nginx:2"), &definition);
    world.manifests.extend(scaling);
    world.step_manifests = job("nginx:exits-0", 2);
    let now = world.clock.now();
    if let Some(balancer) = &mut world.balancer {
        balancer.since = now;
    }
    world
}

/// The steps that deployed version 1.
fn first_steps(spec: &Spec) -> Vec<(&'static str, Spec)> {
    let create = |kind, spec: fn(&Balancer) -> Value| {
        ("EcsBlueGreenCreateService", Spec::Balanced(kind, spec))
    };
    match spec {
        Spec::Plain(_) => vec![("EcsRollingDeploy", Spec::Plain(json!({})))],
        Spec::Balanced(Kind::Weighted, _) => vec![
            create(Kind::Weighted, |balancer| balancer.shift_spec(0)),
            ("EcsBlueGreenTrafficShift", Spec::Plain(inherit_spec(100))),
        ],
        Spec::Balanced(kind, _) => vec![
            create(*kind, Balancer::swap_spec),
            ("EcsBlueGreenSwapTargetGroups", Spec::Plain(json!({}))),
        ],
    }
}

/// Where something served before, each request since then was answered.
fn check_requests(world: &World, trial: &Trial, what: &str) {
    if let (Some(balancer), false) = (&world.balancer, trial.first) {
        let requests = world.requests(balancer.since);
        assert!(requests.sent > 0.0, "{what}: no time has passed");
        assert!(requests.failed == 0.0, "{what}: {requests:?}");
    }
}

/// The same, with a function of a package instead of a service.
async fn functions(store: &World, trial: &Trial) -> World {
    let mut world = store.beside(Pace::brisk()).await;
    if !trial.first {
        world.deploys_package(1).await;
        world.run("AwsLambdaDeploy", json!({})).await.done();
        world.next_run();
    }
    world.deploys_package(2).await;
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
        "ModifyListener",
        "ModifyRule",
        "CreateFunction",
        "CreateAlias",
        "UpdateAlias",
        "DeleteAlias",
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
                world.run(step_type, trial.spec.of(&world)).await.done();
                let calls = world.tap.calls();
                (outcome(&world).await, calls)
            };
            assert!(expected.1 > 1, "{step_type} made {} calls", expected.1);
            for call in 1..=expected.1 {
                let world = ready(&store, step_type, &trial).await;
                world.tap.set(Mode::DieAfter(call));
                world.run(step_type, trial.spec.of(&world)).await.done();
                let outcome = outcome(&world).await;
                check_requests(
                    &world,
                    &trial,
                    &format!("{step_type}, died after call {call}"),
                );
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
            let before = match (&trial.spec, trial.first) {
                (Spec::Balanced(..), _) => vec![world(&store, &trial).await.account().await],
                (_, true) => vec!["absent".to_owned(), "INACTIVE".to_owned()],
                (_, false) if step_type.starts_with("AwsLambda") => {
                    let function =
                        "function shop package 1 timeout 5 Active, versions 1, live at 1";
                    vec![format!("absent, {function}")]
                }
                (_, false) => vec!["web:1 2/2 COMPLETED scaled by P1".to_owned()],
            };
            let mut refused = 0;
            for call in 0.. {
                let world = ready(&store, step_type, &trial).await;
                world.tap.set(Mode::RefuseAfter(call));
                let ended = world.run(step_type, trial.spec.of(&world)).await;
                world.tap.set(Mode::Open);
                if let Ended::Done(_) = ended {
                    break;
                }
                refused += 1;
                world.run(undo, json!({})).await.done();
                world.clock.sleep(std::time::Duration::from_secs(300)).await;
                let account = without_stopped(&world.account().await);
                assert!(
                    before.contains(&account),
                    "{step_type}, refused after call {call}: {account} instead of {before:?}"
                );
                check_requests(
                    &world,
                    &trial,
                    &format!("{step_type}, refused after call {call}"),
                );
            }
            let least = if *step_type == "AwsLambdaTrafficShift" {
                1
            } else {
                3
            };
            assert!(
                refused > least,
                "{step_type} was refused {refused} times only"
            );
        }
    }
}
