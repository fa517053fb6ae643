//! Values as JSON with the types of their shapes.

use serde_json::{Map, Value};

use super::Shape;
use crate::tree::Ref;

/// The value as JSON with the types of its shape: a field that Harness reads as text is a JSON string
/// even where it looks like a number. Texts with expressions stay texts.
pub(crate) fn to_json(value: Ref<'_>, shape: Shape) -> Value {
    if value.is_null() {
        return Value::Null;
    }
    if value.is_expression() {
        return Value::String(value.scalar().unwrap_or_default().to_owned());
    }
    let list = |item: Shape| Value::Array(value.items().map(|each| to_json(each, item)).collect());
    match shape {
        Shape::Or(first, second) => {
            let shape = if value.scalar().is_some() {
                second
            } else {
                first
            };
            to_json(value, *shape)
        }
        Shape::List(item) if value.is_list() => list(*item),
        Shape::Map(item) if value.is_map() => fields(value, |_| *item),
        Shape::Object(object) | Shape::Body(object) if value.is_map() => {
            let chosen = object.chosen(value);
            fields(value, |key| {
                object.shape_of(key, chosen).unwrap_or(Shape::Any)
            })
        }
        Shape::Part(whole) | Shape::Noted(whole, _) => to_json(value, *whole),
        Shape::Text | Shape::Condition | Shape::By(_) | Shape::OneOf(_) => match value.text() {
            Some(text) => Value::String(text.to_owned()),
            None => value.to_json(),
        },
        Shape::Bool => match value.text().map(str::to_ascii_lowercase).as_deref() {
            Some("true") => Value::Bool(true),
            Some("false") => Value::Bool(false),
            _ => value.to_json(),
        },
        Shape::Int(..) => match value.text().and_then(|text| text.parse::<i64>().ok()) {
            Some(number) => number.into(),
            None => value.to_json(),
        },
        Shape::Number(..) => number(value).unwrap_or_else(|| value.to_json()),
        _ => value.to_json(),
    }
}

fn number(value: Ref<'_>) -> Option<Value> {
    let text = value.text()?;
    match text.parse::<i64>() {
        Ok(whole) => Some(whole.into()),
        Err(_) => serde_json::Number::from_f64(text.parse().ok()?).map(Value::Number),
    }
}

fn fields(value: Ref<'_>, shape: impl Fn(&str) -> Shape) -> Value {
    Value::Object(
        value
            .entries()
            .filter(|(_, each)| !each.is_null())
            .map(|(key, each)| (key.to_owned(), to_json(each, shape(key))))
            .collect::<Map<_, _>>(),
    )
}
