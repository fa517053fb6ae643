use serde_json::json;
use slipway_model::id::{AccountId, EntityId};

use super::*;
use crate::fixture::{deploys, plan, stage};

/// 2026-12-24T12:00:00Z, inside of [`WINDOW`].
const INSIDE: &str = "2026-12-24T12:00:00Z";

fn body(rules: Value) -> Value {
    json!({
        "identifier": "winter", "name": "Winter", "status": "Enabled", "entityConfigs": rules,
        "windows": [{"timeZone": "UTC", "startTime": "2026-12-20 10:00 AM", "duration": "10d"}],
    })
}

fn holds(id: &str, rules: Value, at: &str) -> bool {
    let stage = deploys(stage("deploy", Vec::new()));
    let plan = plan(vec![vec![stage.clone()]]);
    let freeze = Freeze::read(id, &body(rules)).expect("a freeze");
    let now = at.parse().expect("a time");
    freeze.holds(&plan, &stage, now).is_some()
}

fn rule(entities: Value) -> Value {
    json!([{"name": "r", "entities": entities}])
}

fn one(kind: &str, filter: &str, refs: Value) -> bool {
    let entity = json!({"type": kind, "filterType": filter, "entityRefs": refs});
    holds("winter", rule(json!([entity])), INSIDE)
}

#[test]
fn a_rule_covers_what_all_its_entities_fit() {
    let yes = [
        ("Org", "default"),
        ("Project", "shop"),
        ("Pipeline", "release"),
        ("Service", "shop"),
        ("Environment", "prod"),
        ("EnvType", "Production"),
    ];
    for (kind, name) in yes {
        assert!(one(kind, "Equals", json!([name, "other"])), "{kind}");
        assert!(one(kind, "Equals", json!(name)), "{kind}");
        assert!(!one(kind, "Equals", json!(["other"])), "{kind}");
        assert!(!one(kind, "Equals", Value::Null), "{kind}");
        assert!(!one(kind, "NotEquals", json!([name])), "{kind}");
        assert!(one(kind, "NotEquals", json!(["other"])), "{kind}");
        assert!(one(kind, "NotEquals", Value::Null), "{kind}");
        assert!(one(kind, "All", Value::Null), "{kind}");
    }
    // A project may be named with its organization.
    assert!(one("Project", "Equals", json!(["default.shop"])));
    assert!(!one("Project", "NotEquals", json!(["default.shop"])));
    assert!(!one("Project", "Equals", json!(["other.shop"])));
    // The pipeline's service is the project's.
    assert!(!one("Service", "Equals", json!(["account.shop"])));
    let both = |kind: &str| {
        let service = json!({"type": "Service", "filterType": "All"});
        let environment = json!({"type": "EnvType", "filterType": "Equals", "entityRefs": [kind]});
        holds("winter", rule(json!([service, environment])), INSIDE)
    };
    assert!(both("Production") && !both("PreProduction"));
}

#[test]
fn rules_add_up_and_none_is_nothing_but_for_the_freeze_of_all() {
    let no = json!({"name": "no", "entities": [{"type": "Org", "filterType": "Equals", "entityRefs": ["x"]}]});
    let yes = json!({"name": "yes", "entities": [{"type": "Org", "filterType": "All"}]});
    assert!(holds("winter", json!([no, yes]), INSIDE));
    assert!(!holds("winter", json!([no]), INSIDE));
    assert!(!holds("winter", json!([]), INSIDE));
    assert!(holds(GLOBAL, json!([]), INSIDE));
    assert!(!holds(GLOBAL, json!([]), "2026-12-31T12:00:00Z"));
}

fn record(status: &str, window: &str) -> EntityRecord {
    EntityRecord {
        scope: Scope::account(AccountId::new("acme")),
        kind: Kind::Freeze.key().to_owned(),
        parent: None,
        id: EntityId::new("winter"),
        name: "Winter".to_owned(),
        description: None,
        tags: Vec::new(),
        entity_type: None,
        yaml: format!(
            "freeze:\n  name: Winter\n  identifier: winter\n  status: {status} # for now\n  entityConfigs:\n    - name: all\n      \
             entities:\n        - type: Org\n          filterType: All\n  windows:\n    - {window}\n"
        ),
        version: 0,
        created_ms: 0,
        updated_ms: 0,
        connection: None,
        git: None,
        saved_by: None,
    }
}

fn told(record: &EntityRecord, stage: &StagePlan) -> Option<String> {
    let plan = plan(vec![vec![stage.clone()]]);
    let freezes = Freezes(stored(record, "account").into_iter().collect());
    let now = INSIDE.parse().expect("a time");
    let held = freezes.hold(&plan, stage, now);
    held.map(|failure| failure.message)
}

#[test]
fn what_holds_is_told_with_its_end_and_only_deployments_are_held() {
    let window = "{timeZone: Europe/Berlin, startTime: 2026-12-20 10:00 AM, duration: 10d}";
    let deploy = deploys(stage("deploy", Vec::new()));
    insta::assert_snapshot!(
        told(&record("Enabled", window), &deploy).expect("held"),
        @"Stage deploy did not begin: deployments are frozen by the freeze `winter` (Winter) of the account until 2026-12-30 10:00 AM Europe/Berlin. Run it afterwards, or disable the freeze."
    );
    assert_eq!(told(&record("Disabled", window), &deploy), None);
    let mut custom = deploy.clone();
    custom.stage_type = "Custom".to_owned();
    assert_eq!(told(&record("Enabled", window), &custom), None);
}

#[test]
fn a_freeze_that_cannot_be_read_holds_unless_it_is_disabled() {
    let window = "{timeZone: Mars/Olympus, startTime: 2026-12-20 10:00 AM, duration: 10d}";
    let deploy = deploys(stage("deploy", Vec::new()));
    let held = told(&record("Enabled", window), &deploy).expect("held");
    assert!(
        held.contains("windows[0].timeZone: `Mars/Olympus` is no time zone"),
        "{held}"
    );
    assert_eq!(told(&record("Disabled", window), &deploy), None);
    let broken = EntityRecord {
        yaml: "freeze: [".to_owned(),
        ..record("Enabled", window)
    };
    assert!(told(&broken, &deploy).is_some_and(|held| held.contains("cannot be read")));
}
