//! Checks over a whole machine: every target exists, every state can be reached.

use std::collections::HashSet;

use super::fields::{ALL_IS_ALONE, Result, invalid};
use super::{DefinitionError, Kind, Machine, State};

/// The code of what leads to no state, or is led to by none.
const TRANSITION: &str = "MISSING_TRANSITION_TARGET";

/// What is wrong with one machine at `path`: all of it, as AWS shows it.
pub(super) fn machine(machine: &Machine, path: &str) -> Vec<DefinitionError> {
    let place = path.trim_end_matches('/');
    if machine.states.is_empty() {
        let message = "There must be at least one state";
        return vec![DefinitionError::schema(&format!("{place}/States"), message)];
    }
    if !machine.states.contains_key(&machine.start_at) {
        return vec![missing(&machine.start_at, format!("{place}/StartAt"))];
    }
    let mut errors = Vec::new();
    let mut names: Vec<&String> = machine.states.keys().collect();
    names.sort();
    for name in &names {
        for (field, target) in targets(&machine.states[*name]) {
            if !machine.states.contains_key(target) {
                errors.push(missing(target, format!("{place}/States/{name}/{field}")));
            }
        }
    }
    let reached = reached(machine);
    for name in names.iter().filter(|name| !reached.contains(name.as_str())) {
        errors.push(DefinitionError {
            code: TRANSITION,
            message: format!("State \"{name}\" is not reachable."),
            path: format!("{place}/States/{name}"),
        });
    }
    errors
}

/// Refuses an outer machine in which no state is the last one.
pub(super) fn end(machine: &Machine) -> Option<DefinitionError> {
    let ends = |state: &State| state.next.is_none() && !matches!(state.kind, Kind::Choice(_));
    (!machine.states.values().any(ends)).then(|| DefinitionError {
        code: "MISSING_END_STATE",
        message: "Workflow has no terminal state".to_owned(),
        path: String::new(),
    })
}

fn missing(target: &str, path: String) -> DefinitionError {
    DefinitionError {
        code: TRANSITION,
        message: format!("Missing 'Next' target: {target}"),
        path,
    }
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
            return invalid(&format!("{path}[{i}]"), ALL_IS_ALONE);
        }
    }
    Ok(())
}
