//! What a task definition may not say, one rule at a time.

use serde_json::{Value, json};

use crate::support::Aws;

/// A definition that Fargate takes, changed.
fn fargate(change: impl FnOnce(&mut Value)) -> Value {
    let mut body = json!({
        "family": "web", "cpu": "256", "memory": "512", "networkMode": "awsvpc",
        "requiresCompatibilities": ["FARGATE"],
        "containerDefinitions": [
            {"name": "app", "image": "web:1", "portMappings": [{"containerPort": 80}]},
        ],
    });
    change(&mut body);
    body
}

/// One that runs on instances, of these containers.
fn instances(containers: Value) -> Value {
    json!({"family": "web", "memory": "512", "cpu": "256", "containerDefinitions": containers})
}

impl Aws {
    /// Code and message for each request, which AWS refuses all.
    async fn registers_none(&self, bodies: Vec<Value>) -> String {
        let mut said = Vec::new();
        for body in bodies {
            let refusal = self.try_ecs("RegisterTaskDefinition", body.clone()).await;
            let (code, message) = refusal.expect_err(&body.to_string());
            said.push(format!("{code}: {message}"));
        }
        let none = self.ecs("ListTaskDefinitions", json!({})).await;
        assert_eq!(none["taskDefinitionArns"], json!([]));
        said.join("\n")
    }
}

#[tokio::test(start_paused = true)]
async fn containers_that_do_not_go_together() {
    let aws = Aws::new();
    let waits = |other: &str, condition: &str| json!({"name": "a", "image": "a", "dependsOn": [{"containerName": other, "condition": condition}]});
    let b = json!({"name": "b", "image": "b"});
    let back = json!({"name": "b", "image": "b", "dependsOn": [{"containerName": "a", "condition": "START"}]});
    let many: Vec<Value> = (0..11)
        .map(|n| json!({"name": format!("c{n}"), "image": "c"}))
        .collect();
    let said = aws
        .registers_none(vec![
            instances(json!([b, b])),
            instances(json!(many)),
            instances(json!([waits("b", "START")])),
            instances(json!([waits("b", "READY"), b])),
            instances(json!([waits("b", "SUCCESS"), b])),
            instances(json!([waits("b", "HEALTHY"), b])),
            instances(json!([waits("b", "START"), back])),
            instances(json!([waits("a", "START")])),
            instances(json!([{"name": "a", "image": "a", "mountPoints": [{"sourceVolume": "data", "containerPath": "/d"}]}])),
            instances(json!([{"name": "a", "image": "a", "volumesFrom": [{"sourceContainer": "b"}]}])),
            instances(json!([{"name": "a", "image": "a", "memory": 64, "memoryReservation": 128}])),
            instances(json!([{"name": "a", "image": "a", "memory": 1024}])),
            instances(json!([{"name": "a", "image": "a", "cpu": 200}, {"name": "b", "image": "b", "cpu": 57}])),
            instances(json!([{"name": "a", "image": "a", "memoryReservation": 300}, {"name": "b", "image": "b", "memoryReservation": 300}])),
            instances(json!([{"name": "a", "image": "a", "secrets": [{"name": "A", "valueFrom": "arn:aws:ssm:x"}]}])),
            instances(json!([{"name": "a", "image": "a", "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "g"}}}])),
            instances(json!([{"name": "a", "image": "a", "logConfiguration": {"logDriver": "logs"}}])),
            instances(json!([{"name": "a", "image": "a", "portMappings": [{"hostPort": 80}]}])),
            instances(json!([{"name": "a", "image": "a", "portMappings": [{"containerPort": 80, "protocol": "sctp"}]}])),
        ])
        .await;
    insta::assert_snapshot!(said, @"
    ClientException: Container names must be unique within a task definition.
    ClientException: Too many containers.
    ClientException: Cannot depend on container + 'b' because it does not exist
    InvalidParameterException: 1 validation error detected: Value 'READY' at 'containerDefinitions.1.member.dependsOn.1.member.condition' failed to satisfy constraint: Member must satisfy enum value set: [START, COMPLETE, SUCCESS, HEALTHY]
    ClientException: A dependency container with SUCCESS or COMPLETE condition cannot be an essential container
    ClientException: A dependency container with HEALTHY condition must have health check configured
    ClientException: Container dependencies should not have a cycle
    ClientException: Container dependencies should not have a cycle
    ClientException: Unknown volume 'data'.
    ClientException: Invalid 'volumesFrom' setting. Unknown container: 'b'.
    ClientException: Invalid setting for container 'a'. 'memory' must be greater than or equal to 'memoryReservation'.
    ClientException: The 'memory' setting for container 'a' is greater than for the task.
    ClientException: The sum of all container 'cpu' values cannot be greater than the value of the task 'cpu'.
    ClientException: The sum of all container 'memoryReservation' values cannot be greater than the value of the task 'memory'.
    ClientException: When you are specifying container secrets, you must also specify a value for 'executionRoleArn'.
    ClientException: Log driver awslogs requires options: awslogs-region
    InvalidParameterException: 1 validation error detected: Value 'logs' at 'containerDefinitions.1.member.logConfiguration.logDriver' failed to satisfy constraint: Member must satisfy enum value set: [json-file, syslog, journald, gelf, fluentd, awslogs, splunk, awsfirelens]
    ClientException: Invalid 'containerPort' setting for container 'a'.
    InvalidParameterException: 1 validation error detected: Value 'sctp' at 'containerDefinitions.1.member.portMappings.1.member.protocol' failed to satisfy constraint: Member must satisfy enum value set: [tcp, udp]
    ");
}

#[tokio::test(start_paused = true)]
async fn what_fargate_does_not_run() {
    let aws = Aws::new();
    let container = |name: &'static str, value: Value| {
        move |body: &mut Value| body["containerDefinitions"][0][name] = value
    };
    let member = |name: &'static str, value: Value| move |body: &mut Value| body[name] = value;
    let logs = |options: Value| json!({"logDriver": "awslogs", "options": options});
    let whole = json!({"awslogs-group": "g", "awslogs-region": "us-east-1"});
    let said = aws
        .registers_none(vec![
            fargate(container(
                "portMappings",
                json!([{"containerPort": 80, "hostPort": 8080}]),
            )),
            fargate(container("links", json!(["app"]))),
            fargate(member("networkMode", json!("bridge"))),
            fargate(member("networkMode", json!("vpc"))),
            fargate(member("requiresCompatibilities", json!(["fargate"]))),
            fargate(member("cpu", Value::Null)),
            fargate(member("memory", Value::Null)),
            fargate(member("memory", json!("300"))),
            fargate(member("ipcMode", json!("task"))),
            fargate(member(
                "placementConstraints",
                json!([{"type": "memberOf", "expression": "x"}]),
            )),
            fargate(member(
                "volumes",
                json!([{"name": "v", "host": {"sourcePath": "/"}}]),
            )),
            fargate(member("runtimePlatform", json!({"cpuArchitecture": "ARM"}))),
            fargate(container("privileged", json!(true))),
            fargate(container(
                "image",
                json!("1.dkr.ecr.eu-west-1.amazonaws.com/web:1"),
            )),
            fargate(container("logConfiguration", logs(whole.clone()))),
            fargate(container(
                "logConfiguration",
                json!({"logDriver": "syslog"}),
            )),
            fargate(|body| {
                body["executionRoleArn"] = json!("arn:aws:iam::123456789012:role/tasks");
                body["containerDefinitions"][0]["logConfiguration"] = logs(whole);
            }),
        ])
        .await;
    insta::assert_snapshot!(said, @"
    ClientException: When networkMode=awsvpc, the host ports and container ports in port mappings must match.
    ClientException: Links are not supported when networkMode=awsvpc.
    ClientException: Fargate only supports network mode ‘awsvpc’.
    InvalidParameterException: 1 validation error detected: Value 'vpc' at 'networkMode' failed to satisfy constraint: Member must satisfy enum value set: [bridge, host, awsvpc, none]
    InvalidParameterException: 1 validation error detected: Value '[fargate]' at 'requiresCompatibilities' failed to satisfy constraint: Member must satisfy constraint: [Member must satisfy enum value set: [EC2, FARGATE, EXTERNAL, MANAGED_INSTANCES]]
    ClientException: Fargate requires that 'cpu' be defined at the task level.
    ClientException: Invalid setting for container 'app'. At least one of 'memory' or 'memoryReservation' must be specified.
    ClientException: No Fargate configuration exists for given values: 256 CPU, 300 memory. See the Amazon ECS documentation for the valid values.
    ClientException: Fargate compatible task definitions do not support ipcMode
    ClientException: Fargate compatible task definitions do not support constraints
    ClientException: Fargate compatible task definitions do not support sourcePath
    InvalidParameterException: 1 validation error detected: Value 'ARM' at 'runtimePlatform.cpuArchitecture' failed to satisfy constraint: Member must satisfy enum value set: [X86_64, ARM64]
    ClientException: Fargate requires that the 'privileged' setting be 'false'.
    ClientException: Fargate requires task definition to have execution role ARN to support ECR images.
    ClientException: Fargate requires task definition to have execution role ARN to support log driver awslogs.
    ClientException: syslog is not a valid log driver. Must be one of [awslogs, splunk, awsfirelens]
    ClientException: Log driver awslogs requires options: awslogs-stream-prefix
    ");
}

#[tokio::test(start_paused = true)]
async fn what_fargate_would_not_run_still_runs_on_instances() {
    let aws = Aws::new();
    let body = fargate(|body| {
        body["requiresCompatibilities"] = json!(["EC2"]);
        body["containerDefinitions"][0]["privileged"] = json!(true);
        body["containerDefinitions"][0]["portMappings"][0]["hostPort"] = json!(0);
    });
    let made = aws.ecs("RegisterTaskDefinition", body).await;
    let made = &made["taskDefinition"];
    assert_eq!(made["compatibilities"], json!(["EC2"]));
    assert_eq!(
        made["containerDefinitions"][0]["portMappings"][0]["hostPort"],
        80
    );
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    let (code, message) = aws
        .try_ecs("CreateService", crate::support::service(1, json!({})))
        .await
        .expect_err("a refusal");
    assert_eq!(
        format!("{code}: {message}"),
        "InvalidParameterException: Task definition does not support launch_type FARGATE."
    );
}
