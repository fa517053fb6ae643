//! How a `Wait` knows when it ends.

use serde_json::Value;

use super::scope::Extra;
use super::{Failure, Run};
use crate::definition::{State, WaitFor};
use crate::jsonata::QueryError;
use crate::record::Phase;
use crate::template::Template;
use crate::time::extended_offset;

/// Longest `Wait`, in seconds (Developer Guide, "Wait workflow state").
const LONGEST_WAIT: f64 = 99_999_999.0;

impl Run {
    pub(super) fn start_wait(
        &mut self,
        id: u32,
        state: &State,
        wait: &WaitFor,
    ) -> Result<(), Failure> {
        let effective = self.seen(id, state)?;
        let until = match wait {
            WaitFor::Seconds(template) => {
                let value = self.evaluate(id, Some(template), "Seconds", Extra::of(&effective))?;
                let value = value.unwrap_or_default();
                match (value.as_f64(), template) {
                    (None, Template::Literal(_) | Template::Expression(_)) => {
                        return Err(self.wrong_type(id, template, "Seconds", "number", &value));
                    }
                    (seconds, _) => match seconds.and_then(milliseconds) {
                        Some(length) => self.now.as_millisecond() + length,
                        None => return Err(self.failed_query(id, no_length(template, &value))),
                    },
                }
            }
            WaitFor::Timestamp(template) => {
                let value =
                    self.evaluate(id, Some(template), "Timestamp", Extra::of(&effective))?;
                let value = value.unwrap_or_default();
                let Some(text) = value.as_str() else {
                    return Err(self.wrong_type(id, template, "Timestamp", "string", &value));
                };
                match extended_offset(text) {
                    Some(at) => at.as_millisecond(),
                    None => return Err(self.failed_query(id, no_time(template, text))),
                }
            }
        };
        self.set_phase(id, Phase::Wait { until_ms: until });
        if until <= self.now.as_millisecond() || self.trial.is_some() {
            self.finish_wait(id);
        }
        Ok(())
    }

    /// Ends a `Wait` whose time has come.
    pub(super) fn finish_wait(&mut self, id: u32) {
        self.set_phase(id, Phase::Run);
        if let Err(failure) = self.finish_state(id, None) {
            self.fail_state(id, failure);
        }
    }
}

/// A length in milliseconds; none if nobody can wait so long.
fn milliseconds(seconds: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "bounded by the guard")]
    (seconds.fract() == 0.0 && (0.0..=LONGEST_WAIT).contains(&seconds))
        .then(|| seconds as i64 * 1000)
}

/// The error of a value that is no length of a wait.
fn no_length(template: &Template, value: &Value) -> QueryError {
    let Template::Query(query, _) = template else {
        return QueryError::query(
            format!(
                "The Seconds field must be a whole number from 0 to 99999999, but was: {value}"
            ),
            Some("Seconds".to_owned()),
        );
    };
    let complaint = if !value.is_i64() && !value.is_u64() {
        "cannot be parsed as a long value"
    } else if value.is_u64() {
        "references a value greater than 99999999"
    } else {
        "references a negative value"
    };
    QueryError::runtime(format!(
        "The SecondsPath parameter {complaint}: {} == {value}",
        query.text()
    ))
}

/// The error of a text that is not a time.
fn no_time(template: &Template, text: &str) -> QueryError {
    match template {
        Template::Query(query, _) => QueryError::runtime(format!(
            "The TimestampPath parameter does not reference a valid ISO-8601 extended offset date-time format string: {} == {text}",
            query.text()
        )),
        _ => QueryError::query(
            format!(
                "The Timestamp field cannot be parsed as an ISO-8601 extended offset date-time format string: {text}"
            ),
            Some("Timestamp".to_owned()),
        ),
    }
}
