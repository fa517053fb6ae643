//! Scripts of triggers as they are written, and what delegates say came of them.

use serde_json::{Value, json};
use slipway_model::id::{AccountId, OrgId, ProjectId, Scope};

use super::{versions, work};

fn scope() -> Scope {
    Scope::project(
        AccountId::new("acme"),
        OrgId::new("default"),
        ProjectId::new("shop"),
    )
}

fn place(more: Value) -> Value {
    let mut place = json!({"script": "ls > $HARNESS_ARTIFACT_RESULT_PATH", "versionPath": "v"});
    for (name, value) in more.as_object().into_iter().flatten() {
        place[name] = value.clone();
    }
    place
}

#[test]
fn secrets_stay_references_and_the_rest_is_as_services_have_it() {
    let written = place(json!({
        "script": "curl -H \"<+secrets.getValue('account.token')>\" https://<+project.identifier>.example.com",
        "artifactsArrayPath": "$.items",
        "inputs": [
            {"name": "KEY", "type": "Secret", "value": "org.key"},
            {"name": "NAME", "type": "String", "value": "<+org.identifier>"},
        ],
        "metadata": {"URL": "assets[0].url"},
        "timeout": "2m",
        "delegateSelectors": ["linux"],
    }));
    let (work, timeout) = work(&written, &scope()).expect("work");
    assert_eq!(
        (work.task_type.as_str(), timeout.as_secs()),
        ("ShellScript", 120)
    );
    assert_eq!(work.selectors, ["linux"]);
    assert_eq!(
        work.payload,
        json!({
            "script": "curl -H \"\u{FDD0}account.token\u{FDD1}\" https://shop.example.com",
            "environment": [
                {"name": "KEY", "value": "\u{FDD0}org.key\u{FDD1}"},
                {"name": "NAME", "value": "default"},
            ],
            "outputs": [],
            "workingDirectory": null,
            "timeoutSeconds": 120,
            "artifacts": {
                "source": 0,
                "array": "$.items",
                "version": "v",
                "attributes": {"URL": "assets[0].url"},
                "wanted": "last",
                "every": true,
            },
        })
    );
}

#[test]
fn what_cannot_run_says_why() {
    for (more, expected) in [
        (json!({"script": " "}), "`script` of the trigger is missing"),
        (
            json!({"versionPath": null}),
            "`versionPath` of the trigger is missing",
        ),
        (json!({"timeout": "soon"}), "timeout: "),
        (json!({"metadata": {"URL": 7}}), "metadata.URL: "),
        (
            json!({"inputs": [{"name": "KEY", "type": "Secret", "value": "a b"}]}),
            "variable KEY: ",
        ),
        (
            json!({"script": "echo <+service.name>"}),
            "a trigger has no run, whose expressions it could know beside secrets",
        ),
    ] {
        let why = work(&place(more), &scope()).expect_err("a fault");
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn what_a_delegate_says_is_the_list_or_why_there_is_none() {
    let told = |result: Value| versions(&result).map(|all| all.len());
    let listed = json!([{"version": "1.9"}, {"version": "1.10", "metadata": {"URL": "x"}}]);
    assert_eq!(
        told(json!({"status": "SUCCESS", "artifacts": listed})),
        Ok(2)
    );
    for (result, expected) in [
        (
            json!({"status": "SUCCESS", "artifact": {"source": 0, "found": {"version": "1"}}}),
            "update the delegate",
        ),
        (
            json!({"status": "TIMEOUT"}),
            "raise the `timeout` of the trigger",
        ),
        (
            json!({"status": "FAILURE", "exitCode": 3}),
            "ended with exit code 3",
        ),
        (
            json!({"status": "FAILURE", "exitCode": 0, "message": "it says why"}),
            "it says why",
        ),
        (json!({"status": "FAILURE"}), "its script failed"),
        (json!("well"), "cannot be read"),
    ] {
        let why = told(result).expect_err("a fault");
        assert!(why.contains(expected), "{why}");
    }
}
