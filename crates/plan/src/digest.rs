//! The one text of a plan, and its digest.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::Plan;

impl Plan {
    /// The plan as JSON: the same bytes for the same plan.
    ///
    /// # Errors
    /// When the plan cannot be written as JSON, which no plan that [`crate::resolve`] makes does.
    pub fn canonical_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// SHA-256 of [`Plan::canonical_json`] in hexadecimal: the key that the plan is stored under.
    ///
    /// # Errors
    /// As [`Plan::canonical_json`].
    pub fn digest(&self) -> Result<String, serde_json::Error> {
        let mut hex = String::with_capacity(64);
        for byte in Sha256::digest(self.canonical_json()?) {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        Ok(hex)
    }
}
