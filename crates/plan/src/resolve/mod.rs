//! From a pipeline, its inputs and the entities it refers to, to the plan of a run.

mod artifact;
mod deployment;
mod environment;
mod execution;
mod filter;
mod known;
mod looping;
mod loops;
mod manifest;
mod overrides;
mod scope;
mod service;
mod spread;
mod stage;
mod variable;

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use slipway_model::id::{EntityId, Scope};
use slipway_model::{
    Code, Diagnostic, Diagnostics, Kind, Parsed, Ref, Tree, duration, entity, inputs,
};

use crate::reference::{Asked, FILE, place_of};
use crate::{Entities, FORMAT, Found, Plan, Reference, template};

use known::Known;

/// Time limit of a pipeline that names none: Harness's for paid accounts (docs: platform/pipelines/
/// pipeline-settings, "pipeline timeout").
const PIPELINE_TIMEOUT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What to plan.
pub struct Request<'a> {
    /// The pipeline.
    pub pipeline: &'a Parsed,
    /// Runtime inputs, each a document with the root `pipeline`; the later one wins.
    pub inputs: &'a [&'a Tree],
    /// Where the pipeline lives.
    pub scope: &'a Scope,
    /// What it refers to.
    pub entities: &'a dyn Entities,
    /// Whether this version can run a step type.
    pub runnable: &'a dyn Fn(&str) -> bool,
    /// Whether this version can fetch from a type of manifest store (`Inline`, `Harness`, `Github`, …) that
    /// [`Entities`] has no content for.
    pub fetchable: &'a dyn Fn(&str) -> bool,
}

/// The plan of a run.
///
/// # Errors
/// Every fault that keeps the pipeline from running: missing inputs, references to nothing, steps that
/// this version does not run, …
pub fn resolve(request: &Request<'_>) -> Result<Plan, Vec<Diagnostic>> {
    let asked = RefCell::default();
    let pipeline = whole(request, &asked)?;
    let mut resolver = Resolver::new(request, &asked);
    let plan = resolver.pipeline(&pipeline);
    let faults = resolver.faults;
    let (plan, _) = faults.finish(plan).map_err(once_each)?;
    // Without a fault there is a plan; this keeps the types honest.
    plan.ok_or_else(|| {
        let message = "the pipeline could not be planned";
        vec![Diagnostic::at(Code::NotSupported, pipeline.body(), message)]
    })
}

/// A fault of an element that loops is found in each turn.
fn once_each(mut faults: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    faults.retain(|fault| {
        let place = (
            fault.file.clone(),
            fault.line,
            fault.column,
            fault.path.clone(),
        );
        seen.insert((place, fault.message.clone()))
    });
    faults
}

/// What planning looked up: to be asked again with what was found, until nothing new appears. Empty when the
/// inputs do not fit the pipeline.
pub fn references(request: &Request<'_>) -> Vec<Reference> {
    let asked = RefCell::default();
    if let Ok(pipeline) = whole(request, &asked) {
        Resolver::new(request, &asked).pipeline(&pipeline);
    }
    asked.into_inner().into_list()
}

/// The pipeline with every template put in, as if each had been copied into it instead of linked; runtime
/// inputs stay open.
///
/// # Errors
/// Links to nothing or in a circle, `templateInputs` that do not fit, and everything that the result is not
/// well-formed for.
pub fn expanded(request: &Request<'_>) -> Result<Parsed, Vec<Diagnostic>> {
    let asked = RefCell::default();
    let source = template::Source {
        unfilled: inputs::Unfilled::Keep,
        ..source(request, &asked)
    };
    let expanded = template::expand(&source, request.pipeline, request.scope)?;
    Ok(expanded.unwrap_or_else(|| request.pipeline.clone()))
}

/// The pipeline with its inputs filled in and its templates put in.
fn whole(request: &Request<'_>, asked: &RefCell<Asked>) -> Result<Parsed, Vec<Diagnostic>> {
    let pipeline = inputs::merge(request.pipeline, request.inputs)?;
    let source = source(request, asked);
    let expanded = template::expand(&source, &pipeline, request.scope)?;
    Ok(expanded.unwrap_or(pipeline))
}

fn source<'a>(request: &'a Request<'_>, asked: &'a RefCell<Asked>) -> template::Source<'a> {
    template::Source {
        entities: request.entities,
        asked,
        unfilled: inputs::Unfilled::Fault,
    }
}

struct Resolver<'a> {
    request: &'a Request<'a>,
    faults: Diagnostics,
    asked: &'a RefCell<Asked>,
    /// Of manifests so far.
    bytes: usize,
    /// Bytes of the texts of steps in loops so far.
    repeated: usize,
    /// Steps and stages so far, those of loops counted as often as they run.
    steps: usize,
    stages: usize,
}

impl<'a> Resolver<'a> {
    fn new(request: &'a Request<'a>, asked: &'a RefCell<Asked>) -> Self {
        Self {
            request,
            faults: Diagnostics::default(),
            asked,
            bytes: 0,
            repeated: 0,
            steps: 0,
            stages: 0,
        }
    }

    /// Notes a fault at a value.
    fn fault(&mut self, code: Code, value: Ref<'_>, message: impl Into<String>) {
        self.faults
            .push_with(|| Diagnostic::at(code, value, message));
    }

    fn unsupported(&mut self, value: Ref<'_>, what: &str, advice: &str) {
        let message = format!("{what} is not supported by this version yet{advice}");
        self.fault(Code::NotSupported, value, message);
    }

    fn pipeline<'p>(&mut self, pipeline: &'p Parsed) -> Option<Plan>
    where
        'a: 'p,
    {
        let body = pipeline.body();
        self.refuse_execution_inputs(body);
        let variables = self.variables(body.get("variables"), "pipeline.variables");
        let mut known = Known::new(self.request.scope, pipeline, variables);
        self.scope_variables(body, &mut known);
        let timeout = self.timeout(body, &known).unwrap_or(PIPELINE_TIMEOUT);
        known.pipeline_timeout = timeout;
        let selectors = texts(body.get("delegateSelectors"));
        let groups = self.groups(body, &mut known, &selectors);
        Some(Plan {
            format: FORMAT,
            scope: self.request.scope.clone(),
            pipeline: pipeline.head.identifier.clone(),
            name: pipeline.head.name.clone(),
            tags: pipeline.head.tags.iter().cloned().collect(),
            variables: known.pipeline_variables,
            scope_variables: known.scope_variables,
            files: known.files,
            timeout,
            groups,
        })
    }

    /// Inputs that nothing was given for are left only where they are asked for while the run goes on.
    fn refuse_execution_inputs(&mut self, body: Ref<'_>) {
        for value in body
            .scalars()
            .filter(|value| inputs::RuntimeInput::of(*value).is_some())
        {
            self.unsupported(
                value,
                "`executionInput()`",
                "; give the input when the run starts",
            );
        }
    }

    /// `timeout` of an element, as a duration.
    fn timeout(&mut self, element: Ref<'_>, known: &Known<'_>) -> Option<Duration> {
        let value = element.get("timeout")?;
        let text = self.text(value, known)?;
        if text.trim().is_empty() {
            return None;
        }
        match duration::parse(&text) {
            Ok(duration) => Some(duration),
            Err(error) => {
                self.fault(Code::BadValue, value, error.to_string());
                None
            }
        }
    }

    /// The text of a value whose expressions can be told before the run. A fault where they cannot.
    fn text(&mut self, value: Ref<'_>, known: &Known<'_>) -> Option<String> {
        let Some(text) = value.text() else {
            let message = format!("{} stands where a text is expected", value.form());
            self.fault(Code::BadValue, value, message);
            return None;
        };
        if !text.contains("<+") {
            return Some(text.to_owned());
        }
        match known.evaluate(text) {
            Ok(text) => Some(text),
            Err(reason) => {
                let message = format!("this must be known before the run begins: {reason}");
                self.fault(Code::BadExpression, value, message);
                None
            }
        }
    }

    fn find(&self, reference: &Reference) -> Option<Found> {
        self.asked.borrow_mut().push(reference);
        self.request.entities.get(reference)
    }

    /// The entity that a value refers to from `scope`, with the scope it lives in and the reference as it is
    /// after expressions. A fault where there is none.
    fn entity(
        &mut self,
        kind: Kind,
        value: Ref<'_>,
        scope: &Scope,
        parent: Option<&EntityId>,
        known: &Known<'_>,
    ) -> Option<Referred> {
        let written = self.text(value, known)?;
        self.named(kind, written, value, scope, parent)
    }

    /// As [`Resolver::entity`], with the reference as it is after expressions.
    fn named(
        &mut self,
        kind: Kind,
        written: String,
        value: Ref<'_>,
        scope: &Scope,
        parent: Option<&EntityId>,
    ) -> Option<Referred> {
        let written = written.trim().to_owned();
        if written.is_empty() {
            let message = format!("no {} is named here", name_of(kind));
            self.fault(Code::MissingField, value, message);
            return None;
        }
        let (scope, id) = match parent {
            // An infrastructure lives where its environment does.
            Some(_) => (scope.clone(), EntityId::new(written.as_str())),
            None => scope.resolve(&written),
        };
        let reference = Reference {
            scope,
            kind: kind.key(),
            parent: parent.cloned(),
            id,
        };
        let Some(Found::Entity(entity)) = self.find(&reference) else {
            let message = format!(
                "the {} `{}` does not exist in {}",
                name_of(kind),
                reference.id,
                below(&reference)
            );
            self.fault(Code::NotFound, value, message);
            return None;
        };
        Some(Referred {
            entity,
            scope: reference.scope,
            written,
        })
    }

    /// A file of the file store as YAML names it: `/path`, `org:/path`, `account:/path`.
    fn stored_file(&self, scope: &Scope, written: &str) -> Option<Arc<str>> {
        let (scope, bare) = match written.split_once(':') {
            Some((prefix @ ("account" | "org"), bare)) => {
                (scope.resolve(&format!("{prefix}.")).0, bare)
            }
            _ => (scope.clone(), written),
        };
        self.file(&scope, bare.to_owned())
    }

    fn file(&self, scope: &Scope, id: String) -> Option<Arc<str>> {
        let reference = Reference {
            scope: scope.clone(),
            kind: FILE,
            parent: None,
            id: EntityId::new(id),
        };
        match self.find(&reference)? {
            Found::File(content) => Some(content),
            Found::Entity(_) | Found::Many(_) => None,
        }
    }

    /// An entity with the inputs that its reference gives filled in, and its templates put in; the faults
    /// are noted.
    fn filled(
        &mut self,
        found: &Referred,
        given: Option<Ref<'_>>,
        at: Ref<'_>,
        known: &mut Known<'_>,
    ) -> Option<Parsed> {
        let entity = &found.entity;
        let given: Vec<_> = given.into_iter().filter(|given| given.is_map()).collect();
        let whole = inputs::merge_entity(entity, &given).and_then(|filled| {
            let source = source(self.request, self.asked);
            let expanded = template::expand(&source, &filled, &found.scope)?;
            Ok(expanded.unwrap_or(filled))
        });
        match whole {
            Ok(filled) => {
                self.refuse_execution_inputs(filled.body());
                self.scope_variables(filled.body(), known);
                Some(filled)
            }
            Err(faults) => {
                let message = format!(
                    "the {} `{}` lacks inputs, or has wrong ones; see the next faults",
                    name_of(entity.head.kind),
                    entity.head.identifier
                );
                self.fault(Code::MissingInput, at, message);
                self.faults.extend(faults);
                None
            }
        }
    }
}

/// An entity that was referred to.
struct Referred {
    entity: Arc<Parsed>,
    scope: Scope,
    written: String,
}

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Infrastructure => "infrastructure definition",
        other => other.key(),
    }
}

fn below(reference: &Reference) -> String {
    let place = place_of(&reference.scope);
    match &reference.parent {
        Some(parent) => format!("environment `{parent}` of {place}"),
        None => place,
    }
}

/// A list of texts, or one text.
fn texts(value: Option<Ref<'_>>) -> Vec<String> {
    let Some(value) = value else {
        return Vec::new();
    };
    let own = value.text().filter(|text| !text.is_empty());
    own.into_iter()
        .chain(value.items().filter_map(Ref::text))
        .map(str::to_owned)
        .collect()
}

fn is_empty(value: Ref<'_>) -> bool {
    match value.scalar() {
        Some(text) => text.is_empty(),
        None => value.items().len() == 0 && value.entries().len() == 0,
    }
}

fn tags(value: Ref<'_>) -> indexmap::IndexMap<String, String> {
    entity::tags(value).into_iter().collect()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_loops;
#[cfg(test)]
mod tests_targets;
