//! Deployments whose tasks fail: with a circuit breaker, with its rollback, and without either.

use serde_json::{Value, json};

use crate::support::{Aws, service, without_ids};

fn breaker(rollback: bool) -> Value {
    json!({"deploymentCircuitBreaker": {"enable": true, "rollback": rollback}})
}

/// Event messages of deploying `image` over a steady service of one task.
async fn deploy_over(image: &str, configuration: Value) -> (Aws, String, String) {
    let aws = Aws::new();
    aws.steady_service(1, configuration).await;
    let skip = aws.events(0).await.len();
    let next = aws.register(image).await;
    aws.update(&next).await;
    let trace = aws.trace(300).await;
    let events: Vec<String> = aws
        .events(skip)
        .await
        .iter()
        .map(|one| without_ids(one))
        .collect();
    (aws, trace, events.join("\n"))
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_pulled_is_rolled_back() {
    let (aws, trace, events) = deploy_over("web:missing", breaker(true)).await;
    insta::assert_snapshot!(trace, @r"
      0s web:2 PRIMARY IN_PROGRESS 0r0p0f | web:1 ACTIVE COMPLETED 1r0p0f
      5s web:2 PRIMARY IN_PROGRESS 0r1p0f | web:1 ACTIVE COMPLETED 1r0p0f
     24s web:2 PRIMARY IN_PROGRESS 0r0p1f | web:1 ACTIVE COMPLETED 1r0p0f
     34s web:2 PRIMARY IN_PROGRESS 0r1p1f | web:1 ACTIVE COMPLETED 1r0p0f
     53s web:2 PRIMARY IN_PROGRESS 0r0p2f | web:1 ACTIVE COMPLETED 1r0p0f
     73s web:2 PRIMARY IN_PROGRESS 0r1p2f | web:1 ACTIVE COMPLETED 1r0p0f
     94s web:2 PRIMARY IN_PROGRESS 0r0p3f | web:1 ACTIVE COMPLETED 1r0p0f
     99s web:1 PRIMARY IN_PROGRESS 1r0p0f | web:2 ACTIVE FAILED 0r0p3f
    107s web:1 PRIMARY COMPLETED 1r0p0f
    ");
    insta::assert_snapshot!(events, @r"
    (service web) has started 1 tasks: (task T).
    (service web) was unable to place a task. Reason: CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref docker.io/library/web:missing: docker.io/library/web:missing: not found.
    (service web) has started 1 tasks: (task T).
    (service web) was unable to place a task. Reason: CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref docker.io/library/web:missing: docker.io/library/web:missing: not found.
    (service web) has started 1 tasks: (task T).
    (service web) was unable to place a task. Reason: CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref docker.io/library/web:missing: docker.io/library/web:missing: not found.
    (service web) is unable to consistently start tasks successfully. For more information, see the Troubleshooting section of the Amazon ECS Developer Guide.
    (service web) (deployment ecs-svc/D) deployment failed: tasks failed to start.
    (service web) rolling back to deployment ecs-svc/D.
    (service web) (deployment ecs-svc/D) deployment completed.
    (service web) has reached a steady state.
    ");
    let service = aws.service().await;
    assert!(
        service["taskDefinition"]
            .as_str()
            .is_some_and(|arn| arn.ends_with("web:1"))
    );
    let failed = &aws.tasks("STOPPED").await[0];
    assert_eq!(failed["stopCode"], "TaskFailedToStart");
    assert_eq!(failed["containers"][0].get("runtimeId"), None);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_dies_at_start_fails_the_deployment() {
    let (aws, trace, events) = deploy_over("web:exits-3", breaker(false)).await;
    insta::assert_snapshot!(trace, @r"
     0s web:2 PRIMARY IN_PROGRESS 0r0p0f | web:1 ACTIVE COMPLETED 1r0p0f
     5s web:2 PRIMARY IN_PROGRESS 0r1p0f | web:1 ACTIVE COMPLETED 1r0p0f
    28s web:2 PRIMARY IN_PROGRESS 1r0p0f | web:1 ACTIVE COMPLETED 1r0p0f
    31s web:2 PRIMARY IN_PROGRESS 0r0p1f | web:1 ACTIVE COMPLETED 1r0p0f
    33s web:2 PRIMARY IN_PROGRESS 0r1p1f | web:1 ACTIVE COMPLETED 1r0p0f
    56s web:2 PRIMARY IN_PROGRESS 1r0p1f | web:1 ACTIVE COMPLETED 1r0p0f
    59s web:2 PRIMARY IN_PROGRESS 0r0p2f | web:1 ACTIVE COMPLETED 1r0p0f
    61s web:2 PRIMARY IN_PROGRESS 0r1p2f | web:1 ACTIVE COMPLETED 1r0p0f
    86s web:2 PRIMARY IN_PROGRESS 1r0p2f | web:1 ACTIVE COMPLETED 1r0p0f
    89s web:2 PRIMARY IN_PROGRESS 0r0p3f | web:1 ACTIVE COMPLETED 1r0p0f
    91s web:2 PRIMARY FAILED 0r0p3f | web:1 ACTIVE COMPLETED 1r0p0f
    ");
    insta::assert_snapshot!(events, @r"
    (service web) has started 1 tasks: (task T).
    (service web) has started 1 tasks: (task T).
    (service web) has started 1 tasks: (task T).
    (service web) (deployment ecs-svc/D) deployment failed: tasks failed to start.
    ");
    let failed = &aws.tasks("STOPPED").await[0];
    assert_eq!(failed["stopCode"], "EssentialContainerExited");
    assert_eq!(
        failed["stoppedReason"],
        "Essential container in task exited"
    );
    assert_eq!(failed["containers"][0]["exitCode"], 3);
}

#[tokio::test(start_paused = true)]
async fn unhealthy_tasks_are_replaced_until_the_breaker_trips() {
    let (aws, _, events) = deploy_over("web:unhealthy", breaker(true)).await;
    insta::assert_snapshot!(events, @r"
    (service web) has started 1 tasks: (task T).
    (service web) (task T) failed container health checks.
    (service web) has stopped 1 running tasks: (task T).
    (service web) has started 1 tasks: (task T).
    (service web) (task T) failed container health checks.
    (service web) has stopped 1 running tasks: (task T).
    (service web) has started 1 tasks: (task T).
    (service web) (task T) failed container health checks.
    (service web) (deployment ecs-svc/D) deployment failed: tasks failed to start.
    (service web) rolling back to deployment ecs-svc/D.
    (service web) has stopped 1 running tasks: (task T).
    (service web) (deployment ecs-svc/D) deployment completed.
    (service web) has reached a steady state.
    ");
    let failed = &aws.tasks("STOPPED").await[0];
    assert_eq!(
        failed["stoppedReason"],
        "Task failed container health checks"
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_breaker_retries_go_on_ever_slower() {
    let (aws, _, events) = deploy_over("web:missing", json!({})).await;
    insta::assert_snapshot!(events, @r"
    (service web) has started 1 tasks: (task T).
    (service web) was unable to place a task. Reason: CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref docker.io/library/web:missing: docker.io/library/web:missing: not found.
    (service web) has started 1 tasks: (task T).
    (service web) was unable to place a task. Reason: CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref docker.io/library/web:missing: docker.io/library/web:missing: not found.
    (service web) has started 1 tasks: (task T).
    (service web) was unable to place a task. Reason: CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref docker.io/library/web:missing: docker.io/library/web:missing: not found.
    (service web) is unable to consistently start tasks successfully. For more information, see the Troubleshooting section of the Amazon ECS Developer Guide.
    (service web) has started 1 tasks: (task T).
    (service web) was unable to place a task. Reason: CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref docker.io/library/web:missing: docker.io/library/web:missing: not found.
    (service web) has started 1 tasks: (task T).
    (service web) was unable to place a task. Reason: CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref docker.io/library/web:missing: docker.io/library/web:missing: not found.
    ");
    let service = aws.service().await;
    assert_eq!(service["deployments"][0]["rolloutState"], "IN_PROGRESS");
    assert_eq!(service["runningCount"], 1, "the old task stays");
    // A new task definition starts at once, throttled or not.
    let good = aws.register("web:2").await;
    aws.update(&good).await;
    aws.pass(120).await;
    let service = aws.service().await;
    assert_eq!(service["deployments"].as_array().map(Vec::len), Some(1));
    assert_eq!(service["deployments"][0]["rolloutState"], "COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn a_first_deployment_has_nothing_to_go_back_to() {
    let aws = Aws::new();
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    aws.register("web:exits").await;
    aws.ecs("CreateService", service(1, breaker(true))).await;
    aws.pass(600).await;
    let service = aws.service().await;
    let only = &service["deployments"][0];
    assert_eq!(only["status"], "PRIMARY");
    assert_eq!(only["rolloutState"], "FAILED");
    assert_eq!(
        only["rolloutStateReason"],
        "ECS deployment circuit breaker: tasks failed to start."
    );
    assert_eq!(only["failedTasks"], 3);
    assert_eq!(service["runningCount"], 0);
}

/// Thresholds by desired count, type and value ("ThresholdConfiguration", Amazon ECS API reference).
#[tokio::test(start_paused = true)]
async fn thresholds() {
    let mut failures = Vec::new();
    for (desired, threshold) in [
        (1, json!(null)),
        (8, json!(null)),
        (1, json!({"type": "COUNT", "value": 1})),
        (4, json!({"type": "UNBOUNDED_PERCENT", "value": 25})),
    ] {
        let aws = Aws::new();
        aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
        aws.register("web:exits").await;
        let mut configuration = breaker(false);
        configuration["deploymentCircuitBreaker"]["thresholdConfiguration"] = threshold.clone();
        aws.ecs("CreateService", service(desired, configuration))
            .await;
        for _ in 0..200 {
            aws.pass(1).await;
            let first = aws.service().await["deployments"][0].clone();
            if first["rolloutState"] == "FAILED" {
                failures.push(format!("{desired} {threshold}: {}", first["failedTasks"]));
                break;
            }
        }
    }
    insta::assert_snapshot!(failures.join("\n"), @r#"
    1 null: 3
    8 null: 4
    1 {"type":"COUNT","value":1}: 1
    4 {"type":"UNBOUNDED_PERCENT","value":25}: 3
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ends_later_is_replaced_and_fails_nothing() {
    let (aws, _, events) = deploy_over("web:exits-later", breaker(true)).await;
    insta::assert_snapshot!(events, @r"
    (service web) has started 1 tasks: (task T).
    (service web) has stopped 1 running tasks: (task T).
    (service web) (deployment ecs-svc/D) deployment completed.
    (service web) has reached a steady state.
    (service web) has started 1 tasks: (task T).
    (service web) has reached a steady state.
    ");
    assert_eq!(
        aws.service().await["deployments"][0]["rolloutState"],
        "COMPLETED"
    );
}
