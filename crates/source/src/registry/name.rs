//! Names as the OCI distribution specification allows them: nothing else becomes a part of an address.

/// A repository: parts between `/`.
pub(super) fn repository(name: &str) -> Result<(), String> {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(|byte| letter(*byte))
            && bytes.last().is_some_and(|byte| letter(*byte))
            && bytes
                .iter()
                .all(|byte| letter(*byte) || b"._-".contains(byte))
            && !part.contains("..")
    };
    match name.len() <= 255 && name.split('/').all(part) {
        true => Ok(()),
        false => Err(format!(
            "`{name}` is no name of a repository: those have small letters, digits, `.`, `_`, `-` and `/`"
        )),
    }
}

/// A tag.
pub(super) fn tag(name: &str) -> Result<(), String> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = name.as_bytes();
    let good = bytes.len() <= 128
        && bytes.first().is_some_and(|byte| word(*byte))
        && bytes.iter().all(|byte| word(*byte) || b".-".contains(byte));
    match good {
        true => Ok(()),
        false => Err(format!(
            "`{name}` is no tag: those have at most 128 letters, digits, `.`, `_` and `-`"
        )),
    }
}

/// A digest, as every registry has them today.
pub(super) fn digest(text: &str) -> Result<(), String> {
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    let good = hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    match good {
        true => Ok(()),
        false => Err(format!(
            "`{text:.80}` is no digest: those are `sha256:` and 64 digits of 0-9 and a-f"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_leads_elsewhere_is_a_name() {
        for good in ["web", "library/web", "a/b-c/d_e.f"] {
            assert!(repository(good).is_ok(), "{good}");
        }
        for bad in [
            "", "../x", "a/../b", "a//b", "a/", "A", "a?b", "a#b", "a%2fb", "a b", "a@b",
        ] {
            assert!(repository(bad).is_err(), "{bad}");
        }
        assert!(tag("v1.0").is_ok() && tag("_x").is_ok());
        for bad in ["", "../x", "a/b", "a?b", "-a", "a\nb", "a:b"] {
            assert!(tag(bad).is_err(), "{bad}");
        }
        assert!(digest(&format!("sha256:{}", "ab".repeat(32))).is_ok());
        for bad in [
            "",
            "sha256:ab",
            "md5:00",
            &format!("sha256:{}", "AB".repeat(32)),
        ] {
            assert!(digest(bad).is_err(), "{bad}");
        }
    }
}
