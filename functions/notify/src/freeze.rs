//! Notices of freezes that belong to no run, and the watches for their windows.

use serde_json::{Map, Value};
use slipway_engine::error::HandlerError;
use slipway_engine::error_name::ErrorName;
use slipway_engine::freeze::{customized_message, notification_rules};
use slipway_engine::notify::{
    FreezeEvent, FreezeNotice, FreezeWatch, SavedFreeze, is_enabled, look,
};
use slipway_expr::{Context, Segment, Value as Found};
use slipway_model::id::Scope;
use slipway_store::record::EntityRecord;

use crate::Deps;
use crate::digest::deliver;
use crate::message::{Message, Severity, harness_time, named, one_line, shown, time};
use crate::rule::{Rule, refused};

/// Longest that a freeze which is being saved takes to be there, in milliseconds. After that its save failed.
const SAVED_AFTER_MS: i64 = 60_000;

/// Sends a notice; whether it was worth sending.
pub(crate) async fn tell(deps: &Deps, notice: &FreezeNotice) -> Result<bool, HandlerError> {
    let record = match found(deps, notice).await? {
        Ok(record) => record,
        Err(why) => {
            tracing::info!(
                freeze.id = %notice.freeze.freeze_id,
                notification.event = notice.event.name(),
                "nothing is told: {why}"
            );
            return Ok(false);
        }
    };
    let rules = notification_rules(&record);
    let planned = rules.get(notice.rule).ok_or_else(|| {
        let (freeze, rule) = (&notice.freeze.freeze_id, notice.rule);
        refused(format!("the freeze {freeze} has no rule {rule} any more"))
    })?;
    let said = customized_message(&record, notice.rule);
    let message = message(&record, notice, said);
    let context = Box::new(InScope(&record.scope));
    let rule = Rule::with(deps, &record.scope, context, planned);
    deliver(deps, rule, notice.receiver, message).await
}

/// Looks at the windows of a freeze, tells of those that opened, and watches for the next; whether there was one.
pub(crate) async fn watch(deps: &Deps, watch: &FreezeWatch) -> Result<bool, HandlerError> {
    let stored = deps.runs.stored_freeze(&watch.freeze).await?;
    let looked = look(watch, stored.as_ref(), deps.runs.clock.now());
    deps.runs.follow(&looked).await?;
    Ok(!looked.notices.is_empty())
}

/// The record that a notice is about, or why nothing is told of it.
async fn found(
    deps: &Deps,
    notice: &FreezeNotice,
) -> Result<Result<EntityRecord, &'static str>, HandlerError> {
    let SavedFreeze { saved_ms, .. } = notice.freeze;
    let stored = deps.runs.stored_freeze(&notice.freeze).await?;
    let saved = stored.as_ref().map(|record| record.updated_ms);
    if saved.is_none_or(|there| there < saved_ms) {
        return match deps.runs.clock.now_ms() - saved_ms > SAVED_AFTER_MS {
            true => Ok(Err("it was not saved, or is gone")),
            false => {
                let message = format!("the freeze {} is not saved yet", notice.freeze.freeze_id);
                Err(HandlerError::new(ErrorName::NotDelivered, message))
            }
        };
    }
    let Some(record) = stored else {
        return Ok(Err("it is gone"));
    };
    Ok(match &notice.event {
        // What was rejected was rejected.
        FreezeEvent::TriggerInvocationRejectedDueToFreeze { .. } => Ok(record),
        _ if !is_enabled(&record) => Err("it is disabled again"),
        FreezeEvent::FreezeWindowEnabled { .. } if saved != Some(saved_ms) => {
            Err("it was changed meanwhile")
        }
        _ => Ok(record),
    })
}

fn message(record: &EntityRecord, notice: &FreezeNotice, said: Option<String>) -> Message {
    let name = &record.name;
    let (headline, at_ms) = match &notice.event {
        FreezeEvent::OnEnableFreezeWindow { .. } => {
            (format!("Freeze {name} was enabled"), notice.freeze.saved_ms)
        }
        FreezeEvent::FreezeWindowEnabled { starts_ms, .. } => (
            format!("Freeze {name} is active: deployments are frozen"),
            *starts_ms,
        ),
        FreezeEvent::TriggerInvocationRejectedDueToFreeze {
            pipeline,
            trigger,
            at_ms,
            ..
        } => (
            format!("Pipeline {pipeline} was not started by {trigger}: deployments are frozen"),
            *at_ms,
        ),
    };
    Message {
        id: notice.id(),
        run: format!("freeze-{}", record.id),
        at: time(at_ms),
        severity: Severity::Warning,
        headline: one_line(&headline),
        facts: rows(record, &notice.event, said)
            .into_iter()
            .map(named)
            .collect(),
        link: None,
        data: data(record, &notice.event, at_ms),
        custom: None,
    }
}

fn rows(
    record: &EntityRecord,
    event: &FreezeEvent,
    said: Option<String>,
) -> Vec<(&'static str, String)> {
    let scope = &record.scope;
    let level = match (&scope.org, &scope.project) {
        (Some(org), Some(project)) => format!("project {project} of organization {org}"),
        (Some(org), None) => format!("organization {org}"),
        _ => "the account".to_owned(),
    };
    let mut rows = vec![
        ("Freeze", format!("{} ({})", record.name, record.id)),
        ("Scope", level),
    ];
    match event {
        FreezeEvent::OnEnableFreezeWindow { who } => rows.push(("By", who.to_string())),
        FreezeEvent::FreezeWindowEnabled { starts_ms, ends_ms } => {
            rows.push(("From", shown(time(*starts_ms))));
            rows.push(("Until", shown(time(*ends_ms))));
        }
        FreezeEvent::TriggerInvocationRejectedDueToFreeze {
            pipeline,
            trigger,
            who,
            message,
            ..
        } => {
            rows.push(("Pipeline", pipeline.to_string()));
            rows.push(("Started by", format!("{who} ({trigger})")));
            rows.push(("Error", message.clone()));
        }
    }
    rows.extend(said.map(|said| ("Message", said)));
    for (_, value) in &mut rows {
        *value = one_line(value);
    }
    rows
}

/// What webhooks get. Harness documents no form for freezes; the names are those of its `eventData` of runs, and of
/// freezes in its API.
fn data(record: &EntityRecord, event: &FreezeEvent, at_ms: i64) -> Value {
    let scope = &record.scope;
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
    add("freezeIdentifier", text(record.id.as_str()));
    add("freezeName", text(&record.name));
    add("eventType", text(event.name()));
    let mut period = (at_ms, None);
    match event {
        FreezeEvent::OnEnableFreezeWindow { who } => add("triggeredBy", text(who.as_str())),
        FreezeEvent::FreezeWindowEnabled { starts_ms, ends_ms } => {
            period = (*starts_ms, Some(*ends_ms));
        }
        FreezeEvent::TriggerInvocationRejectedDueToFreeze {
            pipeline,
            trigger,
            who,
            message,
            ..
        } => {
            add("pipelineIdentifier", text(pipeline.as_str()));
            add("triggeredBy", text(who.as_str()));
            add("triggerType", text(trigger));
            add("errorMessage", text(message));
        }
    }
    add("startTime", Some(harness_time(period.0).into()));
    add("startTs", Some(period.0.div_euclid(1_000).into()));
    add("endTime", period.1.map(|ms| harness_time(ms).into()));
    add("endTs", period.1.map(|ms| ms.div_euclid(1_000).into()));
    Value::Object(data)
}

/// What an expression of such a rule can name: there is no run, but a place.
pub(crate) struct InScope<'a>(pub(crate) &'a Scope);

impl Context for InScope<'_> {
    fn lookup(&self, path: &[Segment]) -> Option<Found> {
        let keys: Vec<&str> = path.iter().map(Segment::key).collect::<Option<_>>()?;
        let id = match keys.as_slice() {
            ["account", "identifier"] => self.0.account.as_str(),
            ["org", "identifier"] => self.0.org.as_ref()?.as_str(),
            ["project", "identifier"] => self.0.project.as_ref()?.as_str(),
            _ => return None,
        };
        Some(id.into())
    }
}

#[cfg(test)]
mod tests {
    use slipway_engine::notify::SavedFreeze;
    use slipway_model::id::{AccountId, EntityId, PrincipalId};

    use super::*;

    #[test]
    fn what_a_freeze_tells_names_it_its_place_and_its_time() {
        let record = EntityRecord {
            scope: Scope::account(AccountId::new("acme")),
            kind: "freeze".to_owned(),
            parent: None,
            id: EntityId::new("night"),
            name: "Every\nnight".to_owned(),
            description: None,
            tags: Vec::new(),
            entity_type: None,
            yaml: String::new(),
            version: 1,
            created_ms: 0,
            updated_ms: 0,
            connection: None,
            git: None,
            saved_by: None,
        };
        let event = FreezeEvent::FreezeWindowEnabled {
            starts_ms: 0,
            ends_ms: 3_600_000,
        };
        let notice = FreezeNotice {
            freeze: SavedFreeze::of(&record),
            rule: 0,
            receiver: 0,
            event,
        };
        let told = message(&record, &notice, Some("Call us first".to_owned()));
        insta::assert_snapshot!(told.text(), @"
        Freeze Every night is active: deployments are frozen
        Freeze: Every night (night)
        Scope: the account
        From: 1970-01-01 00:00:00 UTC
        Until: 1970-01-01 01:00:00 UTC
        Message: Call us first
        ");
        insta::assert_snapshot!(told.data, @r#"{"accountIdentifier":"acme","freezeIdentifier":"night","freezeName":"Every\nnight","eventType":"FreezeWindowEnabled","startTime":"Thu Jan 01 00:00:00 GMT 1970","startTs":0,"endTime":"Thu Jan 01 01:00:00 GMT 1970","endTs":3600}"#);
        let event = FreezeEvent::OnEnableFreezeWindow {
            who: PrincipalId::new("alex"),
        };
        let told = message(&record, &FreezeNotice { event, ..notice }, None);
        insta::assert_snapshot!(told.text(), @"
        Freeze Every night was enabled
        Freeze: Every night (night)
        Scope: the account
        By: alex
        ");
    }
}
