//! A group that another deployment changes while this one is going on, or that it refreshes.

use std::time::Duration;

use serde_json::json;

use super::Groups;

const DEPLOY: &str = "AsgRollingDeploy";
const ROLLBACK: &str = "AsgRollingRollback";

/// Another deployment lets the group start its instances from a version of its own.
async fn somebody_deploys(groups: &Groups, image: &str) {
    let named = json!({"LaunchTemplateName": ["web"]});
    let versions = json!({"LaunchTemplateName": "web", "LaunchTemplateData": {"ImageId": image, "InstanceType": "t3.micro"}});
    groups.ec2("CreateLaunchTemplateVersion", versions).await;
    let found = groups.ec2("DescribeLaunchTemplates", named).await;
    let latest = &found["launchTemplates"][0]["latestVersionNumber"];
    let latest = latest.as_str().map_or(latest.to_string(), str::to_owned);
    let update = json!({
        "AutoScalingGroupName": "web",
        "LaunchTemplate": {"LaunchTemplateName": "web", "Version": latest},
    });
    groups.scaling("UpdateAutoScalingGroup", update).await;
}

#[tokio::test(start_paused = true)]
async fn a_group_that_another_deployment_has_changed_meanwhile_is_not_overwritten() {
    let mut groups = Groups::new().await;
    groups.world.run(DEPLOY, json!({})).await.done();
    groups.world.next_run();
    groups.deploys("ami-2", 2);
    let of = json!({"AutoScalingGroupName": "web"});
    let made = groups.world.count("CreateLaunchTemplateVersion");
    // It waits for a refresh before it changes anything.
    let spec = json!({"handleInProgressInstanceRefresh": "Wait"});
    let step = groups.world.run(DEPLOY, spec);
    groups.scaling("StartInstanceRefresh", of.clone()).await;
    let meanwhile = async {
        groups.world.clock.sleep(Duration::from_secs(2)).await;
        somebody_deploys(&groups, "ami-3").await;
    };
    let (ended, ()) = tokio::join!(step, meanwhile);
    let failure = ended.failed();
    for part in [
        "was pointed to version 2 of launch template web",
        "Run the pipeline again",
    ] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    assert_eq!(groups.world.count("CreateLaunchTemplateVersion"), made + 2);
    let before = groups.account().await;
    groups.world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(groups.account().await, before);
    let log = groups.world.log(ROLLBACK, "Rollback").await;
    assert!(log.contains("Nothing to roll back"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_this_run_did_not_start_is_waited_for() {
    let mut groups = Groups::new().await;
    groups.world.run(DEPLOY, json!({})).await.done();
    groups.world.next_run();
    groups.deploys("ami-2", 2);
    groups.world.run(DEPLOY, json!({})).await.done();
    groups.quiet().await;
    let of = json!({"AutoScalingGroupName": "web"});
    let theirs = groups.scaling("StartInstanceRefresh", of.clone()).await;
    let theirs = theirs["InstanceRefreshId"]
        .as_str()
        .expect("an id")
        .to_owned();
    groups.world.run(ROLLBACK, json!({})).await.done();
    assert_eq!(groups.world.count("CancelInstanceRefresh"), 0);
    let log = groups.world.log(ROLLBACK, "Rollback").await;
    let told = format!("Waiting for the end of Instance Refresh {theirs} of Asg web");
    assert_eq!(log.matches(&told).count(), 1, "{log}");
    groups.quiet().await;
    assert_eq!(groups.account().await, "web v1 2/2 of v1 | web");
}
