//! The fields of a cron expression: which values they name, and what is wrong with them.

use std::fmt::Write as _;

/// What one field means.
pub(super) struct Kind {
    /// Its name, for messages.
    pub(super) name: &'static str,
    pub(super) least: u16,
    pub(super) most: u16,
    /// Names of values, from `least` on.
    names: &'static [&'static str],
    /// Whether a range may go over the end and on from the start: `22-2`, `FRI-MON`.
    wraps: bool,
}

const MONTHS: &[&str] = &[
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const DAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const fn kind(name: &'static str, least: u16, most: u16) -> Kind {
    Kind {
        name,
        least,
        most,
        names: &[],
        wraps: true,
    }
}

pub(super) const SECOND: Kind = kind("second", 0, 59);
pub(super) const MINUTE: Kind = kind("minute", 0, 59);
pub(super) const HOUR: Kind = kind("hour", 0, 23);
pub(super) const DAY: Kind = kind("day of the month", 1, 31);
pub(super) const MONTH: Kind = Kind {
    names: MONTHS,
    ..kind("month", 1, 12)
};
/// The days of the week as UNIX counts them; 7 is Sunday once more.
pub(super) const UNIX_WEEKDAY: Kind = Kind {
    names: DAYS,
    ..kind("day of the week", 0, 7)
};
/// The days of the week as Quartz counts them.
pub(super) const QUARTZ_WEEKDAY: Kind = Kind {
    names: DAYS,
    ..kind("day of the week", 1, 7)
};
/// The years that Quartz knows.
pub(super) const YEAR: Kind = Kind {
    wraps: false,
    ..kind("year", 1970, 2099)
};

impl Kind {
    /// The values of a field, in order, each once; `None` for all of them.
    pub(super) fn values(&self, text: &str) -> Result<Option<Vec<u16>>, String> {
        if matches!(text, "*" | "?") {
            return Ok(None);
        }
        let mut all = Vec::new();
        for part in text.split(',') {
            self.part(part, text, &mut all)?;
        }
        all.sort_unstable();
        all.dedup();
        let every = all.len() == usize::from(self.most - self.least) + 1;
        Ok((!every).then_some(all))
    }

    /// `*`, `5`, `5-9`, each with `/2` behind it or without.
    fn part(&self, part: &str, text: &str, all: &mut Vec<u16>) -> Result<(), String> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step, text)?)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (self.least, self.most),
            Some((from, to)) => (self.value(from, text)?, self.last(to, text)?),
            None => {
                let value = self.value(range, text)?;
                // `5/15` goes on to the end.
                (value, step.map_or(value, |_| self.most))
            }
        };
        let step = usize::from(step.unwrap_or(1));
        if from <= to {
            all.extend((from..=to).step_by(step));
            return Ok(());
        }
        if !self.wraps {
            return Err(self.wrong(text, &format!("the range `{range}` goes backwards")));
        }
        let around = (from..=self.most).chain(self.least..=to);
        all.extend(around.step_by(step));
        Ok(())
    }

    /// How far it is from one value to the next.
    fn step(&self, step: &str, text: &str) -> Result<u16, String> {
        let most = self.most - self.least + 1;
        let read = step.parse().ok().filter(|step| (1..=most).contains(step));
        read.ok_or_else(|| self.wrong(text, &format!("`{step}` is no step: those are 1 to {most}")))
    }

    /// The end of a range; where Sunday is the first day of the week, `FRI-SUN` still ends with it.
    fn last(&self, word: &str, text: &str) -> Result<u16, String> {
        let value = self.value(word, text)?;
        let sunday = self.least == 0 && self.most == 7 && value == 0;
        Ok(if sunday { 7 } else { value })
    }

    /// One value: a number, or a name where there are names.
    pub(super) fn value(&self, word: &str, text: &str) -> Result<u16, String> {
        let named = self
            .names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(word));
        let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let value = match named.and_then(|at| u16::try_from(at).ok()) {
            Some(at) => Some(self.least + at),
            None => word.parse().ok().filter(|_| digits),
        };
        let value = value.filter(|value| (self.least..=self.most).contains(value));
        value.ok_or_else(|| self.wrong(text, &format!("`{word}` is none of them")))
    }

    /// What is wrong with a field, and what may be in it.
    pub(super) fn wrong(&self, text: &str, why: &str) -> String {
        let Self {
            name, least, most, ..
        } = self;
        let mut said = format!("the field `{text}` ({name}): {why}; it takes {least} to {most}");
        if let (Some(first), Some(last)) = (self.names.first(), self.names.last()) {
            let _ = write!(said, ", or {first} to {last}");
        }
        said.push_str(", lists (`1,2`), ranges (`1-5`), steps (`1-5/2`) and `*`");
        said
    }
}
