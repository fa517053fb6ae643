//! Stages that loop over what the run brings forth, on the real machines.

mod again;
mod several;

use std::time::Duration;

use slipway_engine::abort::abort_run;
use slipway_engine::signal::{Word, say};
use slipway_model::id::PrincipalId;
use slipway_model::status::Status;
use slipway_store::record::RunRecord;
use slipway_world::World;
use slipway_world::yaml::{
    ROLL_BACK, TARGET, deployment, gate, looped, pipeline, says, script, stage, together, wait,
    with_gate,
};

const LIST: &str =
    "<+pipeline.stages.first.spec.execution.steps.say.output.outputVariables.word>.split(\",\")";

/// Says what the loops go over.
fn first(word: &str) -> String {
    stage("first", &says("say", word), "", "")
}

/// A loop over what the first stage said.
fn over(more: &str, on_failure: &str) -> String {
    format!("strategy: {{repeat: {{items: '{LIST}'{more}}}{on_failure}}}\n")
}

/// A stage that does what each item says.
fn each(strategy: &str) -> String {
    stage("each", &script("do", "'<+repeat.item>'", ""), "", strategy)
}

async fn run(world: &World, stages: &[String]) -> RunRecord {
    world.apply(&pipeline(stages)).await;
    let run = world.start("release").await;
    world.finish(&run).await
}

fn failure(run: &RunRecord) -> &str {
    run.failure.as_ref().map_or("", |failure| &failure.message)
}

#[tokio::test(start_paused = true)]
async fn a_stage_has_as_many_turns_as_an_earlier_one_said() {
    let world = World::new().await;
    let inner = looped(
        &says(
            "inner",
            "<+stage.matrix.letter><+matrix.digit><+strategy.identifierPostFix>",
        ),
        "{matrix: {digit: '<+execution.steps.more.output.outputVariables.word>.split(\",\")'}}",
    );
    let turn = "<+matrix.letter> <+strategy.iteration> of <+strategy.iterations> as <+stage.identifier> <+stage.name> <+strategy.currentStatus>";
    let loops = format!(
        "strategy: {{matrix: {{letter: '{LIST}', maxConcurrency: 1, nodeName: 'with <+matrix.letter>'}}}}\n"
    );
    let end = says(
        "end",
        "<+pipeline.stages.each_1.spec.execution.steps.inner_0.output.outputVariables.word>; \
         <+pipeline.stages.each_1.spec.execution.steps.turn.output.outputVariables.word>; \
         <+pipeline.stages.each_0.status> <+strategy.node.each.currentStatus> <+strategy.node.get(\"each\").currentStatus> \
         <+<+strategy.node>.get(\"each\").currentStatus> <+pipeline.stages.each_1.matrix.letter><+pipeline.stages.each_1.identifierPostFix>",
    );
    let stages = [
        first("x,y"),
        stage(
            "each",
            &(says("more", "7,8") + &inner + &says("turn", turn)),
            "",
            &loops,
        ),
        stage("last", &end, "", ""),
    ];
    let run = run(&world, &stages).await;

    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    first Success
    each_0 Success
    each_1 Success
    last Success
    each #0 Success
    each_0.steps.inner #0 Success
    each_0.steps.inner_0 #0 Success
    each_0.steps.inner_1 #0 Success
    each_0.steps.more #0 Success
    each_0.steps.turn #0 Success
    each_1.steps.inner #0 Success
    each_1.steps.inner_0 #0 Success
    each_1.steps.inner_1 #0 Success
    each_1.steps.more #0 Success
    each_1.steps.turn #0 Success
    first.steps.say #0 Success
    last.steps.end #0 Success
    ");
    insta::assert_snapshot!(world.path("pipeline", run.id.as_str()).await, @"Plan Stages Group Line Stage Finish PlanMore Stages Group Line Stage Stage Stage Finish Succeeded");
    let nodes = world.store.list_nodes(&run.id, None).await.expect("nodes");
    let end = nodes
        .iter()
        .find(|node| node.identifier.as_str() == "end")
        .expect("it ran");
    insta::assert_snapshot!(end.outputs["output"]["outputVariables"]["word"].to_string(), @r#""y7_0; y 1 of 2 as each_1 with y SUCCESS; SUCCEEDED SUCCESS SUCCESS SUCCESS y_1""#);
    let (seen, _) = world.runs.load(&run.id).await.expect("the run");
    let names: Vec<_> = seen
        .stages
        .iter()
        .map(|stage| stage.name.as_str())
        .collect();
    assert_eq!(names, ["first", "with x", "with y", "last"]);
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_runs_after_a_failure_unless_the_loop_skips_it() {
    for (on_failure, expected) in [
        // Whatever the condition of the stage says.
        (
            ", onFailure: SkipQueued}\nwhen: {pipelineStatus: All",
            "each_0 Success, each_1 Failed, each_2 Skipped",
        ),
        ("", "each_0 Success, each_1 Failed, each_2 Success"),
        (
            ", onFailure: RunAll",
            "each_0 Success, each_1 Failed, each_2 Success",
        ),
        (
            ", onFailure: SkipQueued",
            "each_0 Success, each_1 Failed, each_2 Skipped",
        ),
    ] {
        // So do steps, whatever stands around them.
        let world = World::new().await;
        let stages = [
            first("ok,fail,ok"),
            each(&over(", maxConcurrency: 1", on_failure)),
        ];
        let found = run(&world, &stages).await;
        let (seen, _) = world.runs.load(&found.id).await.expect("the run");
        let turns = seen.stages.iter().skip(1);
        let turns: Vec<_> = turns
            .map(|turn| format!("{} {:?}", turn.id, turn.status))
            .collect();
        assert_eq!(turns.join(", "), expected, "{on_failure}");
        world.assert_clean(&found.id).await;

        if on_failure.contains("when") {
            // So does one over what is known before.
            let known = format!(
                "strategy: {{repeat: {{items: [ok, fail, ok], maxConcurrency: 1}}{on_failure}}}\n"
            );
            let world = World::new().await;
            let found = run(&world, &[each(&known)]).await;
            let (seen, _) = world.runs.load(&found.id).await.expect("the run");
            let turns = seen.stages.iter();
            let turns: Vec<_> = turns
                .map(|turn| format!("{} {:?}", turn.id, turn.status))
                .collect();
            assert_eq!(turns.join(", "), expected, "{on_failure}");
            continue;
        }

        let world = World::new().await;
        let items = format!("{{repeat: {{items: '{LIST}', maxConcurrency: 1}}{on_failure}}}");
        let steps = looped(&script("each", "'<+repeat.item>'", ""), &items);
        let stages = [first("ok,fail,ok"), stage("work", &steps, "", "")];
        let found = run(&world, &stages).await;
        let nodes = world
            .store
            .list_nodes(&found.id, None)
            .await
            .expect("nodes");
        let mut turns: Vec<_> = nodes
            .iter()
            .filter(|node| node.id.as_str().contains("each_"))
            .collect();
        turns.sort_by_key(|node| node.id.clone());
        let turns: Vec<_> = turns
            .iter()
            .map(|turn| format!("{} {:?}", turn.identifier, turn.status))
            .collect();
        assert_eq!(turns.join(", "), expected, "steps {on_failure}");
        world.assert_clean(&found.id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_need_not_run_is_skipped_as_one_stage() {
    let no = "when:\n  pipelineStatus: Success\n  condition: <+pipeline.name> == \"other\"\n";
    for (word, more) in [("x", no), ("", "")] {
        let world = World::new().await;
        let items = match word {
            // A list of nothing.
            "" => "strategy: {repeat: {times: '<+pipeline.stages.first.spec.execution.steps.say.output.outputVariables.word>'}}\n".to_owned(),
            _ => over("", ""),
        };
        let word = if word.is_empty() { "0" } else { word };
        let after = stage("after", &script("a", "ok", ""), "", "");
        let stages = [first(word), each(&(items + more)), after];
        let run = run(&world, &stages).await;
        assert_eq!(
            world.story(&run).await,
            "run Success\nfirst Success\neach Skipped\nafter Success\nafter.steps.a #0 Success\nfirst.steps.say #0 Success"
        );
        world.assert_clean(&run.id).await;
    }
    // One whose turns ask for themselves.
    let world = World::new().await;
    let own = "when:\n  pipelineStatus: Success\n  condition: <+matrix.a> != \"x\"\n";
    let loops = format!("strategy: {{matrix: {{a: '{LIST}'}}}}\n{own}");
    let stages = [
        first("x,y"),
        stage("each", &script("do", "ok", ""), "", &loops),
    ];
    let run = run(&world, &stages).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    first Success
    each_0 Skipped
    each_1 Success
    each #0 Success
    each_1.steps.do #0 Success
    first.steps.say #0 Success
    ");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_failed_keeps_the_loop_after_it_from_running() {
    let world = World::new().await;
    let stages = [
        stage("first", &script("say", "fail", ""), "", ""),
        each(&over("", "")),
        stage(
            "tidy",
            &script("a", "ok", ""),
            "",
            "when:\n  pipelineStatus: All\n",
        ),
    ];
    let run = run(&world, &stages).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Failed: Step say: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    first Failed: Step say: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    each Skipped
    tidy Success
    first.steps.say #0 Failed
    tidy.steps.a #0 Success
    ");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn turns_beside_other_stages_meet_them_at_a_barrier() {
    let world = World::new().await;
    let slow = stage("slow", &(wait("w", "2h") + &gate("here", "1d")), "", "");
    let turns = stage(
        "each",
        &(gate("there", "1d") + &script("do", "'<+repeat.item>'", "")),
        "",
        &over("", ""),
    );
    let stages = [first("x,y,z"), together(&[slow, turns])];
    world.apply(&with_gate(&pipeline(&stages))).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Success, "{:?}", run.failure);
    let hours = (run.ended_ms.expect("ended") - run.started_ms) / 3_600_000;
    assert_eq!(hours, 2);
    let story = world.story(&run).await;
    assert!(story.contains("each_2.steps.do #0 Success"), "{story}");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn turns_deploy_one_after_the_other_to_one_place_and_each_is_rolled_back() {
    let world = World::new().await;
    world.apply(TARGET).await;
    let steps = script("do", "'<+repeat.item>'", "") + &wait("w", "1h");
    let turns = stage(
        "each",
        &steps,
        &script("undo", "ok", ""),
        &(over("", "") + ROLL_BACK),
    );
    let stages = [first("ok,fail,ok"), deployment(&turns)];
    let run = run(&world, &stages).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Failed: Step do: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The stage was rolled back cleanly.
    first Success
    each_0 Success
    each_1 Failed: Step do: Shell Script execution failed. The script ended with exit code 1. Please check execution logs. The stage was rolled back cleanly.
    each_2 Success
    each #0 Success
    each_0.steps.do #0 Success
    each_0.steps.w #0 Success
    each_1.rollbackSteps.undo #0 Success
    each_1.steps.do #0 Failed
    each_2.steps.do #0 Success
    each_2.steps.w #0 Success
    first.steps.say #0 Success
    ");
    let hours = (run.ended_ms.expect("ended") - run.started_ms) / 3_600_000;
    assert_eq!(hours, 2, "one deployment at a time");
    assert_eq!(world.holds().await, Vec::<String>::new());
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn the_limits_of_turns_are_those_of_their_stage() {
    let world = World::new().await;
    let steps = wait("w", "<+repeat.item>");
    let turns = stage("each", &steps, "", &(over("", "") + "timeout: 1h\n"));
    let run = run(&world, &[first("10m,3h"), turns]).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Expired: Step w: The time of its stage or of the run was up.
    first Success
    each_0 Success
    each_1 Expired: Step w: The time of its stage or of the run was up.
    each #0 Success
    each_0.steps.w #0 Success
    each_1.steps.w #0 Expired
    first.steps.say #0 Success
    ");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_loop_limits_its_own_turns_and_not_what_stands_beside_it() {
    let world = World::new().await;
    let limited = |id: &str, limit: u32| {
        let strategy = format!("strategy: {{repeat: {{times: 4, maxConcurrency: {limit}}}}}\n");
        stage(id, &wait("w", "10m"), "", &strategy)
    };
    let beside = [
        limited("slow", 1),
        limited("quick", 2),
        stage("a", &wait("w", "10m"), "", ""),
        stage("b", &wait("w", "10m"), "", ""),
    ];
    let run = run(&world, &[together(&beside)]).await;
    assert_eq!(run.status, Status::Success);
    let began = |prefix: &str| -> Vec<i64> {
        let own = run
            .stages
            .iter()
            .filter(|one| one.id.as_str().starts_with(prefix));
        let started = own.map(|one| (one.started_ms.expect("begun") - run.started_ms) / 600_000);
        let mut started: Vec<i64> = started.collect();
        started.sort_unstable();
        started
    };
    assert_eq!(began("slow_"), [0, 1, 2, 3]);
    assert_eq!(began("quick_"), [0, 0, 1, 1]);
    assert_eq!((began("a"), began("b")), (vec![0], vec![0]));
    world.assert_clean(&run.id).await;
}

fn who() -> PrincipalId {
    PrincipalId::new("sam")
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_the_turns_and_plans_no_more_and_a_pause_holds_them() {
    let world = World::new().await;
    let stages = [
        stage("first", &(says("say", "x,y") + &wait("w", "1h")), "", ""),
        stage(
            "each",
            &wait("w", "3h"),
            "",
            &over(", maxConcurrency: 1", ""),
        ),
        stage("again", &wait("w", "1h"), "", &over("", "")),
    ];
    world.apply(&pipeline(&stages)).await;
    for (minutes, expected) in [(30, "first Aborted"), (90, "each_0 Aborted")] {
        let run = world.start("release").await;
        world
            .runs
            .clock
            .sleep(Duration::from_secs(minutes * 60))
            .await;
        abort_run(&world.runs, &run, &who()).await.expect("it runs");
        let run = world.finish(&run).await;
        assert_eq!(run.status, Status::Aborted);
        let story = world.story(&run).await;
        assert!(story.contains(expected), "{story}");
        assert!(!story.contains("again_0"), "{story}");
        world.assert_clean(&run.id).await;
    }
    let run = world.start("release").await;
    world.runs.clock.sleep(Duration::from_secs(30 * 60)).await;
    say(&world.runs, &run, &who(), &Word::Pause)
        .await
        .expect("it runs");
    world
        .runs
        .clock
        .sleep(Duration::from_secs(10 * 60 * 60))
        .await;
    say(&world.runs, &run, &who(), &Word::Resume)
        .await
        .expect("it is paused");
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Success, "{:?}", run.failure);
    let hours = (run.ended_ms.expect("ended") - run.started_ms) / 3_600_000;
    assert_eq!(hours, 17, "10 and a half, then 3 and 3 and 1");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_request_changes_nothing_about_stages_that_loop() {
    let world = World::new().await;
    let inner = looped(
        &script("x", "'<+matrix.a>'", ""),
        "{matrix: {a: '<+execution.steps.say.output.outputVariables.word>.split(\",\")'}}",
    );
    let stages = [
        first("p,q,fail"),
        stage(
            "each",
            &(says("say", "u,v") + &inner + &script("y", "'<+repeat.item>'", "")),
            "",
            &over(", maxConcurrency: 2", ""),
        ),
        stage(
            "more",
            &script("z", "ok", ""),
            "",
            &(over("", ", onFailure: SkipQueued") + "when:\n  pipelineStatus: All\n"),
        ),
    ];
    let first_run = run(&world, &stages).await;
    let expected = world.story(&first_run).await;
    assert_eq!(first_run.status, Status::Failed, "{expected}");
    let crashes = world.survives_crashes("release", 29, &expected).await;
    assert!(crashes > 5, "only {crashes} crashes");
}

#[tokio::test(start_paused = true)]
async fn what_a_stage_cannot_loop_over_fails_it_and_says_why() {
    let word = LIST.trim_end_matches(".split(\",\")");
    let of = |field: &str| format!("strategy: {{{field}}}\n");
    let loops = [
        (
            "1000000000",
            of(&format!("repeat: {{times: '{word}'}}")),
            "1000000000 turns; a loop has at most 256",
        ),
        (
            "1000000000",
            of(&format!("parallelism: '{word}'")),
            "1000000000 turns; a loop has at most 256",
        ),
        (
            "256",
            of(&format!("repeat: {{times: '{word}'}}")),
            "with 256 turns the run has more than 256 stages",
        ),
        (
            "257",
            of(&format!("repeat: {{times: '{word}'}}")),
            "257 turns; a loop has at most 256",
        ),
        (
            "-1",
            of(&format!("repeat: {{times: '{word}'}}")),
            "`-1` is no whole number of at least 0",
        ),
        (
            "x",
            of(&format!("repeat: {{items: '{word}'}}")),
            "a text stands where a list is expected",
        ),
        (
            "{\"a\": 1}",
            of(&format!("matrix: {{a: '<+json.object({word})>'}}")),
            "a mapping stands where a list is expected",
        ),
        (
            "x",
            of("repeat: {items: '<+pipeline.stages.frist.output.x>'}"),
            "`pipeline.stages.frist.output.x` is not defined",
        ),
        (
            "-1",
            of(&format!("repeat: {{times: 2, maxConcurrency: '{word}'}}")),
            "`-1` is no whole number of at least 0",
        ),
        (
            "4294967296",
            of(&format!("repeat: {{times: 2, maxConcurrency: '{word}'}}")),
            "",
        ),
        (
            "0",
            of(&format!("repeat: {{times: 2, maxConcurrency: '{word}'}}")),
            "",
        ),
        (
            "x,x",
            of(&format!(
                "matrix: {{a: '{word}.split(\",\")', nodeName: same}}"
            )),
            "",
        ),
        (
            "x,y",
            of(&format!(
                "matrix: {{a: '{word}.split(\",\")', exclude: [{{b: x}}]}}"
            )),
            "",
        ),
    ];
    for (said, strategy, expected) in loops {
        let world = World::new().await;
        let steps = script("do", "ok", "");
        let stages = [
            stage("first", &says("say", said), "", ""),
            stage("each", &steps, "", &strategy),
            stage(
                "tidy",
                &script("a", "ok", ""),
                "",
                "when:\n  pipelineStatus: All\n",
            ),
        ];
        let run = run(&world, &stages).await;
        let story = world.story(&run).await;
        assert!(story.contains("\ntidy Success"), "{said}: {story}");
        match expected {
            "" => assert_eq!(run.status, Status::Success, "{said}: {story}"),
            expected => {
                assert!(
                    failure(&run).contains("The loop of stage each: "),
                    "{said}: {story}"
                );
                assert!(
                    failure(&run).contains(expected),
                    "{said}: {}",
                    failure(&run)
                );
                assert!(story.contains("\neach Errored"), "{said}: {story}");
            }
        }
        world.assert_clean(&run.id).await;
    }
}
