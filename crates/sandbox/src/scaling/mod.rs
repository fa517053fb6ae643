//! Application Auto Scaling: scalable targets, scaling policies and scheduled actions. They are kept and checked as AWS does;
//! nothing scales by itself, because the account has no metrics.

mod action;
mod policy;
mod target;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) use action::ScheduledAction;
pub(crate) use policy::Policy;
pub(crate) use target::ScalableTarget;

use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};
use crate::page::{Paging, cut};
use crate::table::Table;

/// The service's name in `X-Amz-Target`.
pub(crate) const TARGET: &str = "AnyScaleFrontendService";

/// Services that scale (Application Auto Scaling API reference, `ServiceNamespace`).
const NAMESPACES: [&str; 15] = [
    "ecs",
    "elasticmapreduce",
    "ec2",
    "appstream",
    "dynamodb",
    "rds",
    "sagemaker",
    "custom-resource",
    "comprehend",
    "lambda",
    "cassandra",
    "kafka",
    "elasticache",
    "neptune",
    "workspaces",
];

const PAGING: Paging = Paging {
    token: "NextToken",
    size: "MaxResults",
    default: 50,
    most: 50,
};

/// Carries out one operation.
pub(crate) fn call(
    account: &mut Account,
    caller: &Caller,
    operation: &str,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let answer = match operation {
        "RegisterScalableTarget" => target::register(account, caller, request),
        "DescribeScalableTargets" => target::describe(account, caller, request),
        "DeregisterScalableTarget" => target::deregister(account, caller, request),
        "PutScalingPolicy" => policy::put(account, caller, request),
        "DescribeScalingPolicies" => policy::describe(account, caller, request),
        "DeleteScalingPolicy" => policy::delete(account, caller, request),
        "PutScheduledAction" => action::put(account, caller, request),
        "DescribeScheduledActions" => action::describe(account, caller, request),
        "DeleteScheduledAction" => action::delete(account, caller, request),
        other => Err(crate::ecs::unknown(other)),
    };
    // Paging is shared with ECS, whose name for a wrong parameter is another.
    answer.map_err(|error| match error.code {
        "InvalidParameterException" => validation(error.message),
        _ => error,
    })
}

/// What every object here belongs to.
#[derive(Clone, Copy)]
struct Scope<'a> {
    namespace: &'a str,
    resource: &'a str,
    dimension: &'a str,
}

impl<'a> Scope<'a> {
    fn read(request: Fields<'a>) -> Result<Self, ApiError> {
        let scope = Self {
            namespace: required(request, "ServiceNamespace")?,
            resource: required(request, "ResourceId")?,
            dimension: required(request, "ScalableDimension")?,
        };
        if !NAMESPACES.contains(&scope.namespace) {
            return Err(validation(format!(
                "1 validation error detected: Value '{}' at 'serviceNamespace' failed to satisfy constraint: Member must \
                 satisfy enum value set: [{}]",
                scope.namespace,
                NAMESPACES.join(", ")
            )));
        }
        // Every dimension begins with its namespace.
        if !scope
            .dimension
            .starts_with(&format!("{}:", scope.namespace))
        {
            return Err(validation(
                "Unsupported service namespace, resource type or scalable dimension",
            ));
        }
        Ok(scope)
    }

    fn key(&self, caller: &Caller) -> String {
        let Self {
            namespace,
            resource,
            dimension,
        } = self;
        format!("{}/{namespace}|{resource}|{dimension}", caller.region)
    }

    fn target_not_found(&self) -> ApiError {
        ApiError::client(
            "ObjectNotFoundException",
            format!(
                "No scalable target found for service namespace: {}, resource ID: {}, scalable dimension: {}",
                self.namespace, self.resource, self.dimension
            ),
        )
    }
}

/// What belongs to a target and has a name: its request, whole.
trait OfTarget {
    fn document(&self) -> &Document;

    fn text(&self, name: &str) -> &str {
        let value = self.document().get(name).and_then(Value::as_str);
        value.unwrap_or_default()
    }

    fn view(&self) -> Value;
}

/// A page of the rows of the namespace that a request names, as the list `answer`.
fn listed<R>(
    caller: &Caller,
    request: Fields<'_>,
    table: &Table<R>,
    answer: &str,
    fits: impl Fn(&R) -> bool,
    view: impl Fn(&R) -> Value,
) -> Result<Value, ApiError>
where
    R: Clone + Serialize + DeserializeOwned,
{
    let namespace = required(request, "ServiceNamespace")?;
    let prefix = format!("{}/{namespace}|", caller.region);
    let all = table.under(&prefix).filter(|(_, row)| fits(row));
    let page = cut(request, &PAGING, false, all.map(|(key, _)| key))?;
    let rows = page.items.iter().filter_map(|key| table.get(key));
    let views: Vec<Value> = rows.map(view).collect();
    Ok(json!({answer: views, "NextToken": page.next_token}))
}

/// What belongs to targets: `name` is the member that names one, and `<name>s` of a request names several.
fn listed_of_targets<R>(
    caller: &Caller,
    request: Fields<'_>,
    table: &Table<R>,
    (name, answer): (&str, &str),
) -> Result<Value, ApiError>
where
    R: OfTarget + Clone + Serialize + DeserializeOwned,
{
    let resource = request.text("ResourceId")?;
    let dimension = request.text("ScalableDimension")?;
    let names = request.texts(&format!("{name}s"))?;
    let fits = |row: &R| {
        resource.is_none_or(|id| row.text("ResourceId") == id)
            && dimension.is_none_or(|id| row.text("ScalableDimension") == id)
            && (names.is_empty() || names.contains(&row.text(name)))
    };
    listed(caller, request, table, answer, fits, R::view)
}

/// Takes away what the member `name` of a request names; `what` it is called in the error.
fn remove<R>(
    caller: &Caller,
    request: Fields<'_>,
    table: &mut Table<R>,
    (name, what): (&str, &str),
) -> Result<Value, ApiError>
where
    R: Clone + Serialize + DeserializeOwned,
{
    let name = required(request, name)?;
    let scope = Scope::read(request)?;
    let key = format!("{}|{name}", scope.key(caller));
    if table.take(&key).is_none() {
        return Err(ApiError::client(
            "ObjectNotFoundException",
            format!(
                "No {what} found for service namespace: {}, resource ID: {}, scalable dimension: {}: {name}",
                scope.namespace, scope.resource, scope.dimension
            ),
        ));
    }
    Ok(json!({}))
}

fn required<'a>(request: Fields<'a>, name: &str) -> Result<&'a str, ApiError> {
    request
        .text(name)?
        .filter(|text| !text.is_empty())
        .ok_or_else(|| {
            let member = name[..1].to_ascii_lowercase() + &name[1..];
            validation(format!(
                "1 validation error detected: Value null at '{member}' failed to satisfy constraint: \
                 Member must not be null"
            ))
        })
}

fn validation(message: impl Into<String>) -> ApiError {
    ApiError::client("ValidationException", message)
}
