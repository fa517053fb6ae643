//! Values of others in messages of ours.

/// Most characters of a value that a message shows.
const SHOWN: usize = 100;

/// A value for a message: at most 100 characters of it, and none that would move a cursor or start a line.
pub(crate) fn shown(value: &str) -> String {
    let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut text: String = value.chars().take(SHOWN).map(visible).collect();
    if value.chars().nth(SHOWN).is_some() {
        text.push('…');
    }
    text
}
