//! The bad input of the issue *AWS swimlanes*, as a person reads what becomes of it: which resource, what AWS answered,
//! what to do. What is not here has its test beside its step: target groups that two services have, rules that are not
//! there and services that are DRAINING in `blue_green/misuse.rs`, roles that may not be passed and regions that are not
//! enabled in `accounts.rs`, what others change in the middle in `foreign/`.

use serde_json::{Value, json};
use slipway_plan::ConnectorPlan;
use slipway_sandbox::Pace;
use slipway_steps::secrets::Secrets;

use crate::world::{JOB, World, job, manifest, service_definition, task_definition};

const DEPLOY: &str = "EcsRollingDeploy";

fn with(mut definition: Value, name: &str, value: Value) -> Value {
    definition[name] = value;
    definition
}

fn without(mut definition: Value, name: &str) -> Value {
    let fields = definition.as_object_mut().expect("a mapping");
    fields.shift_remove(name);
    definition
}

/// What a deployment of these definitions fails with.
async fn refused(world: &mut World, task: &Value, service: &Value) -> String {
    world.next_run();
    world.deploys(task, service);
    world.run(DEPLOY, json!({})).await.failed().message
}

#[tokio::test(start_paused = true)]
async fn definitions_with_missing_wrong_and_unknown_fields() {
    let mut world = World::with_pace(Pace::brisk()).await;
    let (task, service) = (task_definition("nginx:1"), service_definition(1));
    let mut said = Vec::new();
    for (task, service) in [
        (without(task.clone(), "family"), service.clone()),
        (
            without(task.clone(), "containerDefinitions"),
            service.clone(),
        ),
        (with(task.clone(), "cpu", json!("300")), service.clone()),
        (with(task.clone(), "familly", json!("web")), service.clone()),
        (
            with(task.clone(), "volumes", json!("data")),
            service.clone(),
        ),
        (task.clone(), without(service.clone(), "serviceName")),
        (task.clone(), without(service.clone(), "desiredCount")),
        (
            task.clone(),
            without(service.clone(), "networkConfiguration"),
        ),
        (
            task.clone(),
            with(service.clone(), "desiredCount", json!("two")),
        ),
        (
            task.clone(),
            with(service.clone(), "desiredCount", json!(-1)),
        ),
        (
            task.clone(),
            with(service.clone(), "desiredcounts", json!(2)),
        ),
        (task.clone(), json!({"services": [service.clone()]})),
        (
            task.clone(),
            with(
                service.clone(),
                "loadBalancers",
                json!([{"targetGroupArn": "web", "containerName": "web", "containerPort": 80}]),
            ),
        ),
    ] {
        said.push(refused(&mut world, &task, &service).await);
    }
    insta::assert_snapshot!(said.join("\n"), @"
    Invalid request: The EcsTaskDefinition manifest has no `family`.
    Cannot register task definition `web` in cluster prod in eu-west-1 (infrastructure prod_cluster): Container list cannot be empty. (ClientException).
    Cannot register task definition `web` in cluster prod in eu-west-1 (infrastructure prod_cluster): No Fargate configuration exists for given values: 300 CPU, 512 memory. See the Amazon ECS documentation for the valid values. (ClientException).
    Invalid request: The manifest ecstaskdefinition (EcsTaskDefinition.yaml) does not fit RegisterTaskDefinition: `familly` is not a field of RegisterTaskDefinition; did you mean `family`?.
    Invalid request: The manifest ecstaskdefinition (EcsTaskDefinition.yaml) does not fit RegisterTaskDefinition: `volumes` is a text; a list of which each is a mapping (Volume) is expected.
    Invalid request: The EcsServiceDefinition manifest has no `serviceName`.
    Cannot create service `web` in cluster prod in eu-west-1 (infrastructure prod_cluster): Desired count can not be null for REPLICA services. (InvalidParameterException). Give the service definition a `desiredCount`.
    Cannot create service `web` in cluster prod in eu-west-1 (infrastructure prod_cluster): Network Configuration must be provided when networkMode 'awsvpc' is specified. (InvalidParameterException). Give the definition a `networkConfiguration` with `awsvpcConfiguration` and `subnets`.
    Invalid request: The manifest ecsservicedefinition (EcsServiceDefinition.yaml) does not fit CreateService: `desiredCount` is a text; a whole number is expected.
    Cannot create service `web` in cluster prod in eu-west-1 (infrastructure prod_cluster): desiredCount must be between 0 and 5000. (InvalidParameterException).
    Invalid request: The manifest ecsservicedefinition (EcsServiceDefinition.yaml) does not fit CreateService: `desiredcounts` is not a field of CreateService; did you mean `desiredCount`?.
    Invalid request: The manifest ecsservicedefinition (EcsServiceDefinition.yaml) is an answer of AWS and not a request: take out the wrapper `services`.
    Cannot create service `web` in cluster prod in eu-west-1 (infrastructure prod_cluster): Unable to assume role and validate the specified targetGroupArn. Please verify that the ECS service role being passed has the proper permissions. (InvalidParameterException). Correct `targetGroupArn` of the service definition: the target group must exist, in this account and region.
    ");
    assert_eq!(world.account().await, "absent");
}

#[tokio::test(start_paused = true)]
async fn names_at_the_limit_and_beyond() {
    let mut world = World::with_pace(Pace::brisk()).await;
    let named = |length: usize| {
        with(
            service_definition(1),
            "serviceName",
            json!("w".repeat(length)),
        )
    };
    let task = task_definition("nginx:1");
    world.deploys(&task, &named(255));
    world.run(DEPLOY, json!({})).await.done();
    let mut said = vec![refused(&mut world, &task, &named(256)).await];
    // What the other strategies call their services would be too long.
    for step in ["EcsCanaryDeploy", "EcsServiceSetup"] {
        world.next_run();
        world.deploys(&task, &named(255));
        said.push(world.run(step, json!({})).await.failed().message);
    }
    let said: Vec<String> = said
        .iter()
        .map(|told| told.replace(&"w".repeat(255), "w…"))
        .collect();
    insta::assert_snapshot!(said.join("\n"), @"
    Cannot create service `w…w` in cluster prod in eu-west-1 (infrastructure prod_cluster): Invalid service name: up to 255 letters, numbers, hyphens and underscores are allowed. (InvalidParameterException).
    Invalid request: the EcsServiceDefinition cannot be deployed as a canary: the canary's name `w…Canary` has more than the 255 characters that ECS allows; shorten `serviceName`.
    Invalid request: the service w… cannot get another version: with its number the name has more than 255 characters, or there are no numbers left.
    ");

    // A function's name has 64 characters at most.
    world.next_run();
    world.deploys_package(1).await;
    let mut definition = crate::lambda::world::definition();
    definition["functionName"] = json!("f".repeat(64));
    world.deploys_function(&definition, &[]);
    world.run("AwsLambdaDeploy", json!({})).await.done();
}

#[tokio::test(start_paused = true)]
async fn a_launch_type_beside_capacity_providers() {
    let mut world = World::with_pace(Pace::brisk()).await;
    let spot = json!([{"capacityProvider": "FARGATE_SPOT", "weight": 1}]);
    let both = with(
        service_definition(1),
        "capacityProviderStrategy",
        spot.clone(),
    );
    let mut said = vec![refused(&mut world, &task_definition("nginx:1"), &both).await];
    world.step_manifests = job("nginx:exits-0", 1);
    let service = service_definition(0);
    let request = json!({
        "count": 1, "launchType": "FARGATE", "capacityProviderStrategy": spot,
        "networkConfiguration": service["networkConfiguration"],
    });
    let mut request = manifest("EcsRunTaskRequestDefinition", &request);
    request.identifier = slipway_model::id::EntityId::new("runTaskRequestDefinition");
    world.step_manifests[1] = request;
    world.next_run();
    said.push(world.run("EcsRunTask", json!({})).await.failed().message);
    insta::assert_snapshot!(said.join("\n"), @"
    Cannot create service `web` in cluster prod in eu-west-1 (infrastructure prod_cluster): Specifying both a launch type and capacity provider strategy is not supported. Remove one and try again. (InvalidParameterException). Remove `launchType` or `capacityProviderStrategy` from the definition.
    Cannot run 1 tasks of migrate:1 in cluster prod in eu-west-1 (infrastructure prod_cluster): Specifying both a launch type and capacity provider strategy is not supported. Remove one and try again. (InvalidParameterException). Remove `launchType` or `capacityProviderStrategy` from the definition.
    ");
    assert_eq!(world.ran(JOB).await, 0);

    // One of them alone is fine, where the cluster has the provider.
    let providers = aws_sdk_ecs::types::CapacityProviderStrategyItem::builder()
        .capacity_provider("FARGATE_SPOT")
        .weight(1)
        .build()
        .expect("a strategy");
    let put = world.ecs().put_cluster_capacity_providers().cluster("prod");
    let put = put.capacity_providers("FARGATE_SPOT");
    let put = put.default_capacity_provider_strategy(providers);
    put.send().await.expect("providers of the cluster");
    world.next_run();
    world.deploys(&task_definition("nginx:1"), &without(both, "launchType"));
    world.run(DEPLOY, json!({})).await.done();
}

#[tokio::test(start_paused = true)]
async fn a_connector_of_a_region_that_there_is_not_or_that_is_not_enabled() {
    let mut world = World::with_pace(Pace::brisk()).await;
    let mut said = Vec::new();
    for region in ["mars-1", "eu-wets-1", "eu-west-9", "ap-east-1", "eu-west-1"] {
        let spec = json!({"credential": {"type": "InheritFromDelegate", "region": region}});
        let connector = ConnectorPlan {
            reference: "account.aws".to_owned(),
            kind: "Aws".to_owned(),
            spec,
        };
        let scope = slipway_world::scope();
        let mut secrets = Secrets::new(&*world.services.secrets, &scope);
        let tested = world
            .services
            .aws
            .test(&connector, &scope, &mut secrets)
            .await;
        said.push(match tested {
            Ok(()) => format!("{region}: accepted"),
            Err(failure) => format!("{region}: {:?}: {}", failure.error, failure.message),
        });
    }
    world.infrastructure["region"] = json!("mars-1");
    let failure = world.run(DEPLOY, json!({})).await.failed();
    said.push(failure.message);
    insta::assert_snapshot!(said.join("\n"), @"
    mars-1: Unknown: Connector account.aws cannot be used: AWS has no region `mars-1`; did you mean `ca-west-1`?
    eu-wets-1: Unknown: Connector account.aws cannot be used: AWS has no region `eu-wets-1`; did you mean `eu-west-1`?
    eu-west-9: Authentication: Cannot test connector account.aws in eu-west-9: AWS was not able to validate the provided access credentials (AuthFailure). AWS does not accept the connector's credentials: check its keys, or renew them when they have expired; and that the account is open, has this region enabled, and is of the region's partition.
    ap-east-1: Authentication: Cannot test connector account.aws in ap-east-1: AWS was not able to validate the provided access credentials (AuthFailure). AWS does not accept the connector's credentials: check its keys, or renew them when they have expired; and that the account is open, has this region enabled, and is of the region's partition.
    eu-west-1: accepted
    Connector account.aws cannot be used: AWS has no region `mars-1`; did you mean `ca-west-1`?
    ");
}
