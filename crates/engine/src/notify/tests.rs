//! Who is told of what.

use serde_json::json;

use super::*;
use crate::fixture::{plan, stage, step, turn};

fn rule(events: Value, method: Value) -> NotificationPlan {
    NotificationPlan {
        name: "tell".to_owned(),
        enabled: true,
        events: serde_json::from_value(events).expect("events"),
        method: Some(method),
        template: None,
        message: None,
        fault: None,
    }
}

fn slack() -> Value {
    json!({"type": "Slack", "spec": {"webhookUrl": "https://x"}})
}

fn told(events: Value, event: &Event) -> bool {
    let mut looped = stage("turns_1", vec![step("check_0")]);
    looped.iteration = Some(turn("turns", 1, 2, 0));
    let mut plan = plan(vec![
        vec![stage("build", vec![step("a"), step("b")])],
        vec![looped],
    ]);
    plan.notifications = vec![rule(events, slack())];
    !notices(&RunId::new("r"), &plan, event).is_empty()
}

fn every_event() -> Vec<Event> {
    let stage_id = StageId::new("build");
    let step = |node: &str| (stage_id.clone(), NodeId::new(node));
    let ((s1, n1), (s2, n2)) = (step("a"), step("a"));
    vec![
        Event::PipelineStart,
        Event::PipelineSuccess,
        Event::PipelineFailed,
        Event::PipelineEnd,
        Event::PipelinePaused { number: 0 },
        Event::PipelineResumed { number: 1 },
        Event::StageStart {
            stage_id: stage_id.clone(),
        },
        Event::StageSuccess {
            stage_id: stage_id.clone(),
        },
        Event::StageFailed { stage_id },
        Event::StepFailed {
            stage_id: s1,
            node_id: n1,
            attempt: 2,
        },
        Event::WaitingForUserAction {
            stage_id: s2,
            node_id: n2,
            attempt: 0,
        },
    ]
}

#[test]
fn a_rule_tells_of_its_events_and_all_events_are_each() {
    let all = every_event();
    for event in &all {
        assert!(told(json!([{"type": "AllEvents"}]), event), "{event:?}");
        for wish in &all {
            let wanted = told(json!([{"type": wish.name()}]), event);
            assert_eq!(wanted, wish == event, "{wish:?} and {event:?}");
        }
    }
}

#[test]
fn rules_of_a_freeze_tell_of_freezes_and_those_of_a_pipeline_do_not() {
    let event = Event::DeploymentRejectedDueToFreeze {
        stage_id: StageId::new("build"),
        scope: Scope::account(slipway_model::id::AccountId::new("acme")),
        freeze: EntityId::new("winter"),
    };
    assert!(!told(json!([{"type": "AllEvents"}]), &event));
    let of = |kind: &str| {
        let rules = [rule(json!([{"type": kind}]), slack())];
        freeze_notices(&RunId::new("r"), &rules, &event)
    };
    assert!(of("FreezeWindowEnabled").is_empty());
    let notices = of("DeploymentRejectedDueToFreeze");
    assert_eq!(notices.len(), 1);
    let text = serde_json::to_string(&notices).expect("JSON");
    assert_eq!(
        serde_json::from_str::<Vec<Notice>>(&text).expect("notices"),
        notices
    );
}

#[test]
fn stages_and_steps_that_a_rule_names_are_told_and_others_are_not() {
    let failed = |stage: &str, node: &str| Event::StepFailed {
        stage_id: StageId::new(stage),
        node_id: NodeId::new(node),
        attempt: 0,
    };
    let ended = |stage: &str| Event::StageFailed {
        stage_id: StageId::new(stage),
    };
    let table = [
        (json!({"stages": ["build"]}), ended("build"), true),
        (json!({"stages": ["AllStages"]}), ended("build"), true),
        (json!({"stages": ["other"]}), ended("build"), false),
        (json!({"stages": ["turns"]}), ended("turns_1"), true),
        (json!({"stages": ["turns_1"]}), ended("turns_1"), true),
        (json!({"stages": ["turns_0"]}), ended("turns_1"), false),
        (json!({"steps": ["a"]}), failed("build", "a"), true),
        (json!({"steps": ["b"]}), failed("build", "a"), false),
        (
            json!({"stages": ["turns"], "steps": ["a"]}),
            failed("build", "a"),
            false,
        ),
        // A filter of steps says nothing of stages.
        (json!({"steps": ["a"]}), ended("build"), true),
        (json!({}), ended("gone"), false),
        (json!({"stages": ["other"]}), Event::PipelineEnd, true),
    ];
    for (filter, event, expected) in table {
        let mut wish = filter.clone();
        wish["type"] = event.name().into();
        assert_eq!(told(json!([wish]), &event), expected, "{filter} {event:?}");
    }
}

#[test]
fn a_message_goes_to_each_receiver_and_to_none_twice() {
    let count = |method: Value| {
        let mut plan = plan(Vec::new());
        let twice = json!([{"type": "PipelineEnd"}, {"type": "AllEvents"}]);
        plan.notifications = vec![rule(twice, method)];
        let told = notices(&RunId::new("r"), &plan, &Event::PipelineEnd);
        let ids: std::collections::BTreeSet<String> = told.iter().map(Notice::id).collect();
        assert_eq!(ids.len(), told.len());
        told.len()
    };
    assert_eq!(count(slack()), 1);
    let groups = json!({"type": "Slack", "spec": {"userGroups": ["a"], "webhookUrl": ""}});
    assert_eq!(count(groups), 1);
    let both = json!({"type": "Email", "spec": {"userGroups": ["a", "org.b"], "recipients": ["a@b.c", "d@e.f"]}});
    assert_eq!(count(both), 3);
    let none = json!({"type": "Webhook", "spec": {"userGroups": ["a"], "webhookUrl": "u"}});
    assert_eq!(count(none), 1);
    let teams = json!({"type": "MsTeams", "spec": {"msTeamKeys": ["https://a", " ", "https://b"]}});
    assert_eq!(count(teams), 2);
    let mail = json!({"type": "Email", "spec": {"recipients": ["a@b.c", "d@e.f"]}});
    assert_eq!(count(mail), 1);
    assert_eq!(
        count(json!({"type": "PagerDuty", "spec": {"integrationKey": "k"}})),
        1
    );
    assert_eq!(
        count(json!({"type": "Datadog", "spec": {"url": "u", "apiKey": "k"}})),
        1
    );
    assert_eq!(count(json!({"type": "Pigeon", "spec": {}})), 0);
    assert_eq!(count(Value::Null), 0);
}

#[test]
fn every_notice_has_a_name_of_its_own_and_is_read_as_it_is_written() {
    let notices = every_event().into_iter().map(|event| Notice {
        run_id: RunId::new("r"),
        rule: 0,
        receiver: 0,
        event,
    });
    let mut ids = std::collections::BTreeSet::new();
    for notice in notices {
        assert!(ids.insert(notice.id()), "{notice:?}");
        assert!(notice.id().len() <= 80);
        let text = serde_json::to_string(&notice).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Notice>(&text).expect("a notice"),
            notice
        );
    }
}

#[test]
fn ends_are_told_by_how_they_are() {
    let names = |status| -> Vec<&str> { end_of_run(status).iter().map(Event::name).collect() };
    assert_eq!(names(Status::Success), ["PipelineEnd", "PipelineSuccess"]);
    assert_eq!(
        names(Status::IgnoreFailed),
        ["PipelineEnd", "PipelineSuccess"]
    );
    for failed in [Status::Failed, Status::Errored, Status::Expired] {
        assert_eq!(names(failed), ["PipelineEnd", "PipelineFailed"]);
        assert!(step_failed(failed));
    }
    assert_eq!(
        names(Status::AbortedByFreeze),
        ["PipelineEnd", "PipelineFailed"]
    );
    assert_eq!(names(Status::Aborted), ["PipelineEnd"]);
    assert!(names(Status::Running).is_empty());
    let stage = StageId::new("s");
    let of_stage = |status| end_of_stage(&stage, status).map(|event| event.name());
    assert_eq!(of_stage(Status::Success), Some("StageSuccess"));
    assert_eq!(of_stage(Status::ApprovalRejected), Some("StageFailed"));
    for quiet in [Status::Skipped, Status::Aborted, Status::Running] {
        assert_eq!(of_stage(quiet), None);
    }
    assert!(!step_failed(Status::Aborted) && !step_failed(Status::IgnoreFailed));
}

#[test]
fn rules_of_a_pipeline_do_not_tell_approvers() {
    let event = Event::ApprovalRequired {
        stage_id: StageId::new("build"),
        node_id: NodeId::new("a"),
        attempt: 0,
    };
    assert!(!told(json!([{"type": "AllEvents"}]), &event));
}
