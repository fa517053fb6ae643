//! `app.yaml` against the code: functions, variables, machines, errors, schedule.

use std::collections::BTreeSet;

use serde_json::Value;
use slipway_engine::error_name::ErrorName;
use slipway_store::layout::{BUCKET_VARIABLE, TABLES};

use crate::{
    function_name, function_names, logical_id, machine, machine_name, machine_names, resources,
    states, template, text,
};

/// Read by functions where it is there; no function is given it on AWS.
const OPTIONAL: &[&str] = &["SLIPWAY_TARGET_ENDPOINT"];

#[test]
fn every_function_and_machine_is_deployed_once() {
    let app = template("app.yaml");
    let functions = resources(&app, "AWS::Serverless::Function");
    let deployed: BTreeSet<String> = functions
        .values()
        .map(|function| function_name(function).to_owned())
        .collect();
    assert_eq!(
        (deployed, functions.len()),
        (function_names(), function_names().len())
    );
    for function in functions.values() {
        let name = function["FunctionName"]["Fn::Sub"]
            .as_str()
            .expect("a name");
        assert_eq!(
            name,
            format!("${{AWS::StackName}}-{}", function_name(function))
        );
    }
    let machines = resources(&app, "AWS::Serverless::StateMachine");
    let deployed: BTreeSet<String> = machines
        .values()
        .map(|machine| machine_name(machine).to_owned())
        .collect();
    assert_eq!(
        (deployed, machines.len()),
        (machine_names(), machine_names().len())
    );
}

/// `${X}` in a text.
fn placeholders(text: &str) -> BTreeSet<String> {
    let pieces = text.split("${").skip(1);
    pieces
        .filter_map(|piece| piece.split_once('}'))
        .map(|(name, _)| name.to_owned())
        .collect()
}

#[test]
fn every_placeholder_of_a_machine_is_what_its_name_says() {
    let app = template("app.yaml");
    for properties in resources(&app, "AWS::Serverless::StateMachine").values() {
        let name = machine_name(properties);
        let given = properties["DefinitionSubstitutions"]
            .as_object()
            .expect("substitutions");
        let used = placeholders(&text(&format!("statemachines/{name}.asl.json")));
        assert_eq!(used, given.keys().cloned().collect(), "{name}");
        for (placeholder, value) in given {
            let meant = placeholder.strip_suffix("Arn").expect("an ARN");
            let spelled = value["Fn::Sub"].as_str();
            let own = format!(":stateMachine:${{AWS::StackName}}-{name}");
            assert!(
                logical_id(value) == Some(meant) || spelled.is_some_and(|s| s.ends_with(&own)),
                "{name}: {placeholder} is {value}"
            );
        }
    }
}

/// Texts `"SLIPWAY_…"` in the sources of a function and of the functions that it is made from.
fn variables_read(name: &str) -> BTreeSet<String> {
    let mut sources = vec![format!("functions/{name}/src")];
    if text(&format!("functions/{name}/src/main.rs")).contains("wire(")
        && text(&format!("functions/{name}/Cargo.toml")).contains("slipway-fn-lane-common")
    {
        sources.push("functions/lane-common/src".to_owned());
    }
    let mut found = BTreeSet::new();
    for folder in sources {
        for file in crate::names(&folder, |file| {
            // What starts another function is not part of this one.
            let starts = file == "main.rs" && folder != format!("functions/{name}/src");
            (file.ends_with(".rs") && !starts).then(|| file.to_owned())
        }) {
            let source = text(&format!("{folder}/{file}"));
            for piece in source.split("\"SLIPWAY_").skip(1) {
                let end = piece.find('"').expect("the end of a text");
                found.insert(format!("SLIPWAY_{}", &piece[..end]));
            }
        }
    }
    found.retain(|name| !OPTIONAL.contains(&name.as_str()));
    found
}

fn variables(value: &Value) -> BTreeSet<String> {
    let variables = value["Environment"]["Variables"].as_object();
    variables
        .into_iter()
        .flat_map(|map| map.keys().cloned())
        .collect()
}

#[test]
fn every_function_gets_the_variables_that_it_reads_and_no_others() {
    let app = template("app.yaml");
    let of_store: BTreeSet<String> = TABLES
        .iter()
        .map(|table| table.variable)
        .chain([BUCKET_VARIABLE])
        .map(str::to_owned)
        .collect();
    assert_eq!(variables(&app["Globals"]["Function"]), of_store);
    for function in resources(&app, "AWS::Serverless::Function").values() {
        let name = function_name(function);
        assert_eq!(variables(function), variables_read(name), "{name}");
    }
}

#[test]
fn machines_know_only_errors_that_exist() {
    for name in machine_names() {
        let definition = machine(&name);
        let handlers = states(&definition).into_iter().flat_map(|state| {
            let of = |field: &str| state[field].as_array().cloned().unwrap_or_default();
            [of("Retry"), of("Catch")].concat()
        });
        for error in handlers.flat_map(|h| h["ErrorEquals"].as_array().cloned().unwrap_or_default())
        {
            let error = error.as_str().expect("a name");
            let of_aws = [
                "States.",
                "Lambda.",
                "Runtime.",
                "StepFunctions.",
                "Sandbox.",
            ];
            let known = of_aws.iter().any(|prefix| error.starts_with(prefix))
                || ErrorName::ALL.iter().any(|name| name.as_str() == error);
            assert!(known, "{name} handles {error}, which nothing raises");
        }
    }
}

/// A function must give up before the state that invoked it does, or a retry would run beside it.
#[test]
fn no_function_outlives_the_state_that_invokes_it() {
    let app = template("app.yaml");
    let timeout = |function: &str| {
        let functions = resources(&app, "AWS::Serverless::Function");
        functions[function]["Timeout"]
            .as_str()
            .and_then(|t| t.parse::<u64>().ok())
            .expect("seconds")
    };
    for name in machine_names() {
        for state in states(&machine(&name)) {
            let Some(patience) = state["TimeoutSeconds"].as_u64() else {
                continue;
            };
            let longest = match state["Arguments"]["FunctionName"].as_str() {
                None => continue,
                Some("${PipelineFunctionArn}") => timeout("PipelineFunction"),
                Some("${NotifyFunctionArn}") => timeout("NotifyFunction"),
                Some(_) => [
                    "LaneCommonFunction",
                    "LaneAsgFunction",
                    "LaneEcsFunction",
                    "LaneLambdaFunction",
                ]
                .map(&timeout)
                .into_iter()
                .max()
                .expect("three"),
            };
            assert!(longest < patience, "{name}: {}", state["Comment"]);
        }
    }
}

#[test]
fn local_mode_stops_a_function_when_lambda_would() {
    let app = template("app.yaml");
    let invoked = |name: &&str| !["api", "webhook"].contains(name);
    let functions = resources(&app, "AWS::Serverless::Function");
    let limits = functions.values().map(|function| {
        let limit = function["Timeout"].as_str().expect("seconds");
        (
            function_name(function),
            limit.parse::<u64>().expect("a number"),
        )
    });
    for (name, limit) in limits.filter(|(name, _)| invoked(name)) {
        let local = slipway_cli::local::place::time_limit(&format!("slipway-{name}"));
        assert_eq!(local.as_secs(), limit, "{name}");
    }
}

#[test]
fn instances_are_counted_every_ten_minutes_and_accepted_runs_started_every_minute() {
    let app = template("app.yaml");
    let schedules = resources(&app, "AWS::Scheduler::Schedule");
    let of = |id: &str| {
        let target = &schedules[id]["Target"];
        (
            schedules[id]["ScheduleExpression"]
                .as_str()
                .expect("a rate")
                .to_owned(),
            logical_id(&target["Arn"]).expect("a function").to_owned(),
            target["Input"].as_str().expect("an input").to_owned(),
        )
    };
    let told = |rate: &str, function: &str, input: &str| {
        (rate.to_owned(), function.to_owned(), input.to_owned())
    };
    assert_eq!(
        of("InstancesSchedule"),
        told("rate(10 minutes)", "InstancesFunction", "{}")
    );
    let start = r#"{"do": "startAccepted"}"#;
    assert_eq!(
        of("StartSchedule"),
        told("rate(1 minute)", "PipelineFunction", start)
    );
    let event: Result<slipway_fn_pipeline::Event, _> = serde_json::from_str(start);
    assert_eq!(
        event.expect("an event"),
        slipway_fn_pipeline::Event::StartAccepted
    );
    for (id, input) in [
        ("TriggerSchedule", "{}"),
        ("PollSchedule", r#"{"poll": true}"#),
    ] {
        assert_eq!(of(id), told("rate(1 minute)", "TriggerFunction", input));
        let asked: Result<slipway_fn_trigger::Asked, _> = serde_json::from_str(input);
        assert_eq!(asked.expect("a request").poll, id == "PollSchedule");
    }
    assert_eq!(schedules.len(), 4);
}

#[test]
fn events_of_aws_reach_the_trigger_function_and_are_put_aside_where_they_fail() {
    let app = template("app.yaml");
    let arn_of = |value: &Value| logical_id(value).expect("a resource").to_owned();
    let rules = resources(&app, "AWS::Events::Rule");
    let rule = rules["AwsEventsRule"];
    let target = &rule["Targets"][0];
    let queues = resources(&app, "AWS::SQS::Queue");
    let (queue, dead) = (
        arn_of(&target["Arn"]),
        arn_of(&target["DeadLetterConfig"]["Arn"]),
    );
    let redrive = &queues[&*queue]["RedrivePolicy"];
    assert_eq!(arn_of(&redrive["deadLetterTargetArn"]), dead);
    // Whoever may put something into them, must be this rule.
    let policies = resources(&app, "AWS::SQS::QueuePolicy");
    let policy = policies["AwsEventsQueuePolicy"];
    let statement = &policy["PolicyDocument"]["Statement"][0];
    let by = &statement["Condition"]["ArnEquals"]["aws:SourceArn"];
    assert_eq!(
        (policies.len(), arn_of(by)),
        (1, "AwsEventsRule".to_owned())
    );
    assert_eq!(statement["Action"], "sqs:SendMessage");
    let mappings = resources(&app, "AWS::Lambda::EventSourceMapping");
    let mapping = mappings["AwsEventsMapping"];
    assert_eq!(arn_of(&mapping["EventSourceArn"]), queue);
    assert_eq!(arn_of(&mapping["FunctionName"]), "TriggerFunction");
    assert_eq!(
        mapping["FunctionResponseTypes"][0],
        "ReportBatchItemFailures"
    );
    // Longer than the function takes, or a message is handled twice at once.
    let seconds = |value: &Value| value.as_str().and_then(|it| it.parse::<u64>().ok());
    let functions = resources(&app, "AWS::Serverless::Function");
    let limit = seconds(&functions["TriggerFunction"]["Timeout"]).expect("seconds");
    let hidden = seconds(&queues[&*queue]["VisibilityTimeout"]).expect("seconds");
    assert!(hidden >= 6 * limit, "{hidden} {limit}");
    // A push of another account may be one of another repository of the same name.
    let patterns = rule["EventPattern"]["$or"].as_array().expect("patterns");
    let pushes = patterns
        .iter()
        .find(|it| it["source"][0] == "aws.codecommit");
    assert_eq!(
        arn_of(&pushes.expect("pushes")["account"][0]),
        "AWS::AccountId"
    );
}
