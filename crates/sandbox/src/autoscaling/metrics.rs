//! `EnableMetricsCollection` and `DisableMetricsCollection`.

use serde_json::{Value, json};

use super::group::find_mut;
use super::request::{named_of, required, validation};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

/// Metrics of a group (Auto Scaling API reference, `EnableMetricsCollection`).
const METRICS: &[&str] = &[
    "GroupAndWarmPoolDesiredCapacity",
    "GroupAndWarmPoolTotalCapacity",
    "GroupDesiredCapacity",
    "GroupInServiceCapacity",
    "GroupInServiceInstances",
    "GroupMaxSize",
    "GroupMinSize",
    "GroupPendingCapacity",
    "GroupPendingInstances",
    "GroupStandbyCapacity",
    "GroupStandbyInstances",
    "GroupTerminatingCapacity",
    "GroupTerminatingInstances",
    "GroupTotalCapacity",
    "GroupTotalInstances",
    "WarmPoolDesiredCapacity",
    "WarmPoolMinSize",
    "WarmPoolPendingCapacity",
    "WarmPoolTerminatingCapacity",
    "WarmPoolTotalCapacity",
    "WarmPoolWarmedCapacity",
];

fn named<'a>(request: Fields<'a>) -> Result<Vec<&'a str>, ApiError> {
    named_of(request, "Metrics", METRICS, |unknown| {
        format!("Unsupported metric: {unknown}")
    })
}

pub(super) fn enable(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let granularity = required(request, "Granularity")?;
    if granularity != "1Minute" {
        return Err(validation(format!(
            "Valid metrics granularity type is 1Minute, and not {granularity}."
        )));
    }
    let names = named(request)?;
    let row = find_mut(account, caller, request)?;
    row.metrics.extend(names.into_iter().map(str::to_owned));
    Ok(json!({}))
}

pub(super) fn disable(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let names = named(request)?;
    let row = find_mut(account, caller, request)?;
    row.metrics.retain(|name| !names.contains(&name.as_str()));
    Ok(json!({}))
}
