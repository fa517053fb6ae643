//! Harness expressions, `<+…>`: parsing and evaluating. Pure: no clock, environment, I/O or randomness can
//! be reached from an expression, whatever it says.
//!
//! ```
//! use slipway_expr::{Context, Limits, Segment, Value, parse};
//!
//! struct Names;
//! impl Context for Names {
//!     fn lookup(&self, path: &[Segment]) -> Option<Value> {
//!         (path == [Segment::Key("env".into()), Segment::Key("name".into())]).then(|| "prod".into())
//!     }
//! }
//! let template = parse("to <+env.name.toUpperCase()>")?;
//! assert_eq!(template.evaluate(&Names, &Limits::default())?, Value::from("to PROD"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A value that comes from a run is data and never parsed again. Time comes from the context. What is undefined is an error, except where
//! an expression asks for it: `== null`, `empty()`, `?:` and `??` take it for null. Secrets are opaque, see
//! [`SecretText`].

mod ast;
mod document;
mod error;
mod evaluate;
mod functor;
mod grammar;
mod limits;
mod method;
mod operator;
mod pattern;
mod reference;
pub mod secret;
mod time;
mod value;
mod xpath;

pub use document::evaluate_json;
pub use error::{EvalError, ParseError, Reason};
pub use limits::Limits;
pub use reference::Path;
pub use secret::{Piece, SecretRef, SecretRefError, SecretText};
pub use time::Moment;
pub use value::{Segment, Value};

use ast::Part;
use evaluate::Evaluator;
use limits::Meter;

/// What an expression can know of the world.
pub trait Context {
    /// The value at a path, for instance `pipeline`, `variables`, `tag`. Asked for the whole path first
    /// and then for shorter beginnings; properties of what is found are followed from there. `None` if
    /// nothing is known of that name.
    fn lookup(&self, path: &[Segment]) -> Option<Value>;

    /// The text that defines the value at a path where that may hold expressions itself (a variable of
    /// the plan). Evaluated by the same evaluation, within its limits; loops are found and named.
    fn definition(&self, _path: &[Segment]) -> Option<String> {
        None
    }

    /// Calls a function in a namespace, `configFile.getAsString` for instance; `None` if there is none of
    /// that name. Asked before the built-in ones (`secrets`, `json`, `xml`, `regex`, dates) and before
    /// methods of values.
    fn call(&self, _functor: &str, _arguments: &[Value]) -> Option<Result<Value, String>> {
        None
    }

    /// The time that `currentDate()` and `currentTime()` mean, in milliseconds since the start of 1970;
    /// `None` where the time is not known, as in a plan.
    fn now_ms(&self) -> Option<i64> {
        None
    }
}

/// What a JsonPath leads to in a document, as `json.select()` reads it: one value, or the list of all where the path may lead
/// to several.
///
/// # Errors
/// When it is no path, when a path to one value leads nowhere, and when it costs more than `limits` allow.
pub fn select_json(path: &str, document: &Value, limits: &Limits) -> Result<Value, Reason> {
    functor::json::found_at("json.select", path, document, &mut Meter::new(limits))
}

/// Whether a text is a JsonPath that [`select_json`] knows.
pub fn is_json_path(text: &str) -> bool {
    functor::json::is_path(text)
}

/// A text with any number of expressions, parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    source: String,
    parts: Vec<Part>,
}

/// Parses a text. Text outside of `<+…>` is literal, whatever it is.
pub fn parse(text: &str) -> Result<Template, ParseError> {
    Ok(Template {
        parts: grammar::template(text)?,
        source: text.to_owned(),
    })
}

impl Template {
    /// Whether there is no expression in it.
    pub fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// The text that was parsed.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Its expressions as they are written, `<+` and `>` included, in order. In the source each begins at
    /// the first `<+` after the one before.
    pub fn expressions(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Expression(nested) => self.source.get(nested.span.clone()),
        })
    }

    /// The paths that its expressions read, in order of appearance, each once.
    pub fn references(&self) -> Vec<Path> {
        reference::of_parts(&self.parts).paths
    }

    /// The secrets that it names literally (`secrets.getValue("account.x")`), each once.
    pub fn secrets(&self) -> Vec<SecretRef> {
        reference::of_parts(&self.parts).secrets
    }

    /// Its value. If the text is one expression and nothing else, the value keeps its type; otherwise it
    /// is a text.
    pub fn evaluate(&self, cx: &dyn Context, limits: &Limits) -> Result<Value, EvalError> {
        Evaluator::new(cx, limits).template(&self.source, &self.parts)
    }
}

/// Checks that a text is well formed as a condition (see [`condition`]).
pub fn check_condition(text: &str) -> Result<(), ParseError> {
    grammar::expression(text).map(|_| ())
}

/// Evaluates a text that is one expression or a script, with or without delimiters, as in `when.condition`,
/// `assertion` or `jexlCondition`: `<+env.name> == "prod" && <+stage.variables.go>`,
/// `for (commit : <+trigger.payload.commits>) { if (commit.message == "go") { return true; } } return false;`.
pub fn condition(text: &str, cx: &dyn Context, limits: &Limits) -> Result<bool, EvalError> {
    let named = |reason| EvalError::new(text, reason);
    let expr = grammar::expression(text).map_err(|error| named(Reason::Parse(error)))?;
    let value = Evaluator::new(cx, limits).eval(&expr).map_err(named)?;
    operator::truth("the condition", &value).map_err(named)
}
