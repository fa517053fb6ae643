//! Container instances as the wire shows them.

use serde_json::{Value, json};

use super::cluster;
use super::placement::{arn, of_cluster, on};
use super::task::Status;
use crate::account::Account;
use crate::arn::last_part;
use crate::caller::Caller;
use crate::ec2::instance::Instance;
use crate::error::ApiError;
use crate::fields::{Fields, epoch};
use crate::page::{Paging, cut};

const PAGING: Paging = Paging {
    token: "nextToken",
    size: "maxResults",
    default: 100,
    most: 100,
};

pub(super) fn list(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let cluster = cluster::find(account, caller, request)?;
    let active = request
        .text("status")?
        .is_none_or(|status| status == "ACTIVE");
    let own = of_cluster(account, &cluster.region, &cluster.name).into_iter();
    let arns = own.map(|row| arn(account, &row.region, &cluster.name, &row.id));
    let mut arns: Vec<String> = arns.filter(|_| active).collect();
    arns.sort();
    let page = cut(request, &PAGING, false, arns.iter().map(String::as_str))?;
    Ok(json!({"containerInstanceArns": page.items, "nextToken": page.next_token}))
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let cluster = cluster::find(account, caller, request)?;
    let names = request.texts("containerInstances")?;
    if names.is_empty() {
        return Err(ApiError::invalid_parameter(
            "Container instances cannot be empty.",
        ));
    }
    let own = of_cluster(account, &cluster.region, &cluster.name);
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for name in names {
        let known = own.iter().find(|row| {
            let arn = arn(account, &row.region, &cluster.name, &row.id);
            last_part(&arn) == last_part(name)
        });
        match known {
            Some(row) => found.push(view(account, &cluster.name, row)),
            None => failures.push(json!({"arn": name, "reason": "MISSING"})),
        }
    }
    Ok(json!({"containerInstances": found, "failures": failures}))
}

fn view(account: &Account, cluster: &str, row: &Instance) -> Value {
    let tasks = on(account, &format!("{}/{cluster}/", row.region), &row.id);
    let running = tasks.iter().filter(|task| task.status == Status::Running);
    let pending = tasks.iter().filter(|task| task.status < Status::Running);
    json!({
        "containerInstanceArn": arn(account, &row.region, cluster, &row.id),
        "ec2InstanceId": row.id,
        "status": "ACTIVE",
        "agentConnected": true,
        "runningTasksCount": running.count(),
        "pendingTasksCount": pending.count(),
        "registeredAt": epoch(row.launched),
        "attributes": [
            {"name": "ecs.availability-zone", "value": row.zone},
            {"name": "ecs.instance-type", "value": row.kind},
            {"name": "ecs.ami-id", "value": row.image},
        ],
        "registeredResources": [],
        "remainingResources": [],
        "attachments": [],
        "tags": [],
    })
}
