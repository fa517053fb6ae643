//! The log of a step, collected line by line and written in batches.

use slipway_clock::Clock;
use slipway_store::record::LogLine;

/// Longest line in bytes; the log service's own limit is 64 KiB with the envelope.
const LONGEST_LINE: usize = 60 * 1024;

/// Lines that are not written yet, in the order in which they came.
#[derive(Default)]
pub(crate) struct LogBuffer(Vec<(&'static str, LogLine)>);

impl LogBuffer {
    /// Adds a line; control characters that could change how a terminal shows others are taken out.
    pub(crate) fn push(&mut self, clock: &Clock, unit: &'static str, level: &str, text: &str) {
        let mut out: String = text
            .chars()
            .filter(|c| !c.is_control() || matches!(c, '\t' | '\n'))
            .collect();
        if out.len() > LONGEST_LINE {
            let end = (0..=LONGEST_LINE)
                .rev()
                .find(|end| out.is_char_boundary(*end))
                .unwrap_or(0);
            out.truncate(end);
            out.push('…');
        }
        out.push('\n');
        let line = LogLine {
            level: level.to_owned(),
            out,
            time: clock.now().to_string(),
        };
        self.0.push((unit, line));
    }

    /// Forgets what is not written yet.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes what is there, grouped by unit.
    pub(crate) fn take(&mut self) -> Vec<(&'static str, Vec<LogLine>)> {
        let mut groups: Vec<(&'static str, Vec<LogLine>)> = Vec::new();
        for (unit, line) in self.0.drain(..) {
            match groups.iter_mut().find(|(known, _)| *known == unit) {
                Some((_, lines)) => lines.push(line),
                None => groups.push((unit, vec![line])),
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_cannot_hide_others_or_grow_without_end() {
        let mut log = LogBuffer::default();
        log.push(&Clock::system(), "Deploy", "INFO", "a\x1b[2K\rb\0");
        log.push(&Clock::system(), "Fetch", "INFO", &"é".repeat(40_000));
        let groups = log.take();
        assert_eq!(groups[0].1[0].out, "a[2Kb\n");
        assert!(groups[1].1[0].out.len() <= LONGEST_LINE + 4);
        assert!(log.take().is_empty());
    }
}
