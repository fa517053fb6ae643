//! Tables of conditions.

use serde_json::{Value as Json, json};
use slipway_expr::{Context, Segment, Value};

use super::*;

struct Nothing;

impl Context for Nothing {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        let keys: Vec<_> = path.iter().filter_map(Segment::key).collect();
        (keys == ["pipeline", "name"]).then(|| "Release".into())
    }
}

fn issue() -> Json {
    json!({"Status": "In Review", "Labels": ["a", "b"], "Story Points": 3, "Resolution": null, "Team": "Release"})
}

fn judge(criteria: Json) -> Result<Judgement, Failure> {
    let criteria: Criteria = serde_json::from_value(criteria).expect("criteria");
    let names = [("issue", Value::from_json(&issue()))];
    let subject = Subject {
        names: Names::new(&Nothing, &names),
        field: &|name| issue().get(name).map(Field::of_json),
    };
    criteria.judge(&subject)
}

fn condition(key: &str, operator: &str, value: &str) -> Json {
    json!({"key": key, "operator": operator, "value": value})
}

fn conditions(any: Json, conditions: &[Json]) -> Json {
    json!({"type": "KeyValues", "spec": {"matchAnyCondition": any, "conditions": conditions}})
}

#[test]
fn a_condition_compares_one_value_or_several() {
    let table = [
        ("Status", "equals", "In Review", true),
        ("Status", "equals", "in review", false),
        ("Status", "not equals", "Done", true),
        ("Status", "in", "Done, In Review", true),
        ("Status", "in", "Done,Review", false),
        ("Status", "not in", "Done, In Review", false),
        ("Status", "not in", "Done", true),
        ("Story Points", "equals", "3", true),
        ("Resolution", "equals", "Done", false),
        ("Resolution", "not equals", "Done", true),
        ("Labels", "equals", "b, a", true),
        ("Labels", "equals", "a", false),
        ("Labels", "not equals", "a", true),
        ("Labels", "in", "a,b,c", true),
        ("Labels", "in", "a,c", false),
        ("Labels", "not in", "c", true),
        ("Labels", "not in", "b", false),
        ("Team", "equals", "<+pipeline.name>", true),
        // A slip of a name holds neither way.
        ("Statsu", "equals", "Done", false),
        ("Statsu", "not equals", "Done", false),
        ("Statsu", "not in", "Done", false),
    ];
    for (key, operator, value, expected) in table {
        let criteria = conditions(json!(false), &[condition(key, operator, value)]);
        let judged = judge(criteria).expect("a judgement");
        assert_eq!(
            judged.holds, expected,
            "{key} {operator} {value}: {}",
            judged.seen
        );
    }
}

#[test]
fn all_conditions_must_hold_or_any_of_them() {
    let both = [
        condition("Status", "equals", "In Review"),
        condition("Status", "equals", "Done"),
    ];
    let cases = [
        (json!(false), false),
        (json!(true), true),
        (json!("true"), true),
        (json!(null), false),
    ];
    for (any, expected) in cases {
        let judged = judge(conditions(any.clone(), &both)).expect("a judgement");
        assert_eq!(judged.holds, expected, "{any}");
    }
    let seen = judge(conditions(
        json!(false),
        &[condition("Statsu", "equals", "x")],
    ))
    .expect("a judgement");
    assert_eq!(seen.seen, "there is no field `Statsu`");
}

#[test]
fn an_expression_reads_the_issue_and_the_run() {
    let jexl = |text: &str| json!({"type": "Jexl", "spec": {"expression": text}});
    let holds = |text: &str| judge(jexl(text)).map(|judged| judged.holds);
    assert_eq!(
        holds("<+issue.Status> == \"In Review\" && <+issue.\"Story Points\"> > 2"),
        Ok(true)
    );
    assert_eq!(holds("<+issue.Team> == <+pipeline.name>"), Ok(true));
    assert_eq!(holds("<+issue.Resolution> == \"Done\""), Ok(false));
    assert_eq!(holds(""), Ok(false));
    let failure = holds("<+issue.Statsu> == \"Done\"").expect_err("no such field");
    assert!(
        failure.message.contains("issue.Statsu"),
        "{}",
        failure.message
    );
}

#[test]
fn criteria_of_nothing_never_hold_and_approve_nobody() {
    let none: Criteria = serde_json::from_value(conditions(json!(true), &[])).expect("criteria");
    assert!(
        !judge(conditions(json!(true), &[]))
            .expect("a judgement")
            .holds
    );
    let found = faults(&none, Some(&none));
    assert_eq!(
        found,
        ["approvalCriteria: at least one condition or an expression is needed"]
    );
    let wrong: Criteria = serde_json::from_value(
        json!({"type": "Jexl", "spec": {"expression": "<+issue.Status> =="}}),
    )
    .expect("criteria");
    assert!(faults(&wrong, None)[0].starts_with("approvalCriteria.spec.expression: "));
    for bad in [
        json!({"type": "Regex", "spec": {}}),
        conditions(json!(false), &[condition("a", "like", "b")]),
    ] {
        assert!(serde_json::from_value::<Criteria>(bad).is_err());
    }
}
