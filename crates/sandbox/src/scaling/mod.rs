//! Application Auto Scaling: scalable targets, scaling policies and scheduled actions. They are kept and checked as AWS does;
//! nothing scales by itself, because the account has no metrics.

mod action;
mod policy;
mod target;

use serde_json::Value;

pub(crate) use action::ScheduledAction;
pub(crate) use policy::Policy;
pub(crate) use target::ScalableTarget;

use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::page::Paging;

/// The service's name in `X-Amz-Target`.
pub(crate) const TARGET: &str = "AnyScaleFrontendService";

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
        Ok(Self {
            namespace: required(request, "ServiceNamespace")?,
            resource: required(request, "ResourceId")?,
            dimension: required(request, "ScalableDimension")?,
        })
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
