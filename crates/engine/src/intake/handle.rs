//! Handles an accepted event: each trigger that it is for decides, starts its run or not, and notes what became of it.

use slipway_model::id::Scope;
use slipway_store::TriggerPlace;
use slipway_store::record::{EntityRecord, EventRecord, OutcomeRecord};
use slipway_trigger::{Outcome, Refusal};

use super::files::Asked;
use super::fire::{Fire, fire, would_start};
use super::listen::{find_trigger, of_feed, of_project, of_provider, read_trigger};
use super::verdict::{Verdict, decided};
use super::{Happening, narrow, poll, read};
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::gather::SourceReader;
use crate::runs::Runs;
use crate::start::StepTypes;

/// What starting runs needs.
#[derive(Clone, Copy)]
pub struct Starting<'a> {
    /// Facts, time, Step Functions.
    pub runs: &'a Runs,
    /// The step types.
    pub steps: &'a StepTypes,
    /// Reads what pipelines refer to outside.
    pub sources: &'a dyn SourceReader,
}

/// Handles an event by its id; one that is not there was handled and forgotten.
///
/// # Errors
/// As [`handle`].
pub async fn handle_by_id(on: Starting<'_>, id: &str) -> Result<Vec<OutcomeRecord>, RunError> {
    let found = on.runs.store.find_event(id).await;
    match found.doing(|| format!("read event {id}"))? {
        Some(event) => handle(on, &event).await,
        None => Ok(Vec::new()),
    }
}

/// Handles an event. Repeating it changes nothing but what was left open.
///
/// # Errors
/// When the store or Step Functions cannot be reached: the event stays listed.
pub async fn handle(on: Starting<'_>, event: &EventRecord) -> Result<Vec<OutcomeRecord>, RunError> {
    let happening = read(event)?;
    let places = narrowed(on.runs, event, &happening).await?;
    let outcomes = handle_for(on, (event, &happening), &places).await?;
    let handled = on.runs.store.handled(event).await;
    handled.doing(|| format!("take event {} off the list", event.id))?;
    Ok(outcomes)
}

/// Has some triggers decide on an event.
pub(super) async fn handle_for(
    on: Starting<'_>,
    (event, happening): (&EventRecord, &Happening),
    places: &[TriggerPlace],
) -> Result<Vec<OutcomeRecord>, RunError> {
    let mut outcomes = Vec::new();
    let (asked, mut left) = (Asked::default(), None);
    for place in places {
        // What one trigger waits for holds no other up.
        let done = match Box::pin(one(on, &asked, (event, happening), place)).await {
            Ok(Some(done)) => done,
            Ok(None) => continue,
            Err(why) => {
                left = Some(why);
                continue;
            }
        };
        let Done {
            outcome,
            failed,
            again,
        } = done;
        left = left.or(again);
        note(on.runs, &outcome, failed).await?;
        tracing::info!(
            trigger.id = %place.trigger,
            pipeline.id = %place.pipeline,
            event.id = %event.id,
            status = outcome.status,
            run.id = outcome.run.as_ref().map(|run| run.as_str()),
            "{}", outcome.message
        );
        outcomes.push(outcome);
    }
    if let Some(why) = left {
        return Err(why);
    }
    Ok(outcomes)
}

/// Writes down what became of an event for a trigger, and tells where it should have started a run and did not.
async fn note(runs: &Runs, outcome: &OutcomeRecord, failed: bool) -> Result<(), RunError> {
    let noted = runs.store.put_outcome(outcome).await;
    noted.doing(|| format!("note what became of event {}", outcome.event))?;
    if failed {
        runs.tell_trigger_failed(outcome).await;
    }
    Ok(())
}

/// Notes for each trigger that fires for an event which is about to be given up that nothing comes of it.
///
/// # Errors
/// When the store cannot be read or written, or the event cannot be read.
pub(super) async fn give_up(
    on: Starting<'_>,
    event: &EventRecord,
    why: &str,
) -> Result<(), RunError> {
    let (runs, asked) = (on.runs, Asked::default());
    let happening = read(event)?;
    let known = runs.store.list_outcomes(&event.id).await;
    let known = known.doing(|| format!("read what became of event {}", event.id))?;
    for place in audience(runs, event, &happening).await? {
        if known.iter().any(|outcome| outcome.place == place) {
            continue;
        }
        let Some(record) = find_trigger(runs, &place).await? else {
            continue;
        };
        let Ok(trigger) = read_trigger(&record) else {
            continue;
        };
        let of = (&place, &trigger, &record);
        let decided = decided(on, &asked, (event, &happening), of).await?;
        if !matches!(decided, Verdict::Fires(_)) {
            continue;
        }
        let message = format!(
            "the event could not be handled and was given up: {why}; `slipway trigger redrive {}` tries it again",
            event.id
        );
        let outcome = row(runs, event, &place, &record);
        let outcome = outcome(Outcome::ExceptionWhileProcessing, message);
        note(runs, &outcome, true).await?;
    }
    Ok(())
}

/// Makes the row of an event in the history of a trigger.
fn row(
    runs: &Runs,
    event: &EventRecord,
    place: &TriggerPlace,
    record: &EntityRecord,
) -> impl Fn(Outcome, String) -> OutcomeRecord {
    move |outcome, message| OutcomeRecord {
        place: place.clone(),
        event: event.id.clone(),
        received_ms: event.received_ms,
        decided_ms: runs.clock.now_ms(),
        source: record.entity_type.clone().unwrap_or_default(),
        status: outcome.name(),
        message,
        run: None,
        inputs: None,
    }
}

/// The triggers that an event may be for, without those of other repositories.
async fn narrowed(
    runs: &Runs,
    event: &EventRecord,
    happening: &Happening,
) -> Result<Vec<TriggerPlace>, RunError> {
    let Happening::Webhook {
        event: told,
        to: None,
        within,
        ..
    } = happening
    else {
        return audience(runs, event, happening).await;
    };
    let source = of_provider(told.provider);
    let listed = runs.store.listeners_now(&event.account, &source).await;
    let listed = listed.doing(|| format!("list the triggers for event {}", event.id))?;
    let mut places = narrow::of_repository(runs, told, &listed).await?;
    places.retain(|place| is_within(within.as_ref(), place));
    Ok(places)
}

/// Whether a trigger is in the project that the sender named, where it did.
fn is_within(within: Option<&Scope>, place: &TriggerPlace) -> bool {
    within.is_none_or(|scope| holds(scope, &place.scope))
}

/// All triggers that listen to where an event comes from.
async fn audience(
    runs: &Runs,
    event: &EventRecord,
    happening: &Happening,
) -> Result<Vec<TriggerPlace>, RunError> {
    let source = match happening {
        Happening::Webhook { to: Some(to), .. } | Happening::Scheduled { to, .. } => {
            return Ok(vec![to.clone()]);
        }
        Happening::Webhook { event, .. } => of_provider(event.provider),
        Happening::Feed { feed, .. } => of_feed(feed),
        Happening::PipelineEnded { run } => of_project(&runs.run(run).await?.scope),
    };
    let listed = runs.store.listeners(&event.account, &source).await;
    let listed = listed.doing(|| format!("list the triggers for event {}", event.id))?;
    let within = match happening {
        Happening::Webhook { within, .. } => within.as_ref(),
        _ => None,
    };
    let hears = |about: &str| match happening {
        Happening::Feed { after_ms, .. } => poll::hears(about, *after_ms),
        _ => true,
    };
    let places = listed
        .into_iter()
        .filter(|(_, about)| hears(about))
        .map(|(place, _)| place);
    Ok(places.filter(|place| is_within(within, place)).collect())
}

/// Whether a scope is the other or above it.
pub(super) fn holds(outer: &Scope, inner: &Scope) -> bool {
    outer.account == inner.account
        && (outer.org.is_none() || outer.org == inner.org)
        && (outer.project.is_none() || outer.project == inner.project)
}

/// What became of an event for one trigger.
struct Done {
    outcome: OutcomeRecord,
    /// Whether a run was wanted and could not be started.
    failed: bool,
    /// Why the event is handled again.
    again: Option<RunError>,
}

impl From<OutcomeRecord> for Done {
    fn from(outcome: OutcomeRecord) -> Self {
        Self {
            outcome,
            failed: false,
            again: None,
        }
    }
}

/// What becomes of an event for one trigger; `None` where it is not about what the trigger listens to at all, or the
/// trigger is gone.
async fn one(
    on: Starting<'_>,
    asked: &Asked,
    (event, happening): (&EventRecord, &Happening),
    place: &TriggerPlace,
) -> Result<Option<Done>, RunError> {
    let Some(record) = find_trigger(on.runs, place).await? else {
        return Ok(None);
    };
    if let Some(first) = &event.first
        && has_decided(on.runs, &first.id, place).await?
    {
        return Ok(None);
    }
    let noted = row(on.runs, event, place, &record);
    let trigger = match read_trigger(&record) {
        Ok(trigger) => trigger,
        Err(why) => {
            let outcome = Outcome::ValidationFailedForTrigger;
            return Ok(Some(noted(outcome, why.full_text()).into()));
        }
    };
    let of = (place, &trigger, &record);
    let shot = match decided(on, asked, (event, happening), of).await? {
        Verdict::Fires(shot) => *shot,
        Verdict::Refuses(refusal) => {
            return Ok(Some(noted(refusal.outcome, refusal.message).into()));
        }
        Verdict::Waits(refusal) => {
            let why = format!("trigger {}: {}", place.trigger, refusal.message);
            return Ok(Some(Done {
                outcome: noted(refusal.outcome, refusal.message),
                failed: false,
                again: Some(RunError::refused(ErrorName::ProviderUnavailable, why)),
            }));
        }
        Verdict::Elsewhere => return Ok(None),
    };
    if let Some(why) = asked.owners.why_stopped(on.runs, &record).await? {
        return Ok(Some(Done {
            failed: true,
            ..Done::from(noted(Outcome::TargetDidNotExecute, why))
        }));
    }
    let missing = shot.missing.clone();
    let fire_with = Fire {
        place,
        trigger: &trigger,
        event,
        shot,
    };
    let fired = fire(on, fire_with).await?;
    let mut message = fired.message;
    if let Some(missing) = missing {
        message = format!("{message}; {missing}");
    }
    let mut outcome = noted(fired.outcome, message);
    outcome.run = fired.run;
    outcome.inputs = fired.inputs;
    Ok(Some(Done {
        outcome,
        failed: fired.failed,
        again: None,
    }))
}

/// Whether a trigger has decided on an event for another reason than who signed it.
async fn has_decided(runs: &Runs, event: &str, place: &TriggerPlace) -> Result<bool, RunError> {
    let noted = runs.store.list_outcomes(event).await;
    let noted = noted.doing(|| format!("list what became of event {event}"))?;
    let unsigned = Outcome::TriggerAuthenticationFailed.name();
    let mut decided = noted.iter().filter(|outcome| outcome.status != unsigned);
    Ok(decided.any(|outcome| outcome.place == *place))
}

/// What a trigger would do for an event, without doing it.
#[derive(Clone, Debug)]
pub struct Rehearsed {
    /// The trigger.
    pub place: TriggerPlace,
    /// What would be noted in its history.
    pub refusal: Option<Refusal>,
    /// The runtime inputs of the run.
    pub inputs: Option<String>,
}

/// What would become of an event that is not accepted: each trigger that listens, the run that it would start or why not.
/// Nothing is written.
///
/// # Errors
/// When the store cannot be read.
pub async fn rehearse(on: Starting<'_>, event: &EventRecord) -> Result<Vec<Rehearsed>, RunError> {
    let happening = read(event)?;
    let (mut all, asked) = (Vec::new(), Asked::default());
    for place in audience(on.runs, event, &happening).await? {
        let Some(record) = find_trigger(on.runs, &place).await? else {
            continue;
        };
        let rehearsed = |refusal, inputs| Rehearsed {
            place: place.clone(),
            refusal,
            inputs,
        };
        let trigger = match read_trigger(&record) {
            Ok(trigger) => trigger,
            Err(why) => {
                let outcome = Outcome::ValidationFailedForTrigger;
                let refusal = Refusal::new(outcome, why.full_text());
                all.push(rehearsed(Some(refusal), None));
                continue;
            }
        };
        let of = (&place, &trigger, &record);
        let verdict = decided(on, &asked, (event, &happening), of).await?;
        all.push(match verdict {
            Verdict::Elsewhere => {
                let why = "it listens to another repository";
                let outcome = Outcome::NoMatchingTriggerForRepo;
                rehearsed(Some(Refusal::new(outcome, why)), None)
            }
            Verdict::Refuses(refusal) | Verdict::Waits(refusal) => rehearsed(Some(refusal), None),
            Verdict::Fires(shot) => {
                if let Some(why) = asked.owners.why_stopped(on.runs, &record).await? {
                    let refusal = Refusal::new(Outcome::TargetDidNotExecute, why);
                    all.push(rehearsed(Some(refusal), None));
                    continue;
                }
                let with = Fire {
                    place: &place,
                    trigger: &trigger,
                    event,
                    shot: *shot,
                };
                let (refusal, inputs) = Box::pin(would_start(on, &with)).await?;
                rehearsed(refusal, inputs)
            }
        });
    }
    Ok(all)
}
