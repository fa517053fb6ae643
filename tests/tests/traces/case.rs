//! The pipelines of `tests/traces`: Harness YAML, with what people do in comments that begin with `#>`.

use std::path::PathBuf;

use slipway_tests::checkout;

use crate::others::Others;
use crate::words::{Word, read};

/// One pipeline and its story.
pub(crate) struct Case {
    /// Name of its file, and of the project that it is in.
    pub(crate) name: String,
    /// What it shows: the comment at its head.
    pub(crate) about: String,
    /// Its entities.
    yaml: String,
    /// What people do.
    pub(crate) words: Vec<Word>,
}

impl Case {
    /// Its entities, in a project of their own, with the addresses of those that they have to do with.
    pub(crate) fn yaml(&self, others: &Others) -> String {
        let project = format!("projectIdentifier: {}\n", self.name);
        let yaml = self.yaml.replace("projectIdentifier: default\n", &project);
        let chained = format!("project: {}\n", self.name);
        let yaml = yaml.replace("project: default\n", &chained);
        others.found_in(&yaml)
    }

    /// Whether it calls others than AWS.
    pub(crate) fn calls(&self) -> bool {
        Others::are_named_in(&self.yaml)
    }

    /// What its tickets came to.
    pub(crate) fn tickets(&self, others: &Others) -> String {
        others.tickets(&self.yaml)
    }

    /// Whether it deploys to ECS.
    pub(crate) fn deploys(&self) -> bool {
        self.yaml.contains("type: EcsRollingDeploy")
    }

    /// The file of its golden trace.
    pub(crate) fn trace(&self) -> PathBuf {
        folder().join(format!("{}.trace.txt", self.name))
    }

    /// Its golden trace.
    pub(crate) fn golden(&self) -> String {
        let path = self.trace();
        std::fs::read_to_string(&path).unwrap_or_else(|why| {
            let path = path.display();
            panic!("{path} cannot be read ({why}): `SLIPWAY_TRACES=write` writes it")
        })
    }
}

/// The folder of the pipelines and their traces.
pub(crate) fn folder() -> PathBuf {
    checkout("tests/traces")
}

/// All of them, by name; only those that `SLIPWAY_TRACE` is part of, where it is set.
pub(crate) fn all() -> Vec<Case> {
    let files = std::fs::read_dir(folder()).expect("the folder of traces");
    let paths = files.map(|file| file.expect("a file").path());
    let yaml = paths.filter(|path| path.extension().is_some_and(|e| e == "yaml"));
    let mut cases: Vec<Case> = yaml.map(|path| one(&path)).collect();
    if let Ok(part) = std::env::var("SLIPWAY_TRACE") {
        cases.retain(|case| case.name.contains(&part));
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!cases.is_empty(), "no such pipelines");
    cases
}

fn one(path: &std::path::Path) -> Case {
    let name = path.file_stem().and_then(|stem| stem.to_str());
    let name = name.expect("a name").to_owned();
    let yaml = std::fs::read_to_string(path).expect("a text");
    let head = yaml.lines().take_while(|line| line.starts_with('#'));
    let (said, about): (Vec<_>, Vec<_>) = head.partition(|line| line.starts_with("#>"));
    let about: Vec<_> = about.iter().map(|line| line[1..].trim()).collect();
    let mut words: Vec<Word> = said
        .iter()
        .map(|line| read(&line[2..]).unwrap_or_else(|why| panic!("{name}: {line}: {why}")))
        .collect();
    if !words.iter().any(Word::starts) {
        words.insert(0, read("alex starts").expect("a word"));
    }
    Case {
        about: about.join(" "),
        name,
        words,
        yaml,
    }
}
