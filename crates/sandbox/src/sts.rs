//! AWS STS: `AssumeRole` and `GetCallerIdentity`, in the Query protocol.
//!
//! Every role of every account can be assumed. A role that was registered with an external id
//! (`PUT /_sandbox/roles`) wants that one.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::account::Account;
use crate::arn::{Arn, last_part};
use crate::caller::{Caller, Credential};
use crate::error::ApiError;
use crate::query::Form;

/// Namespace of the answers.
pub(crate) const NAMESPACE: &str = "https://sts.amazonaws.com/doc/2011-06-15/";
/// Beginning of the access keys that this account gives out for sessions.
const MINTED: &str = "ASIASB";
/// Sessions remembered at most; the earliest to expire are forgotten first.
const MOST_SESSIONS: usize = 1_000;
/// Access keys that begin so are expired, on request: `EXPIRED…`.
const EXPIRED: &str = "EXPIRED";

/// Temporary credentials that were given out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Session {
    account: String,
    arn: String,
    user_id: String,
    expires: Timestamp,
}

/// A role with conditions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Role {
    pub(crate) external_id: Option<String>,
    /// Nobody may assume it.
    pub(crate) denied: bool,
}

/// Who signed the request. Keys that the account did not give out are its root user's.
pub(crate) fn identify(account: &Account, credential: Credential<'_>) -> Result<Caller, ApiError> {
    let key = credential.access_key;
    let region = credential.region.to_owned();
    if key.starts_with(EXPIRED) {
        return Err(ApiError::expired());
    }
    match account.sessions.get(key) {
        Some(session) if session.expires <= account.now => Err(ApiError::expired()),
        Some(session) => Ok(Caller {
            account: session.account.clone(),
            arn: session.arn.clone(),
            user_id: session.user_id.clone(),
            region,
        }),
        // Given out once and forgotten since.
        None if key.starts_with(MINTED) => Err(ApiError::expired()),
        None => Ok(Caller {
            account: account.id.clone(),
            arn: format!("arn:aws:iam::{}:root", account.id),
            user_id: account.id.clone(),
            region,
        }),
    }
}

/// Carries out one operation and gives the members of its `…Result` element.
pub(crate) fn call(account: &mut Account, caller: &Caller, form: &Form) -> Result<Value, ApiError> {
    match form.get("Action").unwrap_or_default() {
        "AssumeRole" => assume_role(account, caller, form),
        "GetCallerIdentity" => Ok(json!({
            "Arn": caller.arn,
            "UserId": caller.user_id,
            "Account": caller.account,
        })),
        other => Err(ApiError::client(
            "InvalidAction",
            format!("Could not find operation {other} for version 2011-06-15"),
        )),
    }
}

fn assume_role(account: &mut Account, caller: &Caller, form: &Form) -> Result<Value, ApiError> {
    let invalid = |message: &str| ApiError::client("ValidationError", message);
    let role_arn = form.get("RoleArn").unwrap_or_default();
    let name = form.get("RoleSessionName").unwrap_or_default();
    let role = Arn::parse(role_arn)
        .filter(|arn| arn.service == "iam" && arn.named("role").is_some())
        .ok_or_else(|| invalid(&format!("{role_arn} is invalid")))?;
    if !(2..=64).contains(&name.len()) {
        return Err(invalid(
            "1 validation error detected: Value at 'roleSessionName' failed to satisfy constraint: \
             Member must have length between 2 and 64",
        ));
    }
    let seconds: i64 = match form.get("DurationSeconds") {
        None => 3_600,
        Some(text) => text
            .parse()
            .ok()
            .filter(|seconds| (900..=43_200).contains(seconds))
            .ok_or_else(|| {
                invalid(
                    "1 validation error detected: Value at 'durationSeconds' failed to satisfy \
                     constraint: Member must have value between 900 and 43200",
                )
            })?,
    };
    check_role(account, caller, role_arn, form.get("ExternalId"))?;
    let short = last_part(role_arn);
    let role_id = format!("AROA{}", account.draw_key(17));
    let key = format!("{MINTED}{}", account.draw_key(14));
    let expires = account.later(Duration::from_secs(seconds.unsigned_abs()));
    let session = Session {
        account: role.account.to_owned(),
        arn: format!("arn:aws:sts::{}:assumed-role/{short}/{name}", role.account),
        user_id: format!("{role_id}:{name}"),
        expires,
    };
    let answer = json!({
        "AssumedRoleUser": {"Arn": session.arn, "AssumedRoleId": session.user_id},
        "Credentials": {
            "AccessKeyId": key,
            "SecretAccessKey": account.draw_hex(40),
            "SessionToken": account.draw_hex(64),
            "Expiration": format!("{expires:.0}"),
        },
    });
    forget_oldest(account);
    account.sessions.put(key, session);
    Ok(answer)
}

fn check_role(
    account: &Account,
    caller: &Caller,
    role: &str,
    external_id: Option<&str>,
) -> Result<(), ApiError> {
    let Some(rule) = account.roles.get(role) else {
        return Ok(());
    };
    let wrong_id = rule.external_id.is_some() && rule.external_id.as_deref() != external_id;
    if rule.denied || wrong_id {
        return Err(ApiError {
            code: "AccessDenied",
            status: 403,
            message: format!(
                "User: {} is not authorized to perform: sts:AssumeRole on resource: {role}",
                caller.arn
            ),
        });
    }
    Ok(())
}

fn forget_oldest(account: &mut Account) {
    let sessions = account.sessions.iter();
    let mut ends: Vec<(Timestamp, String)> = sessions
        .map(|(key, session)| (session.expires, key.clone()))
        .collect();
    if ends.len() < MOST_SESSIONS {
        return;
    }
    ends.sort();
    for (_, key) in ends.iter().take(MOST_SESSIONS / 10) {
        account.sessions.take(key);
    }
}
