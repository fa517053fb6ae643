//! Who there is in an account, and who has left it.

use serde::{Deserialize, Serialize};
use slipway_model::id::{AccountId, PrincipalId};

/// Somebody who has, or had, a token of the API. Tokens are found by their text alone; this is what tells whose they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonRecord {
    /// The account.
    pub account: AccountId,
    /// What they are called: as their tokens say.
    pub principal: PrincipalId,
    /// When they were seen first, epoch milliseconds.
    pub since_ms: i64,
    /// That they were removed; `None` of those who are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Removal>,
}

/// That somebody was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal {
    /// When, epoch milliseconds.
    pub at_ms: i64,
    /// Who did it.
    pub by: PrincipalId,
}
