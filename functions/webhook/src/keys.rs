//! Tokens of the API that come with a delivery.

use sha2::{Digest as _, Sha256};
use slipway_model::id::AccountId;
use slipway_trigger::Delivery;

use crate::{Deps, Refused};

/// Whether a delivery comes with a token of the API that may start runs of the account. One that is sent and not right is
/// refused.
pub(crate) async fn is_token(
    deps: &Deps,
    account: &AccountId,
    delivery: &Delivery,
) -> Result<bool, Refused> {
    let sent = delivery.headers.iter().any(|(name, _)| name == "x-api-key");
    if !sent {
        return Ok(false);
    }
    let wrong = || {
        let why = "Token is not valid, is expired, or does not permit this: leave x-api-key away, or send a right one";
        Refused::Unauthenticated(why.to_owned())
    };
    let text = delivery.header("x-api-key").ok_or_else(wrong)?;
    let hash: String = Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let record = deps.runs.store.get_token(&hash).await?.ok_or_else(wrong)?;
    let now_ms = deps.runs.clock.now_ms();
    let expired = record.valid_to_ms != 0 && record.valid_to_ms <= now_ms;
    let may = record.permissions.iter().any(|it| it == "admin");
    match record.account == *account && !expired && may {
        true => Ok(true),
        false => Err(wrong()),
    }
}
