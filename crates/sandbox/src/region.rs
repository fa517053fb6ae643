//! Regions that an account must opt in to, those of other partitions, and names that no region has: calls there are
//! refused as if nobody knew the caller (AWS Account Management reference guide, *Enable or disable AWS Regions*).

use crate::account::Account;
use crate::caller::Caller;
use crate::ec2::region::REGIONS;
use crate::error::ApiError;

/// Regions of the partition `aws` that are disabled in a new account (the same page, 2026).
const OPT_IN: &[&str] = &[
    "af-south-1",
    "ap-east-1",
    "ap-east-2",
    "ap-south-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-6",
    "ap-southeast-7",
    "ca-west-1",
    "eu-central-2",
    "eu-south-1",
    "eu-south-2",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "mx-central-1",
];

/// Regions of other partitions begin so; their accounts and credentials are others.
const ELSEWHERE: &[&str] = &["cn-", "us-gov-", "us-iso", "eusc-"];

/// Whether calls in the region of `caller` are taken.
pub(crate) fn check(account: &Account, caller: &Caller, service: &str) -> Result<(), ApiError> {
    let region = caller.region.as_str();
    let disabled = OPT_IN.contains(&region) && account.regions.get(region).is_none();
    let elsewhere = ELSEWHERE.iter().any(|prefix| region.starts_with(prefix));
    // Where there is no region AWS has no endpoint; here is one for all.
    let nowhere = !REGIONS.contains(&region) && !OPT_IN.contains(&region);
    match disabled || elsewhere || nowhere {
        true => Err(unknown_caller(service)),
        false => Ok(()),
    }
}

/// Nobody knows the caller: each service has words of its own for it.
pub(crate) fn unknown_caller(service: &str) -> ApiError {
    let (code, status, message) = match service {
        "ec2" => (
            "AuthFailure",
            401,
            "AWS was not able to validate the provided access credentials",
        ),
        "autoscaling" | "elasticloadbalancing" | "iam" | "sts" => (
            "InvalidClientTokenId",
            403,
            "The security token included in the request is invalid.",
        ),
        _ => (
            "UnrecognizedClientException",
            400,
            "The security token included in the request is invalid.",
        ),
    };
    ApiError {
        code,
        status,
        message: message.to_owned(),
    }
}
