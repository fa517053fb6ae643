//! What a freeze tells by itself, and when it is looked at again.

use slipway_model::id::AccountId;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// An enabled freeze of the nights from one to four, which tells some events.
fn record(status: &str, events: &str) -> EntityRecord {
    let yaml = format!(
        "freeze:\n  name: Night\n  identifier: night\n  status: {status}\n  entityConfigs: [{{name: all, entities: \
         [{{type: Org, filterType: All}}]}}]\n  windows:\n    - timeZone: UTC\n      startTime: 2026-01-01 01:00 AM\n      \
         duration: 3h\n      recurrence: {{type: Daily, spec: {{until: 2026-01-03 11:59 PM}}}}\n  \
         notificationRules:\n    - name: hook\n      events: [{events}]\n      notificationMethod: {{type: Webhook, spec: \
         {{webhookUrl: https://example.com}}}}\n"
    );
    EntityRecord {
        scope: Scope::account(AccountId::new("acme")),
        kind: "freeze".to_owned(),
        parent: None,
        id: EntityId::new("night"),
        name: "Night".to_owned(),
        description: None,
        tags: Vec::new(),
        entity_type: None,
        yaml,
        version: 3,
        created_ms: 1,
        updated_ms: 7,
        connection: None,
        git: None,
        saved_by: None,
    }
}

fn watch(until: &str, after: &str) -> FreezeWatch {
    FreezeWatch {
        freeze: SavedFreeze::of(&record("Enabled", "")),
        watch: true,
        until: at(until),
        after: at(after),
    }
}

/// Starts of the windows that are told, and when is looked next.
fn looked(watch: &FreezeWatch, record: &EntityRecord, now: &str) -> (Vec<i64>, Option<String>) {
    let looked = look(watch, Some(record), at(now));
    let told = looked.notices.iter().map(|notice| match notice.event {
        FreezeEvent::FreezeWindowEnabled { starts_ms, .. } => starts_ms,
        _ => panic!("{notice:?}"),
    });
    let next = looked.next.map(|next| next.until.to_string());
    (told.collect(), next)
}

#[test]
fn windows_are_told_when_they_open_and_the_next_one_is_watched() {
    let night = record("Enabled", "{type: FreezeWindowEnabled}");
    let first = watch("2026-01-01T01:00:00Z", "2026-01-01T00:00:00Z");
    let opened = at("2026-01-01T01:00:00Z").as_millisecond();
    let next = Some("2026-01-02T01:00:00Z".to_owned());
    assert_eq!(
        looked(&first, &night, "2026-01-01T01:00:00Z"),
        (vec![opened], next.clone())
    );
    // A clock that is behind starts no watch twice.
    assert_eq!(
        looked(&first, &night, "2026-01-01T00:59:58Z"),
        (vec![opened], next.clone())
    );
    // Who comes too late has nothing to tell of a window that is over.
    assert_eq!(
        looked(&first, &night, "2026-01-01T05:00:00Z"),
        (vec![], next)
    );
    // The recurrence is over.
    let last = watch("2026-01-03T01:00:00Z", "2026-01-02T01:00:00Z");
    let (told, next) = looked(&last, &night, "2026-01-03T01:00:00Z");
    assert_eq!((told.len(), next), (1, None));
    // A look before the window opens, as after 300 days, tells nothing.
    let early = watch("2026-01-01T00:30:00Z", "2026-01-01T00:00:00Z");
    let (told, next) = looked(&early, &night, "2026-01-01T00:30:00Z");
    assert_eq!(
        (told.len(), next.as_deref()),
        (0, Some("2026-01-01T01:00:00Z"))
    );
}

#[test]
fn what_was_changed_disabled_or_deleted_tells_nothing() {
    let watch = watch("2026-01-01T01:00:00Z", "2026-01-01T00:00:00Z");
    let now = "2026-01-01T01:00:00Z";
    let wish = "{type: FreezeWindowEnabled}";
    let newer = EntityRecord {
        updated_ms: 8,
        ..record("Enabled", wish)
    };
    for record in [record("Disabled", wish), newer] {
        assert_eq!(looked(&watch, &record, now), (vec![], None));
    }
    assert_eq!(look(&watch, None, at(now)).next, None);
    // Nobody wants to know.
    let others = record("Enabled", "{type: OnEnableFreezeWindow}");
    assert_eq!(looked(&watch, &others, now), (vec![], None));
}

#[test]
fn windows_far_away_are_looked_for_in_several_waits() {
    let mut far = record("Enabled", "{type: FreezeWindowEnabled}");
    far.yaml = far
        .yaml
        .replace("2026-01-01 01:00 AM", "2028-01-01 01:00 AM");
    far.yaml = far.yaml.replace("2026-01-03", "2029-01-03");
    let freeze = enabled(&far).expect("a freeze");
    let mut now = at("2026-01-01T00:00:00Z");
    let mut waits = 0;
    while let Some(next) = next_watch(&far, &freeze, now) {
        assert!(next.until.as_millisecond() - now.as_millisecond() <= LONGEST_WATCH_MS);
        (now, waits) = (next.until, waits + 1);
        if now == at("2028-01-01T01:00:00Z") {
            assert_eq!(waits, 3);
            return;
        }
    }
    panic!("the window was never reached");
}

#[test]
fn a_trigger_that_is_rejected_is_told_as_a_rejected_deployment_too() {
    let event = FreezeEvent::TriggerInvocationRejectedDueToFreeze {
        pipeline: EntityId::new("release"),
        trigger: "WEBHOOK_CUSTOM".to_owned(),
        who: PrincipalId::new("alex"),
        at_ms: 5,
        message: "frozen".to_owned(),
    };
    let told = |wish: &str| notices(&record("Enabled", wish), &event).len();
    assert_eq!(told("{type: TriggerInvocationRejectedDueToFreeze}"), 1);
    assert_eq!(told("{type: DeploymentRejectedDueToFreeze}"), 1);
    assert_eq!(
        told("{type: DeploymentRejectedDueToFreeze}, {type: TriggerInvocationRejectedDueToFreeze}"),
        1
    );
    assert_eq!(told("{type: FreezeWindowEnabled}"), 0);
    // What is written is read as the same.
    let notice = &notices(
        &record("Enabled", "{type: DeploymentRejectedDueToFreeze}"),
        &event,
    )[0];
    let written = serde_json::to_value(notice).expect("JSON");
    let read: FreezeNotice = serde_json::from_value(written).expect("a notice");
    assert_eq!(&read, notice);
    assert!(notice.id().len() <= 80, "{}", notice.id());
}
