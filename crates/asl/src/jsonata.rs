//! JSONata as Step Functions evaluates it: `$states`, variables, and the functions that AWS adds.
//!
//! Rules and error texts: Step Functions Developer Guide, "Transforming data with JSONata".

mod comparison;
mod functions;
mod variables;

use std::cell::Cell;

use jiff::Timestamp;
use jsonata_core::ast::AstNode;
use jsonata_core::evaluator::{Context, Evaluator, EvaluatorOptions};
use jsonata_core::parser;
use jsonata_core::value::JValue;
use serde_json::{Map, Number, Value};

use comparison::Comparison;

/// Longest evaluation of one expression, in milliseconds: a loop in a definition must not hold the engine.
const LONGEST_EVALUATION_MS: u64 = 5_000;
/// Most items of one sequence: a payload of 256 KiB has fewer.
const LONGEST_SEQUENCE: usize = 1_000_000;
/// Most bytes that the queries of one field may give: far more than a payload, and far less than memory.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Deepest evaluation, in nested nodes.
const DEEPEST_EVALUATION: usize = 2_000;

/// Why an expression or path has no usable value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueryError {
    /// The name of the error that the state meets.
    pub(crate) error: &'static str,
    /// The sentence after "An error occurred while executing the state …".
    pub(crate) message: String,
    /// The field, as `Output/result`; `None` where AWS gives none.
    pub(crate) location: Option<String>,
}

/// The name of errors in JSONata, which the history records apart.
pub(crate) const QUERY_EVALUATION: &str = "States.QueryEvaluationError";

impl QueryError {
    /// An error of a JSONata state, at `location`.
    pub(crate) fn query(message: String, location: Option<String>) -> Self {
        Self {
            error: QUERY_EVALUATION,
            message,
            location,
        }
    }

    /// An error of a JSONPath state.
    pub(crate) fn runtime(message: String) -> Self {
        Self {
            error: "States.Runtime",
            message,
            location: None,
        }
    }

    /// An intrinsic function that failed.
    pub(crate) fn intrinsic(message: String) -> Self {
        Self {
            error: "States.IntrinsicFailure",
            message,
            location: None,
        }
    }
}

/// The length of a value as JSON, counted no further than `most`.
pub(crate) fn length(value: &Value, most: usize) -> usize {
    struct Count(usize, usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            if self.0 > self.1 {
                return Err(std::io::ErrorKind::FileTooLarge.into());
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0, most);
    // Too long is no error here: the count says so.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// What expressions and paths of one state can see.
pub(crate) struct Bindings<'a> {
    /// The state's input as it came: `$states.input`.
    pub(crate) input: &'a Value,
    /// What `$` is in the paths of the field: input, effective input or result.
    pub(crate) root: &'a Value,
    pub(crate) result: Option<&'a Value>,
    pub(crate) error_output: Option<&'a Value>,
    /// Builds the context object; called only for expressions that mention it.
    pub(crate) context: &'a dyn Fn() -> Value,
    /// Variables by name, inner scopes before outer ones.
    pub(crate) variables: &'a [&'a Map<String, Value>],
    pub(crate) now: Timestamp,
    /// Bytes of the values that queries have given so far.
    pub(crate) spent: Cell<usize>,
}

impl Bindings<'_> {
    /// Counts a value that a query gave: a template may name a large value many times, and must not build
    /// what no payload can hold.
    pub(crate) fn spend(&self, value: &Value) -> Result<(), QueryError> {
        let spent = self.spent.get() + length(value, MOST_BYTES);
        self.spent.set(spent);
        if spent > MOST_BYTES {
            return Err(QueryError {
                error: "States.DataLimitExceeded",
                message: "The queries of one field give more data than a payload can hold"
                    .to_owned(),
                location: None,
            });
        }
        Ok(())
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Value> {
        self.variables.iter().find_map(|scope| scope.get(name))
    }
}

/// A JSONata expression.
#[derive(Debug)]
pub(crate) struct Expression {
    source: String,
    ast: AstNode,
    /// Set for plain paths from a variable, which need no evaluator.
    path: Option<Vec<String>>,
    /// Set for a plain path that is compared with a literal, as conditions of `Choice` states are.
    comparison: Option<Comparison>,
}

impl Expression {
    /// Parses the text between `{%` and `%}`; the error is the parser's message.
    pub(crate) fn parse(source: &str) -> Result<Self, String> {
        let ast = parser::parse(source).map_err(|error| error.to_string())?;
        Ok(Self {
            source: source.to_owned(),
            ast,
            path: plain_path(source),
            comparison: Comparison::parse(source),
        })
    }

    /// Evaluates for `field`. Nothing, a function, or an error in evaluation is an error.
    pub(crate) fn evaluate(
        &self,
        field: &str,
        bindings: &Bindings<'_>,
    ) -> Result<Value, QueryError> {
        if let Some(path) = &self.path
            && let Some(value) = follow(path, bindings)
        {
            return Ok(value.clone());
        }
        if let Some(comparison) = &self.comparison
            && let Some(holds) = comparison.holds(bindings)
        {
            return Ok(Value::Bool(holds));
        }
        let mut evaluator = self.evaluator(bindings);
        let value = evaluator
            .evaluate(&self.ast, &JValue::Undefined)
            .map_err(|error| {
                // The library adds advice to some messages; AWS gives JSONata's own text.
                let message = match error.code() {
                    Some("T1005" | "T1006") => "T1006: Attempted to invoke a non-function",
                    _ => error.message(),
                };
                self.error(
                    field,
                    &format!("threw an error during evaluation. {message}"),
                )
            })?;
        if value.is_undefined() {
            return Err(self.error(field, "returned nothing (undefined)."));
        }
        from_jsonata(&value).ok_or_else(|| self.error(field, "returned a value that is not JSON."))
    }

    /// The error for a value of the wrong type, with AWS's wording.
    pub(crate) fn wrong_type(&self, field: &str, expected: &str, value: &Value) -> QueryError {
        self.error(
            field,
            &format!(
                "returned an unexpected result type. Expected '{expected}', but was '{}' for value: {value}",
                type_name(value)
            ),
        )
    }

    fn error(&self, field: &str, what: &str) -> QueryError {
        QueryError::query(
            format!(
                "The JSONata expression '{}' specified for the field '{field}' {what}",
                self.source
            ),
            Some(field.to_owned()),
        )
    }

    fn evaluator(&self, bindings: &Bindings<'_>) -> Evaluator {
        let options = EvaluatorOptions {
            timeout_ms: Some(LONGEST_EVALUATION_MS),
            max_stack_depth: Some(DEEPEST_EVALUATION),
            max_sequence_length: Some(LONGEST_SEQUENCE),
            ..EvaluatorOptions::default()
        };
        let mut context = Context::new();
        let mentions = |word: &str| self.source.contains(word);
        if mentions("$states") {
            context.bind("states".to_owned(), self.states(bindings));
        }
        for scope in bindings.variables.iter().rev() {
            for (name, value) in scope.iter() {
                if mentions(name) {
                    context.bind(name.clone(), JValue::from(value.clone()));
                }
            }
        }
        let mut evaluator = Evaluator::with_options(context, options);
        functions::register(&mut evaluator, &self.source, bindings.now);
        evaluator
    }

    /// `$states`, with only the members that the expression can name.
    fn states(&self, bindings: &Bindings<'_>) -> JValue {
        // `$states` alone, or indexed by a computed name, can reach any member.
        let whole = self
            .source
            .match_indices("$states")
            .any(|(at, word)| !self.source[at + word.len()..].trim_start().starts_with('.'));
        let wants = |word: &str| whole || self.source.contains(word);
        let mut states = Map::new();
        if wants("input") {
            states.insert("input".to_owned(), bindings.input.clone());
        }
        if let (true, Some(result)) = (wants("result"), bindings.result) {
            states.insert("result".to_owned(), result.clone());
        }
        if let (true, Some(error)) = (wants("errorOutput"), bindings.error_output) {
            states.insert("errorOutput".to_owned(), error.clone());
        }
        if wants("context") {
            states.insert("context".to_owned(), (bindings.context)());
        }
        JValue::from(Value::Object(states))
    }
}

impl Expression {
    /// Adds the names of the variables that the expression mentions: what starts with `$`, is not called
    /// as a function, and is not bound inside the expression itself.
    pub(crate) fn variables(&self, names: &mut Vec<String>) {
        variables::mentioned(&self.source, names);
    }
}

/// The value of a plain path through objects. `None` hands over to the evaluator, which knows what JSONata does with
/// arrays and with what is missing.
fn follow<'b>(path: &[String], bindings: &'b Bindings<'_>) -> Option<&'b Value> {
    let (first, rest) = path.split_first()?;
    let (mut value, rest) = if first == "states" {
        let (second, rest) = rest.split_first()?;
        let value = match second.as_str() {
            "input" => bindings.input,
            "result" => bindings.result?,
            "errorOutput" => bindings.error_output?,
            _ => return None,
        };
        (value, rest)
    } else {
        (bindings.variable(first)?, rest)
    };
    for step in rest {
        value = value.as_object()?.get(step)?;
    }
    (!value.is_array()).then_some(value)
}

/// The names of `$a.b.c`, if the source is exactly such a path.
fn plain_path(source: &str) -> Option<Vec<String>> {
    let path: Vec<String> = source
        .strip_prefix('$')?
        .split('.')
        .map(str::to_owned)
        .collect();
    let is_name = |name: &String| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !["and", "or", "in"].contains(&name.as_str())
    };
    path.iter().all(is_name).then_some(path)
}

/// JSON of a JSONata value; `None` for functions and for numbers that JSON does not have.
fn from_jsonata(value: &JValue) -> Option<Value> {
    Some(match value {
        JValue::Null => Value::Null,
        JValue::Bool(flag) => Value::Bool(*flag),
        JValue::Number(number) => Value::Number(number_from(*number)?),
        JValue::String(text) => Value::String(text.to_string()),
        JValue::Array(items) => {
            Value::Array(items.iter().map(from_jsonata).collect::<Option<_>>()?)
        }
        JValue::Object(fields) => {
            let mut object = Map::new();
            for (key, field) in fields.iter() {
                if !field.is_undefined() {
                    object.insert(key.clone(), from_jsonata(field)?);
                }
            }
            Value::Object(object)
        }
        _ => return None,
    })
}

/// Whole numbers come out as integers, as JavaScript prints them.
fn number_from(number: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole and within 53 bits, checked above"
        )]
        return Some(Number::from(number as i64));
    }
    Number::from_f64(number)
}

/// JSONata's name of a JSON type.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests;
