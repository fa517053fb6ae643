//! What CreateStateMachine refuses, and with which words.

use super::parse;

#[test]
fn refusals() {
    let cases = [
        (
            "not json",
            "INVALID_JSON_DESCRIPTION: expected ident at line 1 column 2",
        ),
        (
            "[]",
            "SCHEMA_VALIDATION_FAILED: Definition must be a valid JSON object",
        ),
        (
            "{}",
            "SCHEMA_VALIDATION_FAILED: These fields are required: [States, StartAt] at /",
        ),
        (
            r#"{"StartAt":"A","States":{"A":{"Type":"Pass"}}}"#,
            "SCHEMA_VALIDATION_FAILED: These fields are required: [Next or End] at /States/A",
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
            r#"{"StartAt":"A","States":{"A":{"Type":"Pass","InputPath":"$.x","End":true}}}"#,
            "SCHEMA_VALIDATION_FAILED: The field 'InputPath' needs the query language JSONPath, which this engine does not run: set QueryLanguage to JSONata at /States/A/InputPath",
        ),
        (
            r#"{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{"Type":"Pass","Parameters":{},"End":true}}}"#,
            "SCHEMA_VALIDATION_FAILED: The QueryLanguage 'JSONata' does not support the field 'Parameters' at /States/A/Parameters",
        ),
        (
            r#"{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{"Type":"Pass","Output":{"a":["{% ( %}"]},"End":true}}}"#,
            "INVALID_JSONATA_EXPRESSION: The JSONata expression '(' cannot be parsed: S0207: Unexpected end of expression at /States/A/Output/a/0",
        ),
        (
            r#"{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"arn:aws:states:::sqs:sendMessage","End":true}}}"#,
            "SCHEMA_VALIDATION_FAILED: The resource provided arn:aws:states:::sqs:sendMessage is not recognized. The value is not a valid resource ARN, or the resource is not available in this region. at /States/A/Resource",
        ),
        (
            r#"{"StartAt":"A","States":{"A":{"Type":"Wait","Seconds":-1,"End":true}}}"#,
            "SCHEMA_VALIDATION_FAILED: Expected value of type Integer from 0 to 99999999 at /States/A/Seconds",
        ),
        (
            r#"{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{"Type":"Map","ItemProcessor":{"StartAt":"X","States":{"Y":{"Type":"Succeed"}}},"End":true}}}"#,
            "MISSING_TRANSITION_TARGET: Missing 'StartAt' target: X at /States/A/ItemProcessor/StartAt",
        ),
        (
            r#"{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{"Type":"Pass","Assign":{"states":1},"End":true}}}"#,
            "SCHEMA_VALIDATION_FAILED: Invalid variable name: 'states' at /States/A/Assign",
        ),
    ];
    for (text, expected) in cases {
        let error = parse(text).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn depth_is_bounded() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let text = format!(
        r#"{{"QueryLanguage":"JSONata","StartAt":"A","States":{{"A":{{"Type":"Pass","Output":{deep},"End":true}}}}}}"#
    );
    let error = parse(&text).expect_err("too deep");
    assert!(error.message.contains("recursion limit"), "{error}");
}
