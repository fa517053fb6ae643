//! Cloud Map: namespaces, services, instances, and tasks of ECS as instances.

use serde_json::{Value, json};

use crate::support::{Aws, service};

impl Aws {
    async fn discovery(&self, operation: &str, body: Value) -> Value {
        let answer = self.try_discovery(operation, body).await;
        answer.unwrap_or_else(|refusal| panic!("{operation}: {refusal:?}"))
    }

    /// Code of what is refused.
    async fn discovery_refusal(&self, operation: &str, body: Value) -> String {
        match self.try_discovery(operation, body).await {
            Ok(answer) => panic!("{operation}: {answer}"),
            Err((code, _)) => code,
        }
    }

    /// A private namespace `shop.local` with a service `web` of these records; ids of both.
    async fn registry(&self, records: Value) -> (String, String) {
        let create = json!({"Name": "shop.local", "Vpc": "vpc-1", "CreatorRequestId": "1"});
        let done = self.discovery("CreatePrivateDnsNamespace", create).await;
        let operation = self.discovery("GetOperation", done).await;
        let operation = &operation["Operation"];
        assert_eq!(operation["Status"], "SUCCESS");
        let namespace = operation["Targets"]["NAMESPACE"].as_str().expect("an id");
        let create = json!({
            "Name": "web", "NamespaceId": namespace, "HealthCheckCustomConfig": {"FailureThreshold": 1},
            "DnsConfig": {"DnsRecords": records},
        });
        let made = self.discovery("CreateService", create).await;
        let arn = made["Service"]["Arn"].as_str().expect("an ARN").to_owned();
        (namespace.to_owned(), arn)
    }

    /// Ids of the instances that an application finds.
    async fn found(&self) -> Vec<String> {
        let ask = json!({"NamespaceName": "shop.local", "ServiceName": "web"});
        let found = self.discovery("DiscoverInstances", ask).await;
        let found = found["Instances"].as_array().expect("a list").iter();
        found
            .map(|one| {
                assert_eq!(one["HealthStatus"], "HEALTHY", "{one}");
                one["InstanceId"].as_str().expect("an id").to_owned()
            })
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_are_instances_while_they_run() {
    let aws = Aws::new();
    let (_, arn) = aws.registry(json!([{"Type": "A", "TTL": 10}])).await;
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    aws.register("web:1").await;
    let mut wanted = service(2, json!({}));
    wanted["serviceRegistries"] = json!([{"registryArn": arn}]);
    let made = aws.ecs("CreateService", wanted).await;
    assert_eq!(
        made["service"]["serviceRegistries"][0]["registryArn"],
        arn.as_str()
    );
    assert_eq!(aws.found().await.len(), 0);
    aws.pass(120).await;
    let ids = |tasks: Vec<Value>| {
        let ids = tasks
            .iter()
            .map(|task| task["taskArn"].as_str().expect("an ARN"));
        let mut ids: Vec<String> = ids
            .map(|arn| arn.rsplit('/').next().unwrap_or_default().to_owned())
            .collect();
        ids.sort();
        ids
    };
    let first = aws.found().await;
    assert_eq!(first, ids(aws.tasks("RUNNING").await));
    let list = aws
        .discovery("ListInstances", json!({"ServiceId": arn, "MaxResults": 1}))
        .await;
    assert!(list["NextToken"].is_string(), "{list}");
    let attributes = &list["Instances"][0]["Attributes"];
    assert_eq!(attributes["ECS_SERVICE_NAME"], "web");
    assert!(
        attributes["AWS_INSTANCE_IPV4"]
            .as_str()
            .is_some_and(|ip| ip.starts_with("10.0."))
    );
    let busy = aws
        .discovery_refusal("DeleteService", json!({"Id": arn}))
        .await;
    assert_eq!(busy, "ResourceInUse");

    let second = aws.register("web:2").await;
    aws.update(&second).await;
    aws.pass(300).await;
    let now = aws.found().await;
    assert_eq!(now, ids(aws.tasks("RUNNING").await));
    assert!(
        now.len() == 2 && now.iter().all(|id| !first.contains(id)),
        "{first:?} {now:?}"
    );
    let gone = json!({"cluster": "c", "service": "web", "force": true});
    aws.ecs("DeleteService", gone).await;
    aws.pass(300).await;
    assert_eq!(aws.found().await.len(), 0);
    aws.discovery("DeleteService", json!({"Id": arn})).await;
}

#[tokio::test(start_paused = true)]
async fn registries_that_a_service_may_not_name() {
    let aws = Aws::new();
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    aws.register("web:1").await;
    let (namespace, arn) = aws.registry(json!([{"Type": "SRV", "TTL": 10}])).await;
    let missing = format!("{arn}0");
    let no_service = arn.replace(":service/", ":namespace/");
    let mut said = Vec::new();
    for registries in [
        json!([{"registryArn": missing, "port": 80}]),
        json!([{"registryArn": no_service}]),
        json!([{"registryArn": arn}]),
        json!([{"registryArn": arn, "port": 80, "containerName": "app", "containerPort": 80}]),
        json!([{"registryArn": arn, "port": 80}, {"registryArn": arn, "port": 81}]),
    ] {
        let mut wanted = service(1, json!({}));
        wanted["serviceRegistries"] = registries;
        let (code, message) = aws
            .try_ecs("CreateService", wanted)
            .await
            .expect_err("refused");
        assert_eq!(code, "InvalidParameterException");
        said.push(
            message
                .replace(&missing, "MISSING")
                .replace(&no_service, "NAMESPACE"),
        );
    }
    insta::assert_snapshot!(said.join("\n"), @"
    The service registry MISSING does not exist.
    The format of the supplied service registry ARN is invalid: NAMESPACE.
    A port is required by the specified service registry: specify 'port', or 'containerName' and 'containerPort'.
    Specify a value for either 'port' or the 'containerName' and 'containerPort' combination, but not both. Remove one and retry.
    serviceRegistries can have at most 1 items.
    ");
    let mut wanted = service(1, json!({}));
    wanted["serviceRegistries"] =
        json!([{"registryArn": arn, "containerName": "app", "containerPort": 80}]);
    aws.ecs("CreateService", wanted).await;
    aws.pass(120).await;
    let list = aws
        .discovery("ListInstances", json!({"ServiceId": arn}))
        .await;
    assert_eq!(
        list["Instances"][0]["Attributes"]["AWS_INSTANCE_PORT"],
        "80"
    );
    let busy = aws
        .discovery_refusal("DeleteNamespace", json!({"Id": namespace}))
        .await;
    assert_eq!(busy, "ResourceInUse");
}

#[tokio::test(start_paused = true)]
async fn instances_of_people_are_registered_found_and_taken_out() {
    let aws = Aws::new();
    let (_, arn) = aws.registry(json!([{"Type": "A", "TTL": 10}])).await;
    let instance = |id: &str, attributes: Value| json!({"ServiceId": arn, "InstanceId": id, "Attributes": attributes});
    let no_address = aws
        .discovery_refusal("RegisterInstance", instance("a", json!({})))
        .await;
    assert_eq!(no_address, "InvalidInput");
    for (id, health) in [("a", "HEALTHY"), ("b", "UNHEALTHY")] {
        let attributes = json!({"AWS_INSTANCE_IPV4": "10.1.1.1", "AWS_INIT_HEALTH_STATUS": health});
        aws.discovery("RegisterInstance", instance(id, attributes))
            .await;
    }
    assert_eq!(aws.found().await, ["a"]);
    let gone = json!({"ServiceId": arn, "InstanceId": "a"});
    aws.discovery("DeregisterInstance", gone.clone()).await;
    assert_eq!(
        aws.discovery_refusal("DeregisterInstance", gone).await,
        "InstanceNotFound"
    );
    for (operation, body, code) in [
        ("GetService", json!({"Id": "srv-0"}), "ServiceNotFound"),
        ("GetNamespace", json!({"Id": "ns-0"}), "NamespaceNotFound"),
        (
            "GetOperation",
            json!({"OperationId": "0"}),
            "OperationNotFound",
        ),
        (
            "CreateHttpNamespace",
            json!({"Name": "shop.local"}),
            "NamespaceAlreadyExists",
        ),
        (
            "CreatePrivateDnsNamespace",
            json!({"Name": "other"}),
            "InvalidInput",
        ),
        (
            "DiscoverInstances",
            json!({"NamespaceName": "shop.local", "ServiceName": "nobody"}),
            "ServiceNotFound",
        ),
    ] {
        assert_eq!(
            aws.discovery_refusal(operation, body).await,
            code,
            "{operation}"
        );
    }
}
