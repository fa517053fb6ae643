//! `AsgRollingDeploy` and `AsgRollingRollback`.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_model::status::ErrorType;

use super::{Groups, configuration, list, template};
use crate::world::manifest;
use slipway_plan::{ArtifactPlace, ArtifactPlan, ArtifactQuestion, FoundArtifact, PinnedArtifact};
use slipway_sandbox::{Fault, FaultEffect};

const DEPLOY: &str = "AsgRollingDeploy";
const ROLLBACK: &str = "AsgRollingRollback";

/// A whole deployment of an image; the calls of it.
async fn deploy(groups: &mut Groups, image: &str, spec: Value) -> String {
    groups.world.next_run();
    groups.deploys(image, 2);
    groups.scales("more");
    let before = groups.world.sandbox.calls().len();
    groups.world.run(DEPLOY, spec).await.done();
    groups.world.trace(before).replace('\n', " ")
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_the_first_the_second_and_the_third_deployment() {
    let mut groups = Groups::new().await.beside().await;
    let first = deploy(&mut groups, "ami-1", json!({})).await;
    assert_eq!(groups.account().await, "web v1 2/2 of v1 more night | web");
    insta::assert_snapshot!(first, @"DescribeAutoScalingGroups DescribeLaunchTemplates CreateLaunchTemplate DescribeAutoScalingGroups CreateAutoScalingGroup DescribeAutoScalingGroups DescribePolicies DescribeScheduledActions PutScalingPolicy PutScheduledUpdateGroupAction DescribeInstanceRefreshes StartInstanceRefresh DescribeInstanceRefreshes DescribeAutoScalingGroups");
    let second = deploy(&mut groups, "ami-2", json!({})).await;
    assert_eq!(groups.account().await, "web v2 2/2 of v2 more night | web");
    insta::assert_snapshot!(second, @"DescribeAutoScalingGroups DescribeLaunchTemplates DescribePolicies DescribeScheduledActions DescribeInstanceRefreshes CreateLaunchTemplateVersion DescribeAutoScalingGroups UpdateAutoScalingGroup DescribeAutoScalingGroups DescribePolicies DescribeScheduledActions PutScalingPolicy PutScheduledUpdateGroupAction DescribeInstanceRefreshes StartInstanceRefresh DescribeInstanceRefreshes DescribeAutoScalingGroups");
    assert_eq!(deploy(&mut groups, "ami-3", json!({})).await, second);
    assert_eq!(groups.account().await, "web v3 2/2 of v3 more night | web");
    assert_eq!(groups.counted().await, "2 web v3");
}

#[tokio::test(start_paused = true)]
async fn a_person_reads_what_happened() {
    let mut groups = Groups::new().await;
    deploy(&mut groups, "ami-1", json!({})).await;
    let outputs = {
        groups.world.next_run();
        groups.deploys("ami-2", 2);
        groups
            .world
            .run(DEPLOY, json!({"instanceWarmup": 0}))
            .await
            .done()
    };
    assert_eq!(outputs["output"]["asg"]["autoScalingGroupName"], "web");
    assert_eq!(outputs["output"]["asg"]["launchTemplateVersion"], "2");
    let instances = list(&outputs["deploymentInfoOutcome"]["serverInstanceInfoList"]);
    assert_eq!(instances.len(), 2);
    let log = groups.world.log(DEPLOY, "Deploy").await;
    insta::assert_snapshot!(without_ids(&log), @"
    Creating new version for launchTemplate web
    Created version 2 of launchTemplate web
    Updating Asg web
    Updated Asg web successfully
    Waiting for Asg web to reach steady state
    2/2 instances are healthy
    Detached scaling policy with name: more
    Detached scheduled action with name: night
    Starting Instance Refresh for Asg web
    Waiting for Instance Refresh for Asg web to reach steady state
    Percentage completed: 0
    Percentage completed: 0
    Waiting for remaining instances to be available. For example: i-… has insufficient data to evaluate its health with Amazon EC2.
    Percentage completed: 50
    Percentage completed: 50
    Waiting for remaining instances to be available. For example: i-… has insufficient data to evaluate its health with Amazon EC2.
    Percentage completed: 100
    Instance Refresh for Asg web ended successfully
    Rolling Deployment Finished Successfully
    ");
}

/// Replaces what is different in each run.
fn without_ids(log: &str) -> String {
    let words = log.split_inclusive(char::is_whitespace);
    let words = words.map(|word| match word.trim_end() {
        id if id.starts_with("i-") => word.replace(id, "i-…"),
        _ => word.to_owned(),
    });
    words.collect()
}

#[tokio::test(start_paused = true)]
async fn what_users_write_reaches_aws_whole() {
    let mut groups = Groups::new().await;
    let mut launch = template("ami-1");
    launch["launchTemplateData"]["networkInterfaces"] =
        json!([{"deviceIndex": 0, "groups": ["sg-1"], "associatePublicIpAddress": "true"}]);
    launch["launchTemplateData"]["metadataOptions"] = json!({"somethingNewer": {"Than": "us"}});
    launch["launchTemplateData"]["tagSpecifications"] = json!([{"resourceType": "instance", "tags": [{"key": "a", "value": "<+secrets.getValue(\"account.password\")>"}]}]);
    let mut group = configuration(2);
    group["MaxInstanceLifetime"] = json!(86400);
    group["NewerThanUs"] = json!([{"Deep": 1}]);
    let mut user_data = manifest("AsgUserData", &json!({}));
    user_data.files = vec![("start.sh".to_owned(), "#!/bin/sh\necho hello".to_owned())];
    groups.world.manifests = vec![
        manifest("AsgLaunchTemplate", &launch),
        manifest("AsgConfiguration", &group),
        manifest(
            "AsgAdditionalConfiguration",
            &json!({"metrics": {"enableMetrices": true, "metricsCollection": [{"metric": "GroupMinSize", "granularity": "1Minute"}]}}),
        ),
        user_data,
    ];
    groups.world.run(DEPLOY, json!({})).await.done();
    let versions = json!({"LaunchTemplateName": "web"});
    let versions = groups.ec2("DescribeLaunchTemplateVersions", versions).await;
    insta::assert_snapshot!(versions["launchTemplateVersionSet"][0]["launchTemplateData"], @r#"{"imageId":"ami-1","instanceType":"t3.micro","metadataOptions":{"somethingNewer":{"than":"us"}},"networkInterfaceSet":[{"associatePublicIpAddress":"true","deviceIndex":"0","securityGroupIdSet":["sg-1"]}],"tagSpecificationSet":[{"resourceType":"instance","tagSet":[{"key":"a","value":"correct-horse-battery"}]}],"userData":"IyEvYmluL3NoCmVjaG8gaGVsbG8="}"#);
    let found = groups.scaling("DescribeAutoScalingGroups", json!({})).await;
    let found = &found["AutoScalingGroups"][0];
    assert_eq!(found["MaxInstanceLifetime"], "86400");
    assert_eq!(found["NewerThanUs"], json!([{"Deep": "1"}]));
    assert_eq!(found["EnabledMetrics"][0]["Metric"], "GroupMinSize");
    let stored = groups.world.everything_stored().await;
    assert!(!stored.contains(crate::world::PASSWORD));
    // A typo is told with the nearest name, and AWS is not asked.
    let mut typo = configuration(2);
    typo["DesiredCapcity"] = json!(2);
    groups.world.next_run();
    groups.world.manifests = vec![
        manifest("AsgLaunchTemplate", &template("ami-1")),
        manifest("AsgConfiguration", &typo),
    ];
    let before = groups.world.sandbox.calls().len();
    let failure = groups.world.run(DEPLOY, json!({})).await.failed();
    insta::assert_snapshot!(failure.message, @"Invalid request: The manifest asgconfiguration (AsgConfiguration.yaml) does not fit CreateAutoScalingGroup: `DesiredCapcity` is not a field of CreateAutoScalingGroup; did you mean `DesiredCapacity`?.");
    assert_eq!(groups.world.sandbox.calls().len(), before);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_never_works_fails_early_and_is_rolled_back() {
    let mut groups = Groups::new().await;
    deploy(&mut groups, "ami-1", json!({})).await;
    let before = groups.account().await;
    groups.world.next_run();
    groups.deploys("ami-0bad", 2);
    groups.scales("less");
    let failure = groups
        .world
        .run(DEPLOY, json!({"instanceWarmup": 0}))
        .await
        .failed();
    for part in ["web", "failed since it was changed", "health check"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    groups.world.run(ROLLBACK, json!({})).await.done();
    groups.quiet().await;
    assert_eq!(groups.account().await, before);
    assert_eq!(groups.counted().await, "2 web v1");
    let log = groups.world.log(ROLLBACK, "Rollback").await;
    assert!(log.contains("Cancelling Instance Refresh"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_first_deployment_is_taken_back_whole() {
    let mut groups = Groups::new().await;
    groups.deploys("ami-0dead", 2);
    let failure = groups.world.run(DEPLOY, json!({})).await.failed();
    assert!(
        failure.message.contains("health check"),
        "{}",
        failure.message
    );
    groups.world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(groups.account().await, " | ");
    assert_eq!(groups.counted().await, "");
    groups.world.next_run();
    groups.world.run(ROLLBACK, json!({})).await.done();
}

#[tokio::test(start_paused = true)]
async fn sizes_come_from_the_step_the_group_or_the_manifest() {
    let mut groups = Groups::new().await.beside().await;
    let current = json!({"instances": {"type": "CurrentRunning"}});
    groups.world.run(DEPLOY, current.clone()).await.done();
    assert_eq!(groups.account().await, "web v1 6/6 of v1 | web");
    groups.world.next_run();
    let fixed =
        json!({"instances": {"type": "Fixed", "spec": {"min": "1", "max": 4, "desired": 3}}});
    groups.world.run(DEPLOY, fixed).await.done();
    assert_eq!(groups.account().await, "web v2 3/3 of v2 | web");
    for spec in [current, json!({"useAlreadyRunningInstances": true})] {
        groups.world.next_run();
        groups.world.run(DEPLOY, spec).await.done();
        assert!(groups.account().await.contains(" 3/3 of "));
    }
    groups.world.next_run();
    groups.world.run(DEPLOY, json!({})).await.done();
    assert!(groups.account().await.contains(" 2/2 of "));
    // None at all are fine too.
    groups.world.next_run();
    let none = json!({"instances": {"type": "Fixed", "spec": {"min": 0, "max": 4, "desired": 0}}});
    groups.world.run(DEPLOY, none).await.done();
    groups.quiet().await;
    assert_eq!(groups.account().await, "web v6 0/0 of  | web");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_in_progress_is_told_cancelled_or_waited_for() {
    let mut groups = Groups::new().await;
    deploy(&mut groups, "ami-1", json!({})).await;
    let start = json!({"AutoScalingGroupName": "web", "Preferences": {"InstanceWarmup": 200}});
    groups.scaling("StartInstanceRefresh", start.clone()).await;
    groups.world.next_run();
    let failure = groups.world.run(DEPLOY, json!({})).await.failed();
    for part in ["is in progress", "Cancel or Wait", "group web"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    assert_eq!(groups.world.count("UpdateAutoScalingGroup"), 0);
    for (handle, expected) in [("Cancel", "Cancelled"), ("Wait", "Successful")] {
        groups.world.next_run();
        let spec = json!({"handleInProgressInstanceRefresh": handle, "instanceWarmup": 0});
        groups.world.run(DEPLOY, spec).await.done();
        let name = json!({"AutoScalingGroupName": "web"});
        let refreshes = groups.scaling("DescribeInstanceRefreshes", name).await;
        let refreshes = list(&refreshes["InstanceRefreshes"]);
        assert_eq!(refreshes[0]["Status"], "Successful");
        assert_eq!(refreshes[1]["Status"], expected, "{handle}");
        groups.scaling("StartInstanceRefresh", start.clone()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_work_is_told_before_anything_is_changed() {
    let mut groups = Groups::new().await;
    let mut said = Vec::new();
    let mut without_image = template("ami-1");
    without_image["launchTemplateData"] = json!({"instanceType": "t3.micro"});
    let mut long = configuration(2);
    long["AutoScalingGroupName"] = json!("n".repeat(256));
    let mut small = configuration(9);
    small["MaxSize"] = json!(3);
    for (manifests, spec) in [
        (
            vec![manifest("AsgConfiguration", &configuration(2))],
            json!({}),
        ),
        (
            vec![manifest("AsgLaunchTemplate", &template("ami-1"))],
            json!({}),
        ),
        (
            vec![
                manifest("AsgLaunchTemplate", &without_image),
                manifest("AsgConfiguration", &configuration(2)),
            ],
            json!({}),
        ),
        (
            vec![
                manifest("AsgLaunchTemplate", &template("ami-1")),
                manifest("AsgConfiguration", &long),
            ],
            json!({}),
        ),
        (
            vec![
                manifest("AsgLaunchTemplate", &template("ami-1")),
                manifest("AsgConfiguration", &small),
            ],
            json!({}),
        ),
        (Vec::new(), json!({})),
        (
            vec![
                manifest("AsgLaunchTemplate", &template("ami-00403")),
                manifest("AsgConfiguration", &configuration(2)),
            ],
            json!({}),
        ),
    ] {
        groups.world.next_run();
        groups.world.manifests = manifests;
        let failure = groups.world.run(DEPLOY, spec).await.failed();
        assert_eq!(failure.error, ErrorType::Unknown);
        said.push(failure.message);
    }
    insta::assert_snapshot!(said.join("\n"), @"
    Invalid request: Stage deploy needs exactly one AsgLaunchTemplate manifest in its service, and there are 0.
    Invalid request: Stage deploy needs exactly one AsgConfiguration manifest in its service, and there are 0.
    Invalid request: there is no image to start instances from: give the service an AmazonMachineImage artifact, or `ImageId` in the AsgLaunchTemplate manifest.
    Invalid request: the name of the Auto Scaling group `nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn…` has 256 characters, and AWS allows 255; shorten `asgName`.
    Invalid request: a group cannot have at least 1, at most 3 and now 9 instances.
    Invalid request: No manifests found in stage deploy. AsgRollingDeploy step requires a manifest defined in stage service definition
    Cannot create Auto Scaling group web in eu-west-1 (infrastructure prod_cluster): You must use a valid fully-formed launch template. The image id '[ami-00403]' does not exist (ValidationError). Correct the artifact, or `ImageId` of the launch template: the image must be in this region, and belong to this account or be shared with it.
    ");
    assert_eq!(groups.world.count("CreateAutoScalingGroup"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_others_change_meanwhile_is_not_touched() {
    let mut groups = Groups::new().await;
    deploy(&mut groups, "ami-1", json!({})).await;
    groups.world.next_run();
    groups.deploys("ami-2", 2);
    groups
        .world
        .run(DEPLOY, json!({"instanceWarmup": 0}))
        .await
        .done();
    // Somebody deletes it before the rollback.
    groups
        .scaling(
            "DeleteAutoScalingGroup",
            json!({"AutoScalingGroupName": "web", "ForceDelete": true}),
        )
        .await;
    groups.quiet().await;
    let failure = groups.world.run(ROLLBACK, json!({})).await.failed();
    assert!(failure.message.contains("group web"), "{}", failure.message);
    assert!(failure.left_behind.is_some_and(|left| left.contains("web")));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_old_instances_need_not_be_waited_for() {
    let mut groups = Groups::new().await;
    deploy(&mut groups, "ami-1", json!({})).await;
    groups.world.next_run();
    groups.deploys("ami-2", 2);
    let spec = json!({
        "skipInstanceTermination": true, "instanceWarmup": 0,
        "minimumHealthyPercentage": 100, "maximumHealthyPercentage": 200,
    });
    groups.world.run(DEPLOY, spec).await.done();
    assert_eq!(groups.account().await, "web v2 4/2 of v1+v2 | web");
    groups.quiet().await;
    assert_eq!(groups.account().await, "web v2 2/2 of v2 | web");
}

#[tokio::test(start_paused = true)]
async fn a_successful_refresh_is_not_believed_when_instances_run_another_version() {
    let mut groups = Groups::new().await;
    deploy(&mut groups, "ami-1", json!({})).await;
    groups.world.next_run();
    groups.deploys("ami-2", 2);
    // Between the end of the refresh and the step's look at the group somebody starts an instance of the old version.
    groups.world.sandbox.faults().add(Fault {
        service: None,
        operation: Some("DescribeAutoScalingGroups".to_owned()),
        skip: 0,
        count: None,
        effect: FaultEffect::Latency { millis: 9_000 },
    });
    let by_hand = async {
        let of = json!({"AutoScalingGroupName": "web"});
        loop {
            groups
                .world
                .clock
                .sleep(std::time::Duration::from_secs(1))
                .await;
            let found = groups
                .scaling("DescribeInstanceRefreshes", of.clone())
                .await;
            let found = list(&found["InstanceRefreshes"]);
            if found.len() > 1 && found[0]["Status"] == "Successful" {
                break;
            }
        }
        let update = json!({
            "AutoScalingGroupName": "web", "DesiredCapacity": 3,
            "LaunchTemplate": {"LaunchTemplateName": "web", "Version": "1"},
        });
        groups.scaling("UpdateAutoScalingGroup", update).await;
    };
    let (ended, ()) = tokio::join!(groups.world.run(DEPLOY, json!({})), by_hand);
    groups.world.sandbox.faults().clear();
    let told = ended.failed().message;
    for part in [
        "group web in eu-west-1",
        "ended as Successful",
        "1 of its 3 instances do not run version 2 of launch template web: i-",
        " (version 1, ",
    ] {
        assert!(told.contains(part), "{told}");
    }
    groups.world.run(ROLLBACK, json!({})).await.done();
    groups.quiet().await;
    assert_eq!(groups.account().await, "web v1 2/2 of v1 more night | web");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_ends_at_sixty_percent_is_told_and_rolled_back() {
    let mut groups = Groups::new().await;
    groups.deploys("ami-1", 5);
    groups.world.run(DEPLOY, json!({})).await.done();
    groups.world.next_run();
    groups.deploys("ami-2", 5);
    let of = json!({"AutoScalingGroupName": "web"});
    let ends = async {
        loop {
            groups.world.clock.sleep(Duration::from_secs(5)).await;
            let seen = groups
                .scaling("DescribeInstanceRefreshes", of.clone())
                .await;
            let newest = &seen["InstanceRefreshes"][0];
            let percent = newest["PercentageComplete"].as_str().unwrap_or_default();
            let percent: u32 = percent.parse().unwrap_or_default();
            if newest["Status"] == "InProgress" && percent >= 60 {
                groups.scaling("CancelInstanceRefresh", of.clone()).await;
                return percent;
            }
        }
    };
    let (percent, ended) = tokio::join!(ends, groups.world.run(DEPLOY, json!({})));
    assert!(percent < 100, "{percent}");
    let told = ended.failed().message;
    assert!(told.contains("Cancel"), "{told}");
    groups.world.run(ROLLBACK, json!({})).await.done();
    groups.quiet().await;
    assert_eq!(groups.account().await, "web v1 5/5 of v1 | web");
    assert_eq!(groups.counted().await, "5 web v1");
}

#[tokio::test(start_paused = true)]
async fn a_short_throttling_is_waited_out() {
    let mut groups = Groups::new().await.beside().await;
    deploy(&mut groups, "ami-1", json!({})).await;
    let throttled = |operation: &str| Fault {
        service: None,
        operation: Some(operation.to_owned()),
        skip: 0,
        count: Some(3),
        effect: FaultEffect::Throttle,
    };
    for operation in [
        "DescribeAutoScalingGroups",
        "CreateLaunchTemplateVersion",
        "UpdateAutoScalingGroup",
        "StartInstanceRefresh",
        "DescribeInstanceRefreshes",
    ] {
        groups.world.sandbox.faults().add(throttled(operation));
    }
    deploy(&mut groups, "ami-2", json!({})).await;
    assert_eq!(groups.account().await, "web v2 2/2 of v2 more night | web");
    // The same again on the way back: nothing was done twice.
    for operation in ["UpdateAutoScalingGroup", "StartInstanceRefresh"] {
        groups.world.sandbox.faults().add(throttled(operation));
    }
    groups.world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(groups.account().await, "web v1 2/2 of v1 more night | web");
    let of = json!({"AutoScalingGroupName": "web"});
    let refreshes = groups.scaling("DescribeInstanceRefreshes", of).await;
    assert_eq!(list(&refreshes["InstanceRefreshes"]).len(), 3);
}

/// An artifact that is an image.
fn image(version: &str) -> ArtifactPlan {
    ArtifactPlan {
        identifier: "image".to_owned(),
        kind: "AmazonMachineImage".to_owned(),
        spec: json!({
            "connectorRef": "account.aws", "region": "eu-west-1", "version": version,
            "tags": [{"name": "app", "value": "shop"}],
        }),
        image: None,
        tag: Some(version.to_owned()),
        pinned: None,
        late: None,
    }
}

fn pinned_to(id: &str) -> PinnedArtifact {
    PinnedArtifact {
        question: ArtifactQuestion {
            connector: "account.aws".to_owned(),
            place: ArtifactPlace::Ami {
                region: "eu-west-1".to_owned(),
                filters: Vec::new(),
            },
            version: None,
            digest: None,
        },
        found: FoundArtifact {
            digest: Some(id.to_owned()),
            ..FoundArtifact::default()
        },
    }
}

#[tokio::test(start_paused = true)]
async fn the_image_of_the_artifact_is_found_by_name_and_must_be_usable() {
    let mut groups = Groups::new().await.beside().await;
    let register = |app: &str, owner: &str| {
        json!({"Name": format!("shop-1{owner}"), "OwnerId": owner, "TagSpecification": [
            {"ResourceType": "image", "Tag": [{"Key": "app", "Value": app}]}]})
    };
    let made = groups
        .ec2("RegisterImage", register("shop", "123456789012"))
        .await;
    groups
        .ec2("RegisterImage", register("shop", "999999999999"))
        .await;
    groups.world.artifact = Some(image("shop-1123456789012"));
    groups.world.run(DEPLOY, json!({})).await.done();
    let instances = groups.ec2("DescribeInstances", json!({})).await;
    let first = &instances["reservationSet"][0]["instancesSet"][0];
    assert_eq!(first["imageId"], made["imageId"]);
    // What was found when the run was planned is not looked for by its name again.
    groups.world.next_run();
    let mut pinned = image("a name that nobody has");
    pinned.pinned = Some(Box::new(pinned_to(
        made["imageId"].as_str().expect("an id"),
    )));
    groups.world.artifact = Some(pinned);
    groups.world.run(DEPLOY, json!({})).await.done();
    let versions = groups.world.count("CreateLaunchTemplateVersion");
    for (version, why) in [
        ("shop-1999999999999", "among those that this account owns"),
        ("ami-00000403", "must be shared with this one"),
        // A name that begins like an id.
        ("ami-shop-2", "There is no image named `ami-shop-2`"),
        ("", "has no `version`"),
    ] {
        groups.world.next_run();
        groups.world.artifact = Some(image(version));
        let failure = groups.world.run(DEPLOY, json!({})).await.failed();
        assert!(failure.message.contains(why), "{}", failure.message);
    }
    let after = groups.world.count("CreateLaunchTemplateVersion");
    assert_eq!(after, versions, "what is refused changes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_base_group_is_a_pattern_and_stays_as_it_is() {
    let mut groups = Groups::new().await.beside().await;
    let data = json!({"LaunchTemplateName": "base", "LaunchTemplateData": {
        "ImageId": "ami-7", "InstanceType": "m5.large", "BlockDeviceMappings": [{"DeviceName": "/dev/xvda"}]}});
    groups.ec2("CreateLaunchTemplate", data).await;
    let base = json!({
        "AutoScalingGroupName": "base", "MinSize": 0, "MaxSize": 1, "DesiredCapacity": 0,
        "VPCZoneIdentifier": "subnet-7", "HealthCheckGracePeriod": 7,
        "LaunchTemplate": {"LaunchTemplateName": "base"},
    });
    groups.scaling("CreateAutoScalingGroup", base).await;
    let drain = "autoscaling:EC2_INSTANCE_TERMINATING";
    let hook = json!({"AutoScalingGroupName": "base", "LifecycleHookName": "drain",
        "LifecycleTransition": drain, "HeartbeatTimeout": 60});
    groups.scaling("PutLifecycleHook", hook).await;
    let before = groups.scaling("DescribeAutoScalingGroups", json!({})).await;
    groups.world.infrastructure["baseAsgName"] = json!("base");
    groups.world.manifests = vec![manifest(
        "AsgConfiguration",
        &json!({"healthCheckGracePeriod": 9}),
    )];
    let spec = json!({"asgName": "web", "instances": {"type": "CurrentRunning"}});
    groups.world.run(DEPLOY, spec).await.done();
    let after = groups.scaling("DescribeAutoScalingGroups", json!({})).await;
    let after = list(&after["AutoScalingGroups"]);
    assert_eq!(after[0], before["AutoScalingGroups"][0]);
    assert_eq!(after[1]["VPCZoneIdentifier"], "subnet-7");
    assert_eq!(after[1]["HealthCheckGracePeriod"], "9");
    let of = json!({"AutoScalingGroupName": "web"});
    let hooks = groups.scaling("DescribeLifecycleHooks", of).await;
    let hooks = list(&hooks["LifecycleHooks"]);
    assert_eq!(hooks.len(), 1, "{hooks:?}");
    assert_eq!(hooks[0]["LifecycleHookName"], "drain");
    assert_eq!(hooks[0]["LifecycleTransition"], drain);
    assert_eq!(hooks[0]["HeartbeatTimeout"], "60");
    assert_eq!(after[1]["Instances"][0]["InstanceType"], "m5.large");
    assert_eq!(
        groups.account().await,
        "base v? 0/0 of , web v1 6/6 of v1 | base web"
    );
    groups.world.next_run();
    groups.world.infrastructure["baseAsgName"] = json!("gone");
    let spec = json!({"asgName": "cart", "instances": {"type": "CurrentRunning"}});
    let failure = groups.world.run(DEPLOY, spec).await.failed();
    assert!(
        failure.message.contains("correct `baseAsgName`"),
        "{}",
        failure.message
    );
}

#[test]
fn a_spec_is_checked_before_the_run() {
    let step = slipway_steps::find(DEPLOY).expect("a step");
    let good =
        json!({"minimumHealthyPercentage": "<+a>", "handleInProgressInstanceRefresh": "Wait"});
    assert_eq!(step.check(&good), Vec::<String>::new());
    let bad = json!({
        "asgNme": "web", "instanceWarmup": -1, "handleInProgressInstanceRefresh": "Hope",
        "instances": {"type": "Fixed", "spec": {"min": 3, "max": 2, "desired": 2}},
    });
    let apart = json!({"minimumHealthyPercentage": 0, "maximumHealthyPercentage": 150});
    let faults = [step.check(&bad), step.check(&apart)].concat();
    insta::assert_snapshot!(faults.join("\n"), @"
    `asgNme` is not a field of this step; did you mean `asgName`?
    `instanceWarmup` must be a whole number from 0
    `handleInProgressInstanceRefresh` must be Fail or Cancel or Wait
    `instances`: `min` is 3 and `max` is 2: no number of instances is between them
    between `minimumHealthyPercentage` (0) and `maximumHealthyPercentage` (150) there must be 100 at most
    ");
}
