//! The golden pipelines and templates that users start from: each is planned, as it is in `templates/`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what the tests share runs in tests only, and says what it found"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use slipway_model::id::{AccountId, OrgId, ProjectId, Scope};
use slipway_model::{Diagnostic, Kind, Parsed, entity, yaml};
use slipway_plan::{Found, Reference, Request, Snapshot, resolve, text};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../templates")
}

fn scope() -> Scope {
    let (account, org) = (AccountId::new("acc"), OrgId::new("default"));
    Scope::project(account, org, ProjectId::new("default"))
}

fn told(faults: Vec<Diagnostic>) -> String {
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

/// Every entity below `templates/`, by its file.
fn all() -> Vec<(String, Parsed)> {
    let mut files = Vec::new();
    for folder in std::fs::read_dir(root()).unwrap() {
        let folder = folder.unwrap().path();
        if folder.is_dir() {
            files.extend(
                std::fs::read_dir(folder)
                    .unwrap()
                    .map(|file| file.unwrap().path()),
            );
        }
    }
    files.retain(|file| file.extension().is_some_and(|end| end == "yaml"));
    files.sort();
    let mut out = Vec::new();
    for file in files {
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        let text = std::fs::read_to_string(&file).unwrap();
        let found = entity::parse_documents(&name, &text).unwrap_or_else(|f| panic!("{}", told(f)));
        out.extend(found.into_iter().map(|entity| (name.clone(), entity)));
    }
    out
}

/// What the runtime inputs of a golden pipeline are, by its folder.
fn inputs(folder: &str) -> String {
    const BALANCED: &str = "prodListener prodRule stageListener stageRule";
    let (version, more) = match folder {
        "approval" | "custom-stage" => ("", ""),
        "ticket" => ("change", ""),
        "deployment" | "lambda" | "lambda-canary" => ("version", ""),
        "asg-blue-green" => ("image", "listener rule"),
        "asg-swap" => ("image", BALANCED),
        "ecs-blue-green" => ("tag", BALANCED),
        "ecs-traffic-shift" => ("tag", "listener rule testListener testRule"),
        groups if groups.starts_with("asg-") => ("image", ""),
        _ => ("tag", ""),
    };
    let names = version.split_whitespace().chain(more.split_whitespace());
    let variables: Vec<_> = names
        .map(|name| format!("{{name: {name}, value: {name}-1}}"))
        .collect();
    match variables.is_empty() {
        true => "pipeline: {}".to_owned(),
        false => format!("pipeline: {{variables: [{}]}}", variables.join(", ")),
    }
}

fn planned(name: &str, pipeline: &Parsed, inputs: &str) -> String {
    let mut snapshot = Snapshot::default();
    for (_, entity) in all() {
        let reference = Reference::of(&entity, scope());
        snapshot.put(reference, Some(Found::Entity(Arc::new(entity))));
    }
    let inputs = yaml::parse("inputs", inputs).unwrap();
    let request = Request {
        pipeline,
        inputs: &[&inputs],
        scope: &scope(),
        entities: &snapshot,
        // `tests/tests/offline.rs` holds their steps against those that run.
        runnable: &|_| true,
        chosen: None,
        trigger: None,
    };
    match resolve(&request) {
        Ok(plan) => text(&plan),
        Err(faults) => panic!("{name}\n{}", told(faults)),
    }
}

/// `INSTA_UPDATE=always cargo test -p slipway-plan --test templates` writes the plans anew.
#[test]
fn every_golden_pipeline_is_planned_as_told() {
    let mut folders = Vec::new();
    for (name, entity) in all() {
        if entity.head.kind != Kind::Pipeline {
            continue;
        }
        let (folder, _) = name.split_once('/').unwrap();
        insta::assert_snapshot!(folder, planned(&name, &entity, &inputs(folder)));
        folders.push(format!("templates__{folder}.snap"));
    }
    // No plan is left of a pipeline that is not there.
    let told = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let told = std::fs::read_dir(told).unwrap();
    let mut told: Vec<_> = told
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|file| file.ends_with(".snap"))
        .collect();
    told.sort();
    folders.sort();
    assert_eq!(told, folders);
}

#[test]
fn templates_of_each_type_are_there() {
    let types: Vec<_> = all()
        .into_iter()
        .filter(|(_, entity)| entity.head.kind == Kind::Template)
        .filter_map(|(_, entity)| entity.head.entity_type)
        .collect();
    assert_eq!(types, ["CustomDeployment", "Stage", "StepGroup"]);
}
