use serde_json::json;

use super::*;

fn spec() -> Value {
    json!({
        "shell": "Bash", "onDelegate": true, "executionTarget": {},
        "source": {"type": "Inline", "spec": {"script": "echo $A"}},
        "environmentVariables": [
            {"name": "A", "type": "String", "value": "1"},
            {"name": "N", "type": "Number", "value": 2},
            {"name": "S", "type": "Secret", "value": "account.token"}],
        "outputVariables": [{"name": "TAG", "type": "String", "value": "tag"}, {"name": "B", "type": "Secret"}]
    })
}

fn with(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut spec = spec();
    change(&mut spec);
    ShellScript.check(&spec)
}

#[test]
fn a_spec_becomes_a_payload_with_references_of_secrets() {
    assert_eq!(ShellScript.check(&spec()), Vec::<String>::new());
    let payload = read::<Spec>(&spec())
        .and_then(|spec| spec.payload(600))
        .expect("a payload");
    assert_eq!(payload.environment[1].value, "2");
    let secret = SecretText::decode(&payload.environment[2].value);
    assert_eq!(secret.to_string(), "<+secrets.getValue(\"account.token\")>");
    let outputs: Vec<_> = payload
        .outputs
        .iter()
        .map(|o| (&*o.variable, o.secret))
        .collect();
    assert_eq!(outputs, [("tag", false), ("B", true)]);
    assert_eq!(payload.shell, task::Shell::Bash);
}

#[test]
fn powershell_is_named_in_the_payload_and_bash_as_ever_is_not() {
    let payload = |shell: &str| {
        let mut spec = spec();
        spec["shell"] = json!(shell);
        let payload = read::<Spec>(&spec).and_then(|spec| spec.payload(600));
        json!(payload.expect("a payload"))["shell"].clone()
    };
    assert_eq!(payload("PowerShell"), json!("PowerShell"));
    assert_eq!(payload("Bash"), Value::Null);
}

#[test]
fn what_cannot_run_is_refused_by_name() {
    let cases = [
        (
            with(|s| s["shell"] = json!("Zsh")),
            "`Zsh` is unknown; use Bash or PowerShell",
        ),
        (
            with(|s| s["source"]["type"] = json!("Harness")),
            "source.type: `Harness`",
        ),
        (
            with(|s| s["executionTarget"]["host"] = json!("h")),
            "executionTarget",
        ),
        (with(|s| s["onDelegate"] = json!("false")), "onDelegate"),
        (
            with(|s| s["outputVariables"][0]["value"] = json!("a; rm -rf /")),
            "no name of a shell",
        ),
        (with(|s| s["sourcee"] = json!(1)), "unknown field `sourcee`"),
        (
            with(|s| s["environmentVariables"][0]["type"] = json!("Int")),
            "unknown variant `Int`",
        ),
    ];
    for (faults, part) in cases {
        assert!(
            faults.len() == 1 && faults[0].contains(part),
            "{part}: {faults:?}"
        );
    }
}

#[test]
fn a_delegates_answer_becomes_outputs_or_a_failure() {
    let hole = "\u{FDD0}account.root\u{FDD1}";
    let mut outcome: Outcome = read(&json!({"status": "SUCCESS", "exitCode": 0,
        "outputs": {"TAG": hole, "B": hole}, "secretOutputs": ["B"],
        "secretReferences": {"TAG": "account.root"}}))
    .expect("an outcome");
    let taken = outcome.take_secrets();
    assert_eq!(taken.len(), 1, "the value of B");
    let kept = slipway_expr::SecretRef::new("kept").expect("a reference");
    outcome.secret_references.insert("B".to_owned(), kept);
    let value = end(&outcome).expect("a success");
    let outputs = &value["output"]["outputVariables"];
    let text = |name: &str| SecretText::decode(outputs[name].as_str().unwrap_or_default());
    assert_eq!(text("B").to_string(), "<+secrets.getValue(\"kept\")>");
    assert!(
        !text("TAG").has_secrets(),
        "an output that looks like a secret stays data"
    );

    let failed = end(&read(&json!({"status": "FAILURE", "exitCode": 3})).expect("an outcome"));
    let failure = failed.expect_err("a failure");
    assert_eq!(failure.error, ErrorType::Unknown);
    assert!(
        failure.message.contains("exit code 3"),
        "{}",
        failure.message
    );
    let late = end(&read(&json!({"status": "TIMEOUT"})).expect("an outcome"));
    assert_eq!(late.expect_err("a failure").error, ErrorType::Timeout);
}

#[test]
fn a_script_has_all_of_its_time() {
    for (left_ms, seconds) in [(10_000, 10), (9_001, 10), (9_000, 9), (1, 1), (0, 1)] {
        let left = Duration::from_millis(left_ms);
        assert_eq!(whole_seconds(left), seconds, "{left:?}");
    }
}
