//! Lifecycle hooks of Auto Scaling groups, and instance refreshes that are rolled back, in virtual time.

use crate::support::{Aws, all_between, between};

/// A hook `warm` of launches, with a heartbeat in seconds and a default result.
fn warm(heartbeat: u32, default: &str) -> String {
    format!(
        "AutoScalingGroupName=web&LifecycleHookName=warm&LifecycleTransition=autoscaling:EC2_INSTANCE_LAUNCHING\
         &HeartbeatTimeout={heartbeat}&DefaultResult={default}"
    )
}

/// The instances that are in a state.
async fn in_state(aws: &Aws, state: &str) -> Vec<String> {
    let found = aws.asg("DescribeAutoScalingGroups", "").await;
    let ids = all_between(&found, "InstanceId");
    let states = all_between(&found, "LifecycleState");
    let pairs = ids.into_iter().zip(states);
    let chosen = pairs.filter(|(_, found)| *found == state);
    chosen.map(|(id, _)| id.to_owned()).collect()
}

/// Completes the action of an instance for a hook.
fn completes(hook: &str, id: &str, result: &str) -> String {
    format!(
        "AutoScalingGroupName=web&LifecycleHookName={hook}&InstanceId={id}&LifecycleActionResult={result}"
    )
}

#[tokio::test(start_paused = true)]
async fn a_group_is_created_with_hooks_that_can_be_changed() {
    let aws = Aws::new();
    let hooks = "LifecycleHookSpecificationList.member.1.LifecycleHookName=warm\
        &LifecycleHookSpecificationList.member.1.LifecycleTransition=autoscaling:EC2_INSTANCE_LAUNCHING\
        &LifecycleHookSpecificationList.member.1.NotificationMetadata=hello";
    aws.group("ami-1", 0, hooks).await;
    let look = async || {
        let found = aws
            .asg("DescribeLifecycleHooks", "AutoScalingGroupName=web")
            .await;
        let told = [
            "LifecycleHookName",
            "LifecycleTransition",
            "HeartbeatTimeout",
            "GlobalTimeout",
            "DefaultResult",
            "NotificationMetadata",
        ];
        let told = told.map(|name| all_between(&found, name).join(","));
        told.join(" ")
    };
    assert_eq!(
        look().await,
        "warm autoscaling:EC2_INSTANCE_LAUNCHING 3600 172800 ABANDON hello"
    );
    // What a change does not say stays.
    let change = "AutoScalingGroupName=web&LifecycleHookName=warm&HeartbeatTimeout=60&DefaultResult=CONTINUE";
    aws.asg("PutLifecycleHook", change).await;
    assert_eq!(
        look().await,
        "warm autoscaling:EC2_INSTANCE_LAUNCHING 60 6000 CONTINUE hello"
    );
    let group = aws.asg("DescribeAutoScalingGroups", "").await;
    assert!(!group.contains("LifecycleHook"), "{group}");
    let types = aws.asg("DescribeLifecycleHookTypes", "").await;
    assert!(
        types.contains("autoscaling:EC2_INSTANCE_TERMINATING"),
        "{types}"
    );
    let gone = "AutoScalingGroupName=web&LifecycleHookName=warm";
    aws.asg("DeleteLifecycleHook", gone).await;
    assert_eq!(look().await.trim(), "");
}

#[tokio::test(start_paused = true)]
async fn a_launch_waits_for_who_completes_it() {
    let aws = Aws::new();
    aws.group("ami-1", 0, "").await;
    aws.asg("PutLifecycleHook", &warm(600, "ABANDON")).await;
    aws.asg(
        "SetDesiredCapacity",
        "AutoScalingGroupName=web&DesiredCapacity=1",
    )
    .await;
    aws.pass(300).await;
    let waiting = in_state(&aws, "Pending:Wait").await;
    assert_eq!(waiting.len(), 1);
    // A heartbeat begins anew.
    let beat = format!(
        "AutoScalingGroupName=web&LifecycleHookName=warm&InstanceId={}",
        waiting[0]
    );
    aws.asg("RecordLifecycleActionHeartbeat", &beat).await;
    aws.pass(590).await;
    assert_eq!(in_state(&aws, "Pending:Wait").await, waiting);
    aws.asg(
        "CompleteLifecycleAction",
        &completes("warm", &waiting[0], "CONTINUE"),
    )
    .await;
    aws.pass(60).await;
    assert_eq!(in_state(&aws, "InService").await, waiting);
    assert_eq!(aws.look().await, "1 InService v1");
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_nobody_completes_ends_as_the_hook_says() {
    for (default, kept) in [("CONTINUE", true), ("ABANDON", false)] {
        let aws = Aws::new();
        aws.group("ami-1", 0, "").await;
        aws.asg("PutLifecycleHook", &warm(60, default)).await;
        aws.asg(
            "SetDesiredCapacity",
            "AutoScalingGroupName=web&DesiredCapacity=1",
        )
        .await;
        let mut first = Vec::new();
        while first.is_empty() {
            aws.pass(1).await;
            first = in_state(&aws, "Pending:Wait").await;
        }
        aws.pass(58).await;
        assert_eq!(in_state(&aws, "Pending:Wait").await, first);
        aws.pass(4).await;
        assert_eq!(
            in_state(&aws, "InService").await == first,
            kept,
            "{default}"
        );
        let told = aws
            .asg("DescribeScalingActivities", "AutoScalingGroupName=web")
            .await;
        let abandoned = told.contains("was abandoned: Heartbeat Timeout");
        assert_eq!(abandoned, !kept, "{told}");
        // In the place of an abandoned one another one waits.
        aws.pass(60).await;
        let next = in_state(&aws, "Pending:Wait").await;
        assert_eq!(next.len(), usize::from(!kept), "{default}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_somebody_abandons_is_replaced_at_once() {
    let aws = Aws::new();
    aws.group("ami-1", 0, "").await;
    aws.asg("PutLifecycleHook", &warm(600, "CONTINUE")).await;
    aws.asg(
        "SetDesiredCapacity",
        "AutoScalingGroupName=web&DesiredCapacity=1",
    )
    .await;
    aws.pass(120).await;
    let waiting = in_state(&aws, "Pending:Wait").await;
    aws.asg(
        "CompleteLifecycleAction",
        &completes("warm", &waiting[0], "ABANDON"),
    )
    .await;
    aws.pass(120).await;
    let next = in_state(&aws, "Pending:Wait").await;
    assert!(next.len() == 1 && next != waiting, "{next:?}");
    // Without the hook nothing waits, and what waited is abandoned.
    aws.asg(
        "DeleteLifecycleHook",
        "AutoScalingGroupName=web&LifecycleHookName=warm",
    )
    .await;
    aws.pass(200).await;
    assert_eq!(aws.look().await, "1 InService v1");
    assert_ne!(in_state(&aws, "InService").await, next);
}

#[tokio::test(start_paused = true)]
async fn a_termination_is_held_and_goes_on() {
    let aws = Aws::new();
    aws.group("ami-1", 1, "").await;
    for name in ["drain", "save"] {
        let hook = format!(
            "AutoScalingGroupName=web&LifecycleHookName={name}&HeartbeatTimeout=600\
             &LifecycleTransition=autoscaling:EC2_INSTANCE_TERMINATING"
        );
        aws.asg("PutLifecycleHook", &hook).await;
    }
    aws.pass(200).await;
    aws.asg(
        "SetDesiredCapacity",
        "AutoScalingGroupName=web&DesiredCapacity=0",
    )
    .await;
    aws.pass(100).await;
    let held = in_state(&aws, "Terminating:Wait").await;
    assert_eq!(held.len(), 1);
    aws.asg(
        "CompleteLifecycleAction",
        &completes("drain", &held[0], "CONTINUE"),
    )
    .await;
    aws.pass(100).await;
    assert_eq!(
        in_state(&aws, "Terminating:Wait").await,
        held,
        "one hook is left"
    );
    // It ends the waits for all.
    aws.asg(
        "CompleteLifecycleAction",
        &completes("save", &held[0], "ABANDON"),
    )
    .await;
    aws.pass(60).await;
    assert_eq!(aws.look().await, "");
}

#[tokio::test(start_paused = true)]
async fn a_group_that_is_deleted_waits_for_no_hook() {
    let aws = Aws::new();
    aws.group("ami-1", 1, "").await;
    let hook = "AutoScalingGroupName=web&LifecycleHookName=drain&LifecycleTransition=autoscaling:EC2_INSTANCE_TERMINATING";
    aws.asg("PutLifecycleHook", hook).await;
    aws.pass(200).await;
    aws.asg(
        "DeleteAutoScalingGroup",
        "AutoScalingGroupName=web&ForceDelete=true",
    )
    .await;
    aws.pass(200).await;
    let found = aws.asg("DescribeAutoScalingGroups", "").await;
    assert!(!found.contains("<AutoScalingGroupName>"), "{found}");
    // Its hooks are gone with it.
    aws.asg("CreateAutoScalingGroup", "AutoScalingGroupName=web&MinSize=0&MaxSize=1&AvailabilityZones.member.1=us-east-1a&LaunchTemplate.LaunchTemplateName=web").await;
    let hooks = aws
        .asg("DescribeLifecycleHooks", "AutoScalingGroupName=web")
        .await;
    assert!(!hooks.contains("drain"), "{hooks}");
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_hooks_is_said_in_awss_words() {
    let aws = Aws::new();
    aws.group("ami-1", 1, "").await;
    let mut said = Vec::new();
    for (operation, form) in [
        ("PutLifecycleHook", "LifecycleHookName=warm".to_owned()),
        (
            "PutLifecycleHook",
            "AutoScalingGroupName=cart&LifecycleHookName=warm".to_owned(),
        ),
        (
            "PutLifecycleHook",
            "AutoScalingGroupName=web&LifecycleHookName=warm".to_owned(),
        ),
        (
            "PutLifecycleHook",
            "AutoScalingGroupName=web&LifecycleHookName=a b&LifecycleTransition=x".to_owned(),
        ),
        (
            "PutLifecycleHook",
            "AutoScalingGroupName=web&LifecycleHookName=a&LifecycleTransition=x".to_owned(),
        ),
        ("PutLifecycleHook", warm(29, "ABANDON")),
        ("PutLifecycleHook", warm(60, "RETRY")),
        (
            "DeleteLifecycleHook",
            "AutoScalingGroupName=web&LifecycleHookName=warm".to_owned(),
        ),
        (
            "CompleteLifecycleAction",
            completes("warm", "i-1", "CONTINUE"),
        ),
        ("CompleteLifecycleAction", completes("warm", "i-1", "MAYBE")),
        (
            "RecordLifecycleActionHeartbeat",
            "AutoScalingGroupName=web&LifecycleHookName=warm".to_owned(),
        ),
        (
            "RollbackInstanceRefresh",
            "AutoScalingGroupName=web".to_owned(),
        ),
    ] {
        let told = aws.refused("2011-01-01", operation, &form).await;
        said.push(format!("{operation}: {told}"));
    }
    insta::assert_snapshot!(said.join("\n"), @r#"
    PutLifecycleHook: 400 ValidationError: 1 validation error detected: Value null at 'autoScalingGroupName' failed to satisfy constraint: Member must not be null
    PutLifecycleHook: 400 ValidationError: AutoScalingGroup name not found - cart
    PutLifecycleHook: 400 ValidationError: Lifecycle Transition must be specified.
    PutLifecycleHook: 400 ValidationError: 1 validation error detected: Value 'a b' at 'lifecycleHookName' failed to satisfy constraint: Member must satisfy regular expression pattern: [A-Za-z0-9\-_\/]+
    PutLifecycleHook: 400 ValidationError: Invalid Lifecycle Transition: x
    PutLifecycleHook: 400 ValidationError: 1 validation error detected: Value '29' at 'HeartbeatTimeout' failed to satisfy constraint: Member must have value between 30 and 7200
    PutLifecycleHook: 400 ValidationError: Invalid Default Result: RETRY
    DeleteLifecycleHook: 400 ValidationError: No Lifecycle Hook found with name warm
    CompleteLifecycleAction: 400 ValidationError: No active Lifecycle Action found with instance ID i-1
    CompleteLifecycleAction: 400 ValidationError: Invalid Lifecycle Action Result: MAYBE
    RecordLifecycleActionHeartbeat: 400 ValidationError: Either the instance ID or the lifecycle action token must be specified.
    RollbackInstanceRefresh: 400 ActiveInstanceRefreshNotFound: No in progress or pending Instance Refresh found for Auto Scaling group web
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_is_rolled_back_to_what_the_group_starts_by_itself() {
    let aws = Aws::new();
    aws.group("ami-1", 2, "HealthCheckGracePeriod=10").await;
    aws.pass(200).await;
    aws.version("ami-2").await;
    // Of `$Latest` there is no way back.
    let start = "AutoScalingGroupName=web&Preferences.MinHealthyPercentage=50\
        &DesiredConfiguration.LaunchTemplate.LaunchTemplateName=web&DesiredConfiguration.LaunchTemplate.Version=2";
    aws.asg("StartInstanceRefresh", start).await;
    let told = aws
        .refused(
            "2011-01-01",
            "RollbackInstanceRefresh",
            "AutoScalingGroupName=web",
        )
        .await;
    assert!(
        told.starts_with("400 IrreversibleInstanceRefresh: "),
        "{told}"
    );
    aws.asg("CancelInstanceRefresh", "AutoScalingGroupName=web")
        .await;
    aws.pass(60).await;

    let number =
        "AutoScalingGroupName=web&LaunchTemplate.LaunchTemplateName=web&LaunchTemplate.Version=1";
    aws.asg("UpdateAutoScalingGroup", number).await;
    let started = aws.asg("StartInstanceRefresh", start).await;
    while !aws.look().await.contains(" v2") {
        aws.pass(1).await;
    }
    let back = aws
        .asg("RollbackInstanceRefresh", "AutoScalingGroupName=web")
        .await;
    assert_eq!(
        between(&back, "InstanceRefreshId"),
        between(&started, "InstanceRefreshId")
    );
    let other = "AutoScalingGroupName=web";
    let told = aws
        .refused("2011-01-01", "StartInstanceRefresh", other)
        .await;
    assert!(told.contains("InstanceRefreshInProgress"), "{told}");
    aws.pass(900).await;
    assert_eq!(aws.look().await, "2 InService v1 | RollbackSuccessful 100%");
}
