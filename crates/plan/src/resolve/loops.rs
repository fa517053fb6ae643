//! Variables that are defined by one another.

use std::collections::HashMap;

use slipway_expr::Segment;

use crate::Variable;

/// Each loop among variables as the chain of names, with the index of the variable that it was found at.
pub(super) fn of_variables(variables: &[Variable], owner: &str) -> Vec<(Vec<String>, usize)> {
    let index: HashMap<&str, usize> = variables
        .iter()
        .enumerate()
        .map(|(index, variable)| (variable.name.as_str(), index))
        .collect();
    let edges: Vec<Vec<usize>> = variables
        .iter()
        .map(|variable| {
            let names = variable
                .value
                .as_str()
                .map(|text| read(text, owner))
                .unwrap_or_default();
            names
                .iter()
                .filter_map(|name| index.get(name.as_str()).copied())
                .collect()
        })
        .collect();
    // A walk with a stack of its own: 0 not seen, 1 on the way, 2 done.
    let mut state = vec![0u8; variables.len()];
    let mut found = Vec::new();
    for start in 0..variables.len() {
        let mut way: Vec<(usize, usize)> = Vec::new();
        if state[start] == 0 {
            state[start] = 1;
            way.push((start, 0));
        }
        while let Some((node, edge)) = way.last_mut() {
            let Some(next) = edges[*node].get(*edge).copied() else {
                state[*node] = 2;
                way.pop();
                continue;
            };
            *edge += 1;
            match state[next] {
                0 => {
                    state[next] = 1;
                    way.push((next, 0));
                }
                1 => {
                    let from = way.iter().position(|(node, _)| *node == next).unwrap_or(0);
                    let members = way[from..].iter().map(|(node, _)| *node).chain([next]);
                    found.push((
                        members.map(|node| variables[node].name.clone()).collect(),
                        next,
                    ));
                }
                _ => {}
            }
        }
    }
    found
}

/// Names of the owner's variables that a text reads.
fn read(text: &str, owner: &str) -> Vec<String> {
    let Ok(template) = slipway_expr::parse(text) else {
        return Vec::new();
    };
    template
        .references()
        .into_iter()
        .filter_map(|path| {
            let names: Vec<_> = path.segments.iter().filter_map(Segment::key).collect();
            let full = names.join(".");
            full.strip_prefix(owner)?
                .strip_prefix('.')
                .map(str::to_owned)
        })
        .collect()
}
