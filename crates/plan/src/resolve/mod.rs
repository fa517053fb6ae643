//! From a pipeline, its inputs and the entities it refers to, to the plan of a run.

mod artifact;
mod barriers;
mod chained;
mod connector;
mod deployment;
mod draft;
mod environment;
mod execution;
mod filter;
mod known;
mod listing;
mod lookup;
mod looping;
mod loops;
mod manifest;
mod notification;
mod overrides;
mod queued;
mod registry;
mod remote;
mod scope;
mod service;
mod several;
mod spread;
mod stage;
mod stage_inputs;
mod traffic;
mod unplanned;
mod variable;

use std::cell::RefCell;
use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;
use slipway_model::id::Scope;
use slipway_model::{Code, Diagnostic, Diagnostics, Parsed, Ref, Tree, duration, entity, inputs};

use crate::reference::Asked;
use crate::{BarrierPlan, Chosen, Entities, FORMAT, Plan, Reference, Wanted, chosen, template};

use known::Known;
use lookup::Referred;
use stage_inputs::Later;

pub use draft::draft;
pub(crate) use known::label;
pub use listing::{ArtifactSource, artifact_sources};
pub(crate) use looping::taken_apart;
pub use notification::{
    ALL_STAGES, notification_rules, reaches_groups, receiver_field, rules_references,
};
pub(crate) use stage_inputs::{group_in_turn, in_turn};
pub use unplanned::WITHOUT_EFFECT;

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
    /// The stages that run; all of them for `None`.
    pub chosen: Option<&'a Chosen>,
    /// What the event that starts the run tells ([`crate::event_fact`]), where one does.
    pub trigger: Option<&'a Value>,
}

/// The plan of a run.
///
/// # Errors
/// Every fault that keeps the pipeline from running: missing inputs, references to nothing, steps that
/// this version does not run, …
pub fn resolve(request: &Request<'_>) -> Result<Plan, Vec<Diagnostic>> {
    let asked = RefCell::default();
    let (pipeline, notes) = whole(request, &asked)?;
    let (pipeline, later) = stage_inputs::set_aside(pipeline);
    let mut resolver = Resolver::new(request, &asked, later);
    resolver.faults.extend(notes);
    let plan = resolver.pipeline(&pipeline);
    let faults = resolver.faults;
    let (plan, warnings) = faults.finish(plan).map_err(once_each)?;
    // Without a fault there is a plan; this keeps the types honest.
    let Some(mut plan) = plan else {
        let message = "the pipeline could not be planned";
        return Err(vec![Diagnostic::at(
            Code::NotSupported,
            pipeline.body(),
            message,
        )]);
    };
    let warnings = once_each(warnings).into_iter();
    plan.warnings = warnings
        .map(|warning| format!("{}: {}", warning.path, warning.message))
        .collect();
    Ok(plan)
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
pub fn wanted(request: &Request<'_>) -> Wanted {
    let asked = RefCell::default();
    if let Ok((pipeline, _)) = whole(request, &asked) {
        let (pipeline, later) = stage_inputs::set_aside(pipeline);
        Resolver::new(request, &asked, later).pipeline(&pipeline);
    }
    asked.into_inner().into_wanted()
}

/// The pipeline with every template put in, as if each had been copied into it instead of linked; runtime
/// inputs stay open.
///
/// # Errors
/// Links to nothing or in a circle, `templateInputs` that do not fit, and everything that the result is not
/// well-formed for.
pub fn expanded(request: &Request<'_>) -> Result<Parsed, Vec<Diagnostic>> {
    let expanded = open(request, &RefCell::default())?;
    Ok(expanded.unwrap_or_else(|| request.pipeline.clone()))
}

/// What [`expanded`] looked up: to be asked again with what was found, until nothing new appears.
pub fn template_references(request: &Request<'_>) -> Vec<Reference> {
    let asked = RefCell::default();
    // Its faults are told when everything was found.
    let _ = open(request, &asked);
    asked.into_inner().into_list()
}

/// The pipeline with its templates put in and its inputs left open; `None` when it has no template.
fn open(request: &Request<'_>, asked: &RefCell<Asked>) -> Result<Option<Parsed>, Vec<Diagnostic>> {
    let source = template::Source {
        unfilled: inputs::Unfilled::Keep,
        ..source(request, asked)
    };
    let expanded = template::expand(&source, request.pipeline, request.scope)?;
    Ok(expanded.map(|(whole, _)| whole))
}

/// The pipeline with its inputs filled in and its templates put in, and what these have to tell.
fn whole(
    request: &Request<'_>,
    asked: &RefCell<Asked>,
) -> Result<(Parsed, Vec<Diagnostic>), Vec<Diagnostic>> {
    // Stages that do not run need no inputs.
    let unfilled = match request.chosen {
        Some(_) => inputs::Unfilled::Keep,
        None => inputs::Unfilled::Fault,
    };
    let (pipeline, notes) = filled(request, asked, unfilled)?;
    let Some(chosen) = request.chosen else {
        return Ok((pipeline, notes));
    };
    let pipeline = chosen::only(&pipeline, chosen)?;
    Ok((inputs::merge_entity(&pipeline, &[])?, notes))
}

/// The pipeline with the inputs that are given and its templates put in, and what these have to tell.
fn filled(
    request: &Request<'_>,
    asked: &RefCell<Asked>,
    unfilled: inputs::Unfilled,
) -> Result<(Parsed, Vec<Diagnostic>), Vec<Diagnostic>> {
    let pipeline = inputs::merge_with(request.pipeline, request.inputs, unfilled)?;
    let source = template::Source {
        unfilled,
        ..source(request, asked)
    };
    let expanded = template::expand(&source, &pipeline, request.scope)?;
    Ok(expanded.unwrap_or_else(|| (pipeline, Vec::new())))
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
    /// Barriers of the pipeline.
    barriers: Vec<BarrierPlan>,
    /// Where their steps are written.
    waiting: barriers::Written,
    /// Steps and stages so far, those of loops counted as often as they run.
    steps: usize,
    stages: usize,
    /// What stages ask for when they begin, beside variables.
    later: Later,
    /// Whether the pipeline is only read, and its inputs are open ([`draft()`]).
    is_draft: bool,
    /// Whether something of a draft was passed over.
    left_open: bool,
}

impl<'a> Resolver<'a> {
    fn new(request: &'a Request<'a>, asked: &'a RefCell<Asked>, later: Later) -> Self {
        Self {
            request,
            faults: Diagnostics::default(),
            asked,
            bytes: 0,
            repeated: 0,
            barriers: Vec::new(),
            waiting: barriers::Written::new(),
            steps: 0,
            stages: 0,
            later,
            is_draft: false,
            left_open: false,
        }
    }

    /// Notes a fault at a value.
    fn fault(&mut self, code: Code, value: Ref<'_>, message: impl Into<String>) {
        if self.is_draft && draft::is_open(value) {
            self.left_open = true;
            return;
        }
        self.faults
            .push_with(|| Diagnostic::at(code, value, message));
    }

    /// Whether anything is wrong so far, or may be.
    fn has_faults(&self) -> bool {
        self.left_open || self.faults.has_errors()
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
        self.refuse_spelt_out(pipeline);
        let variables = self.variables(body.get("variables"), "pipeline.variables");
        let mut known = Known::new(self.request.scope, pipeline, variables);
        known.chosen = self.request.chosen;
        known.trigger = self.request.trigger;
        self.scope_variables(body, &mut known);
        let timeout = self.timeout(body, &known).unwrap_or(PIPELINE_TIMEOUT);
        known.pipeline_timeout = timeout;
        self.look_over(body, "a pipeline", unplanned::PIPELINE);
        self.barriers = self.barriers_of(body);
        let notifications = self.notifications(body);
        let selectors = self.selectors(body, &known);
        known.tell_selectors(&selectors);
        let groups = self.groups(body, &mut known, &selectors);
        self.check_meetings(&groups, body);
        Some(Plan {
            format: FORMAT,
            scope: self.request.scope.clone(),
            pipeline: pipeline.head.identifier.clone(),
            name: pipeline.head.name.clone(),
            tags: pipeline.head.tags.iter().cloned().collect(),
            variables: known.pipeline_variables,
            scope_variables: known.scope_variables,
            files: known.files,
            trigger: self.request.trigger.cloned(),
            notifications,
            barriers: std::mem::take(&mut self.barriers),
            warnings: Vec::new(),
            timeout,
            groups,
        })
    }

    /// Inputs that nothing was given for are left only where they are asked for while the run goes on: steps ask, and
    /// stages and step groups for their variables and for what they give to what they deploy. What decides the plan must
    /// be known before.
    fn refuse_execution_inputs(&mut self, body: Ref<'_>) {
        for value in body.scalars() {
            let Some(input) = inputs::RuntimeInput::of(value) else {
                continue;
            };
            // Others are given before the run.
            if self.is_draft && !input.execution {
                continue;
            }
            if let Some(advice) = stage_inputs::too_early(&value.path()) {
                let message = format!("`executionInput()` cannot be asked for here{advice}");
                self.faults
                    .push_with(|| Diagnostic::at(Code::NotSupported, value, message));
            }
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

    /// `delegateSelectors` of an element. Those that name what the run brings forth stay expressions until a delegate is
    /// needed.
    fn selectors(&mut self, element: Ref<'_>, known: &Known<'_>) -> Vec<String> {
        let Some(list) = element.get("delegateSelectors") else {
            return Vec::new();
        };
        let single = list.text().map(|_| list);
        let all = single.into_iter().chain(list.items());
        all.filter_map(|value| {
            let text = value.text().filter(|text| text.contains("<+"));
            let later = text.filter(|text| {
                let found = known.evaluate(text);
                found.is_err_and(|reason| looping::is_of_run(text, &reason))
            });
            match later {
                Some(text) => Some(text.to_owned()),
                None => self.text(value, known),
            }
        })
        .filter(|text| !text.is_empty())
        .collect()
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
                let given = stage_inputs::reads_given(text) || stage_inputs::reads_given(&reason);
                let message = match given {
                    true => "this decides the plan of the run and must be known before it begins; `executionInput()` asks when the stage begins, which is too late"
                        .to_owned(),
                    false => format!("this must be known before the run begins: {reason}"),
                };
                self.fault(Code::BadExpression, value, message);
                None
            }
        }
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

/// `description` of an element or entity, where it has one.
fn described(value: Ref<'_>) -> Option<String> {
    let text = value.get_text("description")?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn tags(value: Ref<'_>) -> indexmap::IndexMap<String, String> {
    entity::tags(value).into_iter().collect()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_barriers;
#[cfg(test)]
mod tests_broken;
#[cfg(test)]
mod tests_chained;
#[cfg(test)]
mod tests_draft;
#[cfg(test)]
mod tests_later;
#[cfg(test)]
mod tests_loops;
#[cfg(test)]
mod tests_remote;
#[cfg(test)]
mod tests_targets;
#[cfg(test)]
mod tests_unplanned;
#[cfg(test)]
mod tests_unroll;
#[cfg(test)]
mod tests_variables;
