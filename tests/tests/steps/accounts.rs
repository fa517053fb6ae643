//! Accounts that refuse: SECURITY N7 to N9 and A16, and how patient a connector is.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_model::status::ErrorType;
use slipway_plan::ConnectorPlan;
use slipway_sandbox::{Fault, FaultEffect, Pace};
use slipway_steps::secrets::Secrets;

use crate::oidc::{iam, role};
use crate::world::{Ended, World, scope, service_definition, task_definition};

const DEPLOY: &str = "EcsRollingDeploy";
const ROLE: &str = "arn:aws:iam::123456789012:role/target";

fn fault(world: &World, count: Option<u32>, effect: FaultEffect) {
    world.sandbox.faults().add(Fault {
        service: Some("ecs".to_owned()),
        operation: Some("RegisterTaskDefinition".to_owned()),
        skip: 0,
        count,
        effect,
    });
}

fn assuming(access: Value) -> Value {
    json!({"credential": {"type": "InheritFromDelegate", "crossAccountAccess": access}})
}

fn trusting(condition: &Value) -> String {
    let statement = json!({"Effect": "Allow", "Action": "sts:AssumeRole", "Condition": condition,
        "Principal": {"AWS": "arn:aws:iam::123456789012:root"}});
    json!({"Version": "2012-10-17", "Statement": [statement]}).to_string()
}

/// When the calls of an operation came, in milliseconds after the first one.
fn times(world: &World, operation: &str) -> Vec<i64> {
    let calls = world.sandbox.calls();
    let calls = calls.iter().filter(|call| call.operation == operation);
    let at: Vec<i64> = calls.map(|call| call.at.as_millisecond()).collect();
    at.iter().map(|time| time - at[0]).collect()
}

#[tokio::test(start_paused = true)]
async fn a_connector_with_a_fixed_delay_waits_for_that_and_no_longer() {
    let mut world = World::new().await;
    world.connector["awsSdkClientBackOffStrategyOverride"] = json!({"type": "FixedDelayBackoffStrategy", "spec": {"fixedBackoff": 700, "retryCount": 3}});
    fault(&world, Some(3), FaultEffect::Throttle);
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(
        times(&world, "RegisterTaskDefinition"),
        [0, 700, 1_400, 2_100]
    );

    // One more than it is patient for.
    world.next_run();
    world.deploys(&task_definition("nginx:2"), &service_definition(2));
    fault(&world, Some(4), FaultEffect::Throttle);
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert!(
        failure.message.contains("after all retries"),
        "{}",
        failure.message
    );
}

#[tokio::test(start_paused = true)]
async fn a_connector_with_equal_jitter_waits_between_half_and_whole() {
    let mut world = World::new().await;
    let spec = json!({"baseDelay": 1000, "maxBackoffTime": 3000, "retryCount": 4});
    world.connector["awsSdkClientBackOffStrategyOverride"] =
        json!({"type": "EqualJitterBackoffStrategy", "spec": spec});
    fault(&world, Some(4), FaultEffect::ServerError);
    world.run(DEPLOY, json!({})).await.done();
    let at = times(&world, "RegisterTaskDefinition");
    let waits: Vec<i64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (wait, ceiling) in waits.iter().zip([1_000, 2_000, 3_000, 3_000]) {
        assert!((ceiling / 2..=ceiling).contains(wait), "{waits:?}");
    }
    assert_eq!(waits.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn n7_a_service_of_no_tasks_is_deployed_and_stays_empty() {
    let mut world = World::new().await;
    world.deploys(&task_definition("nginx:1"), &service_definition(0));
    world.run(DEPLOY, json!({})).await.done();
    assert_eq!(world.account().await, "web:1 0/0 COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn n7_a_cluster_that_goes_in_the_middle_ends_the_step_with_its_name() {
    let world = World::new().await;
    let (ecs, clock) = (world.ecs(), world.clock.clone());
    let deletion = async {
        clock.sleep(Duration::from_secs(12)).await;
        let service = ecs
            .delete_service()
            .cluster("prod")
            .service("web")
            .force(true);
        service.send().await.expect("deleted");
        for task in ecs
            .list_tasks()
            .cluster("prod")
            .send()
            .await
            .expect("a list")
            .task_arns()
        {
            ecs.stop_task()
                .cluster("prod")
                .task(task)
                .send()
                .await
                .expect("stopped");
        }
        while ecs.delete_cluster().cluster("prod").send().await.is_err() {
            clock.sleep(Duration::from_secs(1)).await;
        }
        std::future::pending::<()>().await;
    };
    let failure = tokio::select! {
        ended = world.run(DEPLOY, json!({})) => ended.failed(),
        () = deletion => unreachable!("it never ends"),
    };
    let told = &failure.message;
    assert!(
        told.contains("web") && (told.contains("deleted") || told.contains("Cluster")),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn n8_a_session_that_would_end_in_the_middle_of_a_step_is_renewed_before() {
    let slow = Pace {
        pull: Duration::from_secs(15 * 60),
        ..Pace::realistic()
    };
    let mut world = World::with_pace(slow).await;
    world.connector = assuming(json!({"crossAccountRoleArn": ROLE}));
    world.deploys(&task_definition("nginx:1"), &service_definition(1));
    world
        .run(DEPLOY, json!({"skipSteadyStateCheck": false}))
        .await
        .done();
    let begun = times(&world, "AssumeRole");
    assert!(begun.len() >= 2, "{begun:?}");
    assert!(
        begun.windows(2).all(|pair| pair[1] - pair[0] < 900_000),
        "{begun:?}"
    );
    let expired = world
        .sandbox
        .calls()
        .into_iter()
        .filter(|call| call.error.is_some());
    let expired: Vec<_> = expired
        .filter(|call| call.error.as_deref() == Some("ExpiredTokenException"))
        .collect();
    assert!(expired.is_empty(), "{expired:?}");
}

#[tokio::test(start_paused = true)]
async fn n9_an_account_that_does_not_want_us_is_asked_once() {
    let mut told = Vec::new();
    for region in ["ap-east-1", "cn-north-1", "us-gov-west-1"] {
        let mut world = World::new().await;
        world.infrastructure["region"] = json!(region);
        let failure = world.run(DEPLOY, json!({})).await.failed();
        assert_eq!(
            failure.error,
            ErrorType::Authentication,
            "{}",
            failure.message
        );
        assert!(
            failure.message.contains("has this region enabled"),
            "{}",
            failure.message
        );
        told.push(
            world
                .sandbox
                .calls()
                .iter()
                .filter(|call| call.error.is_some())
                .count(),
        );
    }
    for effect in [
        FaultEffect::ServiceControlPolicy,
        FaultEffect::AccountClosed,
        FaultEffect::NotSubscribed,
    ] {
        let world = World::new().await;
        fault(&world, None, effect.clone());
        let failure = world.run(DEPLOY, json!({})).await.failed();
        let kind = match effect {
            FaultEffect::AccountClosed => ErrorType::Authentication,
            _ => ErrorType::Authorization,
        };
        assert_eq!(failure.error, kind, "{}", failure.message);
        told.push(world.count("RegisterTaskDefinition"));
    }
    assert_eq!(told, [1; 6]);
}

#[tokio::test(start_paused = true)]
async fn n9_a_region_that_was_enabled_is_used() {
    let mut world = World::new().await;
    world
        .sandbox
        .set_region("ap-east-1", true)
        .expect("a region");
    world.infrastructure["region"] = json!("ap-east-1");
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert!(
        failure.message.contains("ClusterNotFoundException"),
        "{}",
        failure.message
    );
}

#[tokio::test(start_paused = true)]
async fn a16_a_connector_without_an_external_id_has_one_that_no_other_can_use() {
    let mut world = World::new().await;
    world.connector = assuming(json!({"crossAccountRoleArn": ROLE}));
    let issuer = world.services.aws.issuer().expect("an issuer").clone();
    let account = slipway_model::id::Scope::account(slipway_world::scope().account);
    let of = async |scope, id: &str| {
        let id = slipway_model::id::EntityId::new(id);
        issuer.external_ids().of(scope, &id).await.expect("an id")
    };
    let own = of(&account, "aws").await;
    assert_eq!(own, of(&account, "aws").await);
    let project = slipway_world::scope();
    assert_ne!(own, of(&account, "aws2").await);
    assert_ne!(own, of(&project, "aws").await);

    // The role wants another connector's id: refused by AWS, and the id that was given is told.
    let another = of(&project, "aws").await;
    let wants = |id: &str| trusting(&json!({"StringEquals": {"sts:ExternalId": id}}));
    role(&world, "target", &wants(&another)).await;
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert_eq!(
        failure.error,
        ErrorType::Authorization,
        "{}",
        failure.message
    );
    assert!(failure.message.contains(&own), "{}", failure.message);

    // Written by hand it is refused before AWS is asked.
    let asked = world.count("AssumeRole");
    world.connector = assuming(json!({"crossAccountRoleArn": ROLE, "externalId": another}));
    world.next_run();
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert!(
        failure.message.contains("not for this one"),
        "{}",
        failure.message
    );
    assert_eq!(world.count("AssumeRole"), asked);

    let members = [("RoleName", "target"), ("PolicyDocument", &*wants(&own))];
    iam(&world, "UpdateAssumeRolePolicy", &members).await;
    for written in [
        json!({"crossAccountRoleArn": ROLE}),
        json!({"crossAccountRoleArn": ROLE, "externalId": own}),
    ] {
        world.connector = assuming(written);
        world.next_run();
        world.run(DEPLOY, json!({})).await.done();
    }
}

/// Found by a tester: the first role that somebody created, for a function, made all runs fail once their session was renewed.
#[tokio::test(start_paused = true)]
async fn a_role_that_somebody_creates_shuts_no_connector_out() {
    let mut world = World::new().await;
    world.connector = assuming(json!({"crossAccountRoleArn": ROLE}));
    world.run(DEPLOY, json!({})).await.done();
    let statement = json!({"Effect": "Allow", "Action": "sts:AssumeRole",
        "Principal": {"Service": "lambda.amazonaws.com"}});
    let trust = json!({"Version": "2012-10-17", "Statement": statement}).to_string();
    let members = [
        ("RoleName", "checkout"),
        ("AssumeRolePolicyDocument", &*trust),
    ];
    iam(&world, "CreateRole", &members).await;
    let asked = world.count("AssumeRole");
    world.clock.sleep(Duration::from_secs(2 * 3_600)).await;
    world.next_run();
    world.run(DEPLOY, json!({})).await.done();
    assert!(world.count("AssumeRole") > asked);

    // Tasks may have roles of their account alone.
    let mut definition = task_definition("nginx:1");
    definition["taskRoleArn"] = json!("arn:aws:iam::999999999999:role/checkout");
    world.deploys(&definition, &service_definition(1));
    world.next_run();
    let failure = world.run(DEPLOY, json!({})).await.failed();
    let why = "Cross-account pass role is not allowed.";
    assert!(failure.message.contains(why), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn a_role_that_may_not_be_passed_is_told_with_its_name() {
    let mut world = World::new().await;
    world.connector = assuming(json!({"crossAccountRoleArn": ROLE}));
    let trust = trusting(&json!({}));
    iam(
        &world,
        "CreateRole",
        &[("RoleName", "target"), ("AssumeRolePolicyDocument", &trust)],
    )
    .await;
    let tasks = "arn:aws:iam::123456789012:role/tasks";
    let mut definition = task_definition("nginx:1");
    definition["executionRoleArn"] = json!(tasks);
    world.deploys(&definition, &service_definition(1));
    let failure = world.run(DEPLOY, json!({})).await.failed();
    assert_eq!(
        failure.error,
        ErrorType::Authorization,
        "{}",
        failure.message
    );
    let wanted = format!(
        "is not authorized to perform: iam:PassRole on resource: {tasks} because no identity-based policy"
    );
    assert!(failure.message.contains(&wanted), "{}", failure.message);

    let policy = json!({"Statement": {"Effect": "Allow", "Action": "iam:PassRole", "Resource": tasks,
        "Condition": {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}}});
    let members = [
        ("RoleName", "target"),
        ("PolicyName", "pass"),
        ("PolicyDocument", &*policy.to_string()),
    ];
    iam(&world, "PutRolePolicy", &members).await;
    // It may be passed now, and trusts another service: AWS launches no task.
    let trust = |service: &str| {
        let statement = json!({"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}});
        json!({"Version": "2012-10-17", "Statement": statement}).to_string()
    };
    let another = trust("lambda.amazonaws.com");
    let members = [
        ("RoleName", "tasks"),
        ("AssumeRolePolicyDocument", &*another),
    ];
    iam(&world, "CreateRole", &members).await;
    world.next_run();
    let failure = world.run(DEPLOY, json!({})).await.failed();
    let wanted = format!(
        "AWS started no task because: ECS was unable to assume the role '{tasks}' that was provided for this task"
    );
    assert!(failure.message.contains(&wanted), "{}", failure.message);

    let right = trust("ecs-tasks.amazonaws.com");
    let members = [("RoleName", "tasks"), ("PolicyDocument", &*right)];
    iam(&world, "UpdateAssumeRolePolicy", &members).await;
    world.next_run();
    world.run(DEPLOY, json!({})).await.done();

    // A managed policy lets it be passed too, and goes with its attachment.
    let members = [("RoleName", "target"), ("PolicyName", "pass")];
    iam(&world, "DeleteRolePolicy", &members).await;
    let managed = [
        ("RoleName", "target"),
        ("PolicyArn", "arn:aws:iam::aws:policy/AmazonECS_FullAccess"),
    ];
    for (operation, passes) in [("AttachRolePolicy", true), ("DetachRolePolicy", false)] {
        iam(&world, operation, &managed).await;
        world.next_run();
        match (world.run(DEPLOY, json!({})).await, passes) {
            (Ended::Done(_), true) => {}
            (Ended::Failed(failure), false) => {
                let denied = failure.message.contains("to perform: iam:PassRole");
                assert!(denied, "{}", failure.message);
            }
            (ended, _) => panic!("{operation}: {ended:?}"),
        }
    }

    // Where there are roles for tasks, one that nobody created is a typing error: AWS finds it when it launches a task.
    world.connector = json!({"credential": {"type": "InheritFromDelegate"}});
    let missing = format!("{tasks}-of-nobody");
    for member in ["executionRoleArn", "taskRoleArn"] {
        let mut wrong = definition.clone();
        wrong[member] = json!(missing);
        world.deploys(&wrong, &service_definition(1));
        world.next_run();
        let failure = world.run(DEPLOY, json!({})).await.failed();
        let wanted = format!(
            "AWS started no task because: ECS was unable to assume the role '{missing}' that was provided for this task"
        );
        assert!(failure.message.contains(&wanted), "{}", failure.message);
        world.run("EcsRollingRollback", json!({})).await.done();
    }
}

/// Whoever asks: a step, or the test of the connector.
#[tokio::test(start_paused = true)]
async fn a_connector_whose_secret_is_missing_says_which() {
    let mut world = World::with_pace(Pace::brisk()).await;
    for (keys, name) in [
        (
            json!({"accessKey": "AKIATEST", "secretKeyRef": "account.gone"}),
            "account.gone",
        ),
        (
            json!({"accessKeyRef": "account.lost", "secretKeyRef": "account.password"}),
            "account.lost",
        ),
        (
            json!({"accessKey": "AKIATEST", "secretKeyRef": "account.password", "sessionTokenRef": "account.over"}),
            "account.over",
        ),
    ] {
        world.connector = json!({"credential": {"type": "ManualConfig", "spec": keys}});
        world.next_run();
        let told = format!("Connector account.aws cannot be used: There is no secret {name}.");
        let failure = world.run(DEPLOY, json!({})).await.failed();
        assert_eq!(
            (failure.error, &failure.message),
            (ErrorType::Authentication, &told)
        );
        let connector = ConnectorPlan {
            reference: "account.aws".to_owned(),
            kind: "Aws".to_owned(),
            spec: world.connector.clone(),
        };
        let (scope, services) = (scope(), &world.services);
        let mut secrets = Secrets::new(&*services.secrets, &scope);
        let tested = services.aws.test(&connector, &scope, &mut secrets).await;
        let failure = tested.expect_err("a secret is missing");
        assert_eq!(
            (failure.error, failure.message),
            (ErrorType::Authentication, told)
        );
    }
}
