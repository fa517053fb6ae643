//! What a run asks for.

use std::sync::Arc;

use slipway_model::id::{AccountId, OrgId, ProjectId, Scope};
use slipway_model::{emit, entity};

use crate::{Found, Reference, Request, Snapshot, form};

const ENTITIES: &[&str] = &[
    "service: {identifier: web, name: Web, serviceDefinition: {type: ECS, spec: {variables: [{name: level, type: String, value: <+input>}, {name: port, type: Number, value: 80}]}}}",
    "service: {identifier: still, name: Still, serviceDefinition: {type: ECS, spec: {}}}",
    "environment: {identifier: qa, name: QA, type: Production, variables: [{name: zone, type: String, value: '<+input>.allowedValues(a,b)'}]}",
    "infrastructureDefinition: {identifier: ecs, name: ECS, environmentRef: qa, deploymentType: ECS, type: ECS, spec: {connectorRef: c, region: r, cluster: <+input>}}",
    "template: {identifier: pause, name: Pause, versionLabel: v1, type: Step, spec: {type: Wait, spec: {duration: <+input>}}}",
];

fn shown(pipeline: &str) -> (String, Vec<String>) {
    let (account, org) = (AccountId::new("acc"), OrgId::new("default"));
    let scope = Scope::project(account, org, ProjectId::new("shop"));
    let mut snapshot = Snapshot::default();
    for yaml in ENTITIES {
        let entity = entity::parse("entity", yaml).unwrap();
        snapshot.put(
            Reference::of(&entity, scope.clone()),
            Some(Found::Entity(Arc::new(entity))),
        );
    }
    let pipeline = entity::parse("pipeline", pipeline).unwrap();
    let found = form(&Request {
        pipeline: &pipeline,
        inputs: &[],
        scope: &scope,
        entities: &snapshot,
        runnable: &|_| true,
        chosen: None,
        trigger: None,
    });
    let asked = found
        .references
        .iter()
        .map(|asked| format!("{} {}", asked.kind, asked.id));
    let page = found
        .template
        .map(|tree| emit::to_yaml(&tree))
        .unwrap_or_default();
    (page, asked.collect())
}

#[test]
fn inputs_of_what_is_named_are_opened_up() {
    let pipeline = "pipeline: {identifier: p, name: P, stages: [
        {stage: {identifier: a, name: A, type: Deployment, failureStrategies: [], spec: {deploymentType: ECS,
          service: {serviceRef: web, serviceInputs: <+input>},
          environment: {environmentRef: qa, environmentInputs: <+input>, infrastructureDefinitions: [{identifier: ecs, inputs: <+input>}]},
          execution: {steps: [
            {step: {identifier: w, name: W, template: {templateRef: pause, versionLabel: v1, templateInputs: <+input>}}},
            {step: {identifier: x, name: X, template: {templateRef: pause, versionLabel: v1, templateInputs: {spec: {duration: '<+input>.default(1m)'}}}}}]}}}},
        {stage: {identifier: b, name: B, type: Deployment, failureStrategies: [], spec: {deploymentType: ECS,
          service: {serviceRef: still, serviceInputs: <+input>},
          environment: {environmentRef: <+input>, environmentInputs: <+input>},
          execution: {steps: []}}}},
        {stage: {identifier: c, name: C, type: Deployment, failureStrategies: [], spec: {deploymentType: ECS,
          service: {serviceRef: gone, serviceInputs: <+input>},
          environment: {environmentRef: qa, infrastructureDefinitions: <+input>},
          execution: {steps: []}}}}]}";
    let (page, asked) = shown(pipeline);
    insta::assert_snapshot!(page, @r#"
    pipeline:
      identifier: p
      stages:
      - stage:
          identifier: a
          type: Deployment
          spec:
            service:
              serviceInputs:
                identifier: web
                serviceDefinition:
                  type: ECS
                  spec:
                    variables:
                    - name: level
                      type: String
                      value: <+input>
            environment:
              environmentInputs:
                identifier: qa
                type: Production
                variables:
                - name: zone
                  type: String
                  value: "<+input>.allowedValues(a,b)"
              infrastructureDefinitions:
              - identifier: ecs
                inputs:
                  identifier: ecs
                  type: ECS
                  spec:
                    cluster: <+input>
            execution:
              steps:
              - step:
                  identifier: w
                  template:
                    templateInputs:
                      type: Wait
                      spec:
                        duration: <+input>
              - step:
                  identifier: x
                  template:
                    templateInputs:
                      spec:
                        duration: <+input>.default(1m)
      - stage:
          identifier: b
          type: Deployment
          spec:
            environment:
              environmentRef: <+input>
              environmentInputs: <+input>
      - stage:
          identifier: c
          type: Deployment
          spec:
            service:
              serviceInputs: <+input>
            environment:
              infrastructureDefinitions: <+input>
    "#);
    assert_eq!(
        asked,
        [
            "service web",
            "environment qa",
            "infrastructureDefinition ecs",
            "template v1",
            "service still",
            "service gone"
        ]
    );
    let fixed = "pipeline: {identifier: p, name: P, stages: [{stage: {identifier: s, name: S, type: Custom, spec: {execution: {steps: []}}}}]}";
    assert_eq!(shown(fixed).0, "");
}
