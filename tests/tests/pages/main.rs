//! The pages of the steps (`docs/steps`): made from the steps' own documentation, the language's schema, the registry and
//! the templates. `SLIPWAY_PAGES=write cargo test --package slipway-tests --test pages` writes them anew.

mod example;
mod fields;
mod page;
mod source;

use std::collections::BTreeMap;

use slipway_steps::STEPS;
use slipway_tests::checkout;

/// All pages, by the names of their files.
fn pages() -> BTreeMap<String, String> {
    let schema = slipway_model::schema::json_schema(Some(slipway_model::entity::Kind::Pipeline));
    let steps = STEPS
        .iter()
        .filter_map(|(_, step)| page::Page::of(*step, &schema));
    let all: Vec<_> = steps.collect();
    let mut pages: BTreeMap<String, String> = all
        .iter()
        .map(|page| (format!("{}.md", page.step_type), page.text()))
        .collect();
    pages.insert("README.md".to_owned(), page::index(&all));
    pages
}

#[test]
fn each_step_has_its_page_and_no_page_is_out_of_date() {
    let folder = checkout("docs/steps");
    let write = std::env::var("SLIPWAY_PAGES").is_ok_and(|what| what == "write");
    let wanted = pages();
    if write {
        std::fs::create_dir_all(&folder).expect("the folder");
    }
    let files = std::fs::read_dir(&folder).expect("docs/steps");
    for file in files.map(|file| file.expect("a file").path()) {
        let name = file
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        if !wanted.contains_key(name) {
            assert!(
                write,
                "docs/steps/{name} is about no step: write the pages anew"
            );
            std::fs::remove_file(&file).expect("removed");
        }
    }
    let mut old = Vec::new();
    for (name, text) in &wanted {
        let path = folder.join(name);
        if write {
            std::fs::write(&path, text).expect("written");
        } else if std::fs::read_to_string(&path).unwrap_or_default() != *text {
            old.push(name.as_str());
        }
    }
    assert!(
        old.is_empty(),
        "out of date in docs/steps: {}; SLIPWAY_PAGES=write writes them anew",
        old.join(", ")
    );
}
