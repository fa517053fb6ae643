//! Which versions may get traffic, and which may share it.

use serde_json::Value;
use slipway_model::status::Failure;

use super::calls;
use super::function::{Standing, broken, vanished};
use super::restore::as_request;
use super::site::Site;

/// Whether a version may get traffic.
pub(super) enum Ready {
    Yes,
    /// Why not yet.
    NotYet(String),
}

/// Looks whether a published version is Active. Fails where it never will be.
pub(super) async fn ready(site: &Site, name: &str, version: &str) -> Result<Ready, Failure> {
    let Some(found) = calls::configuration(site, name, Some(version)).await? else {
        return Err(vanished(site, &format!("{name}:{version}")));
    };
    match Standing::of(&found) {
        Standing::Settled => Ok(Ready::Yes),
        Standing::Moving(reason) => Ok(Ready::NotYet(reason)),
        Standing::Broken(reason) => {
            let what = format!("Version {version}");
            Err(broken(
                site,
                (name, &what),
                &format!("it gets no traffic: {reason}"),
            ))
        }
    }
}

/// Settings that both versions behind an alias must have the same ("Configuring versions for an alias", developer
/// guide), and what they are called.
const SHARED: [(&str, &str); 2] = [
    ("Role", "execution role"),
    ("DeadLetterConfig", "dead-letter queue"),
];

/// What a canary could not share traffic for, before anything is changed.
pub(super) fn unlike(now: &Value, wanted: &Value) -> Option<&'static str> {
    let now = as_request(now);
    let differs = |name: &str| {
        let wanted = &wanted[name];
        !wanted.is_null() && now.get(name).is_some_and(|now| now != wanted)
    };
    SHARED
        .iter()
        .find(|(name, _)| differs(name))
        .map(|(_, what)| *what)
}
