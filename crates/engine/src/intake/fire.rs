//! Starts the run of a trigger that fires: inputs from input sets and from its own YAML, in which `<+trigger.…>` is filled
//! in, and an id by which the run is found again.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_expr::{Context, Limits, Reason, Segment};
use slipway_model::id::{EntityId, RunId};
use slipway_model::status::Status;
use slipway_model::{Kind, Tree, emit, entity, yaml};
use slipway_plan::{Chosen, event_fact};
use slipway_store::record::{EventRecord, NewestRecord, RunRecord, TriggerRecord};
use slipway_store::{StillNewest, StoreError, TriggerPlace};
use slipway_trigger::{Outcome, Refusal, Texts, Trigger};

use super::handle::Starting;
use super::{first_of, run_of};
use crate::abort::abort_run;
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::given::{InGit, given};
use crate::remote;
use crate::start::{Fired, StartRun, prepare, start_run};
use crate::unstarted::start_execution;

/// How often the newest event of a ref is looked at again when somebody else changed it.
const ATTEMPTS: usize = 5;

/// What an event tells of the state that it is about.
#[derive(Default)]
pub(super) struct State {
    /// As [`Event::happened_ms`](slipway_trigger::Event::happened_ms).
    pub(super) happened_ms: Option<i64>,
    /// As [`Event::committed_ms`](slipway_trigger::Event::committed_ms).
    pub(super) committed_ms: Option<i64>,
    /// What the ref points at.
    pub(super) commit: Option<String>,
    /// What it pointed at before.
    pub(super) base: Option<String>,
}

/// What a trigger that fires gives to its run.
pub(super) struct Shot {
    /// `triggerType` of the run.
    pub(super) trigger_type: &'static str,
    /// Who did what the event tells, as its sender says, or the trigger's name.
    pub(super) by: String,
    /// What `<+trigger.…>` stands for.
    pub(super) facts: Value,
    /// What lists of runs show of the event.
    pub(super) about: BTreeMap<String, String>,
    /// The line of states that it is one of, where there is one, and what is known of its place in it.
    pub(super) newest: Option<(String, State)>,
    /// Whether the run of the state before is aborted.
    pub(super) auto_abort: bool,
    /// What its facts lack that the pipeline might ask for, and why.
    pub(super) missing: Option<String>,
}

/// A trigger that fires.
pub(super) struct Fire<'a> {
    pub(super) place: &'a TriggerPlace,
    pub(super) trigger: &'a Trigger,
    pub(super) event: &'a EventRecord,
    pub(super) shot: Shot,
}

/// What came of it.
pub(super) struct FireResult {
    pub(super) outcome: Outcome,
    /// Whether a run was wanted and could not be started.
    pub(super) failed: bool,
    pub(super) message: String,
    pub(super) run: Option<RunId>,
    pub(super) inputs: Option<String>,
}

impl FireResult {
    fn not(outcome: Outcome, message: impl Into<String>) -> Self {
        Self {
            outcome,
            failed: true,
            message: message.into(),
            run: None,
            inputs: None,
        }
    }

    fn started(run: &RunRecord, inputs: Option<String>) -> Self {
        Self {
            outcome: Outcome::TargetExecutionRequested,
            failed: false,
            message: format!("started run {}", run.sequence),
            run: Some(run.id.clone()),
            inputs,
        }
    }
}

/// Starts the run, once.
///
/// # Errors
/// When the store or Step Functions cannot be reached.
pub(super) async fn fire(on: Starting<'_>, fire: Fire<'_>) -> Result<FireResult, RunError> {
    let run = run_of(fire.event, fire.place);
    let mut attempt = 0;
    loop {
        attempt += 1;
        let replaced = match take_turn(on, &fire, &run).await? {
            Ok(replaced) => replaced,
            Err(newer) => return overtaken(on, &run, &newer).await,
        };
        if let Some(old) = &replaced {
            begin_before(on, old).await?;
        }
        match start_once(on, &fire, run.clone()).await {
            Ok(result) => {
                if let (Some(_), Some(old)) = (&result.run, replaced)
                    && fire.shot.auto_abort
                {
                    abort_replaced(on, &old, &fire).await?;
                }
                return Ok(result);
            }
            // Something newer took its turn before the run was recorded.
            Err(why) if attempt < ATTEMPTS && is_conflict(&why) => {}
            Err(why) => return Err(why),
        }
    }
}

/// Starts the run of the state before, where it was recorded and whoever did that died: by the next sweep it would begin
/// behind the run of this one.
async fn begin_before(on: Starting<'_>, old: &RunId) -> Result<(), RunError> {
    let found = on.runs.store.find_run(old).await;
    let found = found.doing(|| format!("read run {old}"))?;
    if found.is_some_and(|run| run.status == Status::NotStarted)
        && let Err(why) = start_execution(on.runs, old).await
    {
        // Step Functions is away for the next, too: both are swept, in their order.
        tracing::warn!(run.id = %old, error = %why.full_text(), "accepted run not started yet");
    }
    Ok(())
}

/// What is noted of an event that came behind a newer one.
async fn overtaken(
    on: Starting<'_>,
    run: &RunId,
    newer: &NewestRecord,
) -> Result<FireResult, RunError> {
    // Its own run may be older than that: whoever started it died before it was noted.
    if let Some(started) = started_before(on, run).await? {
        return Ok(started);
    }
    let found = on.runs.store.find_run(&newer.run).await;
    let started = match found.doing(|| format!("read run {}", newer.run))? {
        Some(run) => format!("started run {}", run.id),
        None => format!(
            "started nothing (the history says why, at event {})",
            newer.event
        ),
    };
    let message = format!(
        "a newer event of the same ref came first and {started}: what is older does not deploy over it"
    );
    let result = FireResult::not(Outcome::TargetDidNotExecute, message);
    Ok(FireResult {
        failed: false,
        ..result
    })
}

async fn take_turn(
    on: Starting<'_>,
    fire: &Fire<'_>,
    run: &RunId,
) -> Result<Result<Option<RunId>, NewestRecord>, RunError> {
    let Some((line, state)) = &fire.shot.newest else {
        return Ok(Ok(None));
    };
    let (first, received_ms) = first_of(fire.event);
    let newest = NewestRecord {
        event: first.to_owned(),
        happened_ms: state.happened_ms,
        committed_ms: state.committed_ms,
        overtaken_by: fire.event.overtaken_by.clone(),
        in_ref: fire.event.in_ref.clone(),
        received_ms,
        commit: state.commit.clone(),
        base: state.base.clone(),
        run: run.clone(),
        replaces: None,
    };
    let doing = || format!("note that {} is the newest event of {line}", fire.event.id);
    for _ in 0..ATTEMPTS {
        let taken = on.runs.store.take_newest(fire.place, line, newest.clone());
        match taken.await {
            Err(StoreError::Conflict { .. }) => {}
            taken => return taken.doing(doing),
        }
    }
    let taken = on.runs.store.take_newest(fire.place, line, newest).await;
    taken.doing(doing)
}

/// The run, where it was recorded before.
async fn started_before(on: Starting<'_>, run: &RunId) -> Result<Option<FireResult>, RunError> {
    let found = on.runs.store.find_run(run).await;
    let Some(found) = found.doing(|| format!("read run {run}"))? else {
        return Ok(None);
    };
    // Whoever recorded it may have died before it was started.
    start_execution(on.runs, &found.id).await?;
    Ok(Some(FireResult::started(&found, None)))
}

async fn start_once(on: Starting<'_>, fire: &Fire<'_>, run: RunId) -> Result<FireResult, RunError> {
    if let Some(started) = started_before(on, &run).await? {
        return Ok(started);
    }
    let request = match request(on, fire, run).await {
        Ok(request) => request,
        Err(why) if is_passing(&why) => return Err(why),
        Err(why) => {
            let outcome = match why.name() {
                ErrorName::NotFound => Outcome::TargetDidNotExecute,
                _ => Outcome::InvalidRuntimeInputYaml,
            };
            return Ok(FireResult::not(outcome, why.full_text()));
        }
    };
    let inputs = request.inputs_yaml.clone();
    match Box::pin(start_run(on.runs, request, on.steps, on.sources)).await {
        Ok(run) => Ok(FireResult::started(&run, inputs)),
        Err(why) if is_passing(&why) => Err(why),
        Err(why) => {
            let result = FireResult::not(Outcome::TargetDidNotExecute, why.full_text());
            Ok(FireResult { inputs, ..result })
        }
    }
}

/// Whether the run could be started now, and its runtime inputs.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn would_start(
    on: Starting<'_>,
    fire: &Fire<'_>,
) -> Result<(Option<Refusal>, Option<String>), RunError> {
    let request = match request(on, fire, run_of(fire.event, fire.place)).await {
        Ok(request) => request,
        Err(why) if is_passing(&why) => return Err(why),
        Err(why) => {
            let outcome = Outcome::InvalidRuntimeInputYaml;
            return Ok((Some(Refusal::new(outcome, why.full_text())), None));
        }
    };
    let inputs = request.inputs_yaml.clone();
    match Box::pin(prepare(on.runs, &request, on.steps, on.sources)).await {
        Ok(_) => Ok((None, inputs)),
        Err(why) if is_passing(&why) => Err(why),
        Err(why) => {
            let refusal = Refusal::new(Outcome::TargetDidNotExecute, why.full_text());
            Ok((Some(refusal), inputs))
        }
    }
}

/// Whether somebody else changed what it relied on.
fn is_conflict(why: &RunError) -> bool {
    matches!(why, RunError::Store { source, .. } if matches!(source, StoreError::Conflict { .. }))
}

/// Whether it may work later, as it is.
fn is_passing(why: &RunError) -> bool {
    match why {
        RunError::Store { source, .. } => !matches!(
            source,
            StoreError::NotFound { .. }
                | StoreError::TooLarge { .. }
                | StoreError::Invalid { .. }
                | StoreError::Unreadable { .. }
        ),
        RunError::Workflow { .. } => true,
        RunError::Refused { .. } | RunError::Faulty { .. } => false,
    }
}

async fn request(on: Starting<'_>, fire: &Fire<'_>, run: RunId) -> Result<StartRun, RunError> {
    let Fire {
        place,
        trigger,
        event,
        shot,
    } = fire;
    let facts = Facts(&shot.facts);
    let stages = stages(&trigger.stages, &facts)?;
    let branch = branch(on, fire, &facts).await?;
    Ok(StartRun {
        scope: place.scope.clone(),
        pipeline: place.pipeline.clone(),
        inputs_yaml: inputs(on, fire, &facts, branch.as_deref()).await?,
        branch,
        principal: TriggerRecord::principal(&trigger.identifier),
        trigger: shot.trigger_type.to_owned(),
        chosen: (!stages.is_empty()).then(|| Chosen::new(stages, Vec::new())),
        origin: None,
        notes: String::new(),
        parent: None,
        fired: Some(Fired {
            run: Some(run),
            by: Some(TriggerRecord {
                trigger: trigger.identifier.clone(),
                name: trigger.name.clone(),
                event: event.id.clone(),
                source: source_name(trigger).to_owned(),
                about: shot.about.clone(),
                by: shot.by.clone(),
            }),
            facts: shot.facts.clone(),
            turn: shot.newest.as_ref().map(|(line, _)| StillNewest {
                place: (*place).clone(),
                line: line.clone(),
                event: first_of(event).0.to_owned(),
            }),
        }),
    })
}

fn source_name(trigger: &Trigger) -> &'static str {
    use slipway_trigger::Source;
    match trigger.source {
        Source::Webhook(_) => "Webhook",
        Source::Artifact(_) => "Artifact",
        Source::Manifest(_) => "Manifest",
        Source::Scheduled { .. } => "Scheduled",
        Source::MultiRegion { .. } => "MultiRegionArtifact",
        Source::SystemEvent(_) => "SystemEvent",
    }
}

/// The branch that the pipeline is read from: `pipelineBranchName`, where the pipeline is kept in Git. One that is kept
/// here has no branches, whatever its trigger says.
async fn branch(
    on: Starting<'_>,
    fire: &Fire<'_>,
    facts: &Facts<'_>,
) -> Result<Option<String>, RunError> {
    let Some(written) = fire.trigger.branch.as_deref() else {
        return Ok(None);
    };
    let (scope, id) = (&fire.place.scope, &fire.place.pipeline);
    let kind = Kind::Pipeline.key();
    let found = on.runs.store.find_entity(scope, kind, None, id).await;
    let found = found.doing(|| format!("read pipeline {id}"))?;
    if found.is_none_or(|record| record.git.is_none()) {
        return Ok(None);
    }
    let named = Texts::Text(written.to_owned());
    let names = ids(&named, facts, "pipelineBranchName")?;
    match names.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.as_str().to_owned())),
        _ => {
            let message = format!(
                "`pipelineBranchName` of the trigger, `{written}`: it is no name of a branch"
            );
            Err(RunError::refused(ErrorName::InvalidRequest, message))
        }
    }
}

/// The runtime inputs: input sets in their order, the trigger's own over them.
async fn inputs(
    on: Starting<'_>,
    fire: &Fire<'_>,
    facts: &Facts<'_>,
    branch: Option<&str>,
) -> Result<Option<String>, RunError> {
    let sets = ids(&fire.trigger.input_sets, facts, "inputSetRefs")?;
    let own = fire.trigger.inputs_yaml.as_deref();
    let own = own.map(|text| filled(text, facts)).transpose()?;
    if sets.is_empty() {
        return Ok(own);
    }
    let (scope, id) = (&fire.place.scope, &fire.place.pipeline);
    let found = remote::pipeline(on.runs, on.sources, (scope, id), branch).await?;
    let pipeline = entity::parse(&remote::name(&found), &found.yaml).map_err(RunError::faulty)?;
    let git = InGit {
        sources: on.sources,
        branch,
    };
    let own = own.as_deref();
    let given = given(on.runs, git, scope, &pipeline, &sets, own, on.steps).await?;
    let Some(tree) = given.inputs else {
        return Ok(None);
    };
    filled(&emit::to_yaml(&tree), facts).map(Some)
}

/// A YAML text with the expressions in it filled in that the event answers. What the event brings is data: a value that
/// would be read as an expression leaves its expression as it is, for the run to evaluate.
fn filled(text: &str, facts: &Facts<'_>) -> Result<String, RunError> {
    let tree = yaml::parse("inputYaml", text).map_err(|fault| RunError::faulty(vec![*fault]))?;
    let mut changed: Tree = tree.clone();
    for value in tree.root().scalars() {
        let Some(written) = value.text().filter(|written| written.contains("<+")) else {
            continue;
        };
        let Ok(template) = slipway_expr::parse(written) else {
            continue;
        };
        let of_event = |path: &slipway_expr::Path| {
            let path = path.to_string();
            path.starts_with("trigger.") || path.starts_with("eventPayload.")
        };
        let references = template.references();
        if references.is_empty() || !references.iter().all(of_event) {
            continue;
        }
        let known = template
            .evaluate(facts, &Limits::default())
            .map_err(|why| {
                let missing = match why.reason {
                    Reason::Undefined { .. } => ": the event does not have it",
                    _ => "",
                };
                let message = format!(
                    "`{written}` in the inputs of the trigger: {}{missing}",
                    why.full_text()
                );
                RunError::refused(ErrorName::InvalidRequest, message)
            })?;
        let shown = match known {
            slipway_expr::Value::String(text) => text,
            other => other.to_shown_json().to_string(),
        };
        if !shown.contains("<+") {
            changed.set_text(value, &shown);
        }
    }
    Ok(emit::to_yaml(&changed))
}

/// The stages that run; none for all of them. An expression whose value names none does not mean all.
fn stages(texts: &Texts, facts: &Facts<'_>) -> Result<Vec<EntityId>, RunError> {
    let field = "stagesToExecute";
    let stages = ids(texts, facts, field)?;
    let written = match texts {
        Texts::List(list) => list.join(", "),
        Texts::Text(text) => text.clone(),
    };
    if stages.is_empty() && !written.trim().is_empty() {
        let message = format!(
            "`{field}` of the trigger, `{written}`, names no stage for this event: leave it out to run all stages"
        );
        return Err(RunError::refused(ErrorName::InvalidRequest, message));
    }
    Ok(stages)
}

/// Identifiers of a field: its list, or what its expression stands for.
fn ids(texts: &Texts, facts: &Facts<'_>, field: &str) -> Result<Vec<EntityId>, RunError> {
    let mut ids = Vec::new();
    let written = match texts {
        Texts::List(list) => list.as_slice(),
        Texts::Text(text) => std::slice::from_ref(text),
    };
    for text in written.iter().filter(|text| !text.trim().is_empty()) {
        let refused = |why: String| {
            let message = format!("`{field}` of the trigger, `{text}`: {why}");
            RunError::refused(ErrorName::InvalidRequest, message)
        };
        let template = slipway_expr::parse(text).map_err(|why| refused(why.to_string()))?;
        let value = template
            .evaluate(facts, &Limits::default())
            .map_err(|why| refused(why.full_text()))?;
        match value.to_shown_json() {
            Value::String(one) => ids.extend(one.split(',').map(|id| EntityId::new(id.trim()))),
            Value::Array(all) => {
                let named = all.iter().filter_map(Value::as_str);
                ids.extend(named.map(|id| EntityId::new(id.trim())));
            }
            other => return Err(refused(format!("{other} is no list of identifiers"))),
        }
    }
    ids.retain(|id| !id.as_str().is_empty());
    Ok(ids)
}

/// What an event tells, for expressions.
struct Facts<'a>(&'a Value);

impl Context for Facts<'_> {
    fn lookup(&self, path: &[Segment]) -> Option<slipway_expr::Value> {
        let keys: Vec<&str> = path.iter().map(Segment::key).collect::<Option<_>>()?;
        event_fact(self.0, &keys).map(slipway_expr::Value::from_json)
    }
}

/// Asks the run of the state before to stop, where it goes on.
async fn abort_replaced(on: Starting<'_>, old: &RunId, fire: &Fire<'_>) -> Result<(), RunError> {
    let who = TriggerRecord::principal(&fire.trigger.identifier);
    match abort_run(on.runs, old, &who).await {
        Ok(()) => {
            tracing::info!(run.id = %old, trigger.id = %fire.trigger.identifier, "aborted for a newer event");
            Ok(())
        }
        // It has ended, or was never started.
        Err(why) if matches!(why.name(), ErrorName::Conflict | ErrorName::NotFound) => Ok(()),
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use slipway_trigger::Texts;

    use super::{Facts, filled, stages};

    #[test]
    fn stages_that_an_event_names_none_of_are_not_all_stages() {
        let facts = json!({"payload": {"some": "build, deploy", "none": "", "list": []}});
        let chosen = |text: &str| {
            stages(&Texts::Text(text.to_owned()), &Facts(&facts))
                .map(|ids| ids.iter().map(ToString::to_string).collect::<Vec<_>>())
                .map_err(|why| why.full_text())
        };
        assert_eq!(
            chosen("<+trigger.payload.some>"),
            Ok(vec!["build".to_owned(), "deploy".to_owned()])
        );
        assert_eq!(chosen(""), Ok(Vec::new()));
        for none in [
            "<+trigger.payload.none>",
            "<+<+trigger.payload.none>.split(\",\")>",
            "<+trigger.payload.list>",
        ] {
            let why = chosen(none).unwrap_err();
            assert!(why.contains("names no stage"), "{why}");
        }
        let blank = Texts::List(vec!["<+trigger.payload.none>".to_owned()]);
        assert!(stages(&blank, &Facts(&facts)).is_err());
        assert!(stages(&Texts::default(), &Facts(&facts)).is_ok_and(|all| all.is_empty()));
    }

    #[test]
    fn an_input_that_cannot_be_filled_in_says_what_is_wrong_with_it() {
        let facts = json!({"payload": {"name": "x"}});
        let why = |text: &str| {
            let yaml = format!("pipeline:\n  name: '{text}'\n");
            filled(&yaml, &Facts(&facts)).unwrap_err().full_text()
        };
        let missing = why("<+trigger.payload.nothing>");
        assert!(missing.ends_with("the event does not have it"), "{missing}");
        let wrong = why("<+trigger.payload.name.noSuchMethod()>");
        assert!(!wrong.contains("does not have it"), "{wrong}");
    }
}
