//! Roles: who may assume them, and what they may pass.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::names::{invalid, name, required};
use super::{exists, no_such, policy};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::page::cut_at;

/// A role.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Role {
    pub(super) arn: String,
    id: String,
    name: String,
    path: String,
    created: Timestamp,
    pub(super) trust: Value,
    /// Inline policies by name.
    pub(super) policies: BTreeMap<String, Value>,
    /// ARNs of managed policies.
    #[serde(default)]
    pub(super) attached: BTreeSet<String>,
    /// Longest session, seconds.
    pub(super) longest_session: i64,
    description: Option<String>,
}

impl Role {
    fn shown(&self) -> Value {
        json!({
            "Path": self.path,
            "RoleName": self.name,
            "RoleId": self.id,
            "Arn": self.arn,
            "CreateDate": format!("{:.0}", self.created),
            "AssumeRolePolicyDocument": encoded(&self.trust),
            "MaxSessionDuration": self.longest_session,
            "Description": self.description,
        })
    }
}

/// Policies are shown in percent-encoding (RFC 3986), as IAM does.
fn encoded(document: &Value) -> String {
    utf8_percent_encode(&document.to_string(), NON_ALPHANUMERIC).to_string()
}

fn key(caller: &Caller, name: &str) -> String {
    format!("{}/{name}", caller.account)
}

fn missing(name: &str) -> ApiError {
    no_such(format!("The role with name {name} cannot be found."))
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = name(request, "RoleName", 64)?;
    let trust = policy::trust(required(request, "AssumeRolePolicyDocument", 131_072)?)?;
    let path = request.text("Path")?.unwrap_or("/");
    if !path.starts_with('/') || !path.ends_with('/') || path.len() > 512 {
        return Err(invalid(
            "The specified value for path is invalid. It must begin and end with / and contain only alphanumeric \
             characters and/or / characters.",
        ));
    }
    let longest = request.text("MaxSessionDuration")?.unwrap_or("3600");
    let longest = longest
        .parse()
        .ok()
        .filter(|seconds| (3_600..=43_200).contains(seconds));
    let longest_session = longest.ok_or_else(|| {
        invalid(
            "1 validation error detected: Value at 'maxSessionDuration' failed to satisfy constraint: Member must have \
             value between 3600 and 43200",
        )
    })?;
    if account.iam.roles.get(&key(caller, name)).is_some() {
        return Err(exists(format!("Role with name {name} already exists.")));
    }
    let role = Role {
        arn: format!("arn:aws:iam::{}:role{path}{name}", caller.account),
        id: format!("AROA{}", account.draw_key(17)),
        name: name.to_owned(),
        path: path.to_owned(),
        created: account.now,
        trust,
        policies: BTreeMap::new(),
        attached: BTreeSet::new(),
        longest_session,
        description: request.text("Description")?.map(str::to_owned),
    };
    let shown = role.shown();
    account.iam.roles.put(key(caller, name), role);
    Ok(json!({"Role": shown}))
}

pub(super) fn get(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = name(request, "RoleName", 64)?;
    let role = known(account, caller, name)?;
    Ok(json!({"Role": role.shown()}))
}

pub(super) fn list(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let size = request.text("MaxItems")?.unwrap_or("100");
    let size = size.parse().ok().filter(|size| (1..=1_000).contains(size));
    let size = size.ok_or_else(|| invalid("MaxItems must be between 1 and 1000."))?;
    let prefix = request.text("PathPrefix")?.unwrap_or("/");
    let own = key(caller, "");
    let all = account.iam.roles.under(&own);
    let all: Vec<&Role> = all
        .map(|(_, role)| role)
        .filter(|role| role.path.starts_with(prefix))
        .collect();
    let names = all.iter().map(|role| role.name.as_str());
    let page = cut_at(size, request.text("Marker")?, false, names)
        .map_err(|_| invalid("Invalid Marker."))?;
    let shown = all.iter().filter(|role| page.items.contains(&role.name));
    Ok(json!({
        "Roles": shown.map(|role| role.shown()).collect::<Vec<_>>(),
        "IsTruncated": page.next_token.is_some(),
        "Marker": page.next_token,
    }))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = name(request, "RoleName", 64)?;
    let role = known(account, caller, name)?;
    for (none, before) in [
        (role.attached.is_empty(), "detach all policies"),
        (role.policies.is_empty(), "delete policies"),
    ] {
        if !none {
            return Err(ApiError {
                code: "DeleteConflict",
                status: 409,
                message: format!("Cannot delete entity, must {before} first."),
            });
        }
    }
    account.iam.roles.take(&key(caller, name));
    Ok(json!({}))
}

pub(super) fn update_trust(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let trust = policy::trust(required(request, "PolicyDocument", 131_072)?)?;
    changed(account, caller, request)?.trust = trust;
    Ok(json!({}))
}

pub(super) fn put_policy(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let policy = name(request, "PolicyName", 128)?.to_owned();
    let document = policy::identity(required(request, "PolicyDocument", 131_072)?)?;
    let role = changed(account, caller, request)?;
    role.policies.insert(policy, document);
    Ok(json!({}))
}

pub(super) fn get_policy(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let (name, policy) = (
        name(request, "RoleName", 64)?,
        name(request, "PolicyName", 128)?,
    );
    let role = known(account, caller, name)?;
    let document = role.policies.get(policy).ok_or_else(|| no_policy(policy))?;
    Ok(json!({"RoleName": name, "PolicyName": policy, "PolicyDocument": encoded(document)}))
}

pub(super) fn list_policies(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = name(request, "RoleName", 64)?;
    let role = known(account, caller, name)?;
    let names: Vec<&String> = role.policies.keys().collect();
    Ok(json!({"PolicyNames": names, "IsTruncated": false}))
}

pub(super) fn delete_policy(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let policy = name(request, "PolicyName", 128)?.to_owned();
    let role = changed(account, caller, request)?;
    match role.policies.remove(&policy) {
        Some(_) => Ok(json!({})),
        None => Err(no_policy(&policy)),
    }
}

fn no_policy(name: &str) -> ApiError {
    no_such(format!("The role policy with name {name} cannot be found."))
}

pub(super) fn known<'a>(
    account: &'a Account,
    caller: &Caller,
    name: &str,
) -> Result<&'a Role, ApiError> {
    let role = account.iam.roles.get(&key(caller, name));
    role.ok_or_else(|| missing(name))
}

/// The role of a request, to be changed.
pub(super) fn changed<'a>(
    account: &'a mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<&'a mut Role, ApiError> {
    let name = name(request, "RoleName", 64)?;
    let role = account.iam.roles.get_mut(&key(caller, name));
    role.ok_or_else(|| missing(name))
}
