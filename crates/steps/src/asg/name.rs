//! Names of groups and of their launch templates.

use sha2::{Digest, Sha256};
use slipway_model::status::Failure;

use super::invalid;

/// Longest name of a group (Auto Scaling API reference, `CreateAutoScalingGroup`).
const LONGEST: usize = 255;
/// Longest name of a launch template (EC2 API reference, `CreateLaunchTemplate`); the shortest has 3 letters.
const LONGEST_TEMPLATE: usize = 128;

/// Checks the name that a group is to have.
pub(super) fn check(name: &str) -> Result<(), Failure> {
    let length = name.chars().count();
    let why = if length > LONGEST {
        format!("has {length} characters, and AWS allows {LONGEST}; shorten `asgName`")
    } else if name.contains(':') || name.chars().any(char::is_control) {
        "has a colon or a control character, which AWS does not allow".to_owned()
    } else {
        return Ok(());
    };
    let start: String = name.chars().take(40).collect();
    Err(invalid(format!(
        "the name of the Auto Scaling group `{start}{}` {why}.",
        if length > 40 { "…" } else { "" }
    )))
}

/// The name of a group's launch template: the group's own where EC2 allows it, and otherwise what is left of it with
/// a digest of the whole.
pub(super) fn of_template(group: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "().-/_".contains(letter);
    if (3..=LONGEST_TEMPLATE).contains(&group.len()) && group.chars().all(fits) {
        return group.to_owned();
    }
    let digest = Sha256::digest(group);
    let digest: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let rest = group
        .chars()
        .map(|letter| if fits(letter) { letter } else { '-' });
    let rest: String = rest.take(LONGEST_TEMPLATE - digest.len() - 1).collect();
    format!("{rest}-{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_the_limit() {
        assert!(check(&"n".repeat(255)).is_ok());
        assert!(check(&"n".repeat(256)).is_err());
        assert!(check("a:b").is_err());
        assert_eq!(of_template("web__1"), "web__1");
        assert_eq!(of_template(&"n".repeat(255)).len(), 128);
        assert_ne!(of_template(&"n".repeat(255)), of_template(&"n".repeat(254)));
        assert_eq!(of_template("a b").len(), 20);
        assert_eq!(of_template("a b").split('-').count(), 3);
    }
}
