//! The fields by which data flows through a state in JSONPath: `InputPath`, `ResultSelector`,
//! `ResultPath` and `OutputPath`.

use serde_json::Value;

use super::fields::{Fields, Result, invalid};
use crate::jsonpath::ReferencePath;
use crate::query::Query;
use crate::template::Template;

/// How data flows through a state in JSONPath.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) input: PathField,
    pub(crate) selector: Option<Template>,
    pub(crate) result: ResultPath,
    pub(crate) output: PathField,
}

/// `InputPath` or `OutputPath`.
#[derive(Debug)]
pub(crate) enum PathField {
    /// Absent: everything.
    Whole,
    /// `null`: an empty object.
    Nothing,
    Query(Query),
}

/// Where a result goes in the state's input.
#[derive(Debug)]
pub(crate) enum ResultPath {
    /// `null`: the result is dropped.
    Discard,
    /// `$` takes the place of the input.
    At(ReferencePath),
}

impl ResultPath {
    /// The input with the result in it; `None` if the path does not fit the input.
    pub(crate) fn merge(&self, input: Value, result: Value) -> Option<Value> {
        match self {
            Self::Discard => Some(input),
            Self::At(path) => path.write(input, result),
        }
    }
}

/// Reads the fields of a state.
pub(super) fn paths(fields: &Fields<'_>) -> Result<Paths> {
    Ok(Paths {
        input: path(fields, "InputPath")?,
        selector: fields.template("ResultSelector")?,
        result: result_path(fields)?,
        output: path(fields, "OutputPath")?,
    })
}

fn path(fields: &Fields<'_>, name: &str) -> Result<PathField> {
    match fields.get(name) {
        None => Ok(PathField::Whole),
        Some(Value::Null) => Ok(PathField::Nothing),
        Some(_) => Ok(match fields.query(name)? {
            Some(query) => PathField::Query(query),
            None => PathField::Whole,
        }),
    }
}

/// Reads `ResultPath` of a state or catcher.
pub(super) fn result_path(fields: &Fields<'_>) -> Result<ResultPath> {
    let text = match fields.get("ResultPath") {
        Some(Value::Null) => return Ok(ResultPath::Discard),
        _ => fields.text("ResultPath")?.unwrap_or("$"),
    };
    match ReferencePath::parse(text) {
        Some(path) => Ok(ResultPath::At(path)),
        None if text.starts_with('$') => {
            invalid(&fields.at("ResultPath"), "Value is not a Reference Path")
        }
        None => invalid(&fields.at("ResultPath"), "Value must be a valid JSONPath."),
    }
}
