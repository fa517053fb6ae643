//! Amazon ECS: the operations on the wire and the service that lives in time behind them.

mod alarms;
pub(crate) mod capacity;
pub(crate) mod cluster;
pub(crate) mod container;
mod container_instance;
pub(crate) mod deployment;
pub(crate) mod event;
mod fargate;
pub(crate) mod launch;
mod launch_rules;
mod list;
mod load_balancing;
pub(crate) mod moves;
pub(crate) mod placement;
mod register;
mod role;
mod rules;
mod run_task;
pub(crate) mod scheduler;
pub(crate) mod service;
mod service_create;
mod service_update;
mod service_view;
pub(crate) mod tag;
pub(crate) mod task;
pub(crate) mod task_definition;
mod task_view;
mod values;

pub(crate) use alarms::alarm_changed;

use serde_json::Value;

use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

/// The service's name in `X-Amz-Target`.
pub(crate) const TARGET: &str = "AmazonEC2ContainerServiceV20141113";

/// Carries out one operation.
pub(crate) fn call(
    account: &mut Account,
    caller: &Caller,
    operation: &str,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    match operation {
        "CreateCluster" => cluster::create(account, caller, request),
        "DescribeClusters" => cluster::describe(account, caller, request),
        "ListClusters" => cluster::list(account, caller, request),
        "DeleteCluster" => cluster::delete(account, caller, request),
        "PutClusterCapacityProviders" => cluster::put_providers(account, caller, request),
        "CreateCapacityProvider" => capacity::create(account, caller, request),
        "DescribeCapacityProviders" => capacity::describe(account, caller, request),
        "DeleteCapacityProvider" => capacity::delete(account, caller, request),
        "ListContainerInstances" => container_instance::list(account, caller, request),
        "DescribeContainerInstances" => container_instance::describe(account, caller, request),
        "RegisterTaskDefinition" => register::register(account, caller, request),
        "DescribeTaskDefinition" => task_definition::describe(account, caller, request),
        "DeregisterTaskDefinition" => task_definition::deregister(account, caller, request),
        "DeleteTaskDefinitions" => task_definition::delete(account, caller, request),
        "ListTaskDefinitions" => list::task_definitions(account, caller, request),
        "ListTaskDefinitionFamilies" => list::families(account, caller, request),
        "CreateService" => service_create::create(account, caller, request),
        "UpdateService" => service_update::update(account, caller, request),
        "DeleteService" => service_update::delete(account, caller, request),
        "DescribeServices" => service_view::describe(account, caller, request),
        "ListServices" => list::services(account, caller, request),
        "RunTask" => run_task::run(account, caller, request),
        "StopTask" => run_task::stop(account, caller, request),
        "DescribeTasks" => task_view::describe(account, caller, request),
        "ListTasks" => list::tasks(account, caller, request),
        "TagResource" => tag::tag(account, caller, request),
        "UntagResource" => tag::untag(account, caller, request),
        "ListTagsForResource" => tag::list(account, caller, request),
        other => Err(unknown(other)),
    }
}

/// The answer to an operation that the sandbox does not have.
pub(crate) fn unknown(operation: &str) -> ApiError {
    ApiError::client(
        "UnknownOperationException",
        format!("The sandbox account does not implement the operation {operation}."),
    )
}
