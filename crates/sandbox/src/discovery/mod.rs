//! AWS Cloud Map as far as services of ECS need it: namespaces, services, their instances, and who asks for them, in the
//! JSON 1.1 protocol.
//!
//! Tasks of ECS services with `serviceRegistries` are instances from their start to the moment when they are told to
//! stop; they are not stored here but read from the tasks ([`registry`]). What is not AWS's: nothing is put into a zone
//! of Route 53, operations are done when they are answered, and there are no Route 53 health checks.

mod instance;
mod namespace;
mod registry;
mod service;
mod tables;

use serde_json::{Value, json};

pub(crate) use registry::{Registration, check, registrations};
pub(crate) use tables::Tables;

use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::page::Paging;
use tables::Operation;

/// The service's name in signatures, calls and faults.
pub(crate) const SIGNING_NAME: &str = "servicediscovery";
/// The service's name in `X-Amz-Target`.
pub(crate) const TARGET: &str = "Route53AutoNaming_v20170314";

const PAGING: Paging = Paging {
    token: "NextToken",
    size: "MaxResults",
    default: 100,
    most: 100,
};

/// Carries out one operation.
pub(crate) fn call(
    account: &mut Account,
    caller: &Caller,
    operation: &str,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let answer = match operation {
        "CreateHttpNamespace" => namespace::create(account, caller, request, namespace::Kind::Http),
        "CreatePrivateDnsNamespace" => {
            namespace::create(account, caller, request, namespace::Kind::DnsPrivate)
        }
        "CreatePublicDnsNamespace" => {
            namespace::create(account, caller, request, namespace::Kind::DnsPublic)
        }
        "GetNamespace" => namespace::get(account, caller, request),
        "ListNamespaces" => namespace::list(account, caller, request),
        "DeleteNamespace" => namespace::delete(account, caller, request),
        "CreateService" => service::create(account, caller, request),
        "GetService" => service::get(account, caller, request),
        "ListServices" => service::list(account, caller, request),
        "DeleteService" => service::delete(account, caller, request),
        "RegisterInstance" => instance::register(account, caller, request),
        "DeregisterInstance" => instance::deregister(account, caller, request),
        "GetInstance" => instance::get(account, caller, request),
        "ListInstances" => instance::list(account, caller, request),
        "DiscoverInstances" => instance::discover(account, caller, request),
        "GetOperation" => get_operation(account, caller, request),
        other => Err(crate::ecs::unknown(other)),
    };
    // Fields and paging are shared with ECS, whose name for a wrong parameter is another.
    answer.map_err(|error| match error.code {
        "InvalidParameterException" => invalid(error.message),
        _ => error,
    })
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::client("InvalidInput", message)
}

/// Notes an operation that is done already, and answers with its id.
fn done(
    account: &mut Account,
    caller: &Caller,
    kind: &'static str,
    (target, id): (&'static str, &str),
) -> Value {
    let operation = Operation {
        id: account.draw_hex(32),
        kind: kind.to_owned(),
        target: target.to_owned(),
        target_id: id.to_owned(),
        at: account.now,
    };
    let answer = json!({"OperationId": operation.id});
    let key = format!("{}/{}", caller.region, operation.id);
    account.discovery.operations.put(key, operation);
    answer
}

fn get_operation(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let id = request.required_text("OperationId")?;
    let found = account
        .discovery
        .operations
        .get(&format!("{}/{id}", caller.region));
    let found = found.ok_or_else(|| {
        ApiError::client("OperationNotFound", format!("Operation {id} not found."))
    })?;
    Ok(json!({"Operation": found.view()}))
}

/// The value of the filter `name`, which must be one of equality.
fn filter<'a>(request: Fields<'a>, name: &str) -> Result<Option<&'a str>, ApiError> {
    for filter in request.objects("Filters")? {
        let filter = Fields(filter);
        if filter.required_text("Name")? == name {
            return Ok(filter.texts("Values")?.into_iter().next());
        }
    }
    Ok(None)
}
