//! Walks a parsed expression and computes its value, within [`Limits`].

use indexmap::IndexMap;

use crate::ast::{Access, Binary, Builtin, Choice, Expr, Nested, Part, Unary};
use crate::error::{EvalError, Reason, shorten};
use crate::secret::SecretText;
use crate::value::{Segment, Value, path_text};
use crate::{Context, Limits, functor, grammar, method, operator};

type Outcome = Result<Value, Reason>;

pub(crate) struct Evaluator<'a> {
    cx: &'a dyn Context,
    limits: &'a Limits,
    steps: usize,
    depth: usize,
    /// Paths whose definitions are being evaluated, outermost first.
    defining: Vec<String>,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(cx: &'a dyn Context, limits: &'a Limits) -> Self {
        Self {
            cx,
            limits,
            steps: 0,
            depth: 0,
            defining: Vec::new(),
        }
    }

    /// The value of a text: typed if it is one expression and nothing else, otherwise joined.
    pub(crate) fn template(&mut self, source: &str, parts: &[Part]) -> Result<Value, EvalError> {
        let named = |reason, part: Option<&Part>| match part {
            Some(Part::Expression(nested)) => EvalError::new(&nested.source, reason),
            _ => EvalError::new(source, reason),
        };
        match parts {
            [] => Ok(Value::from("")),
            [Part::Text(text)] => Ok(Value::from(text.as_str())),
            [part @ Part::Expression(nested)] => self
                .eval(&nested.expr)
                .map_err(|reason| named(reason, Some(part))),
            _ => {
                let mut out = SecretText::default();
                for part in parts {
                    self.append(&mut out, part)
                        .map_err(|reason| named(reason, Some(part)))?;
                    if out.plain_len() > self.limits.text_bytes {
                        return Err(named(limit(self.limits.text_bytes, "bytes of text"), None));
                    }
                }
                Ok(Value::from(out))
            }
        }
    }

    fn append(&mut self, out: &mut SecretText, part: &Part) -> Result<(), Reason> {
        match part {
            Part::Text(text) => {
                out.push_plain(text);
                Ok(())
            }
            Part::Expression(nested) => {
                let value = self.eval(&nested.expr)?;
                operator::append(out, &value, "joining text")
            }
        }
    }

    pub(crate) fn eval(&mut self, expr: &Expr) -> Outcome {
        if self.depth == self.limits.depth {
            return Err(limit(self.limits.depth, "levels of nesting"));
        }
        self.depth += 1;
        let value = self.dispatch(expr);
        self.depth -= 1;
        let value = value?;
        self.spend(&value)?;
        Ok(value)
    }

    /// Counts the work that a value cost.
    fn spend(&mut self, value: &Value) -> Result<(), Reason> {
        let bytes = match value {
            Value::String(text) => text.len(),
            Value::Secret(text) => text.plain_len(),
            Value::List(items) => items.len() * size_of::<Value>(),
            Value::Map(map) => map.len() * size_of::<Value>(),
            _ => 0,
        };
        if bytes > self.limits.value_bytes && matches!(value, Value::String(_) | Value::Secret(_)) {
            return Err(limit(self.limits.value_bytes, "bytes in one value"));
        }
        self.steps += 1 + bytes / 64;
        if self.steps > self.limits.steps {
            return Err(limit(self.limits.steps, "steps of evaluation"));
        }
        Ok(())
    }

    fn dispatch(&mut self, expr: &Expr) -> Outcome {
        match expr {
            Expr::Literal(value) => Ok(value.clone()),
            Expr::Text(parts) => self.text(parts).map(Value::from),
            Expr::Nested(nested) => self.nested(nested),
            Expr::Path(steps) => self.path(steps),
            Expr::Of(base, steps) => {
                let value = self.eval(base)?;
                self.accesses(value, steps)
            }
            Expr::Call(builtin, argument) => self.builtin(*builtin, argument),
            Expr::List(items) => {
                let values: Result<Vec<_>, _> = items.iter().map(|item| self.eval(item)).collect();
                values.map(Value::List)
            }
            Expr::Map(entries) => self.map(entries),
            Expr::Unary(operators, operand) => {
                let mut value = self.eval(operand)?;
                for operator in operators.iter().rev() {
                    value = match operator {
                        Unary::Not => Value::Bool(!operator::truth("!", &value)?),
                        Unary::Minus => operator::negate(&value)?,
                        Unary::Plus => value,
                    };
                    self.spend(&value)?;
                }
                Ok(value)
            }
            Expr::Chain(first, more) => self.chain(first, more),
            Expr::Choice(choice) => self.choice(choice),
        }
    }

    fn nested(&mut self, nested: &Nested) -> Outcome {
        self.eval(&nested.expr)
    }

    fn text(&mut self, parts: &[Part]) -> Result<SecretText, Reason> {
        let mut out = SecretText::default();
        for part in parts {
            self.append(&mut out, part)?;
            if out.plain_len() > self.limits.value_bytes {
                return Err(limit(self.limits.value_bytes, "bytes in one value"));
            }
        }
        Ok(out)
    }

    fn map(&mut self, entries: &[(Expr, Expr)]) -> Outcome {
        let mut map = IndexMap::new();
        for (key, value) in entries {
            let key = match key {
                // `{name: 1}`: a bare name is itself, as in JEXL's map literals with string keys.
                Expr::Path(steps) => match steps.as_slice() {
                    [Access::Property(parts)] => self.text(parts)?.to_string(),
                    _ => method::text_argument("{}", &self.eval(key)?)?,
                },
                _ => method::text_argument("{}", &self.eval(key)?)?,
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
            _ => self.eval(first)?,
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
                    _ => self.eval(right)?,
                };
                operator::binary(*operator, &left, &right)?
            };
            self.spend(&left)?;
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
                method::call(&value, "size", &[], self.limits.value_bytes)
            }
        }
    }

    /// A path from a name that the context knows, or a function in a namespace.
    fn path(&mut self, steps: &[Access]) -> Outcome {
        let mut path = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            match step {
                Access::Property(parts) => path.push(Segment::Key(self.key(parts)?)),
                Access::Index(index) => path.push(method::index_segment(&self.eval(index)?)?),
                Access::Method(name, arguments) => {
                    let arguments = self.arguments(arguments)?;
                    let value = match self.function(&path, name, &arguments) {
                        Some(result) => result?,
                        None => match (name.as_str(), arguments.as_slice()) {
                            // How Harness writes names that are no identifiers: the path goes on.
                            ("get", [index]) => {
                                path.push(method::index_segment(index)?);
                                continue;
                            }
                            _ => {
                                let value = self.resolve(&path)?;
                                method::call(&value, name, &arguments, self.limits.value_bytes)?
                            }
                        },
                    };
                    self.spend(&value)?;
                    return self.accesses(value, &steps[at + 1..]);
                }
            }
        }
        self.resolve(&path)
    }

    fn key(&mut self, parts: &[Part]) -> Result<String, Reason> {
        match self.text(parts)? {
            text if text.has_secrets() => Err(Reason::Secret {
                operation: "a name in a path".to_owned(),
            }),
            text => Ok(text.to_string()),
        }
    }

    fn arguments(&mut self, arguments: &[Expr]) -> Result<Vec<Value>, Reason> {
        arguments
            .iter()
            .map(|argument| self.eval(argument))
            .collect()
    }

    /// Calls a function in a namespace; `None` if `name` must be a method of a value.
    fn function(&self, path: &[Segment], name: &str, arguments: &[Value]) -> Option<Outcome> {
        let namespace: Option<Vec<&str>> = path.iter().map(Segment::key).collect();
        let namespace = namespace?.join(".");
        let full = format!("{namespace}.{name}");
        if let Some(result) = self.cx.call(&full, arguments) {
            let problem = |problem| Reason::Operation {
                operation: format!("{full}()"),
                problem,
            };
            return Some(result.map_err(problem));
        }
        let missing = || Reason::NoMethod {
            name: format!("{name}({})", vec!["_"; arguments.len()].join(", ")),
            subject: namespace.clone(),
        };
        functor::call(&full, arguments).or_else(|| {
            FUNCTION_NAMESPACES
                .contains(&namespace.as_str())
                .then(|| Err(missing()))
        })
    }

    /// What the context knows of a path: the longest beginning that it knows, and from there the
    /// properties of that value.
    fn resolve(&mut self, path: &[Segment]) -> Outcome {
        let undefined = || Reason::Undefined {
            path: path_text(path),
        };
        for known in (1..=path.len()).rev() {
            let (head, tail) = path.split_at(known);
            let value = match self.cx.definition(head) {
                Some(text) => Some(self.definition(head, &text)?),
                None => self.cx.lookup(head),
            };
            if let Some(value) = value {
                return value.descend(tail).cloned().ok_or_else(undefined);
            }
        }
        Err(undefined())
    }

    fn definition(&mut self, path: &[Segment], text: &str) -> Outcome {
        let name = path_text(path);
        if self.defining.contains(&name) {
            self.defining.push(name);
            return Err(Reason::Loop(self.defining.join(" -> ")));
        }
        let parts = grammar::template(text).map_err(|source| Reason::Definition {
            path: name.clone(),
            source,
        })?;
        self.defining.push(name);
        if self.depth == self.limits.depth {
            return Err(limit(self.limits.depth, "levels of nesting"));
        }
        self.depth += 1;
        let value = self.template(text, &parts).map_err(|error| error.reason);
        self.depth -= 1;
        self.defining.pop();
        value
    }

    fn accesses(&mut self, mut value: Value, steps: &[Access]) -> Outcome {
        for step in steps {
            value = match step {
                Access::Property(parts) => {
                    let key = Segment::Key(self.key(parts)?);
                    child(&value, &key)?
                }
                Access::Index(index) => {
                    let index = method::index_segment(&self.eval(index)?)?;
                    child(&value, &index)?
                }
                Access::Method(name, arguments) => {
                    let arguments = self.arguments(arguments)?;
                    method::call(&value, name, &arguments, self.limits.value_bytes)?
                }
            };
            self.spend(&value)?;
        }
        Ok(value)
    }
}

/// Namespaces that hold functions only, so that nothing in them can be a value with a method.
const FUNCTION_NAMESPACES: [&str; 6] = ["secrets", "json", "regex", "xml", "date", "datetime"];

fn child(value: &Value, segment: &Segment) -> Outcome {
    if matches!(value, Value::Secret(_)) {
        return Err(Reason::Secret {
            operation: "a property".to_owned(),
        });
    }
    value
        .child(segment)
        .cloned()
        .ok_or_else(|| Reason::Undefined {
            path: shorten(&format!(
                "{} of {}",
                path_text(std::slice::from_ref(segment)),
                value.kind()
            )),
        })
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(Value::Null))
}

fn limit(limit: usize, unit: &'static str) -> Reason {
    Reason::Limit { limit, unit }
}
