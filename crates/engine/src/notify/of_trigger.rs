//! What is told of triggers: that one fired and no run came of it.
//!
//! There is no run and no plan, so the rules are those that the pipeline has when it happens, and again when the message is
//! sent. What happened is in the history of the trigger, where whoever sends reads it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use slipway_model::id::{EntityId, Scope};
use slipway_model::{Kind, Parsed, Ref, entity};
use slipway_plan::{NotificationPlan, Request, Snapshot, notification_rules, rules_references};
use slipway_store::TriggerPlace;
use slipway_store::record::OutcomeRecord;

use super::receivers;
use crate::error::{Doing, RunError};
use crate::form::entities;
use crate::gather::gathered;
use crate::name;
use crate::runs::Runs;

/// The type of the event in `pipelineEvents[]`.
pub const TRIGGER_FAILED: &str = "TriggerFailed";

/// One message of a rule of a pipeline about a trigger that started nothing, to one receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerNotice {
    /// The trigger.
    #[serde(flatten)]
    pub place: TriggerPlace,
    /// What it fired for.
    pub event_id: String,
    /// The rule: its place in the pipeline, from 0.
    pub rule: usize,
    /// The receiver: its place in the rule, from 0.
    pub receiver: usize,
}

impl TriggerNotice {
    /// Name of its execution: the same for the same notice, and its id for receivers.
    pub fn id(&self) -> String {
        let (event, place) = (&self.event_id, self.place.key());
        let (rule, receiver) = (self.rule, self.receiver);
        name::trigger_execution(&format!(
            "{event}-{TRIGGER_FAILED}-{rule}-{receiver}/{place}"
        ))
    }
}

/// A pipeline outside of a run, as far as its notification rules need it.
#[derive(Clone, Debug, PartialEq)]
pub struct RulesOfPipeline {
    /// `name` of the pipeline.
    pub name: String,
    /// Its variables of a written value that is no secret.
    pub variables: BTreeMap<String, String>,
    /// Its rules, in order.
    pub rules: Vec<NotificationPlan>,
}

impl Runs {
    /// The notification rules of a pipeline as it is stored now; `None` where it is gone.
    ///
    /// # Errors
    /// When the store cannot be read, or the pipeline or what its rules link to cannot.
    pub async fn rules_of_pipeline(
        &self,
        scope: &Scope,
        pipeline: &EntityId,
    ) -> Result<Option<RulesOfPipeline>, RunError> {
        let kind = Kind::Pipeline.key();
        let found = self.store.find_entity(scope, kind, None, pipeline).await;
        let Some(record) = found.doing(|| format!("read pipeline {pipeline}"))? else {
            return Ok(None);
        };
        let parsed = entity::parse(pipeline.as_str(), &record.yaml).map_err(RunError::faulty)?;
        let ask = |known: &Snapshot| entities(rules_references(&request(scope, &parsed, known)));
        let known = gathered(self, None, ask).await?;
        Ok(Some(RulesOfPipeline {
            name: parsed.head.name.clone(),
            variables: written(parsed.body()),
            rules: notification_rules(&request(scope, &parsed, &known)),
        }))
    }

    /// Tells that a trigger fired and started nothing, once it is in its history. It neither waits nor fails, as
    /// [`Runs::tell`]; what is repeated is told once.
    pub(crate) async fn tell_trigger_failed(&self, outcome: &OutcomeRecord) {
        if let Err(error) = self.start_trigger_notices(outcome).await {
            tracing::error!(
                trigger.id = %outcome.place.trigger,
                event.id = outcome.event,
                notification.event = TRIGGER_FAILED,
                error = %error.full_text(),
                "a notification is lost: it could not be started"
            );
        }
    }

    async fn start_trigger_notices(&self, outcome: &OutcomeRecord) -> Result<(), RunError> {
        let (place, Some(machine)) = (&outcome.place, &self.notify_machine) else {
            return Ok(());
        };
        let found = self
            .rules_of_pipeline(&place.scope, &place.pipeline)
            .await?;
        let rules = found.map(|found| found.rules).unwrap_or_default();
        for notice in notices(place, &outcome.event, &rules) {
            self.start_named(machine, &notice.id(), &notice).await?;
        }
        Ok(())
    }
}

fn request<'a>(scope: &'a Scope, pipeline: &'a Parsed, entities: &'a Snapshot) -> Request<'a> {
    Request {
        pipeline,
        inputs: &[],
        scope,
        entities,
        // No step is looked at.
        runnable: &|_| true,
        chosen: None,
        trigger: None,
    }
}

fn notices(place: &TriggerPlace, event: &str, rules: &[NotificationPlan]) -> Vec<TriggerNotice> {
    let rules = rules.iter().enumerate();
    let wanted = rules.filter(|(_, rule)| {
        let mut wishes = rule.events.iter();
        rule.enabled && wishes.any(|wish| wish.kind == "AllEvents" || wish.kind == TRIGGER_FAILED)
    });
    wanted
        .flat_map(|(number, rule)| {
            (0..receivers(rule)).map(move |receiver| TriggerNotice {
                place: place.clone(),
                event_id: event.to_owned(),
                rule: number,
                receiver,
            })
        })
        .collect()
}

fn written(pipeline: Ref<'_>) -> BTreeMap<String, String> {
    let list = pipeline.get("variables").into_iter().flat_map(Ref::items);
    let plain = list.filter(|variable| variable.get_text("type") != Some("Secret"));
    let filled = plain.filter_map(|variable| {
        let value = variable.get("value").filter(|value| !value.is_expression());
        let name = variable.get_text("name")?;
        Some((name.to_owned(), value?.scalar()?.to_owned()))
    });
    filled.collect()
}
