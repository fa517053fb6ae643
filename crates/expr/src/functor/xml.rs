//! `xml.select(path, text)`: XPath 1.0 on XML in a string (docs: cd-steps/utilities/json-and-xml-functors).

use super::{Outcome, problem};
use crate::limits::Meter;
use crate::method::text_argument;
use crate::value::Value;
use crate::xpath::{self, Selected};

/// The text of the first node that a path selects, or the value that it computes.
pub(super) fn select(name: &str, path: &Value, text: &Value, meter: &mut Meter<'_>) -> Outcome {
    let path = text_argument(name, path)?;
    let text = text_argument(name, text)?;
    match xpath::select(&path, &text, meter)? {
        Selected::Text(text) => Ok(Value::String(text)),
        Selected::Bool(b) => Ok(Value::Bool(b)),
        Selected::Number(number) => Ok(whole(number)),
        Selected::Nothing => Err(problem(name, format!("there is nothing at `{path:.80}`"))),
    }
}

fn whole(number: f64) -> Value {
    // 2^53: beyond it a float is no exact count.
    let exact = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
    match number {
        number if exact => Value::Int(number as i64),
        number if number.is_finite() => Value::Float(number),
        number => Value::String(xpath::number_text(number)),
    }
}
