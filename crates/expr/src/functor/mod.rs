//! Functions that are built in: `secrets`, `json`, `xml`, `regex`, and the dates. What a run has to answer
//! (`configFile`, `fileStore`, `executionTags`) is the context's.

pub(crate) mod json;
mod xml;

use crate::Context;
use crate::error::Reason;
use crate::limits::Meter;
use crate::method::text_argument;
use crate::secret::SecretRef;
use crate::time::Moment;
use crate::value::Value;

type Outcome = Result<Value, Reason>;

/// Calls the function of this name; `None` if there is none.
pub(crate) fn call(
    name: &str,
    arguments: &[Value],
    cx: &dyn Context,
    meter: &mut Meter<'_>,
) -> Option<Outcome> {
    Some(match (name, arguments) {
        ("secrets.getValue", [reference]) => secret(name, reference),
        ("json.object", [text]) => json::parsed(name, text),
        ("json.select", [path, text]) => json::select(name, path, text, meter),
        ("json.list", [path, text]) => json::list(name, path, text, meter),
        ("json.format", [value]) => json::format(name, value),
        ("xml.select", [path, text]) => xml::select(name, path, text, meter),
        ("regex.extract", [regex, text]) => extract(name, regex, text, meter),
        ("regex.match", [regex, text]) => {
            find(name, regex, text, meter).map(|found| found.is_some().into())
        }
        ("regex.replace", [regex, by, text]) => replace(name, regex, by, text, meter),
        ("currentDate" | "date.currentDate" | "datetime.currentDate", []) => {
            now(name, cx).map(|now| now.day().into())
        }
        ("currentTime" | "date.currentTime" | "datetime.currentTime", []) => {
            now(name, cx).map(Value::from)
        }
        (
            "configFile.getAsString"
            | "configFile.getAsBase64"
            | "fileStore.getAsString"
            | "fileStore.getAsBase64",
            [_],
        ) => Err(problem(
            name,
            "files cannot be read where this expression stands",
        )),
        ("exportedVariables.getValue", [_]) => Err(problem(
            name,
            "what steps export is known in the steps after them only",
        )),
        (
            "executionTags.addTag" | "addTag" | "executionTags.addTagsList" | "addTagsList",
            [_] | [_, _],
        ) => Err(problem(
            name,
            "tags can be added to a run in the settings of its steps only",
        )),
        _ => return None,
    })
}

fn problem(name: &str, problem: impl Into<String>) -> Reason {
    Reason::Operation {
        operation: format!("{name}()"),
        problem: problem.into(),
    }
}

fn secret(name: &str, reference: &Value) -> Outcome {
    let reference = text_argument(name, reference)?;
    SecretRef::new(reference)
        .map(Value::from)
        .map_err(|error| problem(name, error.to_string()))
}

fn now(name: &str, cx: &dyn Context) -> Result<Moment, Reason> {
    cx.now_ms()
        .and_then(Moment::from_ms)
        .ok_or_else(|| problem(name, "the time is not known where this expression stands"))
}

fn find(
    name: &str,
    regex: &Value,
    text: &Value,
    meter: &mut Meter<'_>,
) -> Result<Option<String>, Reason> {
    let text = text_argument(name, text)?;
    let pattern = meter.search(&text, &text_argument(name, regex)?, false)?;
    let found = pattern.regex.find(&text);
    Ok(found.map(|found| found.as_str().to_owned()))
}

fn extract(name: &str, regex: &Value, text: &Value, meter: &mut Meter<'_>) -> Outcome {
    find(name, regex, text, meter)?
        .map(Value::String)
        .ok_or_else(|| problem(name, "nothing matches"))
}

fn replace(name: &str, regex: &Value, by: &Value, text: &Value, meter: &mut Meter<'_>) -> Outcome {
    let text = Value::String(text_argument(name, text)?);
    let arguments = [regex.clone(), by.clone()];
    crate::method::call(&text, "replaceAll", &arguments, meter)
}
