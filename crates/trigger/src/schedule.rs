//! When a schedule is due.
//!
//! Two languages, as Harness has them:
//!
//! | `type` | fields | weekdays | beyond lists, ranges and steps |
//! |---|---|---|---|
//! | `UNIX` | minute, hour, day, month, weekday | 0 and 7 are Sunday | – ; where day and weekday are both given, either will do |
//! | `QUARTZ` | second, minute, hour, day, month, weekday, and a year or none | 1 is Sunday | `?`, `L`, `L-3`, `LW`, `15W`, `6L`, `6#3` |
//!
//! A Quartz expression of six fields that only makes sense with the minute first and a year behind it
//! (`0 0 4 7 ? 2014`) is read so, because Harness's documentation writes it so.
//!
//! Where the clock of the time zone jumps, an expression for every hour follows the time that really passes: an hour
//! that is left out is left out, one that comes twice counts twice. All others mean what the clock on the wall says,
//! once: a time that is left out is due right behind the gap, a time that comes twice is due when it comes first.

mod days;
mod field;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use days::Days;
use field::{HOUR, MINUTE, MONTH, SECOND, YEAR};

/// Longest expression, bytes: longer ones than any person writes.
const LONGEST: usize = 512;
/// Shortest time between two runs that is saved, minutes (Harness's documentation of FirstGen: *On Time Schedule Triggers must
/// be equal to or greater than 5 minutes*; that of what came after it says nothing). It is meant of how often a schedule
/// comes, so a step that does not divide the hour may have one shorter time at the hour, where the step begins anew.
const SHORTEST_MINUTES: u32 = 5;
/// Most times that are looked at for one answer. Each but a few is of another day.
const MOST_LOOKS: usize = 5_000;

/// The zones that come with this version, so that it says the same wherever it runs.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A cron expression in a time zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// When, on a clock on a wall.
    cron: Cron,
    /// `L-3` of Quartz.
    before_last: Option<u8>,
    /// Whether every hour is one of its hours.
    every_hour: bool,
    /// The shortest time between two times of it, seconds; `None` where a day has one time at most.
    shortest: Option<u32>,
    zone: TimeZone,
}

impl Schedule {
    /// Reads an expression: of Quartz, or else of UNIX. The time zone is UTC where none is named.
    ///
    /// # Errors
    /// Which field is wrong and what may be in it, for people.
    pub fn of(expression: &str, quartz: bool, time_zone: Option<&str>) -> Result<Self, String> {
        let shown: String = expression.chars().take(80).collect();
        let about = |why: String| format!("the cron expression `{shown}`: {why}");
        if expression.len() > LONGEST {
            return Err(about(format!("it is longer than {LONGEST} bytes")));
        }
        let zone = zone(time_zone)?;
        let fields: Vec<&str> = expression.split_whitespace().collect();
        let read = match quartz {
            true => Fields::quartz(&fields),
            false => Fields::unix(&fields),
        };
        read.and_then(|fields| fields.schedule(zone)).map_err(about)
    }

    /// What is refused when a trigger is saved: more than one run in five minutes.
    ///
    /// # Errors
    /// How often it would run.
    pub fn check(&self) -> Result<(), String> {
        match self.shortest {
            Some(seconds) if seconds < SHORTEST_MINUTES * 60 => Err(format!(
                "the schedule starts runs {} apart: there must be {SHORTEST_MINUTES} minutes between two of them",
                match seconds {
                    ..60 => format!("{seconds} s"),
                    _ => format!("{} min", seconds / 60),
                }
            )),
            _ => Ok(()),
        }
    }

    /// The first time after `ms`, both epoch milliseconds; `None` where there is none, which is found soon: a thirtieth of
    /// February, a year that is over.
    pub fn next_after(&self, ms: i64) -> Option<i64> {
        let after = Timestamp::from_millisecond(ms).ok()?;
        let next = match self.every_hour {
            true => self.by_elapsed_time(after),
            false => self.by_the_clock(after),
        };
        next.map(Timestamp::as_millisecond)
    }

    /// For every hour: along the time that passes, from one change of the clock to the next.
    fn by_elapsed_time(&self, after: Timestamp) -> Option<Timestamp> {
        let (mut from, mut inclusive, mut over) = (after, false, false);
        for _ in 0..MOST_LOOKS {
            let offset = self.zone.to_offset(from);
            let change = self.zone.following(from).next();
            let change = change.map(|change| change.timestamp());
            let due = self.wall_clock_after(offset.to_datetime(from), inclusive);
            let due = due.and_then(|due| offset.to_timestamp(due).ok());
            match (due, change) {
                (Some(due), Some(change)) if due < change => return Some(due),
                (due, None) => return due,
                // Nothing is due any more, unless the next change puts the clock back to before the end.
                (None, Some(_)) if over => return None,
                (None, Some(change)) => (from, inclusive, over) = (change, true, true),
                (Some(_), Some(change)) => (from, inclusive) = (change, true),
            }
        }
        None
    }

    /// For all others: along the clock on the wall.
    fn by_the_clock(&self, after: Timestamp) -> Option<Timestamp> {
        let mut from = self.zone.to_datetime(after);
        // In an hour that comes again everything up to its end has been.
        if let AmbiguousOffset::Fold { before, .. } =
            self.zone.to_ambiguous_timestamp(from).offset()
            && self.zone.to_offset(after) != before
            && let Some(end) = self.change_before(after)
        {
            from = before.to_datetime(end) - SignedDuration::from_secs(1);
        }
        for _ in 0..MOST_LOOKS {
            let due = self.wall_clock_after(from, false)?;
            let at = self.on_time_line(due)?;
            if at > after {
                return Some(at);
            }
            from = due;
        }
        None
    }

    /// When a time of the wall clock is: the first time where it comes twice, right behind a gap that it is in.
    fn on_time_line(&self, wall: DateTime) -> Option<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(wall);
        match ambiguous.offset() {
            AmbiguousOffset::Gap { after, .. } => {
                let before_the_gap = after.to_timestamp(wall).ok()?;
                let change = self.zone.following(before_the_gap).next()?;
                Some(change.timestamp())
            }
            AmbiguousOffset::Fold { .. } | AmbiguousOffset::Unambiguous { .. } => {
                ambiguous.earlier().ok()
            }
        }
    }

    /// When the clock changed last, at `at` or before it.
    fn change_before(&self, at: Timestamp) -> Option<Timestamp> {
        let behind = at + SignedDuration::from_nanos(1);
        let change = self.zone.preceding(behind).next()?;
        Some(change.timestamp())
    }

    /// The first time of the wall clock after another, or from it on.
    fn wall_clock_after(&self, mut from: DateTime, mut inclusive: bool) -> Option<DateTime> {
        for _ in 0..MOST_LOOKS {
            let found = self.cron.find_next_occurrence(&from, inclusive).ok()?;
            let Some(before) = self.before_last else {
                return Some(found);
            };
            if found.days_in_month() - found.day() == i8::try_from(before).ok()? {
                return Some(found);
            }
            let tomorrow = found.date().tomorrow().ok()?;
            (from, inclusive) = (tomorrow.at(0, 0, 0, 0), true);
        }
        None
    }
}

/// The zone of a name of the IANA database.
fn zone(name: Option<&str>) -> Result<TimeZone, String> {
    let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else {
        return Ok(TimeZone::UTC);
    };
    ZONES.get(name).map_err(|_| {
        format!(
            "there is no time zone `{name:.80}`: write a name of the IANA database, such as UTC, Europe/Berlin or \
             America/New_York"
        )
    })
}

/// An expression, field by field; `None` for all values.
struct Fields {
    seconds: Option<Vec<u16>>,
    minutes: Option<Vec<u16>>,
    /// Whether the minutes are written as one step: `*/7`, `0/7`.
    stepped: bool,
    hours: Option<Vec<u16>>,
    days: Days,
    months: Option<Vec<u16>>,
    years: Option<Vec<u16>>,
}

impl Fields {
    fn unix(fields: &[&str]) -> Result<Self, String> {
        let [minute, hour, day, month, weekday] = fields else {
            return Err(format!(
                "it has {} fields, and UNIX expressions have five: minute, hour, day of the month, month, day of the \
                 week{}",
                fields.len(),
                match fields.len() {
                    6 | 7 => "; with seconds or years it is one of `type: QUARTZ`",
                    _ => "",
                }
            ));
        };
        Ok(Self {
            seconds: Some(vec![0]),
            minutes: MINUTE.values(minute)?,
            stepped: is_stepped(minute),
            hours: HOUR.values(hour)?,
            days: Days::unix(day, weekday)?,
            months: MONTH.values(month)?,
            years: None,
        })
    }

    fn quartz(fields: &[&str]) -> Result<Self, String> {
        let (second, fields, year) = match fields {
            // `?` is only for days, and four digits only for years.
            [_, _, third, _, fifth, sixth]
                if *third == "?"
                    || *fifth == "?"
                    || sixth.bytes().filter(u8::is_ascii_digit).count() > 3 =>
            {
                ("0", &fields[..5], *sixth)
            }
            [second, rest @ ..] if rest.len() == 5 => (*second, rest, "*"),
            [second, rest @ .., year] if rest.len() == 5 => (*second, rest, *year),
            _ => {
                return Err(format!(
                    "it has {} fields, and Quartz expressions have six or seven: second, minute, hour, day of the \
                     month, month, day of the week, and a year or none",
                    fields.len()
                ));
            }
        };
        for (kind, text) in [(&SECOND, second), (&MINUTE, fields[0]), (&HOUR, fields[1])]
            .into_iter()
            .chain([(&MONTH, fields[3]), (&YEAR, year)])
        {
            if text == "?" {
                return Err(kind.wrong(text, "`?` is for days"));
            }
        }
        Ok(Self {
            seconds: SECOND.values(second)?,
            minutes: MINUTE.values(fields[0])?,
            stepped: is_stepped(fields[0]),
            hours: HOUR.values(fields[1])?,
            days: Days::quartz(fields[2], fields[4])?,
            months: MONTH.values(fields[3])?,
            years: YEAR.values(year)?,
        })
    }

    fn schedule(self, zone: TimeZone) -> Result<Schedule, String> {
        let shortest = self.shortest();
        let parts = [
            list(self.seconds.as_deref()),
            list(self.minutes.as_deref()),
            list(self.hours.as_deref()),
            self.days.month,
            list(self.months.as_deref()),
            self.days.week,
            list(self.years.as_deref()),
        ];
        let parser = CronParser::builder()
            .seconds(Seconds::Required)
            .year(Year::Required)
            .build();
        let cron = parser.parse(&parts.join(" "));
        Ok(Schedule {
            cron: cron.map_err(|why| why.to_string())?,
            before_last: self.days.before_last,
            every_hour: self.hours.is_none(),
            shortest,
            zone,
        })
    }

    /// The shortest time between two times of one day, and over midnight where every day is one of its days. Seconds. Of a
    /// step of minutes that within an hour.
    fn shortest(&self) -> Option<u32> {
        let all = |values: &Option<Vec<u16>>, count: u16| match values {
            Some(values) => values.clone(),
            None => (0..count).collect(),
        };
        let (seconds, minutes) = (all(&self.seconds, 60), all(&self.minutes, 60));
        let hours = all(&self.hours, 24);
        let of_hour = minutes.iter().flat_map(|minute| {
            let seconds = seconds.iter();
            seconds.map(move |second| u32::from(*minute) * 60 + u32::from(*second))
        });
        let of_hour: Vec<u32> = of_hour.collect();
        let within = of_hour.windows(2).map(|two| two[1] - two[0]);
        if self.stepped && of_hour.len() > 1 {
            return within.min();
        }
        let over = |hours: u32| {
            let (first, last) = (of_hour.first()?, of_hour.last()?);
            Some(hours * 3600 + first - last)
        };
        let between = hours.windows(2).map(|two| u32::from(two[1] - two[0]));
        let any_day = self.days.every() && self.months.is_none();
        let midnight = hours.first().zip(hours.last());
        let midnight = midnight.map(|(first, last)| u32::from(24 + first - last));
        let between = between.chain(midnight.filter(|_| any_day));
        within.chain(between.filter_map(over)).min()
    }
}

fn is_stepped(minutes: &str) -> bool {
    minutes.contains('/') && !minutes.contains(',')
}

/// Values as croner reads them.
fn list(values: Option<&[u16]>) -> String {
    match values {
        None => "*".to_owned(),
        Some(values) => {
            let values: Vec<String> = values.iter().map(u16::to_string).collect();
            values.join(",")
        }
    }
}
