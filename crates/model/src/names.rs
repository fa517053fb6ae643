//! Identifiers inside a pipeline: each must name one thing.

use std::collections::HashMap;

use crate::diagnostic::{Code, Diagnostic, Diagnostics, nearest, shown};
use crate::kind::Kind;
use crate::tree::Ref;

/// Most stages of a pipeline.
pub const MOST_STAGES: usize = 256;
/// Most steps of a pipeline.
pub const MOST_STEPS: usize = 5_000;

/// Most branches of one `parallel`.
pub const MOST_BRANCHES: usize = 256;

/// Notes identifiers that stand twice where they must be unique (stages in the pipeline; steps and step
/// groups in the list they are in, branches of `parallel` included), and too many stages or steps.
pub(crate) fn check(entity: Ref<'_>, kind: Kind, out: &mut Diagnostics) {
    let mut names = Names { out, steps: 0 };
    let spec = || entity.get("spec").filter(|spec| spec.is_map());
    let (body, path) = match (kind, entity.get_text("type")) {
        (Kind::Pipeline, _) => {
            names.pipeline(entity, "pipeline.stages");
            (Some(entity), "pipeline.stages")
        }
        (Kind::Template, Some("Pipeline")) => {
            let body = spec();
            body.into_iter()
                .for_each(|body| names.pipeline(body, "template.spec.stages"));
            (body, "template.spec.stages")
        }
        (Kind::Template, Some("Stage")) => {
            let body = spec();
            names.execution(body);
            (body, "template.spec")
        }
        (Kind::Template, Some("StepGroup")) => {
            let body = spec();
            names.group(body);
            (body, "template.spec")
        }
        _ => return,
    };
    if let Some(body) = body.filter(|_| names.steps > MOST_STEPS) {
        let message = format!("{} steps; a pipeline has at most {MOST_STEPS}", names.steps);
        out.push(Diagnostic::at(Code::Limit, body, message).path(path));
    }
}

/// Stages, steps and step groups of a list, those in `parallel` included, in order.
fn flatten<'a>(list: Option<Ref<'a>>, out: &mut Vec<Ref<'a>>) {
    for item in list.into_iter().flat_map(Ref::items) {
        for key in ["stage", "step", "stepGroup"] {
            out.extend(item.get(key).filter(|element| element.is_map()));
        }
        flatten(item.get("parallel"), out);
    }
}

/// Where a stage names another one to take its service, environment or infrastructure over.
fn taken_over(stage: Ref<'_>) -> impl Iterator<Item = Ref<'_>> {
    const HOLDERS: [&str; 5] = [
        "service",
        "services",
        "environment",
        "serviceConfig",
        "infrastructure",
    ];
    let holders = HOLDERS.iter();
    holders
        .filter_map(move |holder| stage.at(&["spec", holder, "useFromStage", "stage"]))
        .filter(|name| name.text().is_some() && !name.is_expression())
}

struct Names<'a> {
    out: &'a mut Diagnostics,
    steps: usize,
}

impl Names<'_> {
    fn pipeline(&mut self, pipeline: Ref<'_>, path: &str) {
        let mut stages = Vec::new();
        self.width(pipeline.get("stages"));
        flatten(pipeline.get("stages"), &mut stages);
        if stages.len() > MOST_STAGES {
            let found = stages.len();
            let message = format!("{found} stages; a pipeline has at most {MOST_STAGES}");
            return self
                .out
                .push(Diagnostic::at(Code::Limit, pipeline, message).path(path));
        }
        self.unique(&stages, "stage");
        self.earlier(pipeline, &stages);
        for stage in stages {
            self.execution(Some(stage));
        }
    }

    /// Notes stages that take something over from a stage that is not there or does not run before them.
    fn earlier(&mut self, pipeline: Ref<'_>, stages: &[Ref<'_>]) {
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (index, stage) in stages.iter().enumerate() {
            match stage.get_text("identifier").filter(|id| !id.contains("<+")) {
                Some(identifier) => drop(known.insert(identifier, index)),
                None => return,
            }
        }
        // Whoever uses a template may insert stages.
        let mut items = pipeline.get("stages").into_iter().flat_map(Ref::items);
        if items.any(|item| item.get("insert").is_some()) {
            return;
        }
        for (index, stage) in stages.iter().enumerate() {
            for name in taken_over(*stage) {
                let text = name.text().unwrap_or_default();
                let message = match known.get(text) {
                    Some(other) if *other < index => continue,
                    Some(other) if *other == index => "is this stage itself",
                    Some(_) => "stands later: it runs after this stage",
                    // Harness keeps such a pipeline; it cannot be planned.
                    None => {
                        let near = nearest(text, known.keys().copied());
                        self.out.warn_with(|| {
                            let text = shown(text);
                            let message = format!("the stage `{text}` is not in this pipeline");
                            Diagnostic::at(Code::NotFound, name, message).suggest(near)
                        });
                        continue;
                    }
                };
                self.out.push_with(|| {
                    let message = format!("the stage `{}` {message}", shown(text));
                    Diagnostic::at(Code::Loop, name, message).expected("a stage before this one")
                });
            }
        }
    }

    fn execution(&mut self, stage: Option<Ref<'_>>) {
        self.group(stage.and_then(|stage| stage.at(&["spec", "execution"])));
    }

    fn group(&mut self, group: Option<Ref<'_>>) {
        if let Some(group) = group {
            self.list(group.get("steps"));
            self.list(group.get("rollbackSteps"));
        }
    }

    fn list(&mut self, list: Option<Ref<'_>>) {
        let mut elements = Vec::new();
        self.width(list);
        flatten(list, &mut elements);
        self.steps += elements.len();
        self.unique(&elements, "step");
        for element in elements {
            self.group(Some(element));
        }
    }

    /// Notes blocks of the list with too many branches.
    fn width(&mut self, list: Option<Ref<'_>>) {
        for item in list.into_iter().flat_map(Ref::items) {
            let Some(parallel) = item.get("parallel") else {
                continue;
            };
            let branches = parallel.items().len();
            if branches > MOST_BRANCHES {
                let message =
                    format!("{branches} branches; at most {MOST_BRANCHES} run side by side");
                self.out
                    .push(Diagnostic::at(Code::Limit, parallel, message));
            }
            self.width(Some(parallel));
        }
    }

    fn unique(&mut self, elements: &[Ref<'_>], what: &str) {
        let mut seen: HashMap<String, Ref<'_>> = HashMap::new();
        for element in elements {
            let Some(identifier) = element.get("identifier") else {
                continue;
            };
            let Some(text) = identifier.text().filter(|text| !text.contains("<+")) else {
                continue;
            };
            // Names of executions and log files that differ only in case get mixed up.
            if let Some(first) = seen.insert(text.to_lowercase(), identifier) {
                self.out.push_with(|| {
                    let same = first.text() == Some(text);
                    let place = first.place();
                    let message = format!(
                        "the {what} `{}` has the same identifier{} as the one at line {}, column {}",
                        shown(text),
                        if same { "" } else { ", but for its case," },
                        place.line,
                        place.column
                    );
                    Diagnostic::at(Code::Duplicate, identifier, message)
                });
            }
        }
    }
}
