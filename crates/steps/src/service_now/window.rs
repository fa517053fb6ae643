//! The change window of a ticket: an approved run goes on between its start and its end.
//!
//! ServiceNow stores times in UTC, as `2026-01-31 18:30:00`; what people see depends on their time zone and is not
//! read. A day alone begins at midnight.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::Value;

use super::ticket::Ticket;
use crate::ticket::Stop;

/// `changeWindow`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Window {
    start_field: String,
    end_field: String,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

impl Window {
    /// Whether the form that Harness writes for no window.
    pub(super) fn is_empty(&self) -> bool {
        self.start_field.trim().is_empty() && self.end_field.trim().is_empty()
    }

    /// The field of the ticket that nobody has filled in yet.
    pub(super) fn unfilled(&self, ticket: &Ticket) -> Option<&str> {
        let fields = [self.start_field.trim(), self.end_field.trim()];
        let empty = |field: &&str| {
            ticket
                .value(field)
                .is_some_and(|text| text.trim().is_empty())
        };
        fields.into_iter().find(empty)
    }

    /// When the window begins, if it has not yet.
    ///
    /// # Errors
    /// When the ticket has no such times, they are the wrong way round, or the window is over: it does not open
    /// again by waiting.
    pub(super) fn opens(&self, ticket: &Ticket, now: Timestamp) -> Result<Option<Timestamp>, Stop> {
        let start = time(ticket, &self.start_field)?;
        let end = time(ticket, &self.end_field)?;
        if end <= start {
            return Err(Stop::over(format!(
                "The change window of {} ends at {end} ({}), before it begins at {start} ({}).",
                ticket.number, self.end_field, self.start_field
            )));
        }
        if end <= now {
            return Err(Stop::over(format!(
                "The change window of {} was over at {end} ({}). Give the ticket another window and run the step again.",
                ticket.number, self.end_field
            )));
        }
        Ok((start > now).then_some(start))
    }
}

fn time(ticket: &Ticket, field: &str) -> Result<Timestamp, Stop> {
    let field = field.trim();
    let number = &ticket.number;
    let text = ticket.value(field).ok_or_else(|| {
        Stop::over(format!(
            "changeWindow: ticket {number} has no field `{field}`."
        ))
    })?;
    parse(text).ok_or_else(|| {
        let text = crate::ticket::text::words(text);
        Stop::over(format!(
            "changeWindow: the field `{field}` of ticket {number} is `{text}`, and no time such as 2026-01-31 18:30:00."
        ))
    })
}

fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let time = DateTime::strptime("%Y-%m-%d %H:%M:%S", text).ok();
    let time = time.or_else(|| {
        Some(
            text.parse::<Date>()
                .ok()?
                .to_datetime(jiff::civil::Time::midnight()),
        )
    })?;
    time.to_zoned(TimeZone::UTC)
        .ok()
        .map(|zoned| zoned.timestamp())
}
