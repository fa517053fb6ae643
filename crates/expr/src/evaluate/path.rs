//! Paths: what the context knows, and what is reached from values.

use std::borrow::Cow;

use super::{Evaluator, Outcome};
use crate::ast::{Access, Expr, Part, Path};
use crate::error::{Reason, shorten};
use crate::limits::limit;
use crate::value::{Segment, Value, path_text};
use crate::{functor, grammar, method};

impl Evaluator<'_> {
    /// A path from a name that the context knows, or a function in a namespace.
    pub(super) fn path(&mut self, path: &Path) -> Outcome {
        if let [Segment::Key(name), tail @ ..] = path.head.as_slice()
            && let Some((_, value)) = self.locals.iter().rev().find(|(local, _)| local == name)
        {
            let value = value
                .descend(tail)
                .cloned()
                .ok_or_else(|| undefined(&path.head))?;
            self.meter.value(&value)?;
            return self.accesses(value, &path.steps);
        }
        let mut known = Cow::Borrowed(path.head.as_slice());
        for (at, step) in path.steps.iter().enumerate() {
            let segment = match step {
                Access::Known(segment) => segment.clone(),
                Access::Joined(parts) => Segment::Key(self.key(parts)?),
                Access::Index(index) => method::index_segment(&self.eval(index)?)?,
                Access::Safe(_) => {
                    let value = self.resolve_or_null(&known)?;
                    return self.accesses(value, path.steps.get(at..).unwrap_or_default());
                }
                Access::Method(name, arguments) => {
                    let arguments = self.arguments(arguments)?;
                    let value = match self.function(&known, name, &arguments) {
                        Some(result) => result?,
                        None => match (name.as_str(), arguments.as_slice()) {
                            // How Harness writes names that are no identifiers: the path goes on.
                            ("get", [index]) => {
                                known.to_mut().push(method::index_segment(index)?);
                                continue;
                            }
                            _ => {
                                let value = self.resolve(&known)?;
                                self.meter.value(&value)?;
                                method::call(&value, name, &arguments, &mut self.meter)?
                            }
                        },
                    };
                    self.meter.value(&value)?;
                    return self.accesses(value, path.steps.get(at + 1..).unwrap_or_default());
                }
            };
            known.to_mut().push(segment);
        }
        self.resolve(&known)
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
        self.all(arguments)
    }

    /// Calls a function in a namespace; `None` if `name` must be a method of a value.
    fn function(&mut self, path: &[Segment], name: &str, arguments: &[Value]) -> Option<Outcome> {
        let namespace: Option<Vec<&str>> = path.iter().map(Segment::key).collect();
        let mut full = namespace?.join(".");
        let namespace = full.len();
        if !path.is_empty() {
            full.push('.');
        }
        full.push_str(name);
        if let Some(result) = self.cx.call(&full, arguments) {
            return Some(result.map_err(|problem| Reason::Operation {
                operation: format!("{full}()"),
                problem,
            }));
        }
        if let Some(result) = functor::call(&full, arguments, self.cx, &mut self.meter) {
            return Some(result);
        }
        let namespace = full.get(..namespace).unwrap_or_default();
        let alone = FUNCTION_NAMESPACES.contains(&namespace);
        (alone || path.is_empty()).then(|| {
            Err(Reason::NoMethod {
                subject: match namespace {
                    "" => "the language".to_owned(),
                    other => other.to_owned(),
                },
                name: format!(
                    "{}({})",
                    shorten(name),
                    vec!["_"; arguments.len()].join(", ")
                ),
                nearest: method::nearest_function(&full).filter(|known| *known != full),
            })
        })
    }

    /// What the context knows of a path: the longest beginning that it knows, and from there the
    /// properties of that value.
    fn resolve(&mut self, path: &[Segment]) -> Outcome {
        for known in (1..=path.len().min(LONGEST_PATH)).rev() {
            let (head, tail) = path.split_at(known);
            let value = match self.cx.definition(head) {
                Some(text) => Some(self.definition(head, &text)?),
                None => self.cx.lookup(head),
            };
            if let Some(value) = value {
                let found = match tail {
                    [] => Some(value),
                    tail => value.descend(tail).cloned(),
                };
                return found.ok_or_else(|| undefined(path));
            }
            self.meter.spend(1)?;
        }
        Err(undefined(path))
    }

    fn resolve_or_null(&mut self, path: &[Segment]) -> Outcome {
        match self.resolve(path) {
            Err(Reason::Undefined { .. }) => Ok(Value::Null),
            other => other,
        }
    }

    fn definition(&mut self, path: &[Segment], text: &str) -> Outcome {
        if !text.contains("<+") {
            return Ok(Value::from(text));
        }
        let name = path_text(path);
        if self.defining.contains(&name) {
            self.defining.push(name);
            return Err(Reason::Loop(shorten(&self.defining.join(" -> "))));
        }
        self.meter.spend_bytes(text.len())?;
        let parts = grammar::template(text).map_err(|source| Reason::Definition {
            path: name.clone(),
            source,
        })?;
        if self.depth == self.limits.depth {
            return Err(limit(self.limits.depth, "levels of nesting"));
        }
        self.defining.push(name);
        // The names of a loop mean nothing where a variable was defined.
        let locals = std::mem::take(&mut self.locals);
        let value = self.deeper(|this| this.template(text, &parts).map_err(|error| error.reason));
        self.locals = locals;
        self.defining.pop();
        value
    }

    pub(super) fn accesses(&mut self, mut value: Value, steps: &[Access]) -> Outcome {
        for step in steps {
            value = match step {
                Access::Known(segment) => child(&value, segment)?,
                Access::Joined(parts) => {
                    let key = Segment::Key(self.key(parts)?);
                    child(&value, &key)?
                }
                Access::Index(index) => {
                    let index = method::index_segment(&self.eval(index)?)?;
                    child(&value, &index)?
                }
                Access::Safe(_) if value == Value::Null => Value::Null,
                Access::Safe(segment) => match child(&value, segment) {
                    Err(Reason::Undefined { .. }) => Value::Null,
                    other => other?,
                },
                Access::Method(name, arguments) => {
                    let arguments = self.arguments(arguments)?;
                    method::call(&value, name, &arguments, &mut self.meter)?
                }
            };
            self.meter.value(&value)?;
        }
        Ok(value)
    }
}

/// The longest beginning of a path that the context is asked for, in segments; the rest are properties.
const LONGEST_PATH: usize = 64;

/// Namespaces that hold functions only, so that nothing in them can be a value with a method.
pub(crate) const FUNCTION_NAMESPACES: [&str; 10] = [
    "secrets",
    "json",
    "regex",
    "xml",
    "date",
    "datetime",
    "configFile",
    "fileStore",
    "executionTags",
    "exportedVariables",
];

fn undefined(path: &[Segment]) -> Reason {
    Reason::Undefined {
        path: shorten(&path_text(path)),
        subtracted: false,
    }
}

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
            subtracted: false,
        })
}
