//! Evaluates paths, counting every node that is looked at.

use roxmltree::Document;

use super::axis::along;
use super::function;
use super::item::{Computed, Item, text_number};
use super::parse::{Operator, Start, Step, XPath};
use crate::error::Reason;
use crate::limits::Meter;

/// Where an expression is evaluated.
#[derive(Clone, Copy)]
pub(super) struct Place<'a, 'i> {
    pub(super) item: Item<'a, 'i>,
    /// From 1, in the order of the axis.
    pub(super) position: usize,
    pub(super) size: usize,
}

pub(super) struct Walk<'w, 'm> {
    path: &'w str,
    pub(super) meter: &'w mut Meter<'m>,
}

type Outcome<'a, 'i> = Result<Computed<'a, 'i>, Reason>;

impl<'w, 'm> Walk<'w, 'm> {
    pub(super) fn new(path: &'w str, meter: &'w mut Meter<'m>) -> Self {
        Self { path, meter }
    }

    pub(super) fn evaluate<'a, 'i>(
        &mut self,
        expr: &XPath,
        document: &'a Document<'i>,
    ) -> Outcome<'a, 'i> {
        let root = Place {
            item: Item::Node(document.root()),
            position: 1,
            size: 1,
        };
        self.expr(expr, root)
    }

    /// An error in the path.
    pub(super) fn fault(&self, problem: impl Into<String>) -> Reason {
        super::fault(self.path, problem)
    }

    pub(super) fn expr<'a, 'i>(&mut self, expr: &XPath, place: Place<'a, 'i>) -> Outcome<'a, 'i> {
        self.meter.spend(1)?;
        match expr {
            XPath::Literal(text) => Ok(Computed::Text(text.clone())),
            XPath::Number(number) => Ok(Computed::Number(*number)),
            XPath::Call(name, arguments) => function::call(self, name, arguments, place),
            XPath::Negate(operand) => {
                let number = self.expr(operand, place)?.number(self.meter)?;
                Ok(Computed::Number(-number))
            }
            XPath::Chain(first, more) => {
                let mut left = self.expr(first, place)?;
                for (operator, right) in more {
                    left = self.operate(*operator, left, right, place)?;
                }
                Ok(left)
            }
            XPath::Path(start, steps) => self.path(start, steps, place).map(Computed::Items),
        }
    }

    fn operate<'a, 'i>(
        &mut self,
        operator: Operator,
        left: Computed<'a, 'i>,
        right: &XPath,
        place: Place<'a, 'i>,
    ) -> Outcome<'a, 'i> {
        match operator {
            Operator::Or if left.truth() => return Ok(Computed::Bool(true)),
            Operator::And if !left.truth() => return Ok(Computed::Bool(false)),
            _ => {}
        }
        let right = self.expr(right, place)?;
        let number = |a: f64, b: f64| match operator {
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide => a / b,
            _ => a % b,
        };
        match operator {
            Operator::Or | Operator::And => Ok(Computed::Bool(right.truth())),
            Operator::Union => match (left, right) {
                (Computed::Items(mut all), Computed::Items(more)) => {
                    all.extend(more);
                    self.ordered(all).map(Computed::Items)
                }
                _ => Err(self.fault("`|` joins nodes only")),
            },
            Operator::Add
            | Operator::Subtract
            | Operator::Multiply
            | Operator::Divide
            | Operator::Remainder => {
                let (a, b) = (left.number(self.meter)?, right.number(self.meter)?);
                Ok(Computed::Number(number(a, b)))
            }
            comparison => self.compare(comparison, &left, &right).map(Computed::Bool),
        }
    }

    /// Nodes compare as soon as one of them does.
    fn compare(
        &mut self,
        operator: Operator,
        left: &Computed<'_, '_>,
        right: &Computed<'_, '_>,
    ) -> Result<bool, Reason> {
        let swapped = match operator {
            Operator::Less => Operator::Greater,
            Operator::LessOrEqual => Operator::GreaterOrEqual,
            Operator::Greater => Operator::Less,
            Operator::GreaterOrEqual => Operator::LessOrEqual,
            same => same,
        };
        match (left, right) {
            (Computed::Items(_), Computed::Bool(b)) => {
                Ok(numbers(operator, number(left.truth()), number(*b)))
            }
            (Computed::Bool(b), Computed::Items(_)) => {
                Ok(numbers(operator, number(*b), number(right.truth())))
            }
            (Computed::Items(items), Computed::Items(others)) => {
                let mut texts = Vec::new();
                for other in others {
                    texts.push(other.text(self.meter)?);
                }
                for item in items {
                    let text = item.text(self.meter)?;
                    self.meter.spend(texts.len())?;
                    if texts.iter().any(|other| strings(operator, &text, other)) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (Computed::Items(items), single) => {
                for item in items {
                    let text = Computed::Text(item.text(self.meter)?);
                    if self.compare(operator, &text, single)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (single, Computed::Items(_)) => self.compare(swapped, right, single),
            (Computed::Text(a), Computed::Text(b)) => Ok(strings(operator, a, b)),
            (Computed::Bool(_), _) | (_, Computed::Bool(_)) => {
                let (a, b) = (number(left.truth()), number(right.truth()));
                Ok(numbers(operator, a, b))
            }
            _ => {
                let (a, b) = (left.number(self.meter)?, right.number(self.meter)?);
                Ok(numbers(operator, a, b))
            }
        }
    }

    fn path<'a, 'i>(
        &mut self,
        start: &Start,
        steps: &[Step],
        place: Place<'a, 'i>,
    ) -> Result<Vec<Item<'a, 'i>>, Reason> {
        let mut items = match start {
            Start::Here => vec![place.item],
            Start::Root => vec![Item::Node(place.item.node().document().root())],
            Start::Of(expr, predicates) => match self.expr(expr, place)? {
                Computed::Items(items) => self.filtered(items, predicates)?,
                _ => return Err(self.fault("only nodes have a path or a filter behind them")),
            },
        };
        for step in steps {
            let mut next = Vec::new();
            for item in items {
                let found = along(item, step.axis, &step.test, self.meter)?;
                next.extend(self.filtered(found, &step.predicates)?);
            }
            items = self.ordered(next)?;
        }
        Ok(items)
    }

    fn filtered<'a, 'i>(
        &mut self,
        mut items: Vec<Item<'a, 'i>>,
        predicates: &[XPath],
    ) -> Result<Vec<Item<'a, 'i>>, Reason> {
        for predicate in predicates {
            let size = items.len();
            let mut kept = Vec::new();
            for (position, item) in (1..).zip(items) {
                let place = Place {
                    item,
                    position,
                    size,
                };
                let keep = match self.expr(predicate, place)? {
                    Computed::Number(number) => number == position as f64,
                    other => other.truth(),
                };
                if keep {
                    kept.push(item);
                }
            }
            items = kept;
        }
        Ok(items)
    }

    fn ordered<'a, 'i>(
        &mut self,
        mut items: Vec<Item<'a, 'i>>,
    ) -> Result<Vec<Item<'a, 'i>>, Reason> {
        self.meter.spend(items.len() / 4)?;
        items.sort_unstable_by_key(Item::key);
        items.dedup_by_key(|item| item.key());
        Ok(items)
    }
}

fn number(b: bool) -> f64 {
    f64::from(u8::from(b))
}

fn strings(operator: Operator, a: &str, b: &str) -> bool {
    match operator {
        Operator::Equal => a == b,
        Operator::NotEqual => a != b,
        _ => numbers(operator, text_number(a), text_number(b)),
    }
}

fn numbers(operator: Operator, a: f64, b: f64) -> bool {
    match operator {
        Operator::Equal => a == b,
        Operator::NotEqual => a != b,
        Operator::Less => a < b,
        Operator::LessOrEqual => a <= b,
        Operator::Greater => a > b,
        _ => a >= b,
    }
}
