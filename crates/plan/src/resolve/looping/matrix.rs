//! `matrix`: every combination of the values of its axes.

use indexmap::IndexMap;
use serde_json::Value;
use slipway_model::{Code, Ref};

use super::{MOST_TURNS, Outcome, Reader, Refused, Turn, refuse, too_many, within};

/// Most combinations of a matrix before those that `exclude` leaves out.
const MOST_COMBINATIONS: u64 = 16 * MOST_TURNS as u64;

impl Reader<'_> {
    pub(super) fn matrix<'r>(&self, matrix: Ref<'r>) -> Outcome<'r, Vec<Turn>> {
        let mut axes: Vec<(&str, Vec<Value>)> = Vec::new();
        let mut product = 1u64;
        let settings = [
            "exclude",
            "maxConcurrency",
            "nodeName",
            "metadata",
            "__uuid",
        ];
        for (name, axis) in matrix.entries() {
            if settings.contains(&name) || axis.is_null() {
                continue;
            }
            let values = self.list(axis)?;
            product = product.saturating_mul(values.len() as u64);
            axes.push((name, values));
        }
        if axes.is_empty() {
            return refuse(Code::MissingField, matrix, "`matrix` has no axes");
        }
        if product > MOST_COMBINATIONS {
            return refuse(Code::Limit, matrix, too_many(product));
        }
        let excluded = self.excluded(matrix)?;
        let mut turns = Vec::new();
        for number in 0..product {
            let (values, postfix) = combination(&axes, number);
            if !excluded.iter().any(|pattern| matches(pattern, &values)) {
                let mut turn = self.turn(turns.len(), 0);
                turn.postfix = postfix;
                turn.iteration.matrix = values;
                turns.push(turn);
                within(turns.len() as u64, matrix).map_err(|refused| Refused {
                    message: too_many(product),
                    ..refused
                })?;
            }
        }
        let total = u32::try_from(turns.len()).unwrap_or(u32::MAX);
        turns
            .iter_mut()
            .for_each(|turn| turn.iteration.total = total);
        self.label(&mut turns, matrix)?;
        Ok(turns)
    }

    /// Combinations that are left out: those that agree with one of these in all that it says.
    fn excluded<'r>(&self, matrix: Ref<'r>) -> Outcome<'r, Vec<Vec<(String, Value)>>> {
        let list = matrix.get("exclude").into_iter().flat_map(Ref::items);
        let mut out = Vec::new();
        for item in list.take(MOST_TURNS) {
            let mut pattern = Vec::new();
            for (axis, value) in item.entries().filter(|(_, value)| !value.is_null()) {
                pattern.push((axis.to_owned(), self.item(value)?));
            }
            if !pattern.is_empty() {
                out.push(pattern);
            }
        }
        Ok(out)
    }
}

/// The values of one combination, the last axis changing fastest, and the positions of them as a postfix.
fn combination(axes: &[(&str, Vec<Value>)], number: u64) -> (IndexMap<String, Value>, String) {
    let mut left = number;
    let mut positions = Vec::with_capacity(axes.len());
    for (_, values) in axes.iter().rev() {
        let length = values.len() as u64;
        positions.push(left % length);
        left /= length;
    }
    positions.reverse();
    let values = axes
        .iter()
        .zip(&positions)
        .filter_map(|((name, values), position)| {
            let value = values.get(usize::try_from(*position).ok()?)?;
            Some(((*name).to_owned(), value.clone()))
        });
    let postfix = positions
        .iter()
        .map(|position| format!("_{position}"))
        .collect();
    (values.collect(), postfix)
}

fn matches(pattern: &[(String, Value)], values: &IndexMap<String, Value>) -> bool {
    pattern
        .iter()
        .all(|(axis, value)| values.get(axis) == Some(value))
}
