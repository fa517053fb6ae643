//! Templates and input sets of the corpus: what can be put together from one file alone is.

use std::fmt::Write as _;
use std::sync::Arc;

use slipway_model::id::{AccountId, EntityId, OrgId, ProjectId, Scope};
use slipway_model::inputs::{self, Unfilled};
use slipway_model::{Diagnostic, Kind, Parsed, entity, yaml};
use slipway_plan::{Found, Reference, Request, Snapshot, expanded, form, resolve, wanted};

use crate::corpus::{Row, rows};

fn scope() -> Scope {
    let (account, org) = (AccountId::new("acc"), OrgId::new("default"));
    Scope::project(account, org, ProjectId::new("project"))
}

fn told(faults: &[Diagnostic]) -> String {
    faults.first().map_or_else(String::new, ToString::to_string)
}

/// Stages that the steps of a template may belong to.
const STAGES: &[&str] = &[
    "type: Custom, spec: {",
    "type: CI, spec: {cloneCodebase: false, ",
    "type: SecurityTests, spec: {cloneCodebase: false, ",
    "type: Deployment, failureStrategies: [], spec: {deploymentType: Kubernetes, ",
    "type: Deployment, failureStrategies: [], spec: {deploymentType: Asg, ",
    "type: Deployment, failureStrategies: [], spec: {deploymentType: ECS, ",
    "type: Deployment, failureStrategies: [], spec: {deploymentType: Ssh, ",
];

/// Pipelines that link to a template of this type and say nothing more, one for each stage that it may belong
/// to; none for types that no pipeline links to.
fn linking(kind: &str) -> Vec<String> {
    let link = "template: {templateRef: linked, versionLabel: v}";
    let pipeline = |rest: &str| format!("pipeline: {{identifier: p, name: P, {rest}}}");
    let element = match kind {
        "Pipeline" => return vec![pipeline(link)],
        "Stage" => {
            let stage = format!("stages: [{{stage: {{identifier: s, name: S, {link}}}}}]");
            return vec![pipeline(&stage)];
        }
        "StepGroup" => format!("stepGroup: {{identifier: g, name: G, {link}}}"),
        "Step" => format!("step: {{identifier: w, name: W, {link}}}"),
        _ => return Vec::new(),
    };
    let of = |stage: &&str| {
        let stage = format!("{stage}execution: {{steps: [{{{element}}}]}}}}");
        pipeline(&format!(
            "stages: [{{stage: {{identifier: s, name: S, {stage}}}}}]"
        ))
    };
    STAGES.iter().map(of).collect()
}

/// The first pipeline that a template can be put into, or why it cannot be put into the first one; `None` for
/// types that no pipeline links to.
fn put_in(template: Parsed) -> Option<Result<Parsed, Vec<Diagnostic>>> {
    let kind = template.head.entity_type.clone().unwrap_or_default();
    let mut snapshot = Snapshot::default();
    let reference = Reference {
        scope: scope(),
        kind: Kind::Template.key(),
        parent: Some(EntityId::new("linked")),
        id: EntityId::new("v"),
    };
    snapshot.put(reference, Some(Found::Entity(Arc::new(template))));
    let mut first = None;
    for text in linking(&kind) {
        let pipeline =
            entity::parse("linking", &text).unwrap_or_else(|f| panic!("{text}: {}", told(&f)));
        let found = expanded(&Request {
            pipeline: &pipeline,
            inputs: &[],
            scope: &scope(),
            entities: &snapshot,
            runnable: &|_| true,
            chosen: None,
            trigger: None,
        });
        if found.is_ok() {
            return Some(found);
        }
        first.get_or_insert(found);
    }
    first
}

fn trusted(kind: &str) -> Vec<Row> {
    let mut rows = rows();
    rows.retain(|row| row.kind == kind && ["A", "B"].contains(&row.trust.as_str()));
    rows
}

#[test]
fn every_template_that_stands_alone_resolves() {
    let (mut alone, mut resolved, mut others, mut page) = (0, 0, 0, String::new());
    for row in trusted("template") {
        let Ok(template) = entity::parse(&row.path, &row.text()) else {
            continue;
        };
        if template.tree.mentions(&["templateRef"]) {
            others += 1;
            continue;
        }
        let Some(found) = put_in(template) else {
            continue;
        };
        alone += 1;
        match found {
            Ok(whole) => {
                resolved += 1;
                assert!(!whole.tree.mentions(&["templateRef"]), "{}", row.path);
            }
            Err(faults) => {
                let _ = writeln!(page, "  {}", told(&faults));
            }
        }
    }
    println!("templates: {resolved} of {alone} resolve; {others} link to others\n{page}");
    assert!(alone > 50, "the corpus has more templates than {alone}");
    // Harness keeps step groups whose steps are only named; nothing can be put in for them.
    let named_only = page
        .lines()
        .filter(|line| line.contains("a text stands where a mapping"))
        .count();
    assert_eq!(resolved + named_only, alone, "{page}");
}

/// Links that the corpus cannot follow end in a message, never in a panic or without a word.
#[test]
fn every_template_that_links_to_others_says_to_what() {
    for row in trusted("template").into_iter().chain(trusted("pipeline")) {
        let Ok(found) = entity::parse(&row.path, &row.text()) else {
            continue;
        };
        if !found.tree.mentions(&["templateRef"]) || found.head.kind != Kind::Template {
            continue;
        }
        if let Some(Err(faults)) = put_in(found) {
            let text = told(&faults);
            assert!(!text.is_empty(), "{}", row.path);
        }
    }
}

/// The pipeline that an input set was made for, as far as the set tells: each value it gives is asked for.
fn made_for(set: &Parsed) -> Option<yaml::Fault> {
    let given = inputs::of_set(set, &set.head.pipeline.clone()?).ok()?;
    let text = slipway_model::emit::to_yaml(&given);
    let asked: String = text
        .lines()
        .map(|line| {
            let key = line.trim_start().trim_start_matches("- ");
            let kept = ["identifier:", "name:", "type:", "key:"];
            let value = key.split_once(": ").map(|(_, value)| value);
            match value {
                Some(value)
                    if !kept.iter().any(|kept| key.starts_with(kept))
                        && !value.starts_with(['|', '>', '[', '{']) =>
                {
                    let at = line.len() - value.len();
                    format!("{}<+input>\n", &line[..at])
                }
                _ => format!("{line}\n"),
            }
        })
        .collect();
    let base = yaml::parse("made for it", &asked).ok()?;
    let body = |tree: &'_ slipway_model::Tree| tree.root().get("pipeline").is_some();
    assert!(body(&base) && body(&given));
    let (base, given) = (base.root().get("pipeline")?, given.root().get("pipeline")?);
    let filled = inputs::fill(base, &[given], "pipeline", Unfilled::Keep);
    filled
        .err()
        .and_then(|faults| faults.into_iter().next())
        .map(Box::new)
}

#[test]
fn every_input_set_merges_over_the_pipeline_made_for_it_or_says_why_not() {
    let (mut all, mut merged, mut page) = (0, 0, String::new());
    let pipelines: Vec<Parsed> = rows()
        .iter()
        .filter(|row| row.kind == "pipeline")
        .filter_map(|row| entity::parse(&row.path, &row.text()).ok())
        .collect();
    for row in rows().iter().filter(|row| row.kind == "inputSet") {
        let set = match entity::parse(&row.path, &row.text()) {
            Ok(set) => set,
            Err(faults) => {
                let _ = writeln!(page, "  not read: {}", told(&faults));
                continue;
            }
        };
        all += 1;
        match made_for(&set) {
            None => merged += 1,
            Some(fault) => {
                let _ = writeln!(page, "  {fault}");
            }
        }
        // A pipeline of the same name may be another one; what does not fit must be said.
        let own = pipelines
            .iter()
            .filter(|p| Some(&p.head.identifier) == set.head.pipeline.as_ref());
        for pipeline in own {
            if let Err(faults) = inputs::check_set(&set, pipeline) {
                assert!(!told(&faults).is_empty(), "{}", row.path);
            }
        }
    }
    println!("input sets: {merged} of {all} merge\n{page}");
    assert_eq!(merged, all, "{page}");
}

/// Without the entities that they name hardly any can be planned; each says why not, and none breaks.
#[test]
fn every_pipeline_is_planned_or_says_why_not() {
    let (mut planned, mut all, mut asked) = (0, 0, 0);
    for row in rows().iter().filter(|row| row.kind == "pipeline") {
        let Ok(pipeline) = entity::parse(&row.path, &row.text()) else {
            continue;
        };
        all += 1;
        let snapshot = Snapshot::default();
        let request = Request {
            pipeline: &pipeline,
            inputs: &[],
            scope: &scope(),
            entities: &snapshot,
            runnable: &|_| true,
            chosen: None,
            trigger: None,
        };
        asked += wanted(&request).references.len();
        let open = form(&request);
        assert!(
            open.template.is_none_or(|tree| !tree.is_empty()),
            "{}",
            row.path
        );
        match resolve(&request) {
            Ok(plan) => {
                planned += 1;
                assert!(!slipway_plan::text(&plan).is_empty(), "{}", row.path);
            }
            Err(faults) => assert!(!told(&faults).is_empty(), "{}", row.path),
        }
    }
    println!("pipelines: {planned} of {all} planned alone; {asked} references asked for");
    assert!(all > 100, "the corpus has more pipelines than {all}");
}
