//! Where a step type may stand: in stages of which types, in deployments of which types.
//!
//! The stages are those whose list of steps in Harness's schema has the type. The schema lets every deployment
//! take every step of any platform; which ones go together is what the documentation says of each platform.

use super::types::STEP_TYPES;

pub(super) const DEPLOY: u16 = 1;
pub(super) const CI: u16 = 1 << 1;
pub(super) const CUSTOM: u16 = 1 << 2;
pub(super) const APPROVAL: u16 = 1 << 3;
pub(super) const SECURITY: u16 = 1 << 4;
pub(super) const FLAG: u16 = 1 << 5;
pub(super) const IACM: u16 = 1 << 6;
pub(super) const IDP: u16 = 1 << 7;
pub(super) const DR: u16 = 1 << 8;
pub(super) const LOAD: u16 = 1 << 9;

/// Stage types in the order of their bits.
static STAGE_TYPES: &[&str] = &[
    "Deployment",
    "CI",
    "Custom",
    "Approval",
    "SecurityTests",
    "FeatureFlag",
    "IACM",
    "IDP",
    "DRTest",
    "CompositeLoadTest",
];

// Sets that many step types share.
pub(super) const ROLLOUT: u16 = DEPLOY | FLAG;
pub(super) const WORK: u16 = ROLLOUT | CUSTOM;
pub(super) const TASK: u16 = DEPLOY | CUSTOM | APPROVAL;
pub(super) const SCAN: u16 = CI | SECURITY;
pub(super) const SUPPLY: u16 = SCAN | DEPLOY;
pub(super) const CHAOS: u16 = WORK | DR | LOAD;
pub(super) const NO_BUILD: u16 = CHAOS | APPROVAL | IACM;
pub(super) const COMMON: u16 = NO_BUILD | CI;
pub(super) const BUILD: u16 = SUPPLY | WORK | IACM | IDP;
pub(super) const ALL: u16 = COMMON | BUILD;

/// Types of deployments; none are named where any will do.
pub(super) type Deployments = &'static [&'static str];

pub(super) const ANY_TYPE: Deployments = &[];
pub(super) const AGENT: Deployments = &["AiAgent"];
pub(super) const ASG: Deployments = &["Asg"];
pub(super) const AZURE_FUNCTION: Deployments = &["AzureFunction"];
pub(super) const CLOUD_FUNCTIONS: Deployments = &["GoogleCloudFunctions"];
pub(super) const CLOUD_RUN: Deployments = &["GoogleCloudRun"];
pub(super) const CONTAINER_APPS: Deployments = &["AzureContainerApps"];
pub(super) const ECS: Deployments = &["ECS"];
pub(super) const ECS_OR_ELASTIGROUP: Deployments = &["ECS", "Elastigroup"];
pub(super) const ELASTIGROUP: Deployments = &["Elastigroup"];
pub(super) const HELM: Deployments = &["NativeHelm"];
pub(super) const HOSTS: Deployments = &["Ssh", "WinRm", "CustomDeployment"];
pub(super) const INSTANCE_GROUP: Deployments = &["GoogleManagedInstanceGroup"];
pub(super) const KUBERNETES: Deployments = &["Kubernetes"];
pub(super) const KUBERNETES_OR_HELM: Deployments = &["Kubernetes", "NativeHelm"];
pub(super) const LAMBDA: Deployments = &["AwsLambda"];
pub(super) const SALESFORCE: Deployments = &["Salesforce"];
pub(super) const SAM: Deployments = &["AWS_SAM"];
pub(super) const SERVERLESS: Deployments = &["ServerlessAwsLambda"];
pub(super) const TAS: Deployments = &["TAS"];
pub(super) const WEB_APP: Deployments = &["AzureWebApp"];

/// Names of the stage types of a set.
pub(super) fn names(stages: u16) -> impl Iterator<Item = &'static str> {
    let named = STAGE_TYPES.iter().enumerate();
    named
        .filter(move |(bit, _)| stages & (1 << bit) != 0)
        .map(|(_, name)| *name)
}

/// Whether stages of this type are in the set; types that are not known are in every set.
pub(super) fn includes(stages: u16, stage_type: &str) -> bool {
    let bit = STAGE_TYPES.iter().position(|name| *name == stage_type);
    bit.is_none_or(|bit| stages & (1 << bit) != 0)
}

/// What is known of a step type.
pub(super) struct StepType {
    pub(super) name: &'static str,
    /// Types of stages, one bit each.
    pub(super) stages: u16,
    /// Types of deployments; any, where none are named.
    pub(super) deployments: Deployments,
}

/// The step type of this name.
pub(super) fn find(name: &str) -> Option<&'static StepType> {
    let index = STEP_TYPES
        .binary_search_by_key(&name, |step| step.name)
        .ok()?;
    STEP_TYPES.get(index)
}
