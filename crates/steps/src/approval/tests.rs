//! Who may say what, and what comes of it.

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::{Activity, Approval, HarnessApproval, Refusal, Verdict, admit, deciding};
use crate::step::Step;

fn spec(more: Value) -> Value {
    let mut spec = json!({
        "includePipelineExecutionHistory": true,
        "approvers": {"minimumCount": 1, "disallowPipelineExecutor": true, "userGroups": ["leads"], "disallowedUserEmails": ["Eve@localhost"]},
        "approverInputs": [
            {"name": "ticket", "required": true, "regex": "[A-Z]+-[0-9]+"},
            {"name": "zone", "defaultValue": "a", "selectOneFrom": "a, b"},
            {"name": "teams", "selectManyFrom": "x,y,z"},
        ],
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

fn says(who: &str, verdict: Verdict, given: &[(&str, &str)]) -> Result<Activity, Refusal> {
    let approval: Approval = serde_json::from_value(spec(json!({}))).unwrap();
    let given: IndexMap<_, _> = given
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    admit(&approval, "alex", who, verdict, "fine", &given)
}

#[test]
fn a_word_counts_when_the_rules_allow_it() {
    let said = says(
        "sam",
        Verdict::Approve,
        &[("ticket", "SHOP-1"), ("teams", "x, z")],
    )
    .unwrap();
    assert_eq!(
        Value::Object(said.inputs),
        json!({"ticket": "SHOP-1", "zone": "a", "teams": "x, z"})
    );
    // Who rejects need not fill anything in.
    assert!(says("sam", Verdict::Reject, &[]).is_ok());

    type Given<'t> = &'t [(&'t str, &'t str)];
    let table: &[(&str, Given<'_>, &str)] = &[
        ("alex", &[("ticket", "SHOP-1")], "started the run"),
        ("Eve", &[("ticket", "SHOP-1")], "may not answer"),
        ("sam", &[], "`ticket` is required"),
        ("sam", &[("ticket", "shop 1")], "`ticket` does not match"),
        (
            "sam",
            &[("ticket", "A-1"), ("zone", "c")],
            "`zone` is one of a, b",
        ),
        ("sam", &[("ticket", "A-1"), ("teams", "x,w")], "`w` is not"),
        (
            "sam",
            &[("ticket", "A-1"), ("colour", "red")],
            "`colour` is not asked for",
        ),
    ];
    for (who, given, expected) in table {
        let refused = format!("{:?}", says(who, Verdict::Approve, given).unwrap_err());
        assert!(refused.contains(expected), "{who} {given:?}: {refused}");
    }
}

#[test]
fn faults_of_the_spec_show_before_the_run() {
    let deadline = |time: &str, zone: &str| json!({"autoApproval": {"action": "APPROVE", "scheduledDeadline": {"time": time, "timeZone": zone}}});
    let approvers = |count: Value| json!({"approvers": {"minimumCount": count, "disallowPipelineExecutor": false, "userGroups": ["ops"]}});
    let inputs = |inputs: Value| json!({"approverInputs": inputs});
    let table = [
        (json!({}), ""),
        (approvers(json!("<+input>")), ""),
        (approvers(json!(0)), "minimumCount"),
        (approvers(json!(-1)), "minimumCount"),
        (approvers(json!(1000)), ""),
        (approvers(json!(1_u64 << 31)), "from 1 to 1000"),
        (approvers(json!("2147483648")), "from 1 to 1000"),
        (deadline("2026-01-31 06:30 PM", "Asia/Kolkata"), ""),
        (deadline("2026-01-31 18:30", "Asia/Kolkata"), "06:30 PM"),
        (
            deadline("2026-01-31 06:30 PM", "Mars/Olympus"),
            "no time zone",
        ),
        (
            json!({"approverInputs": [{"name": "a", "regex": "("}]}),
            "no regular expression",
        ),
        (
            json!({"approvers": {"minimumCount": 1, "disallowPipelineExecutor": false, "userGroups": []}}),
            "nobody may answer",
        ),
        (
            inputs(json!([{"name": "a"}, {"name": "a"}])),
            "another input has this name",
        ),
        (inputs(json!([{"name": ""}])), "has no name"),
        (
            inputs(json!([{"name": "a", "selectOneFrom": "x,y", "defaultValue": "z"}])),
            "its default `z` is not accepted: `a` is one of x,y",
        ),
        (
            inputs(json!([{"name": "a", "regex": "[0-9]+", "defaultValue": "z"}])),
            "its default `z` is not accepted",
        ),
        (
            inputs(
                json!([{"name": "a", "allowedValues": "<+pipeline.variables.v>", "defaultValue": "z"}]),
            ),
            "",
        ),
        (
            inputs(json!([{"name": "a", "required": true, "selectManyFrom": "x,y"}])),
            "",
        ),
        (json!({"approvals": 1}), "unknown field `approvals`"),
    ];
    for (more, expected) in table {
        let faults = HarnessApproval.check(&spec(more.clone())).join("; ");
        assert_eq!(expected.is_empty(), faults.is_empty(), "{more}: {faults}");
        assert!(faults.contains(expected), "{more}: {faults}");
    }
}

#[test]
fn the_deadline_is_in_its_time_zone() {
    let auto = json!({"action": "APPROVE", "scheduledDeadline": {"time": "2026-01-31 06:30 PM", "timeZone": "Asia/Kolkata"}});
    let approval: Approval = serde_json::from_value(spec(json!({"autoApproval": auto}))).unwrap();
    let deadline = approval.automatic().unwrap().unwrap();
    assert_eq!(deadline.to_string(), "2026-01-31T13:00:00Z");
}

#[test]
fn the_first_word_that_is_enough_decides() {
    let yes =
        |who: &str| says(who, Verdict::Approve, &[("ticket", "A-1")]).expect("a word that counts");
    let no =
        |who: &str| says(who, Verdict::Reject, &[("ticket", "A-1")]).expect("a word that counts");
    for (said, count, expected) in [
        (vec![], 1, None),
        (vec![yes("kim")], 1, Some(0)),
        (vec![yes("kim")], 2, None),
        (vec![yes("kim"), no("mo")], 2, Some(1)),
        (vec![yes("kim"), yes("lee"), no("mo")], 2, Some(1)),
        (vec![no("mo"), yes("kim")], 1, Some(0)),
        (vec![yes("kim")], 0, Some(0)),
    ] {
        assert_eq!(deciding(&said, count), expected, "{count}: {said:?}");
    }
}
