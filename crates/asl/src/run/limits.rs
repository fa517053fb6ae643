//! What limits a `Map`: how many children run at once, and how many may fail.

use serde_json::Value;

use super::scope::Extra;
use super::{Failure, Run};
use crate::definition::MapState;
use crate::template::Template;

/// The limit that belongs to what reads the items.
pub(super) const MAX_ITEMS: &str = "MaxItems";

/// What limits a `Map`, evaluated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// 0 for none.
    pub(super) concurrency: usize,
    pub(super) tolerated_count: Option<u64>,
    pub(super) tolerated_percentage: Option<f64>,
}

impl Limits {
    /// Whether `failed` of `total` children are more than what is tolerated; `None` where nothing is said. A threshold of
    /// 0 says nothing: AWS lets the other one decide.
    pub(super) fn exceeded(&self, failed: usize, total: usize) -> Option<bool> {
        let tolerated_count = self.tolerated_count.filter(|most| *most > 0);
        let tolerated_percentage = self.tolerated_percentage.filter(|most| *most > 0.0);
        if tolerated_count.is_none() && tolerated_percentage.is_none() {
            let says_none = self
                .tolerated_count
                .or(self.tolerated_percentage.map(|_| 0));
            return says_none.map(|_| failed > 0);
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of values in memory")]
        let percentage = failed as f64 * 100.0 / (total.max(1) as f64);
        let failed = u64::try_from(failed).unwrap_or(u64::MAX);
        let by_count = tolerated_count.map(|most| failed > most);
        let by_percentage = tolerated_percentage.map(|most| percentage > most);
        // A threshold that is not set tolerates nothing on its own: the other one decides.
        Some(by_count.unwrap_or(false) || by_percentage.unwrap_or(false))
    }
}

impl Run {
    /// How many children may run at once; 0 for any number.
    pub(super) fn concurrency(
        &self,
        id: u32,
        map: &MapState,
        effective: &Value,
    ) -> Result<usize, Failure> {
        const FIELD: &str = "MaxConcurrency";
        let most = self.map_number(id, map.max_concurrency.as_ref(), FIELD, effective)?;
        Ok(most.map_or(0, |most| usize::try_from(most).unwrap_or(usize::MAX)))
    }

    /// How many children may fail.
    pub(super) fn tolerated(
        &mut self,
        id: u32,
        map: &MapState,
        effective: &Value,
    ) -> Result<Limits, Failure> {
        const FIELD: &str = "ToleratedFailureCount";
        let count = self.map_number(id, map.tolerated_count.as_ref(), FIELD, effective)?;
        if let Some(count) = count {
            self.note("toleratedFailureCount", &count.into());
        }
        let percentage = self.percentage(id, map.tolerated_percentage.as_ref(), effective)?;
        if let Some(percentage) = percentage {
            self.note("toleratedFailurePercentage", &percentage.into());
        }
        Ok(Limits {
            concurrency: 0,
            tolerated_count: count,
            tolerated_percentage: percentage,
        })
    }

    fn percentage(
        &self,
        id: u32,
        template: Option<&Template>,
        root: &Value,
    ) -> Result<Option<f64>, Failure> {
        const FIELD: &str = "ToleratedFailurePercentage";
        let Some(template) = template else {
            return Ok(None);
        };
        let value = self.evaluate(id, Some(template), FIELD, Extra::of(root))?;
        let value = value.unwrap_or_default();
        let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
        match (number, template) {
            (Some(number), _) if (0.0..=100.0).contains(&number) => Ok(Some(number)),
            (Some(_), Template::Query(..)) => Err(refused(
                FIELD,
                format!("{FIELD} must be between 0 and 100."),
            )),
            (None, Template::Query(query, _)) => {
                Err(no_number(FIELD, "float", &value, query.text()))
            }
            _ => Err(self.wrong_type(id, template, FIELD, "number", &value)),
        }
    }

    /// A whole number of a `Map`; texts of digits count where a path leads to them.
    pub(super) fn map_number(
        &self,
        id: u32,
        template: Option<&Template>,
        field: &str,
        root: &Value,
    ) -> Result<Option<u64>, Failure> {
        let Some(Template::Query(query, _)) = template else {
            return self.whole(id, template, field, root);
        };
        let value = self.evaluate(id, template, field, Extra::of(root))?;
        let value = value.unwrap_or_default();
        let digits = || value.as_str()?.parse::<i64>().ok();
        if let Some(number) = value.as_u64() {
            return Ok(Some(number));
        }
        let Some(number) = value.as_i64().or_else(digits) else {
            return Err(no_number(field, "integer", &value, query.text()));
        };
        u64::try_from(number).map(Some).map_err(|_| {
            let cause = match field {
                "MaxConcurrency" => {
                    format!("Expected non-negative integer for {field}, got '{number}' instead.")
                }
                MAX_ITEMS => format!("field {field} must be positive"),
                _ => format!("{field} cannot be negative."),
            };
            refused(field, cause)
        })
    }
}

/// The failure of a path to something that is no number.
fn no_number(field: &str, what: &str, value: &Value, path: &str) -> Failure {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    refused(
        field,
        format!(
            "The {field}Path field refers to value \"{text}\" which is not a valid {what}: {path}"
        ),
    )
}

/// AWS says these sentences alone, without the state that they are about.
fn refused(field: &str, cause: String) -> Failure {
    match field {
        MAX_ITEMS => Failure::new("States.ItemReaderFailed", cause),
        _ => Failure::runtime(cause).of_field(),
    }
}
