//! What a task may ask for: functions, activities, other executions, and the API actions of services.
//!
//! Which integrations there are: Developer Guide, "Integrating services with Step Functions".

/// What a `Task` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// A function's own ARN: the payload is the state's input.
    Function(String),
    Invoke {
        wait_for_token: bool,
    },
    StartExecution(StartMode),
    /// An activity's ARN.
    Activity(String),
    /// An action of a service that the engine reaches through [`crate::Services`].
    Service(Service),
}

/// Whether `startExecution` waits for the child, and how its output is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartMode {
    /// Request and response.
    Start,
    /// `.sync`: input and output as text.
    Sync,
    /// `.sync:2`: input and output as JSON.
    Sync2,
    WaitForToken,
}

/// An action of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    /// As `sqs` or `aws-sdk:s3`.
    pub(crate) service: String,
    /// With the pattern behind it, as `sendMessage.waitForTaskToken`.
    pub(crate) action: String,
    pub(crate) pattern: Pattern,
}

/// When a service integration is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    RequestResponse,
    /// `.sync`: the job has ended.
    Sync,
    WaitForToken,
}

/// The optimized integrations: actions by service, and whether they may wait for the end of a job.
const OPTIMIZED: [(&str, &[&str], bool); 20] = [
    ("apigateway", &["invoke"], false),
    ("athena", &["startQueryExecution"], true),
    (
        "athena",
        &["stopQueryExecution", "getQueryExecution", "getQueryResults"],
        false,
    ),
    ("batch", &["submitJob"], true),
    (
        "bedrock",
        &["invokeModel", "createModelCustomizationJob"],
        true,
    ),
    ("codebuild", &["startBuild", "startBuildBatch"], true),
    (
        "codebuild",
        &[
            "stopBuild",
            "stopBuildBatch",
            "batchDeleteBuilds",
            "batchGetReports",
        ],
        false,
    ),
    ("databrew", &["startJobRun"], true),
    (
        "dynamodb",
        &["getItem", "putItem", "deleteItem", "updateItem"],
        false,
    ),
    ("ecs", &["runTask"], true),
    (
        "eks",
        &[
            "call",
            "createCluster",
            "createFargateProfile",
            "createNodegroup",
            "deleteCluster",
            "deleteFargateProfile",
            "deleteNodegroup",
            "runJob",
        ],
        true,
    ),
    (
        "elasticmapreduce",
        &[
            "createCluster",
            "terminateCluster",
            "addStep",
            "cancelStep",
            "setClusterTerminationProtection",
            "modifyInstanceFleetByName",
            "modifyInstanceGroupByName",
        ],
        true,
    ),
    (
        "emr-containers",
        &[
            "createVirtualCluster",
            "deleteVirtualCluster",
            "startJobRun",
        ],
        true,
    ),
    (
        "emr-serverless",
        &[
            "createApplication",
            "startApplication",
            "stopApplication",
            "deleteApplication",
            "startJobRun",
            "cancelJobRun",
        ],
        true,
    ),
    ("events", &["putEvents"], false),
    ("glue", &["startJobRun"], true),
    ("http", &["invoke"], false),
    ("mediaconvert", &["createJob"], true),
    (
        "sagemaker",
        &[
            "createEndpoint",
            "createEndpointConfig",
            "createHyperParameterTuningJob",
            "createLabelingJob",
            "createModel",
            "createProcessingJob",
            "createTrainingJob",
            "createTransformJob",
            "updateEndpoint",
        ],
        true,
    ),
    ("sns", &["publish"], false),
];

impl Resource {
    /// Reads an ARN; `None` if it names nothing that there is.
    pub(crate) fn parse(arn: &str) -> Option<Self> {
        let parts: Vec<&str> = arn.splitn(6, ':').collect();
        match parts.as_slice() {
            ["arn", partition, "states", "", "", action] if partition.starts_with("aws") => {
                integration(action)
            }
            ["arn", partition, "lambda", _, _, rest] if partition.starts_with("aws") => rest
                .strip_prefix("function:")
                .is_some_and(|name| !name.is_empty())
                .then(|| Self::Function(arn.to_owned())),
            ["arn", partition, "states", _, _, rest] if partition.starts_with("aws") => rest
                .strip_prefix("activity:")
                .is_some_and(|name| !name.is_empty())
                .then(|| Self::Activity(arn.to_owned())),
            _ => None,
        }
    }

    /// `resourceType` and `resource` of the service integration's events.
    pub(crate) fn names(&self) -> Option<(&str, &str)> {
        match self {
            Self::Invoke {
                wait_for_token: false,
            } => Some(("lambda", "invoke")),
            Self::Invoke {
                wait_for_token: true,
            } => Some(("lambda", "invoke.waitForTaskToken")),
            Self::StartExecution(StartMode::Start) => Some(("states", "startExecution")),
            Self::StartExecution(StartMode::Sync) => Some(("states", "startExecution.sync")),
            Self::StartExecution(StartMode::Sync2) => Some(("states", "startExecution.sync:2")),
            Self::StartExecution(StartMode::WaitForToken) => {
                Some(("states", "startExecution.waitForTaskToken"))
            }
            Self::Service(service) => Some((&service.service, &service.action)),
            Self::Function(_) | Self::Activity(_) => None,
        }
    }

    /// Whether the task ends by its token.
    pub(crate) fn waits_for_token(&self) -> bool {
        match self {
            Self::Invoke { wait_for_token } => *wait_for_token,
            Self::StartExecution(mode) => *mode == StartMode::WaitForToken,
            Self::Service(service) => service.pattern == Pattern::WaitForToken,
            Self::Activity(_) => true,
            Self::Function(_) => false,
        }
    }

    /// Whether the task waits for the end of what it starts.
    pub(crate) fn is_sync(&self) -> bool {
        match self {
            Self::StartExecution(mode) => matches!(mode, StartMode::Sync | StartMode::Sync2),
            Self::Service(service) => service.pattern == Pattern::Sync,
            _ => false,
        }
    }
}

/// Reads what follows `arn:aws:states:::`.
fn integration(text: &str) -> Option<Resource> {
    Some(match text {
        "lambda:invoke" => Resource::Invoke {
            wait_for_token: false,
        },
        "lambda:invoke.waitForTaskToken" => Resource::Invoke {
            wait_for_token: true,
        },
        "states:startExecution" => Resource::StartExecution(StartMode::Start),
        "states:startExecution.sync" => Resource::StartExecution(StartMode::Sync),
        "states:startExecution.sync:2" => Resource::StartExecution(StartMode::Sync2),
        "states:startExecution.waitForTaskToken" => {
            Resource::StartExecution(StartMode::WaitForToken)
        }
        _ => Resource::Service(service(text)?),
    })
}

fn service(text: &str) -> Option<Service> {
    let (service, action) = match text.strip_prefix("aws-sdk:") {
        Some(rest) => {
            let at = "aws-sdk:".len() + rest.find(':')?;
            (text.get(..at)?, text.get(at + 1..)?)
        }
        None => text.split_once(':')?,
    };
    let (name, pattern) = match action.split_once('.') {
        None => (action, Pattern::RequestResponse),
        Some((name, "sync" | "sync:2")) => (name, Pattern::Sync),
        Some((name, "waitForTaskToken")) => (name, Pattern::WaitForToken),
        Some(_) => return None,
    };
    is_known(service, name, pattern).then(|| Service {
        service: service.to_owned(),
        action: action.to_owned(),
        pattern,
    })
}

fn is_known(service: &str, action: &str, pattern: Pattern) -> bool {
    let is_name = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(|c| c.is_ascii_alphanumeric())
    };
    if let Some(sdk) = service.strip_prefix("aws-sdk:") {
        return is_name(sdk) && is_name(action) && pattern != Pattern::Sync;
    }
    if service == "sqs" {
        return action == "sendMessage" && pattern != Pattern::Sync;
    }
    OPTIMIZED.iter().any(|(name, actions, waits)| {
        *name == service && actions.contains(&action) && (*waits || pattern != Pattern::Sync)
    })
}

#[cfg(test)]
mod tests {
    use super::Resource;

    #[test]
    fn what_there_is() {
        let known = [
            "arn:aws:states:::lambda:invoke",
            "arn:aws:states:::dynamodb:putItem",
            "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "arn:aws:states:::ecs:runTask.sync",
            "arn:aws:states:::aws-sdk:s3:listBuckets.waitForTaskToken",
            "arn:aws:lambda:your-region:your-account-id:function:any",
            "arn:aws:states:us-east-1:111111111111:activity:any",
        ];
        for arn in known {
            assert!(Resource::parse(arn).is_some(), "{arn}");
        }
        let unknown = [
            "",
            "arn:aws:states:::dynamodb:query",
            "arn:aws:states:::dynamodb:putItem.sync",
            "arn:aws:states:::aws-sdk:s3:listBuckets.sync",
            "arn:aws:states:::sqs:sendMessage.later",
            "arn:aws:lambda:us-east-1:111111111111:function:",
            "arn:aws:states:us-east-1:111111111111:stateMachine:any",
            "lambda:invoke",
        ];
        for arn in unknown {
            assert_eq!(Resource::parse(arn), None, "{arn}");
        }
    }
}
