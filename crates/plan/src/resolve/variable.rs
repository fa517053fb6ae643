//! Variables.

use std::collections::HashSet;

use serde_json::Value;
use slipway_model::diagnostic::shown;
use slipway_model::{Code, Ref, number};

use super::Resolver;
use crate::Variable;

impl Resolver<'_> {
    /// The variables of a list; `owner` is how expressions call them (`pipeline.variables`), for finding those
    /// that are defined by themselves.
    pub(super) fn variables(&mut self, list: Option<Ref<'_>>, owner: &str) -> Vec<Variable> {
        let mut out: Vec<Variable> = Vec::new();
        let mut names = HashSet::new();
        let mut places = Vec::new();
        for item in list.into_iter().flat_map(Ref::items) {
            let Some(name) = item.get_text("name") else {
                continue;
            };
            if !names.insert(name) {
                self.fault(
                    Code::Duplicate,
                    item,
                    format!("a second variable is named `{name}`"),
                );
                continue;
            }
            let kind = item.get_text("type").unwrap_or("String");
            let given = item.get("value").filter(|value| value.scalar() != Some(""));
            let value = given.or_else(|| item.get("default"));
            let empty = value.is_none_or(|value| value.scalar() == Some(""));
            if empty && item.get_text("required") == Some("true") {
                let message = format!("the variable `{name}` is required and has no value");
                self.fault(Code::MissingInput, item, message);
            }
            let typed = value.map(|value| typed(value, kind).map_err(|fault| (value, fault)));
            let value = typed.unwrap_or_else(|| Ok(Value::String(String::new())));
            let value = value.unwrap_or_else(|(value, message)| {
                let message = format!("the variable `{name}` {message}");
                self.fault(Code::BadValue, value, message);
                Value::Null
            });
            out.push(Variable {
                name: name.to_owned(),
                kind: kind.to_owned(),
                value,
            });
            places.push(item);
        }
        for (chain, index) in super::loops::of_variables(&out, owner) {
            if let Some(place) = places.get(index) {
                let message = format!(
                    "variables are defined by one another: {}",
                    chain.join(" → ")
                );
                self.fault(Code::Loop, *place, message);
            }
        }
        out
    }
}

/// A value as its type says. An expression, and nothing at all, may stand for any.
fn typed(value: Ref<'_>, kind: &str) -> Result<Value, String> {
    let Some(text) = value.scalar() else {
        return Ok(value.to_json());
    };
    if kind != "Number" || text.is_empty() || value.is_expression() {
        return Ok(Value::String(text.to_owned()));
    }
    let number = number::parse(text).map(Value::Number);
    number.ok_or_else(|| format!("is a Number, and `{}` is none", shown(text)))
}

/// Variables with those of `over` put in the place of their namesakes, or added.
pub(super) fn overridden(base: Vec<Variable>, over: &[Variable]) -> Vec<Variable> {
    let mut out = base;
    for variable in over {
        match out.iter_mut().find(|known| known.name == variable.name) {
            Some(known) => *known = variable.clone(),
            None => out.push(variable.clone()),
        }
    }
    out
}
