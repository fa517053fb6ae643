//! Service discovery through the definitions: the tasks of a deployment are found in Cloud Map, those of the old version
//! are not any more, and a registry that is not there is refused with what AWS says.

use serde_json::{Value, json};

use crate::raw;
use crate::world::{World, service_definition, task_definition};

const DEPLOY: &str = "EcsRollingDeploy";

/// One call of Cloud Map.
async fn call(world: &World, operation: &str, body: Value) -> Value {
    let target = format!("Route53AutoNaming_v20170314.{operation}");
    let request = raw::post().header("x-amz-target", target);
    let place = ("eu-west-1", "servicediscovery");
    let told = raw::answer(world, place, request, body.to_string()).await;
    serde_json::from_str(&told).expect("JSON")
}

/// Addresses that an application finds.
async fn found(world: &World) -> Vec<Value> {
    let ask = json!({"NamespaceName": "shop", "ServiceName": "web"});
    let found = call(world, "DiscoverInstances", ask).await;
    let found = found["Instances"].as_array().expect("a list").iter();
    found
        .map(|one| one["Attributes"]["AWS_INSTANCE_IPV4"].clone())
        .collect()
}

fn deploys(world: &mut World, image: &str, registry: &str) {
    let mut definition = service_definition(2);
    definition["serviceRegistries"] = json!([{"registryArn": registry}]);
    world.deploys(&task_definition(image), &definition);
}

#[tokio::test(start_paused = true)]
async fn applications_find_the_version_that_is_deployed() {
    let mut world = World::new().await;
    let done = call(&world, "CreateHttpNamespace", json!({"Name": "shop"})).await;
    let done = call(&world, "GetOperation", done).await;
    let namespace = &done["Operation"]["Targets"]["NAMESPACE"];
    let create = json!({"Name": "web", "NamespaceId": namespace});
    let made = call(&world, "CreateService", create).await;
    let arn = made["Service"]["Arn"].as_str().expect("an ARN").to_owned();

    // What is not there is refused before anything runs, and the first deployment leaves nothing.
    let missing = format!("{arn}x");
    deploys(&mut world, "nginx:1", &missing);
    let failure = world.run(DEPLOY, json!({})).await.failed();
    let told =
        format!("The service registry {missing} does not exist. (InvalidParameterException)");
    for part in ["Cannot create service `web`", &told] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    world.run("EcsRollingRollback", json!({})).await.done();
    assert_eq!(world.account().await, "absent");

    world.next_run();
    deploys(&mut world, "nginx:1", &arn);
    world.run(DEPLOY, json!({})).await.done();
    let old = found(&world).await;
    assert_eq!(old.len(), 2, "{old:?}");

    world.next_run();
    deploys(&mut world, "nginx:2", &arn);
    world.run(DEPLOY, json!({})).await.done();
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    let new = found(&world).await;
    assert!(
        new.len() == 2 && new.iter().all(|one| !old.contains(one)),
        "{old:?} {new:?}"
    );

    world.run("EcsRollingRollback", json!({})).await.done();
    world.clock.sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(found(&world).await.len(), 2);
    assert_eq!(world.account().await, "web:2 2/2 COMPLETED");
}
