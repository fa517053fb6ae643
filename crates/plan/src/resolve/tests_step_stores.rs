//! Stores and connectors in the specs of steps.

use super::super::tests::{PIPELINE, faults, plan};
use crate::{Node, Plan, StepPlan};

const ROLL: &str = "type: EcsRollingDeploy, spec: {sameAsAlreadyRunningInstances: false}";

/// The golden pipeline with another first step of its deployment.
fn with_step(step: &str) -> String {
    let text = PIPELINE.replacen(ROLL, step, 1);
    assert_ne!(text, PIPELINE);
    text
}

fn step(plan: &Plan) -> &StepPlan {
    match &plan.groups[1][0].steps[0] {
        Node::Step(step) => step,
        other => panic!("{other:?} is no step"),
    }
}

#[test]
fn a_step_carries_the_documents_that_its_stores_hold() {
    let plan = plan(&with_step(
        "type: EcsRunTask, spec: {taskDefinition: {type: Harness, spec: {files: ['account:/svc.yaml']}}, runTaskRequestDefinition: {type: Inline, spec: {content: 'count: <+pipeline.variables.n>'}}}",
    ))
    .unwrap();
    let held: Vec<_> = step(&plan)
        .manifests
        .iter()
        .map(|manifest| {
            let (_, text) = &manifest.files[0];
            format!("{} {} {text}", manifest.identifier, manifest.kind)
        })
        .collect();
    assert_eq!(
        held,
        [
            "taskDefinition EcsTaskDefinition serviceName: web",
            "runTaskRequestDefinition EcsRunTaskRequestDefinition count: <+pipeline.variables.n>",
        ]
    );
    let text = crate::text(&plan);
    let line = "manifest taskDefinition (EcsTaskDefinition) from Harness";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("runTaskRequestDefinition = "), "{text}");
}

#[test]
fn a_store_of_a_step_that_cannot_be_read_is_a_fault() {
    let missing = with_step(
        "type: EcsRunTask, spec: {taskDefinitionArn: a, runTaskRequestDefinition: {type: Harness, spec: {files: [/none.yaml]}}}",
    );
    let found = faults(plan(&missing));
    assert!(
        found.contains("the file `/none.yaml` does not exist in the file store"),
        "{found}"
    );
}

#[test]
fn a_step_may_name_a_connector_of_its_own_or_none() {
    let scale = |connector: &str| {
        with_step(&format!(
            "type: EcsScale, spec: {{service: s, instanceUnit: Count, instances: 2{connector}}}"
        ))
    };
    let plan_of = |connector: &str| plan(&scale(connector));
    let own = plan_of(", connectorRef: account.aws").unwrap();
    let connector = step(&own).connector.as_ref().unwrap();
    assert_eq!(&*connector.kind, "Aws");
    for none in ["", ", connectorRef: ''"] {
        assert_eq!(step(&plan_of(none).unwrap()).connector, None);
    }
    let found = faults(plan_of(", connectorRef: account.hub"));
    assert!(found.contains("needs a connector of type Aws"), "{found}");
}
