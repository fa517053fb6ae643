//! Real YAML is understood: what Harness takes is accepted, prints as what was read, and plans.

use std::collections::BTreeMap;

use slipway_model::id::{AccountId, OrgId, ProjectId, Scope};
use slipway_model::{Code, Diagnostic, Kind, Severity, emit, entity};
use slipway_plan::{Request, Snapshot};

use crate::corpus::{Row, rows};

/// Kinds of which at least [`LEAST`] percent are accepted.
const MEASURED: &[&str] = &[
    "pipeline",
    "template",
    "trigger",
    "service",
    "infrastructureDefinition",
];
const LEAST: f64 = 98.0;

/// Files of entities, and fragments that were made entities.
fn entities() -> impl Iterator<Item = (Row, String)> {
    rows().into_iter().filter_map(|row| {
        let text = row.text();
        let text = match row.kind.strip_prefix("fragment:") {
            Some(part) => wrapped(part, &text)?,
            None if Kind::from_key(&row.kind).is_some() => text,
            None => return None,
        };
        Some((row, text))
    })
}

/// A part of a pipeline in the least pipeline that can hold it.
fn wrapped(part: &str, text: &str) -> Option<String> {
    let indented = |by: usize| -> String {
        let pad = " ".repeat(by);
        text.lines().map(|line| format!("{pad}{line}\n")).collect()
    };
    let stage = "pipeline:\n  identifier: p\n  name: p\n  stages:\n";
    let custom = "  - stage:\n      identifier: s\n      name: s\n      type: Custom\n";
    let execution = "      spec:\n        execution:\n          steps:\n";
    Some(match part {
        "stage" => format!("{stage}  -\n{}", indented(4)),
        "stepGroup" => format!("{stage}{custom}{execution}          -\n{}", indented(12)),
        "failureStrategies" => format!(
            "{stage}{custom}{}      spec:\n        execution:\n          steps: []\n",
            indented(6)
        ),
        _ => return None,
    })
}

/// Whether a row is not a document but a template of a template engine, or one that the corpus filled in:
/// Harness would not take these either, before they are rendered.
fn is_rendered(row: &Row, text: &str) -> bool {
    row.placeholders_rendered == "yes"
        || text.contains("${indent(")
        || text.contains("_IDENTIFIER}")
}

fn errors(faults: &[Diagnostic]) -> impl Iterator<Item = &Diagnostic> {
    faults
        .iter()
        .filter(|fault| fault.severity == Severity::Error)
}

#[derive(Default)]
struct Count {
    accepted: usize,
    total: usize,
}

impl Count {
    fn note(&mut self, accepted: bool) {
        self.accepted += usize::from(accepted);
        self.total += 1;
    }
}

#[test]
fn what_harness_accepts_is_accepted() {
    let mut table: BTreeMap<(String, String), Count> = BTreeMap::new();
    let (mut measured, mut documents) = (Count::default(), Count::default());
    let (mut wrongly, mut refused) = (Vec::new(), Vec::new());
    // Files that a machine made up may hold invented fields, which are refused on purpose.
    for (row, text) in entities().filter(|(row, _)| row.trust != "C") {
        let parsed = entity::parse(&row.path, &text);
        let accepted = parsed.is_ok();
        let key = (row.kind.clone(), row.deployment_type.clone());
        table.entry(key).or_default().note(accepted);
        if MEASURED.contains(&row.kind.as_str()) {
            measured.note(accepted);
            if !is_rendered(&row, &text) {
                documents.note(accepted);
            }
        }
        let Err(faults) = parsed else { continue };
        let lines: Vec<_> = errors(&faults).take(3).map(ToString::to_string).collect();
        if row.validates == "yes" {
            wrongly.extend(lines.clone());
        }
        refused.extend(lines);
    }
    println!("{:<26} {:<34} accepted/total", "kind", "type");
    for ((kind, of), count) in &table {
        println!("{kind:<26} {of:<34} {}/{}", count.accepted, count.total);
    }
    println!("refused, with reasons:\n  {}", refused.join("\n  "));
    let share = |count: &Count| 100.0 * count.accepted as f64 / count.total as f64;
    println!(
        "{}: {}/{} ({:.1} %); without what a template engine has not rendered: {}/{} ({:.1} %)",
        MEASURED.join(", "),
        measured.accepted,
        measured.total,
        share(&measured),
        documents.accepted,
        documents.total,
        share(&documents),
    );
    assert_eq!(
        wrongly,
        Vec::<String>::new(),
        "valid by the official schema"
    );
    assert!(documents.total > 500, "only {} documents", documents.total);
    assert!(share(&documents) >= LEAST, "{:.1} %", share(&documents));
}

#[test]
fn every_refusal_has_a_place_a_path_and_a_reason() {
    for (row, text) in entities() {
        let faults = entity::parse(&row.path, &text).err();
        for fault in faults.into_iter().flatten() {
            let placed = fault.line > 0 && fault.column > 0;
            assert!(placed, "{}: {fault:?}", row.path);
            assert!(!fault.message.is_empty(), "{}: {fault:?}", row.path);
            assert!(text.lines().nth(fault.line as usize - 1).is_some());
        }
    }
}

#[test]
fn what_is_printed_reads_as_the_same_entity() {
    let mut seen = 0;
    for (row, text) in entities() {
        let Ok(parsed) = entity::parse(&row.path, &text) else {
            continue;
        };
        let printed = emit::to_yaml(&parsed.tree);
        let again = entity::parse(&row.path, &printed)
            .unwrap_or_else(|faults| panic!("{}: {}", row.path, faults[0]));
        assert_eq!(again.head, parsed.head, "{}", row.path);
        assert_eq!(again.to_json(), parsed.to_json(), "{}", row.path);
        assert_eq!(
            again.tree.root().to_json(),
            parsed.tree.root().to_json(),
            "{}",
            row.path
        );
        assert_eq!(emit::to_yaml(&again.tree), printed, "{}", row.path);
        seen += 1;
    }
    assert!(seen > 700, "only {seen} entities");
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
            chosen: None,
            trigger: None,
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
