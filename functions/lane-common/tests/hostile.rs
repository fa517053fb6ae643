//! Bad input and faults in whole runs, on the real machines. Names that begin with an id are the cases of that id in
//! `docs/hostile.md`.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use slipway_engine::abort::abort_run;
use slipway_engine::signal::{Word, say};
use slipway_model::id::{NodeId, PrincipalId, RunId};
use slipway_model::status::Status;
use slipway_store::record::{RunRecord, SignalRecord};
use slipway_world::tap::{Invocation, Place, Tap, Verdict};
use slipway_world::yaml::{
    ROLL_BACK, TARGET, beside, deployment, group, pipeline, script, stage, wait,
};
use slipway_world::{Options, World, by_hand};

async fn minutes(world: &World, minutes: u64) {
    let time = Duration::from_secs(60 * minutes);
    world.runs.clock.sleep(time).await;
}

async fn world_with(tap: impl Tap + 'static) -> World {
    let options = Options {
        tap: Some(Arc::new(tap)),
        ..Options::default()
    };
    World::with(options).await
}

/// A pipeline under another name.
fn named(id: &str, yaml: &str) -> String {
    let (from, to) = (
        "name: release\n  identifier: release",
        format!("name: {id}\n  identifier: {id}"),
    );
    yaml.replacen(from, &to, 1)
}

fn ended_after_minutes(run: &RunRecord) -> i64 {
    (run.ended_ms.expect("an end") - run.started_ms) / 60_000
}

fn step(id: &str, kind: &str, timeout: &str, spec: &str) -> String {
    format!(
        "- step:\n    name: {id}\n    identifier: {id}\n    type: {kind}\n    timeout: {timeout}\n    spec: {{{spec}}}\n"
    )
}

fn barrier(id: &str, timeout: &str) -> String {
    step(id, "Barrier", timeout, "barrierRef: gate")
}

/// Stages side by side that meet at a barrier.
fn meeting(stages: &[String]) -> String {
    let inside: String = stages
        .iter()
        .flat_map(|stage| stage.lines())
        .map(|line| format!("    {line}\n"))
        .collect();
    let pipeline = pipeline(&[format!("    - parallel:\n{inside}")]);
    pipeline.replace(
        "  stages:\n",
        "  flowControl:\n    barriers:\n      - {identifier: gate, name: gate}\n  stages:\n",
    )
}

#[tokio::test(start_paused = true)]
async fn a_barrier_that_nobody_else_reaches_is_left_at_its_timeout() {
    let world = World::new().await;
    let stages = [
        stage(
            "here",
            &barrier("a", "30m"),
            &script("undo", "ok", ""),
            ROLL_BACK,
        ),
        stage(
            "away",
            &(wait("w", "9h") + &barrier("b", "1d")),
            "",
            ROLL_BACK,
        ),
    ];
    world.apply(&meeting(&stages)).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Failed: Step a: It did not end within its timeout of 30m. The stage was rolled back cleanly.
    here Expired: Step a: It did not end within its timeout of 30m. The stage was rolled back cleanly.
    away Failed: Step b: Barrier gate cannot be passed: stages.here.spec.execution.steps.a failed.
    away.steps.b #0 Failed
    away.steps.w #0 Success
    here.rollbackSteps.undo #0 Success
    here.steps.a #0 Expired
    ");
    assert_eq!(ended_after_minutes(&run), 540);
    world.assert_clean(&run.id).await;
}

/// A crash between the record of a failure and the word to the others at the barrier.
#[tokio::test(start_paused = true)]
async fn a_crash_after_a_failure_at_a_barrier_delays_nobody() {
    let world = World::new().await;
    let here = barrier("a", "10m");
    // The rollback is long: the others must not wait for the end of the stage.
    let here = stage("here", &here, &wait("undo", "5h"), ROLL_BACK);
    let there = stage("there", &barrier("b", "1d"), "", ROLL_BACK);
    let late = stage(
        "late",
        &(wait("w", "1h") + &barrier("c", "1d")),
        "",
        ROLL_BACK,
    );
    world.apply(&meeting(&[here, there, late])).await;
    // The failure comes at the tenth minute: each request from then on, carried out and not heard of.
    for request in 1.. {
        let run = world.start("release").await;
        minutes(&world, 9).await;
        world.crash.arm(request, true);
        minutes(&world, 2).await;
        let crashed = !world.crash.is_armed();
        world.crash.disarm();
        let run = world.finish(&run).await;
        let there = run.stages.iter().find(|stage| stage.id.as_str() == "there");
        let ended = there.and_then(|stage| stage.ended_ms).expect("an end");
        let after = (ended - run.started_ms) / 60_000;
        assert_eq!(after, 10, "crash at request {request}");
        world.assert_clean(&run.id).await;
        if !crashed {
            assert!(request > 20, "only {request} requests");
            break;
        }
    }
}

/// Lambda cannot run a function from its n-th invocation on, for some invocations.
struct Broken {
    function: &'static str,
    from: AtomicUsize,
    error: &'static str,
}

impl Broken {
    /// Nothing is broken until [`Broken::breaks`].
    fn later(function: &'static str, error: &'static str) -> Arc<Self> {
        Arc::new(Self {
            function,
            from: AtomicUsize::new(0),
            error,
        })
    }

    fn breaks(&self, times: usize) {
        self.from.store(times, Ordering::SeqCst);
    }
}

impl Tap for Broken {
    fn request(&self, _: Place, _: &str) -> Verdict {
        Verdict::Pass
    }

    fn invocation(&self, function: &str) -> Invocation {
        let left = self.from.load(Ordering::SeqCst);
        if function != self.function || left == 0 {
            return Invocation::Once;
        }
        self.from.store(left - 1, Ordering::SeqCst);
        Invocation::Refused(self.error)
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_and_an_infrastructure_whose_holder_breaks_go_to_the_next() {
    let queue = step("q", "Queue", "1d", "key: shared, scope: Pipeline");
    let queues = pipeline(&[stage("deploy", &(queue + &wait("w", "1h")), "", "")]);
    let deploys = deployment(&stage(
        "deploy",
        &wait("w", "1h"),
        &wait("undo", "1s"),
        ROLL_BACK,
    ));
    for (yaml, function) in [(queues, "lane"), (pipeline(&[deploys]), "lane-ecs")] {
        // No retry knows this error: the machine of the lane breaks.
        let broken = Broken::later(function, "Runtime.ImportModuleError");
        let options = Options {
            tap: Some(broken.clone()),
            ..Options::default()
        };
        let world = World::with(options).await;
        world.apply(TARGET).await;
        world.apply(&yaml).await;
        let first = world.start("release").await;
        minutes(&world, 5).await;
        let second = world.start("release").await;
        minutes(&world, 25).await;
        assert!(!world.holds().await.is_empty(), "{function}: it is held");
        broken.breaks(1);
        let first = world.finish(&first).await;
        assert_eq!(first.status, Status::Errored, "{:?}", first.failure);
        let second = world.finish(&second).await;
        assert_eq!(second.status, Status::Success, "{:?}", second.failure);
        let after = ended_after_minutes(&second);
        assert!(
            after <= 120,
            "{function}: the second waited {after} minutes"
        );
        assert_eq!(world.holds().await, Vec::<String>::new());
        world.assert_clean(&second.id).await;
    }
}

const ASK: &str = "stages.deploy.spec.execution.steps.ask";

fn approval(timeout: &str) -> String {
    let spec = "includePipelineExecutionHistory: true, approvers: {minimumCount: 1, \
                disallowPipelineExecutor: true, userGroups: [leads]}";
    step("ask", "HarnessApproval", timeout, spec)
}

fn vote(who: &str) -> Word {
    Word::Step {
        node: NodeId::new(ASK),
        attempt: 0,
        kind: format!("approval:{who}"),
        says: "{\"verdict\": \"APPROVE\", \"comments\": \"\", \"inputs\": {}}".to_owned(),
    }
}

async fn approves(world: &World, run: &RunId, who: &str) -> Result<(), String> {
    let said = say(&world.runs, run, &PrincipalId::new(who), &vote(who)).await;
    said.map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn an_approval_after_its_expiry_or_twice_by_one_person_is_refused() {
    let world = World::new().await;
    let steps = approval("1h") + &script("after", "ok", "");
    let rest = stage(
        "rest",
        &wait("w", "1d"),
        "",
        "when:\n  pipelineStatus: All\n",
    );
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", ""), rest]))
        .await;
    let run = world.start("release").await;
    minutes(&world, 61).await;
    // The run goes on; its approval does not.
    let late = approves(&world, &run, "sam").await.expect_err("too late");
    assert!(
        late.contains("Expired and not waiting for an approval"),
        "{late}"
    );
    let run = world.finish(&run).await;
    assert_eq!(run.stages[0].status, Status::Expired);

    let twice = step(
        "ask",
        "HarnessApproval",
        "1h",
        "includePipelineExecutionHistory: true, approvers: {minimumCount: 2, \
         disallowPipelineExecutor: true, userGroups: [leads]}",
    );
    let twice = pipeline(&[stage("deploy", &twice, "", "")]);
    world.apply(&named("twice", &twice)).await;
    let run = world.start("twice").await;
    minutes(&world, 1).await;
    approves(&world, &run, "sam").await.expect("it waits");
    let again = approves(&world, &run, "sam")
        .await
        .expect_err("sam has spoken");
    assert!(again.contains("somebody was faster"), "{again}");
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Expired, "one person is not two");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_races_with_an_abort_ends_the_run_one_way_or_the_other() {
    let world = World::new().await;
    let steps = approval("1d") + &script("after", "ok", "");
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let who = PrincipalId::new("kim");
    for abort_first in [true, false, true, false] {
        let run = world.start("release").await;
        minutes(&world, 1).await;
        let abort = abort_run(&world.runs, &run, &who);
        let approve = approves(&world, &run, "sam");
        let (aborted, approved) = match abort_first {
            true => tokio::join!(abort, approve),
            false => {
                let (approved, aborted) = tokio::join!(approve, abort);
                (aborted, approved)
            }
        };
        let run = world.finish(&run).await;
        // An abort that was accepted before the run ended is kept, whatever the approval says.
        let kept = aborted.is_ok() && run.status == Status::Aborted;
        let over = approved.is_ok() && run.status == Status::Success;
        assert!(kept || over, "{aborted:?} {approved:?} {:?}", run.status);
        world.assert_clean(&run.id).await;
    }
    // One after the other there is no doubt.
    let run = world.start("release").await;
    minutes(&world, 1).await;
    abort_run(&world.runs, &run, &who).await.expect("it waits");
    let late = approves(&world, &run, "sam").await.expect_err("too late");
    assert!(late.contains("aborted"), "{late}");
    assert_eq!(world.finish(&run).await.status, Status::Aborted);
}

#[tokio::test(start_paused = true)]
async fn loops_of_a_billion_and_endless_retries_are_refused_before_anything_runs() {
    let world = World::new().await;
    let times = "strategy:\n  repeat:\n    times: 1000000000\n";
    let retries = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action: {type: Retry, spec: \
                   {retryCount: 2147483648, retryIntervals: [1s], onRetryFailure: {action: {type: Abort}}}}\n";
    let cases = [
        (
            stage("deploy", &script("a", "ok", times), "", ""),
            "1000000000",
        ),
        (
            stage("deploy", &script("a", "ok", ""), "", times),
            "1000000000",
        ),
        (
            stage("deploy", &script("a", "ok", retries), "", ""),
            "retryCount",
        ),
    ];
    for (number, (stage, says)) in cases.into_iter().enumerate() {
        let id = format!("release{number}");
        let yaml = named(&id, &pipeline(&[stage]));
        // When it is saved, or else when it is started.
        let why = match slipway_model::entity::parse_documents("test.yaml", &yaml) {
            Err(faults) => format!("{faults:?}"),
            Ok(_) => {
                world.apply(&yaml).await;
                let refused = world.try_start(by_hand(&id)).await;
                refused.expect_err("it cannot run").full_text()
            }
        };
        assert!(why.contains(says), "{why}");
    }
    let page = slipway_store::Page::first(9);
    let runs = world
        .store
        .list_runs(&slipway_world::scope(), None, page)
        .await;
    assert_eq!(runs.expect("listed").items, []);
}

#[tokio::test(start_paused = true)]
async fn pipelines_that_chain_in_a_circle_do_not_run_without_end() {
    let world = World::new().await;
    let chain = |id: &str, other: &str| {
        let stage = format!(
            "    - stage:\n        name: go\n        identifier: go\n        type: Pipeline\n        spec:\n          \
             org: default\n          project: shop\n          pipeline: {other}\n"
        );
        named(id, &pipeline(&[stage]))
    };
    world
        .apply(
            &[
                chain("one", "other"),
                chain("other", "one"),
                chain("self", "self"),
            ]
            .join("---\n"),
        )
        .await;
    for id in ["one", "other", "self"] {
        let ended = match world.try_start(by_hand(id)).await {
            Err(refused) => refused.full_text(),
            Ok(run) => {
                let run = world.finish(&run.id).await;
                assert_eq!(run.status, Status::Failed, "{id}");
                run.failure.expect("a reason").message
            }
        };
        let why = ended.contains("one level") || ended.contains("itself");
        assert!(why, "{id}: {ended}");
    }
    let page = slipway_store::Page::first(99);
    let runs = world
        .store
        .list_runs(&slipway_world::scope(), None, page)
        .await;
    let runs = runs.expect("listed").items;
    assert!(runs.len() <= 6, "{} runs", runs.len());
}

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

/// The function that notes a word dies before it wakes who waits. Who said it says it again.
#[tokio::test(start_paused = true)]
async fn f5_a_word_that_woke_nobody_is_heard_when_it_is_said_again() {
    let world = World::new().await;
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
const FIRST_PLAN: &str = include_str!("formats/plan-1.json");

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
