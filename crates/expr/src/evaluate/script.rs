//! Scripts: loops over lists, conditions, and the value that they return.

use super::{Evaluator, Outcome};
use crate::ast::{Expr, Statement};
use crate::error::Reason;
use crate::operator;
use crate::value::Value;

/// How a statement ended.
enum Flow {
    /// With a value, which is the script's if nothing follows.
    Next(Value),
    Return(Value),
}

impl Evaluator<'_> {
    /// The value that a script returns, or else that of its last statement.
    pub(super) fn script(&mut self, statements: &[Statement]) -> Outcome {
        let depth = self.locals.len();
        let flow = self.statements(statements);
        self.locals.truncate(depth);
        match flow? {
            Flow::Next(value) | Flow::Return(value) => Ok(value),
        }
    }

    fn statements(&mut self, statements: &[Statement]) -> Result<Flow, Reason> {
        let mut last = Value::Null;
        for statement in statements {
            match self.deeper(|this| this.statement(statement))? {
                Flow::Next(value) => last = value,
                returned => return Ok(returned),
            }
        }
        Ok(Flow::Next(last))
    }

    fn statement(&mut self, statement: &Statement) -> Result<Flow, Reason> {
        self.meter.spend(1)?;
        match statement {
            Statement::Value(expr) => self.eval(expr).map(Flow::Next),
            Statement::Return(None) => Ok(Flow::Return(Value::Null)),
            Statement::Return(Some(expr)) => self.eval(expr).map(Flow::Return),
            Statement::Block(statements) => self.statements(statements),
            Statement::If {
                condition,
                then,
                otherwise,
            } => {
                let holds = self.eval(condition)?;
                match (operator::truth("if", &holds)?, otherwise) {
                    (true, _) => self.deeper(|this| this.statement(then)),
                    (false, Some(otherwise)) => self.deeper(|this| this.statement(otherwise)),
                    (false, None) => Ok(Flow::Next(Value::Null)),
                }
            }
            Statement::For { name, items, body } => self.iterate(name, items, body),
        }
    }

    fn iterate(&mut self, name: &str, items: &Expr, body: &Statement) -> Result<Flow, Reason> {
        let items = match self.eval(items)? {
            Value::List(items) => items,
            Value::Map(map) => map.into_values().collect(),
            Value::Null => Vec::new(),
            other => {
                return Err(Reason::Type {
                    operation: "`for`".to_owned(),
                    wants: "lists and maps",
                    got: other.kind().to_owned(),
                });
            }
        };
        let mut last = Value::Null;
        for item in items {
            self.locals.push((name.to_owned(), item));
            let flow = self.deeper(|this| this.statement(body));
            self.locals.pop();
            match flow? {
                Flow::Next(value) => last = value,
                returned => return Ok(returned),
            }
        }
        Ok(Flow::Next(last))
    }
}
