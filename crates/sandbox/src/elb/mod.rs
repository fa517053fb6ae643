//! Elastic Load Balancing v2: load balancers, listeners, rules, target groups, and the health of targets
//! over time, in the Query protocol.
//!
//! Application and Network Load Balancers exist; nothing is ever forwarded, but what would be is written
//! down (see [`traffic`]). There are no subnets and VPCs behind them: any id will do, a load balancer's
//! zones follow the order of its subnets, and nothing checks that a target group is in the same VPC.
//!
//! Keys of rows are ARNs, which begin with the load balancer's: the rules of a listener and the listeners of
//! a load balancer lie together.

mod action;
mod attributes;
mod condition;
mod health_check;
mod listener;
mod load_balancer;
mod report;
mod request;
mod rule;
mod rule_order;
mod tables;
mod tag;
mod target;
mod target_group;
mod target_health;
mod traffic;
mod usage;

use serde_json::Value;

pub use report::{Requests, RuleTraffic, TrafficSpan};
pub use traffic::TrafficRoute;

pub(crate) use load_balancer::activate;
pub(crate) use tables::Tables;
pub(crate) use target::{
    TaskTarget, advance, deregister_instance, deregister_task, instance_is_healthy, is_healthy,
    register_instance, register_task,
};
pub(crate) use usage::load_balancer_of;

use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::query::Form;

/// The service's name in signatures. Classic load balancers have the same.
pub(crate) const SIGNING_NAME: &str = "elasticloadbalancing";
/// Version of the API that tells it from the one of classic load balancers.
pub(crate) const VERSION: &str = "2015-12-01";
/// Namespace of the answers.
pub(crate) const NAMESPACE: &str = "http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/";

/// Carries out one operation and gives the members of its `…Result` element.
pub(crate) fn call(account: &mut Account, caller: &Caller, form: &Form) -> Result<Value, ApiError> {
    let document = form.document();
    let request = Fields(&document);
    let operation = form.get("Action").unwrap_or_default();
    let carry_out = match operation {
        "CreateLoadBalancer" => load_balancer::create,
        "DescribeLoadBalancers" => load_balancer::describe,
        "DeleteLoadBalancer" => load_balancer::delete,
        "DescribeLoadBalancerAttributes" => attributes::describe_of_load_balancer,
        "ModifyLoadBalancerAttributes" => attributes::modify_of_load_balancer,
        "CreateTargetGroup" => target_group::create,
        "DescribeTargetGroups" => target_group::describe,
        "ModifyTargetGroup" => target_group::modify,
        "DeleteTargetGroup" => target_group::delete,
        "DescribeTargetGroupAttributes" => attributes::describe_of_target_group,
        "ModifyTargetGroupAttributes" => attributes::modify_of_target_group,
        "RegisterTargets" => target::register,
        "DeregisterTargets" => target::deregister,
        "DescribeTargetHealth" => target_health::describe,
        "CreateListener" => listener::create,
        "DescribeListeners" => listener::describe,
        "ModifyListener" => listener::modify,
        "DeleteListener" => listener::delete,
        "DescribeListenerAttributes" => attributes::describe_of_listener,
        "ModifyListenerAttributes" => attributes::modify_of_listener,
        "CreateRule" => rule::create,
        "DescribeRules" => rule::describe,
        "ModifyRule" => rule::modify,
        "DeleteRule" => rule::delete,
        "SetRulePriorities" => rule_order::set_priorities,
        "AddTags" => tag::add,
        "RemoveTags" => tag::remove,
        "DescribeTags" => tag::describe,
        other => {
            return Err(ApiError::client(
                "InvalidAction",
                format!("Could not find operation {other} for version {VERSION}"),
            ));
        }
    };
    carry_out(account, caller, request)
}
