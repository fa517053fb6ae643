//! Digests as both query languages offer them: `States.Hash` and `$hash`.

use std::fmt::Write as _;

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// The digest of `data` in hexadecimal digits; `None` for an algorithm that the service does not have.
pub(crate) fn hexadecimal(algorithm: &str, data: &str) -> Option<String> {
    Some(match algorithm {
        "MD5" => digits::<Md5>(data),
        "SHA-1" => digits::<Sha1>(data),
        "SHA-256" => digits::<Sha256>(data),
        "SHA-384" => digits::<Sha384>(data),
        "SHA-512" => digits::<Sha512>(data),
        _ => return None,
    })
}

fn digits<D: Digest>(data: &str) -> String {
    let mut text = String::new();
    for byte in D::digest(data.as_bytes()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
