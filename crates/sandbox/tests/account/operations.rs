//! Operations one by one: what they answer and refuse.

use serde_json::{Value, json};

use crate::support::{Aws, service};

fn words(refusal: Result<Value, (String, String)>) -> String {
    let (code, message) = refusal.expect_err("a refusal");
    format!("{code}: {message}")
}

#[tokio::test(start_paused = true)]
async fn services_are_refused_in_aws_words() {
    let aws = Aws::new();
    let request = service(1, json!({}));
    let mut said = Vec::new();
    said.push(words(aws.try_ecs("CreateService", request.clone()).await));
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    said.push(words(aws.try_ecs("CreateService", request.clone()).await));
    aws.register("web:1").await;
    let with = |name: &str, value: Value| {
        let mut changed = request.clone();
        changed[name] = value;
        changed
    };
    let both = json!({"minimumHealthyPercent": 100, "maximumPercent": 100});
    for (name, value) in [
        ("networkConfiguration", Value::Null),
        ("desiredCount", Value::Null),
        ("desiredCount", json!(-1)),
        ("desiredCount", json!("1")),
        ("deploymentConfiguration", both),
        ("schedulingStrategy", json!("DAEMON")),
        ("deploymentController", json!({"type": "CODE_DEPLOY"})),
        ("taskDefinition", json!("nope:7")),
        (
            "loadBalancers",
            json!([{"containerName": "nope", "containerPort": 80}]),
        ),
    ] {
        said.push(words(aws.try_ecs("CreateService", with(name, value)).await));
    }
    let named = json!({"cluster": "c", "service": "web"});
    said.push(words(aws.try_ecs("UpdateService", named.clone()).await));
    said.push(words(aws.try_ecs("DeleteService", named).await));
    insta::assert_snapshot!(said.join("\n"), @r"
    ClusterNotFoundException: Cluster not found.
    ClientException: TaskDefinition not found.
    InvalidParameterException: Network Configuration must be provided when networkMode 'awsvpc' is specified.
    InvalidParameterException: Desired count can not be null for REPLICA services.
    InvalidParameterException: desiredCount must be between 0 and 5000.
    SerializationException: desiredCount: a string can not be converted to Integer
    InvalidParameterException: Both maximumPercent and minimumHealthyPercent cannot be 100 as this will block deployments.
    InvalidParameterException: The daemon scheduling strategy does not support the Fargate launch type.
    UnsupportedFeatureException: The sandbox account does not implement the deployment controller CODE_DEPLOY.
    ClientException: TaskDefinition not found.
    InvalidParameterException: The container nope does not exist in the task definition.
    ServiceNotFoundException: Service not found.
    ServiceNotFoundException: Service not found.
    ");
}

#[tokio::test(start_paused = true)]
async fn creating_a_service_twice() {
    let aws = Aws::new();
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    aws.register("web:1").await;
    let mut request = service(1, json!({}));
    request["clientToken"] = json!("token-1");
    let first = aws.ecs("CreateService", request.clone()).await;
    let again = aws.ecs("CreateService", request.clone()).await;
    assert_eq!(
        first["service"]["deployments"][0]["id"],
        again["service"]["deployments"][0]["id"]
    );
    request["desiredCount"] = json!(2);
    let refused = words(aws.try_ecs("CreateService", request).await);
    assert_eq!(
        refused,
        "InvalidParameterException: Creation of service was not idempotent."
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_drains_and_can_be_created_again() {
    let aws = Aws::new();
    aws.steady_service(2, json!({})).await;
    let named = json!({"cluster": "c", "service": "web"});
    let refused = words(aws.try_ecs("DeleteService", named.clone()).await);
    assert_eq!(
        refused,
        "InvalidParameterException: The service cannot be stopped while it is scaled above 0."
    );
    let forced = json!({"cluster": "c", "service": "web", "force": true});
    let deleted = aws.ecs("DeleteService", forced).await;
    assert_eq!(deleted["service"]["status"], "DRAINING");
    let mut said = vec![
        words(aws.try_ecs("CreateService", service(1, json!({}))).await),
        words(aws.try_ecs("UpdateService", named.clone()).await),
        words(aws.try_ecs("DeleteCluster", json!({"cluster": "c"})).await),
    ];
    aws.pass(120).await;
    assert_eq!(aws.service().await["status"], "INACTIVE");
    assert_eq!(
        aws.ecs("ListServices", json!({"cluster": "c"})).await["serviceArns"],
        json!([])
    );
    said.push(words(aws.try_ecs("UpdateService", named).await));
    insta::assert_snapshot!(said.join("\n"), @r"
    InvalidParameterException: Unable to Start a service that is still Draining.
    ServiceNotActiveException: Service was not ACTIVE.
    ClusterContainsServicesException: The Cluster cannot be deleted while Services are active.
    ServiceNotActiveException: Service was not ACTIVE.
    ");
    aws.ecs("CreateService", service(1, json!({}))).await;
    aws.pass(120).await;
    assert_eq!(aws.service().await["runningCount"], 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_is_forgotten_after_an_hour() {
    let aws = Aws::new();
    aws.steady_service(1, json!({})).await;
    aws.ecs(
        "DeleteService",
        json!({"cluster": "c", "service": "web", "force": true}),
    )
    .await;
    aws.pass(120).await;
    assert_eq!(aws.tasks("STOPPED").await.len(), 1);
    aws.pass(3_600).await;
    assert_eq!(aws.tasks("STOPPED").await.len(), 0);
    let described = json!({"cluster": "c", "services": ["web"]});
    let described = aws.ecs("DescribeServices", described).await;
    assert_eq!(described["failures"][0]["reason"], "MISSING");
}

#[tokio::test(start_paused = true)]
async fn lists_come_in_pages() {
    let aws = Aws::new();
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    aws.register("web:1").await;
    for number in 0..12 {
        let mut request = service(0, json!({}));
        request["serviceName"] = json!(format!("web-{number:02}"));
        aws.ecs("CreateService", request).await;
    }
    let (mut names, mut sizes, mut token) = (Vec::new(), Vec::new(), Value::Null);
    loop {
        let body = json!({"cluster": "c", "nextToken": token});
        let page = aws.ecs("ListServices", body).await;
        let arns = page["serviceArns"].as_array().expect("ARNs").clone();
        sizes.push(arns.len());
        names.extend(arns);
        token = page["nextToken"].clone();
        if token.is_null() {
            break;
        }
    }
    assert_eq!(sizes, [10, 2]);
    names.dedup();
    assert_eq!(names.len(), 12);
    let bad = json!({"cluster": "c", "nextToken": "%"});
    assert_eq!(
        words(aws.try_ecs("ListServices", bad).await),
        "InvalidParameterException: Invalid token."
    );
}

#[tokio::test(start_paused = true)]
async fn task_definitions_keep_every_field_and_their_revisions() {
    let aws = Aws::new();
    for _ in 0..3 {
        aws.register("web:1").await;
    }
    let body = json!({
        "family": "other",
        "fieldOfTomorrow": {"deep": [1, null]},
        "containerDefinitions": [{"name": "a", "image": "b", "memory": 64, "alsoNew": true}],
        "tags": [{"key": "team", "value": "shop"}],
    });
    aws.ecs("RegisterTaskDefinition", body).await;
    let body = json!({"taskDefinition": "other", "include": ["TAGS"]});
    let described = aws.ecs("DescribeTaskDefinition", body).await;
    assert_eq!(
        described["taskDefinition"]["fieldOfTomorrow"],
        json!({"deep": [1, null]})
    );
    let container = &described["taskDefinition"]["containerDefinitions"][0];
    assert_eq!(container["alsoNew"], true);
    assert_eq!(container["essential"], true);
    assert_eq!(described["tags"], json!([{"key": "team", "value": "shop"}]));

    aws.ecs(
        "DeregisterTaskDefinition",
        json!({"taskDefinition": "web:3"}),
    )
    .await;
    let latest = aws
        .ecs("DescribeTaskDefinition", json!({"taskDefinition": "web"}))
        .await;
    assert_eq!(latest["taskDefinition"]["revision"], 2);
    aws.register("web:1").await;
    let body = json!({"familyPrefix": "web", "sort": "DESC", "maxResults": 2});
    let listed = aws.ecs("ListTaskDefinitions", body).await;
    let listed: Vec<&str> = listed["taskDefinitionArns"]
        .as_array()
        .expect("ARNs")
        .iter()
        .filter_map(|arn| arn.as_str()?.rsplit('/').next())
        .collect();
    assert_eq!(listed, ["web:4", "web:2"]);
    let families = aws.ecs("ListTaskDefinitionFamilies", json!({})).await;
    assert_eq!(families["families"], json!(["other", "web"]));
}

#[tokio::test(start_paused = true)]
async fn task_definitions_are_refused_in_aws_words() {
    let aws = Aws::new();
    let container = json!([{"name": "a", "image": "b", "memory": 64}]);
    let mut said = Vec::new();
    for body in [
        json!({"containerDefinitions": container}),
        json!({"family": "f"}),
        json!({"family": "f", "containerDefinitions": [{"name": "a", "memory": 64}]}),
        json!({"family": "f", "containerDefinitions": [{"name": "a", "image": "b"}]}),
        json!({"family": "f", "containerDefinitions": [{"name": "a", "image": "b", "memory": 64, "essential": false}]}),
        json!({"family": "f", "containerDefinitions": container, "requiresCompatibilities": ["FARGATE"]}),
        json!({"family": "f", "containerDefinitions": container, "requiresCompatibilities": ["FARGATE"],
            "networkMode": "awsvpc"}),
        json!({"family": "f", "containerDefinitions": container, "requiresCompatibilities": ["FARGATE"],
            "networkMode": "awsvpc", "cpu": "100", "memory": "128"}),
        json!({"family": "f", "containerDefinitions": "x"}),
    ] {
        said.push(words(aws.try_ecs("RegisterTaskDefinition", body).await));
    }
    insta::assert_snapshot!(said.join("\n"), @r"
    ClientException: Family should not be null or empty.
    ClientException: Container list cannot be empty.
    ClientException: Container.image should not be null or empty.
    ClientException: Invalid setting for container 'a'. At least one of 'memory' or 'memoryReservation' must be specified.
    ClientException: At least one container in the task definition must be marked as essential.
    ClientException: Fargate only supports network mode ‘awsvpc’.
    ClientException: Fargate requires that 'cpu' be defined at the task level.
    ClientException: No Fargate configuration exists for given values: 100 CPU, 128 memory. See the Amazon ECS documentation for the valid values.
    SerializationException: containerDefinitions: a string can not be converted to List
    ");
}

#[tokio::test(start_paused = true)]
async fn a_task_on_its_own() {
    let aws = Aws::new();
    aws.ecs("CreateCluster", json!({})).await;
    aws.instances("default", 1).await;
    let body = json!({
        "family": "job",
        "containerDefinitions": [{"name": "job", "image": "job:exits-0", "memory": 64}],
    });
    aws.ecs("RegisterTaskDefinition", body).await;
    let body = json!({"taskDefinition": "job", "count": 2, "startedBy": "me"});
    let started = aws.ecs("RunTask", body).await;
    assert_eq!(started["tasks"][0]["lastStatus"], "PENDING");
    assert_eq!(started["tasks"][0]["launchType"], "EC2");
    assert_eq!(started["tasks"][0]["group"], "family:job");
    aws.pass(60).await;
    let body = json!({"startedBy": "me", "desiredStatus": "STOPPED"});
    let arns = aws.ecs("ListTasks", body).await["taskArns"].clone();
    let described = aws.ecs("DescribeTasks", json!({"tasks": arns})).await;
    assert_eq!(described["tasks"].as_array().map(Vec::len), Some(2));
    assert_eq!(described["tasks"][0]["lastStatus"], "STOPPED");
    assert_eq!(described["tasks"][0]["containers"][0]["exitCode"], 0);
}

/// What runs a command of its own ends when that is done, and what runs as its image says goes on.
#[tokio::test(start_paused = true)]
async fn a_task_with_a_command_is_a_job() {
    let aws = Aws::new();
    aws.ecs("CreateCluster", json!({})).await;
    aws.instances("default", 3).await;
    let overridden = json!({"containerOverrides": [{"name": "job", "command": ["migrate"]}]});
    for (family, command, overrides, ends) in [
        ("plain", json!([]), json!({}), false),
        ("commanded", json!(["migrate"]), json!({}), true),
        ("overridden", json!([]), overridden, true),
    ] {
        let body = json!({"family": family, "containerDefinitions":
            [{"name": "job", "image": "shop:1", "memory": 64, "command": command}]});
        aws.ecs("RegisterTaskDefinition", body).await;
        let body = json!({"taskDefinition": family, "overrides": overrides});
        let started = aws.ecs("RunTask", body).await;
        let arn = started["tasks"][0]["taskArn"].clone();
        aws.pass(300).await;
        let described = aws.ecs("DescribeTasks", json!({"tasks": [arn]})).await;
        let task = &described["tasks"][0];
        let code = match ends {
            true => json!(0),
            false => json!(null),
        };
        assert_eq!(task["containers"][0]["exitCode"], code, "{family}: {task}");
        let status = if ends { "STOPPED" } else { "RUNNING" };
        assert_eq!(task["lastStatus"], status, "{family}");
    }
}

#[tokio::test(start_paused = true)]
async fn tags() {
    let aws = Aws::new();
    let cluster = aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    let arn = cluster["cluster"]["clusterArn"].clone();
    let pairs = json!([{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]);
    aws.ecs("TagResource", json!({"resourceArn": arn, "tags": pairs}))
        .await;
    aws.ecs(
        "UntagResource",
        json!({"resourceArn": arn, "tagKeys": ["a"]}),
    )
    .await;
    let left = aws
        .ecs("ListTagsForResource", json!({"resourceArn": arn}))
        .await;
    assert_eq!(left["tags"], json!([{"key": "b", "value": "2"}]));
}

#[tokio::test(start_paused = true)]
async fn scaling_objects() {
    let aws = Aws::new();
    aws.steady_service(1, json!({})).await;
    let id = json!({
        "ServiceNamespace": "ecs",
        "ResourceId": "service/c/web",
        "ScalableDimension": "ecs:service:DesiredCount",
    });
    let with = |more: Value| {
        let mut body = id.clone();
        let all = body.as_object_mut().expect("an object");
        all.extend(more.as_object().expect("an object").clone());
        body
    };
    let policy = with(json!({
        "PolicyName": "cpu",
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": {
            "TargetValue": 60.0,
            "PredefinedMetricSpecification": {"PredefinedMetricType": "ECSServiceAverageCPUUtilization"},
        },
    }));
    let mut said = vec![
        words(aws.try_scaling("PutScalingPolicy", policy.clone()).await),
        words(aws.try_scaling("RegisterScalableTarget", id.clone()).await),
    ];
    let bounds = with(json!({"MinCapacity": 1, "MaxCapacity": 3}));
    aws.try_scaling("RegisterScalableTarget", bounds)
        .await
        .expect("a target");
    let put = aws
        .try_scaling("PutScalingPolicy", policy)
        .await
        .expect("a policy");
    assert_eq!(put["Alarms"].as_array().map(Vec::len), Some(2));
    let all = json!({"ServiceNamespace": "ecs"});
    let found = aws
        .try_scaling("DescribeScalingPolicies", all.clone())
        .await
        .expect("policies");
    assert_eq!(found["ScalingPolicies"][0]["PolicyARN"], put["PolicyARN"]);
    aws.try_scaling("DeregisterScalableTarget", id.clone())
        .await
        .expect("an end");
    let found = aws
        .try_scaling("DescribeScalingPolicies", all)
        .await
        .expect("policies");
    assert_eq!(found["ScalingPolicies"], json!([]));
    said.push(words(
        aws.try_scaling("DeregisterScalableTarget", id.clone())
            .await,
    ));
    let named = with(json!({"PolicyName": "cpu"}));
    said.push(words(aws.try_scaling("DeleteScalingPolicy", named).await));
    insta::assert_snapshot!(said.join("\n"), @r"
    ObjectNotFoundException: No scalable target found for service namespace: ecs, resource ID: service/c/web, scalable dimension: ecs:service:DesiredCount
    ValidationException: Both MinCapacity and MaxCapacity must be specified for a new scalable target.
    ObjectNotFoundException: No scalable target found for service namespace: ecs, resource ID: service/c/web, scalable dimension: ecs:service:DesiredCount
    ObjectNotFoundException: No scaling policy found for service namespace: ecs, resource ID: service/c/web, scalable dimension: ecs:service:DesiredCount: cpu
    ");
}

#[tokio::test(start_paused = true)]
async fn a_launch_type_and_capacity_providers_do_not_go_together() {
    let aws = Aws::new();
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    aws.register("web:1").await;
    let with_spot = |mut request: Value| {
        request["launchType"] = json!("FARGATE");
        request["capacityProviderStrategy"] =
            json!([{"capacityProvider": "FARGATE_SPOT", "weight": 1}]);
        request
    };
    let mut said = Vec::new();
    let both = with_spot(service(1, json!({})));
    said.push(words(aws.try_ecs("CreateService", both).await));
    aws.ecs("CreateService", service(1, json!({}))).await;
    let both = with_spot(json!({"cluster": "c", "service": "web"}));
    said.push(words(aws.try_ecs("UpdateService", both).await));
    let both = with_spot(json!({"cluster": "c", "taskDefinition": "web"}));
    said.push(words(aws.try_ecs("RunTask", both).await));
    let expected = "InvalidParameterException: Specifying both a launch type and capacity provider strategy is not \
                    supported. Remove one and try again.";
    assert_eq!(said, [expected; 3]);
}
