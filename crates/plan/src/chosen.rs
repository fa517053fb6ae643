//! Runs of chosen stages: a pipeline without the stages that were left out, and what the chosen ones want of
//! them. Source: docs platform/pipelines/run-specific-stage-in-pipeline.

use serde::{Deserialize, Serialize};
use slipway_expr::Segment;
use slipway_model::diagnostic::nearest;
use slipway_model::graft::{Graft, Part};
use slipway_model::id::EntityId;
use slipway_model::{Code, Diagnostic, Diagnostics, Parsed, Ref, entity};

/// Which stages of a pipeline run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// Identifiers of stages, as the pipeline writes them.
    pub stages: Vec<EntityId>,
    /// Values for expressions that read stages which do not run, by path: `pipeline.stages.a.variables.tag`.
    #[serde(default)]
    pub values: Vec<(String, String)>,
}

impl Chosen {
    /// A choice of these stages; `values` are by expression, with or without `<+` and `>` around it.
    pub fn new(stages: Vec<EntityId>, values: Vec<(String, String)>) -> Self {
        let path = |text: &str| {
            let text = text.trim();
            let inner = text.strip_prefix("<+").and_then(|t| t.strip_suffix('>'));
            inner.unwrap_or(text).trim().to_owned()
        };
        let values = values.iter().map(|(key, v)| (path(key), v.clone()));
        Self {
            values: values.collect(),
            stages,
        }
    }

    /// The value that was given for a path.
    pub fn value(&self, path: &[&str]) -> Option<&str> {
        let mut values = self.values.iter();
        let found = values.find(|(known, _)| known.split('.').eq(path.iter().copied()));
        found.map(|(_, value)| value.as_str())
    }
}

/// A stage of a pipeline that may be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// `identifier`.
    pub identifier: String,
    /// `name`.
    pub name: String,
    /// Other stages that it reads: they run with it, or values are given for its expressions.
    pub needs: Vec<String>,
}

/// Whether a pipeline allows runs of chosen stages (`allowStageExecutions`).
pub fn allows_choice(pipeline: &Parsed) -> bool {
    pipeline.body().get_text("allowStageExecutions") == Some("true")
}

/// The stages of a pipeline whose templates were put in, in order.
pub fn choices(pipeline: &Parsed) -> Vec<Choice> {
    let all = stages(pipeline);
    let names: Vec<&str> = all.iter().filter_map(|stage| id(*stage)).collect();
    let choice = |stage: &Ref<'_>| {
        let own = id(*stage)?;
        let mut needs = Vec::new();
        each_need(*stage, &names, &mut |need| {
            if need.stage != own && !needs.contains(&need.stage) {
                needs.push(need.stage);
            }
        });
        Some(Choice {
            identifier: own.to_owned(),
            name: stage.get_text("name").unwrap_or(own).to_owned(),
            needs,
        })
    };
    all.iter().filter_map(choice).collect()
}

/// The pipeline, whose inputs and templates were put in, without the stages that were not chosen.
///
/// # Errors
/// When the pipeline does not allow it, stages are chosen that it does not have, or chosen stages read others
/// that no value was given for.
pub(crate) fn only(pipeline: &Parsed, chosen: &Chosen) -> Result<Parsed, Vec<Diagnostic>> {
    if !allows_choice(pipeline) {
        let message = "the pipeline does not allow runs of chosen stages: set `allowStageExecutions: true` in it, or run all of it";
        let body = pipeline.body();
        let at = body.get("allowStageExecutions").unwrap_or(body);
        return Err(vec![Diagnostic::at(Code::BadInput, at, message)]);
    }
    let all = stages(pipeline);
    let known: Vec<&str> = all.iter().filter_map(|stage| id(*stage)).collect();
    let mut faults = Diagnostics::default();
    for wanted in &chosen.stages {
        if !known.contains(&wanted.as_str()) {
            faults.push_with(|| {
                let message = format!("the pipeline has no stage `{wanted}` that could be chosen");
                Diagnostic::at(Code::NotFound, pipeline.body(), message)
                    .expected(format!("some of {}", known.join(", ")))
                    .suggest(nearest(wanted.as_str(), known.iter().copied()))
            });
        }
    }
    let runs = |stage: &str| chosen.stages.iter().any(|id| id.as_str() == stage);
    let left_out: Vec<&str> = known.iter().copied().filter(|id| !runs(id)).collect();
    for stage in all.iter().filter(|stage| id(**stage).is_some_and(runs)) {
        each_need(*stage, &left_out, &mut |need| {
            let path: Vec<&str> = need.path.iter().map(String::as_str).collect();
            if chosen.value(&path).is_none() {
                faults.push_with(|| need.fault());
            }
        });
    }
    faults.finish(())?;
    let root = pipeline.tree.root();
    let mut graft = Graft::default();
    let mut pairs = Vec::new();
    for (key, place, body) in root.fields() {
        let part = without(&mut graft, body, &runs);
        pairs.push(graft.pair(root, key, place, part));
    }
    let part = graft.map(root, pairs);
    entity::from_tree(graft.finish(part))
}

/// A pipeline's body with the stages that run.
fn without(graft: &mut Graft, body: Ref<'_>, runs: &dyn Fn(&str) -> bool) -> Part {
    let mut pairs = Vec::new();
    for (key, place, value) in body.fields() {
        let part = match key {
            "stages" if value.is_list() => kept(graft, value, runs),
            _ => graft.copy(value),
        };
        pairs.push(graft.pair(body, key, place, part));
    }
    graft.map(body, pairs)
}

/// The items of a list of stages that run; a parallel block stays with those of its stages that do.
fn kept(graft: &mut Graft, list: Ref<'_>, runs: &dyn Fn(&str) -> bool) -> Part {
    let mut parts = Vec::new();
    for item in list.items() {
        let Some(inner) = item.get("parallel") else {
            if item.get("stage").and_then(id).is_some_and(runs) {
                parts.push(graft.copy(item));
            }
            continue;
        };
        let mut below = Vec::new();
        flatten(inner, &mut below);
        if below.iter().any(|stage| id(*stage).is_some_and(runs)) {
            let list = kept(graft, inner, runs);
            let pair = graft.pair(item, "parallel", item.place(), list);
            parts.push(graft.map(item, vec![pair]));
        }
    }
    graft.list(list, parts)
}

/// The stages of a pipeline, in order, out of their parallel blocks.
fn stages(pipeline: &Parsed) -> Vec<Ref<'_>> {
    let mut found = Vec::new();
    if let Some(list) = pipeline.body().get("stages") {
        flatten(list, &mut found);
    }
    found
}

/// The stages of a list, those of its parallel blocks in their place. A block in a block is no wait of its own: its
/// stages begin with those around it. Nesting is bounded by the depth that the language accepts.
pub(crate) fn flatten<'r>(list: Ref<'r>, into: &mut Vec<Ref<'r>>) {
    for item in list.items() {
        match item.get("parallel") {
            Some(inner) => flatten(inner, into),
            None => into.extend(item.get("stage")),
        }
    }
}

fn id<'r>(stage: Ref<'r>) -> Option<&'r str> {
    stage.get_text("identifier")
}

/// Something of another stage that a stage reads.
struct Need<'r> {
    at: Ref<'r>,
    stage: String,
    /// Keys of the expression; none of `useFromStage`, which no value can stand for.
    path: Vec<String>,
}

impl Need<'_> {
    fn fault(&self) -> Diagnostic {
        let stage = &self.stage;
        let message = match self.path.as_slice() {
            [] => format!(
                "stage `{stage}`, which this one uses, is not among the chosen stages: choose it too"
            ),
            path => format!(
                "stage `{stage}` is not among the chosen stages: choose it too, or give a value for `<+{}>` in `expressionValues`",
                path.join(".")
            ),
        };
        Diagnostic::at(Code::BadInput, self.at, message)
    }
}

/// Visits what an element reads of the stages `of`.
fn each_need<'r>(element: Ref<'r>, of: &[&str], visit: &mut dyn FnMut(Need<'r>)) {
    if let Some(from) = element.at(&["useFromStage", "stage"])
        && let Some(stage) = from.text().and_then(|name| named(name, of))
    {
        visit(Need {
            at: from,
            stage: stage.to_owned(),
            path: Vec::new(),
        });
    }
    for (_, value) in element.entries() {
        each_need(value, of, visit);
    }
    for value in element.items() {
        each_need(value, of, visit);
    }
    let Some(text) = element.text().filter(|text| text.contains("stages.")) else {
        return;
    };
    // A text that does not parse is told when it is planned.
    let Ok(template) = slipway_expr::parse(text) else {
        return;
    };
    for path in template.references() {
        let keys: Vec<&str> = path.segments.iter().map_while(Segment::key).collect();
        let name = match keys.as_slice() {
            ["pipeline", "stages", name, ..] | ["stages", name, ..] => name,
            _ => continue,
        };
        if let Some(stage) = named(name, of) {
            visit(Need {
                at: element,
                stage: stage.to_owned(),
                path: keys.iter().map(|key| (*key).to_owned()).collect(),
            });
        }
    }
}

/// The stage that a name means: its identifier, or that of a turn of its loop (`deploy_0`).
fn named<'n>(name: &str, of: &[&'n str]) -> Option<&'n str> {
    let exact = of.iter().find(|stage| **stage == name);
    let turn = || {
        let (stage, number) = name.rsplit_once('_')?;
        let is_turn = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        of.iter().find(|known| is_turn && **known == stage)
    };
    exact.or_else(turn).copied()
}

#[cfg(test)]
#[path = "chosen_tests.rs"]
mod tests;
