//! Notification rules and barriers of a pipeline.

use std::collections::HashSet;

use slipway_model::id::EntityId;
use slipway_model::{Code, Diagnostic, Ref};

use super::{Resolver, texts};
use crate::{BarrierPlan, EventPlan, NotificationPlan};

impl Resolver<'_> {
    /// `notificationRules`, in order. What an enabled rule asks for and does not get is told.
    pub(super) fn notifications(&mut self, pipeline: Ref<'_>) -> Vec<NotificationPlan> {
        let rules = pipeline.get("notificationRules").into_iter();
        let rules: Vec<_> = rules.flat_map(Ref::items).collect();
        let mut out = Vec::with_capacity(rules.len());
        for rule in rules {
            let enabled = rule.get_text("enabled") != Some("false");
            if enabled {
                self.check_notification(rule);
            }
            out.push(NotificationPlan {
                name: rule.get_text("name").unwrap_or_default().to_owned(),
                enabled,
                events: events(rule.get("pipelineEvents")),
                method: rule.get("notificationMethod").map(Ref::to_json),
                template: rule.get("template").map(Ref::to_json),
            });
        }
        out
    }

    fn check_notification(&mut self, rule: Ref<'_>) {
        let groups = rule.at(&["notificationMethod", "spec", "userGroups"]);
        let names = texts(groups);
        if let Some(groups) = groups.filter(|_| !names.is_empty()) {
            let names = names.join("`, `");
            let message = format!(
                "there are no user groups yet, so `{names}` is not told; name receivers in the rule itself"
            );
            self.faults
                .warn_with(|| Diagnostic::at(Code::NotSupported, groups, message));
        }
        if let Some(template) = rule.get("template") {
            let message =
                "the notification template is not used; the rule's standard message is sent";
            self.faults
                .warn_with(|| Diagnostic::at(Code::NotSupported, template, message));
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
