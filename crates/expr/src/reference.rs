//! What a text refers to, without evaluating it: for checks before a run.

use std::fmt;

use crate::ast::{self, Access, Choice, Expr, Nested, Part, Statement};
use crate::secret::SecretRef;
use crate::value::{Segment, Value, path_text};

/// A path that an expression reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// The segments that are known without evaluating; from the first computed one on they are left out.
    pub segments: Vec<Segment>,
    /// Whether all segments are known.
    pub complete: bool,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&path_text(&self.segments))?;
        if self.complete {
            Ok(())
        } else {
            f.write_str(".…")
        }
    }
}

#[derive(Default)]
pub(crate) struct Found {
    pub(crate) paths: Vec<Path>,
    pub(crate) secrets: Vec<SecretRef>,
    /// Variables of loops, which are no paths.
    locals: Vec<String>,
}

pub(crate) fn of_parts(parts: &[Part]) -> Found {
    let mut found = Found::default();
    found.parts(parts);
    found
}

impl Found {
    fn parts(&mut self, parts: &[Part]) {
        for part in parts {
            if let Part::Expression(Nested { expr, .. }) = part {
                self.expr(expr);
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Literal(_) => {}
            Expr::Text(parts) => self.parts(parts),
            Expr::Nested(expr) => self.expr(expr),
            Expr::Path(path) => {
                self.path(path);
                self.steps(&path.steps);
            }
            Expr::Of(base, steps) => {
                self.expr(base);
                self.steps(steps);
            }
            Expr::Call(_, operand) | Expr::Unary(_, operand) => self.expr(operand),
            Expr::List(items) => items.iter().for_each(|item| self.expr(item)),
            Expr::Map(entries) => entries.iter().for_each(|(key, value)| {
                self.expr(key);
                self.expr(value);
            }),
            Expr::Chain(first, more) => {
                self.expr(first);
                more.iter().for_each(|(_, operand)| self.expr(operand));
            }
            Expr::Choice(choice) => self.choice(choice),
            Expr::Script(statements) => statements.iter().for_each(|s| self.statement(s)),
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Value(expr) | Statement::Return(Some(expr)) => self.expr(expr),
            Statement::Return(None) => {}
            Statement::Block(statements) => statements.iter().for_each(|s| self.statement(s)),
            Statement::If {
                condition,
                then,
                otherwise,
            } => {
                self.expr(condition);
                self.statement(then);
                otherwise.iter().for_each(|s| self.statement(s));
            }
            Statement::For { name, items, body } => {
                self.expr(items);
                self.locals.push(name.clone());
                self.statement(body);
                self.locals.pop();
            }
        }
    }

    fn choice(&mut self, choice: &Choice) {
        match choice {
            Choice::Ternary {
                condition,
                then,
                otherwise,
            } => [condition, then, otherwise]
                .into_iter()
                .for_each(|e| self.expr(e)),
            Choice::Elvis { value, otherwise } | Choice::Coalesce { value, otherwise } => {
                self.expr(value);
                self.expr(otherwise);
            }
        }
    }

    /// Expressions inside of names, indices and arguments.
    fn steps(&mut self, steps: &[Access]) {
        for step in steps {
            match step {
                Access::Known(_) | Access::Safe(_) => {}
                Access::Joined(parts) => self.parts(parts),
                Access::Index(index) => self.expr(index),
                Access::Method(_, arguments) => arguments.iter().for_each(|a| self.expr(a)),
            }
        }
    }

    fn path(&mut self, path: &ast::Path) {
        if let Some(Segment::Key(first)) = path.head.first()
            && self.locals.contains(first)
        {
            return;
        }
        let mut segments = path.head.clone();
        let mut complete = true;
        for step in &path.steps {
            let segment = match step {
                Access::Known(segment) => Some(segment.clone()),
                Access::Safe(_) => break,
                Access::Joined(_) | Access::Index(_) => None,
                Access::Method(name, arguments) => {
                    if self.functor(&segments, name, arguments) {
                        return;
                    }
                    match (name.as_str(), arguments.as_slice()) {
                        ("get", [Expr::Literal(index)]) => crate::method::index_segment(index).ok(),
                        ("get", [_]) => None,
                        _ => break,
                    }
                }
            };
            match segment {
                Some(segment) => segments.push(segment),
                None => {
                    complete = false;
                    break;
                }
            }
        }
        let path = Path { segments, complete };
        if !self.paths.contains(&path) {
            self.paths.push(path);
        }
    }

    /// Whether this is a function of a built-in namespace, which reads nothing but its arguments.
    fn functor(&mut self, namespace: &[Segment], name: &str, arguments: &[Expr]) -> bool {
        let namespace = match namespace {
            [] => return true,
            [Segment::Key(namespace)] => namespace,
            _ => return false,
        };
        if namespace == "secrets"
            && name == "getValue"
            && let [Expr::Literal(Value::String(reference))] = arguments
            && let Ok(reference) = SecretRef::new(reference.as_str())
            && !self.secrets.contains(&reference)
        {
            self.secrets.push(reference);
        }
        crate::evaluate::FUNCTION_NAMESPACES.contains(&namespace.as_str())
    }
}
