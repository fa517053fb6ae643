//! Auto Scaling groups.

use serde_json::json;
use slipway_sandbox::{Fault, FaultEffect};

use super::told;
use crate::asg::{Groups, list};
use crate::tap::Mode;
use crate::world::Ended;

const DEPLOY: &str = "AsgRollingDeploy";
const ROLLBACK: &str = "AsgRollingRollback";

/// An account whose group `web` was deployed `number` times, the last time by this run.
async fn deployed(number: u32) -> Groups {
    let mut groups = Groups::new().await.beside().await;
    for number in 1..=number {
        groups.world.next_run();
        groups.deploys(&format!("ami-{number}"), 2);
        groups.scales("more");
        groups
            .world
            .run(DEPLOY, json!({"instanceWarmup": 0}))
            .await
            .done();
    }
    groups
}

/// Somebody lets a group start instances from an image of theirs, by hand.
async fn takes_over(groups: &Groups, group: &str) {
    let made = json!({"LaunchTemplateName": "theirs", "LaunchTemplateData": {"ImageId": "ami-7", "InstanceType": "t3.micro"}});
    groups.ec2("CreateLaunchTemplate", made).await;
    let update = json!({
        "AutoScalingGroupName": group,
        "LaunchTemplate": {"LaunchTemplateName": "theirs", "Version": "1"},
    });
    groups.scaling("UpdateAutoScalingGroup", update).await;
}

/// The launch template of a group.
async fn starts_from(groups: &Groups, group: &str) -> String {
    let found = groups
        .scaling(
            "DescribeAutoScalingGroups",
            json!({"AutoScalingGroupNames": [group]}),
        )
        .await;
    let template = &found["AutoScalingGroups"][0]["LaunchTemplate"];
    template["LaunchTemplateName"]
        .as_str()
        .unwrap_or("none")
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_group_that_somebody_else_deployed_to_is_left_to_them() {
    let groups = deployed(2).await;
    takes_over(&groups, "web").await;
    // Their refresh goes on.
    let start = json!({"AutoScalingGroupName": "web", "Preferences": {"InstanceWarmup": 0}});
    groups.scaling("StartInstanceRefresh", start).await;
    let failure = groups.world.run(ROLLBACK, json!({})).await.failed();
    insta::assert_snapshot!(told(failure), @"
    Auto Scaling group web in eu-west-1 (infrastructure prod_cluster) is left as it is: it starts instances from version 1 of launch template theirs, and this run put version 2 of launch template web there in the place of version 1 of launch template web. Somebody or something else changed it since: look at who did. If version 1 of launch template web is to come back, deploy it again or put it back by hand.
    left behind: Auto Scaling group web in eu-west-1 (infrastructure prod_cluster): it starts instances from version 1 of launch template theirs; version 1 of launch template web is not back
    ");
    groups.quiet().await;
    assert_eq!(starts_from(&groups, "web").await, "theirs");
    let name = json!({"AutoScalingGroupName": "web"});
    let refreshes = groups.scaling("DescribeInstanceRefreshes", name).await;
    assert_eq!(
        list(&refreshes["InstanceRefreshes"])[0]["Status"],
        "Successful"
    );
}

#[tokio::test(start_paused = true)]
async fn a_first_group_that_somebody_else_deployed_to_is_not_deleted() {
    let groups = deployed(1).await;
    takes_over(&groups, "web").await;
    let failure = groups.world.run(ROLLBACK, json!({})).await.failed();
    insta::assert_snapshot!(told(failure), @"
    Auto Scaling group web in eu-west-1 (infrastructure prod_cluster) is left as it is: it starts instances from version 1 of launch template theirs, and this run created it with version 1 of launch template web. Somebody or something else changed it since: look at who did. Delete it by hand if nobody needs it.
    left behind: Auto Scaling group web in eu-west-1 (infrastructure prod_cluster): it starts instances from version 1 of launch template theirs
    ");
    assert_eq!(starts_from(&groups, "web").await, "theirs");
}

#[tokio::test(start_paused = true)]
async fn a_group_that_follows_the_latest_version_is_our_own_at_each_point() {
    let of = async |mode| {
        let mut groups = deployed(1).await;
        let latest = json!({
            "AutoScalingGroupName": "web",
            "LaunchTemplate": {"LaunchTemplateName": "web", "Version": "$Latest"},
        });
        groups.scaling("UpdateAutoScalingGroup", latest).await;
        groups.world.next_run();
        groups.deploys("ami-2", 2);
        groups.world.tap.set(mode);
        let ended = groups.world.run(DEPLOY, json!({"instanceWarmup": 0})).await;
        groups.world.tap.set(Mode::Open);
        (groups, ended)
    };
    for call in 1.. {
        let (groups, ended) = of(Mode::RefuseAfter(call)).await;
        if let Ended::Done(_) = ended {
            assert!(call > 5, "refused {call} times only");
            break;
        }
        // The next attempt is refused at its first call: what the first one did is undone all the same.
        groups.world.tap.set(Mode::RefuseAfter(0));
        groups.world.attempt(DEPLOY, json!({}), 1).await.failed();
        groups.world.tap.set(Mode::Open);
        groups.world.run(ROLLBACK, json!({})).await.done();
        groups.quiet().await;
        let account = groups.account().await;
        assert!(
            account.contains(" 2/2 of v1 more night"),
            "refused after call {call}: {account}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_scales_a_group_comes_back_also_where_its_settings_cannot() {
    let mut groups = deployed(1).await;
    groups.world.next_run();
    groups.deploys("ami-2", 2);
    groups
        .world
        .run(DEPLOY, json!({"instanceWarmup": 0}))
        .await
        .done();
    assert_eq!(groups.account().await, "web v2 2/2 of v2 | web");
    groups.world.sandbox.faults().add(Fault {
        service: None,
        operation: Some("UpdateAutoScalingGroup".to_owned()),
        skip: 0,
        count: None,
        effect: FaultEffect::AccessDenied,
    });
    let failure = groups.world.run(ROLLBACK, json!({})).await.failed();
    groups.world.sandbox.faults().clear();
    assert!(
        failure.message.contains("put Auto Scaling group web back"),
        "{}",
        failure.message
    );
    assert_eq!(groups.account().await, "web v2 2/2 of v2 more night | web");
}

#[tokio::test(start_paused = true)]
async fn phased_and_blue_green_groups_of_somebody_else_are_left_to_them() {
    let mut said = Vec::new();
    for (taken, weighted) in [
        ("web__1", None),
        ("web__2", None),
        ("web__1", Some(false)),
        ("web__2", Some(false)),
        ("web__1", Some(true)),
        ("web__2", Some(true)),
    ] {
        let mut groups = Groups::new().await.beside().await;
        if let Some(weighted) = weighted {
            groups.balance(weighted).await;
        }
        for number in 1..=2 {
            groups.world.next_run();
            groups.deploys(&format!("ami-{number}"), 2);
            for (attempt, (step, spec)) in (0..).zip(steps(&groups, weighted)) {
                groups.world.attempt(step, spec, attempt).await.done();
            }
            groups.quiet().await;
        }
        takes_over(&groups, taken).await;
        let step = if weighted.is_some() {
            "AsgBlueGreenRollback"
        } else {
            "AsgRollback"
        };
        let failure = groups.world.run(step, json!({})).await.failed();
        let first = failure.message.split(". ").next().unwrap_or_default();
        said.push(format!("{step}: {first}"));
        assert_eq!(
            starts_from(&groups, taken).await,
            "theirs",
            "{step} of {taken}"
        );
    }
    insta::assert_snapshot!(said.join("\n"), @"
    AsgRollback: Auto Scaling group web__1 in eu-west-1 (infrastructure prod_cluster) is left as it is: it starts instances from version 1 of launch template theirs, and this run found version 1 of launch template web__1 there
    AsgRollback: Auto Scaling group web__2 in eu-west-1 (infrastructure prod_cluster) is left as it is: it starts instances from version 1 of launch template theirs, and this run created it with version 1 of launch template web__2
    AsgBlueGreenRollback: Auto Scaling group web__1 in eu-west-1 (infrastructure prod_cluster) is left as it is: it starts instances from version 1 of launch template theirs, and this run found version 1 of launch template web__1 there
    AsgBlueGreenRollback: Auto Scaling group web__2 in eu-west-1 (infrastructure prod_cluster) is left as it is: it starts instances from version 1 of launch template theirs, and this run created it with version 1 of launch template web__2
    AsgBlueGreenRollback: Auto Scaling group web__1 in eu-west-1 (infrastructure prod_cluster) is left as it is: it starts instances from version 1 of launch template theirs, and this run found version 1 of launch template web__1 there
    AsgBlueGreenRollback: Auto Scaling group web__2 in eu-west-1 (infrastructure prod_cluster) is left as it is: it starts instances from version 1 of launch template theirs, and this run created it with version 1 of launch template web__2
    ");
}

fn steps(groups: &Groups, weighted: Option<bool>) -> Vec<(&'static str, serde_json::Value)> {
    let all = json!({"instanceSelection": {"type": "Percentage", "spec": {"percentage": 100}}});
    let balancer = groups.balancer.as_ref();
    match (weighted, balancer) {
        (Some(false), Some(balancer)) => vec![
            ("AsgBlueGreenDeploy", balancer.swap_spec()),
            ("AsgBlueGreenSwapService", json!({"downsizeOldAsg": true})),
        ],
        (Some(true), Some(balancer)) => vec![
            ("AsgBlueGreenDeploy", balancer.shift_spec()),
            (
                "AsgShiftTraffic",
                json!({"weight": 100, "downsizeOldAsg": true}),
            ),
        ],
        _ => vec![
            ("AsgSetup", json!({"resizeStrategy": "resize_new_first"})),
            ("AsgPhasedDeploy", all),
        ],
    }
}
