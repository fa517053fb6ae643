//! Who may assume a role, and who may pass one.

use std::collections::BTreeMap;

use super::policy::{Question, Verdict, decide};
use super::role::Role;
use super::token::Token;
use super::{managed, provider};
use crate::account::Account;
use crate::arn::{Arn, last_part};
use crate::caller::Caller;
use crate::error::ApiError;

/// Whether anybody created a role in the account `id`; without any, nothing is looked up there.
fn is_kept(account: &Account, id: &str) -> bool {
    account.iam.roles.under(&format!("{id}/")).next().is_some()
}

/// The role of an ARN: path and name must be those that it was created with.
fn find<'a>(account: &'a Account, arn: &str) -> Option<&'a Role> {
    let role = account.iam.roles.get(&short_key(arn)?);
    role.filter(|role| role.arn == arn)
}

fn denied(who: &str, action: &str, resource: &str) -> ApiError {
    ApiError {
        code: "AccessDenied",
        status: 403,
        message: format!(
            "User: {who} is not authorized to perform: {action} on resource: {resource}"
        ),
    }
}

/// Principals that a caller is, for the `AWS` of a policy.
fn principals(caller: &Caller) -> Vec<(&'static str, String)> {
    let mut names = vec![
        caller.arn.clone(),
        caller.account.clone(),
        format!("arn:aws:iam::{}:root", caller.account),
    ];
    names.extend(role_of(caller));
    names.into_iter().map(|name| ("AWS", name)).collect()
}

/// ARN of the role whose session calls, as far as the session tells: roles with a path are named by their own ARN.
fn role_of(caller: &Caller) -> Option<String> {
    let session = Arn::parse(&caller.arn).filter(|arn| arn.service == "sts")?;
    let name = session.named("assumed-role")?.split('/').next()?;
    Some(format!("arn:aws:iam::{}:role/{name}", session.account))
}

/// Whether `caller` may assume the role, with the external id that it gives. Gives the longest session, if the role has one.
pub(crate) fn assume(
    account: &Account,
    caller: &Caller,
    role_arn: &str,
    external_id: Option<&str>,
) -> Result<Option<i64>, ApiError> {
    if short_key(role_arn).is_none_or(|key| account.iam.roles.get(&key).is_none()) {
        // Connectors name roles that nobody created here, and go on doing so when somebody creates the first one for something else.
        return Ok(None);
    }
    let context = external_id.map(|given| ("sts:externalid".to_owned(), given.to_owned()));
    let question = Question {
        action: "sts:AssumeRole",
        resource: None,
        principals: &principals(caller),
        context: &context.into_iter().collect(),
    };
    let role = find(account, role_arn);
    match role.filter(|role| decide(&role.trust, &question) == Verdict::Allowed) {
        Some(role) => Ok(Some(role.longest_session)),
        None => Err(denied(&caller.arn, question.action, role_arn)),
    }
}

/// Whether the bearer of a checked token may assume the role. Gives the longest session.
pub(crate) fn assume_with_token(
    account: &Account,
    token: &Token<'_>,
    audience: &str,
    role_arn: &str,
) -> Result<i64, ApiError> {
    let id = Arn::parse(role_arn).map_or("", |arn| arn.account);
    let issuer = token.claim("iss");
    let name = provider::without_scheme(issuer).to_lowercase();
    let context = BTreeMap::from([
        (format!("{name}:aud"), audience.to_owned()),
        (format!("{name}:sub"), token.claim("sub").to_owned()),
    ]);
    let question = Question {
        action: "sts:AssumeRoleWithWebIdentity",
        resource: None,
        principals: &[("Federated", provider::arn(id, issuer))],
        context: &context,
    };
    let role = find(account, role_arn);
    match role.filter(|role| decide(&role.trust, &question) == Verdict::Allowed) {
        Some(role) => Ok(role.longest_session),
        None => Err(ApiError {
            code: "AccessDenied",
            status: 403,
            message: "Not authorized to perform sts:AssumeRoleWithWebIdentity".to_owned(),
        }),
    }
}

/// Whether `caller` may give the role to `service` (`ecs-tasks.amazonaws.com`): `iam:PassRole` of the policies of the
/// role that calls. Who is no role of the account may pass every role of it.
pub(crate) fn pass(
    account: &Account,
    caller: &Caller,
    role_arn: &str,
    service: &str,
) -> Result<(), ApiError> {
    let own = role_of(caller);
    let own = own.and_then(|arn| account.iam.roles.get(&short_key(&arn)?));
    let elsewhere = |arn: Arn<'_>| arn.account != caller.account;
    if is_kept(account, &caller.account) && Arn::parse(role_arn).is_some_and(elsewhere) {
        return Err(ApiError::client(
            "AccessDeniedException",
            "Cross-account pass role is not allowed.".to_owned(),
        ));
    }
    let Some(own) = own else {
        return Ok(());
    };
    let question = Question {
        action: "iam:PassRole",
        resource: Some(role_arn),
        principals: &[],
        context: &BTreeMap::from([("iam:passedtoservice".to_owned(), service.to_owned())]),
    };
    let attached = own.attached.iter().map(|arn| managed::document(arn));
    let policies = own.policies.values().cloned().chain(attached);
    let verdicts = policies.map(|policy| decide(&policy, &question));
    let why = match verdicts.max().unwrap_or(Verdict::NotNamed) {
        Verdict::Allowed => return Ok(()),
        Verdict::Denied => "with an explicit deny in an identity-based policy".to_owned(),
        Verdict::NotNamed => {
            "because no identity-based policy allows the iam:PassRole action".to_owned()
        }
    };
    Err(ApiError::client(
        "AccessDeniedException",
        format!(
            "User: {} is not authorized to perform: iam:PassRole on resource: {role_arn} {why}",
            caller.arn
        ),
    ))
}

/// Whether `service` may assume the role: its trust policy names it. Where nobody created a role it may assume every one.
pub(crate) fn serves(account: &Account, role_arn: &str, service: &str) -> bool {
    let id = Arn::parse(role_arn).map_or("", |arn| arn.account);
    let question = Question {
        action: "sts:AssumeRole",
        resource: None,
        principals: &[("Service", service.to_owned())],
        context: &BTreeMap::new(),
    };
    let role = find(account, role_arn);
    !is_kept(account, id)
        || role.is_some_and(|role| decide(&role.trust, &question) == Verdict::Allowed)
}

/// Whether `service` cannot assume the role for sure: somebody created it with a trust policy that does not name `service`, or
/// nobody created it in an account that has roles of `service`.
pub(crate) fn distrusts(account: &Account, role_arn: &str, service: &str) -> bool {
    match find(account, role_arn) {
        Some(_) => !serves(account, role_arn, service),
        None => keeps_roles_of(account, role_arn, service),
    }
}

/// Whether somebody created a role that `service` may assume where the role of the ARN would be: roles of others alone do not
/// tell that all of those of `service` were created too.
fn keeps_roles_of(account: &Account, role_arn: &str, service: &str) -> bool {
    let id = Arn::parse(role_arn).map_or("", |arn| arn.account);
    let mut roles = account.iam.roles.under(&format!("{id}/"));
    roles.any(|(_, role)| serves(account, &role.arn, service))
}

/// Key of the role of an ARN.
fn short_key(arn: &str) -> Option<String> {
    Some(format!("{}/{}", Arn::parse(arn)?.account, last_part(arn)))
}
