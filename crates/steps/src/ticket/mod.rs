//! What steps of ticket systems share: a client of JSON over HTTP, patience, and the wait of an approval.

mod login;
pub(crate) mod poll;
pub(crate) mod server;
pub(crate) mod stop;
mod test;
pub(crate) mod text;

pub(crate) use poll::{Poll, Verdict};
pub(crate) use server::{Call, Server};
pub(crate) use stop::{Stop, Tries, go_on};
pub use test::test;

/// The one command unit of these steps.
pub(crate) const UNIT: &str = "Execute";

/// A key or number that goes into addresses and queries: nothing in it can be more than a name.
pub(crate) fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !text.is_empty() && text.len() <= 255 && text.chars().all(allowed)
}

/// Says which ticket the outputs are of, and what they lack.
pub(crate) fn tell(cx: &mut crate::StepContext<'_>, name: &str, url: &str, left_out: &[String]) {
    cx.info(UNIT, format!("{name} {url}"));
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        cx.warn(
            UNIT,
            format!("Fields that are too large for outputs were left out: {names}"),
        );
    }
}

/// What marks a ticket that this attempt of the step creates, so that it is found again after a crash.
pub(crate) fn marker(cx: &crate::StepContext<'_>) -> String {
    use sha2::{Digest, Sha256};
    let who = format!("{}\n{}\n{}", cx.run(), cx.node(), cx.attempt());
    let digest = Sha256::digest(who);
    let hex: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("slipway-{hex}")
}
