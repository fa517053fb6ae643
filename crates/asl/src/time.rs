//! Times in definitions and payloads.

use jiff::Timestamp;

/// A time in the form that the language demands: date, `T`, time, and `Z` or an offset.
pub(crate) fn extended_offset(text: &str) -> Option<Timestamp> {
    let time = text.get(10..)?.strip_prefix('T')?;
    let has_offset = time.ends_with('Z') || time.contains('+') || time.contains('-');
    has_offset.then(|| text.parse().ok()).flatten()
}
