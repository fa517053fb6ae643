//! Inputs as `path=value`, for the command line.

use std::collections::HashMap;

use super::project::project;
use super::{RuntimeInput, flat, identity, wrapped};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, nearest, shown};
use crate::entity::Parsed;
use crate::tree::{Place, Ref, Tree};

/// Name of these inputs in messages.
const FILE: &str = "--input";

/// The inputs document that assignments stand for. A path is `variables.tag`, `pipeline.variables.tag`, plain
/// `tag` for a pipeline variable of that name, or the way to any other field, elements of lists by
/// identifier or index: `stages.deploy.spec.service.serviceRef`.
///
/// # Errors
/// One diagnostic per path that names nothing, or no runtime input.
pub fn from_assignments(
    pipeline: &Parsed,
    assignments: &[(String, String)],
) -> Result<Option<Tree>, Vec<Diagnostic>> {
    let mut faults = Diagnostics::default();
    let mut chosen: HashMap<u32, String> = HashMap::new();
    for (path, value) in assignments {
        match find(pipeline.body(), path) {
            Some(node) if RuntimeInput::of(node).is_some() => {
                chosen.insert(node.id, value.clone());
            }
            Some(node) => faults.push(fault(
                path,
                &format!(
                    "`{}` is no runtime input: it does not hold <+input>",
                    node.path()
                ),
            )),
            None => {
                let names = askable(pipeline.body());
                let message = format!("`{}` names no field of the pipeline", shown(path));
                let near = nearest(path, names.iter().map(String::as_str));
                let fault = fault(path, &message).suggest(near);
                faults.push(match near {
                    None if !names.is_empty() => {
                        fault.expected(format!("one of {}", names.join(", ")))
                    }
                    _ => fault,
                });
            }
        }
    }
    let tree = project(pipeline.tree.root(), &|value| {
        chosen.get(&value.id).cloned()
    });
    let named = tree.map(|tree| Tree {
        files: vec![FILE.into()],
        nodes: tree
            .nodes
            .into_iter()
            .map(|node| crate::tree::Node {
                place: Place::default(),
                ..node
            })
            .collect(),
        root: tree.root,
    });
    faults.finish(named).map(|(tree, _)| tree)
}

fn fault(path: &str, message: &str) -> Diagnostic {
    Diagnostic::error(Code::BadInput, FILE, Place::default(), message).path(shown(path))
}

/// Short paths of what can be set, for messages.
fn askable(body: Ref<'_>) -> Vec<String> {
    const MOST: usize = 20;
    body.scalars()
        .filter(|value| RuntimeInput::of(*value).is_some())
        .map(|value| {
            let path = value.path();
            let variable = body
                .get("variables")
                .into_iter()
                .flat_map(Ref::items)
                .find(|item| item.get("value").is_some_and(|inner| inner.id == value.id));
            match variable.and_then(|variable| variable.get_text("name")) {
                Some(name) => format!("variables.{name}"),
                None => path,
            }
        })
        .take(MOST)
        .collect()
}

fn find<'a>(body: Ref<'a>, path: &str) -> Option<Ref<'a>> {
    let path = path.trim();
    let below = path.strip_prefix("pipeline.").unwrap_or(path);
    walk(body, below).or_else(|| walk(body.get("variables")?, path))
}

/// Follows a path. Names of variables may hold dots, so at a list the longest name that fits wins.
fn walk<'a>(value: Ref<'a>, path: &str) -> Option<Ref<'a>> {
    if path.is_empty() {
        // The path of a variable means its value.
        return match value.is_map() {
            true => value.get("value"),
            false => Some(value),
        };
    }
    let ends = path
        .char_indices()
        .filter(|(_, c)| matches!(c, '.' | '['))
        .map(|(at, _)| at)
        .chain([path.len()])
        .filter(|end| *end > 0);
    let mut ends: Vec<_> = ends.collect();
    ends.reverse();
    ends.into_iter().find_map(|end| {
        let (name, rest) = path.split_at(end);
        walk(step(value, name)?, rest.strip_prefix('.').unwrap_or(rest))
    })
}

fn step<'a>(value: Ref<'a>, name: &str) -> Option<Ref<'a>> {
    if value.is_map() {
        return value.get(name);
    }
    let index = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if let Ok(index) = index.unwrap_or(name).parse::<usize>() {
        return value.items().nth(index);
    }
    let mut items = Vec::new();
    flat(value, &mut items);
    let item = items
        .into_iter()
        .find(|item| identity(*item) == Some(name))?;
    Some(wrapped(item).unwrap_or(item))
}
