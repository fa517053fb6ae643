//! Connectors of steps that call a system themselves.

use serde_json::json;

use super::super::tests::{entities, plan_with};
use crate::Node;

const PIPELINE: &str = "pipeline:
  identifier: web
  name: Web
  stages:
    - stage:
        identifier: ask
        name: Ask
        type: Approval
        spec:
          execution:
            steps:
              - step:
                  identifier: open
                  name: Open
                  type: JiraCreate
                  timeout: 5m
                  spec: {connectorRef: <+input>, projectKey: SHOP, issueType: Task, fields: []}
";

fn planned(connector: &str) -> Result<crate::Plan, String> {
    let mut entities = entities();
    entities.push(
        "connector: {identifier: tracker, name: Tracker, type: Jira, spec: {jiraUrl: 'https://jira.example.com', auth: {type: PersonalAccessToken, spec: {patRef: account.pat}}}}"
            .to_owned(),
    );
    let inputs = format!(
        "pipeline: {{identifier: web, stages: [{{stage: {{identifier: ask, type: Approval, spec: {{execution: {{steps: [{{step: {{identifier: open, type: JiraCreate, spec: {{connectorRef: {connector}}}}}}}]}}}}}}}}]}}"
    );
    plan_with(PIPELINE, &entities, &inputs).map_err(|faults| {
        let lines = faults.iter().map(|fault| format!("{fault}\n"));
        lines.collect()
    })
}

#[test]
fn a_step_carries_the_connector_that_it_names() {
    let plan = planned("account.tracker").unwrap();
    let Node::Step(step) = &plan.groups[0][0].steps[0] else {
        panic!("a step")
    };
    let connector = step.connector.as_ref().unwrap();
    assert_eq!(
        (&*connector.reference, &*connector.kind),
        ("account.tracker", "Jira")
    );
    assert_eq!(
        connector.spec["auth"],
        json!({"type": "PersonalAccessToken", "spec": {"patRef": "account.pat"}})
    );
    let text = crate::text(&plan);
    assert!(text.contains("connector account.tracker (Jira)"), "{text}");
}

#[test]
fn a_connector_that_does_not_fit_a_step_is_a_fault() {
    let table = [
        (
            "account.hub",
            "the connector `hub` is of type DockerRegistry; the step `open` of type JiraCreate needs a connector of type Jira",
        ),
        (
            "tracker",
            "the connector `tracker` does not exist in project `shop`",
        ),
        ("<+pipeline.executionId>", "pipeline.executionId"),
    ];
    for (reference, expected) in table {
        let found = planned(reference).unwrap_err();
        assert!(found.contains(expected), "{reference}: {found}");
    }
}
