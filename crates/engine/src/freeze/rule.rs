//! Notification rules of a freeze: those of a pipeline with other events (developer-hub, *Freeze deployments*, "Notify
//! users of freeze window events").

use serde_json::Value;
use slipway_model::entity;
use slipway_plan::{EventPlan, NotificationPlan};
use slipway_store::record::EntityRecord;

/// The rules of a stored freeze, in order; none where its text cannot be read.
pub fn notification_rules(record: &EntityRecord) -> Vec<NotificationPlan> {
    match entity::parse(record.id.as_str(), &record.yaml) {
        Ok(parsed) => of_body(&parsed.to_json()),
        Err(_) => Vec::new(),
    }
}

/// `customizedMessage` of a rule of a stored freeze: what its author wants to say to those who are told.
pub fn customized_message(record: &EntityRecord, rule: usize) -> Option<String> {
    let parsed = entity::parse(record.id.as_str(), &record.yaml).ok()?;
    let body = parsed.to_json();
    let text = body["notificationRules"][rule]["customizedMessage"].as_str()?;
    (!text.trim().is_empty()).then(|| text.to_owned())
}

fn of_body(body: &Value) -> Vec<NotificationPlan> {
    let rules = body["notificationRules"].as_array().into_iter().flatten();
    let rules = rules.map(|rule| {
        let events = rule["events"].as_array().into_iter().flatten();
        let events = events.filter_map(|event| event["type"].as_str());
        NotificationPlan {
            name: rule["name"].as_str().unwrap_or_default().to_owned(),
            enabled: !matches!(rule["enabled"].to_string().trim_matches('"'), "false"),
            events: events
                .map(|kind| EventPlan {
                    kind: kind.to_owned(),
                    stages: Vec::new(),
                    steps: Vec::new(),
                })
                .collect(),
            method: rule.get("notificationMethod").cloned(),
            template: None,
            message: None,
            fault: None,
        }
    });
    rules.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn rules_are_read_in_order() {
        let body = json!({"notificationRules": [
            {"name": "a", "events": [{"type": "FreezeWindowEnabled"}], "notificationMethod": {"type": "Slack"}},
            {"name": "b", "enabled": false, "events": []},
            {"name": "c", "enabled": "false"},
        ]});
        let rules = super::of_body(&body);
        let told: Vec<_> = rules
            .iter()
            .map(|rule| (rule.name.as_str(), rule.enabled, rule.events.len()))
            .collect();
        assert_eq!(told, [("a", true, 1), ("b", false, 0), ("c", false, 0)]);
    }
}
