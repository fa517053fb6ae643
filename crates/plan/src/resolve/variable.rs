//! Variables.

use std::collections::HashSet;

use serde_json::Value;
use slipway_model::{Code, Ref};

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
            out.push(Variable {
                name: name.to_owned(),
                kind: kind.to_owned(),
                value: value
                    .map_or_else(|| Value::String(String::new()), |value| typed(value, kind)),
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

fn typed(value: Ref<'_>, kind: &str) -> Value {
    match (kind, value.scalar()) {
        ("Number", _) | (_, None) => value.to_json(),
        (_, Some(text)) => Value::String(text.to_owned()),
    }
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
