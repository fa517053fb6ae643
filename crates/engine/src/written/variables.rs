//! Variables that expressions read and nobody declares: `<+pipeline.variables.x>` of a pipeline, `<+stage.variables.x>` of
//! a stage. A run fails when it comes to one; whoever writes it is warned. What a template or an input may bring is passed
//! over.

use std::collections::HashSet;

use slipway_expr::Segment;
use slipway_model::diagnostic::{MOST_DIAGNOSTICS, nearest};
use slipway_model::{Code, Diagnostic, Kind, Parsed, Ref};
use slipway_plan::CHAINED;

/// The variables of what a text stands in, as far as they are known.
#[derive(Clone, Default)]
struct Declared<'e> {
    pipeline: Option<Vec<&'e str>>,
    stage: Option<Vec<&'e str>>,
}

/// Warnings of names that nothing declares; none where `told` has something to say of the same place.
pub(super) fn undeclared(entity: &Parsed, told: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut walk = Walk {
        told: told.iter().map(|one| (one.line, one.column)).collect(),
        out: Vec::new(),
    };
    let nothing = Declared::default();
    match (entity.head.kind, entity.head.entity_type.as_deref()) {
        (Kind::Pipeline, _) => walk.pipeline(entity.body()),
        (Kind::Template, Some("Pipeline")) => {
            if let Some(spec) = entity.body().get("spec") {
                walk.pipeline(spec);
            }
        }
        (Kind::Template, Some("Stage")) => {
            if let Some(spec) = entity.body().get("spec") {
                walk.stage(spec, &nothing);
            }
        }
        _ => {}
    }
    walk.out
}

struct Walk {
    told: HashSet<(u32, u32)>,
    out: Vec<Diagnostic>,
}

impl Walk {
    fn pipeline(&mut self, pipeline: Ref<'_>) {
        let declared = Declared {
            pipeline: variables(pipeline),
            stage: None,
        };
        self.values(pipeline, &declared);
    }

    fn stage<'e>(&mut self, stage: Ref<'e>, around: &Declared<'e>) {
        let declared = Declared {
            stage: variables(stage),
            ..around.clone()
        };
        let chained = stage.get_text("type") == Some(CHAINED);
        for (key, value) in stage.entries() {
            match key {
                // What a chained pipeline tells is read where it ran.
                "spec" if chained => {
                    let own = value.entries().filter(|(key, _)| *key != "outputs");
                    own.for_each(|(_, value)| self.values(value, &declared));
                }
                _ => self.field(key, value, &declared),
            }
        }
    }

    fn field<'e>(&mut self, key: &str, value: Ref<'e>, declared: &Declared<'e>) {
        match key {
            // Nobody evaluates it.
            "description" => {}
            "stage" if value.is_map() => self.stage(value, declared),
            _ => self.values(value, declared),
        }
    }

    fn values<'e>(&mut self, value: Ref<'e>, declared: &Declared<'e>) {
        for (key, inner) in value.entries() {
            self.field(key, inner, declared);
        }
        for item in value.items() {
            self.values(item, declared);
        }
        if let Some(text) = value.text() {
            self.text(value, text, declared);
        }
    }

    fn text(&mut self, at: Ref<'_>, text: &str, declared: &Declared<'_>) {
        if !text.contains("<+") || !text.contains("variables") {
            return;
        }
        let Ok(template) = slipway_expr::parse(text) else {
            return;
        };
        for path in template.references() {
            let names: Vec<&str> = path.segments.iter().map_while(Segment::key).collect();
            let (of, known, name) = match names.as_slice() {
                ["pipeline", "variables", name @ ..] => ("pipeline", &declared.pipeline, name),
                ["stage", "variables", name @ ..] => ("stage", &declared.stage, name),
                _ => continue,
            };
            let Some(known) = known.as_ref().filter(|_| !name.is_empty()) else {
                continue;
            };
            if !is_declared(known, name) {
                self.warn(at, of, &name.join("."), known);
            }
        }
    }

    fn warn(&mut self, at: Ref<'_>, of: &str, name: &str, known: &[&str]) {
        let message =
            format!("the {of} declares no variable `{name}`: a run fails where it is read");
        let fault = Diagnostic::at(Code::NotFound, at, message).warning();
        let is_told = self.told.contains(&(fault.line, fault.column));
        if !is_told && self.out.len() < MOST_DIAGNOSTICS {
            let near = nearest(name, known.iter().copied());
            self.out.push(fault.suggest(near));
        }
    }
}

/// Whether a name, which may hold dots, is that of a variable, or of something in one.
fn is_declared(known: &[&str], name: &[&str]) -> bool {
    (1..=name.len()).any(|end| known.contains(&name[..end].join(".").as_str()))
}

/// The names of the variables of a pipeline or stage; `None` where it may get others.
fn variables(holder: Ref<'_>) -> Option<Vec<&str>> {
    if holder.get("template").is_some() {
        return None;
    }
    match holder.get("variables") {
        None => Some(Vec::new()),
        Some(list) if list.is_null() => Some(Vec::new()),
        Some(list) if list.is_list() => {
            let names = list.items().map(|variable| variable.get_text("name"));
            names
                .map(|name| name.filter(|name| !name.contains("<+")))
                .collect()
        }
        Some(_) => None,
    }
}
