//! Runs of chosen stages, and runs that go on from others, where stages loop over what the run brings forth.

use slipway_engine::retry::{RetryRun, resumable};
use slipway_engine::start::StartRun;
use slipway_model::id::{EntityId, RunId};
use slipway_model::status::Status;
use slipway_plan::Chosen;
use slipway_world::yaml::{pipeline, script, stage};
use slipway_world::{World, by_hand};

use crate::{LIST, each, first, over, who};

fn retry(run: &RunId, stages: &[&str]) -> RetryRun {
    RetryRun {
        run: run.clone(),
        pipeline: EntityId::new("release"),
        stages: stages.iter().map(|name| (*name).to_owned()).collect(),
        all: false,
        inputs_yaml: None,
        principal: who(),
        notes: String::new(),
    }
}

/// The scripts of a run that a delegate was given, with their stages.
fn scripts(world: &World, run: &RunId) -> String {
    let all = world.deeds.list();
    let own = all
        .iter()
        .filter_map(|task| task.strip_prefix(run.as_str()));
    let name = |task: &str| {
        let parts: Vec<&str> = task.split('.').collect();
        let stage = parts.iter().position(|part| *part == "stages")? + 1;
        Some(format!(
            "{}.{}",
            parts.get(stage)?,
            parts.iter().rev().nth(1)?
        ))
    };
    let mut own: Vec<String> = own.filter_map(name).collect();
    own.sort_unstable();
    own.join(" ")
}

#[tokio::test(start_paused = true)]
async fn a_retry_keeps_the_turns_that_succeeded() {
    let world = World::new().await;
    let last = stage(
        "last",
        &script("z", "<+pipeline.stages.each_0.status>", ""),
        "",
        "",
    );
    let stages = [first("ok,fail until 1,fail,ok"), each(&over("", "")), last];
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    let failed = world.finish(&run).await;
    assert_eq!(failed.status, Status::Failed);
    let offered = resumable(&world.runs, &failed).await.expect("read");
    let offered: Vec<usize> = offered.groups.iter().map(Vec::len).collect();
    assert_eq!(offered, [1, 4]);

    let second = world
        .retry(retry(&failed.id, &[]))
        .await
        .expect("it failed");
    let second = world.finish(&second.id).await;
    assert_eq!(scripts(&world, &second.id), "each_1.do each_2.do");
    insta::assert_snapshot!(world.story(&second).await, @"
    run Failed: Step do: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    first Success
    each_0 Success
    each_1 Failed: Step do: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    each_2 Failed: Step do: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    each_3 Success
    last Skipped
    each #0 Success
    each_0.steps.do #0 Success
    each_1.steps.do #0 Failed
    each_2.steps.do #0 Failed
    each_3.steps.do #0 Success
    first.steps.say #0 Success
    ");

    // Of one turn, of the loop as a whole, and from before it: what it goes over is read again then.
    let third = world
        .retry(retry(&second.id, &["each_2"]))
        .await
        .expect("it failed");
    let third = world.finish(&third.id).await;
    assert_eq!(scripts(&world, &third.id), "each_1.do each_2.do");
    let fourth = RetryRun {
        all: true,
        ..retry(&third.id, &["each"])
    };
    let fourth = world.retry(fourth).await.expect("it failed");
    let fourth = world.finish(&fourth.id).await;
    assert_eq!(
        scripts(&world, &fourth.id),
        "each_0.do each_1.do each_2.do each_3.do"
    );
    let fifth = world
        .retry(retry(&fourth.id, &["first"]))
        .await
        .expect("it failed");
    let fifth = world.finish(&fifth.id).await;
    assert_eq!(
        scripts(&world, &fifth.id),
        "each_0.do each_1.do each_2.do each_3.do first.say"
    );
    world.assert_clean(&fifth.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_what_follows_a_loop_keeps_the_loop() {
    let world = World::new().await;
    let stages = [
        first("a,b"),
        each(&over("", "")),
        stage(
            "mid",
            &script("m", "<+pipeline.variables.what>", ""),
            "",
            "",
        ),
        stage(
            "more",
            &script("n", "'<+repeat.item>'", ""),
            "",
            &over("", ""),
        ),
        stage(
            "last",
            &script("z", "'<+pipeline.stages.each_1.repeat.item>'", ""),
            "",
            "",
        ),
    ];
    let asks = "  variables:\n    - {name: what, type: String, value: <+input>}\n  stages:\n";
    world
        .apply(&pipeline(&stages).replacen("  stages:\n", asks, 1))
        .await;
    let what = |value: &str| {
        let given = format!("[{{name: what, type: String, value: {value}}}]");
        Some(format!(
            "pipeline: {{identifier: release, variables: {given}}}"
        ))
    };
    let start = StartRun {
        inputs_yaml: what("fail"),
        ..by_hand("release")
    };
    let failed = world.try_start(start).await.expect("it starts");
    let failed = world.finish(&failed.id).await;
    assert_eq!(failed.status, Status::Failed, "{:?}", failed.failure);
    let again = RetryRun {
        inputs_yaml: what("ok"),
        ..retry(&failed.id, &[])
    };
    let second = world.retry(again).await.expect("it failed");
    let second = world.finish(&second.id).await;
    assert_eq!(
        scripts(&world, &second.id),
        "last.z mid.m more_0.n more_1.n"
    );
    insta::assert_snapshot!(world.story(&second).await, @"
    run Success
    first Success
    each_0 Success
    each_1 Success
    mid Success
    more_0 Success
    more_1 Success
    last Success
    each #0 Success
    each_0.steps.do #0 Success
    each_1.steps.do #0 Success
    first.steps.say #0 Success
    last.steps.z #0 Success
    mid.steps.m #0 Success
    more #0 Success
    more_0.steps.n #0 Success
    more_1.steps.n #0 Success
    ");
    world.assert_clean(&second.id).await;
}

#[tokio::test(start_paused = true)]
async fn of_chosen_stages_a_loop_goes_over_what_is_given() {
    let world = World::new().await;
    let stages = [
        first("x,y"),
        each(&over("", "")),
        stage("other", &script("o", "ok", ""), "", ""),
    ];
    let yaml = pipeline(&stages).replacen(
        "  stages:\n",
        "  allowStageExecutions: true\n  stages:\n",
        1,
    );
    world.apply(&yaml).await;
    let given = [(
        LIST.trim_end_matches(".split(\",\")").to_owned(),
        "a,b,c".to_owned(),
    )];
    for (chosen, values, turns) in [
        (vec!["first", "each"], Vec::new(), 2),
        (vec!["each"], given.to_vec(), 3),
    ] {
        let stages = chosen.iter().map(|id| EntityId::new(*id)).collect();
        let request = StartRun {
            chosen: Some(Chosen::new(stages, values)),
            ..by_hand("release")
        };
        let run = world.try_start(request).await.expect("it starts");
        let run = world.finish(&run.id).await;
        let story = world.story(&run).await;
        assert_eq!(story.matches("each_").count(), 2 * turns, "{story}");
        assert_eq!(run.status, Status::Success, "{story}");
        world.assert_clean(&run.id).await;
    }
}
