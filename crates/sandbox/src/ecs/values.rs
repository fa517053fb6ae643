//! The words that a member may have, and what is said of another (API reference, *Valid Values*).

use crate::error::ApiError;
use crate::fields::Fields;

pub(super) const LAUNCH_TYPES: &[&str] = &["EC2", "FARGATE", "EXTERNAL", "MANAGED_INSTANCES"];

const OF_DEFINITION: &[(&str, &[&str])] = &[
    ("networkMode", &["bridge", "host", "awsvpc", "none"]),
    ("pidMode", &["host", "task"]),
    ("ipcMode", &["host", "task", "none"]),
];

const OF_PLATFORM: &[(&str, &[&str])] = &[
    ("cpuArchitecture", &["X86_64", "ARM64"]),
    (
        "operatingSystemFamily",
        &[
            "WINDOWS_SERVER_2019_FULL",
            "WINDOWS_SERVER_2019_CORE",
            "WINDOWS_SERVER_2016_FULL",
            "WINDOWS_SERVER_2004_CORE",
            "WINDOWS_SERVER_2022_CORE",
            "WINDOWS_SERVER_2022_FULL",
            "WINDOWS_SERVER_2025_CORE",
            "WINDOWS_SERVER_2025_FULL",
            "WINDOWS_SERVER_20H2_CORE",
            "LINUX",
        ],
    ),
];

const LOG_DRIVERS: &[&str] = &[
    "json-file",
    "syslog",
    "journald",
    "gelf",
    "fluentd",
    "awslogs",
    "splunk",
    "awsfirelens",
];

const CONDITIONS: &[&str] = &["START", "COMPLETE", "SUCCESS", "HEALTHY"];

const ULIMITS: &[&str] = &[
    "core",
    "cpu",
    "data",
    "fsize",
    "locks",
    "memlock",
    "msgqueue",
    "nice",
    "nofile",
    "nproc",
    "rss",
    "rtprio",
    "rttime",
    "sigpending",
    "stack",
];

/// Members of the items of a container's lists.
const OF_ITEMS: &[(&str, &str, &[&str])] = &[
    ("portMappings", "protocol", &["tcp", "udp"]),
    ("portMappings", "appProtocol", &["http", "http2", "grpc"]),
    ("dependsOn", "condition", CONDITIONS),
    ("ulimits", "name", ULIMITS),
    ("environmentFiles", "type", &["s3"]),
    (
        "resourceRequirements",
        "type",
        &["GPU", "InferenceAccelerator", "NeuronDevice"],
    ),
];

/// Checks one member where it is there; `path` is what is before its name.
pub(super) fn check_one(
    fields: Fields<'_>,
    path: &str,
    member: &str,
    known: &[&str],
) -> Result<(), ApiError> {
    match fields.text(member)? {
        Some(value) if !known.contains(&value) => Err(ApiError::invalid_parameter(format!(
            "1 validation error detected: Value '{value}' at '{path}{member}' failed to satisfy constraint: Member must \
             satisfy enum value set: [{}]",
            known.join(", ")
        ))),
        _ => Ok(()),
    }
}

/// Checks the words of a task definition.
pub(super) fn check_definition(request: Fields<'_>) -> Result<(), ApiError> {
    for (member, known) in OF_DEFINITION {
        check_one(request, "", member, known)?;
    }
    for kind in request.texts("requiresCompatibilities")? {
        if !LAUNCH_TYPES.contains(&kind) {
            return Err(ApiError::invalid_parameter(format!(
                "1 validation error detected: Value '[{kind}]' at 'requiresCompatibilities' failed to satisfy constraint: \
                 Member must satisfy constraint: [Member must satisfy enum value set: [{}]]",
                LAUNCH_TYPES.join(", ")
            )));
        }
    }
    if let Some(platform) = request.object("runtimePlatform")? {
        for (member, known) in OF_PLATFORM {
            check_one(Fields(platform), "runtimePlatform.", member, known)?;
        }
    }
    check_items(request, "", "placementConstraints", "type", &["memberOf"])?;
    let containers = request.objects("containerDefinitions")?;
    for (number, container) in containers.into_iter().map(Fields).enumerate() {
        let path = format!("containerDefinitions.{}.member.", number + 1);
        if let Some(logs) = container.object("logConfiguration")? {
            let path = format!("{path}logConfiguration.");
            check_one(Fields(logs), &path, "logDriver", LOG_DRIVERS)?;
        }
        for (list, member, known) in OF_ITEMS {
            check_items(container, &path, list, member, known)?;
        }
    }
    Ok(())
}

/// Checks a member of each item of a list.
pub(super) fn check_items(
    fields: Fields<'_>,
    path: &str,
    list: &str,
    member: &str,
    known: &[&str],
) -> Result<(), ApiError> {
    for (number, item) in fields.objects(list)?.into_iter().enumerate() {
        let path = format!("{path}{list}.{}.member.", number + 1);
        check_one(Fields(item), &path, member, known)?;
    }
    Ok(())
}
