//! Scaling policies of groups. They are kept and shown; nothing scales by itself.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::group::find;
use super::request::{page, required, validation};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, omit};

/// Most scaling policies of a group (Auto Scaling quotas).
const MOST: usize = 50;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Policy {
    group: String,
    name: String,
    arn: String,
    settings: Document,
    alarms: Vec<Document>,
}

impl Policy {
    fn kind(&self) -> &str {
        let kind = self.settings.get("PolicyType").and_then(Value::as_str);
        kind.unwrap_or("SimpleScaling")
    }

    fn view(&self) -> Value {
        let mut view = self.settings.clone();
        for (name, value) in [
            ("AutoScalingGroupName", json!(self.group)),
            ("PolicyName", json!(self.name)),
            ("PolicyARN", json!(self.arn)),
            ("PolicyType", json!(self.kind())),
            ("Alarms", json!(self.alarms)),
        ] {
            view.insert(name.to_owned(), value);
        }
        view.entry("Enabled").or_insert(json!(true));
        Value::Object(view)
    }
}

pub(super) fn put(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = required(request, "PolicyName")?.to_owned();
    let group = find(account, caller, request)?;
    let (prefix, group) = (format!("{}|", group.key()), group.name.clone());
    check(request)?;
    let key = format!("{prefix}{name}");
    let known = account.autoscaling.policies.get(&key).cloned();
    if known.is_none() && account.autoscaling.policies.under(&prefix).count() >= MOST {
        return Err(ApiError::client(
            "LimitExceeded",
            format!("You have already reached the limit of {MOST} scaling policies of this group"),
        ));
    }
    let tracks = request.text("PolicyType")? == Some("TargetTrackingScaling");
    let (arn, alarms) = match known {
        Some(known) => (known.arn, known.alarms),
        None => {
            let id = account.draw_uuid();
            let arn = format!(
                "arn:aws:autoscaling:{}:{}:scalingPolicy:{id}:autoScalingGroupName/{group}:policyName/{name}",
                caller.region, account.id
            );
            (
                arn,
                if tracks {
                    alarms(account, caller, &group)
                } else {
                    Vec::new()
                },
            )
        }
    };
    let own = ["Action", "Version", "AutoScalingGroupName", "PolicyName"];
    let policy = Policy {
        group,
        name,
        arn,
        settings: omit(request.0, &own),
        alarms,
    };
    let answer = json!({"PolicyARN": policy.arn, "Alarms": policy.alarms});
    account.autoscaling.policies.put(key, policy);
    Ok(answer)
}

/// What each type of policy must have.
fn check(request: Fields<'_>) -> Result<(), ApiError> {
    let kind = request.text("PolicyType")?.unwrap_or("SimpleScaling");
    let needs: &[&str] = match kind {
        "SimpleScaling" => &["AdjustmentType", "ScalingAdjustment"],
        "StepScaling" => &["AdjustmentType", "StepAdjustments"],
        "TargetTrackingScaling" => &["TargetTrackingConfiguration"],
        "PredictiveScaling" => &["PredictiveScalingConfiguration"],
        other => return Err(validation(format!("Invalid policy type: {other}"))),
    };
    for name in needs {
        if !request.0.contains_key(*name) {
            return Err(validation(format!(
                "You must specify {name} for policy type {kind}."
            )));
        }
    }
    Ok(())
}

/// Target tracking makes its two CloudWatch alarms itself.
fn alarms(account: &mut Account, caller: &Caller, group: &str) -> Vec<Document> {
    let mut alarms = Vec::new();
    for edge in ["AlarmHigh", "AlarmLow"] {
        let name = format!("TargetTracking-{group}-{edge}-{}", account.draw_uuid());
        let arn = format!(
            "arn:aws:cloudwatch:{}:{}:alarm:{name}",
            caller.region, account.id
        );
        let mut alarm = Document::new();
        alarm.insert("AlarmName".to_owned(), json!(name));
        alarm.insert("AlarmARN".to_owned(), json!(arn));
        alarms.push(alarm);
    }
    alarms
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let names = request.texts("PolicyNames")?;
    let kinds = request.texts("PolicyTypes")?;
    let prefix = match request.text("AutoScalingGroupName")? {
        Some(_) => format!("{}|", find(account, caller, request)?.key()),
        None => format!("{}/", caller.region),
    };
    let all = account.autoscaling.policies.under(&prefix);
    let all = all.filter(|(_, row)| {
        (names.is_empty()
            || names.contains(&row.name.as_str())
            || names.contains(&row.arn.as_str()))
            && (kinds.is_empty() || kinds.contains(&row.kind()))
    });
    let page = page(request, (50, 100), all.map(|(key, _)| key))?;
    let rows = page.items.iter();
    let rows = rows.filter_map(|key| account.autoscaling.policies.get(key));
    let views: Vec<Value> = rows.map(Policy::view).collect();
    Ok(json!({"ScalingPolicies": views, "NextToken": page.next_token}))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = required(request, "PolicyName")?;
    let key = match request.text("AutoScalingGroupName")? {
        Some(_) => Some(format!("{}|{name}", find(account, caller, request)?.key())),
        None => {
            let mut all = account.autoscaling.policies.iter();
            let found = all.find(|(_, row)| row.arn == name);
            found.map(|(key, _)| key.clone())
        }
    };
    let taken = key.and_then(|key| account.autoscaling.policies.take(&key));
    match taken {
        Some(_) => Ok(json!({})),
        None => Err(validation(format!("PolicyName not found - {name}"))),
    }
}
