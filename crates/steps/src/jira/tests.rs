//! Fields, issues, and specs that are refused.

use serde_json::{Value, json};

use super::field::{Meta, find, plain};
use super::issue::Issue;
use super::{JiraApproval, JiraCreate, JiraUpdate};
use crate::criteria::Field;
use crate::step::Step;
use crate::ticket::Stop;

fn meta(schema: Value, allowed: Value) -> Meta {
    let field = json!({"f": {"name": "Field", "schema": schema, "allowedValues": allowed}});
    Meta::of_map(&field).remove("f").expect("a field")
}

#[test]
fn texts_take_the_form_that_their_field_wants() {
    let of = |kind: &str| json!({"type": kind});
    let list = |items: &str| json!({"type": "array", "items": items});
    let none = Value::Null;
    let some = json!([{"id": "10", "value": "Blue"}, {"id": "11", "name": "1.2"}]);
    let table = [
        (
            of("string"),
            none.clone(),
            " as it is ",
            json!(" as it is "),
        ),
        (of("any"), none.clone(), "EPIC-1", json!("EPIC-1")),
        (of("number"), none.clone(), "3", json!(3)),
        (of("number"), none.clone(), "2.5", json!(2.5)),
        (of("date"), none.clone(), "2026-02-03", json!("2026-02-03")),
        (
            of("date"),
            none.clone(),
            "2026-02-03T23:30:00Z",
            json!("2026-02-03"),
        ),
        (
            of("datetime"),
            none.clone(),
            "2026-02-03T23:30:00+01:00",
            json!("2026-02-03T22:30:00.000+0000"),
        ),
        (
            of("datetime"),
            none.clone(),
            "2026-02-03T22:30:00.000+0000",
            json!("2026-02-03T22:30:00.000+0000"),
        ),
        (of("option"), some.clone(), "Blue", json!({"id": "10"})),
        (of("option"), none.clone(), "Red", json!({"value": "Red"})),
        (
            of("priority"),
            none.clone(),
            "High",
            json!({"name": "High"}),
        ),
        (of("priority"), none.clone(), "", Value::Null),
        (
            of("issuelink"),
            none.clone(),
            "SHOP-1",
            json!({"key": "SHOP-1"}),
        ),
        (list("string"), none.clone(), "a, b,", json!(["a", "b"])),
        (
            list("version"),
            some,
            "1.2,1.3",
            json!([{"id": "11"}, {"name": "1.3"}]),
        ),
        (
            json!({"type": "array", "items": "json", "custom": "com.pyxis.greenhopper.jira:gh-sprint"}),
            none,
            "7",
            json!(7),
        ),
    ];
    for (schema, allowed, text, expected) in table {
        let value = plain(&meta(schema.clone(), allowed), text).expect("a value");
        assert_eq!(value, expected, "{schema} {text}");
    }
    let refused = [
        (of("number"), "three", "wants a number"),
        (of("date"), "tomorrow", "wants a day"),
        (of("datetime"), "2026-02-03", "wants a time"),
        (of("status"), "Done", "transitionTo"),
        (of("option-with-child"), "a", "which the steps cannot set"),
        (list("attachment"), "a", "which the steps cannot set"),
    ];
    for (schema, text, expected) in refused {
        let stop = plain(&meta(schema, Value::Null), text).expect_err("no value");
        let Stop::Over(failure) = stop else {
            panic!("{stop:?}")
        };
        assert!(failure.message.contains(expected), "{}", failure.message);
    }
}

fn answer() -> Value {
    json!({
        "id": "10002", "key": "SHOP-7",
        "fields": {
            "status": {"name": "To Do", "id": "1"}, "summary": "Release", "labels": ["a", "b"], "resolution": null,
            "project": {"key": "SHOP", "name": "The shop"}, "reporter": {"displayName": "Sam", "accountId": "5"},
            "timetracking": {"originalEstimate": "2h"}, "customfield_1": {"value": "\u{FDD0}account.root\u{FDD1}"},
            "customfield_2": {"self": "http://x", "progress": 1},
        },
        "names": {"status": "Status", "summary": "Summary", "labels": "Labels", "resolution": "Resolution",
            "customfield_1": "Customer Name", "customfield_2": "Progress"},
    })
}

#[test]
fn an_issue_is_read_by_the_names_that_people_see() {
    let issue =
        Issue::read(&answer(), |key| format!("https://jira/browse/{key}")).expect("an issue");
    let (outputs, left_out) = issue.outputs();
    let shown = &outputs["issue"];
    assert_eq!(left_out, Vec::<String>::new());
    assert_eq!(shown["key"], "SHOP-7");
    assert_eq!(shown["url"], "https://jira/browse/SHOP-7");
    assert_eq!(shown["Status"], "To Do");
    assert_eq!(shown["Project Key"], "SHOP");
    assert_eq!(shown["Original Estimate"], "2h");
    assert_eq!(shown["reporter"], "Sam");
    assert_eq!(shown["Progress"]["progress"], 1);
    let secret =
        slipway_expr::secret::SecretText::decode(shown["Customer Name"].as_str().expect("a text"));
    assert!(
        !secret.has_secrets(),
        "a text of Jira is data, whatever it looks like"
    );
    assert_eq!(issue.field("customfield_2"), issue.field("Progress"));
    assert_eq!(
        issue.field("Labels"),
        Some(Field::Many(vec!["a".into(), "b".into()]))
    );
    assert_eq!(
        issue.field("Resolution"),
        Some(Field::One(vec![String::new()]))
    );
    assert_eq!(issue.field("Statsu"), None);
    assert!(Issue::read(&json!({"errorMessages": []}), |_| String::new()).is_none());
}

#[test]
fn a_field_without_end_is_left_out_of_the_outputs() {
    let mut answer = answer();
    answer["fields"]["description"] = Value::from("x".repeat(1024 * 1024));
    let issue = Issue::read(&answer, |_| String::new()).expect("an issue");
    let (outputs, left_out) = issue.outputs();
    assert_eq!(left_out, ["description"]);
    assert_eq!(outputs["issue"]["Status"], "To Do");
    assert!(issue.field("description").is_some(), "criteria read it");
}

#[test]
fn specs_are_checked_before_the_run() {
    let criteria = json!({"type": "KeyValues", "spec": {"conditions": [{"key": "Status", "operator": "equals", "value": "Done"}]}});
    let approval = |more: Value| {
        let mut spec =
            json!({"connectorRef": "jira", "issueKey": "SHOP-7", "approvalCriteria": criteria});
        for (name, value) in more.as_object().expect("fields") {
            spec[name] = value.clone();
        }
        JiraApproval.check(&spec).join("; ")
    };
    assert_eq!(
        approval(
            json!({"issueKey": "<+execution.steps.a.issue.key>", "retryInterval": "", "projectKey": "SHOP"})
        ),
        ""
    );
    let table = [
        (json!({"issueKey": "../SHOP"}), "no key of an issue"),
        (json!({"retryInterval": "soon"}), "retryInterval"),
        (json!({"issue": "x"}), "unknown field `issue`"),
        (
            json!({"approvalCriteria": {"type": "KeyValues", "spec": {"conditions": []}}}),
            "at least one condition",
        ),
    ];
    for (more, expected) in table {
        let faults = approval(more.clone());
        assert!(faults.contains(expected), "{more}: {faults}");
    }
    let create = json!({"connectorRef": "jira", "projectKey": "a b", "issueType": "Task", "fields": [{"value": "x"}]});
    assert_eq!(JiraCreate.check(&create).len(), 2);
    let update =
        json!({"connectorRef": "jira", "issueKey": "<+input>", "transitionTo": {"status": "Done"}});
    assert_eq!(JiraUpdate.check(&update), Vec::<String>::new());
}

#[test]
fn a_name_that_several_fields_have_is_refused() {
    let field = |name: &str| json!({"name": name, "schema": {"type": "string"}});
    let known = Meta::of_map(&json!({
        "customfield_1": field("Colour"),
        "customfield_7": field("Colour"),
        "customfield_8": field("Team"),
        "customfield_9": field("team"),
    }));
    let table = [
        ("customfield_7", Ok("customfield_7")),
        ("Team", Ok("customfield_8")),
        ("Colour", Err("customfield_1, customfield_7")),
        ("TEAM", Err("customfield_8, customfield_9")),
    ];
    for (name, expected) in table {
        match (find(name, &known), expected) {
            (Ok((id, _)), Ok(expected)) => assert_eq!(id, expected),
            (Err(Stop::Over(failure)), Err(ids)) => {
                assert!(failure.message.contains(ids), "{}", failure.message);
            }
            (found, _) => panic!("{name}: {:?}", found.map(|(id, _)| id)),
        }
    }
}
