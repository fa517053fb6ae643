//! Amazon EC2 Auto Scaling: groups that keep their number of instances, replace unhealthy ones, register them with
//! target groups, and refresh them batch by batch, in the Query protocol.
//!
//! A group is looked at when something happened to it or is due for one of its instances ([`scheduler`]): instances
//! go Pending → InService → Terminating → gone, and lifecycle hooks hold them on the way ([`wait`]). What is not AWS's: nothing scales by itself, neither by policies nor
//! by scheduled actions, which are kept and shown; grace periods and warm-ups are no longer than the pace's
//! `drain_max`; there are no warm pools and mixed instances (the policy's launch template counts);
//! of suspended processes those that scale have nothing to suspend, and instance refreshes replace protected instances too.

mod activity;
mod attachment;
mod capacity;
mod cron;
mod group;
mod hook;
mod member;
mod metrics;
mod policy;
mod process;
mod refresh;
mod refresh_ops;
mod request;
mod schedule;
mod scheduler;
mod settings;
mod tables;
mod tag;
mod view;
mod wait;

use serde_json::Value;

pub(crate) use capacity::ended_behind_it;
pub(crate) use group::name_of;
pub(crate) use scheduler::{advance, notice};
pub(crate) use tables::Tables;

use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::query::Form;

/// The service's name in signatures.
pub(crate) const SIGNING_NAME: &str = "autoscaling";
/// Version of the API.
pub(crate) const VERSION: &str = "2011-01-01";
/// Namespace of the answers.
pub(crate) const NAMESPACE: &str = "http://autoscaling.amazonaws.com/doc/2011-01-01/";

/// Carries out one operation and gives the members of its `…Result` element.
pub(crate) fn call(account: &mut Account, caller: &Caller, form: &Form) -> Result<Value, ApiError> {
    let document = form.document();
    let request = Fields(&document);
    let operation = form.get("Action").unwrap_or_default();
    let carry_out = match operation {
        "CreateAutoScalingGroup" => settings::create,
        "UpdateAutoScalingGroup" => settings::update,
        "DescribeAutoScalingGroups" => view::describe,
        "DescribeAutoScalingInstances" => view::instances,
        "DeleteAutoScalingGroup" => group::delete,
        "SetDesiredCapacity" => capacity::set,
        "TerminateInstanceInAutoScalingGroup" => capacity::terminate,
        "SetInstanceProtection" => process::protect,
        "SuspendProcesses" => process::suspend,
        "ResumeProcesses" => process::resume,
        "SetInstanceHealth" => capacity::set_health,
        "AttachLoadBalancerTargetGroups" => attachment::attach,
        "DetachLoadBalancerTargetGroups" => attachment::detach,
        "DescribeLoadBalancerTargetGroups" => attachment::describe,
        "AttachTrafficSources" => attachment::attach_sources,
        "DetachTrafficSources" => attachment::detach_sources,
        "DescribeTrafficSources" => attachment::describe_sources,
        "PutScalingPolicy" => policy::put,
        "DescribePolicies" => policy::describe,
        "DeletePolicy" => policy::delete,
        "PutScheduledUpdateGroupAction" => schedule::put,
        "DescribeScheduledActions" => schedule::describe,
        "DeleteScheduledAction" => schedule::delete,
        "CreateOrUpdateTags" => tag::create,
        "DescribeTags" => tag::describe,
        "DeleteTags" => tag::delete,
        "EnableMetricsCollection" => metrics::enable,
        "DisableMetricsCollection" => metrics::disable,
        "StartInstanceRefresh" => refresh_ops::start,
        "DescribeInstanceRefreshes" => refresh_ops::describe,
        "CancelInstanceRefresh" => refresh_ops::cancel,
        "RollbackInstanceRefresh" => refresh_ops::roll_back,
        "PutLifecycleHook" => hook::put,
        "DescribeLifecycleHooks" => hook::describe,
        "DescribeLifecycleHookTypes" => hook::types,
        "DeleteLifecycleHook" => hook::delete,
        "CompleteLifecycleAction" => wait::complete,
        "RecordLifecycleActionHeartbeat" => wait::heartbeat,
        "DescribeScalingActivities" => activity::describe,
        other => {
            return Err(ApiError::client(
                "InvalidAction",
                format!("Could not find operation {other} for version {VERSION}"),
            ));
        }
    };
    carry_out(account, caller, request)
}
