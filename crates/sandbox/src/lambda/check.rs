//! The limits of a function's configuration (Lambda quotas, developer guide; API reference).

use serde_json::Value;

use super::error::{denied, invalid, missing, validation};
use crate::account::Account;
use crate::arn::{Arn, last_part};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};
use crate::iam::trust;

/// Longest set of environment variables, bytes.
const MOST_ENVIRONMENT: usize = 4 * 1024;
/// Layers of a function at most.
const MOST_LAYERS: usize = 5;
/// Variables that Lambda sets itself.
const RESERVED: &[&str] = &[
    "_HANDLER",
    "_X_AMZN_TRACE_ID",
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "AWS_EXECUTION_ENV",
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
    "AWS_LAMBDA_FUNCTION_VERSION",
    "AWS_LAMBDA_LOG_GROUP_NAME",
    "AWS_LAMBDA_LOG_STREAM_NAME",
    "AWS_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_LAMBDA_RUNTIME_API",
    "LAMBDA_TASK_ROOT",
    "LAMBDA_RUNTIME_DIR",
];

/// Members of a request that are configuration.
pub(super) const CONFIGURATION: &[&str] = &[
    "Runtime",
    "Role",
    "Handler",
    "Description",
    "Timeout",
    "MemorySize",
    "VpcConfig",
    "DeadLetterConfig",
    "Environment",
    "KMSKeyArn",
    "TracingConfig",
    "Layers",
    "FileSystemConfigs",
    "ImageConfig",
    "EphemeralStorage",
    "SnapStart",
    "LoggingConfig",
    "CapacityProviderConfig",
    "DurableConfig",
    "RuntimeConfig",
    "AcceleratorConfig",
];

/// Checks configuration, of a new function or of a change.
pub(super) fn configuration(
    account: &Account,
    caller: &Caller,
    given: &Document,
) -> Result<(), ApiError> {
    let fields = Fields(given);
    within(fields, "Timeout", "timeout", 1, 900)?;
    within(fields, "MemorySize", "memorySize", 128, 10_240)?;
    if let Some(storage) = fields.object("EphemeralStorage")? {
        within(
            Fields(storage),
            "Size",
            "ephemeralStorage.size",
            512,
            10_240,
        )?;
    }
    for (name, member, most) in [
        ("Description", "description", 256),
        ("Handler", "handler", 128),
    ] {
        let text = fields.text(name)?.unwrap_or_default();
        if text.len() > most {
            return Err(validation(
                member,
                text,
                format!("Member must have length less than or equal to {most}"),
            ));
        }
    }
    if let Some(handler) = fields.text("Handler")?
        && (handler.is_empty() || handler.contains(char::is_whitespace))
    {
        return Err(validation(
            "handler",
            handler,
            "Member must satisfy regular expression pattern: [^\\s]+",
        ));
    }
    if let Some(runtime) = fields.text("Runtime")?
        && !is_runtime(runtime)
    {
        return Err(invalid(format!(
            "Value {runtime} at 'runtime' failed to satisfy constraint: Member must satisfy enum value set: [{}] or be a valid ARN",
            RUNTIMES.join(", ")
        )));
    }
    if let Some(runtime) = fields.text("Runtime")?
        && RETIRED.contains(&runtime)
    {
        return Err(invalid(format!(
            "The runtime parameter of {runtime} is no longer supported for creating or updating AWS Lambda functions. We recommend \
             you use a supported runtime while creating or updating functions."
        )));
    }
    if let Some(key) = fields.text("KMSKeyArn")?
        && !key.is_empty()
        && !key.starts_with("arn:")
    {
        return Err(validation(
            "kMSKeyArn",
            key,
            "Member must satisfy regular expression pattern: (arn:(aws[a-zA-Z-]*)?:[a-z0-9-.]+:.*)|()",
        ));
    }
    if fields.list("Layers")?.len() > MOST_LAYERS {
        return Err(invalid(
            "Layers consume more than the available size or are more than 5.",
        ));
    }
    environment(fields)?;
    match fields.text("Role")? {
        Some(role) => self::role(account, caller, role),
        None => Ok(()),
    }
}

/// The runtimes of the API (docs.aws.amazon.com, *CreateFunction*, `Runtime`), those that are retired among them: AWS knows
/// their names.
const RUNTIMES: &[&str] = &[
    "dotnet10",
    "dotnet6",
    "dotnet8",
    "dotnetcore1.0",
    "dotnetcore2.0",
    "dotnetcore2.1",
    "dotnetcore3.1",
    "go1.x",
    "java11",
    "java17",
    "java21",
    "java25",
    "java8",
    "java8.al2",
    "nodejs",
    "nodejs10.x",
    "nodejs12.x",
    "nodejs14.x",
    "nodejs16.x",
    "nodejs18.x",
    "nodejs20.x",
    "nodejs22.x",
    "nodejs24.x",
    "nodejs4.3",
    "nodejs4.3-edge",
    "nodejs6.10",
    "nodejs8.10",
    "provided",
    "provided.al2",
    "provided.al2023",
    "python2.7",
    "python3.10",
    "python3.11",
    "python3.12",
    "python3.13",
    "python3.14",
    "python3.6",
    "python3.7",
    "python3.8",
    "python3.9",
    "ruby2.5",
    "ruby2.7",
    "ruby3.2",
    "ruby3.3",
    "ruby3.4",
];

/// Those of [`RUNTIMES`] that AWS has shut for new functions and for updates (Lambda developer guide, runtime deprecation policy).
/// Later ones are deprecated too; AWS has moved the days on which it shuts them again and again, and takes them meanwhile.
const RETIRED: &[&str] = &[
    "dotnetcore1.0",
    "dotnetcore2.0",
    "dotnetcore2.1",
    "dotnetcore3.1",
    "nodejs",
    "nodejs10.x",
    "nodejs12.x",
    "nodejs4.3",
    "nodejs4.3-edge",
    "nodejs6.10",
    "nodejs8.10",
    "python2.7",
    "python3.6",
    "ruby2.5",
];

/// Whether AWS has a runtime of this name; a new one may have to be added here.
fn is_runtime(name: &str) -> bool {
    RUNTIMES.contains(&name)
}

fn within(
    fields: Fields<'_>,
    name: &str,
    member: &str,
    least: i64,
    most: i64,
) -> Result<(), ApiError> {
    match fields.integer(name)? {
        Some(value) if value < least => Err(validation(
            member,
            value,
            format!("Member must have value greater than or equal to {least}"),
        )),
        Some(value) if value > most => Err(validation(
            member,
            value,
            format!("Member must have value less than or equal to {most}"),
        )),
        _ => Ok(()),
    }
}

fn environment(fields: Fields<'_>) -> Result<(), ApiError> {
    let Some(environment) = fields.object("Environment")? else {
        return Ok(());
    };
    let Some(variables) = Fields(environment).object("Variables")? else {
        return Ok(());
    };
    let prefix = "Lambda was unable to configure your environment variables because the environment variables you \
                  have provided";
    let mut size = 0;
    for (name, value) in variables {
        let Value::String(text) = value else {
            return Err(ApiError::serialization(format!("{name}: not a string")));
        };
        if RESERVED.contains(&name.as_str()) {
            return Err(invalid(format!(
                "{prefix} contains reserved keys that are currently not supported for modification. Reserved keys used in this request: {name}"
            )));
        }
        let letters = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !letters || !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Err(validation(
                "environment.variables",
                name,
                "Map keys must satisfy constraint: [a-zA-Z]([a-zA-Z0-9_])+",
            ));
        }
        size += name.len() + text.len();
    }
    if size > MOST_ENVIRONMENT {
        return Err(invalid(format!("{prefix} exceeded the 4KB limit.")));
    }
    Ok(())
}

/// Whether Lambda may be given the role: PassRole, and the role's trust.
fn role(account: &Account, caller: &Caller, role: &str) -> Result<(), ApiError> {
    let arn = Arn::parse(role).filter(|arn| arn.service == "iam" && arn.named("role").is_some());
    if arn.is_none_or(|arn| arn.account.len() != 12) {
        return Err(validation(
            "role",
            role,
            "Member must satisfy regular expression pattern: arn:(aws[a-zA-Z-]*)?:iam::\\d{12}:role/?[a-zA-Z_0-9+=,.@\\-_/]+",
        ));
    }
    if last_part(role).ends_with("not-passable") {
        return Err(denied(format!(
            "User: {} is not authorized to perform: iam:PassRole on resource: {role} because no identity-based policy \
             allows the iam:PassRole action",
            caller.arn
        )));
    }
    trust::pass(account, caller, role, "lambda.amazonaws.com")
        .map_err(|error| denied(error.message))?;
    let ruled_out = account.roles.get(role).is_some_and(|rule| rule.denied);
    if ruled_out || !trust::serves(account, role, "lambda.amazonaws.com") {
        return Err(invalid(
            "The role defined for the function cannot be assumed by Lambda.",
        ));
    }
    Ok(())
}

/// What a new function must say.
pub(super) fn complete(given: &Document, image: bool) -> Result<(), ApiError> {
    let fields = Fields(given);
    if fields.text("Role")?.is_none() {
        return Err(missing("role"));
    }
    let described = fields.text("Runtime")?.is_some() && fields.text("Handler")?.is_some();
    if !image && !described {
        return Err(invalid(
            "Runtime and Handler are mandatory parameters for functions created with deployment packages.",
        ));
    }
    only_for_its_package(given, image)
}

/// What only packages, or only images, have.
pub(super) fn only_for_its_package(given: &Document, image: bool) -> Result<(), ApiError> {
    let given = |name: &&str| {
        given
            .get(*name)
            .is_some_and(|value| !value.is_null() && value != &serde_json::json!([]))
    };
    let wrong: &[&str] = if image {
        &["Runtime", "Handler", "Layers"]
    } else {
        &["ImageConfig"]
    };
    match wrong.iter().find(|name| given(name)) {
        Some(name) if image => Err(invalid(format!(
            "Please don't provide {name} when the package type is Image."
        ))),
        Some(name) => Err(invalid(format!(
            "Please don't provide {name} when the package type is Zip."
        ))),
        None => Ok(()),
    }
}
