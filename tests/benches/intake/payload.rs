//! Pushes as GitHub tells of them, each of a commit of its own.

use std::sync::atomic::{AtomicU64, Ordering};

use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use serde_json::json;
use sha2::Sha256;

pub(crate) const SECRET: &str = "a secret of the bench";

/// Bytes of a body.
const SIZE: usize = 8 * 1024;

static NUMBER: AtomicU64 = AtomicU64::new(1);

pub(crate) struct Push {
    number: u64,
    body: String,
    signature: String,
}

/// A new push to a repository, signed with the right secret or another.
pub(crate) fn push(repository: &str, right: bool) -> Push {
    let number = NUMBER.fetch_add(1, Ordering::SeqCst);
    let (before, after) = (format!("{:040x}", number - 1), format!("{number:040x}"));
    let now = Timestamp::now();
    let mut body = json!({
        "ref": "refs/heads/main", "before": before, "after": after, "created": false, "deleted": false,
        "repository": {
            "id": 1, "name": repository, "full_name": format!("acme/{repository}"),
            "html_url": format!("https://github.com/acme/{repository}"), "pushed_at": now.as_second(),
        },
        "sender": {"login": "alex"},
        "commits": [{"id": after, "message": "", "timestamp": now.to_string(), "added": [], "removed": [], "modified": ["a"]}],
    });
    let length = body.to_string().len();
    body["commits"][0]["message"] = "x".repeat(SIZE.saturating_sub(length)).into();
    let body = body.to_string();
    let secret = if right { SECRET } else { "another secret" };
    let signature = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map(|mut mac| {
        mac.update(body.as_bytes());
        let bytes = mac.finalize().into_bytes();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    });
    Push {
        number,
        body,
        signature: signature.unwrap_or_default(),
    }
}

impl Push {
    /// The whole request.
    pub(crate) fn request(&self, path: &str) -> Vec<u8> {
        format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nX-GitHub-Event: push\r\nX-GitHub-Delivery: bench-{}\r\nX-Hub-Signature-256: sha256={}\r\nContent-Length: {}\r\n\r\n{}",
            self.number,
            self.signature,
            self.body.len(),
            self.body
        )
        .into_bytes()
    }
}
