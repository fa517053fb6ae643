//! A function as it is: whether it can be changed, whether a change of it worked.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_model::status::{ErrorType, Failure};

use super::manifest::short;
use super::site::Site;
use crate::context::StepContext;

/// What is not published of a function; an alias may point to it, too.
pub(super) const LATEST: &str = "$LATEST";

/// Longest time between two looks.
const LONGEST_PAUSE: u64 = 10;

/// Where a function or version stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is being created or changed; why, as AWS says it.
    Moving(String),
    /// It can be changed, and its last change worked.
    Settled,
    /// It was not created, or its last change did not work; why, as AWS says it.
    Broken(String),
}

impl Standing {
    /// Of a `FunctionConfiguration`.
    pub(super) fn of(configuration: &Value) -> Self {
        let text = |name: &str| configuration[name].as_str().unwrap_or_default();
        let reason = |prefix: &str| {
            let (reason, code) = (
                text(&format!("{prefix}Reason")),
                text(&format!("{prefix}ReasonCode")),
            );
            match (reason, code) {
                ("", "") => "AWS gives no reason".to_owned(),
                (reason, "") => reason.to_owned(),
                (reason, code) => format!("{reason} ({code})"),
            }
        };
        match (text("State"), text("LastUpdateStatus")) {
            ("Failed", _) => Self::Broken(reason("State")),
            ("Pending", _) => Self::Moving(reason("State")),
            (_, "Failed") => Self::Broken(reason("LastUpdateStatus")),
            (_, "InProgress") => Self::Moving(reason("LastUpdateStatus")),
            _ => Self::Settled,
        }
    }
}

/// What is remembered between two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Watch {
    looks: u64,
    told: bool,
}

impl Watch {
    /// When to look again: 1 to 10 seconds, growing.
    pub(super) fn pause(&mut self) -> Duration {
        self.looks += 1;
        Duration::from_secs((1 + self.looks / 3).min(LONGEST_PAUSE))
    }

    /// Another wait begins.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Says once for each wait that a change is under way, by somebody else or by this run before an interruption.
    pub(super) fn tell_busy(
        &mut self,
        cx: &mut StepContext<'_>,
        (site, name): (&Site, &str),
        unit: &'static str,
    ) {
        if !self.told {
            self.told = true;
            let name = short(name);
            cx.info(
                unit,
                format!(
                    "Function [{name}] in {site} is being changed: waiting for the end of that"
                ),
            );
        }
    }

    /// Says once for each wait what is waited for.
    pub(super) fn tell_status(
        &mut self,
        cx: &mut StepContext<'_>,
        name: &str,
        reason: &str,
        unit: &'static str,
    ) {
        if !self.told {
            self.told = true;
            let name = short(name);
            cx.info(unit, "Verifying if status of function to be Successful");
            cx.info(
                unit,
                format!("function: [{name}], status: [InProgress], reason: [{reason}]"),
            );
        }
    }
}

/// A function that somebody else changed under this run.
pub(super) fn moved(site: &Site, name: &str, what: &str) -> Failure {
    refused(format!(
        "Function {} in {site} was changed by somebody else while this run deployed it: {what}. Nothing of theirs is \
         overwritten: look at who changes it, and run the pipeline again.",
        short(name)
    ))
}

/// A function that is no longer there.
pub(super) fn vanished(site: &Site, name: &str) -> Failure {
    refused(format!(
        "Function {} in {site} no longer exists: somebody or something else deleted it.",
        short(name)
    ))
}

/// A change of a function that did not work.
pub(super) fn broken(site: &Site, (name, what): (&str, &str), reason: &str) -> Failure {
    refused(format!(
        "{what} of function {} in {site} failed: {reason}",
        short(name)
    ))
}

pub(super) fn refused(message: String) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message,
        left_behind: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn standings() {
        let table = [
            (
                json!({"State": "Active", "LastUpdateStatus": "Successful"}),
                "Settled",
            ),
            (json!({"State": "Inactive"}), "Settled"),
            (json!({}), "Settled"),
            (
                json!({"State": "Pending", "StateReason": "new", "StateReasonCode": "Creating"}),
                "Moving(\"new (Creating)\")",
            ),
            (
                json!({"State": "Active", "LastUpdateStatus": "InProgress"}),
                "Moving(\"AWS gives no reason\")",
            ),
            (
                json!({"State": "Failed", "LastUpdateStatus": "InProgress", "StateReason": "no"}),
                "Broken(\"no\")",
            ),
            (
                json!({"State": "Active", "LastUpdateStatus": "Failed", "LastUpdateStatusReasonCode": "InvalidImage"}),
                "Broken(\" (InvalidImage)\")",
            ),
        ];
        for (configuration, expected) in table {
            assert_eq!(
                format!("{:?}", Standing::of(&configuration)),
                expected,
                "{configuration}"
            );
        }
    }
}
