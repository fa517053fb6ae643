//! Scaling policies.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{OfTarget, Scope, listed_of_targets, remove, required, validation};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, default_to, epoch, omit};

/// The metric that belongs to a target group, which its label names.
const PER_TARGET: &str = "ALBRequestCountPerTarget";

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
    fn alarms(&self) -> Value {
        let each = self.alarms.iter();
        each.map(|alarm| json!({"AlarmName": alarm.name, "AlarmARN": alarm.arn}))
            .collect()
    }
}

impl OfTarget for Policy {
    fn document(&self) -> &Document {
        &self.document
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
    let Some(given) = request.object(member)?.map(Fields) else {
        return Err(validation(format!(
            "{member} is required for policy type {kind}"
        )));
    };
    match kind {
        "TargetTrackingScaling" => check_tracking(given),
        _ => Ok(()),
    }
}

/// A target needs a value, and one metric that it is the value of.
fn check_tracking(given: Fields<'_>) -> Result<(), ApiError> {
    if given.0.get("TargetValue").and_then(Value::as_f64).is_none() {
        return Err(validation(
            "1 validation error detected: Value null at 'targetTrackingScalingPolicyConfiguration.targetValue' failed to \
             satisfy constraint: Member must not be null",
        ));
    }
    let predefined = given.object("PredefinedMetricSpecification")?.map(Fields);
    let customized = given.object("CustomizedMetricSpecification")?;
    if predefined.is_some() == customized.is_some() {
        return Err(validation(
            "Exactly one of PredefinedMetricSpecification or CustomizedMetricSpecification must be specified.",
        ));
    }
    if let Some(metric) = predefined
        && metric.text("PredefinedMetricType")? == Some(PER_TARGET)
        && metric.text("ResourceLabel")?.is_none_or(str::is_empty)
    {
        return Err(validation(format!(
            "Resource label should be specified for predefined metric type {PER_TARGET}"
        )));
    }
    Ok(())
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
    let names = ("PolicyName", "ScalingPolicies");
    listed_of_targets(caller, request, &account.scaling_policies, names)
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let names = ("PolicyName", "scaling policy");
    remove(caller, request, &mut account.scaling_policies, names)
}
