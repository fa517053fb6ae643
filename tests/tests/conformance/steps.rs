//! Every step type of Harness's schemas takes the fields that they give it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use slipway_model::{Code, Diagnostic, Severity, entity};

use crate::corpus::rows;
use crate::schema::{Declared, stage_types, step_types};

/// Fields that a schema requires and Slipway does not, with the reason.
const LOOSER: &[(&str, &str, &str)] = &[
    (
        "K8sTrafficRouting",
        "trafficRouting",
        "asked for once `type` is no expression",
    ),
    (
        "TerraformCloudRun",
        "spec",
        "asked for once `runType` is no expression",
    ),
    ("Verify", "spec", "asked for once `type` is no expression"),
];

/// Parts of paths of stages where the schema does not mean what it says, with the reason.
const SLIPS: &[(&str, &str)] = &[
    (
        ").spec.type",
        "the class that all these specs come from has it, no document does",
    ),
    (
        "Hook(type=HarnessCode)",
        "`storeType` says what a hook's store is",
    ),
];

/// Files that are refused though the schema, which allows any field, accepts them.
const MISSPELT: &[&str] = &[
    // `cloneCode`, which is meant to be `cloneCodebase`.
    "pipeline/ashwinkutti_harness-github-trigger__harness_pipeline.yaml",
];

/// What is said of a step with this spec, errors and warnings.
fn said(step_type: &str, spec: &Value) -> Vec<Diagnostic> {
    let template = json!({"template": {
        "identifier": "t", "name": "t", "versionLabel": "v1", "type": "Step",
        "spec": {"type": step_type, "timeout": "10m", "spec": spec},
    }});
    match entity::parse("t.json", &template.to_string()) {
        Ok(parsed) => parsed.warnings,
        Err(faults) => faults,
    }
}

#[test]
fn every_field_of_every_step_that_runs_is_read_by_it() {
    let mut refused = Vec::new();
    let mut fields = 0;
    for (name, step) in &step_types("pipeline.json") {
        let Some(implementation) = slipway_steps::find(name) else {
            continue;
        };
        for (path, spec) in &step.fields {
            fields += 1;
            let faults = implementation.check(spec);
            let unknown = faults.iter().find(|fault| fault.contains("unknown field"));
            refused.extend(unknown.map(|fault| format!("{name}{path}: {fault}")));
        }
    }
    assert!(fields > 150, "{fields}");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn every_field_of_every_step_type_is_accepted() {
    let mut refused = Vec::new();
    for file in ["pipeline.json", "template.json"] {
        let types = step_types(file);
        let fields: usize = types.values().map(|step| step.fields.len()).sum();
        println!("{file}: {} step types, {fields} fields", types.len());
        assert!(types.len() > 340, "{file}");
        for (name, step) in &types {
            for (path, spec) in &step.fields {
                let found = said(name, spec);
                let mut unknown = found.iter().filter(|fault| {
                    fault.code == Code::UnknownField || fault.path.ends_with(".type")
                });
                if let Some(fault) = unknown.next() {
                    refused.push(format!("{file}: {name}{path}: {fault}"));
                }
            }
        }
    }
    assert!(
        refused.is_empty(),
        "{} refused:\n{}",
        refused.len(),
        refused.join("\n")
    );
}

#[test]
fn every_field_beside_a_spec_is_accepted() {
    let frame = |types: BTreeMap<String, Declared>| -> BTreeSet<String> {
        types.into_values().flat_map(|found| found.frame).collect()
    };
    let steps = frame(step_types("pipeline.json"));
    let stages = frame(stage_types("pipeline.json"));
    println!("steps: {steps:?}\nstages: {stages:?}");
    let mut stage = json!({"type": "Custom", "spec": {"execution": {"steps": []}}});
    let mut step = json!({"type": "Wait", "spec": {"duration": "10m"}});
    for (element, fields) in [(&mut stage, stages), (&mut step, steps)] {
        let element = element.as_object_mut().expect("an object");
        for field in fields
            .into_iter()
            .filter(|field| field != "type" && field != "spec")
        {
            element.insert(field, json!("<+input>"));
        }
    }
    stage["spec"]["execution"]["steps"] = json!([{"step": step}]);
    let pipeline =
        json!({"pipeline": {"identifier": "p", "name": "p", "stages": [{"stage": stage}]}});
    let parsed = entity::parse("p.json", &pipeline.to_string());
    assert_eq!(parsed.map(|entity| entity.warnings), Ok(Vec::new()));
}

#[test]
fn every_form_of_value_is_accepted() {
    let types = step_types("pipeline.json");
    let mut refused = Vec::new();
    let mut seen = 0;
    for (name, step) in &types {
        for (path, spec) in &step.samples {
            seen += 1;
            let found = said(name, spec);
            let here = path.rsplit(')').next().unwrap_or(path);
            let mut bad = found
                .iter()
                .filter(|fault| fault.code == Code::BadValue && fault.path.contains(here));
            if let Some(fault) = bad.next() {
                refused.push(format!("{name}{path}: {fault}"));
            }
        }
    }
    println!("{seen} values");
    assert!(
        refused.is_empty(),
        "{} refused:\n{}",
        refused.len(),
        refused.join("\n")
    );
}

#[test]
fn every_field_of_every_stage_type_is_accepted() {
    let types = stage_types("pipeline.json");
    let fields: usize = types.values().map(|stage| stage.fields.len()).sum();
    println!("{} stage types, {fields} fields", types.len());
    let mut refused = Vec::new();
    for (name, stage) in &types {
        let meant = |path: &str| !SLIPS.iter().any(|(slip, _)| path.contains(slip));
        for (path, spec) in stage.fields.iter().filter(|(path, _)| meant(path)) {
            let pipeline = json!({"pipeline": {"identifier": "p", "name": "p", "stages": [
                {"stage": {"identifier": "s", "name": "s", "type": name, "spec": spec}},
            ]}});
            let found = match entity::parse("p.json", &pipeline.to_string()) {
                Ok(parsed) => parsed.warnings,
                Err(faults) => faults,
            };
            if let Some(fault) = found
                .iter()
                .find(|fault| fault.code == Code::UnknownField || fault.path.ends_with(".type"))
            {
                refused.push(format!("{name}{path}: {fault}"));
            }
        }
    }
    assert!(
        refused.is_empty(),
        "{} refused:\n{}",
        refused.len(),
        refused.join("\n")
    );
}

#[test]
fn every_required_field_of_every_step_type_is_required() {
    let types = step_types("pipeline.json");
    let mut optional = Vec::new();
    let (mut required, mut looser) = (0, BTreeSet::new());
    for (name, step) in &types {
        for field in &step.required {
            required += 1;
            let others = step.required.iter().filter(|other| *other != field);
            let spec: Map<_, _> = others
                .map(|other| (other.clone(), json!("<+input>")))
                .collect();
            let asked = said(name, &Value::Object(spec)).iter().any(|fault| {
                fault.code == Code::MissingField && fault.message.contains(&format!("`{field}`"))
            });
            let listed = LOOSER
                .iter()
                .any(|(step, looser, _)| step == name && looser == field);
            match (asked, listed) {
                (true, false) => {}
                (false, true) => _ = looser.insert((name, field)),
                _ => optional.push(format!("{name}.{field}")),
            }
        }
    }
    println!(
        "{required} required fields, {} of them looser on purpose",
        looser.len()
    );
    assert!(optional.is_empty(), "{}", optional.join("\n"));
}

#[test]
fn pipelines_and_templates_that_the_schema_accepts_have_no_fault() {
    let mut refused = Vec::new();
    let mut seen = 0;
    for row in rows() {
        let kind = matches!(row.kind.as_str(), "pipeline" | "template");
        if !kind
            || row.trust == "C"
            || row.validates != "yes"
            || MISSPELT.contains(&row.path.as_str())
        {
            continue;
        }
        seen += 1;
        let faults = entity::parse(&row.path, &row.text())
            .err()
            .unwrap_or_default();
        let errors = faults
            .iter()
            .filter(|fault| fault.severity == Severity::Error);
        refused.extend(errors.map(ToString::to_string));
    }
    println!("{seen} pipelines and templates");
    assert!(seen > 400, "only {seen} files");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
