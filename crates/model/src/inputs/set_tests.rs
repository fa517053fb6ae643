//! Input sets, overlays, and what stands behind `<+input>`.

use proptest::prelude::*;

use super::*;
use crate::diagnostic::Diagnostic;
use crate::entity::{Parsed, parse};
use crate::id::EntityId;
use crate::{Tree, yaml};

const PIPELINE: &str = "
pipeline:
  identifier: p
  name: p
  variables:
    - {name: tag, type: String, value: <+input>}
    - {name: zone, type: String, value: '<+input>.default(a).selectManyFrom(a,b,c)'}
  stages:
    - stage: {identifier: s, name: s, template: {templateRef: t, templateInputs: {spec: {execution: {steps: [
        {insert: {identifier: i, name: i, steps: <+input>}},
        {step: {identifier: w, template: {templateInputs: {spec: {duration: <+input>}}}}}]}}}}}
";

fn told<T>(found: Result<T, Vec<Diagnostic>>) -> String {
    let faults = found.err().unwrap_or_default();
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

fn set(id: &str, pipeline: &str) -> String {
    format!(
        "inputSet: {{identifier: {id}, name: {id}, orgIdentifier: default, projectIdentifier: shop, pipeline: {{identifier: p, {pipeline}}}}}"
    )
}

fn sets() -> Vec<Parsed> {
    let yaml = [
        set("base", "variables: [{name: tag, type: String, value: v1}, {name: zone, type: String, value: 'b,c'}]"),
        set("over", "variables: [{name: tag, type: String, value: v2}], stages: [{stage: {identifier: s, template: {templateInputs: {spec: {execution: {steps: [{step: {identifier: w, template: {templateInputs: {spec: {duration: 10s}}}}}]}}}}}}]"),
        set("open", "variables: [{name: tag, type: String, value: <+input>}]"),
        "overlayInputSet: {identifier: both, name: both, pipelineIdentifier: p, inputSetReferences: [base, over]}".to_owned(),
        "overlayInputSet: {identifier: deep, name: deep, pipelineIdentifier: p, inputSetReferences: [both, gone]}".to_owned(),
        set("other", "variables: []").replace("identifier: p,", "identifier: q,"),
    ];
    yaml.iter()
        .map(|yaml| parse("set", yaml).unwrap())
        .collect()
}

fn documents(names: &[&str]) -> Result<Vec<Tree>, Vec<Diagnostic>> {
    let names: Vec<_> = names.iter().map(|name| EntityId::new(*name)).collect();
    let sets = sets();
    let find = |id: &EntityId| sets.iter().find(|set| set.head.identifier == *id).cloned();
    of_sets(&names, &EntityId::new("p"), &find)
}

fn merged(names: &[&str]) -> Result<Parsed, Vec<Diagnostic>> {
    let trees = documents(names)?;
    let trees: Vec<&Tree> = trees.iter().collect();
    merge(&parse("p", PIPELINE).unwrap(), &trees)
}

fn variables(pipeline: &Parsed) -> Vec<String> {
    let list = pipeline.body().get("variables").unwrap();
    list.items()
        .map(|item| item.get_text("value").unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn the_later_set_wins() {
    assert_eq!(variables(&merged(&["both"]).unwrap()), ["v2", "b,c"]);
    assert_eq!(
        variables(&merged(&["over", "base"]).unwrap()),
        ["v1", "b,c"]
    );
    assert_eq!(variables(&merged(&["over", "open"]).unwrap()), ["v2", "a"]);
    let whole = merged(&["over"]).unwrap();
    // Nothing is inserted where nothing is given.
    let insert = whole.tree.root().path();
    assert!(insert.is_empty() && !crate::emit::to_yaml(&whole.tree).contains("steps: <+input>"));
}

#[test]
fn sets_that_do_not_fit_say_why() {
    let cases: &[(&[&str], &str)] = &[
        (&["gone"], "the input set `gone` does not exist"),
        (&["deep"], "`both` is no input set"),
        (&["deep"], "the input set `gone` does not exist"),
        (
            &["other"],
            "set:1:116: inputSet.pipeline.identifier: the input set `other` is for the pipeline `q`, not for `p`",
        ),
    ];
    for (names, expected) in cases {
        let found = told(documents(names));
        assert!(found.contains(expected), "{names:?}\n{found}");
    }
    let found = told(merged(&["open"]));
    assert!(
        found.contains("the runtime input `tag` has no value"),
        "{found}"
    );
    assert!(
        found.contains("the runtime input `duration` has no value"),
        "{found}"
    );

    let pipeline = parse("p", PIPELINE).unwrap();
    for (given, expected) in [
        ("variables: [{name: tag, type: String, value: x}]", ""),
        (
            "variables: [{name: gone, type: String, value: x}]",
            "`gone` is no runtime input",
        ),
        (
            "variables: [{name: zone, type: String, value: 'a,d'}]",
            "`a,d` is not allowed here; expected one of a, b, c",
        ),
        ("timeout: 1h", "`timeout` is no runtime input"),
    ] {
        let found = told(check_set(
            &parse("set", &set("x", given)).unwrap(),
            &pipeline,
        ));
        assert!(
            found.contains(expected) && found.is_empty() == expected.is_empty(),
            "{given}\n{found}"
        );
    }
}

#[test]
fn several_services_are_told_apart_by_their_references() {
    let text = "pipeline: {identifier: p, name: p, stages: [{stage: {identifier: s, name: s, type: Deployment, failureStrategies: [], spec: {deploymentType: ECS,
        services: {values: [{serviceRef: a}, {serviceRef: b, serviceInputs: <+input>}]},
        environments: {values: [{environmentRef: x, deployToAll: true}, {environmentRef: y, deployToAll: <+input>}]}, execution: {steps: []}}}}]}";
    let pipeline = parse("p", text).unwrap();
    let page = crate::emit::to_yaml(&template(&pipeline.tree).unwrap());
    assert!(
        page.contains("serviceRef: b") && !page.contains("serviceRef: a"),
        "{page}"
    );
    assert!(
        page.contains("environmentRef: y") && !page.contains("environmentRef: x"),
        "{page}"
    );
    let given = page.replace(
        "serviceInputs: <+input>",
        "serviceInputs: {serviceDefinition: {type: ECS}}",
    );
    let given = yaml::parse(
        "in",
        &given.replace("deployToAll: <+input>", "deployToAll: true"),
    )
    .unwrap();
    let merged = merge(&pipeline, &[&given]).unwrap();
    assert!(!crate::emit::to_yaml(&merged.tree).contains("<+input>"));
}

#[test]
fn calls_stand_in_any_order() {
    let calls = [
        ".default(a)",
        ".allowedValues(a,b)",
        ".regex(^[ab]$)",
        ".executionInput()",
    ];
    let whole = RuntimeInput::parse(&format!("<+input>{}", calls.concat())).unwrap();
    for first in 0..4 {
        for second in 0..4 {
            let mut order: Vec<&str> = calls.to_vec();
            order.swap(0, first);
            order.swap(1, second);
            let text = format!("<+input>{}", order.concat());
            assert_eq!(RuntimeInput::parse(&text).as_ref(), Some(&whole), "{text}");
        }
    }
}

#[test]
fn values_are_taken_apart_at_commas_outside_of_quotes() {
    let cases: &[(&str, &[&str])] = &[
        ("a,b", &["a", "b"]),
        (r"\'london,uk\',paris", &["london,uk", "paris"]),
        (r#"\"x, y\" , z"#, &["x, y", "z"]),
        ("'it',it's,b", &["it", "it's", "b"]),
        (
            "json({\"a\":1,\"b\":2}),x",
            &["json({\"a\":1,\"b\":2})", "x"],
        ),
        ("ä,日本", &["ä", "日本"]),
        (", ,a,", &["a"]),
    ];
    for (text, expected) in cases {
        let input = RuntimeInput::parse(&format!("<+input>.selectOneFrom({text})")).unwrap();
        assert_eq!(input.allowed, *expected, "{text}");
    }
    let bracket = RuntimeInput::parse("<+input>.default(a)b).allowedValues(x)").unwrap();
    assert_eq!(bracket.default.as_deref(), Some("a)b"));
}

#[test]
fn checks_say_what_is_allowed() {
    let cases = [
        ("<+input>.allowedValues(a,b)", "a", None),
        ("<+input>.allowedValues(a,b)", "a,b", Some("one of a, b")),
        ("<+input>.selectManyFrom(a,b)", "a, b", None),
        (r"<+input>.selectManyFrom(\'x,y\',b)", "'x,y',b", None),
        ("<+input>.selectManyFrom(a,b)", "a,c", Some("one of a, b")),
        (
            "<+input>.allowedValues(<+pipeline.variables.list>)",
            "z",
            None,
        ),
        (
            "<+input>.regex([0-9]+)",
            "12x",
            Some("a text that matches [0-9]+"),
        ),
        (
            "<+input>.allowedValues(1,22).regex([0-9])",
            "22",
            Some("a text that matches [0-9]"),
        ),
    ];
    for (input, given, expected) in cases {
        let found = RuntimeInput::parse(input).unwrap().check(given);
        assert_eq!(found.err().as_deref(), expected, "{input} {given}");
    }
}

#[test]
fn a_default_must_be_allowed_too() {
    let text = PIPELINE.replace("default(a)", "default(z)");
    let pipeline = parse("p", &text).unwrap();
    let given = yaml::parse("in", "pipeline: {variables: [{name: tag, value: x}]}").unwrap();
    let found = told(merge(&pipeline, &[&given]));
    assert!(
        found.contains("`z` is not allowed here; expected one of a, b, c"),
        "{found}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn no_text_breaks_the_reader(text in "(<\\+input>)?(\\.(default|regex|allowedValues|selectManyFrom|executionInput)\\([\\PC]{0,12}\\)?){0,4}", value in "\\PC{0,8}") {
        if let Some(input) = RuntimeInput::parse(&text) {
            let _ = input.check(&value);
        }
    }
}
