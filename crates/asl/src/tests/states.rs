//! Traces of the state types that call nobody.

use insta::assert_snapshot;
use serde_json::json;

use super::service::Service;

#[tokio::test(start_paused = true)]
async fn assign_and_output_see_the_same_input() {
    let service = Service::new();
    let states = json!({
        "A": {"Type": "Pass", "Assign": {"a": 1, "b": 2}, "Next": "Swap"},
        "Swap": {"Type": "Pass", "Assign": {"a": "{% $b %}", "b": "{% $a %}"},
            "Output": "{% $a %}", "Next": "Choose"},
        "Choose": {"Type": "Choice", "Default": "No", "Choices": [
            {"Condition": "{% $a = 2 and $states.input = 1 %}", "Next": "Yes", "Output": "swapped"}]},
        "Yes": {"Type": "Succeed", "Output": {"was": "{% $states.input %}"}},
        "No": {"Type": "Fail"},
    });
    assert_snapshot!(service.run("A", states, json!({})).await, @r#"
    1<0 ExecutionStarted input={}
    2<0 PassStateEntered name=A input={}
    3<2 PassStateExited name=A output={} assignedVariables={"a":"1","b":"2"}
    4<3 PassStateEntered name=Swap input={}
    5<4 PassStateExited name=Swap output=1 assignedVariables={"a":"2","b":"1"}
    6<5 ChoiceStateEntered name=Choose input=1
    7<6 ChoiceStateExited name=Choose output="swapped"
    8<7 SucceedStateEntered name=Yes input="swapped"
    9<8 SucceedStateExited name=Yes output={"was":"swapped"}
    10<9 ExecutionSucceeded output={"was":"swapped"}
    "#);
}

#[tokio::test(start_paused = true)]
async fn waits_take_their_time() {
    let service = Service::new();
    let states = json!({
        "A": {"Type": "Wait", "Seconds": "{% $states.input.s %}", "Next": "B"},
        "B": {"Type": "Wait", "Timestamp": "2026-01-04T00:00:00Z", "Next": "C"},
        "C": {"Type": "Wait", "Timestamp": "{% $states.input.at %}", "End": true},
    });
    let input = json!({"s": 90, "at": "2026-01-04 00:00:00"});
    assert_snapshot!(service.run("A", states, input).await, @r#"
    1<0 ExecutionStarted input={"s":90,"at":"2026-01-04 00:00:00"}
    2<0 WaitStateEntered name=A input={"s":90,"at":"2026-01-04 00:00:00"}
    3<2 WaitStateExited +90s name=A output={"s":90,"at":"2026-01-04 00:00:00"}
    4<3 WaitStateEntered +90s name=B input={"s":90,"at":"2026-01-04 00:00:00"}
    5<4 WaitStateExited +259200s name=B output={"s":90,"at":"2026-01-04 00:00:00"}
    6<5 WaitStateEntered +259200s name=C input={"s":90,"at":"2026-01-04 00:00:00"}
    7<6 EvaluationFailed +259200s error=States.QueryEvaluationError cause=An error occurred while executing the state 'C' (entered at the event id #6). The Timestamp field cannot be parsed as an ISO-8601 extended offset date-time format string: 2026-01-04 00:00:00 location=Timestamp state=C
    8<7 ExecutionFailed +259200s error=States.QueryEvaluationError cause=An error occurred while executing the state 'C' (entered at the event id #6). The Timestamp field cannot be parsed as an ISO-8601 extended offset date-time format string: 2026-01-04 00:00:00
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_map_runs_its_items_in_turn_and_sees_outer_variables() {
    let service = Service::new();
    let states = json!({
        "Set": {"Type": "Pass", "Assign": {"n": 10}, "Next": "Each"},
        "Each": {"Type": "Map", "Items": "{% $states.input %}", "MaxConcurrency": 1,
            "ItemSelector": {"i": "{% $states.context.Map.Item.Index %}",
                "v": "{% $states.context.Map.Item.Value %}"},
            "ItemProcessor": {"StartAt": "Add", "States": {
                "Add": {"Type": "Pass", "Output": "{% $states.input.v + $n + $states.context.Map.Item.Value %}",
                    "End": true}}},
            "End": true},
    });
    assert_snapshot!(service.run("Set", states, json!([1, 2])).await, @r#"
    1<0 ExecutionStarted input=[1,2]
    2<0 PassStateEntered name=Set input=[1,2]
    3<2 PassStateExited name=Set output=[1,2] assignedVariables={"n":"10"}
    4<3 MapStateEntered name=Each input=[1,2]
    5<4 MapStateStarted length=2
    6<5 MapIterationStarted name=Each index=0
    7<6 PassStateEntered name=Add input={"i":0,"v":1}
    8<7 PassStateExited name=Add output=12
    9<8 MapIterationSucceeded name=Each index=0
    10<8 MapIterationStarted name=Each index=1
    11<10 PassStateEntered name=Add input={"i":1,"v":2}
    12<11 PassStateExited name=Add output=14
    13<12 MapIterationSucceeded name=Each index=1
    14<13 MapStateSucceeded
    15<13 MapStateExited name=Each output=[12,14]
    16<15 ExecutionSucceeded output=[12,14]
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_failed_branch_takes_its_siblings_along() {
    let service = Service::new();
    let states = json!({
        "Both": {"Type": "Parallel", "End": true,
            "Catch": [{"ErrorEquals": ["Bad"], "Output": "{% $states.errorOutput %}", "Next": "Caught"}],
            "Branches": [
                {"StartAt": "Long", "States": {"Long": {"Type": "Wait", "Seconds": 1000, "End": true}}},
                {"StartAt": "Short", "States": {
                    "Short": {"Type": "Wait", "Seconds": 5, "Next": "Fail"},
                    "Fail": {"Type": "Fail", "Error": "Bad", "Cause": "{% 'at ' & $states.input %}"}}}]},
        "Caught": {"Type": "Pass", "End": true},
    });
    assert_snapshot!(service.run("Both", states, json!("x")).await, @r#"
    1<0 ExecutionStarted input="x"
    2<0 ParallelStateEntered name=Both input="x"
    3<2 ParallelStateStarted
    4<3 WaitStateEntered name=Long input="x"
    5<3 WaitStateEntered name=Short input="x"
    6<5 WaitStateExited +5s name=Short output="x"
    7<6 FailStateEntered +5s name=Fail input="x"
    8<4 WaitStateAborted +5s
    9<7 ParallelStateFailed +5s
    10<9 ParallelStateExited +5s name=Both output={"Error":"Bad","Cause":"at x"}
    11<10 PassStateEntered +5s name=Caught input={"Error":"Bad","Cause":"at x"}
    12<11 PassStateExited +5s name=Caught output={"Error":"Bad","Cause":"at x"}
    13<12 ExecutionSucceeded +5s output={"Error":"Bad","Cause":"at x"}
    "#);
}

#[tokio::test(start_paused = true)]
async fn no_choice_and_machine_timeout() {
    let service = Service::new();
    let states = json!({
        "A": {"Type": "Choice", "Choices": [{"Condition": "{% $states.input.go %}", "Next": "B"}]},
        "B": {"Type": "Wait", "Seconds": 100, "End": true},
    });
    let machine = service
        .machine_of(
            "m",
            json!({"TimeoutSeconds": 60, "StartAt": "A", "States": states}),
        )
        .await;
    for (input, status, error) in [
        (
            json!({"go": false}),
            "FAILED",
            json!("States.NoChoiceMatched"),
        ),
        (
            json!({"go": 1}),
            "FAILED",
            json!("States.QueryEvaluationError"),
        ),
        (json!({"go": true}), "TIMED_OUT", json!(null)),
    ] {
        let execution = service
            .start(&machine, &format!("r{status}{}", input["go"]), input)
            .await;
        let end = service.finish(&execution).await;
        assert_eq!(
            (end["status"].as_str(), &end["error"]),
            (Some(status), &error)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_never_waits_ends_at_the_history_limit() {
    let service = Service::new();
    let states = json!({
        "A": {"Type": "Pass", "Next": "B"},
        "B": {"Type": "Choice", "Choices": [{"Condition": "{% true %}", "Next": "A"}], "Default": "C"},
        "C": {"Type": "Succeed"},
    });
    let machine = service.machine("loop", "A", states).await;
    let execution = service.start(&machine, "run", json!({})).await;
    let end = service.finish(&execution).await;
    assert_eq!(end["error"], "States.Runtime");
    assert!(end["cause"].as_str().expect("a cause").contains("25000"));
}
