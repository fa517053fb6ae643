//! Looping strategies, taken apart into turns before the run.
//!
//! A loop may go over what the run brings forth (outputs of steps): it is taken apart when it begins
//! ([`crate::unroll`]).

mod matrix;

use indexmap::IndexMap;
use serde_json::Value;
use slipway_expr::{Context, Limits};
use slipway_model::id::EntityId;
use slipway_model::names::MOST_BRANCHES;
use slipway_model::{Code, Ref, Tree};

use super::Resolver;
use super::known::{Inside, Known, evaluate, text_of};
use crate::Iteration;

/// Most turns of one loop: as many as may run side by side.
pub(super) const MOST_TURNS: usize = MOST_BRANCHES;

/// A looping strategy, taken apart.
pub(crate) struct Loop {
    pub(crate) turns: Vec<Turn>,
    /// Whether turns that wait for their time are given up when one fails (`onFailure: SkipQueued`).
    pub(crate) skips_queued: bool,
}

/// One turn of a loop.
pub(crate) struct Turn {
    pub(crate) iteration: Iteration,
    /// What stands behind the name of the element; `None` when `label` is the whole name.
    pub(super) postfix: String,
    /// `nodeName`, evaluated.
    pub(super) label: Option<String>,
}

impl Turn {
    /// `nodeName`, where the loop has one.
    pub(super) fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// The name of the element in this turn.
    pub(crate) fn name(&self, name: &str) -> String {
        match &self.label {
            Some(label) => label.clone(),
            None => format!("{name}{}", self.postfix),
        }
    }
}

/// Why a loop cannot be taken apart.
struct Refused<'r> {
    at: Ref<'r>,
    code: Code,
    message: String,
    /// Whether it may be known while the run goes on.
    later: bool,
}

type Outcome<'r, T> = Result<T, Refused<'r>>;

fn refuse<'r, T>(code: Code, at: Ref<'r>, message: impl Into<String>) -> Outcome<'r, T> {
    Err(Refused {
        at,
        code,
        message: message.into(),
        later: false,
    })
}

/// What is known of a loop before the run.
pub(super) enum Looping {
    /// The element does not loop.
    None,
    /// All of it.
    Known(Loop),
    /// What it goes over is brought forth by the run.
    Later,
}

impl Resolver<'_> {
    /// The loop of an element. A fault, and a loop of no turns, where it cannot be taken apart, now or later. `what`
    /// names the element in messages.
    pub(super) fn looping(&mut self, element: Ref<'_>, what: &str, known: &Known<'_>) -> Looping {
        let strategy = element.get("strategy");
        let Some(strategy) = strategy.filter(|strategy| strategy.is_map()) else {
            return Looping::None;
        };
        let of = EntityId::new(element.get_text("identifier").unwrap_or_default());
        match (Reader { known, of }.strategy(strategy)) {
            Ok(found) => Looping::Known(found),
            Err(refused) if refused.later => Looping::Later,
            // Whoever runs it may know.
            Err(refused) if self.is_draft && refused.code == Code::NotSupported => Looping::Later,
            Err(refused) => {
                let message = format!("the looping `strategy` of {what}: {}", refused.message);
                self.fault(refused.code, refused.at, message);
                Looping::Known(Loop {
                    turns: Vec::new(),
                    skips_queued: false,
                })
            }
        }
    }
}

/// The loop that a `strategy`, as JSON, is where `context` knows what the run has brought forth. `of` is the element.
///
/// # Errors
/// Why it cannot be taken apart.
pub(crate) fn taken_apart(
    strategy: &Value,
    of: &EntityId,
    context: &dyn Context,
) -> Result<Loop, String> {
    let tree = Tree::from_json("strategy", strategy);
    let reader = Reader {
        known: context,
        of: of.clone(),
    };
    let found = reader.strategy(tree.root());
    found.map_err(|refused| refused.message)
}

fn skips_queued(strategy: Ref<'_>) -> bool {
    strategy.get_text("onFailure") == Some("SkipQueued")
}

struct Reader<'k> {
    known: &'k dyn Context,
    of: EntityId,
}

impl Reader<'_> {
    fn strategy<'r>(&self, strategy: Ref<'r>) -> Outcome<'r, Loop> {
        let skips_queued = skips_queued(strategy);
        let mut turns = Vec::new();
        if self.begins(strategy)? {
            turns = if let Some(matrix) = strategy.get("matrix") {
                self.matrix(matrix)?
            } else if let Some(repeat) = strategy.get("repeat") {
                self.repeat(repeat)?
            } else if let Some(parallelism) = strategy.get("parallelism") {
                self.times(parallelism)?
            } else {
                return refuse(
                    Code::MissingField,
                    strategy,
                    "it has no `matrix`, `repeat` or `parallelism`",
                );
            };
        }
        // `parallelism` has its limit beside it, the others inside.
        let inner = ["matrix", "repeat"]
            .iter()
            .find_map(|key| strategy.at(&[key, "maxConcurrency"]));
        let limit = strategy.get("maxConcurrency").or(inner);
        let limit = limit
            .map(|limit| self.number(limit))
            .transpose()?
            .unwrap_or(0);
        // More than there are turns is no limit for Step Functions to take.
        let limit = limit.min(turns.len() as u64);
        for turn in &mut turns {
            turn.iteration.concurrency = u32::try_from(limit).unwrap_or(u32::MAX);
        }
        Ok(Loop {
            turns,
            skips_queued,
        })
    }

    /// Whether the guard `when` lets the loop begin.
    fn begins<'r>(&self, strategy: Ref<'r>) -> Outcome<'r, bool> {
        let when = strategy.get("when").filter(|when| when.text() != Some(""));
        let Some((when, text)) = when.and_then(|when| Some((when, when.text()?))) else {
            return Ok(true);
        };
        slipway_expr::condition(text, self.known, &Limits::default())
            .or_else(|error| later(when, &error.full_text()))
    }

    fn times<'r>(&self, count: Ref<'r>) -> Outcome<'r, Vec<Turn>> {
        let count = self.number(count).and_then(|total| within(total, count))?;
        Ok((0..count).map(|index| self.turn(index, count)).collect())
    }

    fn turn(&self, index: usize, total: usize) -> Turn {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let iteration = Iteration {
            of: self.of.clone(),
            index: number(index),
            total: number(total),
            concurrency: 0,
            matrix: IndexMap::new(),
            item: None,
            partition: None,
        };
        Turn {
            postfix: iteration.postfix(),
            iteration,
            label: None,
        }
    }

    fn repeat<'r>(&self, repeat: Ref<'r>) -> Outcome<'r, Vec<Turn>> {
        let mut turns = match (repeat.get("times"), repeat.get("items")) {
            (Some(times), _) => self.times(times)?,
            (None, Some(items)) => self.items(repeat, items)?,
            (None, None) => self.range(repeat)?,
        };
        self.label(&mut turns, repeat)?;
        Ok(turns)
    }

    /// `start` to `end` without items: the numbers from the one to before the other.
    fn range<'r>(&self, repeat: Ref<'r>) -> Outcome<'r, Vec<Turn>> {
        let Some(end) = repeat.get("end") else {
            return refuse(
                Code::MissingField,
                repeat,
                "it needs `times`, `items`, or `start` and `end`",
            );
        };
        let start = repeat.get("start").map(|start| self.number(start));
        let start = start.transpose()?.unwrap_or(0);
        let count = within(self.number(end)?.saturating_sub(start), end)?;
        let turns = (0..count).map(|index| {
            let mut turn = self.turn(index, count);
            turn.iteration.item = Some(start.saturating_add(index as u64).into());
            turn
        });
        Ok(turns.collect())
    }

    /// `items`, the part of them from `start` to `end`, in partitions where `partitionSize` says so.
    fn items<'r>(&self, repeat: Ref<'r>, items: Ref<'r>) -> Outcome<'r, Vec<Turn>> {
        let all = self.list(items)?;
        let percent = repeat.get_text("unit") == Some("Percentage");
        // Parts that follow one another neither overlap nor leave anything out.
        let count = |number: u64| -> usize {
            let part = match percent {
                true => (all.len() as u64).saturating_mul(number).div_ceil(100),
                false => number,
            };
            usize::try_from(part).unwrap_or(usize::MAX).min(all.len())
        };
        let bound = |key: &str| repeat.get(key).map(|value| self.number(value)).transpose();
        let start = bound("start")?.map_or(0, count);
        let end = bound("end")?.map_or(all.len(), count);
        let chosen = all.get(start..end).unwrap_or_default();
        let size = bound("partitionSize")?.map(count);
        let Some(size) = size.filter(|size| *size > 0) else {
            let total = within(chosen.len() as u64, items)?;
            let turns = chosen.iter().enumerate().map(|(index, item)| {
                let mut turn = self.turn(index, total);
                turn.iteration.item = Some(item.clone());
                turn
            });
            return Ok(turns.collect());
        };
        let total = within(chosen.len().div_ceil(size) as u64, items)?;
        let turns = chosen.chunks(size).enumerate().map(|(index, part)| {
            let mut turn = self.turn(index, total);
            turn.iteration.partition = Some(Value::Array(part.to_vec()));
            turn
        });
        Ok(turns.collect())
    }

    /// Evaluates `nodeName` for each turn.
    fn label<'r>(&self, turns: &mut [Turn], settings: Ref<'r>) -> Outcome<'r, ()> {
        let name = settings
            .get("nodeName")
            .filter(|name| name.text() != Some(""));
        let Some((at, text)) = name.and_then(|name| Some((name, name.text()?))) else {
            return Ok(());
        };
        for turn in turns {
            let inside = Inside {
                known: self.known,
                turn: &turn.iteration,
            };
            let label = evaluate(text, &inside).and_then(text_of);
            turn.label = Some(label.or_else(|reason| later(at, &reason))?);
        }
        Ok(())
    }

    fn number<'r>(&self, value: Ref<'r>) -> Outcome<'r, u64> {
        let Some(text) = value.text() else {
            let message = format!("{} stands where a number is expected", value.form());
            return refuse(Code::BadValue, value, message);
        };
        let text = match text.contains("<+") {
            true => evaluate(text, self.known)
                .and_then(text_of)
                .or_else(|reason| later(value, &reason))?,
            false => text.to_owned(),
        };
        text.trim().parse().or_else(|_| {
            let message = format!("`{text}` is no whole number of at least 0");
            refuse(Code::BadValue, value, message)
        })
    }

    /// A list, or an expression for one.
    fn list<'r>(&self, value: Ref<'r>) -> Outcome<'r, Vec<Value>> {
        if value.is_list() {
            return value.items().map(|item| self.item(item)).collect();
        }
        match self.item(value)? {
            Value::Array(items) => Ok(items),
            Value::String(text) => match serde_json::from_str::<Value>(text.trim()) {
                Ok(Value::Array(items)) => Ok(items),
                _ => refuse(Code::BadValue, value, no_list("a text")),
            },
            Value::Object(_) => refuse(Code::BadValue, value, no_list("a mapping")),
            _ => refuse(Code::BadValue, value, no_list("a single value")),
        }
    }

    fn item<'r>(&self, value: Ref<'r>) -> Outcome<'r, Value> {
        if let Some(text) = value.text() {
            if !text.contains("<+") {
                return Ok(Value::String(text.to_owned()));
            }
            // `<+a.b>.split(",")`, as Harness's own examples have it, is a call on the value.
            let call = format!("<+{text}>");
            let text = match text.trim_end().ends_with('>') || slipway_expr::parse(&call).is_err() {
                true => text,
                false => &call,
            };
            let found = evaluate(text, self.known).or_else(|reason| later(value, &reason))?;
            return match found.has_secrets() {
                true => refuse(Code::BadValue, value, SECRET),
                false => Ok(found.to_shown_json()),
            };
        }
        // Items of a document are texts, as they are everywhere in it.
        let mut found = value.to_json();
        let (mut fault, mut secret) = (None, false);
        texts(&mut found, &mut |text| match evaluate(text, self.known) {
            Ok(value) => {
                secret |= value.has_secrets();
                value.to_shown_json()
            }
            Err(reason) => {
                fault.get_or_insert(reason);
                Value::Null
            }
        });
        match fault {
            Some(reason) => later(value, &reason),
            None if secret => refuse(Code::BadValue, value, SECRET),
            None => Ok(found),
        }
    }
}

/// Replaces the texts with expressions of a document.
fn texts(value: &mut Value, replace: &mut dyn FnMut(&str) -> Value) {
    match value {
        Value::String(text) if text.contains("<+") => *value = replace(text),
        Value::Array(items) => items.iter_mut().for_each(|item| texts(item, replace)),
        Value::Object(fields) => fields.values_mut().for_each(|field| texts(field, replace)),
        _ => {}
    }
}

/// What is not known before the run, and may be while it goes on where it names what runs bring forth.
fn later<'r, T>(at: Ref<'r>, reason: &str) -> Outcome<'r, T> {
    let mut texts = at.scalars().filter_map(Ref::scalar);
    Err(Refused {
        at,
        code: Code::NotSupported,
        message: format!("what it goes over is not known: {reason}"),
        later: texts.any(|text| is_of_run(text, reason)) || is_of_run("", reason),
    })
}

/// Whether what a text stands for, which cannot be told for this reason, may be brought forth by the run. A variable may
/// stand between; the reason names what it stands for.
pub(super) fn is_of_run(text: &str, reason: &str) -> bool {
    let named = |text: &str| BROUGHT_FORTH.iter().any(|name| text.contains(name));
    named(text) || named(reason)
}

/// Names of what runs bring forth, in expressions.
const BROUGHT_FORTH: &[&str] = &[
    "output",
    "steps.",
    "tatus",
    "execution.",
    "pipeline.stages.",
    "pipeline.sequenceId",
    "approvalActivities",
];

/// What a turn goes over is part of its name and of the run's record.
const SECRET: &str = "secrets cannot be looped over; loop over their names, and ask for each with `<+secrets.getValue(<+repeat.item>)>` or `<+secrets.getValue(<+matrix.AXIS>)>`";

fn no_list(found: &str) -> String {
    format!("{found} stands where a list is expected; `.split(\",\")` makes one of a text")
}

fn too_many(turns: u64) -> String {
    format!("{turns} turns; a loop has at most {MOST_TURNS}")
}

fn within(total: u64, at: Ref<'_>) -> Outcome<'_, usize> {
    match usize::try_from(total) {
        Ok(total) if total <= MOST_TURNS => Ok(total),
        _ => refuse(Code::Limit, at, too_many(total)),
    }
}
