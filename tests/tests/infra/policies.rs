//! Roles and policies of `app.yaml`: one role each, and no more than is needed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{logical_id, machine, machine_name, resources, states, template, text};

/// Statements of a role's policies.
fn statements(role: &Value) -> Vec<&Value> {
    let policies = role["Policies"].as_array().expect("policies");
    let documents = policies
        .iter()
        .map(|policy| &policy["PolicyDocument"]["Statement"]);
    documents
        .flat_map(|statements| statements.as_array().expect("statements"))
        .collect()
}

fn actions(statement: &Value) -> BTreeSet<&str> {
    let actions = &statement["Action"];
    match actions.as_array() {
        Some(list) => list.iter().filter_map(Value::as_str).collect(),
        None => actions.as_str().into_iter().collect(),
    }
}

fn targets(statement: &Value) -> Vec<&Value> {
    let resource = &statement["Resource"];
    resource
        .as_array()
        .map_or_else(|| vec![resource], |list| list.iter().collect())
}

/// What the statements of a role that allow `action` name, as text.
fn allowed(role: &Value, action: &str) -> BTreeSet<String> {
    let statements = statements(role)
        .into_iter()
        .filter(|s| actions(s).contains(action));
    let targets = statements.flat_map(targets);
    targets
        .map(
            |target| match (logical_id(target), target["Fn::Sub"].as_str()) {
                (Some(id), _) => id.to_owned(),
                (None, Some(text)) => text.to_owned(),
                (None, None) => target.to_string(),
            },
        )
        .collect()
}

/// The role of each function and machine, by logical id.
fn roles(app: &Value) -> BTreeMap<String, Value> {
    let all = resources(app, "AWS::IAM::Role");
    let functions = resources(app, "AWS::Serverless::Function");
    let machines = resources(app, "AWS::Serverless::StateMachine");
    functions
        .into_iter()
        .chain(machines)
        .map(|(id, properties)| {
            let role = logical_id(&properties["Role"]).expect("a role of this template");
            assert_eq!(role, format!("{id}Role"), "a role of its own");
            (id.to_owned(), all[role].clone())
        })
        .collect()
}

#[test]
fn each_function_and_machine_has_a_role_of_its_own() {
    let app = template("app.yaml");
    let used = roles(&app).len();
    // Each schedule has one too.
    let schedules = resources(&app, "AWS::Scheduler::Schedule").len();
    assert_eq!(resources(&app, "AWS::IAM::Role").len(), used + schedules);
}

#[test]
fn machines_may_do_what_their_states_do_and_nothing_else() {
    let app = template("app.yaml");
    let roles = roles(&app);
    for (id, properties) in resources(&app, "AWS::Serverless::StateMachine") {
        let role = &roles[id];
        let definition = machine(machine_name(properties));
        let (mut invoked, mut started) = (BTreeSet::new(), BTreeSet::new());
        for state in states(&definition) {
            let arguments = &state["Arguments"];
            match arguments["FunctionName"].as_str() {
                None => {}
                Some("${PipelineFunctionArn}") => invoked.extend(["PipelineFunction".to_owned()]),
                Some("${NotifyFunctionArn}") => invoked.extend(["NotifyFunction".to_owned()]),
                // The function is chosen when the stage begins, from what PipelineFunction is given.
                Some(_) => invoked.extend(lane_functions(&app)),
            }
            if let Some(machine) = arguments["StateMachineArn"].as_str() {
                let name = machine
                    .trim_start_matches("${")
                    .trim_end_matches("MachineArn}");
                let arn = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}";
                let machine = format!("${{AWS::StackName}}-{}", name.to_lowercase());
                started.insert((
                    format!("{arn}:stateMachine:{machine}"),
                    format!("{arn}:execution:{machine}:*"),
                ));
            }
        }
        assert_eq!(allowed(role, "lambda:InvokeFunction"), invoked, "{id}");
        let (machines, executions): (BTreeSet<_>, BTreeSet<_>) = started.into_iter().unzip();
        assert_eq!(allowed(role, "states:StartExecution"), machines, "{id}");
        for action in ["states:DescribeExecution", "states:StopExecution"] {
            assert_eq!(allowed(role, action), executions, "{id} {action}");
        }
    }
}

/// The functions whose ARNs PipelineFunction gives to lanes.
fn lane_functions(app: &Value) -> BTreeSet<String> {
    let function = resources(app, "AWS::Serverless::Function")["PipelineFunction"];
    let variables = function["Environment"]["Variables"]
        .as_object()
        .expect("variables");
    let lanes = variables
        .iter()
        .filter(|(name, _)| name.starts_with("SLIPWAY_LANE_"));
    lanes
        .filter_map(|(_, value)| logical_id(value))
        .map(str::to_owned)
        .collect()
}

#[test]
fn nobody_may_scan_a_table_or_administer_one() {
    const NEEDED: [&str; 5] = [
        "dynamodb:DeleteItem",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:Query",
        "dynamodb:UpdateItem",
    ];
    let app = template("app.yaml");
    for (id, role) in roles(&app) {
        for action in statements(&role).into_iter().flat_map(actions) {
            let fine = !action.starts_with("dynamodb:") || NEEDED.contains(&action);
            assert!(
                fine && action.contains(':') && !action.contains('*'),
                "{id} may {action}"
            );
        }
    }
}

#[test]
fn who_hears_webhooks_keeps_events_and_what_refs_point_at_and_nothing_else_of_runs() {
    let app = template("app.yaml");
    let role = &roles(&app)["WebhookFunction"];
    let written: Vec<_> = statements(role)
        .into_iter()
        .filter(|statement| {
            let actions = actions(statement);
            actions.contains("dynamodb:PutItem") || actions.contains("dynamodb:UpdateItem")
        })
        .collect();
    let [written] = written.as_slice() else {
        panic!("one statement, for one transaction: {written:?}");
    };
    let allowed = [
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
    ];
    assert_eq!(actions(written), allowed.into());
    let keys = &written["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"];
    let keys: BTreeSet<_> = keys
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let kept = ["event#*", "delivery#*", "accepted#*", "ref#*", "blob#*"];
    assert_eq!(keys, kept.into());
}

#[test]
fn only_those_who_deploy_or_read_manifests_may_assume_roles() {
    let app = template("app.yaml");
    let mut may = BTreeMap::new();
    for (id, role) in roles(&app) {
        let roles = allowed(&role, "sts:AssumeRole");
        if !roles.is_empty() {
            may.insert(id, roles);
        }
    }
    let (source, deploy) = ("SourceRoles", "DeployRoles");
    let expected = [
        // Plans are made here, and their manifests may be in S3.
        ("ApiFunction", vec![source]),
        ("InstancesFunction", vec![deploy]),
        // So are those of pipelines that a stage runs.
        ("LaneCommonFunction", vec![source]),
        // Artifacts that only the run can name are looked up when their stage begins.
        ("LaneAsgFunction", vec![source, deploy]),
        ("LaneEcsFunction", vec![source, deploy]),
        ("LaneLambdaFunction", vec![source, deploy]),
        // It plans what it starts, and asks registries.
        ("TriggerFunction", vec![source]),
    ];
    let expected = expected.map(|(id, roles)| {
        let roles = roles.into_iter().map(str::to_owned).collect();
        (id.to_owned(), roles)
    });
    assert_eq!(may, expected.into());
}

#[test]
fn who_records_what_others_wait_for_may_wake_them() {
    let app = template("app.yaml");
    let roles = roles(&app);
    let arn = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:${AWS::StackName}";
    for id in [
        "ApiFunction",
        "LaneCommonFunction",
        "LaneAsgFunction",
        "LaneEcsFunction",
        "LaneLambdaFunction",
        "PipelineFunction",
    ] {
        let wakes = allowed(&roles[id], "states:SendTaskSuccess");
        let wanted = ["lane", "stage"].map(|machine| format!("{arn}-{machine}"));
        assert_eq!(wakes, wanted.into(), "{id}");
    }
    // Who records an event starts the notices of it; some start runs too.
    for (id, machines) in [
        ("ApiFunction", &["notify", "pipeline"][..]),
        ("LaneCommonFunction", &["notify", "pipeline"]),
        ("LaneAsgFunction", &["notify"]),
        ("LaneEcsFunction", &["notify"]),
        ("LaneLambdaFunction", &["notify"]),
        ("NotifyFunction", &["notify"]),
        ("PipelineFunction", &["notify", "pipeline"]),
        ("TriggerFunction", &["errand", "notify", "pipeline"]),
    ] {
        let starts = allowed(&roles[id], "states:StartExecution");
        let wanted = machines.iter().map(|machine| format!("{arn}-{machine}"));
        assert_eq!(starts, wanted.collect(), "{id}");
    }
}

/// A `*` needs a reason in the comment above its statement.
#[test]
fn every_star_has_a_reason() {
    for file in ["app.yaml", "data.yaml"] {
        let template = text(&format!("infra/{file}"));
        let lines: Vec<&str> = template.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let granted =
                line.contains("arn:") || line.contains("Action") || line.contains("Resource");
            if !granted || !line.contains('*') || line.trim_start().starts_with("Default:") {
                continue;
            }
            let statement = lines[..at]
                .iter()
                .rposition(|line| line.contains("- Effect:"));
            let above = statement.map(|statement| lines[statement - 1].trim_start());
            // What is no statement of a policy has its reason right above.
            let right_above = lines[at - 1].trim_start();
            assert!(
                above
                    .into_iter()
                    .chain([right_above])
                    .any(|above| above.starts_with('#')),
                "{file}: {line}"
            );
        }
    }
}
