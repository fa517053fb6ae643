//! Which steps belong to which deployment type.
//!
//! Harness's schema lets every step stand in every deployment stage; that the step fits the `deploymentType` is
//! a rule of its documentation.

/// Deployment types with the step types that only they take.
const OWN_STEPS: &[(&[&str], &[&str])] = &[
    (
        &["ECS"],
        &[
            "EcsBasicRollback",
            "EcsBlueGreenCreateService",
            "EcsBlueGreenRollback",
            "EcsBlueGreenSwapTargetGroups",
            "EcsBlueGreenTrafficShift",
            "EcsCanaryDelete",
            "EcsCanaryDeploy",
            "EcsRollingDeploy",
            "EcsRollingRollback",
            "EcsRunTask",
            "EcsServiceSetup",
            "EcsUpgradeContainer",
        ],
    ),
    (
        &["Asg"],
        &[
            "AsgBlueGreenDeploy",
            "AsgBlueGreenRollback",
            "AsgBlueGreenSwapService",
            "AsgCanaryDelete",
            "AsgCanaryDeploy",
            "AsgPhasedDeploy",
            "AsgRollback",
            "AsgRollingDeploy",
            "AsgRollingRollback",
            "AsgSetup",
            "AsgShiftTraffic",
        ],
    ),
    (
        &["AwsLambda"],
        &[
            "AwsLambdaCanaryDeploy",
            "AwsLambdaCanaryRollback",
            "AwsLambdaDeploy",
            "AwsLambdaRollback",
            "AwsLambdaTrafficShift",
        ],
    ),
    (
        &["AWS_SAM"],
        &["AwsSamBuild", "AwsSamDeploy", "AwsSamRollback"],
    ),
    (
        &["ServerlessAwsLambda"],
        &[
            "ServerlessAwsLambdaDeploy",
            "ServerlessAwsLambdaDeployV2",
            "ServerlessAwsLambdaPackageV2",
            "ServerlessAwsLambdaPrepareRollbackV2",
            "ServerlessAwsLambdaRollback",
            "ServerlessAwsLambdaRollbackV2",
        ],
    ),
    (
        &["Elastigroup"],
        &[
            "ElastigroupBGStageSetup",
            "ElastigroupBlueGreenTrafficShift",
            "ElastigroupDeploy",
            "ElastigroupRollback",
            "ElastigroupSetup",
            "ElastigroupSwapRoute",
        ],
    ),
    (
        &["Kubernetes", "NativeHelm"],
        &[
            "HelmBGDeploy",
            "HelmBlueGreenSwapStep",
            "HelmCanaryDelete",
            "HelmCanaryDeploy",
            "HelmDeploy",
            "HelmRollback",
            "K8sBGSwapServices",
            "K8sBlueGreenDeploy",
            "K8sBlueGreenStageScaleDown",
            "K8sCanaryDelete",
            "K8sCanaryDeploy",
            "K8sRollingDeploy",
            "K8sRollingRollback",
        ],
    ),
];

/// The deployment types that a step type belongs to; `None` when it stands in any stage.
pub fn deployment_types(step_type: &str) -> Option<&'static [&'static str]> {
    OWN_STEPS
        .iter()
        .find(|(_, steps)| steps.contains(&step_type))
        .map(|(types, _)| *types)
}

/// The infrastructure types that a deployment type runs on; `None` where this version does not know them.
pub(crate) fn infrastructure_types(deployment_type: &str) -> Option<&'static [&'static str]> {
    let types: &[&str] = match deployment_type {
        "ECS" => &["ECS"],
        "Asg" => &["Asg"],
        "AwsLambda" => &["AwsLambda"],
        "AWS_SAM" => &["AWS_SAM"],
        "ServerlessAwsLambda" => &["ServerlessAwsLambda"],
        "Elastigroup" => &["Elastigroup"],
        "Kubernetes" | "NativeHelm" => &[
            "KubernetesDirect",
            "KubernetesGcp",
            "KubernetesAzure",
            "KubernetesAws",
            "KubernetesRancher",
        ],
        _ => return None,
    };
    Some(types)
}
