//! Functions in namespaces that need nothing from a run: `secrets`, `json`, `regex`.

use serde_json::Value as Json;

use crate::error::Reason;
use crate::method::{pattern, text_argument};
use crate::secret::SecretRef;
use crate::value::{Segment, Value};

type Outcome = Result<Value, Reason>;

/// Calls the function of this name; `None` if there is none.
pub(crate) fn call(name: &str, arguments: &[Value]) -> Option<Outcome> {
    Some(match (name, arguments) {
        ("secrets.getValue", [reference]) => secret(name, reference),
        ("json.object", [text]) => json(name, text),
        ("json.select", [path, text]) => select(name, path, text),
        ("json.list", [path, text]) => select(name, path, text).and_then(|value| match value {
            list @ Value::List(_) => Ok(list),
            other => Err(problem(
                name,
                format!("there is {} at that path", other.kind()),
            )),
        }),
        ("json.format", [value]) if value.has_secrets() => Err(Reason::Secret {
            operation: format!("{name}()"),
        }),
        ("json.format", [value]) => Ok(Value::String(value.to_shown_json().to_string())),
        ("regex.extract", [regex, text]) => extract(name, regex, text),
        ("regex.match", [regex, text]) => {
            find(name, regex, text).map(|found| found.is_some().into())
        }
        _ => return None,
    })
}

fn problem(name: &str, problem: String) -> Reason {
    Reason::Operation {
        operation: format!("{name}()"),
        problem,
    }
}

fn secret(name: &str, reference: &Value) -> Outcome {
    let reference = text_argument(name, reference)?;
    SecretRef::new(reference)
        .map(Value::from)
        .map_err(|error| problem(name, error.to_string()))
}

fn json(name: &str, text: &Value) -> Outcome {
    if matches!(text, Value::List(_) | Value::Map(_)) {
        return Ok(text.clone());
    }
    let text = text_argument(name, text)?;
    let json: Json = serde_json::from_str(&text).map_err(|error| {
        problem(
            name,
            format!(
                "the text is not JSON (line {}, column {})",
                error.line(),
                error.column()
            ),
        )
    })?;
    Ok(Value::from_json(&json))
}

fn select(name: &str, path: &Value, text: &Value) -> Outcome {
    let path = text_argument(name, path)?;
    let document = json(name, text)?;
    let segments = json_path(&path)
        .ok_or_else(|| problem(name, format!("`{path:.80}` is no path such as a.b[0].c")))?;
    document
        .descend(&segments)
        .cloned()
        .ok_or_else(|| problem(name, format!("there is nothing at `{path:.80}`")))
}

/// `a.b[0]['c']`, optionally from `$`.
fn json_path(path: &str) -> Option<Vec<Segment>> {
    let mut segments = Vec::new();
    let mut rest = path.trim();
    rest = rest.strip_prefix('$').unwrap_or(rest);
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (index, after) = inner.split_once(']')?;
            let name = index.trim().trim_matches(['"', '\'']);
            segments.push(match index.trim().parse() {
                Ok(index) => Segment::Index(index),
                Err(_) => Segment::Key(name.to_owned()),
            });
            rest = after;
        } else {
            let inner = rest.strip_prefix('.').unwrap_or(rest);
            let end = inner.find(['.', '[']).unwrap_or(inner.len());
            if end == 0 {
                return None;
            }
            segments.push(Segment::Key(inner[..end].to_owned()));
            rest = &inner[end..];
        }
    }
    Some(segments)
}

fn find(name: &str, regex: &Value, text: &Value) -> Result<Option<String>, Reason> {
    let regex = pattern(&text_argument(name, regex)?)?;
    let text = text_argument(name, text)?;
    Ok(regex.find(&text).map(|found| found.as_str().to_owned()))
}

fn extract(name: &str, regex: &Value, text: &Value) -> Outcome {
    find(name, regex, text)?
        .map(Value::String)
        .ok_or_else(|| problem(name, "nothing matches".to_owned()))
}
