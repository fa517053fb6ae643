//! Services behind load balancers, and the traffic that their tasks would get.

use serde_json::{Value, json};
use slipway_clock::Clock;
use slipway_sandbox::RuleTraffic;

use crate::balancers::{Balanced, forward, group};
use crate::support::{Aws, all_between, service, without_ids};

/// `loadBalancers` with one target group.
fn behind(group: &str) -> Value {
    json!([{"targetGroupArn": group, "containerName": "app", "containerPort": 80}])
}

impl Balanced {
    /// Sets how long targets of a group drain.
    async fn delay(&self, group: &str, seconds: u32) {
        let form = format!(
            "TargetGroupArn={group}&Attributes.member.1.Key=deregistration_delay.timeout_seconds\
             &Attributes.member.1.Value={seconds}"
        );
        self.aws.elb("ModifyTargetGroupAttributes", &form).await;
    }

    /// Creates the service `name` behind a target group and waits until it is steady.
    async fn serve(&self, name: &str, group: &str, desired: u32, more: Value) {
        self.delay(group, 20).await;
        let mut body = service(desired, json!({}));
        body["serviceName"] = json!(name);
        body["loadBalancers"] = behind(group);
        for (name, value) in more.as_object().expect("members") {
            body[name] = value.clone();
        }
        self.aws.ecs("CreateService", body).await;
        self.aws.pass(120).await;
    }

    /// The traffic of the default rule from now on.
    async fn watch(&self, act: impl AsyncFnOnce()) -> RuleTraffic {
        let since = self.aws.clock.now();
        act().await;
        let found = self.aws.sandbox.traffic(&self.listener, Some(since));
        let rules = found.expect("an account").expect("a listener");
        rules.last().expect("the default rule").clone()
    }

    async fn health(&self, group: &str) -> String {
        let form = format!("TargetGroupArn={group}");
        let found = self.aws.elb("DescribeTargetHealth", &form).await;
        let mut states = all_between(&found, "State");
        states.sort_unstable();
        states.join(" ")
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_service_may_name() {
    let balanced = Balanced::new().await;
    let (aws, [one, two]) = (&balanced.aws, &balanced.groups);
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    aws.register("web:1").await;
    let form = "Name=vms&Protocol=HTTP&Port=80&VpcId=vpc-1&TargetType=instance";
    let made = aws.elb("CreateTargetGroup", form).await;
    let instances = all_between(&made, "TargetGroupArn")[0].to_owned();
    let form = format!(
        "ListenerArn={}&Priority=5&Conditions.member.1.Field=path-pattern\
         &Conditions.member.1.Values.member.1=/vms&{}",
        balanced.listener,
        forward("Actions", &[(&instances, 1)])
    );
    aws.elb("CreateRule", &form).await;
    let mut said = Vec::new();
    let mut wrong_container = behind(one);
    wrong_container[0]["containerName"] = json!("nope");
    let mut wrong_port = behind(one);
    wrong_port[0]["containerPort"] = json!(8080);
    for balancers in [
        wrong_container,
        wrong_port,
        behind("arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/x/1"),
        behind(two),
        behind(&instances),
        json!([{"containerName": "app", "containerPort": 80, "loadBalancerName": "old"}]),
    ] {
        let mut body = service(1, json!({}));
        body["loadBalancers"] = balancers;
        let refusal = aws.try_ecs("CreateService", body).await;
        let (code, message) = refusal.expect_err("a refusal");
        let message = message.replace(two, "TWO").replace(&instances, "VMS");
        said.push(format!("{code}: {message}"));
    }
    insta::assert_snapshot!(said.join("\n"), @"
    InvalidParameterException: The container nope does not exist in the task definition.
    InvalidParameterException: The container app did not have a container port 8080 defined.
    InvalidParameterException: Unable to assume role and validate the specified targetGroupArn. Please verify that the ECS service role being passed has the proper permissions.
    InvalidParameterException: The target group with targetGroupArn TWO does not have an associated load balancer.
    InvalidParameterException: The provided target group VMS has target type instance, which is incompatible with the awsvpc network mode specified in the task definition.
    InvalidParameterException: The load balancer old does not exist.
    ");
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_fails_no_request() {
    let balanced = Balanced::new().await;
    let (aws, one) = (&balanced.aws, &balanced.groups[0]);
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    let first = aws.register("web:1").await;
    balanced.serve("web", one, 2, json!({})).await;
    assert_eq!(balanced.health(one).await, "healthy healthy");
    let next = aws.register("web:2").await;
    let mut trace = String::new();
    let traffic = balanced
        .watch(async || {
            aws.update(&next).await;
            trace = aws.trace(120).await;
        })
        .await;
    insta::assert_snapshot!(trace, @"
     0s web:2 PRIMARY IN_PROGRESS 0r0p0f | web:1 ACTIVE COMPLETED 2r0p0f
     5s web:2 PRIMARY IN_PROGRESS 0r2p0f | web:1 ACTIVE COMPLETED 2r0p0f
    29s web:2 PRIMARY IN_PROGRESS 1r1p0f | web:1 ACTIVE COMPLETED 2r0p0f
    32s web:2 PRIMARY IN_PROGRESS 2r0p0f | web:1 ACTIVE COMPLETED 2r0p0f
    49s web:2 PRIMARY IN_PROGRESS 2r0p0f | web:1 ACTIVE COMPLETED 0r0p0f
    95s web:2 PRIMARY COMPLETED 2r0p0f
    ");
    let requests = traffic.requests(100.0);
    assert!(requests.failed.abs() < f64::EPSILON, "{traffic:?}");
    let by = &requests.by_task_definition;
    let served = by[&first] + by[&next];
    assert!(by[&first] > 1_000.0 && by[&next] > 1_000.0, "{by:?}");
    assert!((served - requests.sent).abs() < 1.0, "{requests:?}");
    assert_eq!(requests.by_task.len(), 4);
    let events: Vec<String> = aws
        .events(0)
        .await
        .iter()
        .map(|one| without_ids(one).replace(&balanced.groups[0], "ONE"))
        .collect();
    insta::assert_snapshot!(events.join("\n"), @"
    (service web) has started 2 tasks: (task T) (task T).
    (service web) registered 1 targets in (target-group ONE)
    (service web) registered 1 targets in (target-group ONE)
    (service web) (deployment ecs-svc/D) deployment completed.
    (service web) has reached a steady state.
    (service web) has started 2 tasks: (task T) (task T).
    (service web) registered 1 targets in (target-group ONE)
    (service web) registered 1 targets in (target-group ONE)
    (service web) deregistered 2 targets in (target-group ONE)
    (service web) has begun draining connections on 2 tasks.
    (service web) has stopped 2 running tasks: (task T) (task T).
    (service web) (deployment ecs-svc/D) deployment completed.
    (service web) has reached a steady state.
    ");
}

#[tokio::test(start_paused = true)]
async fn requests_without_a_healthy_target_are_counted() {
    let balanced = Balanced::new().await;
    let (aws, one) = (&balanced.aws, &balanced.groups[0]);
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    aws.register("web:1").await;
    // Down, then up: the only task goes before its successor comes.
    let configuration = json!({"minimumHealthyPercent": 0, "maximumPercent": 100});
    balanced
        .serve(
            "web",
            one,
            1,
            json!({"deploymentConfiguration": configuration}),
        )
        .await;
    let next = aws.register("web:2").await;
    let traffic = balanced
        .watch(async || {
            aws.update(&next).await;
            aws.pass(150).await;
        })
        .await;
    let requests = traffic.requests(1.0);
    // From the look of the scheduler that drains the old task to the health of the new one.
    insta::assert_snapshot!(format!("{:.0} of {:.0}", requests.failed, requests.sent), @"81 of 150");
}

#[tokio::test(start_paused = true)]
async fn a_swap_of_target_groups_moves_all_requests_at_once() {
    let balanced = Balanced::new().await;
    let (aws, [one, two]) = (&balanced.aws, &balanced.groups);
    balanced.rule(10, "stage").await;
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    let blue = aws.register("web:1").await;
    balanced
        .serve("blue", one, 2, json!({"taskDefinition": blue}))
        .await;
    let green = aws.register("web:2").await;
    balanced
        .serve("green", two, 2, json!({"taskDefinition": green}))
        .await;
    let shift = async |weights: &[(&str, i64)]| {
        let change = forward("DefaultActions", weights);
        let form = format!("ListenerArn={}&{change}", balanced.listener);
        aws.elb("ModifyListener", &form).await;
    };
    let traffic = balanced
        .watch(async || {
            aws.pass(10).await;
            shift(&[(one, 90), (two, 10)]).await;
            aws.pass(10).await;
            shift(&[(two, 1)]).await;
            aws.pass(10).await;
        })
        .await;
    let requests = traffic.requests(10.0);
    assert!(requests.failed.abs() < f64::EPSILON, "{traffic:?}");
    let by = |arn: &String| requests.by_task_definition[arn].round();
    assert_eq!((by(&blue), by(&green)), (190.0, 110.0));
    assert_eq!(balanced.health(one).await, "unused unused");
    assert_eq!(balanced.health(two).await, "healthy healthy");

    // A group without targets fails its share only.
    let empty = group(aws, "empty").await;
    let traffic = balanced
        .watch(async || {
            shift(&[(two, 3), (&empty, 1)]).await;
            aws.pass(40).await;
        })
        .await;
    assert_eq!(traffic.requests(1.0).failed.round(), 10.0);
}

#[tokio::test(start_paused = true)]
async fn tasks_that_fail_their_checks_get_no_requests() {
    let balanced = Balanced::new().await;
    let (aws, one) = (&balanced.aws, &balanced.groups[0]);
    aws.ecs("CreateCluster", json!({"clusterName": "c"})).await;
    let good = aws.register("web:1").await;
    balanced
        .serve("web", one, 2, json!({"healthCheckGracePeriodSeconds": 60}))
        .await;
    let next = aws.register("web:unhealthy").await;
    let traffic = balanced
        .watch(async || {
            aws.update(&next).await;
            aws.pass(60).await;
            // Found unhealthy, and let be for the grace period.
            assert_eq!(
                balanced.health(one).await,
                "healthy healthy unhealthy unhealthy"
            );
            aws.pass(60).await;
        })
        .await;
    let requests = traffic.requests(1.0);
    assert!(requests.failed.abs() < f64::EPSILON, "{traffic:?}");
    assert_eq!(
        requests.by_task_definition.keys().collect::<Vec<_>>(),
        [&good]
    );
    let failed = aws.service().await["deployments"][0]["failedTasks"].as_i64();
    assert!(failed >= Some(2), "{failed:?}");
}

/// What clients see after an update of a service behind a load balancer, reopening every `every` seconds.
async fn update_and_reopen(every: Option<u64>) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("account.redb");
    let start = "2026-01-01T00:00:00Z".parse().expect("a timestamp");
    let clock = Clock::paused(start);
    let mut balanced = Balanced::of(Aws::open(Some(&path), clock.clone())).await;
    let one = balanced.groups[0].clone();
    let cluster = json!({"clusterName": "c"});
    balanced.aws.ecs("CreateCluster", cluster).await;
    balanced.aws.register("web:1").await;
    balanced.serve("web", &one, 2, json!({})).await;
    let next = balanced.aws.register("web:2").await;
    balanced.aws.update(&next).await;
    for second in 0..100 {
        balanced.aws.pass(1).await;
        if every.is_some_and(|every| second % every == 0) {
            balanced.aws.service().await;
            drop(balanced.aws);
            balanced.aws = Aws::open(Some(&path), clock.clone());
        }
    }
    let traffic = balanced.aws.sandbox.traffic(&balanced.listener, None);
    let traffic = traffic.expect("an account").expect("a listener");
    json!({
        "service": balanced.aws.service().await,
        "health": balanced.health(&one).await,
        "traffic": serde_json::to_value(traffic).expect("JSON"),
    })
}

#[tokio::test(start_paused = true)]
async fn killed_and_opened_again_it_goes_on_the_same() {
    let whole = update_and_reopen(None).await;
    assert_eq!(update_and_reopen(Some(3)).await, whole);
}
