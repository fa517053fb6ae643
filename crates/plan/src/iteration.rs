//! Turns of looping strategies, and what expressions inside of them read.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use slipway_model::id::EntityId;

/// Which turn of a looping strategy (`matrix`, `repeat`, `parallelism`, several services or environments) an
/// expanded stage, step group or step is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// `identifier` of the element that loops; that of the turn has [`Iteration::postfix`] behind it.
    pub of: EntityId,
    /// `<+strategy.iteration>`, from 0.
    pub index: u32,
    /// `<+strategy.iterations>`, also called `<+strategy.totalIterations>`.
    pub total: u32,
    /// How many turns run at once; 0 is no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub concurrency: u32,
    /// `<+matrix.AXIS>`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub matrix: IndexMap<String, Value>,
    /// `<+repeat.item>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Value>,
    /// `<+repeat.partition>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<Value>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Iteration {
    /// `<+strategy.identifierPostFix>`: what the identifier of the turn ends in, `_0` for the first.
    pub fn postfix(&self) -> String {
        format!("_{}", self.index)
    }

    /// What a name below the element that loops stands for in this turn (`stage.matrix.AXIS`,
    /// `strategy.node.ID.iteration`): what [`in_turns`] knows of this turn alone, with or without `strategy` before it.
    pub fn told(&self, path: &[&str]) -> Option<Value> {
        let path = path.strip_prefix(&["strategy"]).unwrap_or(path);
        match path {
            ["matrix"] if !self.matrix.is_empty() => {
                let axes = self.matrix.iter();
                let axes: Map<_, _> = axes.map(|(k, v)| (k.clone(), v.clone())).collect();
                Some(Value::Object(axes))
            }
            ["matrix", axis, rest @ ..] => below(self.matrix.get(*axis)?, rest),
            ["repeat"] => {
                let known = [("item", &self.item), ("partition", &self.partition)];
                let known = known
                    .into_iter()
                    .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
                let known: Map<_, _> = known.collect();
                (!known.is_empty()).then_some(Value::Object(known))
            }
            ["repeat", "item", rest @ ..] | ["item", rest @ ..] => below(self.item.as_ref()?, rest),
            ["repeat", "partition", rest @ ..] => below(self.partition.as_ref()?, rest),
            ["iteration"] => Some(self.index.into()),
            ["iterations" | "totalIterations"] => Some(self.total.into()),
            ["identifierPostFix"] => Some(self.postfix().into()),
            _ => None,
        }
    }
}

/// Whether a path from a stage, step group or step leads to what its turn tells.
pub fn is_of_turn(path: &[&str]) -> bool {
    let first = path.first();
    first.is_some_and(|name| OF_TURN.contains(name))
}

/// The names below a stage, step group or step that [`Iteration::told`] answers.
const OF_TURN: [&str; 7] = [
    "matrix",
    "repeat",
    "strategy",
    "item",
    "iteration",
    "iterations",
    "totalIterations",
];

/// What `matrix…`, `repeat…` and `strategy…` stand for inside of these turns, the outermost first: the
/// innermost that knows the name answers. `strategy.node.ID` is the turn of one element among them
/// (developer.harness.io, *Looping strategy expressions*).
pub fn in_turns<'a>(
    turns: impl DoubleEndedIterator<Item = &'a Iteration>,
    path: &[&str],
) -> Option<Value> {
    let mut inwards = turns.rev();
    match path {
        ["strategy", "node", id, rest @ ..] => {
            inwards.find(|turn| turn.of.as_str() == *id)?.told(rest)
        }
        ["matrix" | "repeat" | "strategy", ..] => inwards.find_map(|turn| turn.told(path)),
        _ => None,
    }
}

fn below(value: &Value, path: &[&str]) -> Option<Value> {
    let found = path.iter().try_fold(value, |value, key| value.get(key))?;
    Some(found.clone())
}
