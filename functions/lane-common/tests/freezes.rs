//! Freezes in whole runs, on the real machines. The world begins on 2026-01-01 at midnight UTC.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_engine::error_name::ErrorName;
use slipway_model::id::{AccountId, EntityId, Scope};
use slipway_model::status::Status;
use slipway_store::record::EntityRecord;
use slipway_world::receiver::Receiver;
use slipway_world::yaml::{TARGET, deployment, pipeline, script, stage, together, wait};
use slipway_world::{Api, World, minutes};

/// A deployment stage.
fn deploys(id: &str, steps: &str) -> String {
    deployment(&stage(id, steps, "", ""))
}

/// A freeze of production from one in the morning of every day, for three hours.
const NIGHT: &str = "freeze:
  name: Every night
  identifier: night
  orgIdentifier: default
  projectIdentifier: shop
  status: Enabled
  entityConfigs:
    - name: production
      entities:
        - type: Service
          filterType: All
        - type: EnvType
          filterType: Equals
          entityRefs: [Production]
  windows:
    - timeZone: UTC
      startTime: 2025-12-01 01:00 AM
      duration: 3h
      recurrence:
        type: Daily
";

async fn hours(world: &World, hours: u64) {
    let time = Duration::from_secs(3_600 * hours);
    world.runs.clock.sleep(time).await;
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_runs_finishes_and_the_next_deployment_is_aborted() {
    let world = World::new().await;
    world.apply(TARGET).await;
    world.apply(NIGHT).await;
    let always = "when:\n  pipelineStatus: All\n";
    let stages = [
        deploys("first", &wait("long", "2h")),
        deploys("second", &script("never", "ok", "")),
        stage("default", &script("never", "ok", ""), "", ""),
        stage("tell", &script("a", "ok", ""), "", always),
    ];
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @r##"
    run AbortedByFreeze: Stage second did not begin: deployments are frozen by the freeze `night` (Every night) of the project until 2026-01-01 04:00 AM UTC. Run it afterwards, or disable the freeze.
    first Success
    second AbortedByFreeze: Stage second did not begin: deployments are frozen by the freeze `night` (Every night) of the project until 2026-01-01 04:00 AM UTC. Run it afterwards, or disable the freeze.
    default Skipped
    tell Skipped
    first.steps.long #0 Success
    "##);
    assert_eq!(
        world.path("pipeline", run.id.as_str()).await,
        "Plan Stages Group Line Stage Stage Stage Stage Finish Aborted"
    );
    world.assert_clean(&run.id).await;

    // From four in the morning on nothing holds it back.
    hours(&world, 3).await;
    let run = world.start("release").await;
    assert_eq!(world.finish(&run).await.status, Status::Success);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_is_rejected_is_told_by_the_rules_of_the_freeze() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    world.apply(TARGET).await;
    let rule = |path: &str, event: &str, enabled: bool| {
        format!(
            "    - {{name: {path}, identifier: {path}, enabled: {enabled}, events: [{{type: {event}}}], notificationMethod: \
             {{type: Webhook, spec: {{webhookUrl: '{}'}}}}}}\n",
            receiver.url(path)
        )
    };
    let rejected = "DeploymentRejectedDueToFreeze";
    let rules = [
        rule("other", "FreezeWindowEnabled", true),
        rule("off", rejected, false),
        rule("told", rejected, true),
    ];
    let night = NIGHT.replace("01:00 AM", "12:00 AM");
    world
        .apply(&format!("{night}  notificationRules:\n{}", rules.concat()))
        .await;
    world
        .apply(&pipeline(&[deploys("deploy", &script("a", "ok", ""))]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::AbortedByFreeze);
    hours(&world, 1).await;
    assert_eq!(
        receiver.events("told"),
        ["DeploymentRejectedDueToFreeze deploy"]
    );
    assert_eq!(receiver.got().len(), 1);
    let data = &receiver.got()[0].body["eventData"];
    let why = data["errorMessage"].as_str();
    assert!(
        why.is_some_and(|why| why.contains("the freeze `night`")),
        "{data}"
    );
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_waits_for_its_infrastructure_is_frozen_and_leaves_no_wait() {
    let world = World::new().await;
    world.apply(TARGET).await;
    world.apply(NIGHT).await;
    let stages = [
        deploys("first", &wait("long", "2h")),
        deploys("second", &script("never", "ok", "")),
    ];
    world.apply(&pipeline(&[together(&stages)])).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let statuses: Vec<_> = run.stages.iter().map(|stage| stage.status).collect();
    assert_eq!(statuses, [Status::Success, Status::AbortedByFreeze]);
    world.assert_clean(&run.id).await;
}

/// Neither a stage for whatever came before it, nor one for failures.
#[tokio::test(start_paused = true)]
async fn no_stage_runs_after_one_that_was_frozen() {
    let world = World::new().await;
    world.apply(TARGET).await;
    world.apply(&NIGHT.replace("01:00 AM", "12:00 AM")).await;
    let mut stages = vec![deploys("frozen", &script("never", "ok", ""))];
    for wanted in ["All", "Failure"] {
        let lines = format!("when:\n  pipelineStatus: {wanted}\n");
        let id = wanted.to_lowercase();
        stages.push(stage(&id, &script("a", "ok", ""), "", &lines));
    }
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::AbortedByFreeze);
    let statuses: Vec<_> = run.stages.iter().map(|stage| stage.status).collect();
    assert_eq!(
        statuses,
        [Status::AbortedByFreeze, Status::Skipped, Status::Skipped]
    );
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_freeze_that_is_over_when_the_turn_of_a_stage_comes_does_not_matter() {
    let world = World::new().await;
    world.apply(TARGET).await;
    world.apply(NIGHT).await;
    // It waits from midnight to five, and looks for its turn every half hour.
    let stages = [
        deploys("first", &wait("long", "5h")),
        deploys("second", &script("late", "ok", "")),
    ];
    world.apply(&pipeline(&[together(&stages)])).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let statuses: Vec<_> = run.stages.iter().map(|stage| stage.status).collect();
    assert_eq!(statuses, [Status::Success, Status::Success]);
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_but_a_person_starts_a_pipeline_that_is_frozen() {
    let world = World::new().await;
    world.apply(TARGET).await;
    let frozen = "freeze:\n  name: Stop\n  identifier: _GLOBAL_\n  status: Enabled\n  windows:\n    - {timeZone: \
                  Asia/Tokyo, startTime: 2026-01-01 08:00 AM, duration: 1d}\n";
    let account = EntityRecord {
        scope: Scope::account(AccountId::new("acme")),
        kind: "freeze".to_owned(),
        parent: None,
        id: EntityId::new("_GLOBAL_"),
        name: "Stop".to_owned(),
        description: None,
        tags: Vec::new(),
        entity_type: None,
        yaml: frozen.to_owned(),
        version: 0,
        created_ms: 0,
        updated_ms: 0,
        connection: None,
        git: None,
        saved_by: None,
    };
    world
        .store
        .put_entity(&account, None)
        .await
        .expect("stored");
    world
        .apply(&pipeline(&[deploys("deploy", &script("a", "ok", ""))]))
        .await;
    let refused = world.start_by("release", "WEBHOOK_CUSTOM").await;
    let refused = refused.expect_err("frozen");
    assert_eq!(refused.name(), ErrorName::Frozen);
    let why = "the freeze `_GLOBAL_` (Stop) of the account until 2026-01-02 08:00 AM Asia/Tokyo";
    assert!(refused.to_string().contains(why), "{refused}");
    let by_hand = world.start("release").await;
    let by_hand = world.finish(&by_hand).await;
    assert_eq!(by_hand.status, Status::AbortedByFreeze);
    assert!(
        by_hand
            .failure
            .is_some_and(|failure| failure.message.contains(why))
    );

    hours(&world, 24).await;
    let started = world.start_by("release", "WEBHOOK_CUSTOM").await;
    let started = started.expect("it is over");
    assert_eq!(world.finish(&started.id).await.status, Status::Success);
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_request_changes_nothing_about_a_freeze() {
    let world = World::new().await;
    world.apply(TARGET).await;
    world
        .apply(
            &NIGHT
                .replace("01:00 AM", "12:00 AM")
                .replace("duration: 3h", "duration: 1d"),
        )
        .await;
    world
        .apply(&pipeline(&[deploys("deploy", &script("a", "ok", ""))]))
        .await;
    for request in 1.. {
        // Every other crash comes after the request was carried out, and nobody hears of it.
        let after = request % 2 == 0;
        world.crash.arm(request, after);
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        assert_eq!(
            run.status,
            Status::AbortedByFreeze,
            "crash at request {request}"
        );
        assert_eq!(run.stages[0].status, Status::AbortedByFreeze);
        world.assert_clean(&run.id).await;
        if world.crash.is_armed() {
            assert!(request > 8, "only {request} requests");
            break;
        }
    }
}

/// A freeze of the whole account in every night, with a rule for each event.
fn told_freeze(receiver: &Receiver, status: &str) -> Value {
    let rule = |path: &str, event: &str| {
        json!({
            "name": path, "identifier": path, "enabled": true, "events": [{"type": event}],
            "customizedMessage": "Ask the release team",
            "notificationMethod": {"type": "Webhook", "spec": {"webhookUrl": receiver.url(path)}},
        })
    };
    json!({"freeze": {
        "name": "Nights", "identifier": "nights", "status": status,
        "entityConfigs": [{"name": "all", "entities": [
            {"type": "Org", "filterType": "All"}, {"type": "Project", "filterType": "All"},
            {"type": "Service", "filterType": "All"}, {"type": "EnvType", "filterType": "All"},
        ]}],
        "windows": [{
            "timeZone": "UTC", "startTime": "2025-12-01 01:00 AM", "duration": "3h",
            "recurrence": {"type": "Daily", "spec": {}},
        }],
        "notificationRules": [
            rule("enabled", "OnEnableFreezeWindow"),
            rule("active", "FreezeWindowEnabled"),
            rule("deployment", "DeploymentRejectedDueToFreeze"),
            rule("trigger", "TriggerInvocationRejectedDueToFreeze"),
        ],
    }})
}

const FREEZES: &str = "/ng/api/freeze?accountIdentifier=acme";

async fn set_status(api: &Api, token: &str, status: &str) {
    let path = FREEZES.replace('?', &format!("/updateFreezeStatus?status={status}&"));
    let (code, answer) = api
        .call(token, "POST", &path, Some(&json!(["nights"])))
        .await;
    assert_eq!(
        (code, &answer["data"]["noOfSuccess"]),
        (200, &json!(1)),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_freeze_tells_that_it_was_enabled_when_it_is_active_and_what_it_rejects() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let (api, token) = (world.api().await, world.token("alex").await);
    let freeze = told_freeze(&receiver, "Disabled");
    let (code, answer) = api.call(&token, "POST", FREEZES, Some(&freeze)).await;
    assert_eq!(code, 200, "{answer}");
    hours(&world, 48).await;
    assert_eq!(receiver.got().len(), 0, "it is disabled");

    // 2026-01-03 at midnight.
    set_status(&api, &token, "Enabled").await;
    minutes(&world, 30).await;
    assert_eq!(receiver.events("enabled"), ["OnEnableFreezeWindow"]);
    let data = receiver.got()[0].body["eventData"].clone();
    assert_eq!(data["freezeIdentifier"], "nights");
    assert_eq!(data["triggeredBy"], "alex");
    assert_eq!(receiver.got().len(), 1, "no window is open yet");
    hours(&world, 1).await;
    assert_eq!(receiver.events("active"), ["FreezeWindowEnabled"]);
    let data = receiver.got()[1].body["eventData"].clone();
    assert_eq!(data["startTime"], "Sat Jan 03 01:00:00 GMT 2026");
    assert_eq!(data["endTime"], "Sat Jan 03 04:00:00 GMT 2026");

    // 01:30: a trigger is rejected; a person is held back at the stage.
    world.apply(TARGET).await;
    world
        .apply(&pipeline(&[deploys("deploy", &script("a", "ok", ""))]))
        .await;
    let refused = world.start_by("release", "WEBHOOK_CUSTOM").await;
    assert_eq!(refused.expect_err("frozen").name(), ErrorName::Frozen);
    minutes(&world, 5).await;
    let rejected = "TriggerInvocationRejectedDueToFreeze";
    assert_eq!(receiver.events("trigger"), [rejected]);
    assert_eq!(receiver.events("deployment"), [rejected]);
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::AbortedByFreeze);
    minutes(&world, 5).await;
    assert_eq!(receiver.events("trigger"), [rejected]);
    assert_eq!(
        receiver.events("deployment"),
        ["DeploymentRejectedDueToFreeze deploy", rejected]
    );

    // Two more nights, and none after it was disabled.
    hours(&world, 48).await;
    assert_eq!(receiver.events("active").len(), 3);
    set_status(&api, &token, "Disabled").await;
    hours(&world, 48).await;
    assert_eq!(receiver.events("active").len(), 3);
    assert_eq!(receiver.events("enabled").len(), 1);

    // Enabled in the middle of a window, it is active at once.
    hours(&world, 24).await;
    set_status(&api, &token, "Enabled").await;
    minutes(&world, 5).await;
    assert_eq!(receiver.events("enabled").len(), 2);
    assert_eq!(receiver.events("active").len(), 4);
    set_status(&api, &token, "Disabled").await;
    hours(&world, 48).await;
    assert_eq!(world.engine.counters().open, 0, "nobody watches any more");
    assert_eq!(receiver.events("active").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_crash_anywhere_neither_loses_nor_doubles_the_message_of_a_window() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let (api, token) = (world.api().await, world.token("alex").await);
    let freeze = told_freeze(&receiver, "Enabled");
    let (code, answer) = api.call(&token, "POST", FREEZES, Some(&freeze)).await;
    assert_eq!(code, 200, "{answer}");
    minutes(&world, 30).await;
    for request in 1.. {
        // Every other crash comes after the request was carried out, and nobody hears of it.
        receiver.empty();
        world.crash.arm(request, request % 2 == 0);
        hours(&world, 24).await;
        assert_eq!(receiver.events("active").len(), 1, "crash at {request}");
        if world.crash.is_armed() {
            assert!(request > 2, "only {request} requests");
            break;
        }
    }
}
