//! The golden pipelines of ECS that need no load balancer, run by the binary as users have it: canary, in phases, and a task that
//! runs once between two changes of another service's size. The rolling one has its test in `local.rs`.

use std::time::{Duration, Instant};

use slipway_tests::{LocalProcess, checkout};

/// Longest that a run takes.
const PATIENCE: Duration = Duration::from_secs(180);

/// A local mode with a cluster and the template in a folder beside that of the rolling deployment.
async fn shop(dir: &std::path::Path, folder: &str) -> LocalProcess {
    let local = LocalProcess::start(dir);
    let cluster = local.ecs().create_cluster().cluster_name("shop");
    cluster.send().await.expect("a cluster");
    for folder in ["ecs-rolling", folder] {
        let folder = checkout(&format!("templates/{folder}"));
        local.json(&["apply", "-f", folder.to_str().expect("text"), "-o", "json"]);
    }
    local
}

/// Runs a pipeline and approves what waits for it; how it ended.
async fn ended(local: &LocalProcess, pipeline: &str, tag: &str) -> String {
    let started = local.json(&[
        "run",
        pipeline,
        "-o",
        "json",
        "--input",
        &format!("tag={tag}"),
    ]);
    let run = started["run"].as_str().expect("a run");
    let begun = Instant::now();
    loop {
        let found = local.json(&["get", "run", run, "-o", "json"]);
        let status = found["status"].as_str().unwrap_or_default().to_owned();
        match status.as_str() {
            "Success" | "Failed" | "Aborted" | "Expired" | "Errored" => return status,
            "ApprovalWaiting" => {
                local.slipway(&["approve", run]);
            }
            _ => {}
        }
        assert!(begun.elapsed() < PATIENCE, "{pipeline} is still {status}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Services with tasks: `<name> <running> <image>`.
async fn works(local: &LocalProcess) -> Vec<String> {
    let ecs = local.ecs();
    let names = ecs.list_services().cluster("shop").send().await;
    let names = names.expect("services").service_arns.unwrap_or_default();
    let services = ecs.describe_services().cluster("shop");
    let services = services.set_services(Some(names)).send().await;
    let mut works = Vec::new();
    for service in services.expect("services").services() {
        if service.status() != Some("ACTIVE") || service.desired_count() == 0 {
            continue;
        }
        let definition = service.task_definition().unwrap_or_default();
        let found = ecs.describe_task_definition().task_definition(definition);
        let found = found.send().await.expect("a task definition");
        let containers = found
            .task_definition()
            .map(|one| one.container_definitions());
        let image = containers.and_then(|all| all.first()?.image());
        works.push(format!(
            "{} {} {}",
            service.service_name().unwrap_or_default(),
            service.running_count(),
            image
                .unwrap_or_default()
                .rsplit(':')
                .next()
                .unwrap_or_default()
        ));
    }
    works.sort();
    works
}

#[tokio::test]
async fn a_canary_comes_first_and_goes_before_all_get_the_version() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path(), "ecs-canary").await;
    for tag in ["1.0", "2.0"] {
        assert_eq!(ended(&local, "deploy_shop_by_canary", tag).await, "Success");
        assert_eq!(works(&local).await, [format!("shop 3 {tag}")]);
    }
    assert_eq!(
        ended(&local, "deploy_shop_by_canary", "missing").await,
        "Failed"
    );
    assert_eq!(works(&local).await, ["shop 3 2.0"]);
}

#[tokio::test]
async fn tasks_move_to_the_next_version_in_phases_and_back() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path(), "ecs-basic").await;
    for (number, tag) in (1..).zip(["1.0", "2.0"]) {
        assert_eq!(ended(&local, "deploy_shop_in_phases", tag).await, "Success");
        assert_eq!(works(&local).await, [format!("shop__{number} 3 {tag}")]);
    }
    assert_eq!(
        ended(&local, "deploy_shop_in_phases", "missing").await,
        "Failed"
    );
    assert_eq!(works(&local).await, ["shop__2 3 2.0"]);
}

#[tokio::test]
async fn a_task_runs_once_while_another_service_is_smaller() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path(), "ecs-task").await;
    assert_eq!(ended(&local, "deploy_shop", "0.9").await, "Success");
    let ecs = local.ecs();
    let found = ecs.describe_services().cluster("shop").services("shop");
    let found = found.send().await.expect("the service");
    let shop = found.services().first().expect("the service");
    let workers = ecs
        .create_service()
        .cluster("shop")
        .service_name("shop-workers");
    let workers = workers
        .set_task_definition(shop.task_definition.clone())
        .set_network_configuration(shop.network_configuration.clone())
        .launch_type("FARGATE".into())
        .desired_count(4);
    workers.send().await.expect("workers");
    assert_eq!(
        ended(&local, "migrate_and_deploy_shop", "1.0").await,
        "Success"
    );
    assert_eq!(works(&local).await, ["shop 3 1.0", "shop-workers 4 0.9"]);
    // The migration does not end well: nothing is deployed.
    assert_eq!(
        ended(&local, "migrate_and_deploy_shop", "exits-3").await,
        "Failed"
    );
    assert!(works(&local).await.contains(&"shop 3 1.0".to_owned()));
}
