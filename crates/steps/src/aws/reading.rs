//! Reads documents that users write in YAML or JSON, expressions kept where YAML alone could not hold them.

use serde_json::Value;
use slipway_model::tree::{Ref, Style};

use super::document::DEEPEST;

/// Reads a document from YAML, of which JSON is a part. Fails with place and reason.
///
/// Expressions stay as they are. One that YAML cannot hold where it stands (`<+a ? b : c>` without quotes,
/// `<+x["y"]>` in quotes) is read all the same, and what it gives cannot change the structure of the document around it.
pub fn read(file: &str, text: &str) -> Result<Value, String> {
    let direct = slipway_model::yaml::parse(file, text);
    if let Ok(tree) = &direct
        && tree
            .root()
            .scalars()
            .all(|scalar| slipway_expr::parse(scalar.scalar().unwrap_or("")).is_ok())
    {
        return Ok(plain(tree.root(), 0));
    }
    if let Some((veiled, expressions)) = veil(text)
        && let Ok(tree) = slipway_model::yaml::parse(file, &veiled)
    {
        return Ok(unveil(plain(tree.root(), 0), &expressions));
    }
    direct
        .map(|tree| plain(tree.root(), 0))
        .map_err(|fault| fault.to_string())
}

/// What stands for an expression while YAML is read.
const VEIL: &str = "slipwayExpression";

/// The text with a word in place of each expression, and the expressions.
fn veil(text: &str) -> Option<(String, Vec<String>)> {
    let template = slipway_expr::parse(text)
        .ok()
        .filter(|template| !template.is_literal())?;
    if text.contains(VEIL) {
        return None;
    }
    let expressions: Vec<String> = template.expressions().map(str::to_owned).collect();
    let (mut veiled, mut rest) = (String::with_capacity(text.len()), text);
    for (number, expression) in expressions.iter().enumerate() {
        let (before, after) = rest.split_once(expression.as_str())?;
        veiled.push_str(&format!("{before}{VEIL}{number}_"));
        rest = after;
    }
    veiled.push_str(rest);
    Some((veiled, expressions))
}

/// A document with the expressions back in its texts and keys.
fn unveil(value: Value, expressions: &[String]) -> Value {
    let text = |text: String| {
        let mut parts = text.split(VEIL);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (number, rest) = part.split_once('_').unwrap_or((part, ""));
            let expression = number
                .parse()
                .ok()
                .and_then(|number: usize| expressions.get(number));
            out.push_str(expression.map_or("", String::as_str));
            out.push_str(rest);
        }
        out
    };
    match value {
        Value::String(veiled) => Value::String(text(veiled)),
        Value::Array(items) => Value::Array(
            items
                .into_iter()
                .map(|item| unveil(item, expressions))
                .collect(),
        ),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| (text(name), unveil(value, expressions)))
                .collect(),
        ),
        scalar => scalar,
    }
}

/// Scalars as YAML 1.2's core schema types them; quoted ones are texts.
fn plain(node: Ref<'_>, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    if node.is_map() {
        let fields = node.entries();
        return Value::Object(
            fields
                .map(|(name, value)| (name.to_owned(), plain(value, depth + 1)))
                .collect(),
        );
    }
    if node.is_list() {
        return Value::Array(node.items().map(|item| plain(item, depth + 1)).collect());
    }
    let Some(text) = node.scalar() else {
        return Value::Null;
    };
    match node.style() {
        Some(Style::Plain) => typed(text),
        _ => Value::String(text.to_owned()),
    }
}

fn typed(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    // `0123` is an account number or an id far more often than a number.
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.") {
        return Value::String(text.to_owned());
    }
    if !text.starts_with('+') && digits.starts_with(|c: char| c.is_ascii_digit()) {
        if let Ok(number) = text.parse::<i64>() {
            return Value::from(number);
        }
        let decimal = digits
            .bytes()
            .all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
        let number = text.parse().ok().and_then(serde_json::Number::from_f64);
        if let (true, Some(number)) = (decimal, number) {
            return Value::Number(number);
        }
    }
    Value::String(text.to_owned())
}
