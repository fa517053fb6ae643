//! Scaling policies.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{PAGING, Scope, required, validation};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, default_to, epoch, omit};
use crate::page::cut;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Policy {
    /// The request, whole.
    document: Document,
    arn: String,
    alarms: Vec<Alarm>,
    created_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Alarm {
    name: String,
    arn: String,
}

impl Policy {
    fn text(&self, name: &str) -> &str {
        let value = self.document.get(name).and_then(Value::as_str);
        value.unwrap_or_default()
    }

    fn alarms(&self) -> Value {
        let each = self.alarms.iter();
        each.map(|alarm| json!({"AlarmName": alarm.name, "AlarmARN": alarm.arn}))
            .collect()
    }

    fn view(&self) -> Value {
        let mut view = self.document.clone();
        view.insert("PolicyARN".into(), json!(self.arn));
        view.insert("Alarms".into(), self.alarms());
        view.insert("CreationTime".into(), epoch(self.created_at));
        Value::Object(view)
    }
}

pub(super) fn put(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = required(request, "PolicyName")?;
    let scope = Scope::read(request)?;
    let target_key = scope.key(caller);
    if account.scalable_targets.get(&target_key).is_none() {
        return Err(scope.target_not_found());
    }
    let key = format!("{target_key}|{name}");
    let known = account.scaling_policies.get(&key).cloned();
    let kind = request.text("PolicyType")?;
    let kind = kind.or(known.as_ref().map(|known| known.text("PolicyType")));
    let kind = kind.unwrap_or("StepScaling").to_owned();
    check_configuration(request, &kind)?;
    let mut document = omit(request.0, &[]);
    default_to(&mut document, "PolicyType", json!(kind));
    let id = account.draw_uuid();
    let policy = Policy {
        document,
        arn: match &known {
            Some(known) => known.arn.clone(),
            None => format!(
                "arn:aws:autoscaling:{}:{}:scalingPolicy:{}:resource/{}/{}:policyName/{name}",
                caller.region, account.id, id, scope.namespace, scope.resource
            ),
        },
        alarms: match &known {
            Some(known) => known.alarms.clone(),
            None => alarms(account, caller, scope, &kind),
        },
        created_at: known.map_or(account.now, |known| known.created_at),
    };
    let answer = json!({"PolicyARN": policy.arn, "Alarms": policy.alarms()});
    account.scaling_policies.put(key, policy);
    Ok(answer)
}

fn check_configuration(request: Fields<'_>, kind: &str) -> Result<(), ApiError> {
    let member = match kind {
        "StepScaling" => "StepScalingPolicyConfiguration",
        "TargetTrackingScaling" => "TargetTrackingScalingPolicyConfiguration",
        "PredictiveScaling" => "PredictiveScalingPolicyConfiguration",
        other => {
            return Err(validation(format!("Unsupported policy type: {other}")));
        }
    };
    match request.object(member)? {
        Some(_) => Ok(()),
        None => Err(validation(format!(
            "{member} is required for policy type {kind}"
        ))),
    }
}

/// Target tracking makes its two CloudWatch alarms itself.
fn alarms(account: &mut Account, caller: &Caller, scope: Scope<'_>, kind: &str) -> Vec<Alarm> {
    if kind != "TargetTrackingScaling" {
        return Vec::new();
    }
    let mut alarms = Vec::new();
    for edge in ["AlarmHigh", "AlarmLow"] {
        let id = account.draw_uuid();
        let name = format!("TargetTracking-{}-{edge}-{id}", scope.resource);
        let arn = format!(
            "arn:aws:cloudwatch:{}:{}:alarm:{name}",
            caller.region, account.id
        );
        alarms.push(Alarm { name, arn });
    }
    alarms
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let namespace = required(request, "ServiceNamespace")?;
    let resource = request.text("ResourceId")?;
    let dimension = request.text("ScalableDimension")?;
    let names = request.texts("PolicyNames")?;
    let prefix = format!("{}/{namespace}|", caller.region);
    let all = account.scaling_policies.under(&prefix).filter(|(_, row)| {
        resource.is_none_or(|id| row.text("ResourceId") == id)
            && dimension.is_none_or(|id| row.text("ScalableDimension") == id)
            && (names.is_empty() || names.contains(&row.text("PolicyName")))
    });
    let page = cut(request, &PAGING, false, all.map(|(key, _)| key))?;
    let rows = page.items.iter();
    let rows = rows.filter_map(|key| account.scaling_policies.get(key));
    let views: Vec<Value> = rows.map(Policy::view).collect();
    Ok(json!({"ScalingPolicies": views, "NextToken": page.next_token}))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = required(request, "PolicyName")?;
    let scope = Scope::read(request)?;
    let key = format!("{}|{name}", scope.key(caller));
    if account.scaling_policies.take(&key).is_none() {
        return Err(ApiError::client(
            "ObjectNotFoundException",
            format!(
                "No scaling policy found for service namespace: {}, resource ID: {}, \
                 scalable dimension: {}: {name}",
                scope.namespace, scope.resource, scope.dimension
            ),
        ));
    }
    Ok(json!({}))
}
