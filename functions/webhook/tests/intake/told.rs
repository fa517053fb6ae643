//! Who is told of a trigger that fires and starts nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use slipway_model::status::Status;
use slipway_world::receiver::Receiver;
use slipway_world::tap::{Place, Tap, Verdict};
use slipway_world::yaml::{says, stage, webhook, with_rules};
use slipway_world::{Options, World, minutes};

use crate::{SECRET, deliver, history, on_push, push, runs};

/// The pipeline `release`, which wants a version, with rules.
fn wants_version(receiver: &Receiver) -> String {
    let steps = says("told", "<+pipeline.variables.version>");
    let rules = [
        (
            "{type: TriggerFailed}",
            webhook(&receiver.url("<+pipeline.variables.team>/failed")),
        ),
        ("{type: AllEvents}", webhook(&receiver.url("all"))),
        (
            "{type: PipelineFailed}, {type: PipelineEnd}",
            webhook(&receiver.url("ends")),
        ),
    ];
    with_rules(&[stage("build", &steps, "", "")], &rules).replacen(
        "pipeline:\n",
        "pipeline:\n  variables:\n    - {name: version, type: String, value: <+input>}\n    - {name: team, type: \
         String, value: ops}\n",
        1,
    )
}

#[tokio::test(start_paused = true)]
async fn a_trigger_that_fires_and_starts_nothing_is_told_once() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    world.put_secret("hook", SECRET).await;
    world.apply(&wants_version(&receiver)).await;
    world.apply(&on_push("main", "")).await;
    let other = "payloadConditions:\n  - {key: targetBranch, operator: Equals, value: other}\n";
    world.apply(&on_push("other", other)).await;
    let hooks = world.hooks();
    for id in ["d-1", "d-2"] {
        let body = push("0", "a", "2026-01-01T00:00:00Z");
        let (status, answer) = deliver(&hooks, id, &body).await;
        assert_eq!(status, 200, "{answer}");
    }
    // One that was overtaken is no failure.
    let older = push("0", "c", "2025-12-31T00:00:00Z");
    deliver(&hooks, "d-3", &older).await;
    minutes(&world, 10).await;

    assert!(runs(&world).await.is_empty());
    assert_eq!(receiver.events("ops/failed"), ["TriggerFailed"]);
    assert_eq!(receiver.events("all"), ["TriggerFailed"]);
    assert_eq!(receiver.events("ends"), [""; 0]);
    let rows = history(&world, "main").await;
    assert_eq!(rows.len(), 2, "{rows:?}");
    let failed = rows.iter().find(|row| !row.message.contains("newer"));
    let failed = failed.expect("a failure");
    let got = receiver.got();
    let data = &got[0].body["eventData"];
    assert_eq!(data["pipelineIdentifier"], "release");
    assert_eq!(data["triggerIdentifier"], "main");
    assert_eq!(data["triggerType"], "Webhook");
    assert_eq!(data["startTs"], failed.received_ms);
    let error = data["errorMessage"].as_str().expect("a reason");
    assert!(error.contains("pipeline.variables"), "{error}");
    let links = [
        ("triggerActivityUrl", "/triggers/eventHistory/main?"),
        ("triggerUrl", "/triggers/main/details?"),
    ];
    for (field, part) in links {
        let url = data[field].as_str().expect("a URL");
        assert!(url.contains(part), "{url}");
        assert!(url.contains("targetIdentifier=release"), "{url}");
    }
}

/// Nothing new can be written while it is on; what is there can be changed.
#[derive(Default)]
struct Full(AtomicBool);

impl Tap for Full {
    fn request(&self, place: Place, operation: &str) -> Verdict {
        let hit = place == Place::Store && operation == "PutItem";
        match hit && self.0.load(Ordering::SeqCst) {
            true => Verdict::Fail { after: false },
            false => Verdict::Pass,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_given_up_is_told_and_may_be_tried_again() {
    let receiver = Receiver::new().await;
    let full = Arc::new(Full::default());
    let world = World::with(Options {
        tap: Some(full.clone()),
        real_servers: true,
        ..Options::default()
    })
    .await;
    world.put_secret("hook", SECRET).await;
    let yaml = wants_version(&receiver).replace("value: <+input>", "value: '1'");
    world.apply(&yaml).await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.unheard_hooks();
    let body = push("0", "a", "2026-01-01T00:00:00Z");
    let (_, answer) = deliver(&hooks, "d-1", &body).await;
    let event = answer["data"].as_str().expect("an event").to_owned();
    full.0.store(true, Ordering::SeqCst);
    for attempt in 1..=5 {
        assert_eq!(receiver.events("all"), [""; 0]);
        minutes(&world, 1).await;
        let swept = world.take_in().await.expect("an answer");
        assert_eq!(swept["dead"], json!(u32::from(attempt == 5)), "{swept}");
    }
    full.0.store(false, Ordering::SeqCst);
    minutes(&world, 200).await;
    assert_eq!(receiver.events("all"), ["TriggerFailed"]);
    let rows = history(&world, "main").await;
    assert_eq!(rows[0].status, "EXCEPTION_WHILE_PROCESSING");
    assert!(rows[0].message.contains("redrive"), "{rows:?}");

    let record = world.store.find_event(&event).await.expect("read");
    let record = record.expect("the event");
    assert!(world.store.redrive(&record).await.expect("listed again"));
    minutes(&world, 1).await;
    world.take_in().await;
    let all = runs(&world).await;
    let run = world.finish(&all[0].id).await;
    assert_eq!(run.status, Status::Success, "{:?}", run.failure);
    assert_eq!(history(&world, "main").await[0].run, Some(run.id));
}
