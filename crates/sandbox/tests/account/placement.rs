//! Tasks on container instances, and the capacity that a cluster has for them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{Aws, Refusal, without_ids};

impl Aws {
    /// An Auto Scaling group `web` whose instances join a cluster.
    pub(crate) async fn instances(&self, cluster: &str, number: u32) {
        let told = format!("#!/bin/bash\necho ECS_CLUSTER={cluster} >> /etc/ecs/ecs.config\n");
        self.told_group(number, &STANDARD.encode(told)).await;
        self.pass(60).await;
    }

    /// Registers a revision of `web` that runs on instances, with a port of the host.
    async fn register_for_instances(&self, port: u16) {
        let body = json!({
            "family": "web", "memory": "512",
            "containerDefinitions": [
                {"name": "app", "image": "web:1", "portMappings": [{"containerPort": 80, "hostPort": port}]},
            ],
        });
        self.ecs("RegisterTaskDefinition", body).await;
    }

    /// Container instances of `c`: how many tasks run on each.
    async fn loads(&self) -> Vec<Value> {
        let listed = self
            .ecs("ListContainerInstances", json!({"cluster": "c"}))
            .await;
        let arns = listed["containerInstanceArns"].clone();
        if arns == json!([]) {
            return Vec::new();
        }
        let body = json!({"cluster": "c", "containerInstances": arns});
        let described = self.ecs("DescribeContainerInstances", body).await;
        assert_eq!(described["failures"], json!([]));
        let all = described["containerInstances"]
            .as_array()
            .expect("instances");
        all.iter()
            .map(|one| one["runningTasksCount"].clone())
            .collect()
    }
}

/// A service on instances.
fn service(more: Value) -> Value {
    let mut body =
        json!({"cluster": "c", "serviceName": "web", "taskDefinition": "web", "launchType": "EC2"});
    let more = more.as_object().expect("members").clone();
    body.as_object_mut().expect("members").extend(more);
    body
}

fn words(refusal: Result<Value, Refusal>) -> String {
    let (code, message) = refusal.expect_err("a refusal");
    format!("{code}: {message}")
}

#[tokio::test(start_paused = true)]
async fn a_service_waits_for_instances() {
    let aws = Aws::new();
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    aws.register_for_instances(0).await;
    aws.ecs("CreateService", service(json!({"desiredCount": 3})))
        .await;
    let run = json!({"cluster": "c", "taskDefinition": "web"});
    let refused = words(aws.try_ecs("RunTask", run.clone()).await);
    assert_eq!(
        refused,
        "InvalidParameterException: No Container Instances were found in your cluster."
    );
    aws.pass(30).await;
    assert_eq!(
        aws.events(0).await[0],
        "(service web) was unable to place a task because no container instance met all of its requirements. Reason: No \
         Container Instances were found in your cluster. For more information, see the Troubleshooting section of the \
         Amazon ECS Developer Guide."
    );
    assert_eq!(aws.service().await["deployments"][0]["failedTasks"], 0);

    aws.instances("c", 2).await;
    aws.pass(60).await;
    assert_eq!(aws.service().await["runningCount"], 3);
    let mut loads = aws.loads().await;
    loads.sort_by_key(Value::as_i64);
    assert_eq!(loads, [1, 2]);
    let ran = aws.ecs("RunTask", run).await;
    let host = ran["tasks"][0]["containerInstanceArn"]
        .as_str()
        .expect("an ARN");
    assert!(
        host.starts_with("arn:aws:ecs:us-east-1:123456789012:container-instance/c/"),
        "{host}"
    );
    let refused = words(aws.try_ecs("DeleteCluster", json!({"cluster": "c"})).await);
    assert!(
        refused.starts_with("ClusterContainsContainerInstancesException"),
        "{refused}"
    );

    // Tasks go with their instance, and come back on the one that is left.
    aws.asg(
        "SetDesiredCapacity",
        "AutoScalingGroupName=web&DesiredCapacity=1",
    )
    .await;
    aws.pass(300).await;
    assert_eq!(aws.service().await["runningCount"], 3);
    assert_eq!(aws.loads().await.len(), 1);
    let stopped = aws.tasks("STOPPED").await;
    let reasons: Vec<&str> = stopped
        .iter()
        .filter_map(|task| task["stoppedReason"].as_str())
        .collect();
    assert!(
        reasons
            .iter()
            .all(|why| why.starts_with("Host EC2 (instance i-") && why.ends_with(") terminated.")),
        "{reasons:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_port_of_an_instance_is_there_once() {
    let aws = Aws::new();
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    aws.instances("c", 1).await;
    aws.register_for_instances(8080).await;
    aws.ecs("CreateService", service(json!({"desiredCount": 2})))
        .await;
    aws.pass(60).await;
    assert_eq!(aws.service().await["runningCount"], 1);
    let events = aws.events(1).await;
    let told = events
        .iter()
        .find(|told| told.contains("port"))
        .expect("an event");
    assert_eq!(
        without_ids(told),
        "(service web) was unable to place a task because no container instance met all of its requirements. The closest \
         matching (container-instance T) is already using a port required by your task. For more information, see the \
         Troubleshooting section of the Amazon ECS Developer Guide."
    );
    let ran = aws
        .ecs("RunTask", json!({"cluster": "c", "taskDefinition": "web"}))
        .await;
    assert_eq!(
        (&ran["tasks"], &ran["failures"][0]["reason"]),
        (&json!([]), &json!("RESOURCE:PORTS"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_daemon_is_on_every_instance() {
    let aws = Aws::new();
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    aws.register_for_instances(8080).await;
    let daemon = |more: Value| {
        let mut body = service(more);
        body["schedulingStrategy"] = json!("DAEMON");
        body
    };
    let spread = json!([{"type": "spread", "field": "host"}]);
    let said = [
        words(
            aws.try_ecs("CreateService", daemon(json!({"desiredCount": 0})))
                .await,
        ),
        words(
            aws.try_ecs(
                "CreateService",
                daemon(json!({"placementStrategy": spread})),
            )
            .await,
        ),
        words(
            aws.try_ecs(
                "CreateService",
                daemon(json!({"deploymentConfiguration": {"maximumPercent": 200}})),
            )
            .await,
        ),
    ];
    insta::assert_snapshot!(said.join("\n"), @"
    InvalidParameterException: The daemon scheduling strategy does not support a desired count for services. Remove the desired count value and try again
    InvalidParameterException: The daemon scheduling strategy does not support placement strategies.
    InvalidParameterException: The daemon scheduling strategy does not support values above 100 for maximumPercent for a deployment configuration.
    ");
    aws.ecs("CreateService", daemon(json!({}))).await;
    aws.pass(30).await;
    assert_eq!(aws.service().await["desiredCount"], 0);
    aws.instances("c", 2).await;
    aws.pass(60).await;
    assert_eq!(aws.loads().await, [1, 1]);
    assert_eq!(aws.service().await["desiredCount"], 2);
    let more = json!({"cluster": "c", "service": "web", "desiredCount": 3});
    let refused = words(aws.try_ecs("UpdateService", more).await);
    assert!(
        refused.contains("does not support a desired count"),
        "{refused}"
    );
    // A new version takes the place of the old one, port and all.
    aws.register_for_instances(8080).await;
    aws.update("web").await;
    aws.pass(300).await;
    let service = aws.service().await;
    assert_eq!(service["deployments"][0]["rolloutState"], "COMPLETED");
    assert_eq!(
        (aws.loads().await, &service["runningCount"]),
        (vec![json!(1), json!(1)], &json!(2))
    );
}

#[tokio::test(start_paused = true)]
async fn capacity_comes_from_providers_of_the_cluster() {
    let aws = Aws::new();
    aws.register("web:1").await;
    let network = json!({"awsvpcConfiguration": {"subnets": ["subnet-1"]}});
    let on = |strategy: Value| json!({"cluster": "c", "taskDefinition": "web", "networkConfiguration": network, "capacityProviderStrategy": strategy});
    let spot = json!([{"capacityProvider": "FARGATE_SPOT", "weight": 1}]);
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    let mut said = Vec::new();
    said.push(words(aws.try_ecs("RunTask", on(spot.clone())).await));
    said.push(words(
        aws.try_ecs("RunTask", on(json!([{"capacityProvider": "mine"}])))
            .await,
    ));
    let put = json!({"cluster": "c", "capacityProviders": ["FARGATE_SPOT"]});
    said.push(words(aws.try_ecs("PutClusterCapacityProviders", put).await));
    let put = json!({
        "cluster": "c", "capacityProviders": ["FARGATE", "FARGATE_SPOT"], "defaultCapacityProviderStrategy": spot,
    });
    aws.ecs("PutClusterCapacityProviders", put).await;
    let (one, other) = (
        json!({"capacityProvider": "FARGATE", "weight": 1, "base": 1}),
        spot[0].clone(),
    );
    for strategy in [
        json!([one, one]),
        json!([{"capacityProvider": "FARGATE", "weight": 0}]),
        json!([one, {"capacityProvider": "FARGATE_SPOT", "base": 2}]),
        json!([one, {"capacityProvider": "FARGATE_SPOT", "weight": 1001}]),
    ] {
        said.push(words(aws.try_ecs("RunTask", on(strategy)).await));
    }
    insta::assert_snapshot!(said.join("\n"), @"
    InvalidParameterException: The specified capacity provider strategy cannot contain a capacity provider that is not associated with the cluster. Associate the capacity provider with the cluster and try again.
    InvalidParameterException: The specified capacity provider 'mine' was not found. Specify a valid name or ARN and try again.
    InvalidParameterException: defaultCapacityProviderStrategy cannot be null.
    InvalidParameterException: The specified capacity provider strategy contains duplicate capacity providers. Remove the duplicates and try again.
    InvalidParameterException: There are no capacity providers in the capacity provider strategy with a weight value greater than zero. Specify a weight value greater than zero and try again.
    InvalidParameterException: There are multiple capacity providers in the specified capacity provider strategy with a base value defined. Specify a base value for only one capacity provider and try again.
    InvalidParameterException: The weight of a capacity provider must be between 0 and 1000.
    ");
    let ran = aws.ecs("RunTask", on(json!([one, other]))).await;
    assert_eq!(ran["tasks"][0]["launchType"], "FARGATE");
    // Without a word about capacity the cluster's own strategy counts.
    let ran = aws.ecs("RunTask", on(json!([]))).await;
    assert_eq!(ran["tasks"][0]["launchType"], "FARGATE");
}

#[tokio::test(start_paused = true)]
async fn capacity_of_an_auto_scaling_group() {
    let aws = Aws::new();
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    aws.instances("c", 1).await;
    aws.register_for_instances(0).await;
    let found = aws.asg("DescribeAutoScalingGroups", "").await;
    let group = crate::support::between(&found, "AutoScalingGroupARN");
    let provider =
        json!({"name": "mine", "autoScalingGroupProvider": {"autoScalingGroupArn": group}});
    let wrong = json!({"name": "mine", "autoScalingGroupProvider": {"autoScalingGroupArn": "arn:aws:autoscaling:x"}});
    let mut said = vec![words(aws.try_ecs("CreateCapacityProvider", wrong).await)];
    aws.ecs("CreateCapacityProvider", provider.clone()).await;
    said.push(words(aws.try_ecs("CreateCapacityProvider", provider).await));
    let put = json!({"cluster": "c", "capacityProviders": ["mine", "FARGATE"], "defaultCapacityProviderStrategy": []});
    aws.ecs("PutClusterCapacityProviders", put).await;
    let both = json!([{"capacityProvider": "mine", "weight": 1}, {"capacityProvider": "FARGATE", "weight": 1}]);
    let mut request =
        json!({"cluster": "c", "taskDefinition": "web", "capacityProviderStrategy": both});
    said.push(words(aws.try_ecs("RunTask", request.clone()).await));
    request["capacityProviderStrategy"] = json!([{"capacityProvider": "mine", "weight": 1}]);
    let ran = aws.ecs("RunTask", request).await;
    assert_eq!(ran["tasks"][0]["launchType"], "EC2");
    let gone = json!({"capacityProvider": "mine"});
    said.push(words(
        aws.try_ecs("DeleteCapacityProvider", gone.clone()).await,
    ));
    let put =
        json!({"cluster": "c", "capacityProviders": [], "defaultCapacityProviderStrategy": []});
    aws.ecs("PutClusterCapacityProviders", put).await;
    aws.ecs("DeleteCapacityProvider", gone.clone()).await;
    said.push(words(aws.try_ecs("DeleteCapacityProvider", gone).await));
    insta::assert_snapshot!(said.join("\n"), @"
    ClientException: The specified Auto Scaling group ARN is invalid. Specify a valid ARN and try again.
    ClientException: The specified capacity provider already exists. To change the configuration of an existing capacity provider, update the capacity provider.
    InvalidParameterException: The specified capacity provider strategy cannot contain a mix of capacity providers using Auto Scaling groups and Fargate providers. Specify one or the other and try again.
    ClientException: The specified capacity provider cannot be deleted because it is associated with a cluster. Remove the capacity provider from the cluster and try again.
    ClientException: The specified capacity provider does not exist. Specify a valid name or ARN and try again.
    ");
}

#[tokio::test(start_paused = true)]
async fn requests_that_no_task_could_follow() {
    let aws = Aws::new();
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    aws.register("web:1").await;
    let fargate = |more: Value| {
        let mut body = service(json!({
            "launchType": "FARGATE", "desiredCount": 1,
            "networkConfiguration": {"awsvpcConfiguration": {"subnets": ["subnet-1"]}},
        }));
        body.as_object_mut()
            .expect("members")
            .extend(more.as_object().expect("members").clone());
        body
    };
    let mut said = Vec::new();
    for more in [
        json!({"placementStrategy": [{"type": "spread", "field": "host"}]}),
        json!({"placementConstraints": [{"type": "distinctInstance"}]}),
        json!({"placementConstraints": [{"type": "apart"}]}),
        json!({"platformVersion": "2.0.0"}),
        json!({"launchType": "EC2", "platformVersion": "LATEST"}),
        json!({"launchType": "SPOT"}),
        json!({"launchType": "EC2", "networkConfiguration": {"awsvpcConfiguration": {"subnets": ["s"], "assignPublicIp": "ENABLED"}}}),
        json!({"networkConfiguration": {"awsvpcConfiguration": {"subnets": ["s"], "assignPublicIp": "yes"}}}),
        json!({"networkConfiguration": {"awsvpcConfiguration": {"subnets": ["s"], "securityGroups": ["1", "2", "3", "4", "5", "6"]}}}),
        json!({"healthCheckGracePeriodSeconds": 30}),
        json!({"enableExecuteCommand": true}),
        json!({"propagateTags": "ALL"}),
    ] {
        said.push(words(aws.try_ecs("CreateService", fargate(more)).await));
    }
    let mut run =
        fargate(json!({"overrides": {"containerOverrides": [{"name": "web", "command": ["x"]}]}}));
    run["count"] = json!(1);
    said.push(words(aws.try_ecs("RunTask", run).await));
    aws.ecs("CreateService", fargate(json!({}))).await;
    let update = json!({"cluster": "c", "service": "web", "placementConstraints": [{"type": "distinctInstance"}]});
    said.push(words(aws.try_ecs("UpdateService", update).await));
    insta::assert_snapshot!(said.join("\n"), @"
    InvalidParameterException: Placement strategies are not supported with FARGATE launch type.
    InvalidParameterException: Placement constraints are not supported with FARGATE launch type.
    InvalidParameterException: 1 validation error detected: Value 'apart' at 'placementConstraints.1.member.type' failed to satisfy constraint: Member must satisfy enum value set: [distinctInstance, memberOf]
    PlatformUnknownException: The specified platform does not exist.
    InvalidParameterException: The platform version must be null when specifying an EC2 launch type.
    InvalidParameterException: 1 validation error detected: Value 'SPOT' at 'launchType' failed to satisfy constraint: Member must satisfy enum value set: [EC2, FARGATE, EXTERNAL, MANAGED_INSTANCES]
    InvalidParameterException: Assign public IP is not supported for this launch type.
    InvalidParameterException: 1 validation error detected: Value 'yes' at 'networkConfiguration.awsvpcConfiguration.assignPublicIp' failed to satisfy constraint: Member must satisfy enum value set: [ENABLED, DISABLED]
    InvalidParameterException: securityGroups can have at most 5 items.
    InvalidParameterException: Health check grace period is only valid for services configured to use load balancers
    InvalidParameterException: The service couldn't be created because a valid taskRoleArn is not being used. Specify a valid task role in your task definition and try again.
    InvalidParameterException: 1 validation error detected: Value 'ALL' at 'propagateTags' failed to satisfy constraint: Member must satisfy enum value set: [TASK_DEFINITION, SERVICE, NONE]
    InvalidParameterException: Override for container named web is not a container in the TaskDefinition.
    InvalidParameterException: Placement constraints are not supported with FARGATE launch type.
    ");
}
