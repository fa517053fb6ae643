//! The windows of a freeze: civil times of a zone, once or again and again.
//!
//! Where a time does not exist or exists twice (clocks are put forward or back), a window begins at the earlier and ends
//! at the later of what may be meant: nothing is deployed inside of a window in any reading.

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Span, Timestamp};
use serde::Deserialize;

use crate::diagnostic::{nearest, shown};
use crate::duration;

/// Form of times in the YAML of a freeze (developer-hub, *Freeze deployments*).
const FORM: &str = "%Y-%m-%d %I:%M %p";

/// Shortest window (*Freeze deployments*: "a minimum of `30m` is required").
const SHORTEST: Duration = Duration::from_secs(30 * 60);

/// The zones that come with the program: what a freeze says is the same on every machine.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A window as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WrittenWindow {
    pub(super) time_zone: String,
    pub(super) start_time: String,
    pub(super) duration: Option<String>,
    pub(super) end_time: Option<String>,
    pub(super) recurrence: Option<WrittenRecurrence>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WrittenRecurrence {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) spec: Option<WrittenSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WrittenSpec {
    pub(super) until: Option<String>,
    pub(super) value: Option<i64>,
}

/// What is wrong with a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowFault {
    /// The field that it is about: its names from the window on.
    pub(super) field: &'static [&'static str],
    message: String,
    expected: Option<&'static str>,
    pub(super) suggestion: Option<&'static str>,
    /// Whether the shape of the field says it too.
    pub(super) of_form: bool,
}

impl WindowFault {
    fn new(field: &'static [&'static str], message: impl Into<String>) -> Self {
        Self {
            field,
            message: message.into(),
            expected: None,
            suggestion: None,
            of_form: false,
        }
    }

    fn expected(self, expected: &'static str) -> Self {
        let expected = Some(expected);
        Self { expected, ..self }
    }

    /// The message with what was expected, without the field.
    pub(super) fn text(&self) -> String {
        match self.expected {
            Some(expected) => format!("{}; expected {expected}", self.message),
            None => self.message.clone(),
        }
    }
}

impl fmt::Display for WindowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field.join("."))?;
        }
        f.write_str(&self.text())?;
        match self.suggestion {
            Some(name) => write!(f, "; did you mean `{name}`?"),
            None => Ok(()),
        }
    }
}

/// A window that was understood.
#[derive(Clone, Debug)]
pub struct Window {
    zone: TimeZone,
    start: DateTime,
    length: SignedDuration,
    /// Whether the length is a duration, which also passes by the clock on the wall.
    lasts: bool,
    recurrence: Option<Recurrence>,
}

#[derive(Clone, Copy, Debug)]
struct Recurrence {
    period: Period,
    until: Option<DateTime>,
}

#[derive(Clone, Copy, Debug)]
enum Period {
    Days(i64),
    Months(i64),
}

/// One time that a window is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// First moment.
    pub start: Timestamp,
    /// First moment after it.
    pub end: Timestamp,
}

impl WrittenWindow {
    /// The window.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(&self) -> Result<Window, Vec<WindowFault>> {
        let zone = zone(&self.time_zone);
        let start = civil(&["startTime"], &self.start_time);
        let known = start.as_ref().ok().copied();
        let length = self.length(known);
        let recurrence = self.recurrence.as_ref();
        let recurrence = recurrence.map(|one| one.read(known)).transpose();
        match (zone, start, length, recurrence) {
            (Ok(zone), Ok(start), Ok((length, lasts)), Ok(recurrence)) => Ok(Window {
                zone,
                start,
                length,
                lasts,
                recurrence,
            }),
            (zone, start, length, recurrence) => {
                let faults = [zone.err(), start.err(), length.err(), recurrence.err()];
                Err(faults.into_iter().flatten().collect())
            }
        }
    }

    /// How long it is open, and whether that is a duration; `start` is there where it can be read.
    fn length(&self, start: Option<DateTime>) -> Result<(SignedDuration, bool), WindowFault> {
        let (field, length, lasts): (&[&str], _, _) = match (&self.duration, &self.end_time) {
            (Some(text), None) => {
                let lasts = duration::parse(text).map_err(|error| WindowFault {
                    of_form: true,
                    ..WindowFault::new(&["duration"], error.to_string())
                })?;
                let length = SignedDuration::try_from(lasts).unwrap_or(SignedDuration::MAX);
                (&["duration"], length, true)
            }
            (None, Some(text)) => {
                let end = civil(&["endTime"], text)?;
                // The start is what is wrong where it cannot be read.
                let Some(start) = start else {
                    return Ok((SignedDuration::MAX, false));
                };
                if end <= start {
                    let message = format!("`{}` is not after `startTime`", shown(text.trim()));
                    return Err(WindowFault::new(&["endTime"], message));
                }
                (&["endTime"], end.duration_since(start), false)
            }
            _ => {
                return Err(WindowFault {
                    of_form: true,
                    ..WindowFault::new(&[], "it needs either `duration` or `endTime`")
                });
            }
        };
        if Duration::try_from(length).unwrap_or_default() < SHORTEST {
            let message = "the window is shorter than 30 minutes, the least that it may be";
            return Err(WindowFault::new(field, message));
        }
        Ok((length, lasts))
    }
}

impl WrittenRecurrence {
    fn read(&self, start: Option<DateTime>) -> Result<Recurrence, WindowFault> {
        let spec = self.spec.clone().unwrap_or_default();
        let value = spec.value.unwrap_or(1);
        let of_form = |field, message: String| WindowFault {
            of_form: true,
            ..WindowFault::new(field, message)
        };
        if !(1..=11).contains(&value) {
            let message = format!("{value} is not from 1 to 11");
            return Err(of_form(&["recurrence", "spec", "value"], message));
        }
        let period = match self.kind.as_str() {
            "Daily" => Period::Days(1),
            "Weekly" => Period::Days(7),
            "Monthly" => Period::Months(value),
            "Yearly" => Period::Months(12),
            other => {
                let message = format!(
                    "`{}` is none of Daily, Weekly, Monthly and Yearly",
                    shown(other)
                );
                return Err(of_form(&["recurrence", "type"], message));
            }
        };
        let field: &[&str] = &["recurrence", "spec", "until"];
        let until = spec.until.as_deref().map(|text| civil(field, text));
        let until = until.transpose()?;
        if let (Some(start), Some(until)) = (start, until)
            && until < start
        {
            let message = "it ends before `startTime`, so that the window never opens";
            return Err(WindowFault::new(field, message));
        }
        Ok(Recurrence { period, until })
    }
}

fn zone(name: &str) -> Result<TimeZone, WindowFault> {
    let name = name.trim();
    ZONES.get(name).map_err(|_| {
        let message = format!("`{}` is no time zone", shown(name));
        let fault = WindowFault::new(&["timeZone"], message);
        let fault = fault.expected("a name such as Europe/Berlin or UTC");
        WindowFault {
            suggestion: nearest(name, zone_names().iter().map(String::as_str)),
            ..fault
        }
    })
}

/// The names of all zones.
fn zone_names() -> &'static [String] {
    static NAMES: LazyLock<Vec<String>> =
        LazyLock::new(|| ZONES.available().map(|name| name.to_string()).collect());
    &NAMES
}

fn civil(field: &'static [&'static str], text: &str) -> Result<DateTime, WindowFault> {
    let read = DateTime::strptime(FORM, text.trim());
    read.map_err(|_| {
        let message = format!("`{}` is no time", shown(text.trim()));
        WindowFault::new(field, message).expected("a day and a time such as 2026-12-24 10:00 PM")
    })
}

impl Window {
    /// The occurrence that `now` is in.
    pub fn at(&self, now: Timestamp) -> Option<Occurrence> {
        let open = self.newest(now)?;
        // A clock that is put back can let the occurrence before end after the newest one.
        let before = (open > 0).then(|| self.occurrence(open - 1)).flatten();
        let mut both = [self.occurrence(open), before].into_iter().flatten();
        both.find(|one| one.start <= now && now < one.end)
    }

    /// The occurrence that `now` is in, or else the next one.
    pub fn at_or_after(&self, now: Timestamp) -> Option<Occurrence> {
        self.at(now).or_else(|| self.next(now))
    }

    /// The first occurrence that begins after `now`.
    pub fn next(&self, now: Timestamp) -> Option<Occurrence> {
        let number = self.newest(now).map_or(0, |newest| newest + 1);
        self.may_be(number)
            .then(|| self.occurrence(number))
            .flatten()
    }

    /// A moment as it is in the zone of the window.
    pub fn shown(&self, moment: Timestamp) -> String {
        let zoned = moment.to_zoned(self.zone.clone());
        let name = self.zone.iana_name().unwrap_or("UTC");
        format!("{} {name}", zoned.strftime(FORM))
    }

    /// The `number`-th occurrence, from 0. Months and years that lack its day have it on their last one.
    fn occurrence(&self, number: i64) -> Option<Occurrence> {
        let civil = self.starts(number)?;
        let start = self.zone.to_ambiguous_timestamp(civil).earlier().ok()?;
        let end = civil.checked_add(self.length).ok()?;
        let end = self.zone.to_ambiguous_timestamp(end).later().ok()?;
        let passed = start.checked_add(self.length).ok()?;
        let end = if self.lasts { end.max(passed) } else { end };
        Some(Occurrence { start, end })
    }

    fn starts(&self, number: i64) -> Option<DateTime> {
        let span = match self.recurrence.map(|recurrence| recurrence.period) {
            None => return (number == 0).then_some(self.start),
            Some(Period::Days(days)) => Span::new().try_days(number.checked_mul(days)?),
            Some(Period::Months(months)) => Span::new().try_months(number.checked_mul(months)?),
        };
        self.start.checked_add(span.ok()?).ok()
    }

    /// Whether the recurrence has not ended before the start of an occurrence.
    fn may_be(&self, number: i64) -> bool {
        let until = self.recurrence.and_then(|recurrence| recurrence.until);
        let starts = self.starts(number);
        starts.is_some_and(|starts| until.is_none_or(|until| starts <= until))
    }

    /// The newest occurrence that has begun.
    fn newest(&self, now: Timestamp) -> Option<i64> {
        let local = now.to_zoned(self.zone.clone()).datetime();
        let until = self.recurrence.and_then(|recurrence| recurrence.until);
        let latest = until.map_or(local, |until| until.min(local));
        let months = |time: DateTime| i64::from(time.year()) * 12 + i64::from(time.month());
        let passed = match self.recurrence.map(|recurrence| recurrence.period) {
            None => 0,
            Some(Period::Days(days)) => {
                let passed = latest.date().duration_since(self.start.date());
                passed.as_hours().div_euclid(24).div_euclid(days)
            }
            Some(Period::Months(every)) => (months(latest) - months(self.start)).div_euclid(every),
        };
        // The day or the hour may not have come yet, and a clock that is put forward or back may shift it by one.
        let candidates = (0..=3).map(|back| passed + 1 - back);
        candidates.filter(|number| *number >= 0).find(|number| {
            let begun = self.occurrence(*number).is_some_and(|one| one.start <= now);
            begun && self.may_be(*number)
        })
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
