//! Any text as a template that every link of a pipeline leads to, its own links too, and the pipeline
//! planned.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use slipway_model::id::{AccountId, OrgId, ProjectId, Scope};
use slipway_model::{Diagnostic, Parsed, entity, render};
use slipway_plan::{
    Entities, Fetched, Found, Reference, RemoteFiles, Request, resolve, text, wanted,
};

/// Uses a template wherever there can be one.
const PIPELINE: &str = "
pipeline:
  identifier: p
  name: p
  projectIdentifier: x
  orgIdentifier: y
  stages:
    - stage:
        identifier: a
        name: a
        template: {templateRef: t, versionLabel: v1}
    - stage:
        identifier: b
        name: b
        type: Custom
        spec:
          execution:
            steps:
              - step:
                  identifier: c
                  name: c
                  template:
                    templateRef: account.t
                    versionLabel: v1
                    templateInputs: {type: Wait, spec: {duration: 5s}}
              - stepGroup:
                  identifier: d
                  name: d
                  template: {templateRef: org.t}
";

static LINKING: LazyLock<Parsed> = LazyLock::new(|| {
    entity::parse("p.yaml", PIPELINE).unwrap_or_else(|faults| panic!("{faults:?}"))
});

/// One template under every name, and nothing else.
struct One(Arc<Parsed>);

impl Entities for One {
    fn get(&self, reference: &Reference) -> Option<Found> {
        (reference.kind == "template").then(|| Found::Entity(Arc::clone(&self.0)))
    }

    fn files(&self, _wanted: &RemoteFiles) -> Option<Result<Fetched, String>> {
        None
    }
}

/// The text as a template: whole, or as the spec of one.
fn template(source: &str) -> Option<Parsed> {
    if let Ok(parsed) = entity::parse("t.yaml", source) {
        return Some(parsed);
    }
    let (kind, spec) = source.split_once('\n')?;
    let spec = spec.replace('\n', "\n    ");
    let whole = format!(
        "template:\n  name: t\n  identifier: t\n  versionLabel: v1\n  projectIdentifier: x\n  \
         orgIdentifier: y\n  type: {kind}\n  spec:\n    {spec}\n"
    );
    entity::parse("t.yaml", &whole).ok()
}

fn plan(pipeline: &Parsed, entities: &dyn Entities, source: &str) {
    let scope = Scope::project(AccountId::new("acc"), OrgId::new("y"), ProjectId::new("x"));
    let request = Request {
        pipeline,
        inputs: &[],
        scope: &scope,
        entities,
        runnable: &|_| true,
        chosen: None,
    };
    let _ = wanted(&request);
    match resolve(&request) {
        Ok(plan) => assert!(!text(&plan).is_empty()),
        Err(faults) => {
            assert!(!faults.is_empty());
            let _ = render::render(few(&faults), |_| Some(source), false);
        }
    }
}

/// Showing faults takes longer than finding them: a few are enough.
fn few(faults: &[Diagnostic]) -> &[Diagnostic] {
    faults.get(..4).unwrap_or(faults)
}

fuzz_target!(|source: &str| {
    let Some(parsed) = template(source) else {
        return;
    };
    let entities = One(Arc::new(parsed));
    plan(&LINKING, &entities, source);
    if entities.0.head.kind.key() == "pipeline" {
        plan(&entities.0, &entities, source);
    }
});
