//! What a sender posted.

use serde::{Deserialize, Serialize};

/// Most bytes of a body that are read at all: GitHub sends at most 25 MB, all others less than one.
pub const MOST_BODY: usize = 25 * 1024 * 1024;

/// A request to a webhook, as it arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Names in lower case, in the order of arrival; a name may come more than once.
    pub headers: Vec<(String, String)>,
    /// The raw bytes: signatures are over them.
    pub body: Vec<u8>,
}

impl Delivery {
    /// The value of a header, where it came once. Two values of one header are no value: which of them a sender meant
    /// cannot be known.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self
            .headers
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let (_, value) = found.next()?;
        found.next().is_none().then_some(value.as_str())
    }
}
