//! Triggers whose versions a script lists, which a delegate runs without a run.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use slipway_engine::gather::SourceReader;
use slipway_model::entity;
use slipway_model::status::Status;
use slipway_store::record::{ErrandRecord, FeedRecord};
use slipway_trigger::Trigger;
use slipway_world::World;
use slipway_world::tap::{Place, Tap, Verdict};

use crate::feeds::{DOCKER, Registries};
use crate::{history, minutes, only_run, place, runs, said, trigger, world, world_with};

/// A trigger on what a script lists; `more` are further fields of its spec.
fn on_script(id: &str, script: &str, more: &str) -> String {
    let mut source = format!(
        "type: Artifact\nspec:\n  type: CustomArtifact\n  spec:\n    script: {script}\n    artifactsArrayPath: $.items\n    versionPath: name\n    version: <+trigger.artifact.build>\n    metadata: {{commit: ref.sha}}\n"
    );
    for line in more.lines() {
        let _ = writeln!(source, "    {line}");
    }
    trigger(id, &source, "")
}

fn listed(versions: &[&str]) -> String {
    let items = versions
        .iter()
        .map(|name| json!({"name": name, "ref": {"sha": format!("c{name}")}}));
    json!({"items": items.collect::<Vec<_>>()}).to_string()
}

/// The pipeline of these tests says what it was started for.
async fn saying(world: &World) {
    let words = "<+trigger.artifact.build> <+trigger.artifact.metadata.commit>";
    let told = slipway_world::yaml::says("told", words);
    let stage = slipway_world::yaml::stage("build", &told, "", "");
    world.apply(&slipway_world::yaml::pipeline(&[stage])).await;
}

/// A poll, and a minute in which a delegate may do what it gave out.
async fn poll(world: &World) -> Value {
    let polled = world.poll(&world.registries()).await;
    minutes(world, 1).await;
    polled.unwrap_or_default()
}

async fn standing(world: &World, yaml: &str, id: &str) -> FeedRecord {
    let parsed = entity::parse("t.yaml", yaml).expect("YAML");
    let trigger = Trigger::of(&parsed).expect("a trigger");
    let place = place(id);
    let found = slipway_engine::intake::poll::standing(&world.runs, &trigger, &place);
    found.await.expect("an answer").expect("a feed")
}

fn out(feed: &FeedRecord) -> &ErrandRecord {
    feed.errand.as_ref().expect("an errand")
}

#[tokio::test(start_paused = true)]
async fn a_new_version_of_a_script_starts_one_run_of_each_trigger_that_wants_it() {
    let world = world().await;
    saying(&world).await;
    world.deeds.lists("shop", &listed(&["1.9", "1.10"]));
    let all = on_script("all", "list from shop", "");
    let stable = on_script(
        "stable",
        "list from shop",
        "eventConditions:\n  - {key: build, operator: Regex, value: \"[0-9.]+\"}",
    );
    let of_another = on_script(
        "another",
        "list from shop",
        "metaDataConditions:\n  - {key: <+trigger.artifact.metadata.commit>, operator: Equals, value: c9}",
    );
    for yaml in [&all, &stable, &of_another] {
        world.apply(yaml).await;
    }
    // The first poll gives the script to a delegate, the second reads what was there before the triggers.
    for _ in 0..2 {
        assert_eq!(
            poll(&world).await,
            json!({"asked": 1, "failed": 0, "new": 0})
        );
    }
    assert_eq!(
        (world.deeds.list().len(), runs(&world).await.len()),
        (2, 0),
        "three triggers, one script"
    );
    world
        .deeds
        .lists("shop", &listed(&["1.9", "1.10", "2.0-rc"]));
    poll(&world).await;
    assert_eq!(poll(&world).await["new"], 1);
    let run = world.finish(&only_run(&world).await).await;
    assert_eq!(
        (run.trigger_type.as_str(), run.status),
        ("ARTIFACT", Status::Success)
    );
    assert_eq!(said(&world, &run.id).await, "2.0-rc c2.0-rc");
    for id in ["stable", "another"] {
        let rows = history(&world, id).await;
        assert_eq!((rows.len(), rows[0].run.is_none()), (1, true), "{id}");
    }
    // What was done is not kept, and no script runs beside another.
    let feed = standing(&world, &all, "all").await;
    let mut tasks = world.deeds.list();
    tasks.retain(|task| task.starts_with("CustomArtifact-"));
    let kept = async |task: &str| world.store.get_delegate_task(task).await.is_ok();
    assert_eq!((tasks.len(), tasks.last()), (4, Some(&out(&feed).task)));
    assert!(!kept(&tasks[0]).await && kept(&tasks[3]).await);
    // The same again is nothing new.
    poll(&world).await;
    poll(&world).await;
    assert_eq!(runs(&world).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_version_starts_a_run_when_a_registry_and_two_scripts_have_it() {
    let world = world().await;
    saying(&world).await;
    world.apply(DOCKER).await;
    let images = Arc::new(Registries::beside(world.registries()));
    let sources: Arc<dyn SourceReader> = images.clone();
    let listing = |place: &str| {
        format!(
            "    - type: CustomArtifact\n      spec:\n        script: list from {place}\n        artifactsArrayPath: $.items\n        versionPath: name\n        version: <+trigger.artifact.build>\n        metadata: {{commit: ref.sha}}\n"
        )
    };
    let source = format!(
        "type: MultiRegionArtifact\nspec:\n  type: CustomArtifact\n  sources:\n{}    - type: DockerRegistry\n      spec: {{connectorRef: hub, imagePath: south, tag: <+trigger.artifact.build>}}\n{}",
        listing("east"),
        listing("west"),
    );
    let yaml = trigger("regions", &source, "");
    world.apply(&yaml).await;
    world.deeds.lists("east", &listed(&["1.0", "1.1"]));
    world.deeds.lists("west", &listed(&["1.0"]));
    images.has("south", &["1.0", "1.1"]);
    let next = async || {
        world.poll(&sources).await;
        minutes(&world, 1).await;
        runs(&world).await.len()
    };
    // The first gives the scripts out, the second reads what was there before the trigger.
    for _ in 0..2 {
        assert_eq!(next().await, 0);
    }
    world.deeds.lists("west", &listed(&["1.0", "1.1"]));
    images.has("south", &["1.0"]);
    for _ in 0..3 {
        assert_eq!(next().await, 0, "the south has no 1.1 any more");
    }
    images.has("south", &["1.0", "1.1"]);
    next().await;
    assert_eq!(next().await, 1, "1.1 is everywhere now");
    let run = world.finish(&only_run(&world).await).await;
    // As the first source lists it.
    assert_eq!(said(&world, &run.id).await, "1.1 c1.1");
    // One that fails says nothing of any version, and the trigger says why.
    world.deeds.lists("east", &listed(&["1.0", "1.1", "2.0"]));
    world.deeds.lists("west", "no JSON");
    images.has("south", &["1.0", "1.1", "2.0"]);
    for _ in 0..2 {
        assert_eq!(next().await, 1);
    }
    let feed = standing(&world, &yaml, "regions").await;
    assert!(feed.failures > 0 && feed.why.is_some(), "{feed:?}");
    world.deeds.lists("west", &listed(&["2.0"]));
    let mut polls = 0;
    while next().await < 2 {
        polls += 1;
        assert!(polls < 10, "{:?}", standing(&world, &yaml, "regions").await);
    }
    // What was done is not kept: what is out is two tasks.
    let mut tasks = world.deeds.list();
    tasks.retain(|task| task.starts_with("MultiRegionArtifact-"));
    let mut there = 0;
    for task in &tasks {
        there += usize::from(world.store.get_delegate_task(task).await.is_ok());
    }
    assert_eq!((there, tasks.len() % 2), (2, 0), "{tasks:?}");
}

#[tokio::test(start_paused = true)]
async fn a_script_that_fails_is_asked_less_and_the_trigger_says_why() {
    let world = world().await;
    saying(&world).await;
    world.deeds.lists("shop", &listed(&["1.0"]));
    let yaml = on_script("all", "list from shop", "");
    world.apply(&yaml).await;
    poll(&world).await;
    poll(&world).await;
    world.deeds.lists("shop", "<html>");
    poll(&world).await;
    let before = world.deeds.list().len();
    for _ in 0..30 {
        poll(&world).await;
    }
    let feed = standing(&world, &yaml, "all").await;
    let why = feed.why.unwrap_or_default();
    assert!(why.contains("is no JSON"), "{why}");
    let asked = world.deeds.list().len() - before;
    assert!((3..=6).contains(&asked), "{asked} times in half an hour");
    // What came meanwhile is not lost.
    world.deeds.lists("shop", &listed(&["1.0", "1.1"]));
    for _ in 0..70 {
        poll(&world).await;
    }
    let feed = standing(&world, &yaml, "all").await;
    assert_eq!((feed.why, feed.failures), (None, 0));
    let run = world.finish(&only_run(&world).await).await;
    assert_eq!(said(&world, &run.id).await, "1.1 c1.1");
}

#[tokio::test(start_paused = true)]
async fn an_errand_that_no_delegate_answers_is_given_up_and_given_out_again() {
    let world = world().await;
    saying(&world).await;
    let yaml = on_script("all", "vanish", "timeout: 2m");
    world.apply(&yaml).await;
    poll(&world).await;
    let first = out(&standing(&world, &yaml, "all").await).clone();
    for _ in 0..6 {
        poll(&world).await;
        let feed = standing(&world, &yaml, "all").await;
        assert_eq!(
            (out(&feed), &feed.why),
            (&first, &None),
            "it has two minutes, and five to be taken"
        );
    }
    let failed = poll(&world).await;
    assert_eq!(failed["failed"], 1, "{failed}");
    let feed = standing(&world, &yaml, "all").await;
    let why = feed.why.clone().unwrap_or_default();
    assert!(
        why.contains("delegate d1 took its script and did not answer within 420 s"),
        "{why}"
    );
    // Whoever has it is told, and the next one is out; what is said stays until a delegate has answered.
    assert_ne!(out(&feed).task, first.task);
    let had: BTreeSet<String> = world.deeds.list().into_iter().collect();
    assert_eq!(had, [first.task.clone(), out(&feed).task.clone()].into());
    poll(&world).await;
    assert_eq!(standing(&world, &yaml, "all").await.why, feed.why);
}

#[tokio::test(start_paused = true)]
async fn a_trigger_says_that_no_delegate_takes_its_script() {
    let world = world().await;
    saying(&world).await;
    world.deeds.lists("shop", &listed(&["1.0"]));
    let yaml = on_script("all", "list from shop", "delegateSelectors: [windows]");
    world.apply(&yaml).await;
    poll(&world).await;
    poll(&world).await;
    let feed = standing(&world, &yaml, "all").await;
    let why = feed.why.clone().unwrap_or_default();
    let expected = "no delegate has taken its script, which waits for 60 s: d1 asked for it and does not carry all of the \
                    selectors windows";
    assert!(why.starts_with(expected), "{why}");
    assert_eq!(feed.failures, 0);
    for _ in 0..14 {
        poll(&world).await;
    }
    let feed = standing(&world, &yaml, "all").await;
    let why = feed.why.clone().unwrap_or_default();
    assert!(
        why.starts_with("no delegate took its script within 900 s: d1 asked for it"),
        "{why}"
    );
    assert_eq!((feed.failures, world.deeds.list().len()), (1, 0));
    // One that can be had is the end of it.
    let mended = yaml.replace("[windows]", "[linux]");
    world.apply(&mended).await;
    poll(&world).await;
    poll(&world).await;
    let feed = standing(&world, &mended, "all").await;
    assert_eq!(
        (feed.why, feed.seen.map(|seen| seen.len())),
        (None, Some(1))
    );
}

#[tokio::test(start_paused = true)]
async fn a_crash_anywhere_starts_one_run_for_each_version() {
    // Who dies before a request leaves what who dies after the one before it leaves.
    for request in 1.. {
        let world = world().await;
        saying(&world).await;
        world.deeds.lists("shop", &listed(&["1.0"]));
        world.apply(&on_script("all", "list from shop", "")).await;
        poll(&world).await;
        poll(&world).await;
        world.deeds.lists("shop", &listed(&["1.0", "1.1", "1.2"]));
        world.crash.arm(request, false);
        // One gives the script out that finds them, the next one starts their runs.
        poll(&world).await;
        world.poll(&world.registries()).await;
        let reached = !world.crash.is_armed();
        world.crash.disarm();
        for _ in 0..4 {
            minutes(&world, 1).await;
            world.take_in().await;
            world.poll(&world.registries()).await;
        }
        assert_eq!(runs(&world).await.len(), 2, "{request}");
        let rows = history(&world, "all").await;
        assert!(rows.iter().all(|row| row.run.is_some()), "{rows:?}");
        if !reached {
            assert!(request > 50, "{request}");
            return;
        }
    }
}

/// Kills whoever starts an execution, once armed.
#[derive(Default)]
struct AtStart {
    armed: AtomicBool,
    after: AtomicBool,
}

impl Tap for AtStart {
    fn request(&self, place: Place, operation: &str) -> Verdict {
        let meant = place == Place::Workflows && operation == "StartExecution";
        match meant && self.armed.swap(false, Ordering::SeqCst) {
            true => Verdict::Die {
                after: self.after.load(Ordering::SeqCst),
            },
            false => Verdict::Pass,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_dies_handing_a_script_to_delegates_leaves_it_to_the_next_poll() {
    for after in [false, true] {
        let tap = Arc::new(AtStart::default());
        let world = world_with(tap.clone()).await;
        saying(&world).await;
        world.deeds.lists("shop", &listed(&["1.0"]));
        let yaml = on_script("all", "list from shop", "");
        world.apply(&yaml).await;
        tap.after.store(after, Ordering::SeqCst);
        tap.armed.store(true, Ordering::SeqCst);
        assert_eq!(poll(&world).await, Value::Null, "it died");
        let given = out(&standing(&world, &yaml, "all").await).task.clone();
        poll(&world).await;
        poll(&world).await;
        let feed = standing(&world, &yaml, "all").await;
        assert_eq!(feed.seen.map(|seen| seen.len()), Some(1), "{after}");
        assert_eq!(world.deeds.list().first(), Some(&given), "{after}");
    }
}
