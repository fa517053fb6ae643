//! A step as somebody writes it, from the templates, or from the traces.

use std::path::{Path, PathBuf};

use slipway_tests::checkout;

/// The first step of a type, with the file that it stands in.
pub(crate) fn of(step_type: &str) -> Option<(String, String)> {
    let wanted = format!("type: {step_type}");
    let folders = ["templates", "tests/traces"];
    let files = folders.iter().flat_map(|folder| yaml(&checkout(folder)));
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a text");
        let lines: Vec<&str> = text.lines().collect();
        if let Some(at) = lines.iter().position(|line| line.trim() == wanted)
            && let Some(step) = around(&lines, at)
        {
            let path = file
                .strip_prefix(checkout(""))
                .unwrap_or(&file)
                .display()
                .to_string();
            return Some((path, step));
        }
    }
    None
}

/// The list item `- step:` that a line belongs to.
fn around(lines: &[&str], at: usize) -> Option<String> {
    let first = lines[..at]
        .iter()
        .rposition(|line| line.trim() == "- step:")?;
    let indent = depth(lines[first]);
    let rest = lines[first + 1..].iter();
    let within = rest.take_while(|line| line.trim().is_empty() || depth(line) > indent);
    let item = [lines[first]].into_iter().chain(within.copied());
    let text: Vec<&str> = item.map(|line| line.get(indent..).unwrap_or("")).collect();
    Some(text.join("\n").trim_end().to_owned())
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The YAML files of a folder and those below it, by name.
fn yaml(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => found.extend(yaml(&path)),
            false if path.extension().is_some_and(|end| end == "yaml") => found.push(path),
            false => {}
        }
    }
    found
}
