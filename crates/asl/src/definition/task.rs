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
    const FIELDS: [&str; 4] = ["Seconds", "SecondsPath", "Timestamp", "TimestampPath"];
    let names = if fields.is_jsonata() {
        vec!["Seconds", "Timestamp"]
    } else {
        FIELDS.to_vec()
    };
    if names.iter().filter(|name| fields.has(name)).count() != 1 {
        return invalid(
            &fields.path,
            format!(
                "Exactly one of these fields is required: [{}]",
                names.join(", ")
            ),
        );
    }
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
