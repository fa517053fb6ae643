//! What CreateStateMachine refuses, and with which words; and which variables states mention.

use proptest::prelude::*;
use serde_json::json;

use super::{MachineType, all, parse};

fn refusal(text: &str, kind: MachineType) -> String {
    match parse(text, kind) {
        Ok(_) => "accepted".to_owned(),
        Err(errors) => all(&errors),
    }
}

/// A machine with one state.
fn with(state: &serde_json::Value) -> String {
    json!({"StartAt": "A", "States": {"A": state}}).to_string()
}

#[test]
fn texts_that_are_refused() {
    let cases = [
        (
            "not json",
            "INVALID_JSON_DESCRIPTION: Unrecognized token 'not': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')\n at [Source: (String)\"not json\"; line: 1, column: 4]",
        ),
        (
            "{",
            "INVALID_JSON_DESCRIPTION: EOF while parsing an object at line 1 column 1\n at [Source: (String)\"{\"; line: 1, column: 1]",
        ),
        (
            " ",
            "SCHEMA_VALIDATION_FAILED: Definition must be a valid JSON object at null",
        ),
        (
            "[]",
            "SCHEMA_VALIDATION_FAILED: Definition must be a valid JSON object at null",
        ),
        (
            "{}",
            "SCHEMA_VALIDATION_FAILED: These fields are required: [States, StartAt] at /",
        ),
        (
            r#"{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"B"}}}"#,
            "MISSING_TRANSITION_TARGET: Missing 'Next' target: B at /States/A/Next",
        ),
        (
            r#"{"StartAt":"A","States":{"A":{"Type":"Pass","End":true},"B":{"Type":"Succeed"}}}"#,
            "MISSING_TRANSITION_TARGET: State \"B\" is not reachable. at /States/B",
        ),
        (
            r#"{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"B"},"C":{"Type":"Pass","End":true}}}"#,
            "MISSING_TRANSITION_TARGET: Missing 'Next' target: B at /States/A/Next, MISSING_TRANSITION_TARGET: State \"C\" is not reachable. at /States/C",
        ),
        (
            r#"{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"A"}}}"#,
            "MISSING_END_STATE: Workflow has no terminal state at null",
        ),
        (
            r#"{"StartAt":"Z","States":{"A":{"Type":"Pass","End":true}}}"#,
            "MISSING_TRANSITION_TARGET: Missing 'Next' target: Z at /StartAt",
        ),
        (
            r#"{"Nope":1,"StartAt":"A","States":{"A":{"Type":"Pass","End":true}}}"#,
            "SCHEMA_VALIDATION_FAILED: Field 'Nope' is not supported at /",
        ),
        (
            r#"{"StartAt":"A","States":{"A":{"Type":"Nope"},"B":{"Type":"Pass"}}}"#,
            "SCHEMA_VALIDATION_FAILED: The field 'Type' should have one of these values: [Task, Wait, Pass, Succeed, Fail, Choice, Parallel, Map] at /States/A/Type, SCHEMA_VALIDATION_FAILED: This object should have only one of the following fields: [Next, End] at /States/B",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal(text, MachineType::Standard), expected, "{text}");
    }
}

#[test]
fn states_that_are_refused() {
    let jsonata = "JSONata";
    let cases = [
        (
            json!({"Type": "Pass"}),
            "SCHEMA_VALIDATION_FAILED: This object should have only one of the following fields: [Next, End] at /States/A",
        ),
        (
            json!({"Type": "Pass", "Output": 1, "End": true}),
            "SCHEMA_VALIDATION_FAILED: The QueryLanguage is set to 'JSONPath', but field 'Output' is only supported for the 'JSONata' QueryLanguage at /States/A",
        ),
        (
            json!({"Type": "Pass", "QueryLanguage": jsonata, "Parameters": {}, "End": true}),
            "SCHEMA_VALIDATION_FAILED: The QueryLanguage is set to 'JSONata', but field 'Parameters' is only supported for the 'JSONPath' QueryLanguage at /States/A",
        ),
        (
            json!({"Type": "Pass", "QueryLanguage": jsonata, "Output": {"a": ["{% ( %}"]}, "End": true}),
            "INVALID_JSONATA_EXPRESSION: Unexpected end of expression at /States/A/Output/a/0",
        ),
        (
            json!({"Type": "Pass", "Parameters": {"a": {"b.$": "States.Format('\\\"')"}}, "End": true}),
            "SCHEMA_VALIDATION_FAILED: The value for the field 'b.$' must be a valid JSONPath or a valid intrinsic function call at /States/A/Parameters/a",
        ),
        (
            json!({"Type": "Pass", "InputPath": "nope", "End": true}),
            "SCHEMA_VALIDATION_FAILED: Value must be a valid JSONPath. at /States/A/InputPath",
        ),
        (
            json!({"Type": "Pass", "ResultPath": "$.a[*]", "End": true}),
            "SCHEMA_VALIDATION_FAILED: Value is not a Reference Path at /States/A/ResultPath",
        ),
        (
            json!({"Type": "Task", "Resource": "arn:aws:states:::dynamodb:query", "End": true}),
            "SCHEMA_VALIDATION_FAILED: The resource provided arn:aws:states:::dynamodb:query is not recognized. The value is not a valid resource ARN, or the resource is not available in this region. at /States/A/Resource",
        ),
        (
            json!({"Type": "Wait", "Seconds": -1, "End": true}),
            "SCHEMA_VALIDATION_FAILED: Expected value of type Integer from 0 to 99999999 at /States/A/Seconds",
        ),
        (
            json!({"Type": "Wait", "Seconds": 1, "SecondsPath": "$.s", "End": true}),
            "SCHEMA_VALIDATION_FAILED: There should only be one of the following fields: [SecondsPath, Seconds, TimestampPath, Timestamp] at /States/A",
        ),
        (
            json!({"Type": "Fail", "Error": "E", "ErrorPath": "$.e"}),
            "SCHEMA_VALIDATION_FAILED: There should only be one of the following fields: [Error, ErrorPath] at /States/A",
        ),
        (
            json!({"Type": "Choice", "Choices": [{"Variable": "$.a", "Next": "A"}]}),
            "SCHEMA_VALIDATION_FAILED: The object must have only one of the following fields, [And, Or, Not, Variable, Condition] at /States/A/Choices[0]",
        ),
        (
            json!({"Type": "Choice", "Choices": [{"Variable": "$.a", "NumericEquals": "1", "Next": "A"}]}),
            "SCHEMA_VALIDATION_FAILED: Expected value of type Number at /States/A/Choices[0]/NumericEquals",
        ),
        (
            json!({"Type": "Choice", "Choices": [{"And": [], "Next": "A"}]}),
            "SCHEMA_VALIDATION_FAILED: Value cannot be empty at /States/A/Choices[0]/And",
        ),
        (
            json!({"Type": "Choice", "Choices": [{"Variable": "$.a", "StringMatchesPath": "$.b", "Next": "A"}]}),
            "SCHEMA_VALIDATION_FAILED: Field 'StringMatchesPath' is not supported at /States/A/Choices[0]",
        ),
        (
            json!({"Type": "Parallel", "Branches": [], "End": true}),
            "SCHEMA_VALIDATION_FAILED: Value cannot be empty at /States/A/Branches",
        ),
        (
            json!({"Type": "Map", "ItemProcessor": {"StartAt": "X", "States": {"Y": {"Type": "Succeed"}}}, "End": true}),
            "MISSING_TRANSITION_TARGET: Missing 'Next' target: X at /States/A/ItemProcessor/StartAt",
        ),
        (
            json!({"Type": "Pass", "Assign": {"states.$": "$"}, "End": true}),
            "RESERVED_VARIABLE_NAME: Cannot assign to reserved variable '$states'. at /States/A/Assign",
        ),
        (
            json!({"Type": "Pass", "Assign": {"1x": 1}, "End": true}),
            "INVALID_VARIABLE_NAME: Invalid variable name '1x': the variable name contains invalid characters. at /States/A/Assign",
        ),
        (
            json!({"Type": "Map", "End": true}),
            "SCHEMA_VALIDATION_FAILED: This object should have only one of the following fields: [ItemProcessor, Iterator] at /States/A",
        ),
        (
            json!({"Type": "Map", "End": true, "ItemProcessor": {"QueryLanguage": "JSONata"}}),
            "SCHEMA_VALIDATION_FAILED: Field 'QueryLanguage' is not supported at /States/A/ItemProcessor",
        ),
        (
            json!({"Type": "Map", "End": true, "ItemProcessor": {"ProcessorConfig": {"Mode": "DISTRIBUTED"}}}),
            "SCHEMA_VALIDATION_FAILED: These fields are required: [ExecutionType] at /States/A/ItemProcessor/ProcessorConfig",
        ),
        (
            json!({"Type": "Parallel", "TimeoutSeconds": 1, "Branches": [], "End": true}),
            "SCHEMA_VALIDATION_FAILED: Field 'TimeoutSeconds' is not supported at /States/A",
        ),
        (
            json!({"Type": "Task", "Resource": "f", "End": true}),
            "SCHEMA_VALIDATION_FAILED: Value is not a valid resource ARN at /States/A/Resource",
        ),
        (
            json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": true}),
            "SCHEMA_VALIDATION_FAILED: Parameters field is required for resource ARN: arn:aws:states:::lambda:invoke at /States/A",
        ),
        (
            json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"Payload.$": "$"}, "End": true}),
            "SCHEMA_VALIDATION_FAILED: The field 'FunctionName' is required but was missing at /States/A/Parameters",
        ),
    ];
    for (state, expected) in cases {
        let text = with(&state);
        assert_eq!(refusal(&text, MachineType::Standard), expected, "{text}");
    }
}

#[test]
fn what_was_accepted_once_is_read() {
    let cases = [
        json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": true}),
        json!({"Type": "Pass", "Next": "A"}),
    ];
    for state in cases {
        let text = with(&state);
        assert_ne!(refusal(&text, MachineType::Standard), "accepted", "{text}");
        super::parse_stored(&text, MachineType::Standard).expect("read");
    }
}

#[test]
fn express_machines_have_no_long_tasks() {
    let cases = [
        (
            "arn:aws:states:us-east-1:111111111111:activity:a",
            "Activity ARN",
        ),
        (
            "arn:aws:states:::states:startExecution.sync:2",
            "'.sync' service integration",
        ),
        (
            "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "'.waitForTaskToken' service integration",
        ),
    ];
    for (resource, what) in cases {
        let mut task = json!({"Type": "Task", "Resource": resource, "End": true});
        if !resource.contains(":activity:") {
            task["Parameters"] =
                json!({"StateMachineArn": "m", "QueueUrl": "q", "MessageBody": "b"});
        }
        let text = with(&task);
        let expected = format!(
            "SCHEMA_VALIDATION_FAILED: Express state machine does not support {what} at /States/A/Resource"
        );
        assert_eq!(refusal(&text, MachineType::Express), expected);
        assert_eq!(refusal(&text, MachineType::Standard), "accepted");
    }
}

#[test]
fn depth_is_bounded() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let text = format!(
        r#"{{"QueryLanguage":"JSONata","StartAt":"A","States":{{"A":{{"Type":"Pass","Output":{deep},"End":true}}}}}}"#
    );
    let refused = refusal(&text, MachineType::Standard);
    assert!(refused.contains("recursion limit"), "{refused}");
}

#[test]
fn variables_by_state() {
    let definition = json!({
        "StartAt": "A",
        "States": {
            "A": {"Type": "Pass", "Assign": {"a": 1, "b.$": "States.Format('{}', $c.d)"}, "Next": "B"},
            "B": {"Type": "Choice", "Choices": [{"Variable": "$x", "StringEqualsPath": "$y.z", "Next": "C"}], "Default": "C"},
            "C": {"Type": "Task", "QueryLanguage": "JSONata", "Resource": "arn:aws:states:::lambda:invoke",
                "Arguments": {"FunctionName": "f", "Payload": "{% $sum($k) %}"}, "Output": "{% $states.result.$x %}", "Next": "D"},
            "D": {"Type": "Map", "ItemsPath": "$items", "ItemProcessor": {"StartAt": "E", "States": {
                "E": {"Type": "Wait", "SecondsPath": "$seconds", "End": true}}}, "Next": "F"},
            "F": {"Type": "Succeed"},
        },
    });
    let parsed = parse(&definition.to_string(), MachineType::Standard).expect("accepted");
    let references = serde_json::Value::Object(parsed.variable_references());
    assert_eq!(
        references,
        json!({"A": ["c"], "B": ["x", "y"], "C": ["k", "x"], "D": ["items"], "E": ["seconds"]})
    );
}

proptest! {
    /// Whatever stands in a definition, it is accepted or refused.
    #[test]
    fn no_definition_panics(
        kind in "Pass|Task|Choice|Wait|Succeed|Fail|Parallel|Map|Nope",
        field in "InputPath|Parameters|ResultPath|Choices|Seconds|Branches|ItemProcessor|Catch|Retry|Assign|ItemReader",
        value in prop_oneof![
            Just(json!(null)), Just(json!(-1)), Just(json!([])), Just(json!([{}])), Just(json!({})),
            Just(json!({"ErrorEquals": ["States.ALL"], "Next": "A"})),
            Just(json!([{"And": [{"Not": {}}], "Next": "A"}])),
            "\\PC{0,12}".prop_map(|text| json!(text)),
            "\\PC{0,12}".prop_map(|text| json!({"a.$": text})),
        ],
        jsonata in any::<bool>(),
    ) {
        let language = if jsonata { "JSONata" } else { "JSONPath" };
        let text = with(&json!({"Type": kind, "QueryLanguage": language, field: value, "End": true}));
        let _ = parse(&text, MachineType::Standard);
        let _ = parse(&text, MachineType::Express);
    }
}
