//! `DescribeTargetHealth`.

use serde_json::{Value, json};

use super::request::{bounded, missing};
use super::target::{self, State, Target};
use super::target_group::{self, TargetGroup};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

impl State {
    /// Reason and description (ELBv2 API reference, `TargetHealth`).
    fn explained(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Healthy => None,
            Self::Unused => Some((
                "Target.NotInUse",
                "Target group is not configured to receive traffic from the load balancer",
            )),
            Self::Initial => Some((
                "Elb.InitialHealthChecking",
                "Initial health checks in progress",
            )),
            Self::Unhealthy => Some(("Target.FailedHealthChecks", "Health checks failed")),
            Self::Draining => Some((
                "Target.DeregistrationInProgress",
                "Target deregistration is in progress",
            )),
        }
    }
}

pub(super) fn describe(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let group = target_group::find(account, request)?;
    let own = target::keys(account, &group.arn);
    let own = own.iter().filter_map(|key| account.elb.targets.get(key));
    let own: Vec<&Target> = own.collect();
    let named = request.objects("Targets")?;
    let mut described = Vec::new();
    for item in &named {
        let item = Fields(item);
        let id = item.text("Id")?.ok_or_else(|| missing("Id"))?;
        let port = bounded(item, "Port", 1, 65_535)?;
        let fits = |one: &&&Target| one.id == id && port.is_none_or(|port| port == one.port);
        match own.iter().find(fits) {
            Some(found) => described.push(view(group, found)),
            None => described.push(json!({
                "Target": {"Id": id, "Port": port.or(group.port)},
                "TargetHealth": {
                    "State": "unused",
                    "Reason": "Target.NotRegistered",
                    "Description": "Target is not registered to the target group",
                },
            })),
        }
    }
    if named.is_empty() {
        described = own.iter().map(|one| view(group, one)).collect();
    }
    Ok(json!({"TargetHealthDescriptions": described}))
}

fn view(group: &TargetGroup, target: &Target) -> Value {
    let port = (target.port > 0).then_some(target.port);
    let mut health = json!({"State": target.state});
    if let Some((reason, description)) = target.state.explained() {
        health["Reason"] = json!(reason);
        health["Description"] = json!(description);
    }
    json!({
        "Target": {"Id": target.id, "Port": port, "AvailabilityZone": target.zone},
        "HealthCheckPort": group.health_check.port_for(target.port),
        "TargetHealth": health,
    })
}
