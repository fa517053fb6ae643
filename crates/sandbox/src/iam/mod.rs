//! AWS IAM as far as trust and PassRole go: roles with their trust and inline policies, and OpenID Connect providers.
//!
//! What is looked up: `sts:AssumeRole` and `sts:AssumeRoleWithWebIdentity` against the role's trust policy, external
//! id, audience and subject among its conditions; `iam:PassRole` against the policies of the role that calls, and
//! the trust of the passed role, where ECS and Lambda are given one.
//!
//! What is not AWS's: an account id of which nobody created a role checks nothing, so that accounts that were made
//! without any go on to work (tokens are always checked); a role that nobody created may be assumed by everybody but services
//! also where there are others, so that the first one that is created shuts no connector out; ECS tasks may have roles that
//! nobody created until somebody creates one for tasks; other actions are allowed to everybody; of AWS's managed policies
//! only what they say about PassRole is known ([`managed`]), and customers' managed policies, boundaries, users and groups
//! are not there; changes count at once; providers on loopback addresses may be `http`, and
//! their keys are fetched anew each time and no thumbprint is compared.

mod attached;
mod managed;
mod names;
mod policy;
mod provider;
mod role;
mod tables;
pub(crate) mod token;
pub(crate) mod trust;

use serde_json::Value;

pub(crate) use tables::Tables;

use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::query::Form;

/// The service's name in signatures.
pub(crate) const SIGNING_NAME: &str = "iam";
/// Version of the API.
pub(crate) const VERSION: &str = "2010-05-08";
/// Namespace of the answers.
pub(crate) const NAMESPACE: &str = "https://iam.amazonaws.com/doc/2010-05-08/";

/// Carries out one operation and gives the members of its `…Result` element.
pub(crate) fn call(account: &mut Account, caller: &Caller, form: &Form) -> Result<Value, ApiError> {
    let document = form.document();
    let request = Fields(&document);
    let carry_out = match form.get("Action").unwrap_or_default() {
        "CreateRole" => role::create,
        "GetRole" => role::get,
        "ListRoles" => role::list,
        "DeleteRole" => role::delete,
        "UpdateAssumeRolePolicy" => role::update_trust,
        "PutRolePolicy" => role::put_policy,
        "GetRolePolicy" => role::get_policy,
        "ListRolePolicies" => role::list_policies,
        "DeleteRolePolicy" => role::delete_policy,
        "AttachRolePolicy" => attached::attach,
        "ListAttachedRolePolicies" => attached::list,
        "DetachRolePolicy" => attached::detach,
        "CreateOpenIDConnectProvider" => provider::create,
        "GetOpenIDConnectProvider" => provider::get,
        "ListOpenIDConnectProviders" => provider::list,
        "DeleteOpenIDConnectProvider" => provider::delete,
        "AddClientIDToOpenIDConnectProvider" => provider::add_client,
        "RemoveClientIDFromOpenIDConnectProvider" => provider::remove_client,
        other => {
            return Err(ApiError::client(
                "InvalidAction",
                format!("Could not find operation {other} for version {VERSION}"),
            ));
        }
    };
    carry_out(account, caller, request)
}

/// A resource that is not there.
fn no_such(what: impl Into<String>) -> ApiError {
    ApiError {
        code: "NoSuchEntity",
        status: 404,
        message: what.into(),
    }
}

/// A resource that is there already.
fn exists(what: impl Into<String>) -> ApiError {
    ApiError {
        code: "EntityAlreadyExists",
        status: 409,
        message: what.into(),
    }
}
