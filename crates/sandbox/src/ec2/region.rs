//! `DescribeRegions`: a few of AWS's regions.

use serde_json::{Value, json};

use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

pub(crate) const REGIONS: &[&str] = &[
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-southeast-1",
    "ap-southeast-2",
    "ca-central-1",
    "eu-central-1",
    "eu-north-1",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
];

pub(super) fn describe(
    _account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let named = request.texts("RegionName")?;
    if let Some(unknown) = named.iter().find(|name| !REGIONS.contains(*name)) {
        return Err(ApiError::client(
            "InvalidParameterValue",
            format!("Invalid region provided: {unknown}"),
        ));
    }
    let chosen = REGIONS
        .iter()
        .filter(|name| named.is_empty() || named.contains(*name));
    let regions: Vec<Value> = chosen
        .map(|name| {
            json!({
                "regionName": name,
                "regionEndpoint": format!("ec2.{name}.amazonaws.com"),
                "optInStatus": "opt-in-not-required",
            })
        })
        .collect();
    Ok(json!({"regionInfo": regions}))
}
