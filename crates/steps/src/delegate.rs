//! What the service and a delegate say to each other over REST (`/slipway/api/delegate/tasks/{id}`).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Header with the name of the delegate that claims a task.
pub const NAME_HEADER: &str = "x-delegate-name";

/// Header with the selectors that the delegate carries, joined by commas.
pub const SELECTORS_HEADER: &str = "x-delegate-selectors";

/// Selector of a delegate that takes every task.
pub const ANY_SELECTOR: &str = "*";

/// Error of the activity when a delegate got a task whose selectors it does not carry: another delegate
/// gets it then.
pub const UNSUITABLE: &str = "DelegateUnsuitable";

/// Answer to a claim. Holds values of secrets, and so has no `Debug` and is never logged.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimedTask {
    /// The task.
    pub id: String,
    /// `ShellScript`, ….
    pub task_type: String,
    /// What to do; its texts hold references of secrets, encoded as [`slipway_expr::SecretText`] says.
    pub payload: Value,
    /// Values of the secrets that the payload refers to.
    #[serde(default)]
    pub secrets: Vec<SecretValue>,
    /// Selectors that the delegate must carry, all of them.
    #[serde(default)]
    pub selectors: Vec<String>,
    /// What is left of the time of the task, in seconds.
    pub timeout_seconds: u64,
}

/// One secret of a claimed task.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretValue {
    /// The encoded hole ([`slipway_expr::SecretText::encode`]) that the value fills.
    pub placeholder: String,
    /// The value.
    pub value: String,
}

/// Whether a delegate with these selectors may do a task that asks for others.
pub fn suits(carried: &[String], name: &str, wanted: &[String]) -> bool {
    lacking(carried, name, wanted).is_empty()
}

/// The selectors that a delegate would need beside its own for a task that asks for some: it must carry all of them,
/// and its name is one that it always carries (docs: platform/delegates/manage-delegates/
/// select-delegates-with-selectors).
pub fn lacking<'w>(carried: &[String], name: &str, wanted: &'w [String]) -> Vec<&'w str> {
    if carried.iter().any(|selector| selector == ANY_SELECTOR) {
        return Vec::new();
    }
    let lacks = |selector: &&String| !carried.contains(*selector) && *selector != name;
    wanted.iter().filter(lacks).map(String::as_str).collect()
}
