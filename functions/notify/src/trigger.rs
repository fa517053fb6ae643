//! Notices of triggers that fired and started no run.

use serde_json::{Map, Value};
use slipway_engine::error::{Doing, HandlerError};
use slipway_engine::error_name::ErrorName;
use slipway_engine::notify::{RulesOfPipeline, TRIGGER_FAILED, TriggerNotice};
use slipway_expr::{Context, Segment, Value as Found};
use slipway_model::Kind;
use slipway_model::id::Scope;
use slipway_store::record::OutcomeRecord;

use crate::Deps;
use crate::digest::deliver;
use crate::freeze::InScope;
use crate::message::{Message, Severity, harness_time, named, one_line, shown, time};
use crate::rule::{Rule, refused};

/// Sends a notice; whether it was worth sending.
pub(crate) async fn tell(deps: &Deps, notice: &TriggerNotice) -> Result<bool, HandlerError> {
    let outcome = outcome(deps, notice).await?;
    let place = &notice.place;
    if outcome.run.is_some() {
        tracing::info!(
            trigger.id = %place.trigger,
            event.id = notice.event_id,
            "nothing is told: a run was started after all"
        );
        return Ok(false);
    }
    let rules = deps.runs.rules_of_pipeline(&place.scope, &place.pipeline);
    let of = rules
        .await?
        .ok_or_else(|| refused(format!("there is no pipeline {} any more", place.pipeline)))?;
    let planned = of.rules.get(notice.rule).ok_or_else(|| {
        let (pipeline, rule) = (&place.pipeline, notice.rule);
        refused(format!(
            "the pipeline {pipeline} has no rule {rule} any more"
        ))
    })?;
    let (kind, parent) = (Kind::Trigger.key(), Some(&place.pipeline));
    let store = &deps.runs.store;
    let trigger = store.find_entity(&place.scope, kind, parent, &place.trigger);
    let trigger = trigger
        .await
        .doing(|| format!("read trigger {}", place.trigger))?;
    let names = Names {
        pipeline: &of.name,
        trigger: trigger
            .as_ref()
            .map_or(place.trigger.as_str(), |record| record.name.as_str()),
    };
    let mut message = message(notice, &outcome, &names, deps.url.as_deref());
    let context = Box::new(OfPipeline { of: &of, notice });
    let rule = Rule::with(deps, &place.scope, context, planned);
    match rule.custom() {
        Ok(custom) => message.custom = custom,
        Err(fault) => tracing::warn!(
            pipeline.id = %place.pipeline,
            notification.rule = rule.name(),
            "the standard message is sent: {fault}"
        ),
    }
    deliver(deps, rule, notice.receiver, message).await
}

/// The row of the trigger's history that the notice is about.
async fn outcome(deps: &Deps, notice: &TriggerNotice) -> Result<OutcomeRecord, HandlerError> {
    let listed = deps.runs.store.list_outcomes(&notice.event_id).await;
    let listed = listed.doing(|| format!("read what became of event {}", notice.event_id))?;
    let mut listed = listed.into_iter();
    let found = listed.find(|outcome| outcome.place == notice.place);
    found.ok_or_else(|| {
        let (event, trigger) = (&notice.event_id, &notice.place.trigger);
        let message =
            format!("what became of event {event} for trigger {trigger} is not recorded yet");
        HandlerError::new(ErrorName::NotDelivered, message)
    })
}

struct Names<'a> {
    pipeline: &'a str,
    trigger: &'a str,
}

fn message(
    notice: &TriggerNotice,
    outcome: &OutcomeRecord,
    names: &Names<'_>,
    url: Option<&str>,
) -> Message {
    let place = &notice.place;
    let rows = [
        (
            "Pipeline",
            format!("{} ({})", names.pipeline, place.pipeline),
        ),
        ("Trigger", format!("{} ({})", names.trigger, place.trigger)),
        ("Type", outcome.source.clone()),
        ("Event", notice.event_id.clone()),
        ("Received", shown(time(outcome.received_ms))),
        ("Error", outcome.message.clone()),
    ];
    let rows = rows.map(|(name, value)| named((name, one_line(&value))));
    let history = url.map(|url| link(url, &format!("eventHistory/{}", place.trigger), notice));
    let headline = format!(
        "Trigger {} of {} failed: no run was started",
        names.trigger, names.pipeline
    );
    Message {
        id: notice.id(),
        run: format!("trigger-{}-{}", place.pipeline, place.trigger),
        at: time(outcome.decided_ms),
        severity: Severity::Error,
        headline: one_line(&headline),
        facts: rows.into_iter().collect(),
        data: data(notice, outcome, names, url),
        link: history,
        custom: None,
    }
}

/// Where the API has something about a trigger. There is no page to look at yet.
fn link(url: &str, below: &str, notice: &TriggerNotice) -> String {
    let (place, scope) = (&notice.place, &notice.place.scope);
    let text = |id: Option<&str>| id.unwrap_or_default().to_owned();
    format!(
        "{}/pipeline/api/triggers/{below}?accountIdentifier={}&orgIdentifier={}&projectIdentifier={}&targetIdentifier={}",
        url.trim_end_matches('/'),
        scope.account,
        text(scope.org.as_ref().map(|id| id.as_str())),
        text(scope.project.as_ref().map(|id| id.as_str())),
        place.pipeline,
    )
}

/// Harness's `eventData` of a failed trigger (developer-hub, *Add a pipeline notification strategy*, "JSON for webhook
/// notifications").
fn data(
    notice: &TriggerNotice,
    outcome: &OutcomeRecord,
    names: &Names<'_>,
    url: Option<&str>,
) -> Value {
    let (place, scope) = (&notice.place, &notice.place.scope);
    let mut data = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        data.extend(value.map(|value| (name.to_owned(), value)));
    };
    let text = |text: &str| Some(Value::from(text));
    add("accountIdentifier", text(scope.account.as_str()));
    let org = scope.org.as_ref().map(|id| id.as_str().into());
    add("orgIdentifier", org);
    let project = scope.project.as_ref().map(|id| id.as_str().into());
    add("projectIdentifier", project);
    add("pipelineIdentifier", text(place.pipeline.as_str()));
    add("pipelineName", text(names.pipeline));
    let history = url.map(|url| link(url, &format!("eventHistory/{}", place.trigger), notice));
    add("triggerActivityUrl", history.map(Value::from));
    let detail = url.map(|url| link(url, &format!("{}/details", place.trigger), notice));
    add("triggerUrl", detail.map(Value::from));
    add("triggerName", text(names.trigger));
    add("triggerIdentifier", text(place.trigger.as_str()));
    add("triggerType", text(&outcome.source));
    add("eventType", text(TRIGGER_FAILED));
    add("startTime", text(&harness_time(outcome.received_ms)));
    // Milliseconds here, and seconds in events of runs, as documented.
    add("startTs", Some(outcome.received_ms.into()));
    add("errorMessage", text(&outcome.message));
    Value::Object(data)
}

/// What an expression of such a rule can name: there is no run, but a pipeline.
struct OfPipeline<'a> {
    of: &'a RulesOfPipeline,
    notice: &'a TriggerNotice,
}

impl Context for OfPipeline<'_> {
    fn lookup(&self, path: &[Segment]) -> Option<Found> {
        let keys: Vec<&str> = path.iter().map(Segment::key).collect::<Option<_>>()?;
        let scope: &Scope = &self.notice.place.scope;
        match keys.as_slice() {
            ["pipeline", "identifier"] => Some(self.notice.place.pipeline.as_str().into()),
            ["pipeline", "name"] => Some(self.of.name.as_str().into()),
            ["pipeline", "variables", name] => {
                let value = self.of.variables.get(*name)?;
                Some(value.as_str().into())
            }
            _ => InScope(scope).lookup(path),
        }
    }
}
