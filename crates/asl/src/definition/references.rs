//! Which variables each state mentions: `variableReferences` of `DescribeStateMachine`.

use serde_json::{Map, Value};

use super::{Condition, Definition, Kind, PathField, State, WaitFor};
use crate::template::Template;

/// The variables by state, of all machines of the definition.
pub(super) fn of(definition: &Definition) -> Map<String, Value> {
    let mut references: Vec<(String, Value)> = Vec::new();
    for (name, state) in definition
        .machines
        .iter()
        .flat_map(|machine| &machine.states)
    {
        let mut names = Vec::new();
        mentioned(state, &mut names);
        names.sort_unstable();
        names.dedup();
        if !names.is_empty() {
            references.push((name.clone(), names.into()));
        }
    }
    references.sort_by(|a, b| a.0.cmp(&b.0));
    references.into_iter().collect()
}

fn mentioned(state: &State, names: &mut Vec<String>) {
    let mut templates: Vec<&Template> = Vec::new();
    templates.extend(&state.assign);
    templates.extend(&state.output);
    for catcher in &state.catch {
        templates.extend(&catcher.output);
        templates.extend(&catcher.assign);
    }
    if let Some(paths) = &state.paths {
        templates.extend(&paths.selector);
        for path in [&paths.input, &paths.output] {
            if let PathField::Query(query) = path {
                query.variables(names);
            }
        }
    }
    of_kind(&state.kind, &mut templates, names);
    templates
        .into_iter()
        .for_each(|template| template.variables(names));
}

fn of_kind<'a>(kind: &'a Kind, templates: &mut Vec<&'a Template>, names: &mut Vec<String>) {
    match kind {
        Kind::Succeed => {}
        Kind::Pass { parameters, .. } => templates.extend(parameters),
        Kind::Task(task) => {
            templates.extend(&task.arguments);
            templates.extend(&task.timeout);
            templates.extend(&task.heartbeat);
            templates.extend(&task.credentials);
        }
        Kind::Wait(WaitFor::Seconds(template) | WaitFor::Timestamp(template)) => {
            templates.push(template);
        }
        Kind::Fail { error, cause } => {
            templates.extend(error);
            templates.extend(cause);
        }
        Kind::Parallel { arguments, .. } => templates.extend(arguments),
        Kind::Map(map) => templates.extend(map.templates()),
        Kind::Choice(rules) => {
            for rule in rules {
                templates.extend(&rule.output);
                templates.extend(&rule.assign);
                match &rule.condition {
                    Condition::Expression(template) => templates.push(template),
                    Condition::Test(test) => test.variables(names),
                }
            }
        }
    }
}
