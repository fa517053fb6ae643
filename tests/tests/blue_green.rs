//! The golden blue-green pipelines, run by the binary as users have it, behind a load balancer whose requests are
//! counted.

use std::time::Duration;

use aws_sdk_elasticloadbalancingv2::types::TargetTypeEnum;
use serde_json::Value;
use slipway_tests::balancer::{self, Forwarding, Listener};
use slipway_tests::{LocalProcess, checkout};

/// Longest that a run takes to the next thing that a test waits for.
const PATIENCE: Duration = Duration::from_secs(120);

/// A local mode with the templates, a cluster, and the load balancer `shop` with two listeners.
struct Shop {
    local: LocalProcess,
    /// Production first.
    listeners: Vec<Listener>,
    _dir: tempfile::TempDir,
}

impl Shop {
    async fn open(forwarding: Forwarding) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let local = LocalProcess::start(dir.path());
        let cluster = local.ecs().create_cluster().cluster_name("shop");
        cluster.send().await.expect("a cluster");
        let ports = [80, 8080];
        let listeners = balancer::open(&local, TargetTypeEnum::Ip, &ports, forwarding).await;
        for folder in ["ecs-rolling", "ecs-blue-green", "ecs-traffic-shift"] {
            let folder = checkout(&format!("templates/{folder}"));
            local.json(&["apply", "-f", folder.to_str().expect("text"), "-o", "json"]);
        }
        Self {
            local,
            listeners,
            _dir: dir,
        }
    }

    /// Starts a pipeline whose variables for listeners and rules have these names.
    fn start(&self, pipeline: &str, names: [&str; 4], tag: &str) -> String {
        let values = self.listeners.iter().flat_map(|one| [&one.arn, &one.rule]);
        let inputs = names
            .iter()
            .zip(values)
            .map(|(name, value)| format!("{name}={value}"));
        let inputs: Vec<String> = inputs.chain([format!("tag={tag}")]).collect();
        let mut line = vec!["run", pipeline, "-o", "json"];
        for input in &inputs {
            line.extend(["--input", input.as_str()]);
        }
        let started = self.local.json(&line);
        started["run"].as_str().expect("a run id").to_owned()
    }

    fn status(&self, run: &str) -> String {
        let found = self.local.json(&["get", "run", run, "-o", "json"]);
        found["status"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a run has one of these statuses; approves whatever waits for it meanwhile.
    async fn until_over(&self, run: &str) -> String {
        let begun = std::time::Instant::now();
        loop {
            let status = self.status(run);
            match status.as_str() {
                "Success" | "Failed" | "Aborted" | "Expired" | "Errored" => return status,
                "ApprovalWaiting" => {
                    self.local.slipway(&["approve", run]);
                }
                _ => {}
            }
            assert!(begun.elapsed() < PATIENCE, "run {run} is still {status}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Requests of production that found no healthy target since an instant.
    async fn failed(&self, since: &str) -> f64 {
        let listener = &self.listeners[0].arn;
        let url = format!(
            "{}/_sandbox/traffic?listener={listener}&since={since}",
            self.local.url()
        );
        let answer = reqwest::get(&url).await.expect("an answer");
        let text = answer.text().await.expect("a text");
        let found: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{url}: {text}"));
        let rules = found.as_array().or(found["rules"].as_array());
        let rule = rules.and_then(|rules| rules.last());
        let failed = rule.and_then(|rule| rule.pointer("/requests/failed"));
        failed
            .and_then(Value::as_f64)
            .unwrap_or_else(|| panic!("{found}"))
    }

    /// Services with tasks, and their tasks.
    async fn works(&self) -> Vec<String> {
        let ecs = self.local.ecs();
        let services = ecs.describe_services().cluster("shop");
        let services = services
            .services("shop-balanced__1")
            .services("shop-balanced__2");
        let services = services.send().await.expect("services");
        let mut works: Vec<String> = services
            .services()
            .iter()
            .filter(|service| service.desired_count() > 0)
            .map(|service| {
                let name = service.service_name().unwrap_or_default();
                format!("{name} {}", service.desired_count())
            })
            .collect();
        works.sort_unstable();
        works
    }
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}

#[tokio::test]
async fn two_versions_are_swapped_and_a_broken_one_is_not() {
    let shop = Shop::open(Forwarding::Apart).await;
    let names = ["prodListener", "prodRule", "stageListener", "stageRule"];
    let pipeline = "deploy_shop_blue_green";
    let run = shop.start(pipeline, names, "1.0");
    assert_eq!(shop.until_over(&run).await, "Success");
    assert_eq!(shop.works().await, ["shop-balanced__1 3"]);
    let since = now();
    let run = shop.start(pipeline, names, "2.0");
    assert_eq!(shop.until_over(&run).await, "Success");
    assert_eq!(shop.works().await, ["shop-balanced__2 3"]);
    let run = shop.start(pipeline, names, "missing");
    assert_eq!(shop.until_over(&run).await, "Failed");
    assert_eq!(shop.works().await, ["shop-balanced__2 3"]);
    assert!(shop.failed(&since).await == 0.0);
}

#[tokio::test]
async fn requests_are_shifted_in_turns_that_people_approve() {
    let shop = Shop::open(Forwarding::Weighted([1, 0])).await;
    let names = ["listener", "rule", "testListener", "testRule"];
    let pipeline = "shift_requests_to_shop";
    let run = shop.start(pipeline, names, "1.0");
    assert_eq!(shop.until_over(&run).await, "Success");
    let since = now();
    let run = shop.start(pipeline, names, "2.0");
    assert_eq!(shop.until_over(&run).await, "Success");
    let both = ["shop-balanced__1 3", "shop-balanced__2 3"];
    assert_eq!(shop.works().await, both);
    let run = shop.start(pipeline, names, "unhealthy");
    assert_eq!(shop.until_over(&run).await, "Failed");
    assert_eq!(shop.works().await, ["shop-balanced__2 3"]);
    assert!(shop.failed(&since).await == 0.0);
}
