//! `GetAuthorizationToken`: what `docker login` is given.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::name::invalid;
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Fields, epoch};

/// How long a token is good for (ECR API reference, `GetAuthorizationToken`).
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// Most registries that one request names.
const MOST: usize = 10;

/// A token for each registry that is named, which is the account's own where none is. Nothing is behind them: there are no
/// layers here to push or to pull.
pub(super) fn get(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let own = account.id.clone();
    let mut registries = request.texts("registryIds")?;
    if registries.len() > MOST {
        let rule = format!("Member must have length less than or equal to {MOST}");
        return Err(invalid("registryIds", &rule));
    }
    if registries.is_empty() {
        registries.push(&own);
    }
    let mut data = Vec::new();
    for registry in registries {
        if registry.len() != 12 || !registry.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid(
                "registryIds",
                "must satisfy regular expression '[0-9]{12}'",
            ));
        }
        let password = account.draw_key(48);
        let suffix = if caller.region.starts_with("cn-") {
            ".cn"
        } else {
            ""
        };
        data.push(json!({
            "authorizationToken": STANDARD.encode(format!("AWS:{password}")),
            "expiresAt": epoch(account.later(LIFETIME)),
            "proxyEndpoint": format!("https://{registry}.dkr.ecr.{}.amazonaws.com{suffix}", caller.region),
        }));
    }
    Ok(json!({"authorizationData": data}))
}
