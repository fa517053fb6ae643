//! What the audit trail hears of deliveries that start nothing: whoever sends rubbish must not fill it, nor write it.

use std::sync::{Mutex, PoisonError};

/// Lines of one minute.
const PER_MINUTE: u32 = 60;

/// Characters of a name that are shown.
const LONGEST: usize = 128;

/// The minute, and how many lines were told in it.
#[derive(Default)]
pub(crate) struct Told(Mutex<(i64, u32)>);

impl Told {
    /// Whether one more line may be told.
    pub(crate) fn one_more(&self, now_ms: i64) -> bool {
        let minute = now_ms.div_euclid(60_000);
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.0 != minute {
            *told = (minute, 0);
        }
        told.1 = told.1.saturating_add(1);
        told.1 <= PER_MINUTE
    }
}

/// A name that a sender chose: short, and nothing in it ends a line.
pub(crate) fn shown(name: &str) -> String {
    let shown = name.chars().take(LONGEST);
    shown.flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::{PER_MINUTE, Told, shown};

    #[test]
    fn so_many_lines_are_told_in_a_minute() {
        let told = Told::default();
        let of = |at_ms| (0..100).filter(|_| told.one_more(at_ms)).count();
        assert_eq!([of(59_999), of(60_000)], [PER_MINUTE as usize; 2]);
        assert!(!told.one_more(60_001));
    }

    #[test]
    fn a_name_is_short_and_on_one_line() {
        assert_eq!(shown("a\nb\u{1b}[0m"), "a\\nb\\u{1b}[0m");
        assert_eq!(shown(&"x".repeat(10_000)).len(), 128);
    }
}
