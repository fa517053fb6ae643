//! Target groups.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::health_check::HealthCheck;
use super::request::{
    arn_prefix, bounded, check_name, listed, missing, page, required, validation,
};
use super::{attributes, load_balancer, tag, target, usage};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Most target groups in a region (ELB quotas).
const MOST: usize = 3_000;

/// What kind of load balancer a target group is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    Application,
    Network,
    /// A group of one Lambda function, behind an Application Load Balancer.
    Function,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TargetGroup {
    pub(super) arn: String,
    pub(super) name: String,
    pub(super) protocol: Option<String>,
    protocol_version: Option<String>,
    pub(super) port: Option<i64>,
    vpc: Option<String>,
    /// `instance`, `ip`, `lambda` or `alb`.
    pub(crate) target_type: String,
    ip_type: String,
    pub(super) health_check: HealthCheck,
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) tags: Document,
}

impl TargetGroup {
    pub(super) fn layer(&self) -> Layer {
        layer(&self.target_type, self.protocol.as_deref())
    }

    /// How long a target drains.
    pub(super) fn deregistration_delay(&self) -> Duration {
        let seconds = self.attributes.get(attributes::DELAY);
        let seconds = seconds.and_then(|text| text.parse().ok());
        Duration::from_secs(seconds.unwrap_or(0))
    }

    /// Whether both were asked for alike.
    fn is_like(&self, other: &Self) -> bool {
        (&self.protocol, &self.protocol_version, self.port)
            == (&other.protocol, &other.protocol_version, other.port)
            && (&self.vpc, &self.target_type, &self.ip_type)
                == (&other.vpc, &other.target_type, &other.ip_type)
            && self.health_check == other.health_check
    }
}

fn layer(target_type: &str, protocol: Option<&str>) -> Layer {
    match protocol {
        _ if target_type == "lambda" => Layer::Function,
        Some("HTTP" | "HTTPS") => Layer::Application,
        _ => Layer::Network,
    }
}

pub(super) fn not_found() -> ApiError {
    ApiError::client("TargetGroupNotFound", "One or more target groups not found")
}

/// The target group that a request names by `TargetGroupArn`.
pub(super) fn find<'a>(
    account: &'a Account,
    request: Fields<'_>,
) -> Result<&'a TargetGroup, ApiError> {
    let arn = required(request, "TargetGroupArn")?;
    account.elb.target_groups.get(arn).ok_or_else(not_found)
}

impl Account {
    /// A target group, by its ARN.
    pub(crate) fn target_group(&self, arn: &str) -> Option<&TargetGroup> {
        self.elb.target_groups.get(arn)
    }
}

fn view(account: &Account, group: &TargetGroup) -> Value {
    let mut view = Document::new();
    let mut set = |name: &str, value: Value| {
        view.insert(name.to_owned(), value);
    };
    let balancer = usage::load_balancer_of(account, &group.arn);
    let balancers: Vec<&str> = balancer.into_iter().collect();
    set("TargetGroupArn", json!(group.arn));
    set("TargetGroupName", json!(group.name));
    set("Protocol", json!(group.protocol));
    set("ProtocolVersion", json!(group.protocol_version));
    set("Port", json!(group.port));
    set("VpcId", json!(group.vpc));
    set("TargetType", json!(group.target_type));
    set("IpAddressType", json!(group.ip_type));
    set("LoadBalancerArns", json!(balancers));
    group.health_check.write(&mut view);
    Value::Object(view)
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = required(request, "Name")?;
    check_name("Target group", name)?;
    let mut group = read(name, request)?;
    let prefix = format!("{}targetgroup/", arn_prefix(account, caller));
    let same_name = account.elb.target_groups.under(&prefix);
    let same_name = same_name.map(|(_, row)| row).find(|row| row.name == name);
    match same_name {
        Some(found) if found.is_like(&group) => {
            return Ok(json!({"TargetGroups": [view(account, found)]}));
        }
        Some(_) => {
            return Err(ApiError::client(
                "DuplicateTargetGroupName",
                format!(
                    "A target group with the same name '{name}' exists, but with different settings"
                ),
            ));
        }
        None => {}
    }
    if account.elb.target_groups.under(&prefix).count() >= MOST {
        return Err(ApiError::client(
            "TooManyTargetGroups",
            format!("The maximum number of target groups ({MOST}) is reached"),
        ));
    }
    group.arn = format!("{prefix}{name}/{}", account.draw_hex(16));
    let view = view(account, &group);
    account.elb.target_groups.put(group.arn.clone(), group);
    Ok(json!({"TargetGroups": [view]}))
}

/// The target group that a request describes, without an ARN.
fn read(name: &str, request: Fields<'_>) -> Result<TargetGroup, ApiError> {
    let target_type = request.text("TargetType")?.unwrap_or("instance");
    if !["instance", "ip", "lambda", "alb"].contains(&target_type) {
        return Err(validation(format!(
            "Target type '{target_type}' must be one of instance, ip, lambda, alb"
        )));
    }
    let protocol = request.text("Protocol")?;
    let port = bounded(request, "Port", 1, 65_535)?;
    let vpc = request.text("VpcId")?;
    if target_type != "lambda" {
        let protocol = protocol.ok_or_else(|| validation("A protocol must be specified"))?;
        check_protocol(target_type, protocol)?;
        if port.is_none() {
            return Err(validation("A port must be specified"));
        }
        if vpc.is_none() {
            return Err(validation("A VPC ID must be specified"));
        }
    }
    let layer = layer(target_type, protocol);
    let version = request.text("ProtocolVersion")?;
    let version = version.or((layer == Layer::Application).then_some("HTTP1"));
    let check = HealthCheck::of_new(layer, request.text("HealthCheckProtocol")?)?;
    Ok(TargetGroup {
        arn: String::new(),
        name: name.to_owned(),
        protocol: protocol.map(str::to_owned),
        protocol_version: version.map(str::to_owned),
        port,
        vpc: vpc.map(str::to_owned),
        target_type: target_type.to_owned(),
        ip_type: request.text("IpAddressType")?.unwrap_or("ipv4").to_owned(),
        health_check: check.with(layer, request)?,
        attributes: attributes::of_target_group(layer),
        tags: tag::read(request)?,
    })
}

fn check_protocol(target_type: &str, protocol: &str) -> Result<(), ApiError> {
    let known = ["HTTP", "HTTPS", "TCP", "TLS", "UDP", "TCP_UDP"];
    if !known.contains(&protocol) {
        return Err(ApiError::client(
            "UnsupportedProtocol",
            format!("Protocol '{protocol}' must be one of {}", known.join(", ")),
        ));
    }
    if target_type == "alb" && protocol != "TCP" {
        return Err(validation(
            "Target groups of type 'alb' must have the protocol 'TCP'",
        ));
    }
    Ok(())
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let (arns, names) = (request.texts("TargetGroupArns")?, request.texts("Names")?);
    let prefix = format!("{}targetgroup/", arn_prefix(account, caller));
    let all = || account.elb.target_groups.under(&prefix);
    let known_arn = |arn: &&str| account.elb.target_groups.get(arn).is_some();
    let known_name = |name: &&str| all().any(|(_, row)| row.name == *name);
    if !arns.iter().all(known_arn) || !names.iter().all(known_name) {
        return Err(not_found());
    }
    let of_balancer = match request.text("LoadBalancerArn")? {
        None => None,
        Some(arn) if account.elb.load_balancers.get(arn).is_none() => {
            return Err(load_balancer::not_found(arn));
        }
        Some(arn) => Some(usage::groups_of_load_balancer(account, arn)),
    };
    let any = arns.is_empty() && names.is_empty() && of_balancer.is_none();
    let wanted = all().filter(|(arn, row)| {
        let balanced = of_balancer.as_ref().is_some_and(|of| of.contains(*arn));
        any || arns.contains(arn) || names.contains(&row.name.as_str()) || balanced
    });
    let page = page(request, wanted.map(|(arn, _)| arn))?;
    let rows = page.items.iter();
    let views = rows
        .filter_map(|arn| account.elb.target_groups.get(arn))
        .map(|row| view(account, row))
        .collect();
    Ok(listed("TargetGroups", views, page))
}

/// `ModifyTargetGroup`: its health check.
pub(super) fn modify(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let group = find(account, request)?;
    let (arn, layer) = (group.arn.clone(), group.layer());
    let check = group.health_check.clone().with(layer, request)?;
    if let Some(row) = account.elb.target_groups.get_mut(&arn) {
        row.health_check = check;
    }
    let changed = account.elb.target_groups.get(&arn);
    let views: Vec<Value> = changed.into_iter().map(|row| view(account, row)).collect();
    Ok(json!({"TargetGroups": views}))
}

pub(super) fn delete(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let arn = request
        .text("TargetGroupArn")?
        .ok_or_else(|| missing("TargetGroupArn"))?;
    if usage::load_balancer_of(account, arn).is_some() {
        return Err(ApiError::client(
            "ResourceInUse",
            format!("Target group '{arn}' is currently in use by a listener or a rule"),
        ));
    }
    // Deleting what is not there succeeds, as with load balancers.
    if account.elb.target_groups.take(arn).is_some() {
        target::forget_group(account, arn);
    }
    Ok(json!({}))
}

/// Target groups by ARN.
pub(super) type Arns = BTreeSet<String>;
