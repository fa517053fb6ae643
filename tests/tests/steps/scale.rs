//! `EcsScale`: another number of tasks, for any service.

use serde_json::{Value, json};
use slipway_plan::ConnectorPlan;
use slipway_sandbox::{Fault, FaultEffect};

use crate::world::{World, service_definition, task_definition};

const SCALE: &str = "EcsScale";

fn spec(unit: &str, instances: impl Into<Value>) -> Value {
    json!({"service": "web", "instanceUnit": unit, "instances": instances.into()})
}

#[tokio::test(start_paused = true)]
async fn a_service_gets_a_count_or_a_part_of_what_it_has() {
    let mut world = World::new().await;
    world.run("EcsRollingDeploy", json!({})).await.done();
    let table = [
        (spec("Count", 5), "web:1 5/5 COMPLETED"),
        (spec("Percentage", "50"), "web:1 3/3 COMPLETED"),
        (spec("Percentage", 200), "web:1 6/6 COMPLETED"),
        (spec("Count", 0), "web:1 0/0 COMPLETED"),
        (spec("Percentage", 100), "web:1 0/0 COMPLETED"),
        (spec("Count", 2), "web:1 2/2 COMPLETED"),
    ];
    for (spec, expected) in table {
        world.next_run();
        let before = world.sandbox.calls().len();
        world.run(SCALE, spec.clone()).await.done();
        assert_eq!(world.account().await, expected, "{spec}");
        assert!(world.sandbox.calls().len() > before);
    }
    let stored = world.store.list_deployed().await.expect("a list");
    assert_eq!(stored[0].counted.map(|(count, _)| count), Some(2));
    assert_eq!(world.count("RegisterTaskDefinition"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_no_rollback_brings_back_is_noted() {
    let mut world = World::new().await;
    world.run("EcsRollingDeploy", json!({})).await.done();
    world.run(SCALE, spec("Count", 4)).await.done();
    // The rollback of the deployment before it brings the count back.
    assert_eq!(world.kept(SCALE).await, Value::Null);
    world.next_run();
    world.run(SCALE, spec("Count", 0)).await.done();
    assert_eq!(
        world.kept(SCALE).await,
        json!({
            "holder": "service web in cluster prod in eu-west-1 (infrastructure prod_cluster)",
            "unit": "tasks",
            "had": 4,
            "has": 0,
            "by": SCALE,
        })
    );
}

/// Found by a tester: a count that AWS refused was told as left behind.
#[tokio::test(start_paused = true)]
async fn a_count_that_aws_refused_is_not_left() {
    let mut world = World::new().await;
    world.run("EcsRollingDeploy", json!({})).await.done();
    let refused = |effect| Fault {
        service: None,
        operation: Some("UpdateService".to_owned()),
        skip: 0,
        count: None,
        effect,
    };
    for (count, effect) in [
        (100_000, None),
        (4, Some(FaultEffect::AccessDenied)),
        (4, Some(FaultEffect::Throttle)),
    ] {
        world.next_run();
        if let Some(effect) = effect {
            world.sandbox.faults().add(refused(effect));
        }
        world.run(SCALE, spec("Count", count)).await.failed();
        assert_eq!(world.kept(SCALE).await, Value::Null, "{count}");
        world.sandbox.faults().clear();
    }
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn a_second_attempt_takes_its_part_of_what_the_first_one_found() {
    let mut world = World::new().await;
    world.deploys(&task_definition("nginx:1"), &service_definition(4));
    world.run("EcsRollingDeploy", json!({})).await.done();
    world.next_run();
    let spec = spec("Percentage", 50);
    let outputs = world.attempt(SCALE, spec.clone(), 0).await.done();
    assert_eq!(outputs["output"]["desiredCount"], 2);
    let outputs = world.attempt(SCALE, spec, 1).await.done();
    assert_eq!(outputs["output"]["desiredCount"], 2);
    assert_eq!(outputs["output"]["previousDesiredCount"], 4);
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn the_step_may_name_its_own_place_and_need_not_wait() {
    let mut world = World::new().await;
    world.run("EcsRollingDeploy", json!({})).await.done();
    world.next_run();
    world.infrastructure["cluster"] = json!("elsewhere");
    world.step_connector = Some(ConnectorPlan {
        reference: "account.other".to_owned(),
        kind: "Aws".to_owned(),
        spec: json!({"credential": {"type": "InheritFromDelegate"}}),
    });
    let mut own = spec("Count", 4);
    own["cluster"] = json!("prod");
    own["region"] = json!("eu-west-1");
    own["skipSteadyStateCheck"] = json!(true);
    let outputs = world.run(SCALE, own).await.done();
    let expected = json!({"serviceName": "web", "desiredCount": 4, "previousDesiredCount": 2});
    assert_eq!(outputs["output"], expected);
    insta::assert_snapshot!(world.log(SCALE, "Scale").await, @r"
    Scaling Service web from 2 to 4 tasks
    Skipped Steady State Check
    ");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_scaled_is_told() {
    let mut world = World::new().await;
    let failure = world.run(SCALE, spec("Count", 2)).await.failed();
    for part in [
        "service web",
        "cluster prod",
        "does not exist",
        "check `service`",
    ] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    world.run("EcsRollingDeploy", json!({})).await.done();
    for (spec, why) in [
        (
            spec("Count", "many"),
            "`instances` must be a whole number from 0",
        ),
        (
            spec("Percent", 2),
            "`instanceUnit` must be Count or Percentage",
        ),
    ] {
        world.next_run();
        let failure = world.run(SCALE, spec).await.failed();
        assert!(failure.message.contains(why), "{}", failure.message);
    }
    assert_eq!(world.count("UpdateService"), 0);
    world.next_run();
    let gone = world.ecs().delete_service().cluster("prod");
    let gone = gone.service("web").force(true).send().await;
    gone.expect("deleted");
    let failure = world.run(SCALE, spec("Count", 2)).await.failed();
    assert!(
        failure.message.contains("being deleted"),
        "{}",
        failure.message
    );
}

#[test]
fn a_spec_is_checked_before_the_run() {
    let step = slipway_steps::find(SCALE).expect("a step");
    assert_eq!(step.check(&spec("<+x>", "<+y>")), Vec::<String>::new());
    let faults = step.check(&json!({"instances": "x", "clustr": "a"}));
    insta::assert_snapshot!(faults.join("\n"), @r"
    `instances` must be a whole number from 0
    `clustr` is not a field of this step; did you mean `cluster`?
    `service` is missing
    `instanceUnit` is missing
    ");
}
