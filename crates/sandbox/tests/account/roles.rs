//! Roles and their policies.

use crate::support::{Aws, all_between};

const IAM: &str = "2010-05-08";
const EXECUTION: &str =
    "PolicyArn=arn:aws:iam::aws:policy/service-role/AmazonECSTaskExecutionRolePolicy";

#[tokio::test(start_paused = true)]
async fn managed_policies_are_attached_listed_and_detached() {
    let aws = Aws::new();
    let trust = r#"{"Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"Service":"ecs-tasks.amazonaws.com"}}}"#;
    let role = "RoleName=tasks";
    let made = format!("{role}&AssumeRolePolicyDocument={trust}");
    aws.iam("CreateRole", &made).await;
    let attached = format!("{role}&{EXECUTION}");
    for _ in 0..2 {
        aws.iam("AttachRolePolicy", &attached).await;
    }
    let listed = aws.iam("ListAttachedRolePolicies", role).await;
    assert_eq!(
        all_between(&listed, "PolicyName"),
        ["AmazonECSTaskExecutionRolePolicy"]
    );
    let mut said = Vec::new();
    for (operation, form) in [
        (
            "AttachRolePolicy",
            format!("{role}&PolicyArn=arn:aws:iam::123456789012:policy/own"),
        ),
        ("AttachRolePolicy", format!("{role}&PolicyArn=own")),
        ("AttachRolePolicy", format!("RoleName=nobody&{EXECUTION}")),
        (
            "DetachRolePolicy",
            format!("{role}&PolicyArn=arn:aws:iam::aws:policy/ReadOnlyAccess"),
        ),
        ("DeleteRole", role.to_owned()),
    ] {
        said.push(aws.refused(IAM, operation, &form).await);
    }
    insta::assert_snapshot!(said.join("\n"), @r"
    404 NoSuchEntity: Policy arn:aws:iam::123456789012:policy/own does not exist or is not attachable.
    400 ValidationError: ARN own is not valid.
    404 NoSuchEntity: The role with name nobody cannot be found.
    404 NoSuchEntity: Policy arn:aws:iam::aws:policy/ReadOnlyAccess was not found.
    409 DeleteConflict: Cannot delete entity, must detach all policies first.
    ");
    aws.iam("DetachRolePolicy", &attached).await;
    aws.iam("DeleteRole", role).await;
}
