//! Launch templates and Auto Scaling groups, in virtual time.

use std::fmt::Write;

use slipway_sandbox::{Fault, FaultEffect};

use crate::support::{Aws, all_between, between};

impl Aws {
    /// Status and body of a request to one of EC2's APIs.
    async fn form(&self, version: &str, operation: &str, form: &str) -> (u16, String) {
        let body = format!("Action={operation}&Version={version}&{form}");
        let request = http::Request::post("/")
            .header("authorization", self.authorization())
            .body(axum::body::Body::from(body))
            .expect("a request");
        let response = self.send(request).await;
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await;
        let body = body.expect("a body");
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    pub(crate) async fn ec2(&self, operation: &str, form: &str) -> String {
        let (status, body) = self.form("2016-11-15", operation, form).await;
        assert_eq!(status, 200, "{operation}: {body}");
        body
    }

    pub(crate) async fn asg(&self, operation: &str, form: &str) -> String {
        let (status, body) = self.form("2011-01-01", operation, form).await;
        assert_eq!(status, 200, "{operation}: {body}");
        body
    }

    pub(crate) async fn cloudwatch(&self, operation: &str, form: &str) -> String {
        let (status, body) = self.form("2010-08-01", operation, form).await;
        assert_eq!(status, 200, "{operation}: {body}");
        body
    }

    pub(crate) async fn iam(&self, operation: &str, form: &str) -> String {
        let (status, body) = self.form("2010-05-08", operation, form).await;
        assert_eq!(status, 200, "{operation}: {body}");
        body
    }

    /// What is refused: `<status> <code>: <message>`.
    pub(crate) async fn refused(&self, version: &str, operation: &str, form: &str) -> String {
        let (status, body) = self.form(version, operation, form).await;
        assert!(status >= 400, "{operation}: {body}");
        format!(
            "{status} {}: {}",
            between(&body, "Code"),
            between(&body, "Message")
        )
    }

    pub(crate) async fn template(&self, image: &str) {
        let form = format!(
            "LaunchTemplateName=web&LaunchTemplateData.ImageId={image}&LaunchTemplateData.InstanceType=t3.micro"
        );
        self.ec2("CreateLaunchTemplate", &form).await;
    }

    pub(crate) async fn version(&self, image: &str) {
        let form = format!(
            "LaunchTemplateName=web&SourceVersion=$Latest&LaunchTemplateData.ImageId={image}"
        );
        self.ec2("CreateLaunchTemplateVersion", &form).await;
    }

    /// A group `web` of so many instances that are told something when they start.
    pub(crate) async fn told_group(&self, desired: u32, user_data: &str) {
        let data = format!(
            "ami-1&LaunchTemplateData.UserData={}",
            user_data.replace('+', "%2B")
        );
        self.group(&data, desired, "").await;
    }

    /// A group `web` of so many instances of an image.
    pub(crate) async fn group(&self, image: &str, desired: u32, more: &str) {
        self.template(image).await;
        let form = format!(
            "AutoScalingGroupName=web&MinSize=0&MaxSize=8&DesiredCapacity={desired}\
             &AvailabilityZones.member.1=us-east-1a&LaunchTemplate.LaunchTemplateName=web\
             &LaunchTemplate.Version=$Latest&{more}"
        );
        self.asg("CreateAutoScalingGroup", &form).await;
    }

    /// The instances of `web`: `<number of> <state>/<health>/<version>`, and the newest refresh.
    pub(crate) async fn look(&self) -> String {
        let found = self.asg("DescribeAutoScalingGroups", "").await;
        let states = all_between(&found, "LifecycleState");
        let health = all_between(&found, "HealthStatus");
        let mut versions = all_between(&found, "Version");
        versions.retain(|version| *version != "$Latest");
        let mut counts = std::collections::BTreeMap::<String, u32>::new();
        for ((state, health), version) in states.iter().zip(health).zip(versions) {
            let health = if health == "Healthy" { "" } else { "!" };
            *counts
                .entry(format!("{state}{health} v{version}"))
                .or_default() += 1;
        }
        let counts = counts.iter().map(|(what, count)| format!("{count} {what}"));
        let mut text = counts.collect::<Vec<_>>().join(", ");
        if found.contains("<AutoScalingGroupName>web<") {
            let refreshes = self
                .asg("DescribeInstanceRefreshes", "AutoScalingGroupName=web")
                .await;
            if let Some(status) = all_between(&refreshes, "Status").first() {
                let percent = all_between(&refreshes, "PercentageComplete")[0];
                let _infallible = write!(text, " | {status} {percent}%");
            }
        }
        text
    }

    /// What is seen of `web` for so many seconds, each change with its second.
    pub(crate) async fn film(&self, seconds: u64) -> String {
        let (mut told, mut last) = (String::new(), String::new());
        for second in 0..=seconds {
            let now = self.look().await;
            if now != last {
                let _infallible = writeln!(told, "{second:>3} {now}");
                last = now;
            }
            self.pass(1).await;
        }
        told
    }
}

#[tokio::test(start_paused = true)]
async fn launch_templates_have_versions() {
    let aws = Aws::new();
    aws.template("ami-1").await;
    aws.version("ami-2").await;
    aws.version("ami-3").await;
    let described =
        "LaunchTemplateName=web&LaunchTemplateVersion.1=$Latest&LaunchTemplateVersion.2=$Default";
    let found = aws.ec2("DescribeLaunchTemplateVersions", described).await;
    assert_eq!(all_between(&found, "versionNumber"), ["1", "3"]);
    assert_eq!(all_between(&found, "imageId"), ["ami-1", "ami-3"]);
    assert_eq!(
        all_between(&found, "instanceType"),
        ["t3.micro", "t3.micro"]
    );
    aws.ec2(
        "ModifyLaunchTemplate",
        "LaunchTemplateName=web&SetDefaultVersion=2",
    )
    .await;
    let gone = "LaunchTemplateName=web&LaunchTemplateVersion.1=1&LaunchTemplateVersion.2=2";
    let gone = aws.ec2("DeleteLaunchTemplateVersions", gone).await;
    assert!(
        gone.contains("The default version cannot be deleted"),
        "{gone}"
    );
    let page = aws
        .ec2(
            "DescribeLaunchTemplateVersions",
            "LaunchTemplateName=web&MaxResults=1",
        )
        .await;
    assert_eq!(all_between(&page, "versionNumber"), ["2"]);
    let next = format!(
        "LaunchTemplateName=web&MaxResults=1&NextToken={}",
        between(&page, "nextToken")
    );
    let page = aws.ec2("DescribeLaunchTemplateVersions", &next).await;
    assert_eq!(all_between(&page, "versionNumber"), ["3"]);
    assert!(!page.contains("nextToken"));
    // The same token makes the same version.
    let again = "LaunchTemplateName=web&ClientToken=t&LaunchTemplateData.ImageId=ami-4";
    for _ in 0..2 {
        let made = aws.ec2("CreateLaunchTemplateVersion", again).await;
        assert_eq!(between(&made, "versionNumber"), "4");
    }
    let mut said = Vec::new();
    for (operation, form) in [
        (
            "CreateLaunchTemplate",
            "LaunchTemplateName=web&LaunchTemplateData.ImageId=ami-1",
        ),
        (
            "CreateLaunchTemplate",
            "LaunchTemplateName=w&LaunchTemplateData.ImageId=ami-1",
        ),
        ("CreateLaunchTemplate", "LaunchTemplateName=web2"),
        (
            "CreateLaunchTemplateVersion",
            "LaunchTemplateName=cart&LaunchTemplateData.ImageId=ami-1",
        ),
        (
            "CreateLaunchTemplateVersion",
            "LaunchTemplateName=web&LaunchTemplateData.ImageId=nginx",
        ),
        (
            "DescribeLaunchTemplateVersions",
            "LaunchTemplateName=web&LaunchTemplateVersion.1=9",
        ),
        ("DescribeLaunchTemplates", "LaunchTemplateId.1=lt-1"),
        ("DescribeImages", "ImageId.1=ami-00403"),
        (
            "DescribeImages",
            "Filter.1.Name=shape&Filter.1.Value.1=round&ImageId.1=ami-1",
        ),
        ("DescribeRegions", "RegionName.1=mars-1"),
        ("RunInstances", ""),
    ] {
        said.push(aws.refused("2016-11-15", operation, form).await);
    }
    insta::assert_snapshot!(said.join("\n"), @r#"
    400 InvalidLaunchTemplateName.AlreadyExistsException: Launch template name already in use.
    400 InvalidLaunchTemplateName.MalformedException: A launch template name must be between 3 and 128 characters, and may contain letters, numbers, and the following characters: - ( ) . / _.
    400 MissingParameter: The request must contain the parameter LaunchTemplateData
    400 InvalidLaunchTemplateName.NotFoundException: The specified launch template, with template name cart, does not exist.
    400 InvalidAMIID.Malformed: Invalid id: "nginx"
    400 InvalidLaunchTemplateId.VersionNotFound: Could not find the specified version 9 for the launch template with ID lt-4bcc3fb0875767a6f.
    400 InvalidLaunchTemplateId.NotFound: The specified launch template, with template ID lt-1, does not exist.
    400 InvalidAMIID.NotFound: The image id '[ami-00403]' does not exist
    400 InvalidParameterValue: The filter 'shape' is invalid
    400 InvalidParameterValue: Invalid region provided: mars-1
    400 InvalidAction: The action RunInstances is not valid for this web service.
    "#);
    aws.ec2("DeleteLaunchTemplate", "LaunchTemplateName=web")
        .await;
    let left = aws.ec2("DescribeLaunchTemplates", "").await;
    assert!(!left.contains("launchTemplateId"), "{left}");
}

#[tokio::test(start_paused = true)]
async fn images_are_found_by_name_tag_and_owner() {
    let aws = Aws::new();
    for (name, more) in [
        (
            "shop-1",
            "&TagSpecification.1.ResourceType=image&TagSpecification.1.Tag.1.Key=app&TagSpecification.1.Tag.1.Value=shop",
        ),
        ("shop-2", "&OwnerId=999999999999&Public=true"),
        ("shop-3", "&OwnerId=999999999999"),
    ] {
        aws.ec2("RegisterImage", &format!("Name={name}{more}"))
            .await;
    }
    for (form, names) in [
        ("", vec!["shop-1", "shop-2"]),
        ("Owner.1=self", vec!["shop-1"]),
        ("Owner.1=999999999999", vec!["shop-2"]),
        (
            "Filter.1.Name=name&Filter.1.Value.1=shop-*",
            vec!["shop-1", "shop-2"],
        ),
        (
            "Filter.1.Name=tag:app&Filter.1.Value.1=shop",
            vec!["shop-1"],
        ),
    ] {
        let found = aws.ec2("DescribeImages", form).await;
        let mut found = all_between(&found, "name");
        found.sort_unstable();
        assert_eq!(found, names, "{form}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_keeps_its_number_of_instances() {
    let aws = Aws::new();
    aws.group("ami-1", 2, "").await;
    insta::assert_snapshot!(aws.film(60).await, @"
     5 2 Pending v1
    17 2 InService v1
    ");
    let instances = aws.ec2("DescribeInstances", "").await;
    let ids = all_between(&instances, "instanceId");
    assert_eq!(ids.len(), 2);
    let lost = format!("InstanceId={}&ShouldDecrementDesiredCapacity=false", ids[0]);
    aws.asg("TerminateInstanceInAutoScalingGroup", &lost).await;
    insta::assert_snapshot!(aws.film(60).await, @"
     0 1 InService v1, 1 Terminating v1
     5 1 InService v1, 1 Pending v1, 1 Terminating v1
    10 1 InService v1, 1 Pending v1
    17 2 InService v1
    ");
    aws.asg(
        "SetDesiredCapacity",
        "AutoScalingGroupName=web&DesiredCapacity=1",
    )
    .await;
    insta::assert_snapshot!(aws.film(60).await, @"
     0 2 InService v1
     5 1 InService v1, 1 Terminating v1
    15 1 InService v1
    ");
    aws.asg(
        "DeleteAutoScalingGroup",
        "AutoScalingGroupName=web&ForceDelete=true",
    )
    .await;
    insta::assert_snapshot!(aws.film(60).await, @"
     0 1 InService v1
     5 1 Terminating v1
    15
    ");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_replaces_batch_by_batch() {
    let aws = Aws::new();
    aws.group("ami-1", 4, "").await;
    aws.pass(60).await;
    aws.version("ami-2").await;
    let form =
        "AutoScalingGroupName=web&Preferences.MinHealthyPercentage=50&Preferences.InstanceWarmup=0";
    aws.asg("StartInstanceRefresh", form).await;
    let again = aws
        .refused("2011-01-01", "StartInstanceRefresh", form)
        .await;
    assert!(
        again.starts_with("400 InstanceRefreshInProgress"),
        "{again}"
    );
    insta::assert_snapshot!(aws.film(200).await, @"
     0 4 InService v1 | Pending 0%
     5 2 InService v1, 2 Pending v2, 2 Terminating v1 | InProgress 0%
    15 2 InService v1, 2 Pending v2 | InProgress 0%
    17 2 InService v1, 2 InService v2 | InProgress 0%
    32 2 InService v2, 2 Pending v2, 2 Terminating v1 | InProgress 50%
    42 2 InService v2, 2 Pending v2 | InProgress 50%
    44 4 InService v2 | InProgress 50%
    59 4 InService v2 | Successful 100%
    ");
    // What fits already stays.
    let form =
        "AutoScalingGroupName=web&Preferences.SkipMatching=true&Preferences.InstanceWarmup=0";
    aws.asg("StartInstanceRefresh", form).await;
    insta::assert_snapshot!(aws.film(60).await, @"
    0 4 InService v2 | Pending 0%
    5 4 InService v2 | Successful 100%
    ");
    // More than all at once come before the old ones go.
    aws.version("ami-3").await;
    let form = "AutoScalingGroupName=web&Preferences.MinHealthyPercentage=100\
                &Preferences.MaxHealthyPercentage=200&Preferences.InstanceWarmup=0";
    aws.asg("StartInstanceRefresh", form).await;
    insta::assert_snapshot!(aws.film(200).await, @"
     0 4 InService v2 | Pending 0%
     5 4 InService v2, 4 Pending v3 | InProgress 0%
    17 4 InService v2, 4 InService v3 | InProgress 0%
    32 4 InService v3, 4 Terminating v2 | InProgress 100%
    37 4 InService v3, 4 Terminating v2 | Successful 100%
    42 4 InService v3 | Successful 100%
    ");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_can_be_cancelled_and_can_fail() {
    let aws = Aws::new();
    aws.group("ami-1", 2, "").await;
    aws.pass(60).await;
    aws.version("ami-0bad").await;
    let form = "AutoScalingGroupName=web&Preferences.InstanceWarmup=0";
    aws.asg("StartInstanceRefresh", form).await;
    insta::assert_snapshot!(aws.film(90).await, @"
     0 2 InService v1 | Pending 0%
     5 1 InService v1, 1 Pending v2, 1 Terminating v1 | InProgress 0%
    15 1 InService v1, 1 Pending v2 | InProgress 0%
    17 1 InService v1, 1 InService v2 | InProgress 0%
    32 1 InService v1, 1 Pending v2, 1 Terminating! v2 | InProgress 0%
    42 1 InService v1, 1 Pending v2 | InProgress 0%
    44 1 InService v1, 1 InService v2 | InProgress 0%
    59 1 InService v1, 1 Pending v2, 1 Terminating! v2 | InProgress 0%
    69 1 InService v1, 1 Pending v2 | InProgress 0%
    71 1 InService v1, 1 InService v2 | InProgress 0%
    86 1 InService v1, 1 Pending v2, 1 Terminating! v2 | InProgress 0%
    ");
    aws.asg("CancelInstanceRefresh", "AutoScalingGroupName=web")
        .await;
    aws.pass(10).await;
    let none = "AutoScalingGroupName=web";
    let none = aws
        .refused("2011-01-01", "CancelInstanceRefresh", none)
        .await;
    assert!(
        none.starts_with("400 ActiveInstanceRefreshNotFound"),
        "{none}"
    );
    aws.asg("StartInstanceRefresh", form).await;
    aws.pass(3_700).await;
    let refreshes = aws
        .asg("DescribeInstanceRefreshes", "AutoScalingGroupName=web")
        .await;
    assert_eq!(all_between(&refreshes, "Status"), ["Failed", "Cancelled"]);
    assert!(refreshes.contains("did not become healthy"), "{refreshes}");
    let activities = aws
        .asg("DescribeScalingActivities", "AutoScalingGroupName=web")
        .await;
    assert!(
        activities.contains("EC2 health check failure"),
        "{activities}"
    );
}

#[tokio::test(start_paused = true)]
async fn instances_are_targets_and_health_of_balancers_counts() {
    let balanced = crate::balancers::Balanced::new().await;
    let aws = &balanced.aws;
    let form = "Name=vms&Protocol=HTTP&Port=80&VpcId=vpc-1&TargetType=instance";
    let made = aws.elb("CreateTargetGroup", form).await;
    let group = all_between(&made, "TargetGroupArn")[0].to_owned();
    let form = format!(
        "ListenerArn={}&{}",
        balanced.listener,
        crate::balancers::forward("DefaultActions", &[(&group, 1)])
    );
    aws.elb("ModifyListener", &form).await;
    let more =
        format!("HealthCheckType=ELB&HealthCheckGracePeriod=30&TargetGroupARNs.member.1={group}");
    aws.group("ami-1", 2, &more).await;
    aws.pass(60).await;
    let health = async || {
        let form = format!("TargetGroupArn={group}");
        let found = aws.elb("DescribeTargetHealth", &form).await;
        let mut states: Vec<String> = all_between(&found, "State")
            .iter()
            .map(ToString::to_string)
            .collect();
        states.sort_unstable();
        states.join(" ")
    };
    assert_eq!(health().await, "healthy healthy");
    let sources = aws
        .asg("DescribeTrafficSources", "AutoScalingGroupName=web")
        .await;
    assert_eq!(all_between(&sources, "State"), ["InService"]);
    let form = format!("AutoScalingGroupName=web&TargetGroupARNs.member.1={group}");
    aws.asg("DetachLoadBalancerTargetGroups", &form).await;
    assert_eq!(health().await, "draining draining");
    aws.asg("AttachLoadBalancerTargetGroups", &form).await;
    aws.pass(20).await;
    assert_eq!(health().await, "healthy healthy");
    let since = aws.clock.now();
    aws.version("ami-2").await;
    let form = "AutoScalingGroupName=web&Preferences.MinHealthyPercentage=100\
                &Preferences.MaxHealthyPercentage=150&Preferences.InstanceWarmup=0";
    aws.asg("StartInstanceRefresh", form).await;
    aws.pass(700).await;
    assert_eq!(aws.look().await, "2 InService v2 | Successful 100%");
    let rules = aws.sandbox.traffic(&balanced.listener, Some(since));
    let rules = rules.expect("an account").expect("a listener");
    let requests = rules.last().expect("the default rule").requests(10.0);
    assert!(
        requests.sent > 6_900.0 && requests.failed == 0.0,
        "{requests:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn policies_actions_tags_and_metrics_are_kept() {
    let aws = Aws::new();
    aws.group(
        "ami-1",
        1,
        "Tags.member.1.Key=team&Tags.member.1.Value=shop&Tags.member.1.PropagateAtLaunch=true",
    )
    .await;
    for form in [
        "PolicyName=more&AdjustmentType=ChangeInCapacity&ScalingAdjustment=1",
        "PolicyName=cpu&PolicyType=TargetTrackingScaling&TargetTrackingConfiguration.TargetValue=50\
         &TargetTrackingConfiguration.PredefinedMetricSpecification.PredefinedMetricType=ASGAverageCPUUtilization",
    ] {
        aws.asg(
            "PutScalingPolicy",
            &format!("AutoScalingGroupName=web&{form}"),
        )
        .await;
    }
    let policies = aws
        .asg("DescribePolicies", "AutoScalingGroupName=web")
        .await;
    assert_eq!(all_between(&policies, "PolicyName"), ["cpu", "more"]);
    assert_eq!(all_between(&policies, "AlarmName").len(), 2);
    aws.asg("DeletePolicy", "AutoScalingGroupName=web&PolicyName=cpu")
        .await;
    let action = "AutoScalingGroupName=web&ScheduledActionName=night&DesiredCapacity=0&Recurrence=0+20+*+*+*";
    aws.asg("PutScheduledUpdateGroupAction", action).await;
    let actions = aws
        .asg("DescribeScheduledActions", "AutoScalingGroupName=web")
        .await;
    assert_eq!(all_between(&actions, "ScheduledActionName"), ["night"]);
    let tag = "Tags.member.1.ResourceId=web&Tags.member.1.ResourceType=auto-scaling-group\
               &Tags.member.1.Key=BG_VERSION&Tags.member.1.Value=BLUE&Tags.member.1.PropagateAtLaunch=true";
    aws.asg("CreateOrUpdateTags", tag).await;
    let tags = aws
        .asg(
            "DescribeTags",
            "Filters.member.1.Name=key&Filters.member.1.Values.member.1=BG_VERSION",
        )
        .await;
    assert_eq!(all_between(&tags, "Value"), ["BLUE"]);
    aws.asg(
        "EnableMetricsCollection",
        "AutoScalingGroupName=web&Granularity=1Minute&Metrics.member.1=GroupMinSize",
    )
    .await;
    let group = aws.asg("DescribeAutoScalingGroups", "").await;
    assert_eq!(all_between(&group, "Metric"), ["GroupMinSize"]);
    aws.asg(
        "DeleteScheduledAction",
        "AutoScalingGroupName=web&ScheduledActionName=night",
    )
    .await;
    aws.asg(
        "DeleteTags",
        "Tags.member.1.ResourceId=web&Tags.member.1.Key=team",
    )
    .await;
    let tags = aws.asg("DescribeTags", "").await;
    assert_eq!(all_between(&tags, "Key"), ["BG_VERSION"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_refused_as_aws_does() {
    let aws = Aws::new();
    aws.group("ami-1", 1, "").await;
    aws.version("ami-00404").await;
    let good = "MinSize=1&MaxSize=2&AvailabilityZones.member.1=us-east-1a&LaunchTemplate.LaunchTemplateName=web\
                &LaunchTemplate.Version=1";
    let long = "n".repeat(256);
    let mut said = Vec::new();
    for (operation, form) in [
        ("CreateAutoScalingGroup", good.to_owned()),
        ("CreateAutoScalingGroup", format!("AutoScalingGroupName=web&{good}")),
        ("CreateAutoScalingGroup", format!("AutoScalingGroupName={long}&{good}")),
        ("CreateAutoScalingGroup", "AutoScalingGroupName=a&MinSize=1&MaxSize=1&AvailabilityZones.member.1=b".to_owned()),
        ("CreateAutoScalingGroup", format!("AutoScalingGroupName=a&{good}&DesiredCapacity=3")),
        ("CreateAutoScalingGroup", format!("AutoScalingGroupName=a&{}", good.replace("MaxSize=2", "MaxSize=0"))),
        ("CreateAutoScalingGroup", format!("AutoScalingGroupName=a&{}", good.replace("Version=1", "Version=7"))),
        ("CreateAutoScalingGroup", format!("AutoScalingGroupName=a&{}", good.replace("Version=1", "Version=2"))),
        ("CreateAutoScalingGroup", format!("AutoScalingGroupName=a&{good}&TargetGroupARNs.member.1=arn:x")),
        ("UpdateAutoScalingGroup", "AutoScalingGroupName=cart&MinSize=1".to_owned()),
        ("UpdateAutoScalingGroup", "AutoScalingGroupName=web&MinSize=x".to_owned()),
        ("SetDesiredCapacity", "AutoScalingGroupName=web&DesiredCapacity=9".to_owned()),
        ("DeleteAutoScalingGroup", "AutoScalingGroupName=cart".to_owned()),
        ("StartInstanceRefresh", "AutoScalingGroupName=web".to_owned()),
        ("StartInstanceRefresh", "AutoScalingGroupName=web&Preferences.MinHealthyPercentage=0&Preferences.MaxHealthyPercentage=150".to_owned()),
        ("PutScalingPolicy", "AutoScalingGroupName=web&PolicyName=p".to_owned()),
        ("DeletePolicy", "AutoScalingGroupName=web&PolicyName=p".to_owned()),
        ("PutScheduledUpdateGroupAction", "AutoScalingGroupName=web&ScheduledActionName=a&MinSize=1&StartTime=2020-01-01T00:00:00Z".to_owned()),
        ("DescribeAutoScalingGroups", "NextToken=zz%21".to_owned()),
        ("DescribeAutoScalingGroups", "MaxRecords=101".to_owned()),
        ("EnableMetricsCollection", "AutoScalingGroupName=web&Granularity=1Minute&Metrics.member.1=Mood".to_owned()),
        ("PutWarmPool", String::new()),
    ] {
        said.push(aws.refused("2011-01-01", operation, &form).await.replace(&long, "nn..."));
    }
    let mended =
        "AutoScalingGroupName=web&LaunchTemplate.LaunchTemplateName=web&LaunchTemplate.Version=1";
    aws.asg("UpdateAutoScalingGroup", mended).await;
    aws.pass(60).await;
    let busy = "AutoScalingGroupName=web";
    said.push(
        aws.refused("2011-01-01", "DeleteAutoScalingGroup", busy)
            .await,
    );
    for (version, service, operation) in [
        ("2011-01-01", "autoscaling", "DescribePolicies"),
        ("2016-11-15", "ec2", "DescribeImages"),
    ] {
        for effect in [
            FaultEffect::Throttle,
            FaultEffect::AccessDenied,
            FaultEffect::ExpiredCredentials,
        ] {
            aws.sandbox.faults().add(Fault {
                service: Some(service.to_owned()),
                operation: None,
                skip: 0,
                count: Some(1),
                effect,
            });
            said.push(aws.refused(version, operation, "").await);
        }
    }
    insta::assert_snapshot!(said.join("\n"), @"
    400 ValidationError: 1 validation error detected: Value null at 'autoScalingGroupName' failed to satisfy constraint: Member must not be null
    400 AlreadyExists: AutoScalingGroup by this name already exists - A group with the name web already exists
    400 ValidationError: 1 validation error detected: Value 'nn...' at 'autoScalingGroupName' failed to satisfy constraint: Member must have length between 1 and 255 and satisfy its pattern
    400 ValidationError: Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or MixedInstancesPolicy parameter.
    400 ValidationError: Desired capacity:3 must be between the specified min size:1 and max size:2
    400 ValidationError: Min bound, 1, must be less than or equal to max bound, 0
    400 ValidationError: You must use a valid fully-formed launch template. Could not find the specified version 7 for the launch template with ID lt-4bcc3fb0875767a6f.
    400 ValidationError: You must use a valid fully-formed launch template. The image id '[ami-00404]' does not exist
    400 ValidationError: Provided Target Groups may not be valid. Please ensure they exist and try again.
    400 ValidationError: AutoScalingGroup name not found - cart
    400 MalformedInput: MinSize: 'x' is not an integer
    400 ValidationError: New SetDesiredCapacity value 9 is above max value 8 for the AutoScalingGroup.
    400 ValidationError: AutoScalingGroup name not found - cart
    400 ValidationError: You must use a valid fully-formed launch template. The image id '[ami-00404]' does not exist
    400 ValidationError: The difference between MinHealthyPercentage and MaxHealthyPercentage cannot be greater than 100.
    400 ValidationError: You must specify AdjustmentType for policy type SimpleScaling.
    400 ValidationError: PolicyName not found - p
    400 ValidationError: Given start time is in the past
    400 InvalidNextToken: The NextToken value is not valid.
    400 ValidationError: 1 validation error detected: Value '101' at 'MaxRecords' failed to satisfy constraint: Member must have value between 1 and 100
    400 ValidationError: Unsupported metric: Mood
    400 InvalidAction: Could not find operation PutWarmPool for version 2011-01-01
    400 ResourceInUse: You cannot delete an AutoScalingGroup while there are instances still in the group.
    400 Throttling: Rate exceeded
    403 AccessDenied: User: arn:aws:iam::123456789012:root is not authorized to perform: autoscaling:DescribePolicies because no identity-based policy allows the autoscaling:DescribePolicies action
    403 ExpiredToken: The security token included in the request is expired
    503 RequestLimitExceeded: Rate exceeded
    403 UnauthorizedOperation: User: arn:aws:iam::123456789012:root is not authorized to perform: ec2:DescribeImages because no identity-based policy allows the ec2:DescribeImages action
    400 RequestExpired: The security token included in the request is expired
    ");
}

#[tokio::test(start_paused = true)]
async fn instances_of_all_groups_are_listed_page_by_page() {
    let aws = Aws::new();
    aws.group("ami-1", 3, "").await;
    aws.pass(120).await;
    let first = aws
        .asg("DescribeAutoScalingInstances", "MaxRecords=2")
        .await;
    let mut ids = all_between(&first, "InstanceId");
    assert_eq!(ids.len(), 2, "{first}");
    assert_eq!(between(&first, "AutoScalingGroupName"), "web");
    assert_eq!(between(&first, "HealthStatus"), "HEALTHY");
    let token = format!("MaxRecords=2&NextToken={}", between(&first, "NextToken"));
    let rest = aws.asg("DescribeAutoScalingInstances", &token).await;
    ids.extend(all_between(&rest, "InstanceId"));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), between(&rest, "NextToken")), (3, ""), "{rest}");
    let one = format!(
        "InstanceIds.member.1={}&InstanceIds.member.2=i-gone",
        ids[0]
    );
    let one = aws.asg("DescribeAutoScalingInstances", &one).await;
    assert_eq!(all_between(&one, "InstanceId"), [ids[0]], "{one}");
    let refused = aws
        .refused(
            "2011-01-01",
            "DescribeAutoScalingInstances",
            "MaxRecords=51",
        )
        .await;
    assert!(refused.starts_with("400 ValidationError"), "{refused}");
}
