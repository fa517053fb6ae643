//! Notification rules and barriers of a pipeline.

use std::collections::HashSet;

use slipway_model::id::EntityId;
use slipway_model::{Code, Ref};

use super::{Resolver, texts};
use crate::{BarrierPlan, EventPlan, MessagePlan, NotificationPlan, template};

impl Resolver<'_> {
    /// `notificationRules`, in order, enabled ones with what their templates say.
    pub(super) fn notifications(&mut self, pipeline: Ref<'_>) -> Vec<NotificationPlan> {
        let rules = pipeline.get("notificationRules").into_iter();
        let rules: Vec<_> = rules.flat_map(Ref::items).collect();
        let mut out = Vec::with_capacity(rules.len());
        for rule in rules {
            let enabled = rule.get_text("enabled") != Some("false");
            let link = rule.get("template").filter(|_| enabled);
            out.push(NotificationPlan {
                name: rule.get_text("name").unwrap_or_default().to_owned(),
                enabled,
                events: events(rule.get("pipelineEvents")),
                method: rule.get("notificationMethod").map(Ref::to_json),
                template: rule.get("template").map(Ref::to_json),
                message: link.and_then(|link| self.message(link)),
            });
        }
        out
    }

    /// What the notification template of a rule says.
    fn message(&mut self, link: Ref<'_>) -> Option<MessagePlan> {
        let source = super::source(self.request, self.asked);
        match template::notification(&source, link, self.request.scope) {
            Ok(spec) => {
                let body = spec.root().get("body")?;
                Some(MessagePlan {
                    kind: body.get_text("type")?.to_owned(),
                    content: body.get_text("content")?.to_owned(),
                })
            }
            Err(faults) => {
                self.faults.extend(faults);
                None
            }
        }
    }

    /// `flowControl.barriers`, in order.
    pub(super) fn barriers_of(&mut self, pipeline: Ref<'_>) -> Vec<BarrierPlan> {
        let list = pipeline.at(&["flowControl", "barriers"]);
        let mut out = Vec::new();
        let mut known = HashSet::new();
        for barrier in list.into_iter().flat_map(Ref::items) {
            let Some(identifier) = barrier.get_text("identifier") else {
                continue;
            };
            if !known.insert(identifier) {
                let message = format!("a second barrier has the identifier `{identifier}`");
                self.fault(Code::Duplicate, barrier, message);
                continue;
            }
            out.push(BarrierPlan {
                identifier: EntityId::new(identifier),
                name: barrier.get_text("name").unwrap_or(identifier).to_owned(),
            });
        }
        out
    }

    /// Whether the barrier that a step waits at is one of the pipeline's.
    pub(super) fn check_barrier(&mut self, step: Ref<'_>) {
        let Some(field) = step.at(&["spec", "barrierRef"]) else {
            return;
        };
        let Some(name) = field.text().filter(|text| !text.contains("<+")) else {
            return;
        };
        let mut all = self.barriers.iter();
        if all.all(|barrier| barrier.identifier.as_str() != name) {
            let message = format!("the barrier `{name}` is not in the pipeline's `flowControl`");
            self.fault(Code::NotFound, field, message);
        }
    }
}

fn events(list: Option<Ref<'_>>) -> Vec<EventPlan> {
    let events = list
        .into_iter()
        .flat_map(Ref::items)
        .map(|event| EventPlan {
            kind: event.get_text("type").unwrap_or_default().to_owned(),
            stages: texts(event.get("forStages")),
            steps: texts(event.get("forSteps")),
        });
    events.collect()
}
