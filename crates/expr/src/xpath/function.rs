//! The functions of XPath 1.0, all but `id()` and `lang()`.

use super::item::{Computed, Item, text_number};
use super::parse::XPath;
use super::walk::{Place, Walk};
use crate::error::Reason;

pub(super) fn call<'a, 'i>(
    walk: &mut Walk<'_, '_>,
    name: &str,
    arguments: &[XPath],
    place: Place<'a, 'i>,
) -> Result<Computed<'a, 'i>, Reason> {
    let mut values = Vec::new();
    for argument in arguments {
        values.push(walk.expr(argument, place)?);
    }
    let here = Computed::Items(vec![place.item]);
    match (name, values.as_slice()) {
        ("position", []) => Ok(Computed::Number(place.position as f64)),
        ("last", []) => Ok(Computed::Number(place.size as f64)),
        ("count", [Computed::Items(items)]) => Ok(Computed::Number(items.len() as f64)),
        ("sum", [Computed::Items(items)]) => {
            let mut sum = 0.0;
            for item in items {
                sum += text_number(&item.text(walk.meter)?);
            }
            Ok(Computed::Number(sum))
        }
        ("true", []) => Ok(Computed::Bool(true)),
        ("false", []) => Ok(Computed::Bool(false)),
        ("not", [value]) => Ok(Computed::Bool(!value.truth())),
        ("boolean", [value]) => Ok(Computed::Bool(value.truth())),
        ("number", []) => here.number(walk.meter).map(Computed::Number),
        ("number", [value]) => value.number(walk.meter).map(Computed::Number),
        ("floor" | "ceiling" | "round", [value]) => {
            let number = value.number(walk.meter)?;
            Ok(Computed::Number(match name {
                "floor" => number.floor(),
                "ceiling" => number.ceil(),
                _ => (number + 0.5).floor(),
            }))
        }
        ("local-name" | "name" | "namespace-uri", []) => Ok(named(name, Some(&place.item))),
        ("local-name" | "name" | "namespace-uri", [Computed::Items(items)]) => {
            Ok(named(name, items.first()))
        }
        ("string" | "normalize-space" | "string-length", []) => {
            let text = here.text(walk.meter)?;
            texts(walk, name, &[text])
        }
        _ => {
            let mut all = Vec::new();
            for value in &values {
                all.push(value.text(walk.meter)?);
            }
            if let ("substring", [_, rest @ ..]) = (name, values.as_slice()) {
                let mut numbers = Vec::new();
                for value in rest {
                    numbers.push(value.number(walk.meter)?);
                }
                return substring(walk, &all, &numbers);
            }
            texts(walk, name, &all)
        }
    }
}

fn named<'a, 'i>(name: &str, item: Option<&Item<'_, '_>>) -> Computed<'a, 'i> {
    let Some(item) = item else {
        return Computed::Text(String::new());
    };
    let space = item.namespace();
    Computed::Text(match name {
        "namespace-uri" => space.unwrap_or_default().to_owned(),
        "local-name" => item.local_name().to_owned(),
        _ => match space.and_then(|space| item.node().lookup_prefix(space)) {
            Some(prefix) if !prefix.is_empty() => format!("{prefix}:{}", item.local_name()),
            _ => item.local_name().to_owned(),
        },
    })
}

/// Functions of texts.
fn texts<'a, 'i>(
    walk: &mut Walk<'_, '_>,
    name: &str,
    texts: &[String],
) -> Result<Computed<'a, 'i>, Reason> {
    Ok(match (name, texts) {
        ("string", [text]) => Computed::Text(text.clone()),
        ("string-length", [text]) => Computed::Number(text.chars().count() as f64),
        ("normalize-space", [text]) => {
            Computed::Text(text.split_whitespace().collect::<Vec<_>>().join(" "))
        }
        ("concat", [_, _, ..]) => {
            let length = texts.iter().map(String::len).sum();
            walk.meter.bounded(length)?;
            Computed::Text(texts.concat())
        }
        ("starts-with", [text, start]) => Computed::Bool(text.starts_with(start.as_str())),
        ("contains", [text, part]) => Computed::Bool(text.contains(part.as_str())),
        ("substring-before", [text, part]) => {
            let found = text.split_once(part.as_str());
            Computed::Text(found.map_or_else(String::new, |(before, _)| before.to_owned()))
        }
        ("substring-after", [text, part]) => {
            let found = text.split_once(part.as_str());
            Computed::Text(found.map_or_else(String::new, |(_, after)| after.to_owned()))
        }
        ("translate", [text, from, to]) => {
            walk.meter
                .spend(text.len().saturating_mul(from.len()) / 16)?;
            let to: Vec<char> = to.chars().collect();
            let mapped = text
                .chars()
                .filter_map(|c| match from.chars().position(|f| f == c) {
                    None => Some(c),
                    Some(index) => to.get(index).copied(),
                });
            Computed::Text(mapped.collect())
        }
        _ => {
            return Err(walk.fault(format!(
                "there is no function `{name:.40}` that takes {} arguments",
                texts.len()
            )));
        }
    })
}

/// `substring(text, first, length)`: positions from 1, rounded.
fn substring<'a, 'i>(
    walk: &mut Walk<'_, '_>,
    texts: &[String],
    numbers: &[f64],
) -> Result<Computed<'a, 'i>, Reason> {
    let round = |number: f64| (number + 0.5).floor();
    let (start, end) = match numbers {
        [start] => (round(*start), f64::INFINITY),
        [start, length] => (round(*start), round(*start) + round(*length)),
        _ => return Err(walk.fault("`substring` takes a text and one or two numbers")),
    };
    let text = texts.first().map_or("", String::as_str);
    let kept = (1..).zip(text.chars()).filter(|(at, _)| {
        let at = f64::from(*at);
        at >= start && at < end
    });
    Ok(Computed::Text(kept.map(|(_, c)| c).collect()))
}
