"""Reads and changes a sandbox account as boto3 does on AWS: waiters end when they should, lists page, errors have AWS's
codes. The endpoint is the only argument. A line for each thing that is as it should be; the first that is not ends it."""

import io
import sys
import zipfile

import boto3
from botocore.exceptions import ClientError, WaiterError

SETTINGS = {
    "endpoint_url": sys.argv[1],
    "region_name": "eu-west-1",
    "aws_access_key_id": "AKIATEST",
    "aws_secret_access_key": "x",
}
SOON = {"Delay": 1, "MaxAttempts": 60}
NOT_SOON = {"Delay": 1, "MaxAttempts": 1}


def client(name):
    return boto3.client(name, **SETTINGS)


def seen(what):
    print(what, flush=True)


def refused(code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        found = error.response["Error"]["Code"]
        assert found == code, f"{code} expected: {error}"
        seen(f"refused with {code}")
        return
    raise AssertionError(f"not refused: {code}")


def pages(api, operation, key, size, least, **arguments):
    paginator = api.get_paginator(operation)
    answers = list(paginator.paginate(PaginationConfig={"PageSize": size}, **arguments))
    items = [str(item) for answer in answers for item in answer[key]]
    assert len(answers) >= least, f"{operation}: {len(answers)} pages"
    assert len(items) == len(set(items)), f"{operation} gives an item twice"
    assert all(len(answer[key]) <= size for answer in answers), f"{operation}: too long a page"
    seen(f"{operation} pages")


def balancing():
    elb = client("elbv2")
    balancer = elb.create_load_balancer(Name="web", Subnets=["subnet-1", "subnet-2"])
    balancer = balancer["LoadBalancers"][0]["LoadBalancerArn"]
    elb.get_waiter("load_balancer_available").wait(LoadBalancerArns=[balancer], WaiterConfig=SOON)
    seen("waiter load_balancer_available")
    groups = []
    for number in range(3):
        group = elb.create_target_group(
            Name=f"group-{number}", Protocol="HTTP", Port=80, VpcId="vpc-1", TargetType="ip"
        )
        groups.append(group["TargetGroups"][0]["TargetGroupArn"])
    elb.create_listener(
        LoadBalancerArn=balancer,
        Protocol="HTTP",
        Port=80,
        DefaultActions=[{"Type": "forward", "TargetGroupArn": groups[0]}],
    )
    pages(elb, "describe_target_groups", "TargetGroups", 2, 2)
    refused("TargetGroupNotFound", elb.describe_target_groups, Names=["nobody"])
    refused("ResourceInUse", elb.delete_target_group, TargetGroupArn=groups[0])
    return groups[0]


def containers(group):
    ecs, elb = client("ecs"), client("elbv2")
    ecs.create_cluster(clusterName="c")
    for image in ["web:1", "web:2", "web:3"]:
        ecs.register_task_definition(
            family="web",
            networkMode="awsvpc",
            cpu="256",
            memory="512",
            requiresCompatibilities=["FARGATE"],
            containerDefinitions=[
                {"name": "app", "image": image, "portMappings": [{"containerPort": 80}]}
            ],
        )
    network = {"awsvpcConfiguration": {"subnets": ["subnet-1"]}}
    for name in ["web", "worker", "other"]:
        balanced = {"targetGroupArn": group, "containerName": "app", "containerPort": 80}
        ecs.create_service(
            cluster="c",
            serviceName=name,
            taskDefinition="web",
            desiredCount=2,
            launchType="FARGATE",
            networkConfiguration=network,
            loadBalancers=[balanced] if name == "web" else [],
        )
    ecs.get_waiter("services_stable").wait(cluster="c", services=["web"], WaiterConfig=SOON)
    seen("waiter services_stable")
    elb.get_waiter("target_in_service").wait(TargetGroupArn=group, WaiterConfig=SOON)
    seen("waiter target_in_service")
    running = ecs.list_tasks(cluster="c", serviceName="web")["taskArns"]
    assert len(running) == 2, running
    ecs.get_waiter("tasks_running").wait(cluster="c", tasks=running, WaiterConfig=SOON)
    seen("waiter tasks_running")
    pages(ecs, "list_services", "serviceArns", 2, 2, cluster="c")
    pages(ecs, "list_task_definitions", "taskDefinitionArns", 1, 3)
    pages(ecs, "list_tasks", "taskArns", 2, 3, cluster="c")
    refused("ClusterNotFoundException", ecs.list_services, cluster="nobody")
    refused("ServiceNotFoundException", ecs.update_service, cluster="c", service="nobody")
    ecs.update_service(cluster="c", service="other", desiredCount=0)
    ecs.delete_service(cluster="c", service="other")
    ecs.get_waiter("services_inactive").wait(cluster="c", services=["other"], WaiterConfig=SOON)
    seen("waiter services_inactive")


def functions():
    """What `lambda.rs` does not look at: packages come from the S3 beside the account."""
    aws = client("lambda")
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("index.py", "def handler(event, context): return 1\n")
    # The embedded S3 verifies signatures, and has one key.
    keys = {"aws_access_key_id": "slipway", "aws_secret_access_key": "slipway-local"}
    s3 = boto3.client("s3", **{**SETTINGS, **keys, "region_name": "us-east-1"})
    s3.create_bucket(Bucket="code")
    s3.put_object(Bucket="code", Key="one.zip", Body=package.getvalue())
    code = {"S3Bucket": "code", "S3Key": "one.zip"}
    for name in ["one", "two", "three"]:
        aws.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Handler="index.handler",
            Role="arn:aws:iam::123456789012:role/worker",
            Code=code,
        )
    aws.get_waiter("function_active_v2").wait(FunctionName="one", WaiterConfig=SOON)
    seen("waiter function_active_v2")
    aws.update_function_configuration(FunctionName="one", MemorySize=256)
    aws.get_waiter("function_updated_v2").wait(FunctionName="one", WaiterConfig=SOON)
    seen("waiter function_updated_v2")
    assert aws.get_function_configuration(FunctionName="one")["MemorySize"] == 256
    version = aws.publish_version(FunctionName="one")["Version"]
    aws.create_alias(FunctionName="one", Name="live", FunctionVersion=version)
    pages(aws, "list_functions", "Functions", 2, 2)
    pages(aws, "list_versions_by_function", "Versions", 1, 2, FunctionName="one")
    refused("ResourceNotFoundException", aws.get_function, FunctionName="nobody")
    refused(
        "ResourceConflictException",
        aws.create_alias,
        FunctionName="one",
        Name="live",
        FunctionVersion=version,
    )


def machines():
    ec2, scaling = client("ec2"), client("autoscaling")
    regions = {region["RegionName"] for region in ec2.describe_regions()["Regions"]}
    assert "eu-west-1" in regions, regions
    seen("describe_regions")
    refused(
        "InvalidLaunchTemplateName.NotFoundException",
        ec2.describe_launch_templates,
        LaunchTemplateNames=["nobody"],
    )
    image = ec2.describe_images(Owners=["self"])["Images"]
    image = image[0]["ImageId"] if image else "ami-0123456789abcdef0"
    for name in ["first", "second", "third"]:
        ec2.create_launch_template(
            LaunchTemplateName=name,
            LaunchTemplateData={"ImageId": image, "InstanceType": "t3.micro"},
        )
        scaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchTemplate={"LaunchTemplateName": name, "Version": "$Latest"},
            MinSize=0,
            MaxSize=2,
            DesiredCapacity=0,
            VPCZoneIdentifier="subnet-1",
        )
    pages(ec2, "describe_launch_templates", "LaunchTemplates", 2, 2)
    pages(scaling, "describe_auto_scaling_groups", "AutoScalingGroups", 2, 2)
    refused(
        "AlreadyExists",
        scaling.create_auto_scaling_group,
        AutoScalingGroupName="first",
        LaunchTemplate={"LaunchTemplateName": "first"},
        MinSize=0,
        MaxSize=1,
        VPCZoneIdentifier="subnet-1",
    )


def images():
    ecr = client("ecr")
    for name in ["first", "second", "third"]:
        ecr.create_repository(repositoryName=name)
    for number in range(5):
        manifest = '{"schemaVersion": 2, "number": %d}' % number
        put = ecr.put_image(repositoryName="first", imageManifest=manifest, imageTag=f"v{number}")
    digest = put["image"]["imageId"]["imageDigest"]
    found = ecr.describe_images(repositoryName="first", imageIds=[{"imageTag": "v4"}])
    image = found["imageDetails"][0]
    assert image["imageDigest"] == digest and image["imagePushedAt"].year > 2000, image
    got = ecr.batch_get_image(
        repositoryName="first", imageIds=[{"imageDigest": digest}, {"imageTag": "v9"}]
    )
    assert len(got["images"]) == 1 and got["failures"][0]["failureCode"] == "ImageNotFound", got
    seen("images by tag and digest")
    pages(ecr, "describe_repositories", "repositories", 2, 2)
    pages(ecr, "list_images", "imageIds", 2, 3, repositoryName="first")
    pages(ecr, "describe_images", "imageDetails", 2, 3, repositoryName="first")
    refused("RepositoryNotFoundException", ecr.list_images, repositoryName="nobody")
    missing = {"repositoryName": "first", "imageIds": [{"imageTag": "v9"}]}
    refused("ImageNotFoundException", ecr.describe_images, **missing)
    refused("RepositoryNotEmptyException", ecr.delete_repository, repositoryName="first")
    deleted = ecr.batch_delete_image(repositoryName="first", imageIds=[{"imageTag": "v0"}])
    assert deleted["imageIds"][0]["imageTag"] == "v0", deleted


def impatient():
    """A waiter does not end before its time: this service cannot start its tasks."""
    ecs = client("ecs")
    ecs.register_task_definition(
        family="broken",
        networkMode="awsvpc",
        cpu="256",
        memory="512",
        requiresCompatibilities=["FARGATE"],
        containerDefinitions=[{"name": "app", "image": "web:missing"}],
    )
    ecs.create_service(
        cluster="c",
        serviceName="broken",
        taskDefinition="broken",
        desiredCount=1,
        launchType="FARGATE",
        networkConfiguration={"awsvpcConfiguration": {"subnets": ["subnet-1"]}},
    )
    try:
        ecs.get_waiter("services_stable").wait(
            cluster="c", services=["broken"], WaiterConfig=NOT_SOON
        )
    except WaiterError:
        seen("waiter services_stable waits for a service that does not start")
        return
    raise AssertionError("services_stable ended early")


containers(balancing())
functions()
machines()
images()
impatient()
