//! List operations: services, tasks, task definitions, families.

use serde_json::{Value, json};

use super::cluster;
use super::launch::launch_type;
use super::service::find_key;
use super::task::Task;
use super::task_definition::{TaskDefinition, TaskDefinitionStatus};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::page::{Paging, cut};

const SERVICES: Paging = Paging {
    token: "nextToken",
    size: "maxResults",
    default: 10,
    most: 100,
};
const HUNDRED: Paging = Paging {
    token: "nextToken",
    size: "maxResults",
    default: 100,
    most: 100,
};

pub(super) fn services(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let cluster = cluster::find(account, caller, request)?;
    let prefix = format!("{}/{}/", cluster.region, cluster.name);
    let wanted = request.text("launchType")?;
    let strategy = request.text("schedulingStrategy")?;
    let all = account.services.under(&prefix).filter(|(_, row)| {
        !row.is_inactive()
            && wanted.is_none_or(|wanted| launch_type(&row.settings) == wanted)
            && strategy.is_none_or(|strategy| strategy == "REPLICA")
    });
    let page = cut(
        request,
        &SERVICES,
        false,
        all.map(|(_, row)| row.arn.as_str()),
    )?;
    Ok(json!({"serviceArns": page.items, "nextToken": page.next_token}))
}

pub(super) fn tasks(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let cluster = cluster::find(account, caller, request)?;
    let prefix = format!("{}/{}/", cluster.region, cluster.name);
    let service = match request.text("serviceName")? {
        None => None,
        Some(name) => {
            let key = find_key(caller, &cluster.name, name);
            if account.services.get(&key).is_none() {
                return Err(ApiError::client(
                    "ServiceNotFoundException",
                    "Service not found.",
                ));
            }
            Some(key)
        }
    };
    let family = request.text("family")?;
    let started_by = request.text("startedBy")?;
    let launch_type = request.text("launchType")?;
    let stopped = match request.text("desiredStatus")? {
        None | Some("RUNNING" | "PENDING") => false,
        Some("STOPPED") => true,
        Some(_) => {
            return Err(ApiError::invalid_parameter(
                "desiredStatus must be one of RUNNING, PENDING, STOPPED.",
            ));
        }
    };
    // ECS has tasks desire RUNNING or STOPPED only, so filtering by PENDING finds none.
    let none = request.text("desiredStatus")? == Some("PENDING");
    let wanted = |task: &Task| {
        let owner = task.owner.as_ref().map(|owner| &owner.service);
        !none
            && task.is_stopping() == stopped
            && service.as_ref().is_none_or(|key| owner == Some(key))
            && family.is_none_or(|family| task.family == family)
            && started_by.is_none_or(|by| task.started_by.as_deref() == Some(by))
            && launch_type.is_none_or(|wanted| task.launch_type == wanted)
    };
    let all = account.tasks.under(&prefix);
    let all = all.filter(|(_, task)| wanted(task));
    let page = cut(
        request,
        &HUNDRED,
        false,
        all.map(|(_, task)| task.arn.as_str()),
    )?;
    Ok(json!({"taskArns": page.items, "nextToken": page.next_token}))
}

pub(super) fn task_definitions(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let status = match request.text("status")? {
        None | Some("ACTIVE") => TaskDefinitionStatus::Active,
        Some("INACTIVE") => TaskDefinitionStatus::Inactive,
        Some("DELETE_IN_PROGRESS") => TaskDefinitionStatus::DeleteInProgress,
        Some(_) => {
            return Err(ApiError::invalid_parameter(
                "status must be one of ACTIVE, INACTIVE, DELETE_IN_PROGRESS.",
            ));
        }
    };
    let descending = request.text("sort")? == Some("DESC");
    let prefix = match request.text("familyPrefix")? {
        // Despite its name the parameter takes a whole family.
        Some(family) => format!("{}/{family}:", caller.region),
        None => format!("{}/", caller.region),
    };
    let rows: Vec<(&str, &TaskDefinition)> = account
        .task_definitions
        .under(&prefix)
        .filter(|(_, row)| row.status == status)
        .collect();
    let keys = rows.iter().map(|(key, _)| *key);
    let page = if descending {
        cut(request, &HUNDRED, true, keys.rev())?
    } else {
        cut(request, &HUNDRED, false, keys)?
    };
    let found = page.items.iter();
    let arns: Vec<&str> = found
        .filter_map(|key| account.task_definitions.get(key))
        .map(|row| row.arn.as_str())
        .collect();
    Ok(json!({"taskDefinitionArns": arns, "nextToken": page.next_token}))
}

pub(super) fn families(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let prefix = request.text("familyPrefix")?.unwrap_or_default();
    let status = request.text("status")?;
    let region = format!("{}/{prefix}", caller.region);
    let mut families: Vec<(&str, bool)> = Vec::new();
    for (_, row) in account.task_definitions.under(&region) {
        match families.last_mut().filter(|(last, _)| *last == row.family) {
            Some((_, active)) => *active |= row.is_active(),
            None => families.push((&row.family, row.is_active())),
        }
    }
    families.sort_unstable();
    let wanted = families.iter().filter(|(_, active)| match status {
        Some("ACTIVE") => *active,
        Some("INACTIVE") => !active,
        _ => true,
    });
    let page = cut(request, &HUNDRED, false, wanted.map(|(family, _)| *family))?;
    Ok(json!({"families": page.items, "nextToken": page.next_token}))
}
