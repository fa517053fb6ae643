//! The windows of a freeze: civil times of a zone, once or again and again.
//!
//! Where a time does not exist or exists twice (clocks are put forward or back), a window begins at the earlier and ends
//! at the later of what may be meant: nothing is deployed inside of a window in any reading.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};
use serde::Deserialize;
use slipway_model::duration;

/// Form of times in the YAML of a freeze (developer-hub, *Freeze deployments*).
const FORM: &str = "%Y-%m-%d %I:%M %p";

/// Shortest window (*Freeze deployments*: "a minimum of `30m` is required").
const SHORTEST: Duration = Duration::from_secs(30 * 60);

/// A window as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Written {
    time_zone: String,
    start_time: String,
    duration: Option<String>,
    end_time: Option<String>,
    recurrence: Option<WrittenRecurrence>,
}

#[derive(Clone, Debug, Deserialize)]
struct WrittenRecurrence {
    #[serde(rename = "type")]
    kind: String,
    spec: Option<WrittenSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct WrittenSpec {
    until: Option<String>,
    value: Option<i64>,
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

impl Written {
    /// The window, or what is wrong with it.
    pub(super) fn read(&self) -> Result<Window, String> {
        let name = self.time_zone.trim();
        let zone = TimeZone::get(name)
            .map_err(|_| format!("timeZone: `{name}` is no time zone such as Europe/Berlin"))?;
        let start = civil("startTime", &self.start_time)?;
        let (length, lasts) = match (&self.duration, &self.end_time) {
            (Some(text), None) => {
                let lasts = duration::parse(text).map_err(|error| format!("duration: {error}"))?;
                (
                    SignedDuration::try_from(lasts).unwrap_or(SignedDuration::MAX),
                    true,
                )
            }
            (None, Some(text)) => (civil("endTime", text)?.duration_since(start), false),
            _ => return Err("it needs either `duration` or `endTime`".to_owned()),
        };
        if Duration::try_from(length).unwrap_or_default() < SHORTEST {
            return Err("it is shorter than 30 minutes, the least that a window may be".to_owned());
        }
        let recurrence = self.recurrence.as_ref();
        let recurrence = recurrence.map(WrittenRecurrence::read).transpose()?;
        Ok(Window {
            zone,
            start,
            length,
            lasts,
            recurrence,
        })
    }
}

impl WrittenRecurrence {
    fn read(&self) -> Result<Recurrence, String> {
        let spec = self.spec.clone().unwrap_or_default();
        let value = spec.value.unwrap_or(1);
        if !(1..=11).contains(&value) {
            return Err(format!("recurrence: the value {value} is not from 1 to 11"));
        }
        let period = match self.kind.as_str() {
            "Daily" => Period::Days(1),
            "Weekly" => Period::Days(7),
            "Monthly" => Period::Months(value),
            "Yearly" => Period::Months(12),
            other => {
                return Err(format!(
                    "recurrence: `{other}` is none of Daily, Weekly, Monthly and Yearly"
                ));
            }
        };
        let until = spec.until.as_deref();
        let until = until.map(|text| civil("recurrence: until", text));
        Ok(Recurrence {
            period,
            until: until.transpose()?,
        })
    }
}

fn civil(field: &str, text: &str) -> Result<DateTime, String> {
    let read = DateTime::strptime(FORM, text.trim());
    read.map_err(|_| format!("{field}: `{text:.40}` is no time such as 2026-12-24 10:00 PM"))
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
