//! `docs/hostile.md` against the tests: each case has a test that is there, and each test that is named by a case stands
//! in the table.

use std::collections::BTreeSet;
use std::path::Path;

use slipway_tests::checkout;

/// Cases of `F`, `W`, `Y` and `N`, and some of `A`, that the table of SECURITY.md has.
const CASES: [&str; 59] = [
    "F1", "F3", "F5", "F6", "F7", "F8", "F9", "F10", "F12", "F14", "F15", "F16", "F18", "F20",
    "F21", "F22", "W1", "W2", "W6", "W7", "W8", "W10", "W12", "W14", "W15", "W17", "W18", "W20",
    "W21", "W22", "W24", "W26", "W27", "W29", "W31", "W32", "W33", "Y1", "Y3", "Y5", "Y6", "Y8",
    "Y10", "Y11", "Y12", "Y13", "Y14", "Y16", "Y18", "Y20", "N2", "N4", "N6", "N7", "N8", "N9",
    "A8", "A9", "A16",
];

/// Functions of the tests of the checkout, each as `file::name`.
fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            let root = checkout(".");
            let file = path.strip_prefix(&root).expect("in the checkout").display();
            let mut lines = text.lines().map(str::trim_start);
            while let Some(line) = lines.next() {
                if !line.starts_with("#[test]") && !line.starts_with("#[tokio::test") {
                    continue;
                }
                let next = lines.find(|line| line.contains("fn ")).unwrap_or_default();
                let name = next
                    .split("fn ")
                    .nth(1)
                    .and_then(|rest| rest.split('(').next());
                found.extend(name.map(|name| format!("{file}::{name}")));
            }
        }
    }
}

/// Id and tests of each row.
fn rows() -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(checkout("docs/hostile.md")).expect("the table");
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| id"));
    rows.map(|row| {
        let mut cells = row.split('|').map(str::trim).skip(1);
        let id = cells.next().expect("an id").to_owned();
        let named = cells.next().expect("tests").split('`').skip(1).step_by(2);
        (id, named.map(str::to_owned).collect())
    })
    .collect()
}

#[test]
fn each_case_has_a_test_and_each_test_of_a_case_is_in_the_table() {
    let mut known = BTreeSet::new();
    for folder in ["crates", "functions", "tests"] {
        tests(&checkout(folder), &mut known);
    }
    let rows = rows();
    let ids: BTreeSet<&str> = rows.iter().map(|(id, _)| id.as_str()).collect();
    let missing: Vec<_> = CASES.iter().filter(|case| !ids.contains(*case)).collect();
    assert!(missing.is_empty(), "no row for {missing:?}");
    let mut named = BTreeSet::new();
    for (id, tests) in &rows {
        for test in tests {
            assert!(known.contains(test), "{id}: there is no test {test}");
            named.insert(test.as_str());
        }
    }
    let of_case = |test: &&String| {
        let name = test.rsplit("::").next().unwrap_or_default();
        let id = name.split('_').next().unwrap_or_default();
        id.starts_with(['f', 'w', 'y', 'n', 'a'])
            && id.len() > 1
            && id[1..].bytes().all(|b| b.is_ascii_digit())
    };
    let unlisted: Vec<_> = known
        .iter()
        .filter(of_case)
        .filter(|test| !named.contains(test.as_str()))
        .collect();
    assert!(unlisted.is_empty(), "not in docs/hostile.md: {unlisted:?}");
}
