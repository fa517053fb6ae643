//! The corpus of real Harness YAML and its index.

use serde::Deserialize;

use crate::shared;

/// A row of `corpus/INDEX.csv`, as far as it is used.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// File below `corpus/`.
    pub path: String,
    /// Root key of the file.
    pub kind: String,
    /// Deployment type, `conn:<type>` for connectors, `none`.
    pub deployment_type: String,
    /// `A` = official or saved by Harness, `B` = hand-written, `C` = probably machine-written.
    pub trust: String,
    /// What the official schema says of it: `yes`, `no`, `error`, `n/a` where there is none.
    pub validates: String,
    /// Whether the corpus put `ph_…` where a template engine would put something: `yes` or `no`.
    pub placeholders_rendered: String,
    /// Distinct step types, separated by spaces or semicolons.
    pub step_types: String,
}

impl Row {
    /// The file's text.
    pub fn text(&self) -> String {
        let path = shared().join("corpus").join(&self.path);
        std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    }

    /// The step types it uses.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        self.step_types
            .split([' ', ';', '|', ','])
            .filter(|word| !word.is_empty())
    }
}

/// Every row.
pub fn rows() -> Vec<Row> {
    let path = shared().join("corpus/INDEX.csv");
    let mut reader = csv::Reader::from_path(&path).expect("the index");
    reader
        .deserialize()
        .map(|row| row.expect("a row"))
        .collect()
}
