//! The golden blue-green pipelines, run by the binary as users have it, behind a load balancer whose requests are
//! counted.

use std::time::Duration;

use aws_sdk_elasticloadbalancingv2::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_elasticloadbalancingv2::types::{
    Action, ActionTypeEnum, ForwardActionConfig, ProtocolEnum, TargetGroupTuple, TargetTypeEnum,
};
use serde_json::Value;
use slipway_tests::{LocalProcess, checkout};

/// Longest that a run takes to the next thing that a test waits for.
const PATIENCE: Duration = Duration::from_secs(120);

/// A local mode with the templates, a cluster, and the load balancer `shop` with two listeners.
struct Shop {
    local: LocalProcess,
    /// Listeners and their rules, production first.
    listeners: Vec<(String, String)>,
    _dir: tempfile::TempDir,
}

fn elb(local: &LocalProcess) -> aws_sdk_elasticloadbalancingv2::Client {
    let config = aws_sdk_elasticloadbalancingv2::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(local.url())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new(
            "AKIATESTTESTTESTTEST",
            "secret",
            None,
            None,
            "test",
        ));
    aws_sdk_elasticloadbalancingv2::Client::from_conf(config.build())
}

/// Forwards to two target groups by weight.
fn forward(groups: &[String], weights: [i32; 2]) -> Action {
    let tuples = groups.iter().zip(weights).map(|(group, weight)| {
        TargetGroupTuple::builder()
            .target_group_arn(group)
            .weight(weight)
            .build()
    });
    let config = ForwardActionConfig::builder().set_target_groups(Some(tuples.collect()));
    Action::builder()
        .r#type(ActionTypeEnum::Forward)
        .forward_config(config.build())
        .build()
}

impl Shop {
    /// `weights` of the two target groups in the default rules of both listeners; none is one each.
    async fn open(weights: Option<[i32; 2]>) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let local = LocalProcess::start(dir.path());
        let cluster = local.ecs().create_cluster().cluster_name("shop");
        cluster.send().await.expect("a cluster");
        let elb = elb(&local);
        let balancer = elb.create_load_balancer().name("shop");
        let balancer = balancer
            .subnets("subnet-1")
            .subnets("subnet-2")
            .send()
            .await;
        let balancer = balancer.expect("a load balancer");
        let balancer = balancer.load_balancers()[0]
            .load_balancer_arn()
            .expect("an ARN");
        let mut groups = Vec::new();
        for name in ["one", "two"] {
            let group = elb
                .create_target_group()
                .name(name)
                .vpc_id("vpc-1")
                .port(80);
            let group = group
                .protocol(ProtocolEnum::Http)
                .target_type(TargetTypeEnum::Ip);
            let made = group.send().await.expect("a target group");
            let arn = made.target_groups()[0].target_group_arn();
            groups.push(arn.expect("an ARN").to_owned());
        }
        let mut listeners = Vec::new();
        for (port, group) in [80, 8080].into_iter().zip(&groups) {
            let action = match weights {
                Some(weights) => forward(&groups, weights),
                None => Action::builder()
                    .r#type(ActionTypeEnum::Forward)
                    .target_group_arn(group)
                    .build(),
            };
            let listener = elb.create_listener().load_balancer_arn(balancer).port(port);
            let listener = listener
                .protocol(ProtocolEnum::Http)
                .default_actions(action);
            let made = listener.send().await.expect("a listener");
            let listener = made.listeners()[0]
                .listener_arn()
                .expect("an ARN")
                .to_owned();
            let rules = elb.describe_rules().listener_arn(&listener).send().await;
            let rules = rules.expect("rules");
            let rule = rules.rules()[0].rule_arn().expect("an ARN").to_owned();
            listeners.push((listener, rule));
        }
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
        let [(prod, prod_rule), (stage, stage_rule)] = &self.listeners[..] else {
            panic!("two listeners")
        };
        let values = [prod, prod_rule, stage, stage_rule];
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
        let (listener, _) = &self.listeners[0];
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
    let shop = Shop::open(None).await;
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
    let shop = Shop::open(Some([1, 0])).await;
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
