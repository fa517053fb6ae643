//! `EcsRollingDeploy` and `EcsRollingRollback`, as a person on call sees them.

use serde_json::json;
use slipway_model::status::ErrorType;
use slipway_sandbox::{Fault, FaultEffect, RoleRule};

use crate::world::{PASSWORD, World, manifest, service_definition, task_definition};

const DEPLOY: &str = "EcsRollingDeploy";
const ROLLBACK: &str = "EcsRollingRollback";

fn scaled() -> [slipway_plan::ManifestPlan; 2] {
    [
        manifest(
            "EcsScalableTargetDefinition",
            &json!({"minCapacity": 1, "maxCapacity": "8"}),
        ),
        manifest(
            "EcsScalingPolicyDefinition",
            &json!({
                "policyName": "P1",
                "policyType": "TargetTrackingScaling",
                "targetTrackingScalingPolicyConfiguration": {
                    "targetValue": 60,
                    "predefinedMetricSpecification": {"predefinedMetricType": "ECSServiceAverageCPUUtilization"},
                },
            }),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_first_deployment_creates_the_service_and_says_what_it_does() {
    let world = World::new().await;
    let outputs = world.run(DEPLOY, json!({})).await.done();

    assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
    assert_eq!(outputs["output"]["serviceName"], "web");
    let instances = &outputs["deploymentInfoOutcome"]["serverInstanceInfoList"];
    assert_eq!(instances.as_array().map(Vec::len), Some(2));
    assert_eq!(instances[0]["version"], "1");
    let stored = world.store.list_deployed().await.expect("a list");
    assert_eq!(stored[0].counted.map(|(count, _)| count), Some(2));

    let prepare = world.log(DEPLOY, "Prepare rollback data").await;
    insta::assert_snapshot!(prepare, @r"
    Service web does not exist: this is its first deployment
    Prepared rollback data
    ");
    let deploy = world.log(DEPLOY, "Deploy").await;
    assert!(
        deploy.contains("Waiting for pending tasks to finish. 0/2 running ..."),
        "{deploy}"
    );
    // How far AWS was at each look is its own affair.
    let lines = deploy
        .lines()
        .filter(|line| !line.starts_with("# AWS Event") && !line.contains("pending tasks"));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    Created Task Definition web:1 with Arn arn:aws:ecs:eu-west-1:123456789012:task-definition/web:1..
    Creating Service web with task definition arn:aws:ecs:eu-west-1:123456789012:task-definition/web:1
    Created Service web with Arn arn:aws:ecs:eu-west-1:123456789012:service/prod/web
    Waiting for Service web to reach steady state
    Service web reached steady state
    Service web runs 2 instances of revision 1
    ");
}

#[tokio::test(start_paused = true)]
async fn a_second_deployment_replaces_tasks_and_tells_each_event_once() {
    let mut world = World::new().await;
    world.run(DEPLOY, json!({})).await.done();
    world.next_run();
    world.deploys(&task_definition("nginx:2"), &service_definition(3));
    world.run(DEPLOY, json!({})).await.done();

    assert_eq!(world.account().await, "web:2 3/3 COMPLETED");
    let log = world.log(DEPLOY, "Deploy").await;
    let events: Vec<&str> = log
        .lines()
        .filter(|line| line.starts_with("# AWS Event"))
        .collect();
    let distinct: std::collections::BTreeSet<&&str> = events.iter().collect();
    assert_eq!(events.len(), distinct.len(), "{log}");
    let answer = world
        .ecs()
        .describe_services()
        .cluster("prod")
        .services("web")
        .send()
        .await;
    let service = answer
        .expect("an answer")
        .services
        .expect("services")
        .remove(0);
    let told = service
        .events()
        .iter()
        .filter(|e| log.contains(e.message().unwrap_or("?")))
        .count();
    assert!(told >= events.len() && events.len() >= 4, "{log}");
    assert!(
        !log.contains("has started 2 tasks"),
        "events of the first deployment: {log}"
    );
}

#[tokio::test(start_paused = true)]
async fn f21_what_the_account_runs_and_the_records_do_not_say_is_told() {
    let mut world = World::new().await;
    world.run(DEPLOY, json!({})).await.done();
    let older = world.store.list_deployed().await.expect("a list").remove(0);
    world.next_run();
    world.deploys(&task_definition("nginx:2"), &service_definition(2));
    world.run(DEPLOY, json!({})).await.done();
    let prepare = world.log(DEPLOY, "Prepare rollback data").await;
    assert!(!prepare.contains("records"), "{prepare}");
    // The records are of yesterday.
    world.store.put_deployed(&older).await.expect("restored");
    world.next_run();
    world.deploys(&task_definition("nginx:3"), &service_definition(2));
    world.run(DEPLOY, json!({})).await.done();
    let prepare = world.log(DEPLOY, "Prepare rollback data").await;
    assert!(
        prepare.contains("runs web:2, and Slipway's records say web:1 (run "),
        "{prepare}"
    );
    assert_eq!(world.account().await, "web:3 2/2 COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_pulled_fails_early_and_rolls_back() {
    let mut world = World::new().await;
    world.manifests.extend(scaled());
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED scaled by P1");

    world.next_run();
    world.deploys(&task_definition("nginx:missing"), &service_definition(5));
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert!(
        failure.message.contains("CannotPullContainerError"),
        "{}",
        failure.message
    );
    assert!(failure.message.contains("web:2"), "{}", failure.message);

    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED scaled by P1");
    let log = world.log(ROLLBACK, "Rollback").await;
    assert!(
        log.contains("Service web is back on web:1: rolled back cleanly"),
        "{log}"
    );
    assert_eq!(
        world.count("RegisterTaskDefinition"),
        2,
        "a rollback registers nothing"
    );
}

#[tokio::test(start_paused = true)]
async fn aws_own_rollback_is_seen_as_a_failure_and_ends_clean() {
    let mut world = World::new().await;
    world.run(DEPLOY, json!({})).await.done();
    world.next_run();
    let mut definition = service_definition(2);
    definition["deploymentConfiguration"]["deploymentCircuitBreaker"] =
        json!({"enable": true, "rollback": true});
    world.deploys(&task_definition("nginx:exits-3"), &definition);
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert!(
        failure.message.contains("exit code 3"),
        "{}",
        failure.message
    );
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn a_first_deployment_that_fails_leaves_no_service() {
    let mut world = World::new().await;
    world.deploys(&task_definition("nginx:missing"), &service_definition(2));
    world.run(DEPLOY, json!({})).await.failed();
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(world.account().await, "INACTIVE");

    // And the name can be used again.
    world.next_run();
    world.deploys(&task_definition("nginx:1"), &service_definition(1));
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(world.account().await, "web:2 1/1 COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn a_rollback_without_a_deployment_does_nothing() {
    let mut world = World::new().await;
    world.manifests.clear();
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert_eq!(
        failure.message,
        "Invalid request: No manifests found in stage deploy. EcsRollingDeploy step requires a manifest \
         defined in stage service definition"
    );
    let calls = world.sandbox.calls().len();
    world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(world.sandbox.calls().len(), calls);
}

#[tokio::test(start_paused = true)]
async fn documents_arrive_whole_with_secrets_and_unknown_fields() {
    let mut world = World::new().await;
    let mut definition = task_definition("nginx:1");
    definition["quantumMode"] = json!({"entangled": true});
    world.deploys(&definition, &service_definition(1));
    world.run(DEPLOY, json!({})).await.done();

    let answer = slipway_steps::aws::wire::Answer::default();
    let call = world
        .ecs()
        .describe_task_definition()
        .task_definition("web:1")
        .customize();
    call.interceptor(answer.clone())
        .send()
        .await
        .expect("an answer");
    let registered = answer.take();
    assert_eq!(
        registered["taskDefinition"]["quantumMode"],
        json!({"entangled": true})
    );
    let environment = &registered["taskDefinition"]["containerDefinitions"][0]["environment"][0];
    assert_eq!(environment["value"], PASSWORD);

    assert!(!world.everything_stored().await.contains(PASSWORD));
    let log = world.log(DEPLOY, "Fetch manifests").await;
    assert!(
        log.contains("`quantumMode` is not a field of RegisterTaskDefinition"),
        "{log}"
    );

    // AWS repeats what it refuses; the failure does not.
    world.next_run();
    definition["family"] = json!("<+secrets.getValue(\"account.password\")> !");
    world.deploys(&definition, &service_definition(1));
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert!(!failure.message.contains(PASSWORD), "{}", failure.message);
    assert!(
        failure.message.contains("************** !"),
        "{}",
        failure.message
    );

    world.next_run();
    definition["family"] = json!("web");
    definition["containerDefinition"] = json!([]);
    world.deploys(&definition, &service_definition(1));
    let registered = world.count("RegisterTaskDefinition");
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert!(
        failure
            .message
            .contains("did you mean `containerDefinitions`?"),
        "{}",
        failure.message
    );
    assert_eq!(world.count("RegisterTaskDefinition"), registered);
}

#[tokio::test(start_paused = true)]
async fn what_aws_refuses_is_told_by_kind_with_advice() {
    let fault = |operation: &str, effect| Fault {
        service: None,
        operation: Some(operation.to_owned()),
        skip: 0,
        count: None,
        effect,
    };
    let table = [
        (
            "UpdateService",
            FaultEffect::AccessDenied,
            ErrorType::Authorization,
            "policies",
        ),
        (
            "DescribeServices",
            FaultEffect::ExpiredCredentials,
            ErrorType::Authentication,
            "credentials",
        ),
        (
            "RegisterTaskDefinition",
            FaultEffect::Throttle,
            ErrorType::Unknown,
            "too many calls",
        ),
        (
            "DescribeServices",
            FaultEffect::Cut { after: false },
            ErrorType::Connectivity,
            "network",
        ),
    ];
    let mut world = World::new().await;
    world.run(DEPLOY, json!({})).await.done();
    for (operation, effect, error, advice) in table {
        world.next_run();
        world.sandbox.faults().add(fault(operation, effect));
        let failure = world.run(DEPLOY, json!({})).await.failed();
        world.sandbox.faults().clear();
        assert_eq!(failure.error, error, "{}", failure.message);
        assert!(failure.message.contains(advice), "{}", failure.message);
    }

    world.next_run();
    world.infrastructure["cluster"] = json!("nowhere");
    let failure = world.run(DEPLOY, json!({})).await.failed();
    for part in ["nowhere", "eu-west-1", "prod_cluster", "Create the cluster"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
}

/// Found by a tester: a service that never was, was told to be deleted.
#[tokio::test(start_paused = true)]
async fn a_service_that_was_never_created_is_not_told_as_deleted() {
    let world = World::new().await;
    world.sandbox.faults().add(Fault {
        service: None,
        operation: Some("CreateService".to_owned()),
        skip: 0,
        count: None,
        effect: FaultEffect::AccessDenied,
    });
    world.run(DEPLOY, json!({})).await.failed();
    world.run(ROLLBACK, json!({})).await.done();
    let log = world.log(ROLLBACK, "Rollback").await;
    assert_eq!(log, "Service web does not exist: nothing is left\n");
}

#[tokio::test(start_paused = true)]
async fn a_short_throttling_is_waited_out() {
    let world = World::new().await;
    world.sandbox.faults().add(Fault {
        service: None,
        operation: None,
        skip: 1,
        count: Some(4),
        effect: FaultEffect::Throttle,
    });
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn an_abort_tells_of_the_scaling_that_the_service_is_left_without() {
    let mut world = World::new().await;
    world.scales();
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED scaled by P1");
    world.next_run();
    world.deploys(&task_definition("nginx:2"), &service_definition(2));
    world.scales();
    let limit = std::time::Duration::from_secs(12);
    tokio::select! {
        ended = world.run(DEPLOY, json!({})) => panic!("{ended:?}"),
        () = world.clock.sleep(limit) => {}
    }
    let left = world.abort(DEPLOY, json!({})).await;
    let left = left.expect_err("something is left").message;
    insta::assert_snapshot!(left, @"Service web in cluster prod in eu-west-1 (infrastructure prod_cluster) is without its scalable target and scaling policies P1, which it had with web:1, and goes on to web:2. Run the pipeline again, which puts on the scaling of its manifests, or put it back with `aws ecs update-service` and `aws application-autoscaling register-scalable-target` and `put-scaling-policy`.");
    let log = world.log(DEPLOY, "Deploy").await;
    assert!(log.contains(&left), "{log}");
    // Nothing was taken off where scaling is left alone.
    world.run("EcsRollingRollback", json!({})).await.done();
    world.next_run();
    let alone = json!({"skipApplicationScaling": true});
    tokio::select! {
        ended = world.run(DEPLOY, alone.clone()) => panic!("{ended:?}"),
        () = world.clock.sleep(limit) => {}
    }
    assert_eq!(world.abort(DEPLOY, alone).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_vanishes_meanwhile_is_told() {
    let mut world = World::new().await;
    world.run(DEPLOY, json!({})).await.done();
    world.next_run();
    world.deploys(&task_definition("nginx:2"), &service_definition(2));
    let ecs = world.ecs();
    let clock = world.clock.clone();
    let deletion = async {
        clock.sleep(std::time::Duration::from_secs(12)).await;
        ecs.delete_service()
            .cluster("prod")
            .service("web")
            .force(true)
            .send()
            .await
            .expect("deleted");
        std::future::pending::<()>().await;
    };
    let failure = tokio::select! {
        ended = world.run(DEPLOY, json!({})) => ended.failed(),
        () = deletion => unreachable!("it never ends"),
    };
    assert!(
        failure
            .message
            .contains("somebody or something else deleted it"),
        "{}",
        failure.message
    );
    let failure = world.run(ROLLBACK, json!({})).await.failed();
    let left = failure.left_behind.expect("something is left behind");
    assert!(
        left.contains("may not be back on web:1 with 2 tasks"),
        "{left}"
    );
}

#[tokio::test(start_paused = true)]
async fn flags_of_the_step_do_what_they_say() {
    let mut world = World::new().await;
    world.manifests.extend(scaled());
    world.run(DEPLOY, json!({})).await.done();
    let scaled_by_hand = world
        .ecs()
        .update_service()
        .cluster("prod")
        .service("web")
        .desired_count(4);
    scaled_by_hand.send().await.expect("updated");
    world.clock.sleep(std::time::Duration::from_secs(120)).await;

    world.next_run();
    let arn = "arn:aws:ecs:eu-west-1:123456789012:task-definition/web:1";
    world.service_spec = json!({"ecsTaskDefinitionArn": arn});
    let spec = json!({"sameAsAlreadyRunningInstances": "true", "skipApplicationScaling": true});
    world.run(DEPLOY, spec).await.done();
    assert_eq!(world.account().await, "web:1 4/4 COMPLETED scaled by P1");
    assert_eq!(world.count("RegisterTaskDefinition"), 1);
    assert_eq!(world.count("DeleteScalingPolicy"), 0);
    let log = world.log(DEPLOY, "Deploy").await;
    assert!(
        log.contains("has started"),
        "a task definition by ARN forces a new deployment: {log}"
    );

    world.next_run();
    let failure = world
        .run(DEPLOY, json!({"forceNewDeployment": "perhaps"}))
        .await
        .failed();
    assert!(
        failure.message.contains("forceNewDeployment"),
        "{}",
        failure.message
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_definition_is_named_by_its_family_as_well() {
    let mut world = World::new().await;
    world.run(DEPLOY, json!({})).await.done();
    for (name, step) in [("web:1", DEPLOY), ("web", "EcsCanaryDeploy")] {
        world.next_run();
        world.service_spec = json!({"ecsTaskDefinitionArn": name});
        let outputs = world.run(step, json!({})).await.done();
        let arn = "arn:aws:ecs:eu-west-1:123456789012:task-definition/web:1";
        assert_eq!(outputs["output"]["taskDefinitionArn"], arn, "{step}");
    }
    world.next_run();
    world.service_spec = json!({"ecsTaskDefinitionArn": "web:7"});
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert!(
        failure
            .message
            .starts_with("Cannot find task definition `web:7` in "),
        "{}",
        failure.message
    );
    world.run(ROLLBACK, json!({})).await.done();
    let canary = "web:1 2/2 COMPLETED, beside it webCanary web:1 1/1";
    assert_eq!(world.account().await, canary);
    assert_eq!(world.count("RegisterTaskDefinition"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_being_deleted_is_waited_for() {
    let mut world = World::new().await;
    world.run(DEPLOY, json!({})).await.done();
    let ecs = world.ecs();
    ecs.delete_service()
        .cluster("prod")
        .service("web")
        .force(true)
        .send()
        .await
        .expect("deleted");
    assert_eq!(world.account().await, "DRAINING");
    world.next_run();
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(world.account().await, "web:2 2/2 COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn a_connector_with_the_role_of_a_service_account_deploys() {
    let mut world = World::new().await;
    world.connector = json!({"credential": {"type": "Irsa"}});
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
    world.next_run();
    world.connector = json!({"credential": {"type": "Irsaa"}});
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert!(
        failure.message.contains("`Irsaa` is unknown") && failure.message.contains("and Irsa"),
        "{}",
        failure.message
    );
}

#[tokio::test(start_paused = true)]
async fn a_lambda_function_has_no_service_account() {
    let clock = slipway_clock::Clock::paused("2026-01-01T00:00:00Z".parse().expect("a time"));
    let config = slipway_steps::aws::TargetConfig {
        endpoint_url: None,
        http_client: None,
        ambient: slipway_steps::aws::Ambient::HostToAssumeRoles,
        objects: None,
    };
    let targets = slipway_steps::aws::AwsTargets::new(config, clock);
    let spec = json!({"credential": {"type": "Irsa"}});
    let connector = slipway_plan::ConnectorPlan {
        reference: "account.eks".to_owned(),
        kind: "Aws".to_owned(),
        spec: spec.clone(),
    };
    let scope = slipway_world::scope();
    let mut secrets = slipway_steps::secrets::Secrets::new(&crate::world::Vault, &scope);
    let target = targets.target(&connector, &spec, &scope, "eu-west-1", &mut secrets);
    let failure = target.await.expect_err("no pod");
    assert!(
        failure.message.contains("account.eks") && failure.message.contains("service account"),
        "{}",
        failure.message
    );
}

#[tokio::test(start_paused = true)]
async fn the_connectors_role_is_assumed_and_renewed() {
    let role = "arn:aws:iam::210987654321:role/deployer";
    let mut world = World::new().await;
    let rule = RoleRule {
        arn: role.to_owned(),
        external_id: Some("xyz".to_owned()),
        denied: false,
    };
    world.sandbox.set_role(rule).expect("a rule");
    let connector = |external_id: &str| {
        json!({"credential": {
            "type": "InheritFromDelegate",
            "crossAccountAccess": {"crossAccountRoleArn": role, "externalId": external_id},
        }})
    };
    world.connector = connector("wrong");
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert_eq!(
        failure.error,
        ErrorType::Authorization,
        "{}",
        failure.message
    );
    assert!(
        failure.message.contains("assume role"),
        "{}",
        failure.message
    );

    world.next_run();
    world.connector = connector("xyz");
    world.run(DEPLOY, json!({})).await.done();
    let principal = |operation: &str| {
        let calls = world.sandbox.calls();
        let call = calls
            .iter()
            .rev()
            .find(|call| call.operation == operation)
            .expect("a call");
        call.principal.clone()
    };
    assert!(
        principal("CreateService").contains("assumed-role/deployer"),
        "{}",
        principal("CreateService")
    );

    let before = world.count("AssumeRole");
    world
        .clock
        .sleep(std::time::Duration::from_secs(11 * 60))
        .await;
    world.next_run();
    world.run(DEPLOY, json!({})).await.done();
    assert!(
        world.count("AssumeRole") > before,
        "the session was renewed before it ended"
    );
}

#[tokio::test(start_paused = true)]
async fn credentials_that_this_version_has_not_are_refused_by_name() {
    let mut world = World::new().await;
    for kind in ["Magic", "AssumeSTSRole"] {
        world.next_run();
        world.connector = json!({"credential": {"type": kind}});
        let failure = world.run(DEPLOY, json!({})).await.failed();
        assert_eq!(failure.error, ErrorType::Authentication);
        assert!(failure.message.contains("account.aws") && failure.message.contains(kind));
    }
    assert_eq!(world.count("DescribeServices"), 0);
}
