//! What is said of steps, as a table: where they stand and what they are, and the message, or nothing.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::{place, types};
use crate::diagnostic::{Code, MOST_DIAGNOSTICS};
use crate::entity::parse;

/// A pipeline of one stage with one step.
fn pipeline(stage: &str, step: &str) -> String {
    format!(
        "pipeline:\n  identifier: p\n  name: p\n  stages:\n    - stage:\n        identifier: s\n        name: s\n        \
         type: {stage}\n          execution:\n            steps:\n              - step: {{identifier: a, name: a, {step}}}\n"
    )
}

fn messages(text: &str) -> Vec<String> {
    let found = match parse("f.yaml", text) {
        Ok(entity) => entity.warnings,
        Err(faults) => faults,
    };
    found.iter().map(ToString::to_string).collect()
}

const ECS: &str = "Deployment\n        spec:\n          deploymentType: ECS";
const KUBERNETES: &str = "Deployment\n        spec:\n          deploymentType: Kubernetes";
const HELM: &str = "Deployment\n        spec:\n          deploymentType: NativeHelm";
const CUSTOM: &str = "Custom\n        spec:";
const CI: &str = "CI\n        spec:\n          cloneCodebase: false";
const APPROVAL: &str = "Approval\n        spec:";

#[test]
fn steps_are_checked_by_their_type_and_their_place() {
    let cases = [
        // Well, as it is.
        (ECS, "type: EcsRollingRollback, spec: {}", ""),
        (ECS, "type: EcsRollingRollback", ""),
        (
            ECS,
            "type: EcsCanaryDeploy, spec: {delegateSelectors: [a]}",
            "",
        ),
        (
            ECS,
            "type: EcsScale, spec: {service: web, instanceUnit: Count, instances: '2'}",
            "",
        ),
        (
            CUSTOM,
            "type: EcsScale, spec: {service: web, instanceUnit: Count, instances: <+input>}",
            "",
        ),
        (
            HELM,
            "type: K8sDryRun, spec: {encryptYamlOutput: false}",
            "",
        ),
        (
            CI,
            "type: Run, spec: {shell: Sh, command: make, resources: {limits: {cpu: 500m, memory: 1Gi}}}",
            "",
        ),
        (
            CI,
            "type: Gitleaks, spec: {mode: orchestration, config: default, target: {type: repository}}",
            "",
        ),
        (
            KUBERNETES,
            "type: K8sCanaryDeploy, spec: {canaryType: Progressive, targetPercentage: 30}",
            "",
        ),
        (
            CUSTOM,
            "type: FmeFlagKill, spec: {flagName: beta-2, environment: prod}",
            "",
        ),
        // A field.
        (
            ECS,
            "type: EcsRunTask, spec: {}",
            "`runTaskRequestDefinition` is missing from the spec of `EcsRunTask`",
        ),
        (
            ECS,
            "type: EcsRunTask",
            "`spec` is missing from a step of type `EcsRunTask`",
        ),
        (
            ECS,
            "type: EcsRunTask, spec: {runTaskRequestDefinitions: {type: Inline}}",
            "did you mean `runTaskRequestDefinition`?",
        ),
        (
            ECS,
            "type: EcsScale, spec: {service: web, instanceUnit: Count, instances: two}",
            "`two` is not accepted here; expected a whole number",
        ),
        (
            CUSTOM,
            "type: CreateStack, spec: {provisionerIdentifier: a, configuration: {connectorRef: c, region: r, \
             stackName: s, templateFile: {type: Inlined}}}",
            "`Inlined` is no `type` of `templateFile`; did you mean `Inline`?",
        ),
        (
            CUSTOM,
            "type: TerraformPlan, spec: {provisionerIdentifier: a}",
            "the spec of `TerraformPlan` needs one of these fields; expected configuration or cloudCliConfiguration",
        ),
        (
            CUSTOM,
            "type: Email, spec: {subject: Done, body: It is done}",
            "the spec of `Email` needs at least one of these fields; expected to or toUserGroups",
        ),
        (
            CUSTOM,
            "type: Email, spec: {subject: Done, to: a@b.c, toUserGroups: [ops]}",
            "",
        ),
        (
            CUSTOM,
            "type: Chaos, spec: {expectedResilienceScore: 50}",
            "the spec of `Chaos` needs at least one of these fields; expected experimentRef or identifier",
        ),
        (
            CI,
            "type: Run, spec: {shell: Sh, command: make, resources: {}}",
            "`resources` needs at least one of these fields; expected limits or requests",
        ),
        (
            CUSTOM,
            "type: FmeFlagKill, spec: {flagName: 2beta, environment: prod}",
            "`2beta` is not accepted here; expected a letter, then letters, digits, `-` and `_`",
        ),
        (
            ECS,
            "type: Verify, spec: {type: Canary}",
            "`spec` is missing from the spec of `Verify` of type `Canary`",
        ),
        (
            CUSTOM,
            "type: TerraformCloudRun, spec: {runType: Plan}",
            "`spec` is missing from the spec of `TerraformCloudRun` of type `Plan`",
        ),
        // A field that only the schema's openness allows.
        (
            ECS,
            "type: EcsCanaryDelete, spec: {colour: red}",
            "`colour` is no field of the spec of this step and has no effect",
        ),
        (
            KUBERNETES,
            "type: K8sCanaryDelete, spec: {skipDryRun: false}",
            "it makes no dry run",
        ),
        // What other fields ask for.
        (
            KUBERNETES,
            "type: K8sCanaryDeploy, spec: {}",
            "`instanceSelection`, which is asked for where there is no",
        ),
        (
            KUBERNETES,
            "type: K8sCanaryDeploy, spec: {canaryType: Progressive}",
            "`targetPercentage`, which `canaryType` Progressive asks for, is missing",
        ),
        (
            CI,
            "type: SaveCache, spec: {providerType: S3, key: k, sourcePaths: [a], bucket: b}",
            "`connectorRef`, which",
        ),
        // The place.
        (
            KUBERNETES,
            "type: EcsRollingRollback, spec: {}",
            "`EcsRollingRollback` does not fit a deployment of type `Kubernetes`; expected a step for `Kubernetes`, or \
             `deploymentType` ECS",
        ),
        (
            HELM,
            "type: K8sRollingDeploy, spec: {}",
            "does not fit a deployment of type `NativeHelm`",
        ),
        (
            APPROVAL,
            "type: Run, spec: {command: a}",
            "`Run` is no step of a stage of type `Approval`",
        ),
        (CUSTOM, "type: RunTests, spec: {}", "or a stage of type CI"),
        (
            CUSTOM,
            "type: Shell",
            "`Shell` is no `type` of a step; did you mean `ShellScript`?",
        ),
    ];
    for (stage, step, expected) in cases {
        let found = messages(&pipeline(stage, step));
        let well = match expected {
            "" => found.is_empty(),
            _ => found.iter().any(|message| message.contains(expected)),
        };
        assert!(well, "{step}\n{found:#?}");
    }
}

#[test]
fn steps_of_templates_are_checked_as_far_as_their_place_is_known() {
    let template = |kind: &str, spec: &str| {
        messages(&format!(
            "template:\n  identifier: t\n  name: t\n  versionLabel: v1\n  type: {kind}\n  spec:\n{spec}"
        ))
    };
    let found = template("Step", "    type: EcsRunTask\n");
    assert!(
        found[0].contains("`spec` is missing from a step of type `EcsRunTask`"),
        "{found:?}"
    );
    let steps = "      steps:\n        - step: {identifier: a, name: a, type: EcsRollingRollback, spec: {}}\n";
    assert_eq!(
        template("StepGroup", &steps.replace("      ", "    ")),
        [""; 0]
    );
    let stage = format!(
        "    type: Deployment\n    spec:\n      deploymentType: Asg\n      execution:\n  {}",
        steps.replace('\n', "\n  ")
    );
    let found = template("Stage", &stage);
    assert!(
        found[0].contains("does not fit a deployment of type `Asg`"),
        "{found:?}"
    );
}

#[test]
fn steps_in_groups_branches_and_provisioners_have_a_place_too() {
    let run = "{step: {identifier: r, name: r, type: RunTests, spec: {language: Java, buildTool: Maven}}}";
    let cases = [
        format!("{{stepGroup: {{identifier: g, name: g, steps: [{run}]}}}}"),
        format!("{{parallel: [{run}, {{stepGroup: {{identifier: g, name: g, steps: [{run}]}}}}]}}"),
        format!("{{insert: {{identifier: i, name: i, steps: [{run}]}}}}"),
    ];
    for case in cases {
        let text = pipeline(CUSTOM, "type: Wait, spec: {duration: 10s}")
            + "              - "
            + &case
            + "\n";
        let found = messages(&text);
        assert!(
            found
                .iter()
                .any(|message| message.contains("is no step of a stage of type `Custom`")),
            "{found:?}"
        );
    }
    let stage = format!(
        "Deployment\n        spec:\n          deploymentType: ECS\n          environment:\n            environmentRef: e\n            \
         provisioner:\n              steps:\n                - step: {{identifier: t, name: t, type: TerraformRollback, spec: {{provisionerIdentifier: p}}}}\n                - {run}"
    );
    let found = messages(&pipeline(&stage, "type: EcsRollingRollback"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("provisioner.steps[1]"), "{found:?}");
}

#[test]
fn every_step_type_is_found_by_its_name() {
    for (name, _) in types::SPECS {
        assert_eq!(place::find(name).map(|step| step.name), Some(*name));
    }
    assert!(types::SPECS.is_sorted_by_key(|(name, _)| *name));
    assert_eq!(types::SPECS.len(), 353);
    assert_eq!(super::is_known_step("EcsRunTask"), Ok(()));
    assert_eq!(super::is_known_step("EcsRuntask"), Err(Some("EcsRunTask")));
}

/// Values of every form, with names that specs know.
fn value() -> impl Strategy<Value = Value> {
    let name = select(
        &[
            "type",
            "spec",
            "configuration",
            "connectorRef",
            "source",
            "Inline",
            "steps",
        ][..],
    );
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[<+>a-z.]{0,12}".prop_map(Value::from),
        name.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..4).prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_spec_breaks_the_check(kind in select(types::SPECS.iter().map(|(name, _)| *name).collect::<Vec<_>>()), spec in value()) {
        let template = json!({"template": {
            "identifier": "t", "name": "t", "versionLabel": "v1", "type": "Step", "spec": {"type": kind, "spec": spec},
        }});
        let found = messages(&template.to_string());
        prop_assert!(found.len() <= MOST_DIAGNOSTICS + 1);
        for message in found {
            prop_assert!(message.starts_with("f.yaml:1:"), "{message}");
        }
    }

    #[test]
    fn a_name_with_one_letter_wrong_is_a_slip((kind, field) in select(FIELDS), at in 1..12_usize) {
        let wrong = |(index, c): (usize, char)| if index == at { 'z' } else { c };
        let slip: String = field.chars().enumerate().map(wrong).collect();
        let template = json!({"template": {
            "identifier": "t", "name": "t", "versionLabel": "v1", "type": "Step",
            "spec": {"type": kind, "spec": {slip: "a"}},
        }});
        let faults = parse("f.yaml", &template.to_string()).err().unwrap_or_default();
        let named = faults.iter().any(|fault| fault.code == Code::UnknownField && fault.suggestion.as_deref() == Some(field));
        prop_assert!(named, "{faults:?}");
    }
}

/// Fields of steps.
const FIELDS: &[(&str, &str)] = &[
    ("EcsRunTask", "runTaskRequestDefinition"),
    ("K8sScale", "skipSteadyStateCheck"),
    ("HelmDeploy", "useUpgradeInstall"),
    ("Run", "imagePullPolicy"),
];
