"""The hands of the tests against ministack, by boto3: makes what a deployment needs, says what is there, and registers
targets where ministack starts no containers that could be registered. Reads a JSON request a line, answers with one."""

import io
import json
import sys
import threading
import time
import zipfile

import boto3
from botocore.config import Config

URL, POLICY = sys.argv[1], sys.argv[2]
ACCOUNT = "123456789012"
# Its account's root: of a key of 12 digits ministack checks no signature.
SETTINGS = {
    "endpoint_url": URL,
    "region_name": "us-east-1",
    "aws_access_key_id": ACCOUNT,
    "aws_secret_access_key": "x",
}
PATH_STYLE = Config(s3={"addressing_style": "path"})


def client(name, **settings):
    return boto3.client(name, **SETTINGS, **settings)


ECS, ELB, GROUPS = client("ecs"), client("elbv2"), client("autoscaling")
FUNCTIONS, EC2 = client("lambda"), client("ec2")


def trusted(principal, **conditions):
    statement = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement | conditions]})


def roles():
    iam = client("iam")
    external = {"Condition": {"StringEquals": {"sts:ExternalId": "shop"}}}
    root = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    deployer = "slipway-deploy-shop"
    iam.create_role(RoleName=deployer, AssumeRolePolicyDocument=trusted(root, **external))
    with open(POLICY, encoding="utf-8") as policy:
        iam.put_role_policy(RoleName=deployer, PolicyName="deploy", PolicyDocument=policy.read())
    # What ministack takes GetAlias, UpdateAlias and DeleteAlias for; AWS does not ask for it.
    mistaken = {"Effect": "Allow", "Action": "lambda:ListAliases", "Resource": "*"}
    mistaken = json.dumps({"Version": "2012-10-17", "Statement": [mistaken]})
    iam.put_role_policy(RoleName=deployer, PolicyName="mistaken", PolicyDocument=mistaken)
    function = trusted({"Service": "lambda.amazonaws.com"})
    iam.create_role(RoleName="checkout", AssumeRolePolicyDocument=function)


def packages():
    s3 = client("s3", config=PATH_STYLE)
    s3.create_bucket(Bucket="shop-packages")
    for version in ["v1", "v2", "v3"]:
        package = io.BytesIO()
        with zipfile.ZipFile(package, "w") as files:
            files.writestr("index.js", f"exports.handler = async () => '{version}';")
        s3.put_object(Bucket="shop-packages", Key=f"checkout/{version}.zip", Body=package.getvalue())


def listener(balancer, port, action):
    made = ELB.create_listener(LoadBalancerArn=balancer, Port=port, Protocol="HTTP", DefaultActions=[action])
    arn = made["Listeners"][0]["ListenerArn"]
    return [arn, ELB.describe_rules(ListenerArn=arn)["Rules"][0]["RuleArn"]]


def balanced(lane, kind, weighted):
    """A load balancer with two listeners: ARNs of listener, rule, listener, rule."""
    subnets = EC2.describe_subnets()["Subnets"]
    made = ELB.create_load_balancer(Name=lane, Subnets=[one["SubnetId"] for one in subnets[:2]])
    balancer = made["LoadBalancers"][0]["LoadBalancerArn"]
    groups = []
    for number in ["one", "two"]:
        place = {"VpcId": subnets[0]["VpcId"], "Port": 80, "Protocol": "HTTP", "TargetType": kind}
        made = ELB.create_target_group(Name=f"{lane}-{number}", **place)
        groups.append(made["TargetGroups"][0]["TargetGroupArn"])
    shares = [{"TargetGroupArn": group, "Weight": share} for group, share in zip(groups, [1, 0])]
    both = {"Type": "forward", "ForwardConfig": {"TargetGroups": shares}}
    actions = [both, both] if weighted else [{"Type": "forward", "TargetGroupArn": group} for group in groups]
    return [arn for port, action in zip([80, 8080], actions) for arn in listener(balancer, port, action)]


def opened(lane, kind=None, weighted=False):
    """Makes a cluster of the lane's name with a service beside, and a load balancer where one is asked for."""
    ECS.create_cluster(clusterName=lane)
    container = {"name": "worker", "image": "library/worker:1", "memory": 128}
    ECS.register_task_definition(family=f"{lane}-workers", containerDefinitions=[container])
    ECS.create_service(
        cluster=lane, serviceName="shop-workers", taskDefinition=f"{lane}-workers", desiredCount=4
    )
    return {"listeners": balanced(lane, kind, weighted) if kind else []}


def services(cluster):
    names = ECS.list_services(cluster=cluster)["serviceArns"]
    found = ECS.describe_services(cluster=cluster, services=names)["services"] if names else []
    return [one for one in found if one["status"] == "ACTIVE"]


def function_seen():
    try:
        code = FUNCTIONS.get_function_configuration(FunctionName="checkout")["CodeSha256"]
        alias = FUNCTIONS.get_alias(FunctionName="checkout", Name="live")
    except FUNCTIONS.exceptions.ResourceNotFoundException:
        return None
    return {"code": code, "version": alias["FunctionVersion"], "routing": alias.get("RoutingConfig")}


def seen(lane, listeners, function):
    """What is deployed there and serves, as far as a rollback must bring it back."""
    groups = GROUPS.describe_auto_scaling_groups()["AutoScalingGroups"]
    actions = {arn: ELB.describe_rules(ListenerArn=arn)["Rules"][0]["Actions"] for arn in listeners[::2]}
    return {
        "services": sorted(
            [one["serviceName"], one["taskDefinition"], one["desiredCount"], one["runningCount"]]
            for one in services(lane)
            if one["desiredCount"] > 0
        ),
        "groups": sorted(
            [
                one["AutoScalingGroupName"],
                one["DesiredCapacity"],
                sorted(instance["LaunchTemplate"]["Version"] for instance in one["Instances"]),
            ]
            for one in groups
            if one["AutoScalingGroupName"].startswith(lane)
        ),
        "listeners": actions,
        "function": function_seen() if function else None,
    }


def register(group, running):
    """Lets a target group have as many targets as tasks run: without containers nothing else registers any."""
    health = ELB.describe_target_health(TargetGroupArn=group)["TargetHealthDescriptions"]
    has = {one["Target"]["Id"] for one in health}
    wants = {f"172.31.0.{number + 10}" for number in range(running)}
    if wants - has:
        ELB.register_targets(TargetGroupArn=group, Targets=[{"Id": one, "Port": 80} for one in wants - has])
    if has - wants:
        ELB.deregister_targets(TargetGroupArn=group, Targets=[{"Id": one} for one in has - wants])


def keep():
    while True:
        for cluster in ECS.list_clusters()["clusterArns"]:
            for service in services(cluster):
                for balancer in service["loadBalancers"]:
                    register(balancer["targetGroupArn"], service["runningCount"])
        time.sleep(0.5)


def main():
    roles()
    packages()
    threading.Thread(target=keep, daemon=True).start()
    calls = {"open": opened, "seen": seen}
    for line in sys.stdin:
        request = json.loads(line)
        answer = calls[request.pop("call")](**request)
        print(json.dumps(answer, sort_keys=True), flush=True)


main()
