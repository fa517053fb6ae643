//! Mocked results and what is said about them.

use serde_json::json;

use super::shapes::check;

#[test]
fn results_are_compared_with_what_the_action_answers() {
    let cases = [
        (
            "aws-sdk:kms",
            "encrypt",
            json!({"CiphertextBlob": 1}),
            Err("Field 'CiphertextBlob' must be a string"),
        ),
        (
            "aws-sdk:kms",
            "encrypt",
            json!({"CiphertextBlob": ""}),
            Err("Field 'CiphertextBlob' is smaller than the minimum length"),
        ),
        (
            "events",
            "putEvents",
            json!({"Entries": [{"EventId": "a"}, {"EventId": []}]}),
            Err("Field 'EventId' must be a string"),
        ),
        (
            "events",
            "putEvents",
            json!({"Entries": "none"}),
            Err("Field 'Entries' must be an array"),
        ),
        ("events", "putEvents", json!({"other": 1}), Ok(())),
        (
            "dynamodb",
            "getItem",
            json!({"Item": {"id": {"S": 1}}}),
            Err("Field 'S' must be a string"),
        ),
        (
            "dynamodb",
            "getItem",
            json!({"Item": []}),
            Err("Field 'Item' must be an object"),
        ),
        (
            "aws-sdk:lambda",
            "getFunction",
            json!({"Configuration": {"MemorySize": 1}}),
            Err("Field 'MemorySize' is less than the minimum value"),
        ),
        (
            "aws-sdk:lambda",
            "getFunction",
            json!({"Configuration": {"MemorySize": 99_999}}),
            Err("Field 'MemorySize' exceeds the maximum value"),
        ),
        (
            "sqs",
            "sendMessage.waitForTaskToken",
            json!({"MessageId": 1}),
            Ok(()),
        ),
        ("nobody", "knows", json!(1), Ok(())),
    ];
    for (service, action, result, expected) in cases {
        let expected = expected.map_err(str::to_owned);
        assert_eq!(
            check(service, action, &result),
            expected,
            "{service} {action} {result}"
        );
    }
}
