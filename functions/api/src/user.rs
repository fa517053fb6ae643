//! The current user and its account: what clients ask at login.

use axum::extract::{Extension, Path};
use serde_json::{Value, json};

use crate::auth::Caller;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};

pub(crate) use slipway_engine::user_group::email;

/// `GET /ng/api/user/currentUser`.
pub(crate) async fn current(Extension(caller): Extension<Caller>) -> ApiResult {
    Ok(success(json!({
        "uuid": caller.principal.as_str(),
        "name": caller.principal.as_str(),
        "email": email(&caller.principal),
        "admin": true,
        "accounts": [account_json(&caller)],
        "defaultAccountId": caller.account.as_str(),
        "locked": false,
        "disabled": false,
        "externallyManaged": false,
        "twoFactorAuthenticationEnabled": false,
        "emailVerified": true,
    })))
}

/// `GET /ng/api/accounts/{accountIdentifier}`.
pub(crate) async fn account(
    Extension(caller): Extension<Caller>,
    Path(account): Path<String>,
) -> ApiResult {
    if account != caller.account.as_str() {
        return Err(ApiError::forbidden());
    }
    Ok(success(account_json(&caller)))
}

fn account_json(caller: &Caller) -> Value {
    json!({
        "identifier": caller.account.as_str(),
        "uuid": caller.account.as_str(),
        "name": caller.account.as_str(),
        "accountName": caller.account.as_str(),
        "companyName": caller.account.as_str(),
        "defaultExperience": "NG",
        "authenticationMechanism": "USER_PASSWORD",
        "nextGenEnabled": true,
        "accountStatus": "ACTIVE",
    })
}
