//! Ids of Amazon machine images.

/// Whether a text is the id of an image, and not a name that begins like one: `ami-` and 8 or 17 hexadecimal digits (EC2
/// user guide, *Resource IDs*).
pub fn is_image_id(text: &str) -> bool {
    let digits = text.strip_prefix("ami-").unwrap_or_default();
    matches!(digits.len(), 8 | 17) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_begins_like_an_id_is_none() {
        for id in ["ami-1a2b3c4d", "ami-0123456789abcdef0"] {
            assert!(is_image_id(id), "{id}");
        }
        for name in [
            "ami-",
            "ami-web-1.2",
            "ami-2026010",
            "AMI-1a2b3c4d",
            "1a2b3c4d",
            "ami-0123456789abcdefg",
            "ami-0123456789abcdef01",
        ] {
            assert!(!is_image_id(name), "{name}");
        }
    }
}
