//! Groups that are told to leave something alone: suspended processes and instances that are protected from scale-in; and
//! what groups, their schedules and their launch templates may not say.

use crate::support::{Aws, all_between, between};

#[tokio::test(start_paused = true)]
async fn a_suspended_process_stands_still_until_it_is_resumed() {
    let aws = Aws::new();
    aws.group("ami-1", 2, "").await;
    aws.pass(60).await;
    let suspend = "AutoScalingGroupName=web&ScalingProcesses.member.1=Launch&ScalingProcesses.member.2=Terminate";
    aws.asg("SuspendProcesses", suspend).await;
    let shown = aws.asg("DescribeAutoScalingGroups", "").await;
    assert_eq!(all_between(&shown, "ProcessName"), ["Launch", "Terminate"]);
    for desired in [4, 1] {
        let form = format!("AutoScalingGroupName=web&DesiredCapacity={desired}");
        aws.asg("SetDesiredCapacity", &form).await;
        aws.pass(120).await;
        assert_eq!(aws.look().await, "2 InService v1");
    }
    aws.asg("ResumeProcesses", "AutoScalingGroupName=web").await;
    aws.pass(300).await;
    assert_eq!(aws.look().await, "1 InService v1");
    let shown = aws.asg("DescribeAutoScalingGroups", "").await;
    assert!(all_between(&shown, "ProcessName").is_empty(), "{shown}");
    // Nobody replaces an unhealthy instance while that is suspended.
    let replace = "AutoScalingGroupName=web&ScalingProcesses.member.1=ReplaceUnhealthy";
    aws.asg("SuspendProcesses", replace).await;
    let id = between(&shown, "InstanceId").to_owned();
    aws.asg(
        "SetInstanceHealth",
        &format!("InstanceId={id}&HealthStatus=Unhealthy"),
    )
    .await;
    aws.pass(120).await;
    assert_eq!(aws.look().await, "1 InService! v1");
    aws.asg("ResumeProcesses", replace).await;
    aws.pass(300).await;
    assert_eq!(aws.look().await, "1 InService v1");
}

#[tokio::test(start_paused = true)]
async fn a_protected_instance_stays_when_the_group_becomes_smaller() {
    let aws = Aws::new();
    aws.group("ami-1", 3, "NewInstancesProtectedFromScaleIn=true")
        .await;
    aws.pass(60).await;
    let shown = aws.asg("DescribeAutoScalingGroups", "").await;
    assert_eq!(all_between(&shown, "ProtectedFromScaleIn"), ["true"; 3]);
    let small = "AutoScalingGroupName=web&DesiredCapacity=1";
    aws.asg("SetDesiredCapacity", small).await;
    aws.pass(300).await;
    assert_eq!(aws.look().await, "3 InService v1");
    let ids = all_between(&shown, "InstanceId");
    let form = |id: &str, protected: bool| {
        format!(
            "AutoScalingGroupName=web&InstanceIds.member.1={id}&ProtectedFromScaleIn={protected}"
        )
    };
    aws.asg("SetInstanceProtection", &form(ids[1], false)).await;
    aws.pass(300).await;
    let left = aws.asg("DescribeAutoScalingGroups", "").await;
    let left = all_between(&left, "InstanceId");
    assert_eq!(left, [ids[0], ids[2]]);
}

#[tokio::test(start_paused = true)]
async fn groups_and_their_schedules_are_refused_in_aws_words() {
    let aws = Aws::new();
    aws.group("ami-1", 1, "").await;
    let update = "UpdateAutoScalingGroup";
    let action = "PutScheduledUpdateGroupAction";
    let mut said = Vec::new();
    for (operation, form) in [
        (update, "TerminationPolicies.member.1=YoungestInstance"),
        (update, "AvailabilityZones.member.1=eu-west-1a"),
        (update, "VPCZoneIdentifier=subnet-1,vpc-1"),
        (update, "MinSize=9"),
        (update, "MinSize=2&DesiredCapacity=1"),
        (
            update,
            "LaunchTemplate.LaunchTemplateName=web&LaunchTemplate.Version=7",
        ),
        (
            update,
            "LaunchTemplate.LaunchTemplateName=other&LaunchTemplate.Version=1",
        ),
        (action, "ScheduledActionName=a&Recurrence=0 9 * * *"),
        (action, "ScheduledActionName=a&MinSize=1"),
        (
            action,
            "ScheduledActionName=a&MinSize=1&EndTime=2027-01-01T00:00:00Z",
        ),
        (
            action,
            "ScheduledActionName=a&MinSize=1&Recurrence=cron(0 9 ? * MON *)",
        ),
        (
            action,
            "ScheduledActionName=a&MinSize=1&Recurrence=0 25 * * *",
        ),
        (
            action,
            "ScheduledActionName=a&MinSize=1&Recurrence=0 9 * * *&TimeZone=Mars/Base",
        ),
        (
            action,
            "ScheduledActionName=a&MinSize=1&StartTime=2025-01-01T00:00:00Z",
        ),
        (
            action,
            "ScheduledActionName=a&MinSize=1&StartTime=2027-01-01T00:00:00Z&EndTime=2026-06-01T00:00:00Z",
        ),
        (
            action,
            "ScheduledActionName=a&MinSize=3&MaxSize=2&Recurrence=0 9 * * *",
        ),
        (
            action,
            "ScheduledActionName=a&DesiredCapacity=3&MaxSize=2&Recurrence=0 9 * * *",
        ),
        ("SuspendProcesses", "ScalingProcesses.member.1=Sleep"),
        (
            "SetInstanceProtection",
            "InstanceIds.member.1=i-1&ProtectedFromScaleIn=true",
        ),
    ] {
        let form = format!("AutoScalingGroupName=web&{form}");
        said.push(aws.refused("2011-01-01", operation, &form).await);
    }
    insta::assert_snapshot!(said.join("\n"), @"
    400 ValidationError: [YoungestInstance] is not a valid termination policy
    400 ValidationError: Invalid availability zones: [eu-west-1a]
    400 ValidationError: The subnet ID 'vpc-1' does not exist
    400 ValidationError: Min bound, 9, must be less than or equal to max bound, 8
    400 ValidationError: Desired capacity:1 must be between the specified min size:2 and max size:8
    400 ValidationError: You must use a valid fully-formed launch template. Could not find the specified version 7 for the launch template with ID lt-4bcc3fb0875767a6f.
    400 ValidationError: You must use a valid fully-formed launch template. The specified launch template, with template name other, does not exist.
    400 ValidationError: At least one of max size, min size, or desired capacity must be specified
    400 ValidationError: Scheduled start time must be specified for non-recurrent future group action
    400 ValidationError: Scheduled start time must be specified for non-recurrent future group action
    400 ValidationError: Given recurrence string: cron(0 9 ? * MON *) is invalid
    400 ValidationError: Given recurrence string: 0 25 * * * is invalid
    400 ValidationError: Time zone specified does not conform to standardized time zones found in IANA Time Zone Database
    400 ValidationError: Given start time is in the past
    400 ValidationError: Given end time must be after start time
    400 ValidationError: Max size must be greater than or equal to min size
    400 ValidationError: Desired capacity must be less than or equal to max size
    400 ValidationError: 'Sleep' is not a valid process type. Valid process types are [Launch, Terminate, AddToLoadBalancer, AlarmNotification, AZRebalance, HealthCheck, InstanceRefresh, ReplaceUnhealthy, ScheduledActions]
    400 ValidationError: The instance i-1 is not part of Auto Scaling group web.
    ");
    let good = "AutoScalingGroupName=web&ScheduledActionName=a&MinSize=1&MaxSize=4&DesiredCapacity=-1\
                &Recurrence=0 9 * * MON-FRI&TimeZone=Europe/Berlin";
    aws.asg(action, good).await;
}

#[tokio::test(start_paused = true)]
async fn launch_templates_are_refused_in_aws_words() {
    let aws = Aws::new();
    let mut said = Vec::new();
    for data in [
        "UserData=echo hello",
        "ImageIdentifier=ami-1",
        "ImageId=web-1",
        "InstanceType=t3.micro&LaunchTemplateData.InstanceRequirements.VCpuCount.Min=1",
    ] {
        let form = format!("LaunchTemplateName=web&LaunchTemplateData.{data}");
        said.push(
            aws.refused("2016-11-15", "CreateLaunchTemplate", &form)
                .await,
        );
    }
    insta::assert_snapshot!(said.join("\n"), @r#"
    400 InvalidUserData.Malformed: Invalid BASE64 encoding of user data.
    400 UnknownParameter: The parameter LaunchTemplateData.ImageIdentifier is not recognized
    400 InvalidAMIID.Malformed: Invalid id: "web-1"
    400 InvalidParameterCombination: You can't specify InstanceRequirements and InstanceType in the same request. Specify one or the other, and try again.
    "#);
}

/// EC2 takes any type into a launch template; who starts instances of it is told that there is none.
#[tokio::test(start_paused = true)]
async fn an_instance_type_that_there_is_not_starts_no_group() {
    let aws = Aws::new();
    let form = "LaunchTemplateName=web&LaunchTemplateData.ImageId=ami-1&LaunchTemplateData.InstanceType=zz.small";
    aws.ec2("CreateLaunchTemplate", form).await;
    let group = "AutoScalingGroupName=web&MinSize=1&MaxSize=1&AvailabilityZones.member.1=us-east-1a\
                 &LaunchTemplate.LaunchTemplateName=web";
    let said = aws
        .refused("2011-01-01", "CreateAutoScalingGroup", group)
        .await;
    insta::assert_snapshot!(said, @"400 ValidationError: You must use a valid fully-formed launch template. Invalid value 'zz.small' for InstanceType.");
}

/// Somebody ends an instance with `aws ec2 terminate-instances`, and not with its group.
#[tokio::test(start_paused = true)]
async fn an_instance_that_is_ended_behind_its_group_is_replaced() {
    let aws = Aws::new();
    aws.group("ami-1", 2, "").await;
    aws.pass(60).await;
    let found = aws.ec2("DescribeInstances", "").await;
    let id = between(&found, "instanceId").to_owned();
    let none = format!("InstanceId.1={id}&InstanceId.2=i-0");
    let said = aws.refused("2016-11-15", "TerminateInstances", &none).await;
    assert_eq!(
        said,
        "400 InvalidInstanceID.NotFound: The instance ID 'i-0' does not exist"
    );
    let ended = format!("InstanceId.1={id}");
    let answer = aws.ec2("TerminateInstances", &ended).await;
    assert_eq!(all_between(&answer, "name"), ["shutting-down", "running"]);
    aws.pass(300).await;
    assert_eq!(aws.look().await, "2 InService v1");
    let found = aws.ec2("DescribeInstances", &ended).await;
    assert_eq!(all_between(&found, "name"), ["terminated"]);
    let answer = aws.ec2("TerminateInstances", &ended).await;
    assert_eq!(all_between(&answer, "name"), ["terminated", "terminated"]);
}
