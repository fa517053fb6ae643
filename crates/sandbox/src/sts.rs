//! AWS STS: `AssumeRole`, `AssumeRoleWithWebIdentity` and `GetCallerIdentity`, in the Query protocol.
//!
//! In an account id of which nobody created a role in IAM, every role can be assumed; a role that was registered with an
//! external id (`PUT /_sandbox/roles`) wants that one. Otherwise its trust policy decides ([`crate::iam`]). Identity tokens are
//! always checked: provider, keys, signature, times, audience and trust.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Sandbox;
use crate::account::Account;
use crate::arn::{Arn, last_part};
use crate::caller::{Caller, Credential};
use crate::error::ApiError;
use crate::iam::token::{self, Token};
use crate::iam::trust;
use crate::query::Form;

/// Namespace of the answers.
pub(crate) const NAMESPACE: &str = "https://sts.amazonaws.com/doc/2011-06-15/";
/// Beginning of the access keys that this account gives out for sessions.
const MINTED: &str = "ASIASB";
/// Sessions remembered at most; the earliest to expire are forgotten first.
const MOST_SESSIONS: usize = 1_000;
/// The operation that an identity token is the proof of, and that is not signed.
pub(crate) const BY_TOKEN: &str = "AssumeRoleWithWebIdentity";
/// Its parameter with the token.
const TOKEN: &str = "WebIdentityToken";
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
pub(crate) fn call(
    account: &mut Account,
    caller: &Caller,
    form: &Form,
    keys: &Result<Value, ApiError>,
) -> Result<Value, ApiError> {
    match form.get("Action").unwrap_or_default() {
        "AssumeRole" => assume_role(account, caller, form),
        BY_TOKEN => assume_with_token(account, form, keys),
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

/// What is asked of both ways to assume a role.
struct Wanted<'a> {
    arn: &'a str,
    /// Account of the role.
    account: &'a str,
    session: &'a str,
    seconds: i64,
}

impl<'a> Wanted<'a> {
    fn read(form: &'a Form) -> Result<Self, ApiError> {
        let invalid = |message: &str| ApiError::client("ValidationError", message);
        let arn = form.get("RoleArn").unwrap_or_default();
        let session = form.get("RoleSessionName").unwrap_or_default();
        let role = Arn::parse(arn)
            .filter(|arn| arn.service == "iam" && arn.named("role").is_some())
            .ok_or_else(|| invalid(&format!("{arn} is invalid")))?;
        if !(2..=64).contains(&session.len()) {
            return Err(invalid(
                "1 validation error detected: Value at 'roleSessionName' failed to satisfy constraint: \
                 Member must have length between 2 and 64",
            ));
        }
        let seconds = match form.get("DurationSeconds") {
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
        Ok(Self {
            arn,
            account: role.account,
            session,
            seconds,
        })
    }

    /// Longer than the role allows is refused.
    fn within(&self, longest: Option<i64>) -> Result<(), ApiError> {
        match longest.is_some_and(|longest| self.seconds > longest) {
            true => Err(ApiError::client(
                "ValidationError",
                "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.",
            )),
            false => Ok(()),
        }
    }

    /// Begins the session: its credentials, and who it is.
    fn begin(&self, account: &mut Account) -> Value {
        let short = last_part(self.arn);
        let (id, name) = (self.account, self.session);
        let role_id = format!("AROA{}", account.draw_key(17));
        let key = format!("{MINTED}{}", account.draw_key(14));
        let expires = account.later(Duration::from_secs(self.seconds.unsigned_abs()));
        let session = Session {
            account: id.to_owned(),
            arn: format!("arn:aws:sts::{id}:assumed-role/{short}/{name}"),
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
        answer
    }
}

/// Credentials for an hour of a role that a service has taken on; its trust was checked when the service was given it.
pub(crate) fn lend(account: &mut Account, role: &str, session: &str) -> Value {
    let wanted = Wanted {
        arn: role,
        account: Arn::parse(role).map_or("", |role| role.account),
        session,
        seconds: 3_600,
    };
    wanted.begin(account)["Credentials"].take()
}

fn assume_role(account: &mut Account, caller: &Caller, form: &Form) -> Result<Value, ApiError> {
    let wanted = Wanted::read(form)?;
    let external_id = form.get("ExternalId");
    let longest = match account.roles.get(wanted.arn) {
        Some(_) => {
            check_role(account, caller, wanted.arn, external_id)?;
            None
        }
        None => trust::assume(account, caller, wanted.arn, external_id)?,
    };
    wanted.within(longest)?;
    Ok(wanted.begin(account))
}

fn assume_with_token(
    account: &mut Account,
    form: &Form,
    keys: &Result<Value, ApiError>,
) -> Result<Value, ApiError> {
    let wanted = Wanted::read(form)?;
    let token = Token::parse(form.get(TOKEN).unwrap_or_default())?;
    let keys = keys.as_ref().map_err(ApiError::clone)?;
    let audience = token.check(account, wanted.account, keys)?;
    let longest = trust::assume_with_token(account, &token, &audience, wanted.arn)?;
    wanted.within(Some(longest))?;
    let mut answer = wanted.begin(account);
    answer["SubjectFromWebIdentityToken"] = token.claim("sub").into();
    answer["Provider"] = token.claim("iss").into();
    answer["Audience"] = audience.into();
    Ok(answer)
}

/// The keys that the token of a request is checked with: those that its issuer publishes, if the account of the role has a provider
/// for it; nobody else is asked.
pub(crate) async fn keys(sandbox: &Sandbox, form: &Form) -> Result<Value, ApiError> {
    let wanted = Wanted::read(form)?;
    let token = Token::parse(form.get(TOKEN).unwrap_or_default())?;
    let issuer = token.claim("iss").to_owned();
    let known = sandbox.look(|account| token::is_known(account, wanted.account, &issuer));
    match known.map_err(|error| ApiError::server(error.to_string()))? {
        false => Err(token::no_provider(&issuer)),
        true => match sandbox.documents() {
            Some(documents) => token::published(documents, &issuer).await,
            None => Err(token::unreachable()),
        },
    }
}

/// Who calls without a signature, which only [`BY_TOKEN`] may.
pub(crate) fn anonymous(account: &Account, region: &str) -> Caller {
    Caller {
        account: account.id.clone(),
        arn: "anonymous".to_owned(),
        user_id: String::new(),
        region: region.to_owned(),
    }
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
