//! CloudWatch's alarms, and the deployments that watch them.

use serde_json::{Value, json};

use crate::support::{Aws, all_between, between};

fn alarm(name: &str) -> Value {
    json!({"AlarmName": name, "MetricName": "Errors", "Namespace": "shop", "Statistic": "Sum", "Period": 60,
        "EvaluationPeriods": 1, "Threshold": 0.5, "ComparisonOperator": "GreaterThanThreshold"})
}

async fn raise(aws: &Aws, name: &str, state: &str) {
    let body = json!({"AlarmName": name, "StateValue": state, "StateReason": "somebody says so"});
    let set = aws.try_alarms("SetAlarmState", body).await;
    set.expect("an alarm");
}

fn watching(rollback: bool) -> Value {
    json!({"alarms": {"alarmNames": ["errors", "slow"], "enable": true, "rollback": rollback}})
}

/// A steady service whose deployments watch alarms.
async fn watched(rollback: bool) -> Aws {
    let aws = Aws::new();
    aws.try_alarms("PutMetricAlarm", alarm("errors"))
        .await
        .expect("an alarm");
    aws.steady_service(1, watching(rollback)).await;
    aws
}

/// Task definition, rollout and reason of the PRIMARY deployment.
async fn primary(aws: &Aws) -> String {
    let service = aws.service().await;
    let one = &service["deployments"][0];
    let arn = one["taskDefinition"].as_str().unwrap_or_default();
    let revision = arn.rsplit('/').next().unwrap_or_default();
    format!(
        "{revision} {} {}",
        one["rolloutState"], one["rolloutStateReason"]
    )
}

#[tokio::test(start_paused = true)]
async fn an_alarm_that_is_raised_fails_the_deployment_that_goes_on() {
    for rollback in [true, false] {
        let aws = watched(rollback).await;
        let skip = aws.events(0).await.len();
        let next = aws.register("web:2").await;
        aws.update(&next).await;
        aws.pass(10).await;
        raise(&aws, "errors", "ALARM").await;
        aws.pass(6).await;
        let seen = primary(&aws).await;
        let expected = match rollback {
            true => {
                "web:1 \"IN_PROGRESS\" \"ECS deployment alarm: rolling back to deploymentId ecs-svc/"
            }
            false => "web:2 \"FAILED\" \"ECS deployment failed: alarm detected.\"",
        };
        assert!(seen.starts_with(expected), "{seen}");
        let events = aws.events(skip).await;
        let told = events
            .iter()
            .any(|event| event.ends_with("deployment failed: alarm detected."));
        assert!(told, "{events:?}");
        // What served goes on, and what is rolled back to is not watched.
        aws.pass(300).await;
        let service = aws.service().await;
        let running = if rollback { 1 } else { 2 };
        assert_eq!(service["runningCount"], running, "{service}");
        if rollback {
            assert!(primary(&aws).await.starts_with("web:1 \"COMPLETED\""));
            assert_eq!(service["deployments"].as_array().map(Vec::len), Some(1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_raised_before_or_is_not_named_or_not_enabled_is_no_concern_of_a_deployment() {
    let aws = watched(true).await;
    raise(&aws, "errors", "ALARM").await;
    aws.try_alarms("PutMetricAlarm", alarm("other"))
        .await
        .expect("an alarm");
    aws.pass(5).await;
    let next = aws.register("web:2").await;
    aws.update(&next).await;
    aws.pass(10).await;
    raise(&aws, "other", "ALARM").await;
    aws.pass(300).await;
    assert!(primary(&aws).await.starts_with("web:2 \"COMPLETED\""));

    // Once it was well again it counts.
    raise(&aws, "errors", "OK").await;
    let next = aws.register("web:3").await;
    aws.update(&next).await;
    aws.pass(5).await;
    raise(&aws, "errors", "ALARM").await;
    aws.pass(300).await;
    assert!(primary(&aws).await.starts_with("web:2 \"COMPLETED\""));

    let mut off = watching(true);
    off["alarms"]["enable"] = json!(false);
    let change = json!({"cluster": "c", "service": "web", "deploymentConfiguration": off});
    aws.ecs("UpdateService", change).await;
    aws.update(&next).await;
    aws.pass(5).await;
    raise(&aws, "errors", "OK").await;
    raise(&aws, "errors", "ALARM").await;
    aws.pass(300).await;
    assert!(primary(&aws).await.starts_with("web:3 \"COMPLETED\""));

    let mut none = watching(true);
    none["alarms"]["alarmNames"] = json!([]);
    let change = json!({"cluster": "c", "service": "web", "deploymentConfiguration": none});
    let (code, _) = aws.try_ecs("UpdateService", change).await.unwrap_err();
    assert_eq!(code, "InvalidParameterException");
}

#[tokio::test(start_paused = true)]
async fn alarms_are_kept_listed_page_by_page_and_refused_as_cloudwatch_does() {
    let aws = Aws::new();
    for name in ["a", "b", "c"] {
        aws.try_alarms("PutMetricAlarm", alarm(name))
            .await
            .expect("an alarm");
    }
    let names = |answer: &Value| -> Vec<String> {
        let alarms = answer["MetricAlarms"].as_array().expect("alarms").iter();
        alarms
            .map(|one| one["AlarmName"].as_str().expect("a name").to_owned())
            .collect()
    };
    let page = aws
        .try_alarms("DescribeAlarms", json!({"MaxRecords": 2}))
        .await;
    let page = page.expect("a page");
    assert_eq!(names(&page), ["a", "b"]);
    let rest = json!({"MaxRecords": 2, "NextToken": page["NextToken"]});
    let rest = aws
        .try_alarms("DescribeAlarms", rest)
        .await
        .expect("a page");
    assert_eq!(
        (names(&rest), &rest["NextToken"]),
        (vec!["c".to_owned()], &Value::Null)
    );
    raise(&aws, "b", "ALARM").await;
    let raised = aws
        .try_alarms("DescribeAlarms", json!({"StateValue": "ALARM"}))
        .await;
    let raised = raised.expect("alarms");
    assert_eq!(names(&raised), ["b"]);
    let one = &raised["MetricAlarms"][0];
    assert_eq!(
        one["AlarmArn"],
        "arn:aws:cloudwatch:us-east-1:123456789012:alarm:b"
    );
    assert_eq!(
        (&one["Threshold"], &one["Period"]),
        (&json!(0.5), &json!(60))
    );
    assert_eq!(one["StateReason"], "somebody says so");
    // Changing an alarm leaves its state.
    aws.try_alarms("PutMetricAlarm", alarm("b"))
        .await
        .expect("an alarm");
    let raised = aws
        .try_alarms("DescribeAlarms", json!({"StateValue": "ALARM"}))
        .await;
    assert_eq!(names(&raised.expect("alarms")), ["b"]);

    let mut no_comparison = alarm("x");
    no_comparison["ComparisonOperator"] = json!("Above");
    for (operation, body, code) in [
        ("PutMetricAlarm", no_comparison, "ValidationError"),
        (
            "PutMetricAlarm",
            json!({"AlarmName": "x"}),
            "ValidationError",
        ),
        (
            "DescribeAlarms",
            json!({"MaxRecords": 101}),
            "ValidationError",
        ),
        (
            "DescribeAlarms",
            json!({"NextToken": "?"}),
            "InvalidNextToken",
        ),
        (
            "SetAlarmState",
            json!({"AlarmName": "a", "StateValue": "BAD", "StateReason": "r"}),
            "ValidationError",
        ),
        (
            "SetAlarmState",
            json!({"AlarmName": "x", "StateValue": "OK", "StateReason": "r"}),
            "ResourceNotFound",
        ),
        (
            "DeleteAlarms",
            json!({"AlarmNames": ["a", "x"]}),
            "ResourceNotFound",
        ),
        ("PutDashboard", json!({}), "InvalidAction"),
    ] {
        let refused = aws.try_alarms(operation, body.clone()).await;
        assert_eq!(
            refused.expect_err("a refusal").0,
            code,
            "{operation} {body}"
        );
    }
    let gone = aws
        .try_alarms("DeleteAlarms", json!({"AlarmNames": ["a", "b"]}))
        .await;
    gone.expect("they go");
    let left = aws.try_alarms("DescribeAlarms", json!({})).await;
    assert_eq!(names(&left.expect("alarms")), ["c"]);
}

/// Older clients speak another protocol.
#[tokio::test(start_paused = true)]
async fn the_query_protocol_is_answered_too() {
    let aws = Aws::new();
    let put = "AlarmName=cpu&MetricName=CPUUtilization&Namespace=AWS%2FECS&Statistic=Average&Period=60&EvaluationPeriods=2\
               &Threshold=80&ComparisonOperator=GreaterThanThreshold";
    aws.cloudwatch("PutMetricAlarm", put).await;
    let listed = aws
        .cloudwatch("DescribeAlarms", "AlarmNames.member.1=cpu")
        .await;
    assert_eq!(all_between(&listed, "AlarmName"), ["cpu"], "{listed}");
    assert_eq!(between(&listed, "EvaluationPeriods"), "2", "{listed}");
    assert_eq!(
        between(&listed, "StateValue"),
        "INSUFFICIENT_DATA",
        "{listed}"
    );
    assert!(
        between(&listed, "StateUpdatedTimestamp").starts_with("2026-01-01T"),
        "{listed}"
    );
}
