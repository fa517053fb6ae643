//! Operators on two values.
//!
//! The rules are JEXL's where they cannot surprise, and errors where JEXL would guess: `+` adds numbers or
//! joins strings, and a number wants `.toString()` to be joined (docs: variables-and-expressions/
//! harness-variables, "Concatenation and interpolation"); the other arithmetic reads numeric strings as
//! numbers; two strings are never ordered; a boolean equals the strings `true` and `false` in any case, and
//! no others.

use std::cmp::Ordering;

use crate::ast::Binary;
use crate::error::Reason;
use crate::limits::Meter;
use crate::method::text_argument;
use crate::pattern;
use crate::secret::SecretText;
use crate::value::Value;

type Outcome = Result<Value, Reason>;

/// How an operator is written in errors.
fn symbol(operator: Binary) -> &'static str {
    match operator {
        Binary::Or => "||",
        Binary::And => "&&",
        Binary::Equal => "==",
        Binary::NotEqual => "!=",
        Binary::Matches => "=~",
        Binary::NotMatches => "!~",
        Binary::StartsWith => "=^",
        Binary::NotStartsWith => "!^",
        Binary::EndsWith => "=$",
        Binary::NotEndsWith => "!$",
        Binary::Less => "<",
        Binary::LessOrEqual => "<=",
        Binary::Greater => ">",
        Binary::GreaterOrEqual => ">=",
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Remainder => "%",
    }
}

/// `left operator right`. `&&` and `||` are evaluated here only when both sides are known.
pub(crate) fn binary(
    operator: Binary,
    left: &Value,
    right: &Value,
    meter: &mut Meter<'_>,
) -> Outcome {
    let name = symbol(operator);
    let boolean = match operator {
        Binary::Or => truth(name, left)? || truth(name, right)?,
        Binary::And => truth(name, left)? && truth(name, right)?,
        Binary::Equal => equal(name, left, right)?,
        Binary::NotEqual => !equal(name, left, right)?,
        Binary::Matches => matches(name, left, right, meter)?,
        Binary::NotMatches => !matches(name, left, right, meter)?,
        Binary::StartsWith => affix(name, left, right, |a, b| a.starts_with(b))?,
        Binary::NotStartsWith => !affix(name, left, right, |a, b| a.starts_with(b))?,
        Binary::EndsWith => affix(name, left, right, |a, b| a.ends_with(b))?,
        Binary::NotEndsWith => !affix(name, left, right, |a, b| a.ends_with(b))?,
        Binary::Less => order(name, left, right)?.is_lt(),
        Binary::LessOrEqual => order(name, left, right)?.is_le(),
        Binary::Greater => order(name, left, right)?.is_gt(),
        Binary::GreaterOrEqual => order(name, left, right)?.is_ge(),
        Binary::Add => return add(left, right),
        Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder => {
            return arithmetic(operator, left, right);
        }
    };
    Ok(Value::Bool(boolean))
}

/// The value as a condition: booleans, the strings `true` and `false`, numbers (0 is false), null and
/// the empty string (false).
pub(crate) fn truth(operation: &str, value: &Value) -> Result<bool, Reason> {
    match value {
        Value::Bool(b) => Ok(*b),
        Value::Null => Ok(false),
        Value::Int(int) => Ok(*int != 0),
        Value::Float(float) => Ok(*float != 0.0),
        Value::String(text) if text.is_empty() => Ok(false),
        Value::String(text) => boolean(text.trim()).ok_or_else(|| {
            wrong(
                operation,
                "true or false",
                &format!("the string {text:.60?}"),
            )
        }),
        Value::Secret(_) => Err(secret(operation)),
        Value::List(_) | Value::Map(_) | Value::Time(_) => {
            Err(wrong(operation, "true or false", value.kind()))
        }
    }
}

fn boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

fn wrong(operation: &str, wants: &'static str, got: &str) -> Reason {
    Reason::Type {
        operation: format!("`{operation}`"),
        wants,
        got: got.to_owned(),
    }
}

fn secret(operation: &str) -> Reason {
    Reason::Secret {
        operation: format!("`{operation}`"),
    }
}

fn equal(name: &str, left: &Value, right: &Value) -> Result<bool, Reason> {
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Null, _) | (_, Value::Null) => false,
        _ if left.has_secrets() || right.has_secrets() => return Err(secret(name)),
        (Value::Time(moment), Value::String(text)) | (Value::String(text), Value::Time(moment)) => {
            moment.to_string() == *text
        }
        (Value::Bool(b), Value::String(text)) | (Value::String(text), Value::Bool(b)) => {
            boolean(text.trim()) == Some(*b)
        }
        (Value::Int(_) | Value::Float(_), Value::String(_))
        | (Value::String(_), Value::Int(_) | Value::Float(_))
        | (Value::Int(_), Value::Float(_))
        | (Value::Float(_), Value::Int(_)) => match (Number::of(left), Number::of(right)) {
            (Some(a), Some(b)) => a.compare(b) == Some(Ordering::Equal),
            _ => false,
        },
        _ => left == right,
    })
}

/// `=~`: the whole text matches a regular expression, or the value is in a list or a key of a map.
fn matches(name: &str, left: &Value, right: &Value, meter: &mut Meter<'_>) -> Result<bool, Reason> {
    match right {
        Value::List(items) => {
            meter.spend(items.len())?;
            for item in items {
                if equal(name, left, item)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(map) => Ok(map.contains_key(&text_argument(name, left)?)),
        _ => {
            let text = text_argument(name, left)?;
            let regex = text_argument(name, right)?;
            if let Some(literal) = pattern::literal(&regex) {
                return Ok(text == literal);
            }
            Ok(meter.search(&text, &regex, true)?.regex.is_match(&text))
        }
    }
}

fn affix(
    name: &str,
    left: &Value,
    right: &Value,
    test: impl Fn(&str, &str) -> bool,
) -> Result<bool, Reason> {
    Ok(test(
        &text_argument(name, left)?,
        &text_argument(name, right)?,
    ))
}

fn order(name: &str, left: &Value, right: &Value) -> Result<Ordering, Reason> {
    if left.has_secrets() || right.has_secrets() {
        return Err(secret(name));
    }
    let strings = matches!((left, right), (Value::String(_), Value::String(_)));
    if let (Value::Time(a), Value::Time(b)) = (left, right) {
        return Ok(a.cmp(b));
    }
    match (Number::of(left), Number::of(right)) {
        (Some(a), Some(b)) if !strings => Ok(a.compare(b).unwrap_or(Ordering::Equal)),
        _ => Err(wrong(
            name,
            "two numbers",
            &format!("{} and {}", left.kind(), right.kind()),
        )),
    }
}

fn add(left: &Value, right: &Value) -> Outcome {
    let string = |value: &Value| matches!(value, Value::String(_) | Value::Secret(_));
    let number = |value: &Value| matches!(value, Value::Int(_) | Value::Float(_));
    if (string(left) && number(right)) || (number(left) && string(right)) {
        return Err(Reason::Operation {
            operation: "`+`".to_owned(),
            problem: format!(
                "it joins strings or adds numbers, and here are {} and {}; write `.toString()` behind the number to join them",
                left.kind(),
                right.kind()
            ),
        });
    }
    if string(left) || string(right) {
        let mut joined = SecretText::default();
        append(&mut joined, left, "+")?;
        append(&mut joined, right, "+")?;
        return Ok(Value::from(joined));
    }
    if let (Value::List(a), Value::List(b)) = (left, right) {
        return Ok(Value::List(a.iter().chain(b).cloned().collect()));
    }
    arithmetic(Binary::Add, left, right)
}

/// Adds the text form of a value to a text that may have secrets; the bytes that it takes there.
pub(crate) fn append(
    text: &mut SecretText,
    value: &Value,
    operation: &str,
) -> Result<usize, Reason> {
    match value {
        Value::Secret(more) => {
            text.push(more);
            Ok(more.weight())
        }
        other => {
            let plain = other.text().ok_or_else(|| secret(operation))?;
            text.push_plain(&plain);
            Ok(plain.len())
        }
    }
}

#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Int(int) => Some(Self::Int(*int)),
            Value::Float(float) => Some(Self::Float(*float)),
            Value::String(text) => Self::parse(text.trim()),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if !text.ends_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        if let Ok(int) = text.parse() {
            return Some(Self::Int(int));
        }
        let float: f64 = text.parse().ok()?;
        float.is_finite().then_some(Self::Float(float))
    }

    fn float(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }

    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(&b)),
            (a, b) => a.float().partial_cmp(&b.float()),
        }
    }
}

fn arithmetic(operator: Binary, left: &Value, right: &Value) -> Outcome {
    let name = symbol(operator);
    if left.has_secrets() || right.has_secrets() {
        return Err(secret(name));
    }
    let (Some(a), Some(b)) = (Number::of(left), Number::of(right)) else {
        let got = format!("{} and {}", left.kind(), right.kind());
        return Err(wrong(name, "two numbers", &got));
    };
    let value = match (a, b) {
        (Number::Int(a), Number::Int(b)) => integers(operator, a, b).map(Value::Int),
        (a, b) => Some(floats(operator, a.float(), b.float()))
            .filter(|f| f.is_finite())
            .map(Value::Float),
    };
    value.ok_or_else(|| Reason::Operation {
        operation: format!("`{name}`"),
        problem: "the result is no number of 64 bits (or a division by zero)".to_owned(),
    })
}

fn integers(operator: Binary, a: i64, b: i64) -> Option<i64> {
    match operator {
        Binary::Add => a.checked_add(b),
        Binary::Subtract => a.checked_sub(b),
        Binary::Multiply => a.checked_mul(b),
        Binary::Divide => a.checked_div(b),
        Binary::Remainder => a.checked_rem(b),
        _ => None,
    }
}

fn floats(operator: Binary, a: f64, b: f64) -> f64 {
    match operator {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::Remainder => a % b,
        _ => f64::NAN,
    }
}

/// `-value`.
pub(crate) fn negate(value: &Value) -> Outcome {
    arithmetic(Binary::Subtract, &Value::Int(0), value)
}
