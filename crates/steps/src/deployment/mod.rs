//! What the steps of all deployment types share: their command units, the loop over phases, specs field by field,
//! manifests, what is known of the deployment that another one replaces, and what others did meanwhile.

mod foreign;
pub(crate) mod manifest;
pub(crate) mod phases;
mod replaced;
pub(crate) mod spec;
mod touched;

use std::fmt;

use serde::Serialize;
use sha2::{Digest, Sha256};
use slipway_model::status::{ErrorType, Failure};

use crate::context::StepContext;

pub(crate) use foreign::Foreign;
pub(crate) use replaced::Replaced;
pub(crate) use touched::Touched;

/// Command unit that reads the manifests.
pub(crate) const FETCH: &str = "Fetch manifests";
/// Command unit that writes down how to undo.
pub(crate) const PREPARE: &str = "Prepare rollback data";
/// Command unit that changes the account.
pub(crate) const DEPLOY: &str = "Deploy";
/// Command unit of rollback steps.
pub(crate) const ROLLBACK: &str = "Rollback";

/// Writes into a step's log why it failed, if it did.
pub(crate) fn told<T>(
    cx: &mut StepContext<'_>,
    units: &[&'static str],
    result: Result<T, Failure>,
) -> Result<T, Failure> {
    if let Err(failure) = &result {
        let unit = open_unit(cx, units);
        cx.error(unit, &failure.message);
    }
    result
}

/// The unit that a failure belongs to: the one that is open, or the last.
pub(crate) fn open_unit(cx: &StepContext<'_>, units: &[&'static str]) -> &'static str {
    let open = units.iter().find(|name| cx.unit_is_open(name));
    open.or(units.last()).copied().unwrap_or(DEPLOY)
}

/// The same for every repetition of one attempt: at most 36 characters (`CreateService`, `clientToken`).
pub(crate) fn token(cx: &StepContext<'_>) -> String {
    let mut hash = Sha256::new();
    for part in [
        cx.run().as_str(),
        cx.node().as_str(),
        &cx.attempt().to_string(),
    ] {
        hash.update(part);
        hash.update([0]);
    }
    hash.finalize()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A request that cannot be carried out as it is written.
pub(crate) fn invalid(message: impl fmt::Display) -> Failure {
    wrong(format!("Invalid request: {message}"))
}

/// A rollback step was ended before its end, by its timeout or by somebody: what a person must look at, and what may not
/// be back.
pub(crate) fn unended(cx: &mut StepContext<'_>, look_at: &str, left: String) -> Failure {
    let unended = format!("The rollback did not end: look at {look_at}");
    cx.error(ROLLBACK, &unended);
    Failure {
        left_behind: Some(format!("{left}.")),
        ..wrong(format!("{unended}."))
    }
}

/// What AWS refused leaves nothing: the count that was noted before the call ([`StepContext::keeps`]) is taken back, unless
/// the call may have arrived.
pub(crate) async fn unless_refused<T: Send>(
    cx: &mut StepContext<'_>,
    told: Result<T, Failure>,
    state: &(impl Serialize + Sync),
) -> Result<T, Failure> {
    if told
        .as_ref()
        .is_err_and(|failure| failure.error != ErrorType::Connectivity)
    {
        cx.keeps_nothing();
        cx.save(state).await?;
    }
    told
}

/// A failure of no kind that failure strategies know by name.
pub(crate) fn wrong(message: String) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message,
        left_behind: None,
    }
}
