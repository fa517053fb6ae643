//! Notification rules and barriers of a pipeline.

use std::cell::RefCell;
use std::collections::HashSet;

use slipway_model::diagnostic::nearest;
use slipway_model::id::{EntityId, NodeId};
use slipway_model::{Code, Diagnostic, Ref, Tree};

use super::barriers::place_of;
use super::stage_inputs::Later;
use super::{Request, Resolver, texts};
use crate::chosen::flatten;
use crate::reference::Asked;
use crate::{BarrierPlan, EventPlan, MessagePlan, NotificationPlan, Reference, template};

/// The notification rules of a pipeline that is not run, its runtime inputs left open: what they tell is about no run.
pub fn notification_rules(request: &Request<'_>) -> Vec<NotificationPlan> {
    rules(request, &RefCell::default())
}

/// What [`notification_rules`] looked up: to be asked again with what was found, until nothing new appears.
pub fn rules_references(request: &Request<'_>) -> Vec<Reference> {
    let asked = RefCell::default();
    rules(request, &asked);
    asked.into_inner().into_list()
}

fn rules(request: &Request<'_>, asked: &RefCell<Asked>) -> Vec<NotificationPlan> {
    // Where a template of the pipeline is gone, the rules are those that the pipeline has itself.
    let whole = super::open(request, asked).ok().flatten();
    let pipeline = whole.as_ref().unwrap_or(request.pipeline);
    Resolver::new(request, asked, Later::new()).notifications(pipeline.body())
}

impl Resolver<'_> {
    /// `notificationRules`, in order, enabled ones with what their templates say.
    pub(super) fn notifications(&mut self, pipeline: Ref<'_>) -> Vec<NotificationPlan> {
        let rules = pipeline.get("notificationRules").into_iter();
        let rules: Vec<_> = rules.flat_map(Ref::items).collect();
        let mut out = Vec::with_capacity(rules.len());
        for rule in rules {
            let enabled = rule.get_text("enabled") != Some("false");
            let link = rule.get("template").filter(|_| enabled);
            if enabled {
                self.tell_silent(rule, pipeline);
            }
            let message = link.map(|link| self.message(link)).transpose();
            let (message, fault) = match message {
                Ok(message) => (message.flatten(), None),
                Err(fault) => (None, Some(fault)),
            };
            out.push(NotificationPlan {
                name: rule.get_text("name").unwrap_or_default().to_owned(),
                enabled,
                events: events(rule.get("pipelineEvents")),
                method: rule.get("notificationMethod").map(Ref::to_json),
                template: rule.get("template").map(Ref::to_json),
                message,
                fault,
            });
        }
        out
    }

    /// Tells of a rule that never tells anybody anything. Harness keeps such rules, and so does a run.
    fn tell_silent(&mut self, rule: Ref<'_>, pipeline: Ref<'_>) {
        let mut tell = |at: Ref<'_>, why: &str, near: Option<&str>| {
            let name = rule.get_text("name").unwrap_or_default();
            let message = format!("the notification rule `{name}` {why}");
            self.faults
                .warn_with(|| Diagnostic::at(Code::BadValue, at, message).suggest(near));
        };
        let events: Vec<_> = rule
            .get("pipelineEvents")
            .into_iter()
            .flat_map(Ref::items)
            .collect();
        if events.is_empty() {
            tell(
                rule,
                "is about no event: its `pipelineEvents` are empty",
                None,
            );
        }
        match rule.get("notificationMethod") {
            None => tell(rule, "tells nobody: it has no `notificationMethod`", None),
            Some(method) if !reaches_somebody(method) => {
                let field = method.get_text("type").and_then(receiver_field);
                let field = field.unwrap_or("userGroups");
                tell(
                    method,
                    &format!("tells nobody: its `{field}` is empty"),
                    None,
                );
            }
            Some(_) => {}
        }
        let mut stages = Vec::new();
        if let Some(list) = pipeline.get("stages") {
            flatten(list, &mut stages);
        }
        let known: Vec<_> = stages
            .iter()
            .filter_map(|stage| stage.get_text("identifier"))
            .collect();
        let named = events.iter().filter_map(|event| event.get("forStages"));
        for name in named
            .flat_map(Ref::items)
            .filter(|name| !name.is_expression())
        {
            let text = name.text().unwrap_or_default();
            // A turn of a loop is called by its stage with something behind it.
            let is_of = |stage: &&str| text.strip_prefix(*stage).is_some_and(is_turn);
            if text != ALL_STAGES && !known.iter().any(is_of) {
                let near = nearest(text, known.iter().copied());
                tell(
                    name,
                    &format!("names the stage `{text}`, which is not in the pipeline"),
                    near,
                );
            }
        }
    }

    /// What the notification template of a rule says; or why the standard message is sent in its place: nothing of what is
    /// deployed depends on the words of a notice, and those who wait for it are better told in others than not at all.
    fn message(&mut self, link: Ref<'_>) -> Result<Option<MessagePlan>, String> {
        let source = super::source(self.request, self.asked);
        let found = template::notification(&source, link, self.request.scope);
        let faults = match found {
            Ok(spec) => return Ok(message_of(&spec)),
            Err(faults) => faults,
        };
        let fault = match faults.as_slice() {
            [missing] if missing.code == Code::NotFound => missing.message.clone(),
            _ => {
                self.faults.extend(faults);
                return Ok(None);
            }
        };
        let told = format!("{fault}; the standard message is sent");
        self.faults
            .warn_with(|| Diagnostic::at(Code::NotFound, link, told));
        Err(fault)
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
    pub(super) fn check_barrier(&mut self, step: Ref<'_>, id: &str) {
        let Some(field) = step.at(&["spec", "barrierRef"]) else {
            return;
        };
        let Some(name) = field.text().filter(|text| !text.contains("<+")) else {
            return;
        };
        let mut all = self.barriers.iter();
        if all.all(|barrier| barrier.identifier.as_str() != name) {
            let message = format!("the barrier `{name}` is not in the pipeline's `flowControl`");
            let known = self
                .barriers
                .iter()
                .map(|barrier| barrier.identifier.as_str());
            let fault =
                Diagnostic::at(Code::NotFound, field, message).suggest(nearest(name, known));
            self.faults.push(fault);
            return;
        }
        self.waiting.insert(NodeId::new(id), place_of(field));
    }
}

fn message_of(spec: &Tree) -> Option<MessagePlan> {
    let body = spec.root().get("body")?;
    Some(MessagePlan {
        kind: body.get_text("type")?.to_owned(),
        content: body.get_text("content")?.to_owned(),
    })
}

/// What a rule means by "all stages", beside naming none.
pub const ALL_STAGES: &str = "AllStages";

/// The field of a method's spec that says where to, by the method's type (`v0/pipeline/notification-channel-wrapper.yaml`).
pub fn receiver_field(method: &str) -> Option<&'static str> {
    match method {
        "Slack" | "Webhook" => Some("webhookUrl"),
        "MsTeams" => Some("msTeamKeys"),
        "PagerDuty" => Some("integrationKey"),
        "Datadog" => Some("url"),
        "Email" => Some("recipients"),
        _ => None,
    }
}

/// Whether a method of this type also reaches the `userGroups` of its spec.
pub fn reaches_groups(method: &str) -> bool {
    matches!(method, "Slack" | "MsTeams" | "PagerDuty" | "Email")
}

fn reaches_somebody(method: Ref<'_>) -> bool {
    let Some(kind) = method.get("type").filter(|kind| !kind.is_expression()) else {
        return true;
    };
    let kind = kind.text().unwrap_or_default();
    let filled = |field: &str| {
        let value = method.at(&["spec", field]);
        let mut texts = value
            .into_iter()
            .flat_map(Ref::scalars)
            .filter_map(Ref::scalar);
        texts.any(|text| !text.trim().is_empty())
    };
    receiver_field(kind).is_some_and(filled) || reaches_groups(kind) && filled("userGroups")
}

/// Whether this stands behind the identifier of a stage in that of one of its turns, or of the stage itself.
fn is_turn(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('_')
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
