//! Payloads that are not as their provider sends them: errors that name the field, or events, and never a panic.

use proptest::prelude::*;
use serde_json::{Value, json};
use slipway_trigger::webhook;

use crate::named;
use crate::recorded::{Recorded, decided, delivery, listening, recorded};

/// All paths below a value, as keys and positions.
fn paths(value: &Value, here: &str, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(at, value)| (at.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (name, child) in children {
        let path = format!("{here}/{name}");
        paths(child, &path, found);
        found.push(path);
    }
}

#[test]
fn payloads_with_a_field_missing_or_of_another_kind_are_errors_or_events() {
    let kinds = [
        json!(null),
        json!(true),
        json!(-1),
        json!(""),
        json!("x"),
        json!([null]),
        json!({"a": []}),
    ];
    let mut errors = 0;
    for one in firsts() {
        let mut all = Vec::new();
        paths(&one.body, "", &mut all);
        for path in all {
            for kind in kinds.iter().map(Some).chain([None]) {
                let mut body = one.body.clone();
                let Some(place) = body.pointer_mut(&path) else {
                    continue;
                };
                match kind {
                    Some(kind) => *place = kind.clone(),
                    None => remove(&mut body, &path),
                }
                match one.heard_of(&body) {
                    Ok(heard) => {
                        for event in heard.events() {
                            for (_, _, _, spec) in listening().iter().take(3) {
                                let _ = decided(spec, &event, None);
                            }
                        }
                    }
                    Err(why) => {
                        errors += 1;
                        assert!(why.len() < 400, "{} {path}: {why}", one.name);
                        let says = why.contains('`')
                            || why.contains("Git allows")
                            || why.contains("are not accepted");
                        assert!(says, "{} {path}: {why}", one.name);
                    }
                }
            }
        }
    }
    assert!(errors > 1000, "{errors}");
}

fn remove(body: &mut Value, path: &str) {
    let Some((parent, name)) = path.rsplit_once('/') else {
        return;
    };
    match body.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.remove(name);
        }
        Some(Value::Array(items)) => {
            items.pop();
        }
        _ => {}
    }
}

#[test]
fn an_error_names_the_field() {
    let why = |name: &str, path: &str, value: Value| {
        named(name).with(path, value).heard().expect_err(name)
    };
    let said = [
        why("github_push", "repository.full_name", json!(null)),
        why("github_push", "commits", json!({"a": 1})),
        why("github_push", "commits", json!([{"added": [1]}])),
        why(
            "github_pull_request",
            "pull_request.head.ref",
            json!({"a": "rounding"}),
        ),
        why("github_pull_request", "pull_request.number", json!(-42)),
        why("gitlab_push", "project", json!([])),
        why(
            "bitbucket_push",
            "push.changes",
            json!([{"new": {"type": "branch"}}]),
        ),
        why("azure_push", "resource.refUpdates", json!([7])),
    ];
    insta::assert_snapshot!(said.join("\n"));
}

/// Any JSON, not too deep.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z/._0]{0,12}".prop_map(Value::from),
    ];
    let keys = prop_oneof![
        "[a-z_]{1,8}".prop_map(|key| key),
        proptest::sample::select(vec![
            "action",
            "ref",
            "after",
            "before",
            "repository",
            "pull_request",
            "object_kind",
            "object_attributes",
            "project",
            "push",
            "changes",
            "new",
            "old",
            "eventType",
            "resource",
            "refUpdates",
            "commits",
            "pullrequest",
            "sha",
            "repo",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::hash_map(keys.clone(), inner, 0..8)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// The first variant of each file.
fn firsts() -> Vec<Recorded> {
    let all = recorded().into_iter();
    all.filter(|one| !one.name.contains('#')).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_json_under_any_header_is_heard_or_refused(body in any_json()) {
        static ALL: std::sync::OnceLock<Vec<Recorded>> = std::sync::OnceLock::new();
        for one in ALL.get_or_init(firsts) {
            let _ = one.heard_of(&body);
        }
        let _ = webhook::provider_of(&delivery(&json!({}), &body));
    }
}
