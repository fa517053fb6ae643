//! Task definitions and their revisions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tag;
use crate::account::Account;
use crate::arn::Arn;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, epoch};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TaskDefinition {
    pub(crate) family: String,
    pub(crate) revision: u64,
    pub(crate) arn: String,
    pub(crate) status: TaskDefinitionStatus,
    /// The request as it came, with AWS's defaults, as JSON text: an account keeps many revisions and
    /// text takes a fifth of the memory of a tree.
    pub(crate) document: String,
    pub(crate) tags: Document,
    pub(crate) network_mode: String,
    /// Launch types that the definition can run on.
    pub(crate) compatibilities: Vec<String>,
    pub(crate) containers: Vec<ContainerSpec>,
    pub(crate) cpu: Option<String>,
    pub(crate) memory: Option<String>,
    pub(crate) registered_at: Timestamp,
    pub(crate) registered_by: String,
    pub(crate) deregistered_at: Option<Timestamp>,
}

/// What a task needs to know of a container definition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ContainerSpec {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) essential: bool,
    pub(crate) has_health_check: bool,
    /// Whether it runs another command than that of its image.
    #[serde(default)]
    pub(crate) has_command: bool,
    #[serde(default)]
    pub(crate) ports: Vec<Port>,
}

/// A port mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Port {
    pub(crate) container: i64,
    /// 0 when the instance is to choose one.
    pub(crate) host: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum TaskDefinitionStatus {
    Active,
    Inactive,
    DeleteInProgress,
}

impl TaskDefinition {
    pub(crate) fn is_awsvpc(&self) -> bool {
        self.network_mode == "awsvpc"
    }

    pub(crate) fn is_active(&self) -> bool {
        self.status == TaskDefinitionStatus::Active
    }

    /// Whether its tasks have a role of their own.
    pub(super) fn has_task_role(&self) -> bool {
        let document: Document = serde_json::from_str(&self.document).unwrap_or_default();
        let role = document.get("taskRoleArn").and_then(Value::as_str);
        role.is_some_and(|role| !role.is_empty())
    }

    /// As `DescribeTaskDefinition` shows it, without tags.
    pub(crate) fn view(&self) -> Value {
        let mut document: Document = serde_json::from_str(&self.document).unwrap_or_default();
        document.insert("taskDefinitionArn".into(), json!(self.arn));
        document.insert("revision".into(), json!(self.revision));
        document.insert("status".into(), json!(self.status));
        document.insert("compatibilities".into(), json!(self.compatibilities));
        document.insert("registeredAt".into(), epoch(self.registered_at));
        document.insert("registeredBy".into(), json!(self.registered_by));
        if let Some(at) = self.deregistered_at {
            document.insert("deregisteredAt".into(), epoch(at));
        }
        Value::Object(document)
    }
}

/// Key of `family:revision`.
pub(crate) fn key(region: &str, name: &str) -> Option<String> {
    let (family, revision) = name.rsplit_once(':')?;
    let revision: u64 = revision.parse().ok()?;
    Some(row_key(region, family, revision))
}

/// Key of a revision; the padding makes the order of keys the order of revisions.
pub(crate) fn row_key(region: &str, family: &str, revision: u64) -> String {
    format!("{region}/{family}:{revision:010}")
}

/// The highest revision of a family, of any status.
pub(crate) fn latest<'a>(
    account: &'a Account,
    region: &str,
    family: &str,
) -> Option<&'a TaskDefinition> {
    let prefix = format!("{region}/{family}:");
    let last = account.task_definitions.under(&prefix).next_back();
    last.map(|(_, row)| row)
}

/// Finds by `family` (its latest active revision), `family:revision` or ARN.
pub(crate) fn find<'a>(
    account: &'a Account,
    region: &str,
    name: &str,
) -> Option<&'a TaskDefinition> {
    let short = match Arn::parse(name) {
        Some(arn) if arn.region == region => arn.named("task-definition")?,
        Some(_) => return None,
        None => name,
    };
    if let Some(key) = key(region, short) {
        return account.task_definitions.get(&key);
    }
    let prefix = format!("{region}/{short}:");
    let mut revisions = account.task_definitions.under(&prefix).rev();
    revisions
        .find(|(_, row)| row.is_active())
        .map(|(_, row)| row)
}

/// The active task definition that a service or task is to run.
pub(crate) fn find_runnable<'a>(
    account: &'a Account,
    region: &str,
    name: &str,
) -> Result<&'a TaskDefinition, ApiError> {
    let found = find(account, region, name)
        .ok_or_else(|| ApiError::client_exception("TaskDefinition not found."))?;
    if !found.is_active() {
        return Err(ApiError::client_exception("TaskDefinition is inactive"));
    }
    Ok(found)
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = request.required_text("taskDefinition")?;
    let found = find(account, &caller.region, name)
        .ok_or_else(|| ApiError::client_exception("Unable to describe task definition."))?;
    let mut answer = json!({"taskDefinition": found.view(), "tags": []});
    if request.texts("include")?.contains(&"TAGS") {
        answer["tags"] = tag::view(&found.tags);
    }
    Ok(answer)
}

pub(super) fn deregister(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = request.required_text("taskDefinition")?;
    let short = Arn::parse(name).map_or(Some(name), |arn| arn.named("task-definition"));
    let key = short
        .and_then(|short| key(&caller.region, short))
        .ok_or_else(|| {
            ApiError::client_exception("Task definition must have a revision to be deregistered.")
        })?;
    let now = account.now;
    let row = account.task_definitions.get_mut(&key).ok_or_else(|| {
        ApiError::client_exception("The specified task definition does not exist.")
    })?;
    if row.is_active() {
        row.status = TaskDefinitionStatus::Inactive;
        row.deregistered_at = Some(now);
    }
    Ok(json!({"taskDefinition": row.view()}))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let names = request.texts("taskDefinitions")?;
    if names.is_empty() || names.len() > 10 {
        return Err(ApiError::invalid_parameter(
            "taskDefinitions must have between 1 and 10 items.",
        ));
    }
    let (mut deleted, mut failures) = (Vec::new(), Vec::new());
    for name in names {
        let short = Arn::parse(name).map_or(Some(name), |arn| arn.named("task-definition"));
        let key = short.and_then(|short| key(&caller.region, short));
        let row = key.and_then(|key| account.task_definitions.get_mut(&key));
        match row {
            None => failures.push(json!({"arn": name, "reason": "MISSING"})),
            Some(row) if row.is_active() => failures.push(json!({
                "arn": row.arn,
                "reason": "The specified task definition is still in ACTIVE status. \
                           Please deregister the target and try again.",
            })),
            Some(row) => {
                row.status = TaskDefinitionStatus::DeleteInProgress;
                deleted.push(row.view());
            }
        }
    }
    Ok(json!({"taskDefinitions": deleted, "failures": failures}))
}
