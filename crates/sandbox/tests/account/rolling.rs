//! Rolling updates under the healthy percentages.

use serde_json::json;

use crate::support::{Aws, without_ids};

/// The trace of replacing four tasks, with the bounds checked at every look.
async fn replace_four(minimum: u32, maximum: u32) -> String {
    let aws = Aws::new();
    let configuration = json!({"minimumHealthyPercent": minimum, "maximumPercent": maximum});
    aws.steady_service(4, configuration).await;
    let next = aws.register("web:2").await;
    aws.update(&next).await;
    let trace = aws.trace(150).await;
    for line in trace.lines() {
        let (mut running, mut all) = (0, 0);
        for count in line.split(' ').filter(|word| word.ends_with('f')) {
            let numbers: Vec<u32> = count
                .split(['r', 'p', 'f'])
                .filter_map(|number| number.parse().ok())
                .collect();
            running += numbers[0];
            all += numbers[0] + numbers[1];
        }
        assert!(running * 100 >= 4 * minimum, "too few run: {line}");
        assert!(all * 100 <= 4 * maximum, "too many tasks: {line}");
    }
    trace
}

#[tokio::test(start_paused = true)]
async fn doubled() {
    insta::assert_snapshot!(replace_four(100, 200).await, @r"
     0s web:2 PRIMARY IN_PROGRESS 0r0p0f | web:1 ACTIVE COMPLETED 4r0p0f
     5s web:2 PRIMARY IN_PROGRESS 0r4p0f | web:1 ACTIVE COMPLETED 4r0p0f
    28s web:2 PRIMARY IN_PROGRESS 1r3p0f | web:1 ACTIVE COMPLETED 4r0p0f
    32s web:2 PRIMARY IN_PROGRESS 4r0p0f | web:1 ACTIVE COMPLETED 4r0p0f
    48s web:2 PRIMARY IN_PROGRESS 4r0p0f | web:1 ACTIVE COMPLETED 0r0p0f
    77s web:2 PRIMARY COMPLETED 4r0p0f
    ");
}

#[tokio::test(start_paused = true)]
async fn half_more() {
    insta::assert_snapshot!(replace_four(100, 150).await, @r"
      0s web:2 PRIMARY IN_PROGRESS 0r0p0f | web:1 ACTIVE COMPLETED 4r0p0f
      5s web:2 PRIMARY IN_PROGRESS 0r2p0f | web:1 ACTIVE COMPLETED 4r0p0f
     28s web:2 PRIMARY IN_PROGRESS 1r1p0f | web:1 ACTIVE COMPLETED 4r0p0f
     32s web:2 PRIMARY IN_PROGRESS 2r0p0f | web:1 ACTIVE COMPLETED 4r0p0f
     48s web:2 PRIMARY IN_PROGRESS 2r0p0f | web:1 ACTIVE COMPLETED 2r0p0f
     71s web:2 PRIMARY IN_PROGRESS 2r2p0f | web:1 ACTIVE COMPLETED 2r0p0f
     93s web:2 PRIMARY IN_PROGRESS 3r1p0f | web:1 ACTIVE COMPLETED 2r0p0f
     96s web:2 PRIMARY IN_PROGRESS 4r0p0f | web:1 ACTIVE COMPLETED 2r0p0f
    113s web:2 PRIMARY IN_PROGRESS 4r0p0f | web:1 ACTIVE COMPLETED 0r0p0f
    142s web:2 PRIMARY COMPLETED 4r0p0f
    ");
}

#[tokio::test(start_paused = true)]
async fn half_less() {
    insta::assert_snapshot!(replace_four(50, 100).await, @r"
      0s web:2 PRIMARY IN_PROGRESS 0r0p0f | web:1 ACTIVE COMPLETED 4r0p0f
      5s web:2 PRIMARY IN_PROGRESS 0r0p0f | web:1 ACTIVE COMPLETED 2r0p0f
     28s web:2 PRIMARY IN_PROGRESS 0r2p0f | web:1 ACTIVE COMPLETED 2r0p0f
     51s web:2 PRIMARY IN_PROGRESS 1r1p0f | web:1 ACTIVE COMPLETED 2r0p0f
     52s web:2 PRIMARY IN_PROGRESS 2r0p0f | web:1 ACTIVE COMPLETED 2r0p0f
     71s web:2 PRIMARY IN_PROGRESS 2r0p0f | web:1 ACTIVE COMPLETED 0r0p0f
     92s web:2 PRIMARY IN_PROGRESS 2r2p0f | web:1 ACTIVE COMPLETED 0r0p0f
    115s web:2 PRIMARY IN_PROGRESS 3r1p0f | web:1 ACTIVE COMPLETED 0r0p0f
    117s web:2 PRIMARY IN_PROGRESS 4r0p0f | web:1 ACTIVE COMPLETED 0r0p0f
    135s web:2 PRIMARY COMPLETED 4r0p0f
    ");
}

#[tokio::test(start_paused = true)]
async fn half_less_and_doubled() {
    insta::assert_snapshot!(replace_four(50, 200).await, @r"
     0s web:2 PRIMARY IN_PROGRESS 0r0p0f | web:1 ACTIVE COMPLETED 4r0p0f
     5s web:2 PRIMARY IN_PROGRESS 0r4p0f | web:1 ACTIVE COMPLETED 4r0p0f
    28s web:2 PRIMARY IN_PROGRESS 1r3p0f | web:1 ACTIVE COMPLETED 4r0p0f
    32s web:2 PRIMARY IN_PROGRESS 4r0p0f | web:1 ACTIVE COMPLETED 4r0p0f
    48s web:2 PRIMARY IN_PROGRESS 4r0p0f | web:1 ACTIVE COMPLETED 0r0p0f
    77s web:2 PRIMARY COMPLETED 4r0p0f
    ");
}

#[tokio::test(start_paused = true)]
async fn events_of_a_rolling_update() {
    let aws = Aws::new();
    aws.steady_service(2, json!({})).await;
    let next = aws.register("web:2").await;
    aws.update(&next).await;
    aws.pass(150).await;
    let events: Vec<String> = aws
        .events(0)
        .await
        .iter()
        .map(|one| without_ids(one))
        .collect();
    insta::assert_snapshot!(events.join("\n"), @r"
    (service web) has started 2 tasks: (task T) (task T).
    (service web) (deployment ecs-svc/D) deployment completed.
    (service web) has reached a steady state.
    (service web) has started 2 tasks: (task T) (task T).
    (service web) has stopped 2 running tasks: (task T) (task T).
    (service web) (deployment ecs-svc/D) deployment completed.
    (service web) has reached a steady state.
    ");
}

#[tokio::test(start_paused = true)]
async fn a_changed_count_is_no_deployment() {
    let aws = Aws::new();
    aws.steady_service(3, json!({})).await;
    let scale = |count: u32| json!({"cluster": "c", "service": "web", "desiredCount": count});
    aws.ecs("UpdateService", scale(1)).await;
    let down = aws.trace(60).await;
    aws.ecs("UpdateService", scale(2)).await;
    let up = aws.trace(60).await;
    insta::assert_snapshot!(down + &up, @r"
     0s web:1 PRIMARY COMPLETED 3r0p0f
     5s web:1 PRIMARY COMPLETED 1r0p0f
     0s web:1 PRIMARY COMPLETED 1r0p0f
     5s web:1 PRIMARY COMPLETED 1r1p0f
    29s web:1 PRIMARY COMPLETED 2r0p0f
    ");
}

#[tokio::test(start_paused = true)]
async fn a_forced_deployment_replaces_the_same_revision() {
    let aws = Aws::new();
    aws.steady_service(1, json!({})).await;
    let before = aws.tasks("RUNNING").await[0]["taskArn"].clone();
    let body = json!({"cluster": "c", "service": "web", "forceNewDeployment": true});
    aws.ecs("UpdateService", body).await;
    aws.pass(120).await;
    let after = aws.tasks("RUNNING").await;
    assert_eq!(after.len(), 1);
    assert_ne!(after[0]["taskArn"], before);
    let old = &aws.tasks("STOPPED").await[0];
    assert_eq!(old["taskArn"], before);
    assert_eq!(old["stopCode"], "ServiceSchedulerInitiated");
    let reason = without_ids(old["stoppedReason"].as_str().expect("a reason"));
    assert_eq!(
        reason,
        "Scaling activity initiated by (deployment ecs-svc/D)"
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_that_somebody_stops_is_replaced() {
    let aws = Aws::new();
    aws.steady_service(2, json!({})).await;
    let arn = aws.tasks("RUNNING").await[0]["taskArn"].clone();
    let body = json!({"cluster": "c", "task": arn, "reason": "to see"});
    let stopping = aws.ecs("StopTask", body).await["task"].clone();
    assert_eq!(stopping["lastStatus"], "DEACTIVATING");
    assert_eq!(stopping["desiredStatus"], "STOPPED");
    aws.pass(120).await;
    let running = aws.tasks("RUNNING").await;
    assert_eq!(running.len(), 2);
    assert!(running.iter().all(|task| task["taskArn"] != arn));
    let stopped = &aws.tasks("STOPPED").await[0];
    assert_eq!(stopped["stoppedReason"], "to see");
    assert_eq!(stopped["stopCode"], "UserInitiated");
}
