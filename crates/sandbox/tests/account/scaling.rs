//! What Application Auto Scaling refuses of targets and policies.

use serde_json::{Value, json};

use crate::support::{Aws, Refusal};

fn words(refusal: Result<Value, Refusal>) -> String {
    let (code, message) = refusal.expect_err("a refusal");
    format!("{code}: {message}")
}

/// A request about the service `web`, with more members or others.
fn of_web(more: Value) -> Value {
    let mut body = json!({
        "ServiceNamespace": "ecs", "ResourceId": "service/c/web", "ScalableDimension": "ecs:service:DesiredCount",
    });
    let more = more.as_object().expect("members").clone();
    body.as_object_mut().expect("members").extend(more);
    body
}

#[tokio::test(start_paused = true)]
async fn targets_and_policies_are_refused_in_aws_words() {
    let aws = Aws::new();
    aws.steady_service(1, json!({})).await;
    let mut said = Vec::new();
    for more in [
        json!({"MinCapacity": 3, "MaxCapacity": 1}),
        json!({"MinCapacity": -1, "MaxCapacity": 1}),
        json!({"MinCapacity": 1}),
        json!({"ServiceNamespace": "eks", "MinCapacity": 1, "MaxCapacity": 2}),
        json!({"ScalableDimension": "ec2:service:DesiredCount", "MinCapacity": 1, "MaxCapacity": 2}),
        json!({"ResourceId": "web", "MinCapacity": 1, "MaxCapacity": 2}),
        json!({"ResourceId": "service/c/other", "MinCapacity": 1, "MaxCapacity": 2}),
    ] {
        said.push(words(
            aws.try_scaling("RegisterScalableTarget", of_web(more))
                .await,
        ));
    }
    let bounds = of_web(json!({"MinCapacity": 1, "MaxCapacity": 2}));
    aws.try_scaling("RegisterScalableTarget", bounds)
        .await
        .expect("a target");
    let tracking = |configuration: Value| {
        of_web(json!({
            "PolicyName": "P", "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": configuration,
        }))
    };
    let metric = |name: &str| json!({"PredefinedMetricType": name});
    for policy in [
        of_web(json!({"PolicyName": "P", "PolicyType": "Tracking"})),
        of_web(json!({"PolicyName": "P"})),
        tracking(
            json!({"PredefinedMetricSpecification": metric("ECSServiceAverageCPUUtilization")}),
        ),
        tracking(json!({"TargetValue": 60.0})),
        tracking(
            json!({"TargetValue": 60.0, "PredefinedMetricSpecification": metric("ALBRequestCountPerTarget")}),
        ),
    ] {
        said.push(words(aws.try_scaling("PutScalingPolicy", policy).await));
    }
    insta::assert_snapshot!(said.join("\n"), @"
    ValidationException: Maximum capacity cannot be less than minimum capacity
    ValidationException: Minimum capacity cannot be less than 0
    ValidationException: Both MinCapacity and MaxCapacity must be specified for a new scalable target.
    ValidationException: 1 validation error detected: Value 'eks' at 'serviceNamespace' failed to satisfy constraint: Member must satisfy enum value set: [ecs, elasticmapreduce, ec2, appstream, dynamodb, rds, sagemaker, custom-resource, comprehend, lambda, cassandra, kafka, elasticache, neptune, workspaces]
    ValidationException: Unsupported service namespace, resource type or scalable dimension
    ValidationException: Unsupported service namespace, resource type or scalable dimension
    ValidationException: ECS service doesn't exist: service/c/other
    ValidationException: Unsupported policy type: Tracking
    ValidationException: StepScalingPolicyConfiguration is required for policy type StepScaling
    ValidationException: 1 validation error detected: Value null at 'targetTrackingScalingPolicyConfiguration.targetValue' failed to satisfy constraint: Member must not be null
    ValidationException: Exactly one of PredefinedMetricSpecification or CustomizedMetricSpecification must be specified.
    ValidationException: Resource label should be specified for predefined metric type ALBRequestCountPerTarget
    ");
}
