//! Reads what a `Task` and a `Wait` have.

use serde_json::Value;

use super::fields::{Fields, NO_TIMESTAMP, Result, invalid};
use super::read::LONGEST;
use super::resource::Resource;
use super::{MachineType, Task, WaitFor};
use crate::template::Template;
use crate::time::extended_offset;

pub(super) fn task(fields: &Fields<'_>, kind: MachineType) -> Result<Task> {
    let arn = fields.required_text("Resource")?;
    if !arn.starts_with("arn:") {
        return invalid(&fields.at("Resource"), "Value is not a valid resource ARN");
    }
    let Some(resource) = Resource::parse(arn) else {
        return invalid(
            &fields.at("Resource"),
            format!(
                "The resource provided {arn} is not recognized. The value is not a valid resource ARN, \
                 or the resource is not available in this region."
            ),
        );
    };
    if kind == MachineType::Express {
        refuse_long_tasks(fields, &resource)?;
    }
    fields.one_of_pair("TimeoutSeconds")?;
    fields.one_of_pair("HeartbeatSeconds")?;
    let whole = |name| fields.get(name).and_then(Value::as_u64);
    if let (Some(timeout), Some(heartbeat)) = (whole("TimeoutSeconds"), whole("HeartbeatSeconds"))
        && heartbeat >= timeout
    {
        return invalid(
            &fields.at("HeartbeatSeconds"),
            "HeartbeatSeconds must be smaller than TimeoutSeconds",
        );
    }
    Ok(Task {
        resource,
        arguments: fields.template(fields.arguments())?,
        timeout: fields.whole_or_query("TimeoutSeconds", 1..=LONGEST)?,
        heartbeat: fields.whole_or_query("HeartbeatSeconds", 1..=LONGEST)?,
        credentials: fields.template("Credentials")?,
    })
}

/// What an action cannot do without, by its name in ARNs.
const NEEDED: [(&str, &[&str]); 9] = [
    ("lambda:invoke", &["FunctionName"]),
    ("sqs:sendMessage", &["QueueUrl", "MessageBody"]),
    ("sns:publish", &["Message"]),
    ("dynamodb:putItem", &["TableName", "Item"]),
    ("dynamodb:getItem", &["TableName", "Key"]),
    ("states:startExecution", &["StateMachineArn"]),
    ("events:putEvents", &["Entries"]),
    ("ecs:runTask", &["TaskDefinition"]),
    ("glue:startJobRun", &["JobName"]),
];

/// Refuses credentials without a role, and an integration without an argument that its action needs.
pub(super) fn needs(fields: &Fields<'_>, resource: &Resource) -> Result<()> {
    credentials(fields, resource)?;
    let Some((service, action)) = resource.names() else {
        return Ok(());
    };
    let name = fields.arguments();
    let action = action.split('.').next().unwrap_or(action);
    let action = format!("{service}:{action}");
    let Some((_, needed)) = NEEDED.iter().find(|(known, _)| *known == action) else {
        return Ok(());
    };
    let Some(given) = fields.get(name) else {
        let arn = fields.required_text("Resource")?;
        return invalid(
            &fields.path,
            format!("{name} field is required for resource ARN: {arn}"),
        );
    };
    let Some(given) = given.as_object() else {
        return Ok(());
    };
    let has = |key: &str| given.contains_key(key) || given.contains_key(&format!("{key}.$"));
    match needed.iter().find(|key| !has(key)) {
        None => Ok(()),
        Some(key) => missing(&fields.at(name), key),
    }
}

fn missing(path: &str, name: &str) -> Result<()> {
    invalid(
        path,
        format!("The field '{name}' is required but was missing"),
    )
}

/// `Credentials` name a role, and none for an activity.
fn credentials(fields: &Fields<'_>, resource: &Resource) -> Result<()> {
    let path = fields.at("Credentials");
    match fields.get("Credentials") {
        Some(_) if matches!(resource, Resource::Activity(_)) => invalid(
            &path,
            "The field 'Credentials' is not supported for activities",
        ),
        Some(Value::Object(given))
            if !given.contains_key("RoleArn") && !given.contains_key("RoleArn.$") =>
        {
            missing(&path, "RoleArn")
        }
        _ => Ok(()),
    }
}

/// An express machine has no tasks that somebody ends later (Developer Guide, "Choosing workflow type").
fn refuse_long_tasks(fields: &Fields<'_>, resource: &Resource) -> Result<()> {
    let what = if matches!(resource, Resource::Activity(_)) {
        "Activity ARN"
    } else if resource.is_sync() {
        "'.sync' service integration"
    } else if resource.waits_for_token() {
        "'.waitForTaskToken' service integration"
    } else {
        return Ok(());
    };
    invalid(
        &fields.at("Resource"),
        format!("Express state machine does not support {what}"),
    )
}

pub(super) fn wait(fields: &Fields<'_>) -> Result<WaitFor> {
    const FIELDS: [&str; 4] = ["SecondsPath", "Seconds", "TimestampPath", "Timestamp"];
    let names = if fields.is_jsonata() {
        vec!["Seconds", "Timestamp"]
    } else {
        FIELDS.to_vec()
    };
    fields.only_one(&names, true)?;
    if let Some(seconds) = fields.whole_or_query("Seconds", 0..=LONGEST)? {
        return Ok(WaitFor::Seconds(seconds));
    }
    match fields.text_or_query("Timestamp")? {
        Some(Template::Literal(Value::String(text))) if extended_offset(&text).is_none() => {
            invalid(&fields.at("Timestamp"), NO_TIMESTAMP)
        }
        Some(timestamp) => Ok(WaitFor::Timestamp(timestamp)),
        None => invalid(&fields.path, "A Wait needs a time"),
    }
}
