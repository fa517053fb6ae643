//! Managed policies of roles.

use serde_json::{Value, json};

use super::names::{invalid, name, required};
use super::role::{changed, known};
use super::{managed, no_such};
use crate::account::Account;
use crate::arn::last_part;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

/// Managed policies of a role at most (IAM quotas).
const MOST: usize = 10;

pub(super) fn attach(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let arn = policy_arn(request)?;
    let role = changed(account, caller, request)?;
    if !managed::is_there(arn) {
        return Err(no_such(format!(
            "Policy {arn} does not exist or is not attachable."
        )));
    }
    if !role.attached.contains(arn) && role.attached.len() >= MOST {
        return Err(ApiError {
            code: "LimitExceeded",
            status: 409,
            message: format!("Cannot exceed quota for PoliciesPerRole: {MOST}"),
        });
    }
    role.attached.insert(arn.to_owned());
    Ok(json!({}))
}

pub(super) fn detach(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let arn = policy_arn(request)?;
    match changed(account, caller, request)?.attached.remove(arn) {
        true => Ok(json!({})),
        false => Err(no_such(format!("Policy {arn} was not found."))),
    }
}

pub(super) fn list(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let role = known(account, caller, name(request, "RoleName", 64)?)?;
    let shown = role.attached.iter();
    let shown: Vec<Value> = shown
        .map(|arn| json!({"PolicyName": last_part(arn), "PolicyArn": arn}))
        .collect();
    Ok(json!({"AttachedPolicies": shown, "IsTruncated": false}))
}

fn policy_arn(request: Fields<'_>) -> Result<&str, ApiError> {
    let arn = required(request, "PolicyArn", 2_048)?;
    match arn.starts_with("arn:") && arn.len() >= 20 {
        true => Ok(arn),
        false => Err(invalid(format!("ARN {arn} is not valid."))),
    }
}
