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
    let now = Value::Object(as_request(now));
    let differs = |name: &str| {
        let (now, wanted) = (&now[name], &wanted[name]);
        match name {
            _ if now.is_null() || wanted.is_null() => false,
            // Without a target there is no queue, however that is written.
            "DeadLetterConfig" => queue(now) != queue(wanted),
            _ => now != wanted,
        }
    };
    SHARED
        .iter()
        .find(|(name, _)| differs(name))
        .map(|(_, what)| *what)
}

fn queue(config: &Value) -> &str {
    config["TargetArn"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_without_a_queue_are_alike_however_that_is_written() {
        let arn = "arn:aws:sqs:eu-west-1:123456789012:dead";
        let none = json!({"Role": "role"});
        let one = json!({"Role": "role", "DeadLetterConfig": {"TargetArn": arn}});
        let nothings = [
            json!(null),
            json!({}),
            json!({"TargetArn": ""}),
            json!({"TargetArn": null}),
        ];
        for nothing in &nothings {
            assert_eq!(
                unlike(&none, &json!({"DeadLetterConfig": nothing})),
                None,
                "{nothing}"
            );
        }
        for nothing in &nothings[1..] {
            let found = unlike(&one, &json!({"DeadLetterConfig": nothing}));
            assert_eq!(found, Some("dead-letter queue"), "{nothing}");
        }
        // What is not given stays as it is.
        assert_eq!(unlike(&one, &json!({"Role": "role"})), None);
        assert_eq!(unlike(&one, &one), None);
        assert_eq!(unlike(&none, &one), Some("dead-letter queue"));
        assert_eq!(
            unlike(&none, &json!({"Role": "other"})),
            Some("execution role")
        );
    }
}
