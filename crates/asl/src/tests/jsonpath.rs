//! States in JSONPath: how data flows, as tables of definition, input and output.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::service::Service;

/// Output, or error and cause, of a machine that begins at `A`.
async fn outcome(service: &Service, name: &str, states: Value, input: Value) -> Value {
    let machine = service.jsonpath_machine(name, "A", states).await;
    let execution = service.start(&machine, "run", input).await;
    let end = service.finish(&execution).await;
    match end["output"].as_str() {
        Some(output) => serde_json::from_str(output).expect("JSON"),
        None => json!([end["error"], end["cause"]]),
    }
}

#[tokio::test(start_paused = true)]
async fn data_flow() {
    let service = Service::new();
    let input = json!({"a": {"b": 1}, "l": [1, 2]});
    let echo = |more: Value| {
        let mut task = json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": true,
            "Parameters": {"FunctionName": "echo", "Payload.$": "$.a"}});
        for (key, value) in more.as_object().expect("an object") {
            task[key] = value.clone();
        }
        task
    };
    let cases = [
        (
            json!({"Type": "Pass", "InputPath": "$.a", "End": true}),
            json!({"b": 1}),
        ),
        (
            json!({"Type": "Pass", "InputPath": null, "End": true}),
            json!({}),
        ),
        (
            json!({"Type": "Pass", "OutputPath": null, "End": true}),
            json!({}),
        ),
        (
            json!({"Type": "Pass", "Result": {"x.$": "$"}, "ResultPath": "$.r", "OutputPath": "$.r", "End": true}),
            json!({"x.$": "$"}),
        ),
        (
            json!({"Type": "Pass", "InputPath": "$.a", "Parameters": {"n.$": "$.b", "s": ["$.b", {"t.$": "$.b"}]},
            "ResultPath": "$.a.c", "End": true}),
            json!({"a": {"b": 1, "c": {"n": 1, "s": ["$.b", {"t": 1}]}}, "l": [1, 2]}),
        ),
        (
            json!({"Type": "Pass", "Parameters": {"n.$": "$$.State.Name", "i.$": "$$.Execution.Input.l[1]"}, "End": true}),
            json!({"n": "A", "i": 2}),
        ),
        (
            echo(
                json!({"ResultSelector": {"p.$": "$.Payload.b"}, "ResultPath": "$.r", "OutputPath": "$.r"}),
            ),
            json!({"p": 1}),
        ),
        (echo(json!({"ResultPath": null})), input.clone()),
        (
            echo(json!({"Parameters": {"FunctionName": "boom"}, "Catch": [
            {"ErrorEquals": ["Boom"], "ResultPath": "$.e", "Next": "C"}], "OutputPath": "$.nope"})),
            json!({"a": {"b": 1}, "l": [1, 2], "e": {"Error": "Boom", "Cause": "{\"errorMessage\":\"on request\",\"errorType\":\"Boom\"}"}}),
        ),
        (
            json!({"Type": "Succeed", "InputPath": "$.l", "OutputPath": "$[0]"}),
            json!(1),
        ),
        (
            json!({"Type": "Map", "ItemsPath": "$.l", "ItemSelector": {"v.$": "$$.Map.Item.Value", "b.$": "$.a.b"},
            "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": true}}},
            "ResultPath": "$.l", "OutputPath": "$.l", "End": true}),
            json!([{"v": 1, "b": 1}, {"v": 2, "b": 1}]),
        ),
        (
            json!({"Type": "Pass", "InputPath": "$.nope", "End": true}),
            json!([
                "States.Runtime",
                "An error occurred while executing the state 'A' (entered at the event id #2). Invalid path '$.nope' : No results for path: $['nope']"
            ]),
        ),
        (
            json!({"Type": "Pass", "Parameters": {"x.$": "$.nope"}, "End": true}),
            json!([
                "States.Runtime",
                "An error occurred while executing the state 'A' (entered at the event id #2). The JSONPath '$.nope' specified for the field 'x.$' could not be found in the input '{\"a\":{\"b\":1},\"l\":[1,2]}'"
            ]),
        ),
        (
            json!({"Type": "Pass", "Parameters": {"x.$": "States.ArrayGetItem($.l, 7)"}, "End": true}),
            json!([
                "States.IntrinsicFailure",
                "An error occurred while executing the state 'A' (entered at the event id #2). The function 'States.ArrayGetItem($.l, 7)' had the following error: The index 7 is out of range for length 2"
            ]),
        ),
        (
            json!({"Type": "Map", "ItemsPath": "$.a", "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": true}}}, "End": true}),
            json!([
                "States.Runtime",
                "Reference path \"$.a\" must point to array."
            ]),
        ),
        (
            json!({"Type": "Fail", "ErrorPath": "States.Format('E{}', $.a.b)", "CausePath": "$$.State.Name"}),
            json!(["E1", "A"]),
        ),
    ];
    for (i, (state, expected)) in cases.into_iter().enumerate() {
        let mut states = json!({"A": state});
        if state["Catch"].is_array() {
            states["C"] = json!({"Type": "Pass", "End": true});
        }
        let found = outcome(&service, &format!("m{i}"), states, input.clone()).await;
        assert_eq!(found, expected, "{state}");
    }
}

#[tokio::test(start_paused = true)]
async fn variables_and_choices_of_both_languages_mix() {
    let service = Service::new();
    let states = json!({
        "A": {"Type": "Pass", "Assign": {"limit.$": "$.n", "who": "x"}, "Next": "B"},
        "B": {"Type": "Pass", "QueryLanguage": "JSONata", "Assign": {"limit": "{% $limit + 1 %}"}, "Next": "C"},
        "C": {"Type": "Choice", "Default": "No", "Choices": [
            {"Not": {"Variable": "$.gone", "IsPresent": true}, "Next": "No", "And": null},
        ]},
        "No": {"Type": "Fail"},
    });
    // A rule has one operator.
    let refused = service
        .create_jsonpath("bad", "A", &states)
        .await
        .expect_err("refused");
    assert!(
        refused.contains("must have only one of the following fields"),
        "{refused}"
    );
    let mut states = states;
    states["C"]["Choices"] = json!([
        {"And": [{"Variable": "$limit", "NumericEqualsPath": "$.m"}, {"Variable": "$who", "StringMatches": "x*"}],
            "Assign": {"seen.$": "$.m"}, "Next": "Yes"},
    ]);
    states["Yes"] =
        json!({"Type": "Wait", "SecondsPath": "$seen", "OutputPath": "$seen", "End": true});
    let machine = service.jsonpath_machine("mixed", "A", states).await;
    let execution = service
        .start(&machine, "run", json!({"n": 1, "m": 2}))
        .await;
    service.finish(&execution).await;
    assert_snapshot!(service.trace(&execution).await, @r#"
    1<0 ExecutionStarted input={"n":1,"m":2}
    2<0 PassStateEntered name=A input={"n":1,"m":2}
    3<2 PassStateExited name=A output={"n":1,"m":2} assignedVariables={"limit":"1","who":"\"x\""}
    4<3 PassStateEntered name=B input={"n":1,"m":2}
    5<4 PassStateExited name=B output={"n":1,"m":2} assignedVariables={"limit":"2"}
    6<5 ChoiceStateEntered name=C input={"n":1,"m":2}
    7<6 ChoiceStateExited name=C output={"n":1,"m":2} assignedVariables={"seen":"2"}
    8<7 WaitStateEntered name=Yes input={"n":1,"m":2}
    9<8 WaitStateExited +2s name=Yes output=2
    10<9 ExecutionSucceeded +2s output=2
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_wait_needs_a_length() {
    let service = Service::new();
    let states = json!({"A": {"Type": "Wait", "SecondsPath": "$.s", "End": true}});
    let mut found = String::new();
    for (at, seconds) in [json!(-1), json!(1.5), json!("1"), json!(100_000_000)]
        .iter()
        .enumerate()
    {
        let end = outcome(
            &service,
            &format!("m{at}"),
            states.clone(),
            json!({"s": seconds}),
        )
        .await;
        found.push_str(&format!("{end}\n"));
    }
    assert_snapshot!(found, @r#"
    ["States.Runtime","An error occurred while executing the state 'A' (entered at the event id #2). The SecondsPath parameter references a negative value: $.s == -1"]
    ["States.Runtime","An error occurred while executing the state 'A' (entered at the event id #2). The SecondsPath parameter cannot be parsed as a long value: $.s == 1.5"]
    ["States.Runtime","An error occurred while executing the state 'A' (entered at the event id #2). The SecondsPath parameter cannot be parsed as a long value: $.s == \"1\""]
    ["States.Runtime","An error occurred while executing the state 'A' (entered at the event id #2). The SecondsPath parameter references a value greater than 99999999: $.s == 100000000"]
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_variable_that_is_missing_fails_the_choice() {
    let service = Service::new();
    let states = json!({
        "A": {"Type": "Choice", "Choices": [{"Variable": "$.gone", "NumericEquals": 1, "Next": "B"}], "Default": "B"},
        "B": {"Type": "Succeed"},
    });
    let found = outcome(&service, "m", states, json!({})).await;
    assert_eq!(
        found,
        json!([
            "States.Runtime",
            "An error occurred while executing the state 'A' (entered at the event id #2). Invalid path '$.gone': The choice state's condition path references an invalid value."
        ])
    );
}
