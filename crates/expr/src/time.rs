//! Days and moments: what `currentDate()` and `currentTime()` answer, with the methods of Java's dates
//! (docs: cd-steps/ticketing-systems/create-jira-issues-in-cd-stages, "Jira date field support"). The
//! calendar is the proleptic Gregorian one, in UTC; the clock is the context's.

use std::fmt;

use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;
use jiff::{Span, Timestamp, Unit};

use crate::error::Reason;
use crate::limits::Meter;
use crate::method::{missing, text_argument};
use crate::value::Value;

type Outcome = Result<Value, Reason>;

/// A day, or a moment of one in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Day(Date),
    Time(DateTime),
}

impl Moment {
    /// The moment so many milliseconds after the start of 1970; `None` outside of the years -9999 to 9999.
    pub fn from_ms(ms: i64) -> Option<Self> {
        let moment = Timestamp::from_millisecond(ms).ok()?;
        Some(Self(Kind::Time(Offset::UTC.to_datetime(moment))))
    }

    /// The day of it.
    pub fn day(self) -> Self {
        Self(Kind::Day(self.date()))
    }

    fn date(self) -> Date {
        match self.0 {
            Kind::Day(day) => day,
            Kind::Time(time) => time.date(),
        }
    }

    fn datetime(self) -> DateTime {
        match self.0 {
            Kind::Day(day) => day.to_datetime(jiff::civil::Time::midnight()),
            Kind::Time(time) => time,
        }
    }
}

/// `2026-11-21`, or `2026-11-21T10:57:33.123Z`.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Day(day) => write!(f, "{day}"),
            Kind::Time(time) => write!(f, "{time}Z"),
        }
    }
}

/// A method of a day or moment.
pub(crate) fn call(
    moment: Moment,
    name: &str,
    arguments: &[Value],
    meter: &mut Meter<'_>,
) -> Outcome {
    match (name, arguments) {
        ("isBefore" | "isAfter" | "isEqual" | "compareTo", [Value::Time(other)]) => {
            let order = moment.datetime().cmp(&other.datetime());
            Ok(match name {
                "isBefore" => order.is_lt().into(),
                "isAfter" => order.is_gt().into(),
                "isEqual" => order.is_eq().into(),
                _ => Value::Int(order as i64),
            })
        }
        ("toLocalDate", []) => Ok(moment.day().into()),
        ("format", [pattern]) => {
            let pattern = text_argument("format", pattern)?;
            meter.bounded(pattern.len())?;
            format(moment, &pattern).map(Value::String)
        }
        (_, [Value::Int(count)]) if name.starts_with("plus") || name.starts_with("minus") => {
            shifted(moment, name, *count)
        }
        (_, []) => match part(moment, name) {
            Some(part) => Ok(part),
            None => Err(missing(&Value::Time(moment), name, arguments)),
        },
        _ => Err(missing(&Value::Time(moment), name, arguments)),
    }
}

fn part(moment: Moment, name: &str) -> Option<Value> {
    let (date, time) = (moment.date(), moment.datetime());
    let hours = matches!(moment.0, Kind::Time(_));
    Some(Value::Int(match name {
        "getYear" => date.year().into(),
        "getMonthValue" => date.month().into(),
        "getDayOfMonth" => date.day().into(),
        "getDayOfYear" => date.day_of_year().into(),
        "getDayOfWeek" => return Some(weekday(date).to_uppercase().into()),
        "getMonth" => return Some(month(date).to_uppercase().into()),
        "getHour" if hours => time.hour().into(),
        "getMinute" if hours => time.minute().into(),
        "getSecond" if hours => time.second().into(),
        "getNano" if hours => time.subsec_nanosecond().into(),
        "toEpochDay" if !hours => {
            let since = date.since((Unit::Day, Date::constant(1970, 1, 1))).ok()?;
            since.get_days().into()
        }
        "toEpochMilli" | "getMillis" if hours => milliseconds(time)?,
        "toEpochSecond" if hours => milliseconds(time)?.div_euclid(1000),
        _ => return None,
    }))
}

fn milliseconds(time: DateTime) -> Option<i64> {
    let moment = Offset::UTC.to_timestamp(time).ok()?;
    Some(moment.as_millisecond())
}

/// `plusDays(2)`, `minusHours(1)`, …: a day takes no parts of a day.
fn shifted(moment: Moment, name: &str, count: i64) -> Outcome {
    let problem = |problem: &str| Reason::Operation {
        operation: format!("{name}({count})"),
        problem: problem.to_owned(),
    };
    let (unit, count) = match (name.strip_prefix("plus"), name.strip_prefix("minus")) {
        (Some(unit), _) => (unit, Some(count)),
        (_, Some(unit)) => (unit, count.checked_neg()),
        _ => ("", None),
    };
    let hours = matches!(moment.0, Kind::Time(_));
    let span = Span::new();
    let outside = || problem("the date is outside of the years that can be written");
    let count = count.ok_or_else(outside)?;
    let span = match unit {
        "Years" => span.try_years(count),
        "Months" => span.try_months(count),
        "Weeks" => span.try_weeks(count),
        "Days" => span.try_days(count),
        "Hours" if hours => span.try_hours(count),
        "Minutes" if hours => span.try_minutes(count),
        "Seconds" if hours => span.try_seconds(count),
        "Nanos" if hours => span.try_nanoseconds(count),
        _ => return Err(missing(&Value::Time(moment), name, &[Value::Int(count)])),
    };
    let span = span.map_err(|_| outside())?;
    let kind = match moment.0 {
        Kind::Day(day) => day.checked_add(span).map(Kind::Day),
        Kind::Time(time) => time.checked_add(span).map(Kind::Time),
    };
    kind.map(|kind| Moment(kind).into()).map_err(|_| outside())
}

/// Java's `DateTimeFormatter` patterns, as far as numbers and English names go.
fn format(moment: Moment, pattern: &str) -> Result<String, Reason> {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        if c == '\'' {
            let inner = &rest[1..];
            let end = inner.find('\'').unwrap_or(inner.len());
            out.push_str(if end == 0 { "'" } else { &inner[..end] });
            rest = inner.get(end + 1..).unwrap_or_default();
            continue;
        }
        let length = rest.len() - rest.trim_start_matches(c).len();
        let run = &rest[..length];
        rest = &rest[length..];
        if !c.is_ascii_alphabetic() {
            out.push_str(run);
            continue;
        }
        let letter = field(moment, c, length).ok_or_else(|| Reason::Operation {
            operation: format!("format({pattern:.60?})"),
            problem: format!(
                "`{run:.20}` is not one of yyyy, MM, dd, HH, hh, mm, ss, SSS, a, EEE, MMM, D, X, Z"
            ),
        })?;
        out.push_str(&letter);
    }
    Ok(out)
}

fn field(moment: Moment, letter: char, length: usize) -> Option<String> {
    let (date, time) = (moment.date(), moment.datetime());
    let name = |full: &'static str| match length {
        1..=3 => full.get(..3).map(str::to_owned),
        _ => Some(full.to_owned()),
    };
    let number = |number: i64| (length <= 9).then(|| format!("{number:0length$}"));
    let hour = time.hour();
    match letter {
        'y' | 'u' if length == 2 => Some(format!("{:02}", date.year().rem_euclid(100))),
        'y' | 'u' => number(date.year().into()),
        'M' | 'L' if length > 2 => name(month(date)),
        'M' | 'L' => number(date.month().into()),
        'd' => number(date.day().into()),
        'D' => number(date.day_of_year().into()),
        'E' => name(weekday(date)),
        'H' => number(hour.into()),
        'h' => number(((hour + 11) % 12 + 1).into()),
        'm' => number(time.minute().into()),
        's' => number(time.second().into()),
        'S' => format!("{:09}", time.subsec_nanosecond())
            .get(..length)
            .map(str::to_owned),
        'a' => Some(if hour < 12 { "AM" } else { "PM" }.to_owned()),
        'X' => Some("Z".to_owned()),
        'Z' | 'x' => Some(if length == 3 { "+00:00" } else { "+0000" }.to_owned()),
        'z' | 'V' => Some("UTC".to_owned()),
        _ => None,
    }
}

fn month(date: Date) -> &'static str {
    const NAMES: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let index = usize::try_from(date.month()).unwrap_or(1).saturating_sub(1);
    NAMES.get(index).copied().unwrap_or_default()
}

fn weekday(date: Date) -> &'static str {
    use jiff::civil::Weekday;
    match date.weekday() {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}
