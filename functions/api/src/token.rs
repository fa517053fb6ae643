//! Tokens: minted, looked up by hash, validated for `auth login`; and more of them for other people (`POST /ng/api/token`).

use axum::extract::State;
use serde_json::{Value, json};
use slipway_engine::error_name::ErrorName;
use slipway_model::id::{AccountId, PrincipalId};
use slipway_store::record::TokenRecord;
use slipway_store::{Store, StoreError, ValidToken};
use uuid::Uuid;

use crate::auth::look_up;
use crate::body::Body;
use crate::call::Call;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::user::LONGEST_NAME;
use crate::{Deps, user};

/// What a token may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Everything.
    Admin,
    /// The routes of a delegate: fetch a task, write its log, report its result.
    Delegate,
    /// Reading logs.
    Logs,
}

impl Permission {
    /// As it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Delegate => "delegate",
            Self::Logs => "logs",
        }
    }
}

/// A token as the API knows it: everything but its secret.
#[derive(Clone, Debug)]
pub(crate) struct TokenInfo {
    pub(crate) account: AccountId,
    pub(crate) principal: PrincipalId,
    /// Its third segment.
    pub(crate) id: String,
    pub(crate) name: String,
    permissions: Vec<String>,
    /// Epoch milliseconds.
    pub(crate) valid_from_ms: i64,
    /// Epoch milliseconds; 0 is never.
    pub(crate) valid_to_ms: i64,
}

impl TokenInfo {
    /// Whether it may be used for this.
    pub(crate) fn allows(&self, needed: Permission) -> bool {
        let has = |p: Permission| self.permissions.iter().any(|name| name == p.as_str());
        has(Permission::Admin) || has(needed)
    }
}

/// What a new token is for.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// The account that it opens.
    pub account: AccountId,
    /// Who uses it.
    pub principal: PrincipalId,
    /// For people.
    pub name: String,
    /// What it may be used for.
    pub permission: Permission,
    /// Epoch milliseconds of now.
    pub now_ms: i64,
    /// Epoch milliseconds after which it is refused; 0 for never.
    pub valid_to_ms: i64,
}

/// Makes a token and stores its hash. The text is shown once, here.
///
/// # Errors
/// When the account cannot be part of a token, or the store cannot be written.
pub async fn mint_token(store: &Store, new: NewToken) -> Result<String, MintError> {
    mint(store, new, "pat").await
}

async fn mint(store: &Store, new: NewToken, kind: &str) -> Result<String, MintError> {
    if !is_segment(new.account.as_str()) {
        return Err(MintError::Account(new.account));
    }
    let id = Uuid::new_v4().simple().to_string();
    // Two random UUIDs: 244 bits that nobody can guess.
    let secret = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let text = format!("{kind}.{}.{id}.{secret}", new.account);
    let record = TokenRecord {
        account: new.account,
        principal: new.principal,
        id,
        name: new.name,
        permissions: vec![new.permission.as_str().to_owned()],
        valid_from_ms: new.now_ms,
        valid_to_ms: new.valid_to_ms,
    };
    if is_of_person(&text, &record.permissions) {
        let met = store.meet_person(&record.account, &record.principal).await;
        met.map_err(MintError::Store)?;
    }
    store
        .put_token(&text, &record)
        .await
        .map_err(MintError::Store)?;
    Ok(text)
}

/// Whether the store has a token of this text.
///
/// # Errors
/// When the store cannot be read.
pub async fn is_known(store: &Store, text: &str) -> Result<bool, StoreError> {
    Ok(store.get_token(text).await?.is_some())
}

/// Why no token was made.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// The account's id has characters that a token cannot hold.
    #[error("minting a token: the account id `{0}` must consist of letters, digits, `_` and `-`")]
    Account(AccountId),
    /// The store refused.
    #[error("storing the hash of a new token")]
    Store(#[source] StoreError),
}

/// Whether a text has the form `pat.<account>.<id>.<secret>` or `sat.…`.
pub(crate) fn is_well_formed(text: &str) -> bool {
    let mut segments = text.split('.');
    matches!(segments.next(), Some("pat" | "sat"))
        && segments
            .by_ref()
            .take(3)
            .filter(|segment| is_segment(segment))
            .count()
            == 3
        && segments.next().is_none()
}

fn is_segment(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// The record of a token that is valid at `now_ms`.
pub(crate) async fn find(
    store: &Store,
    text: &str,
    now_ms: i64,
) -> Result<Option<TokenInfo>, StoreError> {
    let found = store.valid_token(text, now_ms).await?;
    let Some(ValidToken {
        token: record,
        person,
    }) = found
    else {
        return Ok(None);
    };
    if person.is_none() && is_of_person(text, &record.permissions) {
        // Of an earlier version, which kept nothing of people. Once for each of them, and nothing that a call waits for
        // in vain.
        let met = store.meet_person(&record.account, &record.principal).await;
        if let Err(error) = met {
            tracing::warn!(principal = %record.principal, %error, "somebody is not noted as one who is there");
        }
    }
    Ok(Some(TokenInfo {
        account: record.account,
        principal: record.principal,
        id: record.id,
        name: record.name,
        permissions: record.permissions,
        valid_from_ms: record.valid_from_ms,
        valid_to_ms: record.valid_to_ms,
    }))
}

/// Whether a token is one of somebody who may do something, and not of a service account, a delegate or a reader of logs.
fn is_of_person(text: &str, permissions: &[String]) -> bool {
    let admin = Permission::Admin.as_str();
    text.starts_with("pat.") && permissions.iter().any(|name| name == admin)
}

/// `POST /ng/api/token` (API.md 5): a token for somebody else, `parentIdentifier`, to call the API with; the answer is its
/// text, which is shown once. There are no roles yet: whoever has a token may do everything in the account. Keys group
/// tokens in Harness; there are none here, and `apiKeyIdentifier` is not kept.
pub(crate) async fn create(Call(deps, caller, _): Call, body: Body) -> ApiResult {
    let body = body.object()?;
    let text = |field: &str| {
        let value = body.get(field).and_then(Value::as_str).map(str::trim);
        let value = value.unwrap_or_default();
        let fits = !value.is_empty()
            && value.chars().count() <= LONGEST_NAME
            && !value.chars().any(char::is_control);
        match fits {
            true => Ok(value.to_owned()),
            false => Err(ApiError::field(
                field,
                format!(
                    "must be a text of 1 to {LONGEST_NAME} characters without control characters"
                ),
            )),
        }
    };
    let name = text("name").or_else(|_| text("identifier"))?;
    let kind = body.get("apiKeyType").and_then(Value::as_str);
    let service = match kind {
        None | Some("USER") => false,
        Some("SERVICE_ACCOUNT") => true,
        Some(_) => {
            return Err(ApiError::field(
                "apiKeyType",
                "must be USER or SERVICE_ACCOUNT",
            ));
        }
    };
    let now_ms = deps.runs.clock.now_ms();
    let valid_to_ms = match body.get("validTo") {
        None | Some(Value::Null) => 0,
        Some(value) => value
            .as_i64()
            .filter(|until| *until > now_ms)
            .ok_or_else(|| {
                ApiError::field(
                    "validTo",
                    "must be a time to come, in milliseconds since 1970",
                )
            })?,
    };
    let principal = text("parentIdentifier")?;
    user::check_name("parentIdentifier", &principal)?;
    let principal = PrincipalId::new(principal);
    user::check_there(&deps, &caller.account, &principal).await?;
    let new = NewToken {
        account: caller.account.clone(),
        principal,
        name,
        permission: Permission::Admin,
        now_ms,
        valid_to_ms,
    };
    let principal = new.principal.clone();
    let minted = mint(&deps.store, new, if service { "sat" } else { "pat" }).await;
    let minted = minted.map_err(|error| match error {
        MintError::Store(error) => error.into(),
        MintError::Account(_) => ApiError::new(ErrorName::InvalidRequest, error.to_string()),
    })?;
    tracing::info!(
        target: "slipway::audit",
        principal = %caller.principal,
        token.id = %caller.token.id,
        action = "create token",
        "{} made a token for {principal}", caller.principal
    );
    Ok(success(json!(minted)))
}

/// `POST /ng/api/token/validate`: the body is the token.
pub(crate) async fn validate(State(deps): State<Deps>, body: Body) -> ApiResult {
    let text = body.text().map_err(|_| ApiError::unauthenticated())?.trim();
    let caller = look_up(&deps, text).await?;
    let token = caller.token;
    Ok(success(json!({
        "identifier": token.id,
        "name": token.name,
        "username": caller.principal.as_str(),
        "email": user::email(&caller.principal),
        "validFrom": token.valid_from_ms,
        "validTo": token.valid_to_ms,
        "valid": true,
        "apiKeyType": if text.starts_with("sat.") { "SERVICE_ACCOUNT" } else { "USER" },
        "parentIdentifier": caller.principal.as_str(),
        "accountIdentifier": caller.account.as_str(),
        "tags": {},
    })))
}

#[cfg(test)]
mod tests {
    use super::is_well_formed;

    #[test]
    fn a_token_has_four_segments_of_safe_characters() {
        assert!(is_well_formed("pat.acc-1.id_2.S3"));
        assert!(is_well_formed("sat.a.b.c"));
        for bad in [
            "",
            "pat",
            "pat.a.b",
            "pat.a.b.c.d",
            "pat..b.c",
            "jwt.a.b.c",
            "pat.a.b.c\n",
            "pat.a.b.é",
        ] {
            assert!(!is_well_formed(bad), "{bad:?}");
        }
    }
}
