//! Attributes of load balancers, target groups and listeners: texts by key, with AWS's defaults.
//!
//! Of all of them only `deletion_protection.enabled` and `deregistration_delay.timeout_seconds` do anything
//! here.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::load_balancer::{self, Kind};
use super::request::{missing, required, validation};
use super::target_group::Layer;
use super::{listener, target_group};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

/// Longest deregistration delay, seconds (ELBv2 API reference, `TargetGroupAttribute`).
const LONGEST_DELAY: u64 = 3_600;
/// The attribute that says how long a target drains.
pub(super) const DELAY: &str = "deregistration_delay.timeout_seconds";

type Attributes = BTreeMap<String, String>;

const OF_LOAD_BALANCERS: &[(&str, &str)] = &[
    ("access_logs.s3.bucket", ""),
    ("access_logs.s3.enabled", "false"),
    ("access_logs.s3.prefix", ""),
    ("deletion_protection.enabled", "false"),
    ("zonal_shift.config.enabled", "false"),
];
const OF_APPLICATION_BALANCERS: &[(&str, &str)] = &[
    ("client_keep_alive.seconds", "3600"),
    ("connection_logs.s3.bucket", ""),
    ("connection_logs.s3.enabled", "false"),
    ("connection_logs.s3.prefix", ""),
    ("idle_timeout.timeout_seconds", "60"),
    ("load_balancing.cross_zone.enabled", "true"),
    ("routing.http.desync_mitigation_mode", "defensive"),
    ("routing.http.drop_invalid_header_fields.enabled", "false"),
    ("routing.http.preserve_host_header.enabled", "false"),
    (
        "routing.http.x_amzn_tls_version_and_cipher_suite.enabled",
        "false",
    ),
    ("routing.http.xff_client_port.enabled", "false"),
    ("routing.http.xff_header_processing.mode", "append"),
    ("routing.http2.enabled", "true"),
    ("waf.fail_open.enabled", "false"),
];
const OF_NETWORK_BALANCERS: &[(&str, &str)] = &[
    ("dns_record.client_routing_policy", "any_availability_zone"),
    ("ipv6.deny_all_igw_traffic", "false"),
    ("load_balancing.cross_zone.enabled", "false"),
];
const OF_GROUPS: &[(&str, &str)] = &[
    (DELAY, "300"),
    ("stickiness.enabled", "false"),
    (
        "load_balancing.cross_zone.enabled",
        "use_load_balancer_configuration",
    ),
    (
        "target_group_health.dns_failover.minimum_healthy_targets.count",
        "1",
    ),
    (
        "target_group_health.dns_failover.minimum_healthy_targets.percentage",
        "off",
    ),
    (
        "target_group_health.unhealthy_state_routing.minimum_healthy_targets.count",
        "1",
    ),
    (
        "target_group_health.unhealthy_state_routing.minimum_healthy_targets.percentage",
        "off",
    ),
];
const OF_APPLICATION_GROUPS: &[(&str, &str)] = &[
    ("load_balancing.algorithm.anomaly_mitigation", "off"),
    ("load_balancing.algorithm.type", "round_robin"),
    ("slow_start.duration_seconds", "0"),
    ("stickiness.app_cookie.cookie_name", ""),
    ("stickiness.app_cookie.duration_seconds", "86400"),
    ("stickiness.lb_cookie.duration_seconds", "86400"),
    ("stickiness.type", "lb_cookie"),
];
const OF_NETWORK_GROUPS: &[(&str, &str)] = &[
    (
        "deregistration_delay.connection_termination.enabled",
        "false",
    ),
    ("preserve_client_ip.enabled", "false"),
    ("proxy_protocol_v2.enabled", "false"),
    ("stickiness.type", "source_ip"),
    (
        "target_health_state.unhealthy.connection_termination.enabled",
        "true",
    ),
    (
        "target_health_state.unhealthy.draining_interval_seconds",
        "0",
    ),
];
const OF_FUNCTION_GROUPS: &[(&str, &str)] = &[("lambda.multi_value_headers.enabled", "false")];

fn defaults(lists: &[&[(&str, &str)]]) -> Attributes {
    let all = lists.iter().copied().flatten();
    all.map(|&(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

pub(super) fn of_load_balancer(kind: Kind) -> Attributes {
    defaults(&match kind {
        Kind::Application => [OF_LOAD_BALANCERS, OF_APPLICATION_BALANCERS],
        Kind::Network => [OF_LOAD_BALANCERS, OF_NETWORK_BALANCERS],
    })
}

pub(super) fn of_target_group(layer: Layer) -> Attributes {
    defaults(match layer {
        Layer::Application => &[OF_GROUPS, OF_APPLICATION_GROUPS],
        Layer::Network => &[OF_GROUPS, OF_NETWORK_GROUPS],
        Layer::Function => &[OF_FUNCTION_GROUPS],
    })
}

pub(super) fn of_listener(kind: Kind) -> Attributes {
    defaults(match kind {
        Kind::Application => &[&[("routing.http.response.server.enabled", "true")]],
        Kind::Network => &[&[("tcp.idle_timeout.seconds", "350")]],
    })
}

pub(super) fn describe_of_load_balancer(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    Ok(view(load_balancer_attributes(account, request)?))
}

pub(super) fn modify_of_load_balancer(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let current = load_balancer_attributes(account, request)?;
    change("Load balancer", current, request)
}

fn load_balancer_attributes<'a>(
    account: &'a mut Account,
    request: Fields<'_>,
) -> Result<&'a mut Attributes, ApiError> {
    let arn = required(request, "LoadBalancerArn")?;
    let found = account.elb.load_balancers.get_mut(arn);
    let found = found.ok_or_else(|| load_balancer::not_found(arn))?;
    Ok(&mut found.attributes)
}

pub(super) fn describe_of_target_group(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    Ok(view(target_group_attributes(account, request)?))
}

pub(super) fn modify_of_target_group(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let current = target_group_attributes(account, request)?;
    change("Target group", current, request)
}

fn target_group_attributes<'a>(
    account: &'a mut Account,
    request: Fields<'_>,
) -> Result<&'a mut Attributes, ApiError> {
    let arn = required(request, "TargetGroupArn")?;
    let found = account.elb.target_groups.get_mut(arn);
    Ok(&mut found.ok_or_else(target_group::not_found)?.attributes)
}

pub(super) fn describe_of_listener(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    Ok(view(listener_attributes(account, request)?))
}

pub(super) fn modify_of_listener(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let current = listener_attributes(account, request)?;
    change("Listener", current, request)
}

fn listener_attributes<'a>(
    account: &'a mut Account,
    request: Fields<'_>,
) -> Result<&'a mut Attributes, ApiError> {
    let arn = required(request, "ListenerArn")?;
    let found = account.elb.listeners.get_mut(arn);
    Ok(&mut found.ok_or_else(listener::not_found)?.attributes)
}

/// Changes all attributes that a request names, or none.
fn change(what: &str, current: &mut Attributes, request: Fields<'_>) -> Result<Value, ApiError> {
    let named = request.objects("Attributes")?;
    if named.is_empty() {
        return Err(missing("Attributes"));
    }
    let mut changed = current.clone();
    for one in named {
        let one = Fields(one);
        let key = one.text("Key")?.ok_or_else(|| missing("Key"))?;
        let value = one.text("Value")?.unwrap_or_default();
        let known = changed
            .get_mut(key)
            .ok_or_else(|| validation(format!("{what} attribute key '{key}' is not recognized")))?;
        check(what, key, known, value)?;
        value.clone_into(known);
    }
    *current = changed;
    Ok(view(current))
}

/// Switches take `true` and `false`, numbers numbers: as the value before.
fn check(what: &str, key: &str, before: &str, value: &str) -> Result<(), ApiError> {
    let fits = match before {
        "true" | "false" => ["true", "false"].contains(&value),
        number if number.parse::<u64>().is_ok() => match value.parse::<u64>() {
            Ok(seconds) => key != DELAY || seconds <= LONGEST_DELAY,
            Err(_) => false,
        },
        _ => true,
    };
    if fits {
        return Ok(());
    }
    Err(validation(format!(
        "{what} attribute '{key}' cannot have the value '{value}'"
    )))
}

fn view(attributes: &Attributes) -> Value {
    let each = attributes.iter();
    let each: Vec<Value> = each
        .map(|(key, value)| json!({"Key": key, "Value": value}))
        .collect();
    json!({"Attributes": each})
}
