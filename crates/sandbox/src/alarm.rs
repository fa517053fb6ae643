//! Amazon CloudWatch as far as deployments watch its alarms: alarms are kept and shown, and deployments of services fail by
//! those that they name. Nothing measures here, so that an alarm changes its state by `SetAlarmState` alone; there are no
//! metrics and no composite alarms.
//!
//! New clients speak JSON 1.0 and older ones the Query protocol; both are answered.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::account::Account;
use crate::caller::Caller;
use crate::ecs;
use crate::error::ApiError;
use crate::fields::{Document, Fields, epoch};
use crate::page::cut_at;
use crate::query::Form;

/// The service's name in `X-Amz-Target`.
pub(crate) const TARGET: &str = "GraniteServiceVersion20100801";
/// The service's name in signatures.
pub(crate) const SIGNING_NAME: &str = "monitoring";
/// Version of the API.
pub(crate) const VERSION: &str = "2010-08-01";
/// Namespace of the answers.
pub(crate) const NAMESPACE: &str = "http://monitoring.amazonaws.com/doc/2010-08-01/";

/// Words of a state; the first is that of a new alarm.
const STATES: [&str; 3] = ["INSUFFICIENT_DATA", "OK", "ALARM"];

/// Words of `ComparisonOperator`.
const COMPARISONS: [&str; 7] = [
    "GreaterThanOrEqualToThreshold",
    "GreaterThanThreshold",
    "LessThanThreshold",
    "LessThanOrEqualToThreshold",
    "LessThanLowerOrGreaterThanUpperThreshold",
    "LessThanLowerThreshold",
    "GreaterThanUpperThreshold",
];

/// Members that are numbers and flags, which the Query protocol has as texts.
const NUMBERS: [&str; 4] = [
    "Period",
    "EvaluationPeriods",
    "DatapointsToAlarm",
    "Threshold",
];

/// Alarms of one page, and in one request that deletes.
const MOST: i64 = 100;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Alarm {
    /// The request, whole.
    document: Document,
    arn: String,
    state: String,
    reason: String,
    /// When it got its state.
    pub(crate) since: Timestamp,
    configured: Timestamp,
}

impl Alarm {
    pub(crate) fn is_raised(&self) -> bool {
        self.state == STATES[2]
    }

    fn view(&self, time: fn(Timestamp) -> Value) -> Value {
        let mut view = self.document.clone();
        view.extend(
            [
                ("AlarmArn", json!(self.arn)),
                ("StateValue", json!(self.state)),
                ("StateReason", json!(self.reason)),
                ("StateUpdatedTimestamp", time(self.since)),
                ("StateTransitionedTimestamp", time(self.since)),
                ("AlarmConfigurationUpdatedTimestamp", time(self.configured)),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        Value::Object(view)
    }
}

fn key(region: &str, name: &str) -> String {
    format!("{region}|{name}")
}

/// The alarm of a name.
pub(crate) fn find<'a>(account: &'a Account, region: &str, name: &str) -> Option<&'a Alarm> {
    account.alarms.get(&key(region, name))
}

/// Carries out one operation of the JSON protocol.
pub(crate) fn call(
    account: &mut Account,
    caller: &Caller,
    operation: &str,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    carry_out(account, caller, operation, request, epoch)
}

/// Carries out one operation of the Query protocol and gives the members of its `…Result` element.
pub(crate) fn query(
    account: &mut Account,
    caller: &Caller,
    form: &Form,
) -> Result<Value, ApiError> {
    let document = form.document();
    let operation = form.get("Action").unwrap_or_default();
    let time = |at: Timestamp| json!(at.to_string());
    carry_out(account, caller, operation, Fields(&document), time)
}

fn carry_out(
    account: &mut Account,
    caller: &Caller,
    operation: &str,
    request: Fields<'_>,
    time: fn(Timestamp) -> Value,
) -> Result<Value, ApiError> {
    match operation {
        "PutMetricAlarm" => put(account, caller, request),
        "DescribeAlarms" => describe(account, caller, request, time),
        "SetAlarmState" => set(account, caller, request),
        "DeleteAlarms" => delete(account, caller, request),
        other => Err(ApiError::client(
            "InvalidAction",
            format!("Could not find operation {other} for version {VERSION}"),
        )),
    }
}

fn validation(message: impl Into<String>) -> ApiError {
    ApiError::client("ValidationError", message)
}

fn required<'a>(request: Fields<'a>, name: &str) -> Result<&'a str, ApiError> {
    let found = request.text(name)?.filter(|text| !text.is_empty());
    found.ok_or_else(|| {
        validation(format!(
            "The parameter {name} must contain at least one character."
        ))
    })
}

/// A number, however the protocol has it.
fn number(request: Fields<'_>, name: &str) -> Option<f64> {
    let value = request.0.get(name)?;
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

fn put(account: &mut Account, caller: &Caller, request: Fields<'_>) -> Result<Value, ApiError> {
    let name = required(request, "AlarmName")?;
    if name.chars().count() > 255 {
        return Err(validation(
            "The parameter AlarmName must not have more than 255 characters.",
        ));
    }
    let comparison = required(request, "ComparisonOperator")?;
    if !COMPARISONS.contains(&comparison) {
        return Err(validation(format!(
            "The value {comparison} for parameter ComparisonOperator is not supported."
        )));
    }
    if number(request, "EvaluationPeriods").is_none_or(|periods| periods < 1.0) {
        return Err(validation(
            "The parameter EvaluationPeriods must be greater than or equal to 1.",
        ));
    }
    let measures = ["MetricName", "Metrics"]
        .iter()
        .any(|member| request.0.contains_key(*member));
    if !measures {
        return Err(validation(
            "Either Metrics or MetricName must be given for the alarm.",
        ));
    }
    let mut document = request.0.clone();
    for member in ["Action", "Version", "Tags"] {
        document.shift_remove(member);
    }
    for member in NUMBERS {
        if let Some(found) = number(request, member) {
            let whole = found.fract() == 0.0 && member != "Threshold";
            let value = match whole {
                true => json!(found as i64),
                false => json!(found),
            };
            document.insert(member.to_owned(), value);
        }
    }
    let enabled = request.0.get("ActionsEnabled");
    let enabled = enabled.is_none_or(|value| *value != json!(false) && value != "false");
    document.insert("ActionsEnabled".to_owned(), json!(enabled));
    for member in [
        "AlarmActions",
        "OKActions",
        "InsufficientDataActions",
        "Dimensions",
    ] {
        document.entry(member).or_insert_with(|| json!([]));
    }
    let key = key(&caller.region, name);
    let known = account.alarms.get(&key).cloned();
    let alarm = Alarm {
        document,
        arn: format!(
            "arn:aws:cloudwatch:{}:{}:alarm:{name}",
            caller.region, account.id
        ),
        state: known
            .as_ref()
            .map_or(STATES[0].to_owned(), |known| known.state.clone()),
        reason: known
            .as_ref()
            .map_or("Unchecked: Initial alarm creation".to_owned(), |known| {
                known.reason.clone()
            }),
        since: known.map_or(account.now, |known| known.since),
        configured: account.now,
    };
    account.alarms.put(key, alarm);
    Ok(json!({}))
}

fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
    time: fn(Timestamp) -> Value,
) -> Result<Value, ApiError> {
    let (names, state) = (request.texts("AlarmNames")?, request.text("StateValue")?);
    let prefix = request.text("AlarmNamePrefix")?.unwrap_or_default();
    if !names.is_empty() && !prefix.is_empty() {
        return Err(validation(
            "AlarmNamePrefix cannot be given together with AlarmNames.",
        ));
    }
    let size = number(request, "MaxRecords").unwrap_or(50.0);
    if !(1.0..=MOST as f64).contains(&size) {
        return Err(validation(format!(
            "The parameter MaxRecords must be between 1 and {MOST}."
        )));
    }
    let all = account.alarms.under(&key(&caller.region, ""));
    let chosen: Vec<&str> = all
        .filter(|(key, alarm)| {
            let name = key.split_once('|').map_or("", |(_, name)| name);
            let named = names.is_empty() || names.contains(&name);
            named && name.starts_with(prefix) && state.is_none_or(|state| state == alarm.state)
        })
        .map(|(key, _)| key)
        .collect();
    let page = cut_at(
        size as usize,
        request.text("NextToken")?,
        false,
        chosen.into_iter(),
    );
    let page = page.map_err(|_| ApiError::client("InvalidNextToken", "The token is not valid."))?;
    let alarms = page.items.iter().filter_map(|key| account.alarms.get(key));
    let alarms: Vec<Value> = alarms.map(|alarm| alarm.view(time)).collect();
    Ok(json!({"MetricAlarms": alarms, "CompositeAlarms": [], "NextToken": page.next_token}))
}

fn set(account: &mut Account, caller: &Caller, request: Fields<'_>) -> Result<Value, ApiError> {
    let name = required(request, "AlarmName")?;
    let (state, reason) = (
        required(request, "StateValue")?,
        required(request, "StateReason")?,
    );
    if !STATES.contains(&state) {
        return Err(validation(format!(
            "1 validation error detected: Value '{state}' at 'stateValue' failed to satisfy constraint: Member must \
             satisfy enum value set: [{}]",
            STATES.join(", ")
        )));
    }
    let now = account.now;
    let Some(alarm) = account.alarms.get_mut(&key(&caller.region, name)) else {
        return Err(ApiError {
            code: "ResourceNotFound",
            status: 404,
            message: format!("Unknown alarm: {name}"),
        });
    };
    if alarm.state != state {
        (alarm.state, alarm.since) = (state.to_owned(), now);
    }
    alarm.reason = reason.to_owned();
    ecs::alarm_changed(account, &caller.region, name);
    Ok(json!({}))
}

fn delete(account: &mut Account, caller: &Caller, request: Fields<'_>) -> Result<Value, ApiError> {
    let names = request.texts("AlarmNames")?;
    let keys: Vec<String> = names.iter().map(|name| key(&caller.region, name)).collect();
    // All of them or none (CloudWatch API reference, DeleteAlarms).
    let gone = keys.iter().find(|key| account.alarms.get(key).is_none());
    if let Some(gone) = gone {
        let name = gone.split_once('|').map_or("", |(_, name)| name);
        return Err(ApiError {
            code: "ResourceNotFound",
            status: 404,
            message: format!("Unknown alarm: {name}"),
        });
    }
    for key in keys {
        account.alarms.take(&key);
    }
    Ok(json!({}))
}
