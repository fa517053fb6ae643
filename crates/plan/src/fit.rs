//! Which steps and infrastructures belong to which deployment type.

/// The deployment types that a step type belongs to; `None` when it stands in stages of other types too.
pub fn deployment_types(step_type: &str) -> Option<&'static [&'static str]> {
    slipway_model::schema::deployment_types(step_type)
}

/// The type of connector that a step needs in `spec.connectorRef`, for steps that call such a system themselves;
/// `None` for all others.
pub fn step_connector(step_type: &str) -> Option<&'static str> {
    match step_type {
        "JiraApproval" | "JiraCreate" | "JiraUpdate" => Some("Jira"),
        "ServiceNowApproval" | "ServiceNowCreate" | "ServiceNowImportSet" | "ServiceNowUpdate" => {
            Some("ServiceNow")
        }
        "AsgScale" | "EcsScale" => Some("Aws"),
        _ => None,
    }
}

/// The fields of a step's spec that are stores of documents, and the kind of document in each.
pub fn step_stores(step_type: &str) -> &'static [(&'static str, &'static str)] {
    match step_type {
        "EcsRunTask" => &[
            ("taskDefinition", "EcsTaskDefinition"),
            ("runTaskRequestDefinition", "EcsRunTaskRequestDefinition"),
        ],
        _ => &[],
    }
}

/// The kind of manifest under which a plan keeps the `userData` of an Auto Scaling service.
pub const USER_DATA: &str = "AsgUserData";

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
