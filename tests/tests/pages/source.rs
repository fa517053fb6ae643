//! What the source of a step says about it: the comment at the head of its file.

use std::path::{Path, PathBuf};

use slipway_tests::checkout;

/// The file that a step type stands in, from the root of the project, and the comment at its head.
pub(crate) fn of(step_type: &str) -> (String, String) {
    let literal = format!("\"{step_type}\"\n    }}");
    let constant = format!("str = \"{step_type}\";");
    for file in files(&checkout("crates/steps/src")) {
        let text = std::fs::read_to_string(&file).expect("a text");
        let found = text.match_indices("fn step_type(&self)").any(|(at, _)| {
            let after = text[at..].split_once('\n');
            let body = after.map_or("", |(_, after)| after.trim_start());
            let named = !body.starts_with('"') && text.contains(&constant);
            body.starts_with(&literal) || named
        });
        if !found {
            continue;
        }
        let root = checkout("");
        let path = file
            .strip_prefix(&root)
            .unwrap_or(&file)
            .display()
            .to_string();
        let head = text.lines().take_while(|line| line.starts_with("//!"));
        let head: Vec<_> = head.map(|line| line[3..].trim()).collect();
        return (path, plain(&head.join("\n")));
    }
    panic!("crates/steps has no file with `fn step_type` of {step_type}");
}

/// Links to Rust items are names to a reader of the page.
fn plain(text: &str) -> String {
    text.replace("[`", "`").replace("`]", "`").trim().to_owned()
}

/// The Rust files of a folder and those below it, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => found.extend(files(&path)),
            false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
            false => {}
        }
    }
    found
}
