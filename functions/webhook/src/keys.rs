//! Tokens of the API that come with a delivery.

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
    let now_ms = deps.runs.clock.now_ms();
    let found = deps.runs.store.valid_token(text, now_ms).await?;
    let found = found.ok_or_else(wrong)?.token;
    let may = found.permissions.iter().any(|it| it == "admin");
    match found.account == *account && may {
        true => Ok(true),
        false => Err(wrong()),
    }
}
