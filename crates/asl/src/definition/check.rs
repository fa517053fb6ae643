//! Checks over a whole machine: every target exists, every state can be reached.

use std::collections::HashSet;

use super::fields::{Result, invalid};
use super::{DefinitionError, Kind, Machine, State};

/// Checks one machine at `path`.
pub(super) fn machine(machine: &Machine, path: &str) -> Result<()> {
    let path = path.trim_end_matches('/');
    if machine.states.is_empty() {
        return invalid(
            &format!("{path}/States"),
            "There must be at least one state",
        );
    }
    if !machine.states.contains_key(&machine.start_at) {
        return missing("StartAt", &machine.start_at, format!("{path}/StartAt"));
    }
    let mut names: Vec<&String> = machine.states.keys().collect();
    names.sort();
    for name in &names {
        for (field, target) in targets(&machine.states[*name]) {
            if !machine.states.contains_key(target) {
                return missing("Next", target, format!("{path}/States/{name}/{field}"));
            }
        }
    }
    let reached = reached(machine);
    match names.iter().find(|name| !reached.contains(name.as_str())) {
        None => Ok(()),
        Some(name) => Err(DefinitionError {
            code: "MISSING_TRANSITION_TARGET",
            message: format!("State \"{name}\" is not reachable."),
            path: format!("{path}/States/{name}"),
        }),
    }
}

fn missing(field: &str, target: &str, path: String) -> Result<()> {
    Err(DefinitionError {
        code: "MISSING_TRANSITION_TARGET",
        message: format!("Missing '{field}' target: {target}"),
        path,
    })
}

/// The states that a state can go to, with the field that says so.
fn targets(state: &State) -> Vec<(String, &str)> {
    let mut targets = Vec::new();
    if let Some(next) = &state.next {
        let field = if matches!(state.kind, Kind::Choice(_)) {
            "Default"
        } else {
            "Next"
        };
        targets.push((field.to_owned(), next.as_str()));
    }
    if let Kind::Choice(rules) = &state.kind {
        for (i, rule) in rules.iter().enumerate() {
            targets.push((format!("Choices[{i}]/Next"), rule.next.as_str()));
        }
    }
    for (i, catcher) in state.catch.iter().enumerate() {
        targets.push((format!("Catch[{i}]/Next"), catcher.next.as_str()));
    }
    targets
}

fn reached(machine: &Machine) -> HashSet<&str> {
    let mut reached = HashSet::from([machine.start_at.as_str()]);
    let mut open = vec![machine.start_at.as_str()];
    while let Some(name) = open.pop() {
        for (_, target) in machine.states.get(name).map(targets).unwrap_or_default() {
            if reached.insert(target) {
                open.push(target);
            }
        }
    }
    reached
}

/// `States.ALL` may stand only in the last retrier or catcher.
pub(super) fn all_is_last<'a>(
    lists: impl ExactSizeIterator<Item = &'a Vec<String>>,
    path: &str,
) -> Result<()> {
    let last = lists.len().saturating_sub(1);
    for (i, errors) in lists.enumerate() {
        if i != last && errors.iter().any(|name| name == "States.ALL") {
            return invalid(
                &format!("{path}[{i}]"),
                "States.ALL must appear alone and at the end of the list",
            );
        }
    }
    Ok(())
}
