//! Pipelines that are well-formed and cannot run: missing entities, missing inputs, loops of references.

use slipway_tests::LocalProcess;

use crate::{accept, code, errors, outcome, pipeline, run, script, shop, wait};

#[tokio::test]
async fn what_a_pipeline_refers_to_and_is_not_there_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path(), true).await;
    let golden = std::fs::read_to_string(slipway_tests::checkout(
        "templates/ecs-rolling/pipeline.yaml",
    ));
    let golden = golden.expect("the golden pipeline");
    let cases = [
        ("serviceRef: shop", "serviceRef: shoop", "shoop"),
        (
            "environmentRef: production",
            "environmentRef: staging",
            "staging",
        ),
        (
            "- identifier: shop_cluster",
            "- identifier: nowhere",
            "nowhere",
        ),
    ];
    for (from, to, says) in cases {
        accept(
            &local,
            dir.path(),
            "pipeline.yaml",
            &golden.replace(from, to),
        );
        let refused = local.slipway(&["run", "deploy_shop", "--input", "tag=1.0"]);
        let why = errors(&refused);
        assert_eq!(code(&refused), 1, "{why}");
        assert!(why.contains("deploy_shop:"), "{why}");
        assert!(why.contains(says), "{why}");
    }
    let unknown = local.slipway(&["run", "nothing"]);
    assert_eq!(code(&unknown), 1);
    assert!(errors(&unknown).contains("nothing"), "{}", errors(&unknown));
    let runs = local.json(&["list", "run", "-o", "json"]);
    assert_eq!(runs, serde_json::json!([]), "a refused start leaves no run");
}

#[test]
fn every_missing_input_is_listed_and_unknown_ones_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(&dir.path().join("data"));
    let variables = "- name: one\n  type: String\n  value: <+input>\n\
                     - name: two\n  type: String\n  value: <+input>.allowedValues(a,b)\n";
    accept(
        &local,
        dir.path(),
        "p.yaml",
        &pipeline("asks", variables, &wait("w", "1s")),
    );
    let missing = local.slipway(&["run", "asks"]);
    let why = errors(&missing);
    assert_ne!(code(&missing), 0);
    assert!(why.contains("one") && why.contains("two"), "{why}");

    let wrong = local.slipway(&["run", "asks", "--input", "one=1", "--input", "two=c"]);
    assert_ne!(code(&wrong), 0);
    let why = errors(&wrong);
    assert!(
        why.contains("`c`") && why.contains("variables[1]") && why.contains("a, b"),
        "{why}"
    );

    let unknown = local.slipway(&[
        "run", "asks", "--input", "one=1", "--input", "two=a", "--input", "tree=a",
    ]);
    assert_ne!(code(&unknown), 0);
    assert!(errors(&unknown).contains("tree"), "{}", errors(&unknown));

    let good = run(&local, "asks", &["one=1", "two=a"]);
    assert_eq!(code(&good), 0, "{}", errors(&good));
}

#[test]
fn a_loop_of_references_ends_with_the_loop_shown() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(&dir.path().join("data"));
    let variables = "- name: one\n  type: String\n  value: <+pipeline.variables.two>\n\
                     - name: two\n  type: String\n  value: <+pipeline.variables.one>\n";
    let steps = script("say", "echo \"<+pipeline.variables.one>\"");
    accept(
        &local,
        dir.path(),
        "p.yaml",
        &pipeline("turns", variables, &steps),
    );
    let output = run(&local, "turns", &[]);
    assert_ne!(code(&output), 0);
    let why = errors(&output);
    assert!(why.contains("one → two → one"), "{why}");
}

#[test]
fn tokens_of_others_and_odd_requests_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(&dir.path().join("data"));
    for token in [
        "pat.local.nobody.nothing",
        "no-token",
        "pat.local.\u{e9}.x",
        &"y".repeat(10_000),
    ] {
        let output = local.slipway(&["--token", token, "list", "pipeline"]);
        let why = errors(&output);
        assert_eq!(code(&output), 4, "{why}");
        assert!(!why.contains(token), "the token is shown: {why}");
    }
    let first = local.json(&["list", "pipeline", "-o", "json"]);
    assert_eq!(first, serde_json::json!([]));
}

#[test]
fn an_undefined_name_fails_the_step_and_says_which() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(&dir.path().join("data"));
    let steps = script("say", "echo \"<+pipeline.variables.nothing>\"");
    accept(
        &local,
        dir.path(),
        "p.yaml",
        &pipeline("undefined", "", &steps),
    );
    let output = run(&local, "undefined", &[]);
    let why = errors(&output);
    assert_eq!(code(&output), 1, "{why}");
    assert!(why.contains("`pipeline.variables.nothing`"), "{why}");
    assert_eq!(outcome(&output)["status"], "Failed");
}
