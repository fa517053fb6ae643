//! Load balancers.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::request::{arn_prefix, check_name, listed, missing, page, required, validation};
use super::{attributes, listener, tag, traffic};
use crate::account::{Account, Wake};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Most load balancers of one kind in a region (ELB quotas).
const MOST: usize = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Application,
    Network,
}

impl Kind {
    fn read(text: Option<&str>) -> Result<Self, ApiError> {
        match text {
            None | Some("application") => Ok(Self::Application),
            Some("network") => Ok(Self::Network),
            Some(other) => Err(validation(format!(
                "The sandbox account does not implement load balancers of type '{other}'"
            ))),
        }
    }

    fn short(self) -> &'static str {
        match self {
            Self::Application => "app",
            Self::Network => "net",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Subnet {
    id: String,
    zone: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LoadBalancer {
    pub(super) arn: String,
    pub(super) name: String,
    pub(super) kind: Kind,
    scheme: String,
    ip_type: String,
    subnets: Vec<Subnet>,
    security_groups: Vec<String>,
    dns_name: String,
    /// Until when it is provisioning.
    pub(super) due: Option<Timestamp>,
    created_at: Timestamp,
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) tags: Document,
}

impl LoadBalancer {
    /// `app/<name>/<id>`, which the ARNs of its listeners and rules hold too.
    pub(super) fn resource(&self) -> &str {
        let mark = ":loadbalancer/";
        let found = self.arn.find(mark).map(|at| at + mark.len());
        found.and_then(|at| self.arn.get(at..)).unwrap_or_default()
    }

    pub(super) fn is_active(&self) -> bool {
        self.due.is_none()
    }

    fn view(&self) -> Value {
        let zones: Vec<Value> = self
            .subnets
            .iter()
            .map(|one| json!({"SubnetId": one.id, "ZoneName": one.zone, "LoadBalancerAddresses": []}))
            .collect();
        let state = if self.is_active() {
            "active"
        } else {
            "provisioning"
        };
        // Zones of us-east-1; DNS is not there anyway.
        let zone_id = match self.kind {
            Kind::Application => "Z35SXDOTRQ7X7K",
            Kind::Network => "Z26RNL4JYFTOTI",
        };
        json!({
            "LoadBalancerArn": self.arn,
            "LoadBalancerName": self.name,
            "DNSName": self.dns_name,
            "CanonicalHostedZoneId": zone_id,
            "CreatedTime": format!("{:.3}", self.created_at),
            "Scheme": self.scheme,
            "Type": self.kind,
            "VpcId": "vpc-sandbox",
            "State": {"Code": state},
            "AvailabilityZones": zones,
            "SecurityGroups": self.security_groups,
            "IpAddressType": self.ip_type,
        })
    }
}

pub(super) fn not_found(arn: &str) -> ApiError {
    ApiError::client(
        "LoadBalancerNotFound",
        format!("Load balancer '{arn}' not found"),
    )
}

/// What a request for a load balancer says, checked.
struct Wanted {
    kind: Kind,
    scheme: String,
    ip_type: String,
    subnets: Vec<Subnet>,
    security_groups: Vec<String>,
}

impl Wanted {
    fn read(caller: &Caller, request: Fields<'_>) -> Result<Self, ApiError> {
        let kind = Kind::read(request.text("Type")?)?;
        let scheme = request.text("Scheme")?.unwrap_or("internet-facing");
        if !["internet-facing", "internal"].contains(&scheme) {
            return Err(ApiError::client(
                "InvalidScheme",
                format!("Scheme '{scheme}' must be either 'internet-facing' or 'internal'"),
            ));
        }
        let ip_type = request.text("IpAddressType")?.unwrap_or("ipv4");
        let groups = request.texts("SecurityGroups")?.into_iter();
        Ok(Self {
            kind,
            scheme: scheme.to_owned(),
            ip_type: ip_type.to_owned(),
            subnets: subnets(caller, kind, request)?,
            security_groups: groups.map(str::to_owned).collect(),
        })
    }

    fn is(&self, found: &LoadBalancer) -> bool {
        (self.kind, &self.scheme, &self.subnets) == (found.kind, &found.scheme, &found.subnets)
            && (&self.ip_type, &self.security_groups) == (&found.ip_type, &found.security_groups)
    }
}

/// Subnets, by `Subnets` or `SubnetMappings`. There is no network to ask: each is in a zone of its own, in
/// their order.
fn subnets(caller: &Caller, kind: Kind, request: Fields<'_>) -> Result<Vec<Subnet>, ApiError> {
    let mut ids = request.texts("Subnets")?;
    for mapping in request.objects("SubnetMappings")? {
        ids.extend(Fields(mapping).text("SubnetId")?);
    }
    let mut found: Vec<Subnet> = Vec::new();
    for (id, letter) in ids.into_iter().zip('a'..='z') {
        if !id.starts_with("subnet-") {
            return Err(ApiError::client(
                "SubnetNotFound",
                format!("The subnet ID '{id}' is not valid"),
            ));
        }
        if found.iter().any(|one| one.id == id) {
            return Err(validation(format!(
                "The subnet ID '{id}' is specified more than once"
            )));
        }
        found.push(Subnet {
            id: id.to_owned(),
            zone: format!("{}{letter}", caller.region),
        });
    }
    match (kind, found.len()) {
        (Kind::Application, 0..=1) => Err(validation(
            "At least two subnets in two different Availability Zones must be specified",
        )),
        (Kind::Network, 0) => Err(validation("At least one subnet must be specified")),
        _ => Ok(found),
    }
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = required(request, "Name")?;
    check_name("Load balancer", name)?;
    if name.starts_with("internal-") {
        return Err(validation(format!(
            "Load balancer name '{name}' cannot begin with 'internal-'"
        )));
    }
    let wanted = Wanted::read(caller, request)?;
    let tags = tag::read(request)?;
    let prefix = format!("{}loadbalancer/", arn_prefix(account, caller));
    let same_name = account.elb.load_balancers.under(&prefix);
    let same_name = same_name.map(|(_, row)| row).find(|row| row.name == name);
    match same_name {
        Some(found) if wanted.is(found) => return Ok(json!({"LoadBalancers": [found.view()]})),
        Some(_) => {
            return Err(ApiError::client(
                "DuplicateLoadBalancerName",
                format!(
                    "A load balancer with the same name '{name}' exists, but with different settings"
                ),
            ));
        }
        None => {}
    }
    let of_kind = format!("{prefix}{}/", wanted.kind.short());
    if account.elb.load_balancers.under(&of_kind).count() >= MOST {
        return Err(ApiError::client(
            "TooManyLoadBalancers",
            format!("The maximum number of load balancers of this type ({MOST}) is reached"),
        ));
    }
    let created = new(account, caller, wanted, name, tags);
    let view = created.view();
    let arn = created.arn.clone();
    if let Some(due) = created.due {
        account.schedule(due, Wake::LoadBalancer(arn.clone()));
    }
    account.elb.load_balancers.put(arn, created);
    Ok(json!({"LoadBalancers": [view]}))
}

fn new(
    account: &mut Account,
    caller: &Caller,
    wanted: Wanted,
    name: &str,
    tags: Document,
) -> LoadBalancer {
    let id = account.draw_hex(16);
    let prefix = arn_prefix(account, caller);
    let region = &caller.region;
    let dns_name = match wanted.kind {
        Kind::Network => format!("{name}-{id}.elb.{region}.amazonaws.com"),
        Kind::Application => {
            let number = account.draw_digits() % 10_000_000_000;
            let internal = if wanted.scheme == "internal" {
                "internal-"
            } else {
                ""
            };
            format!("{internal}{name}-{number:010}.{region}.elb.amazonaws.com")
        }
    };
    LoadBalancer {
        arn: format!("{prefix}loadbalancer/{}/{name}/{id}", wanted.kind.short()),
        name: name.to_owned(),
        kind: wanted.kind,
        scheme: wanted.scheme,
        ip_type: wanted.ip_type,
        subnets: wanted.subnets,
        security_groups: wanted.security_groups,
        dns_name,
        due: Some(account.later(account.pace.provision)),
        created_at: account.now,
        attributes: attributes::of_load_balancer(wanted.kind),
        tags,
    }
}

/// The load balancer has been provisioned.
pub(crate) fn activate(account: &mut Account, arn: &str, at: Timestamp) {
    let Some(row) = account.elb.load_balancers.get_mut(arn) else {
        return;
    };
    if row.due != Some(at) {
        return;
    }
    row.due = None;
    let resource = row.resource().to_owned();
    traffic::note_load_balancer(account, &resource);
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let (arns, names) = (request.texts("LoadBalancerArns")?, request.texts("Names")?);
    let prefix = format!("{}loadbalancer/", arn_prefix(account, caller));
    let all = || account.elb.load_balancers.under(&prefix);
    let known_arn = |arn: &&str| account.elb.load_balancers.get(arn).is_some();
    if let Some(unknown) = arns.iter().find(|arn| !known_arn(arn)) {
        return Err(not_found(unknown));
    }
    let known_name = |name: &&str| all().any(|(_, row)| row.name == *name);
    let unknown: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| !known_name(name))
        .collect();
    if !unknown.is_empty() {
        return Err(ApiError::client(
            "LoadBalancerNotFound",
            format!("Load balancers '[{}]' not found", unknown.join(", ")),
        ));
    }
    let any = arns.is_empty() && names.is_empty();
    let wanted =
        all().filter(|(arn, row)| any || arns.contains(arn) || names.contains(&row.name.as_str()));
    let page = page(request, wanted.map(|(arn, _)| arn))?;
    let rows = page.items.iter();
    let views = rows
        .filter_map(|arn| account.elb.load_balancers.get(arn))
        .map(LoadBalancer::view)
        .collect();
    Ok(listed("LoadBalancers", views, page))
}

pub(super) fn delete(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let arn = request
        .text("LoadBalancerArn")?
        .ok_or_else(|| missing("LoadBalancerArn"))?;
    // Deleting what is not there succeeds (ELBv2 API reference).
    let Some(found) = account.elb.load_balancers.get(arn) else {
        return Ok(json!({}));
    };
    let protection = found.attributes.get("deletion_protection.enabled");
    if protection.is_some_and(|value| value == "true") {
        return Err(ApiError::client(
            "OperationNotPermitted",
            format!(
                "Load balancer '{arn}' cannot be deleted because deletion protection is enabled"
            ),
        ));
    }
    listener::delete_all(account, arn);
    account.elb.load_balancers.take(arn);
    Ok(json!({}))
}
