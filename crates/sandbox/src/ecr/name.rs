//! Names: of repositories, tags and digests.

use crate::error::ApiError;

/// Whether this can be a repository: parts of small letters and digits between `/`, with single `.`, `-` and runs of `_`
/// and `-` inside (API reference, *CreateRepository*).
pub(super) fn is_repository(name: &str) -> bool {
    let part = |part: &str| {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = part.as_bytes();
        let ends =
            bytes.first().is_some_and(|b| letter(*b)) && bytes.last().is_some_and(|b| letter(*b));
        ends && bytes.iter().all(|b| letter(*b) || b"._-".contains(b)) && !part.contains("..")
    };
    (2..=256).contains(&name.len()) && name.split('/').all(part)
}

/// Whether this can be a tag.
pub(super) fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let rest = |byte: u8| word(byte) || byte == b'.' || byte == b'-';
    let bytes = tag.as_bytes();
    bytes.len() <= 128
        && bytes.first().is_some_and(|byte| word(*byte))
        && bytes.iter().all(|byte| rest(*byte))
}

/// Whether this is a digest.
pub(super) fn is_digest(digest: &str) -> bool {
    digest.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Account, region and what follows of an image in a registry of Amazon ECR
/// (`<account>.dkr.ecr.<region>.amazonaws.com/<repository>:<tag>`).
pub(super) fn registry(image: &str) -> Option<(&str, &str, &str)> {
    let (host, rest) = image.split_once('/')?;
    let (account, host) = host.split_once(".dkr.ecr.")?;
    let (region, domain) = host.split_once('.')?;
    let known = ["amazonaws.com", "amazonaws.com.cn"].contains(&domain);
    known.then_some((account, region, rest))
}

/// Whether an image is in a private registry of Amazon ECR, of any account.
pub(crate) fn is_private(image: &str) -> bool {
    registry(image).is_some()
}

/// What ECR says of a parameter that is not what it should be.
pub(super) fn invalid(parameter: &str, constraint: &str) -> ApiError {
    ApiError::invalid_parameter(format!(
        "Invalid parameter at '{parameter}' failed to satisfy constraint: '{constraint}'"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_the_registry() {
        for good in ["web", "team/web", "a1/b-c/d_e.f"] {
            assert!(is_repository(good), "{good}");
        }
        for bad in [
            "", "a", "Web", "web/", "/web", "a//b", "-web", "web..x", "we b", "wéb",
        ] {
            assert!(!is_repository(bad), "{bad}");
        }
        assert!(is_tag("v1.0-x_Y") && is_tag("_"));
        assert!(!is_tag("") && !is_tag(".v1") && !is_tag("a b") && !is_tag(&"a".repeat(129)));
        assert!(is_digest(&format!("sha256:{}", "0a".repeat(32))));
        assert!(!is_digest("sha256:0a") && !is_digest(&format!("sha256:{}", "0A".repeat(32))));
    }
}
