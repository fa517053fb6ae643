//! Real YAML is understood: what is within this version's scope parses and plans.

use slipway_model::id::{AccountId, OrgId, ProjectId, Scope};
use slipway_model::{Code, Diagnostic, entity, render::render};
use slipway_plan::{Request, Snapshot};

use crate::corpus::{Row, rows};

/// Kinds whose every field is known.
const KINDS: &[&str] = &[
    "pipeline",
    "service",
    "environment",
    "infrastructureDefinition",
    "connector",
];

/// Whether a row is an ECS entity, or one that an ECS pipeline refers to.
fn in_scope(row: &Row) -> bool {
    let ecs = row.deployment_type == "ECS";
    let aws = row.deployment_type == "conn:Aws";
    KINDS.contains(&row.kind.as_str()) && (ecs || aws || row.kind == "environment")
}

/// Whether Harness itself would not take it: samples in documents have identifiers such as `aws-connector`,
/// which the pattern of the official schema refuses, and `ph_…` stands where the corpus filled in a
/// placeholder of a template engine.
fn harness_refuses(fault: &Diagnostic) -> bool {
    let identifier = fault.path.ends_with(".identifier");
    fault.code == Code::BadValue && (identifier || fault.message.contains("`ph_"))
}

#[test]
fn entities_of_ecs_deployments_are_understood() {
    let mut refused = Vec::new();
    let mut seen = 0;
    // Files that a machine made up may hold invented fields, which are refused on purpose.
    for row in rows()
        .iter()
        .filter(|row| in_scope(row) && row.trust != "C")
    {
        seen += 1;
        let text = row.text();
        if let Err(faults) = entity::parse(&row.path, &text) {
            if faults.iter().all(harness_refuses) {
                continue;
            }
            refused.push(render(&faults, |_| Some(text.as_str()), false));
        }
    }
    assert!(seen > 30, "only {seen} files are in scope");
    assert!(
        refused.is_empty(),
        "{} of {seen} refused:\n{}",
        refused.len(),
        refused.join("\n")
    );
}

#[test]
fn no_file_of_the_corpus_is_refused_without_a_place_and_a_reason() {
    for row in rows()
        .iter()
        .filter(|row| KINDS.contains(&row.kind.as_str()))
    {
        for fault in entity::parse(&row.path, &row.text())
            .err()
            .into_iter()
            .flatten()
        {
            assert!(
                fault.line > 0 && fault.column > 0,
                "{}: {fault:?}",
                row.path
            );
            assert!(!fault.message.is_empty(), "{}: {fault:?}", row.path);
        }
    }
}

#[test]
fn pipelines_of_runnable_steps_plan_or_say_what_is_missing() {
    let runnable = |step: &str| slipway_steps::registry::runnable(step);
    let scope = Scope::project(
        AccountId::new("acc"),
        OrgId::new("default"),
        ProjectId::new("default"),
    );
    let (mut planned, mut seen) = (0, 0);
    for row in rows()
        .iter()
        .filter(|row| row.kind == "pipeline" && row.trust != "C")
    {
        let steps: Vec<&str> = row.steps().collect();
        if steps.is_empty() || !steps.iter().all(|step| runnable(step)) {
            continue;
        }
        let Ok(pipeline) = entity::parse(&row.path, &row.text()) else {
            continue;
        };
        seen += 1;
        let plan = slipway_plan::resolve(&Request {
            pipeline: &pipeline,
            inputs: &[],
            scope: &scope,
            entities: &Snapshot::default(),
            runnable: &runnable,
            fetchable: &|_| false,
        });
        match plan {
            Ok(plan) => {
                assert!(!slipway_plan::text(&plan).is_empty(), "{}", row.path);
                planned += 1;
            }
            // Nothing is in this project: references and inputs are missing, and must be named.
            Err(faults) => {
                for fault in &faults {
                    let fair = matches!(
                        fault.code,
                        Code::NotFound | Code::MissingInput | Code::NotSupported
                    );
                    assert!(fair && fault.line > 0, "{}: {fault:?}", row.path);
                }
            }
        }
    }
    assert!(planned >= 3, "{planned} of {seen} planned");
}
