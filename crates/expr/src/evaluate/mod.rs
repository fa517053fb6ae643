//! Walks a parsed expression and computes its value, within [`Limits`].

mod path;
mod script;

pub(crate) use path::FUNCTION_NAMESPACES;

use indexmap::IndexMap;

use crate::ast::{Access, Binary, Builtin, Choice, Expr, Part, Unary};
use crate::error::{EvalError, Reason};
use crate::limits::{Meter, limit};
use crate::secret::SecretText;
use crate::value::{Segment, Value};
use crate::{Context, Limits, method, operator};

type Outcome = Result<Value, Reason>;

pub(crate) struct Evaluator<'a> {
    cx: &'a dyn Context,
    limits: &'a Limits,
    pub(crate) meter: Meter<'a>,
    depth: usize,
    /// Paths whose definitions are being evaluated, outermost first.
    defining: Vec<String>,
    /// Variables of loops, outermost first.
    locals: Vec<(String, Value)>,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(cx: &'a dyn Context, limits: &'a Limits) -> Self {
        Self {
            cx,
            limits,
            meter: Meter::new(limits),
            depth: 0,
            defining: Vec::new(),
            locals: Vec::new(),
        }
    }

    /// The value of a text: typed if it is one expression and nothing else, otherwise joined.
    pub(crate) fn template(&mut self, source: &str, parts: &[Part]) -> Result<Value, EvalError> {
        let named = |reason, part: &Part| {
            let shown = match part {
                Part::Expression(nested) => source.get(nested.span.clone()),
                Part::Text(_) => None,
            };
            EvalError::new(shown.unwrap_or(source), reason)
        };
        match parts {
            [] => Ok(Value::from("")),
            [Part::Text(text)] => Ok(Value::from(text.as_str())),
            [part @ Part::Expression(nested)] => self
                .eval(&nested.expr)
                .map_err(|reason| named(reason, part)),
            _ => {
                let mut out = SecretText::default();
                let mut bytes = 0;
                for part in parts {
                    bytes += self
                        .append(&mut out, part)
                        .map_err(|reason| named(reason, part))?;
                    if bytes > self.limits.text_bytes {
                        let reason = limit(self.limits.text_bytes, "bytes of text");
                        return Err(EvalError::new(source, reason));
                    }
                }
                Ok(Value::from(out))
            }
        }
    }

    /// Adds a part to a text; the bytes that it takes there.
    fn append(&mut self, out: &mut SecretText, part: &Part) -> Result<usize, Reason> {
        match part {
            Part::Text(text) => {
                out.push_plain(text);
                Ok(text.len())
            }
            Part::Expression(nested) => {
                let value = self.eval(&nested.expr)?;
                operator::append(out, &value, "joining text")
            }
        }
    }

    pub(crate) fn eval(&mut self, expr: &Expr) -> Outcome {
        self.deeper(|this| this.dispatch(expr))
    }

    fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, Reason>) -> Result<T, Reason> {
        if self.depth == self.limits.depth {
            return Err(limit(self.limits.depth, "levels of nesting"));
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    fn dispatch(&mut self, expr: &Expr) -> Outcome {
        let value = match expr {
            Expr::Literal(value) => value.clone(),
            Expr::Text(parts) => Value::from(self.text(parts)?),
            // What is inside has been counted.
            Expr::Nested(expr) => return self.eval(expr),
            Expr::Path(path) => self.path(path)?,
            Expr::Of(base, steps) => {
                let value = self.eval(base)?;
                self.accesses(value, steps)?
            }
            Expr::Call(builtin, argument) => self.builtin(*builtin, argument)?,
            Expr::List(items) => Value::List(self.all(items)?),
            Expr::Map(entries) => self.map(entries)?,
            Expr::Unary(operators, operand) => self.unary(operators, operand)?,
            Expr::Chain(first, more) => return self.chain(first, more),
            Expr::Choice(choice) => return self.choice(choice),
            Expr::Script(statements) => return self.script(statements),
        };
        self.meter.value(&value)?;
        Ok(value)
    }

    fn all(&mut self, exprs: &[Expr]) -> Result<Vec<Value>, Reason> {
        exprs.iter().map(|expr| self.eval(expr)).collect()
    }

    fn unary(&mut self, operators: &[Unary], operand: &Expr) -> Outcome {
        let mut value = self.eval(operand)?;
        for operator in operators.iter().rev() {
            value = match operator {
                Unary::Not => Value::Bool(!operator::truth("!", &value)?),
                Unary::Minus => operator::negate(&value)?,
                Unary::Plus => value,
            };
            self.meter.spend(1)?;
        }
        Ok(value)
    }

    fn text(&mut self, parts: &[Part]) -> Result<SecretText, Reason> {
        let mut out = SecretText::default();
        let mut bytes = 0;
        for part in parts {
            bytes += self.append(&mut out, part)?;
            self.meter.bounded(bytes)?;
        }
        Ok(out)
    }

    fn map(&mut self, entries: &[(Expr, Expr)]) -> Outcome {
        let mut map = IndexMap::new();
        for (key, value) in entries {
            let bare = match key {
                // `{name: 1}`: a bare name is itself, as in JEXL's map literals with string keys.
                Expr::Path(path) => match (path.head.as_slice(), path.steps.as_slice()) {
                    ([Segment::Key(name)], []) => Some(name.clone()),
                    ([], [Access::Joined(parts)]) => Some(self.text(parts)?.to_string()),
                    _ => None,
                },
                _ => None,
            };
            let key = match bare {
                Some(name) => name,
                None => method::text_argument("{}", &self.eval(key)?)?,
            };
            map.insert(key, self.eval(value)?);
        }
        Ok(Value::Map(map))
    }

    fn chain(&mut self, first: &Expr, more: &[(Binary, Expr)]) -> Outcome {
        let mut left = match more.first() {
            Some((Binary::Equal | Binary::NotEqual, right)) if is_null(right) => {
                self.eval_or_null(first)?
            }
            Some((operator, _)) => self.eval(first).map_err(|why| beside(*operator, why))?,
            None => self.eval(first)?,
        };
        for (operator, right) in more {
            let decided = match operator {
                Binary::Or => operator::truth("||", &left)?,
                Binary::And => !operator::truth("&&", &left)?,
                _ => false,
            };
            left = if decided {
                Value::Bool(*operator == Binary::Or)
            } else {
                let right = match operator {
                    Binary::Equal | Binary::NotEqual if left == Value::Null => {
                        self.eval_or_null(right)?
                    }
                    _ => self.eval(right).map_err(|why| beside(*operator, why))?,
                };
                operator::binary(*operator, &left, &right, &mut self.meter)?
            };
            self.meter.value(&left)?;
        }
        Ok(left)
    }

    fn choice(&mut self, choice: &Choice) -> Outcome {
        match choice {
            Choice::Ternary {
                condition,
                then,
                otherwise,
            } => {
                let value = self.eval(condition)?;
                if operator::truth("?:", &value)? {
                    self.eval(then)
                } else {
                    self.eval(otherwise)
                }
            }
            Choice::Elvis { value, otherwise } => match self.eval_or_null(value)? {
                Value::Null | Value::Bool(false) | Value::Int(0) => self.eval(otherwise),
                Value::String(text) if text.is_empty() => self.eval(otherwise),
                value => Ok(value),
            },
            Choice::Coalesce { value, otherwise } => match self.eval_or_null(value)? {
                Value::Null => self.eval(otherwise),
                value => Ok(value),
            },
        }
    }

    /// Undefined is null where an expression asks for just that: `== null`, `empty()`, `?:`, `??`.
    fn eval_or_null(&mut self, expr: &Expr) -> Outcome {
        match self.eval(expr) {
            Err(Reason::Undefined { .. }) => Ok(Value::Null),
            other => other,
        }
    }

    fn builtin(&mut self, builtin: Builtin, argument: &Expr) -> Outcome {
        match builtin {
            Builtin::Empty => Ok(Value::Bool(match self.eval_or_null(argument)? {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                Value::List(items) => items.is_empty(),
                Value::Map(map) => map.is_empty(),
                _ => false,
            })),
            Builtin::Size => {
                let value = self.eval(argument)?;
                method::call(&value, "size", &[], &mut self.meter)
            }
        }
    }
}

/// An error of an operand, with what an operator tells of it.
fn beside(operator: Binary, reason: Reason) -> Reason {
    match reason {
        Reason::Undefined { path, .. } => Reason::Undefined {
            path,
            subtracted: operator == Binary::Subtract,
        },
        other => other,
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(Value::Null))
}
