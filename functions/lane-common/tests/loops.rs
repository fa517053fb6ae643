//! Loops over what the run brings forth, on the real machines.

use serde_json::Value;
use slipway_model::status::Status;
use slipway_store::record::RunRecord;
use slipway_world::yaml::{
    beside, gate, group, looped, pipeline, says, script, stage, wait, with_gate,
};
use slipway_world::{Options, World};

const WORD: &str = "<+execution.steps.say.output.outputVariables.word>";

async fn run(world: &World, steps: &str) -> RunRecord {
    world
        .apply(&pipeline(&[stage("deploy", steps, "", "")]))
        .await;
    let run = world.start("release").await;
    world.finish(&run).await
}

#[tokio::test(start_paused = true)]
async fn a_loop_has_as_many_turns_as_the_step_before_said() {
    let world = World::new().await;
    let inner = looped(
        &says("inner", "<+matrix.letter><+repeat.item>"),
        "{repeat: {items: '<+execution.steps.say.output.outputVariables.word>.split(\",\")'}}",
    );
    let steps = says("say", "x,y")
        + &looped(
            &group("each", &[inner]),
            "{matrix: {letter: '<+execution.steps.say.output.outputVariables.word>.split(\",\")', maxConcurrency: 1, nodeName: 'with <+matrix.letter>'}}",
        )
        + &says(
            "end",
            "<+execution.steps.each_1.steps.inner_0.output.outputVariables.word> of <+strategy.node.each.currentStatus>",
        );
    let run = run(&world, &steps).await;

    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    deploy Success
    deploy.steps.each #0 Success
    deploy.steps.each_0 #0 Success
    deploy.steps.each_0.steps.inner #0 Success
    deploy.steps.each_0.steps.inner_0 #0 Success
    deploy.steps.each_0.steps.inner_1 #0 Success
    deploy.steps.each_1 #0 Success
    deploy.steps.each_1.steps.inner #0 Success
    deploy.steps.each_1.steps.inner_0 #0 Success
    deploy.steps.each_1.steps.inner_1 #0 Success
    deploy.steps.end #0 Success
    deploy.steps.say #0 Success
    ");
    let nodes = world.store.list_nodes(&run.id, None).await;
    let nodes = nodes.unwrap_or_default();
    let end = nodes.iter().find(|node| node.identifier.as_str() == "end");
    let word = end.map(|end| end.outputs["output"]["outputVariables"]["word"].clone());
    assert_eq!(word, Some(Value::from("yx of SUCCESS")));
    let named = nodes.iter().filter(|node| node.node_type == "STEP_GROUP");
    let names: Vec<_> = named.map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["with x", "with y"]);
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_fails_fails_the_loop_and_a_loop_over_nothing_is_fine() {
    let world = World::new().await;
    let fails = looped(
        &script("each", "'<+repeat.item>'", ""),
        &format!("{{repeat: {{items: '{WORD}.split(\",\")'}}}}"),
    );
    let failed = run(&world, &(says("say", "ok,fail,ok") + &fails)).await;
    insta::assert_snapshot!(world.story(&failed).await, @"
    run Failed: Step each_1: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    deploy Failed: Step each_1: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    deploy.steps.each #0 Failed
    deploy.steps.each_0 #0 Success
    deploy.steps.each_1 #0 Failed
    deploy.steps.each_2 #0 Success
    deploy.steps.say #0 Success
    ");

    let world = World::new().await;
    let none = looped(
        &script("each", "ok", ""),
        &format!("{{repeat: {{times: '{WORD}'}}}}"),
    );
    let empty = run(
        &world,
        &(says("say", "0") + &none + &script("after", "ok", "")),
    )
    .await;
    insta::assert_snapshot!(world.story(&empty).await, @"
    run Success
    deploy Success
    deploy.steps.after #0 Success
    deploy.steps.each #0 Skipped
    deploy.steps.say #0 Success
    ");
}

/// As Harness shows the node of a strategy that has nothing to run.
#[tokio::test(start_paused = true)]
async fn a_loop_of_no_turns_is_shown_as_skipped() {
    let world = World::new().await;
    let none = "{repeat: {items: []}}";
    let steps = looped(&script("each", "ok", ""), none)
        + &looped(&group("g", &[script("in", "ok", "")]), none)
        + &script("after", "ok", "");
    let stages = [
        stage(
            "none",
            &script("a", "<+matrix.x>", ""),
            "",
            "strategy: {matrix: {x: []}}\ntimeout: <+matrix.x>m\n",
        ),
        stage("deploy", &steps, "", ""),
    ];
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    none Skipped
    deploy Success
    deploy.steps.after #0 Success
    deploy.steps.each #0 Skipped
    deploy.steps.g #0 Skipped
    ");
    world.assert_clean(&run.id).await;

    let (api, token) = (world.api().await, world.token("sam").await);
    let path = format!(
        "/pipeline/api/pipelines/execution/v2/{}?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop\
         &renderFullBottomGraph=true",
        run.id
    );
    let (status, answer) = api.call(&token, "GET", &path, None).await;
    assert_eq!(status, 200, "{answer}");
    let summary = &answer["data"]["pipelineExecutionSummary"];
    assert_eq!(summary["successfulStagesCount"], 1, "of two");
    assert_eq!(summary["totalStagesCount"], 2);
    let nodes = &answer["data"]["executionGraph"]["nodeMap"];
    let shown = |id: &str| {
        let node = &nodes[format!("stages.deploy.spec.execution.steps.{id}")];
        (node["name"].clone(), node["status"].clone())
    };
    for id in ["each", "g"] {
        assert_eq!(shown(id), (id.into(), "Skipped".into()));
    }
    assert_eq!(nodes["stages.none"]["status"], "Skipped");
}

#[tokio::test(start_paused = true)]
async fn a_loop_over_too_much_or_nonsense_fails_and_says_why() {
    for (word, expected) in [
        ("1000000000", "1000000000 turns; a loop has at most 256"),
        ("many", "`many` is no whole number"),
    ] {
        let world = World::new().await;
        let each = looped(
            &script("each", "ok", ""),
            &format!("{{repeat: {{times: '{WORD}'}}}}"),
        );
        let run = run(&world, &(says("say", word) + &each)).await;
        assert_ne!(run.status, Status::Success);
        let story = world.story(&run).await;
        let nodes = world.store.list_nodes(&run.id, None).await;
        let told = nodes
            .unwrap_or_default()
            .into_iter()
            .find_map(|node| node.failure);
        let told = told.map_or_else(String::new, |failure| failure.message);
        assert!(told.contains(expected), "{told}\n{story}");
        assert!(story.contains(expected), "the run says so too: {story}");
        world.assert_clean(&run.id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_request_changes_nothing_about_a_loop() {
    let world = World::new().await;
    let each = looped(
        &group("each", &[script("a", "ok", ""), script("b", "ok", "")]),
        &format!("{{repeat: {{items: '{WORD}.split(\",\")', maxConcurrency: 2}}}}"),
    );
    let steps = says("say", "x,y,z") + &each;
    world
        .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let expected = world.story(&run).await;
    let crashes = world.survives_crashes("release", 9, &expected).await;
    assert!(crashes > 5, "only {crashes} crashes");
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_its_turn_is_given_up_wherever_the_loop_is() {
    // Known before the run or not, beside others or not.
    for items in [
        "[ok, fail, ok, ok]".to_owned(),
        format!("'{WORD}.split(\",\")'"),
    ] {
        let strategy =
            format!("{{repeat: {{items: {items}, maxConcurrency: 2}}, onFailure: SkipQueued}}");
        let each = |turn: &str| {
            looped(
                &group("each", &[script("do", turn, ""), script("more", "ok", "")]),
                &strategy,
            )
        };
        let world = World::new().await;
        let steps = says("say", "ok,fail,ok,ok")
            + &beside(&[wait("long", "3h"), each("'<+repeat.item>'")])
            + &script("after", "ok", "when:\n  stageStatus: All\n");
        let run = run(&world, &steps).await;
        let story = world.story(&run).await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(story, @"
            run Failed: Step do: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
            deploy Failed: Step do: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
            deploy.steps.after #0 Success
            deploy.steps.each #0 Failed
            deploy.steps.each_0 #0 Success
            deploy.steps.each_0.steps.do #0 Success
            deploy.steps.each_0.steps.more #0 Success
            deploy.steps.each_1 #0 Failed
            deploy.steps.each_1.steps.do #0 Failed
            deploy.steps.each_1.steps.more #0 Skipped
            deploy.steps.each_2 #0 Skipped
            deploy.steps.each_3 #0 Skipped
            deploy.steps.long #0 Success
            deploy.steps.say #0 Success
            deploy.steps[1] #0 Failed
            ");
        }
        world.assert_clean(&run.id).await;
        // What is ignored is no failure.
        let world = World::new().await;
        let ignored = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action: {type: Ignore}\n";
        let turn = script("each", "'<+repeat.item>'", ignored);
        let steps = says("say", "ok,fail,ok,ok") + &looped(&turn, &strategy);
        let found = self::run(&world, &steps).await;
        assert_eq!(found.status, Status::IgnoreFailed);
        let story = world.story(&found).await;
        assert!(story.contains("each_3 #0 Success"), "{story}");
    }
}

#[tokio::test(start_paused = true)]
async fn turns_meet_at_a_barrier_and_nobody_waits_for_a_loop_of_nothing() {
    let each = looped(
        &group(
            "each",
            &[
                wait("w", "<+repeat.item>h"),
                gate("here", "1d"),
                script("x", "ok", ""),
            ],
        ),
        &format!("{{repeat: {{items: '{WORD}.split(\",\")'}}}}"),
    );
    let none = looped(
        &gate("none", "1d"),
        &format!("{{repeat: {{times: '{WORD}'}}}}"),
    );
    for (word, steps, hours) in [("1,2,3", each, 3), ("0", none, 0)] {
        let world = World::new().await;
        let steps =
            says("say", word) + &beside(&[gate("there", "1d"), steps]) + &wait("rest", "2h");
        world
            .apply(&with_gate(&pipeline(&[stage("deploy", &steps, "", "")])))
            .await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        assert_eq!(run.status, Status::Success, "{:?}", run.failure);
        let spent = (run.ended_ms.unwrap_or_default() - run.started_ms) / 3_600_000;
        assert_eq!(spent, hours + 2);
        world.assert_clean(&run.id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_at_a_barrier_for_what_is_skipped() {
    let no = "when:\n  stageStatus: Failure\n";
    let skipped = gate("there", "1d").replacen(
        "    spec:",
        "    when:\n      stageStatus: Failure\n    spec:",
        1,
    );
    let inside = group("g", &[gate("there", "1d")])
        + &no
            .replace("when", "    when")
            .replace("  stage", "      stage");
    let queued = looped(
        &group(
            "each",
            &[script("do", "'<+repeat.item>'", ""), gate("there", "1d")],
        ),
        &format!(
            "{{repeat: {{items: '{WORD}.split(\",\")', maxConcurrency: 1}}, onFailure: SkipQueued}}"
        ),
    );
    for (word, branch, status) in [
        ("x", skipped, Status::Success),
        ("x", inside, Status::Success),
        ("fail,ok", queued, Status::Failed),
    ] {
        let world = World::new().await;
        let steps = says("say", word) + &beside(&[gate("here", "1d"), wait("late", "1h"), branch]);
        world
            .apply(&with_gate(&pipeline(&[stage("deploy", &steps, "", "")])))
            .await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        let story = world.story(&run).await;
        assert_eq!(run.status, status, "{story}");
        let spent = (run.ended_ms.unwrap_or_default() - run.started_ms) / 3_600_000;
        assert_eq!(spent, 1, "nobody waits for the timeout: {story}");
        world.assert_clean(&run.id).await;
    }
}

/// Groups in blocks in groups, `depth` deep; every second level loops over what the run said.
fn nested(depth: usize) -> String {
    let Some(less) = depth.checked_sub(1) else {
        return says("leaf", "<+repeat.item><+strategy.iterations>");
    };
    let inside = group(&format!("g{depth}"), &[script("a", "ok", ""), nested(less)]);
    let inside = match depth % 2 {
        0 => {
            let most = if depth.is_multiple_of(4) {
                ", maxConcurrency: 1"
            } else {
                ""
            };
            looped(
                &inside,
                &format!("{{repeat: {{items: '{WORD}.split(\",\")'{most}}}}}"),
            )
        }
        _ => inside,
    };
    beside(&[inside, wait(&format!("w{depth}"), "10s")])
}

#[tokio::test(start_paused = true)]
async fn loops_in_groups_in_blocks_survive_crashes_at_any_depth() {
    let world = World::with(Options {
        in_memory: true,
        ..Options::default()
    })
    .await;
    let run = run(&world, &(says("say", "x,y") + &nested(6))).await;
    let expected = world.story(&run).await;
    assert_eq!(run.status, Status::Success, "{expected}");
    let leaves = expected
        .lines()
        .filter(|line| line.contains(".leaf #0 Success"));
    assert_eq!(leaves.count(), 8, "{expected}");
    world.assert_clean(&run.id).await;
    let crashes = world.survives_crashes("release", 397, &expected).await;
    assert!(crashes > 2, "only {crashes} crashes");
}
