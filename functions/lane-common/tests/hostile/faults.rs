//! Faults of machines, stores and clocks in whole runs: names begin with the id of their case in `docs/hostile.md`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use slipway_engine::signal::Word;
use slipway_model::id::{NodeId, PrincipalId, RunId};
use slipway_model::status::{ErrorType, Status};
use slipway_store::record::{RunRecord, SignalRecord};
use slipway_world::tap::{Invocation, Place, Tap, Verdict};
use slipway_world::yaml::{
    LEADS, ROLL_BACK, TARGET, beside, deployment, group, pipeline, script, stage, wait,
};
use slipway_world::{Options, World, by_hand};

use crate::{approval, approves, ended_after_minutes, minutes, named, vote, world_with};

fn busy() -> String {
    let again = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action: {type: Retry, spec: \
                 {retryCount: 2, retryIntervals: [1m], onRetryFailure: {action: {type: MarkAsFailure}}}}\n";
    let steps = script("a", "fail until 1", again)
        + &group("g", &[wait("pause", "3m"), script("b", "ok", "")])
        + &beside(&[script("c", "ok", ""), wait("d", "2m")])
        + &script("e", "fail", "");
    pipeline(&[stage(
        "deploy",
        &steps,
        &script("undo", "ok", ""),
        ROLL_BACK,
    )])
}

async fn story_of(world: &World, yaml: &str) -> String {
    world.apply(yaml).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    world.assert_clean(&run.id).await;
    world.story(&run).await
}

/// Does the same to every invocation that it counts to.
struct Each {
    every: usize,
    becomes: Invocation,
    count: AtomicUsize,
}

impl Each {
    fn new(every: usize, becomes: Invocation) -> Self {
        let count = AtomicUsize::new(0);
        Self {
            every,
            becomes,
            count,
        }
    }
}

impl Tap for Each {
    fn request(&self, _: Place, _: &str) -> Verdict {
        Verdict::Pass
    }

    fn invocation(&self, _: &str) -> Invocation {
        match self.count.fetch_add(1, Ordering::SeqCst) % self.every {
            0 => self.becomes,
            _ => Invocation::Once,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn f6_events_that_come_twice_or_whose_answer_is_dropped_change_nothing() {
    let expected = story_of(&World::new().await, &busy()).await;
    for (every, becomes) in [
        (1, Invocation::Twice),
        (2, Invocation::Unheard("Lambda.Unknown")),
        (3, Invocation::Unheard("Runtime.ExitError")),
        (3, Invocation::Refused("Lambda.TooManyRequestsException")),
    ] {
        let world = world_with(Each::new(every, becomes)).await;
        let story = story_of(&world, &busy()).await;
        assert_eq!(story, expected, "{becomes:?}, one of {every}");
        let mut deeds = world.deeds.list();
        let all = deeds.len();
        deeds.sort_unstable();
        deeds.dedup();
        assert_eq!(deeds.len(), all, "{becomes:?}: a script ran twice");
    }
}

#[tokio::test(start_paused = true)]
async fn f3_of_many_who_start_a_run_at_once_one_does() {
    let world = World::new().await;
    world
        .apply(&pipeline(&[stage("build", &script("a", "ok", ""), "", "")]))
        .await;
    let run = world.start("release").await;
    let start = || slipway_engine::unstarted::start_execution(&world.runs, &run);
    let sweep = || world.start_accepted();
    let (a, b, c, d) = tokio::join!(start(), start(), sweep(), sweep());
    assert!(a.is_ok() && b.is_ok() && c.is_ok() && d.is_ok());
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Success);
    start().await.expect("it has ended, which is as good");
    minutes(&world, 10).await;
    assert_eq!(world.deeds.list().len(), 1);
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn f5_a_token_that_is_never_used_leads_to_the_failure_strategy() {
    let world = World::new().await;
    let lost = "failureStrategies:\n  - onFailure:\n      errors: [DelegateRestart]\n      action: {type: Ignore}\n";
    let steps = script("gone", "vanish", lost) + &script("b", "ok", "");
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run IgnoreFailed
    deploy IgnoreFailed
    deploy.steps.b #0 Success
    deploy.steps.gone #0 IgnoreFailed
    ");
    assert!(
        ended_after_minutes(&run) <= 2,
        "silence is noticed within a minute"
    );
    // Nothing is open: no token, no task, no wait.
    world.assert_clean(&run.id).await;
}

/// A script for a delegate that is not there runs on no other. It waits for one until its time is up, and says what it
/// lacks; the failure is one that a strategy may match.
#[tokio::test(start_paused = true)]
async fn a_script_for_delegates_that_are_not_there_waits_and_fails_by_name() {
    let world = World::new().await;
    let lost = "failureStrategies:\n  - onFailure:\n      errors: [DelegateProvisioning]\n      action: {type: MarkAsFailure}\n\
                delegateSelectors: [linux, gpu]\n";
    let steps = script("far", "ok", lost) + &script("b", "ok", "");
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let minutes = ended_after_minutes(&run);
    assert!((10..=11).contains(&minutes), "{minutes}");
    let far = NodeId::new("stages.deploy.spec.execution.steps.far");
    assert!(!world.deeds.list().iter().any(|task| task.contains("far")));
    let nodes = world.store.show_nodes(&run.id).await.expect("nodes");
    let node = nodes.iter().find(|node| node.id == far).expect("the step");
    assert_eq!(node.status, Status::Expired);
    let failure = node.failure.as_ref().expect("a failure");
    assert_eq!(failure.error, ErrorType::DelegateProvisioning);
    assert_eq!(
        failure.message,
        "It did not end within its timeout of 10m. No eligible delegates: its work needs one that carries the selectors \
         linux, gpu, and delegate d1 is connected and does not. Start one that does (`slipway delegate --tag …`), or \
         change `delegateSelectors`."
    );
    world.assert_clean(&run.id).await;
}

/// The function that notes a word dies before it wakes who waits. Who said it says it again.
#[tokio::test(start_paused = true)]
async fn f5_a_word_that_woke_nobody_is_heard_when_it_is_said_again() {
    let world = World::new().await;
    world.apply(LEADS).await;
    world
        .apply(&pipeline(&[stage("deploy", &approval("1d"), "", "")]))
        .await;
    let run = world.start("release").await;
    minutes(&world, 1).await;
    let Word::Step {
        node,
        attempt,
        kind,
        says,
    } = vote("sam")
    else {
        unreachable!("a vote")
    };
    let signal = SignalRecord {
        run: run.clone(),
        node,
        attempt,
        kind,
        says,
        who: PrincipalId::new("sam"),
        at_ms: world.runs.clock.now_ms(),
    };
    world.store.put_signal(&signal).await.expect("noted");
    minutes(&world, 10).await;
    let again = approves(&world, &run, "sam").await;
    assert!(again.is_err(), "it was said before");
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Success);
    assert!(ended_after_minutes(&run) < 15);
    world.assert_clean(&run.id).await;
}

/// Step Functions refuses to start executions for some minutes.
struct Throttled {
    until: std::sync::Mutex<Option<tokio::time::Instant>>,
}

impl Tap for Throttled {
    fn request(&self, place: Place, operation: &str) -> Verdict {
        let until = *self.until.lock().expect("no panic holds it");
        let busy = until.is_some_and(|until| tokio::time::Instant::now() < until);
        match place == Place::Workflows && operation == "StartExecution" && busy {
            true => Verdict::Throttle,
            false => Verdict::Pass,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn f10_starts_that_are_throttled_for_ten_minutes_are_made_up_for_in_order() {
    let until = tokio::time::Instant::now() + Duration::from_secs(600);
    let world = world_with(Throttled {
        until: std::sync::Mutex::new(Some(until)),
    })
    .await;
    let deploys = deployment(&stage("deploy", &wait("w", "90s"), "", ROLL_BACK));
    world.apply(TARGET).await;
    world.apply(&pipeline(&[deploys])).await;
    let mut accepted = Vec::new();
    let mut minute = 0;
    while minute < 12 {
        // After the tenth minute nothing is refused, and none that comes then overtakes those before it.
        for _ in 0..2 {
            let run = world.start_in_danger(by_hand("release")).await;
            accepted.push(run.expect("it is accepted").id);
        }
        minutes(&world, 1).await;
        world.start_accepted().await.expect("a sweep");
        minute += 1;
        if minute < 9 {
            let first = world.store.get_run(&accepted[0]).await.expect("a run");
            assert_eq!(first.status, Status::NotStarted);
        }
    }
    let mut begun = Vec::new();
    for id in &accepted {
        let run = world.finish(id).await;
        assert_eq!(run.status, Status::Success, "run {}", run.sequence);
        begun.push((run.stages[0].started_ms, run.sequence));
    }
    let in_order: Vec<u64> = (1..=24).collect();
    begun.sort_unstable();
    let deployed: Vec<u64> = begun.into_iter().map(|(_, number)| number).collect();
    assert_eq!(
        deployed, in_order,
        "one after the other, as they were accepted"
    );
    for shard in 0..slipway_store::Store::UNSTARTED_LISTS {
        let left = world.store.list_unstarted(shard, i64::MAX, 9).await;
        assert_eq!(left.expect("listed"), []);
    }
    world.assert_clean(&accepted[0]).await;
}

#[tokio::test(start_paused = true)]
async fn f15_a_run_ends_on_the_machines_that_it_began_with() {
    let world = World::new().await;
    world
        .apply(&pipeline(&[stage(
            "build",
            &(wait("w", "2h") + &script("a", "ok", "")),
            "",
            "",
        )]))
        .await;
    let old = world.start("release").await;
    minutes(&world, 10).await;

    let arn = "arn:aws:states:us-east-1:123456789012:stateMachine:lane";
    let known = world
        .sfn
        .describe_state_machine()
        .state_machine_arn(arn)
        .send()
        .await;
    let known = known.expect("a machine");
    let newer =
        known
            .definition()
            .replacen("\"StartAt\": \"Advance\",", "\"StartAt\": \"Newer\",", 1);
    let newer = newer.replacen(
        "\"States\": {",
        "\"States\": {\"Newer\": {\"Type\": \"Pass\", \"Next\": \"Advance\"},",
        1,
    );
    let update = world
        .sfn
        .update_state_machine()
        .state_machine_arn(arn)
        .definition(newer);
    update.send().await.expect("updated");
    let new = world.start("release").await;

    for (run, path) in [
        (
            old,
            "Advance Route Pause Advance Route AwaitDelegate Advance Route Done",
        ),
        (
            new,
            "Newer Advance Route Pause Advance Route AwaitDelegate Advance Route Done",
        ),
    ] {
        let run = world.finish(&run).await;
        assert_eq!(run.status, Status::Success);
        let lane = format!("{}-build-0-steps", run.id);
        assert_eq!(world.path("lane", &lane).await, path);
    }
    assert_eq!(world.engine.counters().open, 0);
}

#[tokio::test(start_paused = true)]
async fn f16_a_clock_that_stands_in_1970_runs_all_the_same() {
    let options = Options {
        begins: "1970-01-01T00:00:00Z".parse().expect("a time"),
        ..Options::default()
    };
    let world = World::with(options).await;
    let story = story_of(&world, &busy()).await;
    assert_eq!(story, story_of(&World::new().await, &busy()).await);
}

#[tokio::test(start_paused = true)]
async fn f18_nothing_runs_twice_that_was_not_told_to() {
    let world = World::new().await;
    let steps = beside(&[script("fails", "fail", ""), script("gone", "vanish", "")]);
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Failed);
    // What became of the second is not known: it is not run again for that.
    let deeds = world.deeds.list();
    assert_eq!(deeds.len(), 2, "{deeds:?}");
}

/// AWS documentation, *Step Functions service quotas*.
const LONGEST_HISTORY: usize = 25_000;

async fn events(world: &World, machine: &str, name: &str) -> usize {
    let arn = format!("arn:aws:states:us-east-1:123456789012:execution:{machine}:{name}");
    let history = world.sfn.get_execution_history().execution_arn(arn);
    let events = history.into_paginator().items().send();
    let events = events.collect::<Result<Vec<_>, _>>().await;
    events.expect("a history").len()
}

#[tokio::test(start_paused = true)]
async fn y12_the_largest_pipeline_does_not_fill_the_history_of_its_run() {
    let world = World::new().await;
    let one = |n: usize| stage(&format!("s{n}"), &wait("w", "1s"), "", "");
    let mut counts = Vec::new();
    for stages in [10, 30] {
        let in_order: Vec<String> = (0..stages).map(one).collect();
        let id = format!("release{stages}");
        world.apply(&named(&id, &pipeline(&in_order))).await;
        let run = world.start(&id).await;
        let run = world.finish(&run).await;
        assert_eq!(run.status, Status::Success);
        counts.push(events(&world, "pipeline", run.id.as_str()).await);
    }
    let each = (counts[1] - counts[0]).div_ceil(20);
    let largest = counts[0] + each * slipway_model::names::MOST_STAGES;
    // Twice over, for a rollback of the whole run; what is left is for starts that are throttled.
    assert!(
        2 * largest < LONGEST_HISTORY / 2,
        "{each} events for a stage"
    );
}

/// The plan of [`busy`] as it was stored on 2026-11-22. It is never written anew: a version that cannot read it would
/// leave the runs that wait while it is deployed without their plan.
const FIRST_PLAN: &str = include_str!("../formats/plan-1.json");

/// Adds a field that nobody knows to the plan, its stages and their nodes.
fn of_a_newer_version(value: &mut serde_json::Value) {
    if let Some(list) = value.as_array_mut() {
        list.iter_mut().for_each(of_a_newer_version);
    }
    let Some(object) = value.as_object_mut() else {
        return;
    };
    let ours = ["groups", "steps", "rollback_steps", "nodes", "branches"];
    for (_, inner) in object
        .iter_mut()
        .filter(|(name, _)| ours.contains(&name.as_str()))
    {
        of_a_newer_version(inner);
    }
    // Nodes are tagged by their kind from outside or inside; both are objects with an id in them.
    if object.contains_key("id") || object.contains_key("groups") {
        object.insert("colour".to_owned(), "blue".into());
    }
}

#[tokio::test(start_paused = true)]
async fn f15_a_plan_of_the_first_format_runs_to_its_end() {
    let world = World::new().await;
    let expected = story_of(&world, &busy()).await;
    let page = slipway_store::Page::first(1);
    let runs = world
        .store
        .list_runs(&slipway_world::scope(), None, page)
        .await;
    let known = runs.expect("listed").items.remove(0);
    let mut newer = serde_json::from_str(FIRST_PLAN).expect("JSON");
    of_a_newer_version(&mut newer);
    assert!(newer.to_string().matches("colour").count() > 8, "{newer}");
    for (id, plan) in [("old", FIRST_PLAN.to_owned()), ("newer", newer.to_string())] {
        let digest = world.store.put_blob(plan.as_bytes()).await.expect("stored");
        let record = RunRecord {
            id: RunId::new(id),
            plan: Some(digest),
            status: Status::NotStarted,
            started_ms: world.runs.clock.now_ms(),
            ended_ms: None,
            failure: None,
            stages: Vec::new(),
            ..known.clone()
        };
        world.store.create_run(&record).await.expect("accepted");
        minutes(&world, 1).await;
        assert_eq!(world.start_accepted().await.expect("a sweep").started, 1);
        let run = world.finish(&record.id).await;
        assert_eq!(world.story(&run).await, expected, "{id}");
        world.assert_clean(&run.id).await;
    }
}
