//! What a rollback leads to is what served when the deployment began, and not what an aborted one before it had asked for
//! and that never came up.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_sandbox::{Fault, FaultEffect, ImageBehaviour, ImageRule};

use crate::asg::{Groups, list};
use crate::world::{World, service_definition, task_definition};

const PREPARE: &str = "Prepare rollback data";

/// Runs a step for some time, and aborts it then; what it says that it leaves.
async fn aborted(world: &World, (step, spec): (&str, Value), seconds: u64) -> String {
    let time = Duration::from_secs(seconds);
    let ended = tokio::time::timeout(time, world.run(step, spec.clone())).await;
    assert!(ended.is_err(), "{step} ended: {ended:?}");
    let left = world.abort(step, spec).await;
    left.map_or_else(|failure| failure.message, |()| String::new())
}

mod ecs {
    use super::*;

    const DEPLOY: &str = "EcsRollingDeploy";
    const ROLLBACK: &str = "EcsRollingRollback";

    /// A service with web:1, after an aborted deployment of web:2, whose image cannot be pulled, to another subnet.
    async fn after_an_abort() -> World {
        let mut world = World::new().await;
        world.run(DEPLOY, json!({})).await.done();
        world.next_run();
        let mut elsewhere = service_definition(2);
        elsewhere["networkConfiguration"]["awsvpcConfiguration"]["subnets"] = json!(["subnet-2"]);
        world.deploys(&task_definition("nginx:missing"), &elsewhere);
        aborted(&world, (DEPLOY, json!({})), 12).await;
        assert_eq!(
            world.account().await,
            "web:2 2/2 IN_PROGRESS,COMPLETED",
            "after the abort"
        );
        world.next_run();
        world
    }

    async fn subnet(world: &World) -> String {
        let described = world.ecs().describe_services().cluster("prod");
        let described = described.services("web").send().await.expect("an answer");
        let network = described.services()[0].network_configuration();
        let network = network.and_then(|one| one.awsvpc_configuration());
        network.map_or_else(String::new, |one| one.subnets().join(","))
    }

    #[tokio::test(start_paused = true)]
    async fn a_deployment_after_an_aborted_one_goes_back_to_what_serves() {
        for image in ["nginx:missing", "nginx:3"] {
            let mut world = after_an_abort().await;
            world.deploys(&task_definition(image), &service_definition(2));
            let ended = world.run(DEPLOY, json!({})).await;
            match image {
                "nginx:3" => drop(ended.done()),
                _ => drop(ended.failed()),
            }
            let log = world.log(DEPLOY, PREPARE).await;
            for part in [
                "Service web in cluster prod in eu-west-1 (infrastructure prod_cluster) was told to run web:2, which has \
                 not come up (IN_PROGRESS, 0 of 2 tasks run",
                "): web:1 serves, with 2 tasks, as Slipway's records say (run run-",
                "a rollback brings back web:1.",
            ] {
                assert!(log.contains(part), "{log}");
            }
            world.run(ROLLBACK, json!({})).await.done();
            assert_eq!(world.account().await, "web:1 2/2 COMPLETED", "{image}");
            assert_eq!(subnet(&world).await, "subnet-1", "{image}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_serves_comes_back_also_where_the_update_was_refused() {
        let mut world = after_an_abort().await;
        world.deploys(&task_definition("nginx:3"), &service_definition(2));
        world.sandbox.faults().add(Fault {
            service: None,
            operation: Some("UpdateService".to_owned()),
            skip: 0,
            count: None,
            effect: FaultEffect::AccessDenied,
        });
        world.run(DEPLOY, json!({})).await.failed();
        world.sandbox.faults().clear();
        world.run(ROLLBACK, json!({})).await.done();
        assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
    }

    #[tokio::test(start_paused = true)]
    async fn a_deployment_of_somebody_else_that_goes_well_is_what_comes_back() {
        let mut world = World::new().await;
        world.run(DEPLOY, json!({})).await.done();
        let ecs = world.ecs();
        let theirs = ecs.describe_task_definition().task_definition("web:1");
        let theirs = theirs.send().await.expect("an answer");
        let theirs = theirs.task_definition.expect("a definition");
        let register = ecs.register_task_definition().family("web");
        let register = register
            .set_container_definitions(theirs.container_definitions)
            .cpu("512")
            .memory("1024")
            .network_mode("awsvpc".into())
            .requires_compatibilities("FARGATE".into())
            .execution_role_arn("arn:aws:iam::123456789012:role/ecsTaskExecutionRole");
        register.send().await.expect("registered");
        let update = ecs.update_service().cluster("prod").service("web");
        update
            .task_definition("web:2")
            .send()
            .await
            .expect("theirs");
        loop {
            world.clock.sleep(Duration::from_secs(1)).await;
            let described = ecs.describe_services().cluster("prod").services("web");
            let described = described.send().await.expect("an answer");
            let newest = &described.services()[0].deployments()[0];
            assert_eq!(
                newest.rollout_state().map(|one| one.as_str()),
                Some("IN_PROGRESS")
            );
            if newest.running_count() > 0 {
                break;
            }
        }
        world.next_run();
        world.deploys(&task_definition("nginx:3"), &service_definition(2));
        world.run(DEPLOY, json!({})).await.done();
        let log = world.log(DEPLOY, PREPARE).await;
        assert!(
            log.contains("runs web:2, and Slipway's records say web:1 (run "),
            "{log}"
        );
        world.run(ROLLBACK, json!({})).await.done();
        assert_eq!(world.account().await, "web:2 2/2 COMPLETED");
    }

    #[tokio::test(start_paused = true)]
    async fn the_basic_strategy_gives_an_earlier_service_back_what_served() {
        let percent =
            json!({"newServiceInstanceCount": 100, "newServiceInstanceUnit": "Percentage"});
        let mut world = after_an_abort().await;
        world.deploys(&task_definition("nginx:3"), &service_definition(2));
        world.run("EcsServiceSetup", json!({})).await.done();
        let log = world.log("EcsServiceSetup", PREPARE).await;
        assert!(
            log.contains(
                "was told to run web:2, which has not come up: web:1 serves, with 2 tasks."
            ),
            "{log}"
        );
        world.run("EcsUpgradeContainer", percent).await.done();
        world.run("EcsBasicRollback", json!({})).await.done();
        assert_eq!(world.account().await, "web:1 2/2 COMPLETED");
    }

    #[tokio::test(start_paused = true)]
    async fn the_basic_strategy_takes_over_from_what_serves() {
        let percent =
            json!({"newServiceInstanceCount": 100, "newServiceInstanceUnit": "Percentage"});
        let (setup, upgrade) = ("EcsServiceSetup", "EcsUpgradeContainer");
        let mut world = World::new().await;
        for image in ["nginx:1", "nginx:missing", "nginx:3"] {
            world.next_run();
            world.deploys(&task_definition(image), &service_definition(4));
            world.run(setup, json!({})).await.done();
            match image {
                "nginx:missing" => drop(aborted(&world, (upgrade, percent.clone()), 12).await),
                _ => drop(world.run(upgrade, percent.clone()).await.done()),
            }
        }
        let log = world.log(setup, PREPARE).await;
        for part in [
            "web__3 takes over from web__1, which runs web:1 with 4/4 tasks",
            "Service web__2 was deployed last and has not come up (0 of 4 tasks run): web__1 serves, with 4 tasks.",
        ] {
            assert!(log.contains(part), "{log}");
        }
        assert!(!log.contains("Earlier versions"), "{log}");
        assert_eq!(
            world.account().await,
            "absent, beside it web__1 web:1 0/0, beside it web__2 web:2 0/4, beside it web__3 web:3 4/4"
        );
        world.run("EcsBasicRollback", json!({})).await.done();
        assert_eq!(
            world.account().await,
            "absent, beside it web__1 web:1 4/4, beside it web__2 web:2 0/4"
        );
    }
}

mod asg {
    use super::*;

    const DEPLOY: &str = "AsgRollingDeploy";
    const ROLLBACK: &str = "AsgRollingRollback";

    fn cancels() -> Value {
        json!({"handleInProgressInstanceRefresh": "Cancel"})
    }

    /// A group with version 1, after an aborted deployment of version 2, whose instances never pass their checks.
    async fn after_an_abort() -> Groups {
        let mut groups = Groups::new().await;
        groups.world.run(DEPLOY, json!({})).await.done();
        groups.world.next_run();
        groups.deploys("ami-0bad", 2);
        let left = aborted(&groups.world, (DEPLOY, json!({})), 60).await;
        for part in [
            "Instance refresh ",
            " of Auto Scaling group web goes on by itself, to version 2 of launch template web",
            "`aws autoscaling cancel-instance-refresh --auto-scaling-group-name web`",
        ] {
            assert!(left.contains(part), "{left}");
        }
        groups.world.next_run();
        groups
    }

    #[tokio::test(start_paused = true)]
    async fn a_deployment_after_an_aborted_one_goes_back_to_what_serves() {
        for image in ["ami-0bad", "ami-3"] {
            let mut groups = after_an_abort().await;
            groups.deploys(image, 2);
            let ended = groups.world.run(DEPLOY, cancels()).await;
            match image {
                "ami-3" => drop(ended.done()),
                _ => drop(ended.failed()),
            }
            let log = groups.world.log(DEPLOY, PREPARE).await;
            for part in [
                "Auto Scaling group web in eu-west-1 (infrastructure prod_cluster) was told to start instances from version 2 \
                 of launch template web, which has not come up (instance refresh ",
                " ended as Cancelled; ",
                "healthy instances serve with version 1, as Slipway's records say (run run-",
                "a rollback brings back version 1.",
            ] {
                assert!(log.contains(part), "{log}");
            }
            assert_eq!(log.matches("was told to").count(), 1, "{log}");
            groups.world.run(ROLLBACK, json!({})).await.done();
            groups.quiet().await;
            assert_eq!(groups.account().await, "web v1 2/2 of v1 | web", "{image}");
            assert_eq!(groups.counted().await, "2 web v1", "{image}");
        }
    }

    /// Somebody lets the group start its instances from a version of theirs.
    async fn theirs(groups: &Groups) {
        let made = json!({"LaunchTemplateName": "web",
            "LaunchTemplateData": {"ImageId": "ami-7", "InstanceType": "t3.micro"}});
        groups.ec2("CreateLaunchTemplateVersion", made).await;
        let update = json!({"AutoScalingGroupName": "web",
            "LaunchTemplate": {"LaunchTemplateName": "web", "Version": "2"}});
        groups.scaling("UpdateAutoScalingGroup", update).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_version_that_no_instance_was_started_from_is_not_what_was_there() {
        let mut groups = Groups::new().await;
        groups.world.run(DEPLOY, json!({})).await.done();
        groups.world.next_run();
        theirs(&groups).await;
        groups.deploys("ami-3", 2);
        groups.world.run(DEPLOY, json!({})).await.done();
        let log = groups.world.log(DEPLOY, PREPARE).await;
        assert!(
            log.contains("which has not come up (no instance refresh was started for it; 0 of its instances are healthy): 2"),
            "{log}"
        );
        groups.world.run(ROLLBACK, json!({})).await.done();
        groups.quiet().await;
        assert_eq!(groups.account().await, "web v1 2/2 of v1 | web");
    }

    /// Of this image instances end when they have run for two minutes.
    const DIES: &str = "ami-0later";

    /// Ten instances of an image.
    fn ten(groups: &mut Groups, image: &str) {
        groups.deploys(image, 10);
        let content = &mut groups.world.manifests[1].files[0].1;
        let mut configuration: Value = serde_json::from_str(content).expect("JSON");
        configuration["MaxSize"] = json!(20);
        *content = configuration.to_string();
    }

    /// Begins to deploy instances that end a while after their start, until so many percent of the old ones are replaced: AWS
    /// puts new ones of them in their place without an end.
    async fn replaced(percent: usize) -> Groups {
        let mut groups = Groups::new().await;
        let rule = ImageRule {
            image: DIES.to_owned(),
            behaviour: ImageBehaviour::ExitsLater,
            exit_code: 1,
        };
        groups.world.sandbox.set_image(rule).expect("a rule");
        ten(&mut groups, "ami-1");
        groups.world.run(DEPLOY, json!({})).await.done();
        groups.world.next_run();
        ten(&mut groups, DIES);
        let halves = json!({"instanceWarmup": 0, "minimumHealthyPercentage": 50});
        let seen = async {
            while of_version(&groups, "1").await > 10 - percent / 10 {
                groups.world.clock.sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            ended = groups.world.run(DEPLOY, halves) => panic!("{percent}: {ended:?}"),
            () = seen => {}
        }
        groups
    }

    /// How many instances of the group were started from a version and not ended yet.
    async fn of_version(groups: &Groups, version: &str) -> usize {
        let found = groups.scaling("DescribeAutoScalingGroups", json!({})).await;
        let members = list(&found["AutoScalingGroups"][0]["Instances"]);
        let of = |one: &&Value| {
            one["LaunchTemplate"]["Version"] == version && one["LifecycleState"] == "InService"
        };
        members.iter().filter(of).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_rollback_brings_the_old_version_back_however_many_instances_were_replaced() {
        for percent in [10, 60, 100] {
            let groups = replaced(percent).await;
            groups.world.run(ROLLBACK, json!({})).await.done();
            groups.quiet().await;
            let account = groups.account().await;
            assert_eq!(account, "web v1 10/10 of v1 | web", "{percent}");
            let log = groups.world.log(ROLLBACK, "Rollback").await;
            let told = "There is again Auto Scaling group web with 10 instances of version 1 of its launch template";
            assert!(log.contains(told), "{percent}: {log}");
            assert_eq!(groups.counted().await, "10 web v1", "{percent}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn where_no_instance_of_the_old_version_is_left_the_records_tell_what_worked() {
        for percent in [10, 60, 100] {
            let mut groups = replaced(percent).await;
            let stopped = groups.world.abort(DEPLOY, json!({})).await;
            stopped.expect_err("the refresh goes on");
            // AWS goes on to the end.
            groups.world.clock.sleep(Duration::from_secs(1800)).await;
            assert_eq!(of_version(&groups, "1").await, 0, "{percent}");
            groups.world.next_run();
            ten(&mut groups, "ami-3");
            let spec = json!({"handleInProgressInstanceRefresh": "Cancel", "instanceWarmup": 0});
            groups.world.run(DEPLOY, spec).await.done();
            let log = groups.world.log(DEPLOY, PREPARE).await;
            for part in [
                "Auto Scaling group web in eu-west-1 (infrastructure prod_cluster) was told to start instances from version 2 \
                 of launch template web, which has not come up (instance refresh ",
                " of its activities failed in the last hour, the last one: ",
                "no more are left of version 1, which worked, as Slipway's records say (run run-",
                "a rollback brings back version 1.",
            ] {
                assert!(log.contains(part), "{percent}: {log}");
            }
            groups.world.run(ROLLBACK, json!({})).await.done();
            groups.quiet().await;
            let account = groups.account().await;
            assert_eq!(account, "web v1 10/10 of v1 | web", "{percent}");
            assert_eq!(groups.counted().await, "10 web v1", "{percent}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refresh_of_somebody_else_that_goes_well_is_what_comes_back() {
        let mut groups = Groups::new().await;
        groups.world.run(DEPLOY, json!({})).await.done();
        groups.world.next_run();
        theirs(&groups).await;
        let start = json!({"AutoScalingGroupName": "web", "Preferences": {"InstanceWarmup": 0}});
        groups.scaling("StartInstanceRefresh", start).await;
        groups.deploys("ami-3", 2);
        let waits = json!({"handleInProgressInstanceRefresh": "Wait", "instanceWarmup": 0});
        groups.world.run(DEPLOY, waits).await.done();
        let log = groups.world.log(DEPLOY, PREPARE).await;
        assert!(!log.contains("was told to"), "{log}");
        groups.quiet().await;
        assert_eq!(groups.account().await, "web v3 2/2 of v3 | web");
        groups.world.run(ROLLBACK, json!({})).await.done();
        groups.quiet().await;
        assert_eq!(groups.account().await, "web v2 2/2 of v2 | web");
    }

    #[tokio::test(start_paused = true)]
    async fn the_phased_strategy_takes_over_from_what_serves() {
        let setup = json!({"asgName": "web", "resizeStrategy": "resize_new_first",
            "instances": {"type": "Fixed", "spec": {"min": 1, "max": 6, "desired": 4}}});
        let all = json!({"instanceSelection": {"type": "Percentage", "spec": {"percentage": 100}}});
        let deploy = "AsgPhasedDeploy";
        let mut groups = Groups::new().await;
        for image in ["ami-1", "ami-0dead", "ami-3"] {
            groups.world.next_run();
            groups.deploys(image, 4);
            groups.world.run("AsgSetup", setup.clone()).await.done();
            match image {
                "ami-0dead" => drop(aborted(&groups.world, (deploy, all.clone()), 20).await),
                _ => drop(groups.world.run(deploy, all.clone()).await.done()),
            }
        }
        let log = groups.world.log("AsgSetup", PREPARE).await;
        for part in [
            "web__3 takes over from Auto Scaling group web__1",
            "Auto Scaling group web__2 in eu-west-1 (infrastructure prod_cluster) was deployed last and has not come up: none \
             of its 4 instances is healthy, and web__1 serves with 4.",
        ] {
            assert!(log.contains(part), "{log}");
        }
        groups.world.run("AsgRollback", json!({})).await.done();
        let account = groups.account().await;
        assert!(
            account.starts_with("web__1 v1 4/4 of v1, web__2 "),
            "{account}"
        );
        assert!(!account.contains("web__3 v1"), "{account}");
    }

    /// Found by a tester: what an aborted run, or one that stopped halfway, left was taken over from, and what really served went on
    /// for ever.
    #[tokio::test(start_paused = true)]
    async fn the_phased_strategy_takes_over_from_the_newest_complete_deployment() {
        let setup = json!({"asgName": "web", "resizeStrategy": "resize_new_first",
            "instances": {"type": "Fixed", "spec": {"min": 1, "max": 6, "desired": 4}}});
        let percent = |part: u32| json!({"instanceSelection": {"type": "Percentage", "spec": {"percentage": part}}});
        let deploy = "AsgPhasedDeploy";
        for (aborts, half, whole, back) in [
            (
                true,
                "web__1 v1 4/4 of v1, web__2 v1 2/2 of v1 |",
                "web__1 v1 0/0 of , web__2 v1 2/2 of v1, web__3 v1 4/4 of v1 |",
                "web__1 v1 4/4 of v1, web__2 v1 2/2 of v1 |",
            ),
            (
                false,
                "web__1 v1 2/2 of v1, web__2 v1 2/2 of v1 |",
                "web__1 v1 0/0 of , web__2 v1 2/2 of v1, web__3 v1 4/4 of v1 |",
                "web__1 v1 2/2 of v1, web__2 v1 2/2 of v1 |",
            ),
        ] {
            let mut groups = Groups::new().await;
            groups.world.next_run();
            groups.deploys("ami-1", 4);
            groups.world.run("AsgSetup", setup.clone()).await.done();
            groups.world.run(deploy, percent(100)).await.done();
            groups.world.next_run();
            groups.deploys("ami-2", 4);
            groups.world.run("AsgSetup", setup.clone()).await.done();
            if aborts {
                let up = async {
                    while !groups.account().await.contains("web__2 v1 2/2") {
                        groups.world.clock.sleep(Duration::from_secs(1)).await;
                    }
                };
                tokio::select! {
                    ended = groups.world.run(deploy, percent(50)) => panic!("{ended:?}"),
                    () = up => {}
                }
                drop(groups.world.abort(deploy, percent(50)).await);
            } else {
                groups.world.run(deploy, percent(50)).await.done();
            }
            groups.quiet().await;
            let account = groups.account().await;
            assert!(account.starts_with(half), "{account}");
            groups.world.next_run();
            groups.deploys("ami-3", 4);
            groups.world.run("AsgSetup", setup.clone()).await.done();
            groups.world.run(deploy, percent(100)).await.done();
            groups.quiet().await;
            let account = groups.account().await;
            assert!(account.starts_with(whole), "{account}");
            let log = groups.world.log("AsgSetup", PREPARE).await;
            for part in [
                "web__3 takes over from Auto Scaling group web__1",
                "go on serving beside the new one: web__2 (2 of 2 instances healthy). Earlier runs left them, the new version takes \
                 over from web__1 alone, and no step takes them away: `aws autoscaling update-auto-scaling-group --region \
                 eu-west-1 --auto-scaling-group-name web__2 --min-size 0 --desired-capacity 0` does.",
            ] {
                assert!(log.contains(part), "{log}");
            }
            groups.world.run("AsgRollback", json!({})).await.done();
            groups.quiet().await;
            let account = groups.account().await;
            assert!(account.starts_with(back), "{account}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspended_process_is_told() {
        let groups = Groups::new().await.beside().await;
        groups.world.run(DEPLOY, json!({})).await.done();
        let launch = json!({"AutoScalingGroupName": "web", "ScalingProcesses": ["Launch"]});
        groups.scaling("SuspendProcesses", launch.clone()).await;
        let more = json!({"asgName": "web",
            "instanceSelection": {"type": "Count", "spec": {"count": 4}}});
        aborted(&groups.world, ("AsgScale", more), 60).await;
        let log = groups.world.log("AsgScale", "Scale").await;
        let told =
            "Asg web starts no instances: its process Launch is suspended (User suspended). ";
        assert_eq!(
            log.matches(told).count(),
            2,
            "when it is seen, and at the end: {log}"
        );
        assert!(
            log.contains("`aws autoscaling resume-processes --auto-scaling-group-name web --scaling-processes Launch`"),
            "{log}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_only_needs_the_name_of_the_group_reads_nothing_else() {
        let mut groups = Groups::new().await.beside().await;
        groups.world.run(DEPLOY, json!({})).await.done();
        groups.world.next_run();
        groups.deploys("<+pipeline.variables.image>", 2);
        let count = json!({"instanceSelection": {"type": "Count", "spec": {"count": 3}}});
        let steps = [
            ("AsgScale", count, "Scale"),
            ("AsgSteadyState", json!({}), "Steady State Check"),
        ];
        for (step, spec, unit) in steps {
            groups.world.run(step, spec).await.done();
            let nodes = groups.world.store.list_nodes(&groups.world.run, None).await;
            let nodes = nodes.expect("nodes");
            let node = nodes.iter().find(|node| node.node_type == step);
            let units = &node.expect("the step").units;
            let units: Vec<&str> = units.iter().map(|unit| unit.name.as_str()).collect();
            assert_eq!(units, [unit], "{step}");
        }
        assert!(groups.account().await.starts_with("web v1 3/3"));
        let found = groups.scaling("DescribeAutoScalingGroups", json!({})).await;
        assert_eq!(list(&found["AutoScalingGroups"]).len(), 1);
        // What has no name cannot be scaled.
        groups.world.next_run();
        groups.world.manifests.truncate(1);
        let failure = groups.world.run("AsgSteadyState", json!({})).await.failed();
        assert!(failure.message.contains("give `asgName`"), "{failure:?}");
    }
}
