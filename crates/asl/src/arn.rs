//! Names and ARNs of machines, executions and activities.
//!
//! Shapes: Step Functions Developer Guide, "Resource types defined by AWS Step Functions".

use crate::error::ApiError;

/// Longest name of a machine, an execution or an activity (API reference, `CreateStateMachine`).
const LONGEST_NAME: usize = 80;

/// The partition, region and account that every ARN of one engine starts with.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) region: String,
    pub(crate) account: String,
}

impl Home {
    pub(crate) fn machine(&self, name: &str) -> String {
        format!(
            "arn:aws:states:{}:{}:stateMachine:{name}",
            self.region, self.account
        )
    }

    pub(crate) fn execution(&self, machine: &str, name: &str) -> String {
        format!(
            "arn:aws:states:{}:{}:execution:{machine}:{name}",
            self.region, self.account
        )
    }

    pub(crate) fn express(&self, machine: &str, name: &str) -> String {
        format!(
            "arn:aws:states:{}:{}:express:{machine}:{name}",
            self.region, self.account
        )
    }

    pub(crate) fn activity(&self, name: &str) -> String {
        format!(
            "arn:aws:states:{}:{}:activity:{name}",
            self.region, self.account
        )
    }
}

/// Refuses a text that is not an ARN of Step Functions with resource type `kind`.
pub(crate) fn check(arn: &str, kind: &str) -> Result<(), ApiError> {
    let mut parts = arn.splitn(7, ':');
    let mut next = || parts.next().unwrap_or_default();
    let fits = next() == "arn"
        && next().starts_with("aws")
        && next() == "states"
        && !next().is_empty()
        && !next().is_empty()
        && next() == kind
        && !next().is_empty();
    if fits {
        return Ok(());
    }
    Err(ApiError::new(
        "InvalidArn",
        format!("Invalid Arn: 'Resource type not valid in this context: {arn}'"),
    ))
}

/// Refuses names that the API refuses: empty, too long, or with white space, wildcards, brackets,
/// control or reserved characters.
pub(crate) fn check_name(name: &str) -> Result<(), ApiError> {
    let bad =
        |c: char| c.is_whitespace() || c.is_control() || "?*<>{}[]\"#%\\^|~`$&,;:/".contains(c);
    if name.is_empty() || name.chars().count() > LONGEST_NAME || name.chars().any(bad) {
        return Err(ApiError::new(
            "InvalidName",
            format!("Invalid Name: '{name}'"),
        ));
    }
    Ok(())
}
