//! Reads retriers and catchers.

use super::check;
use super::fields::{Fields, Result, invalid, none_of};
use super::paths::{ResultPath, result_path};
use super::read::LONGEST;
use crate::template::Template;

/// One entry of `Retry`.
#[derive(Debug)]
pub(crate) struct Retrier {
    pub(crate) errors: Vec<String>,
    pub(crate) interval_seconds: u64,
    pub(crate) max_attempts: u32,
    pub(crate) backoff_rate: f64,
    pub(crate) max_delay_seconds: Option<u64>,
    pub(crate) full_jitter: bool,
}

/// One entry of `Catch`.
#[derive(Debug)]
pub(crate) struct Catcher {
    pub(crate) errors: Vec<String>,
    pub(crate) next: String,
    pub(crate) output: Option<Template>,
    pub(crate) assign: Option<Template>,
    /// Where the error goes in the input, in JSONPath.
    pub(crate) result: Option<ResultPath>,
}

pub(super) fn retriers(fields: &Fields<'_>) -> Result<Vec<Retrier>> {
    let mut retriers = Vec::new();
    for (i, value) in fields.list("Retry")?.iter().enumerate() {
        let entry = fields.inner(value, &format!("{}[{i}]", fields.at("Retry")))?;
        entry.allow(&[
            "ErrorEquals",
            "IntervalSeconds",
            "MaxAttempts",
            "BackoffRate",
            "MaxDelaySeconds",
            "JitterStrategy",
            "Comment",
        ])?;
        retriers.push(retrier(&entry)?);
    }
    check::all_is_last(retriers.iter().map(|r| &r.errors), &fields.at("Retry"))?;
    Ok(retriers)
}

fn retrier(entry: &Fields<'_>) -> Result<Retrier> {
    let backoff_rate = entry.number("BackoffRate")?.unwrap_or(2.0);
    if backoff_rate < 1.0 {
        return invalid(&entry.at("BackoffRate"), "BackoffRate must be at least 1");
    }
    let full_jitter = match entry.text("JitterStrategy")? {
        None | Some("NONE") => false,
        Some("FULL") => true,
        Some(_) => return none_of(&entry.at("JitterStrategy"), &["NONE", "FULL"]),
    };
    let attempts = entry.whole("MaxAttempts", 0..=LONGEST)?.unwrap_or(3);
    Ok(Retrier {
        errors: entry.errors()?,
        interval_seconds: entry.whole("IntervalSeconds", 1..=LONGEST)?.unwrap_or(1),
        max_attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        backoff_rate,
        max_delay_seconds: entry.whole("MaxDelaySeconds", 1..=31_622_400)?,
        full_jitter,
    })
}

pub(super) fn catchers(fields: &Fields<'_>) -> Result<Vec<Catcher>> {
    let mut catchers = Vec::new();
    for (i, value) in fields.list("Catch")?.iter().enumerate() {
        let entry = fields.inner(value, &format!("{}[{i}]", fields.at("Catch")))?;
        entry.refuse_other_language()?;
        entry.allow(&[
            "ErrorEquals",
            "Next",
            "Comment",
            "Output",
            "Assign",
            "ResultPath",
        ])?;
        catchers.push(Catcher {
            errors: entry.errors()?,
            next: entry.required_text("Next")?.to_owned(),
            output: entry.template("Output")?,
            assign: entry.assign()?,
            result: if entry.is_jsonata() {
                None
            } else {
                Some(result_path(&entry)?)
            },
        });
    }
    check::all_is_last(catchers.iter().map(|c| &c.errors), &fields.at("Catch"))?;
    Ok(catchers)
}
