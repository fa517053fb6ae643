//! Runs of chosen stages, and runs that repeat others, on the real machines.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "what a test needs and lacks fails it"
)]

use std::time::Duration;

use slipway_engine::abort::abort_run;
use slipway_engine::error::RunError;
use slipway_engine::rerun::Rerun;
use slipway_engine::retry::{RetryRun, history, resumable};
use slipway_engine::start::StartRun;
use slipway_engine::unstarted::resume_unstarted;
use slipway_model::id::{EntityId, PrincipalId, RunId, StageId};
use slipway_model::status::Status;
use slipway_plan::Chosen;
use slipway_store::Page;
use slipway_world::yaml::{pipeline, script, stage, together, wait};
use slipway_world::{Options, World, by_hand, scope};

/// A pipeline with the variable `what`, which is given at the start, and a barrier `gate`.
fn asking(stages: &[String]) -> String {
    let head = "  allowStageExecutions: true\n  variables:\n    - name: what\n      type: String\n      value: <+input>\n  \
                flowControl:\n    barriers:\n      - name: gate\n        identifier: gate\n  stages:\n";
    pipeline(stages).replacen("  stages:\n", head, 1)
}

fn what(value: &str) -> Option<String> {
    Some(format!(
        "pipeline:\n  identifier: release\n  variables:\n    - name: what\n      type: String\n      value: {value}\n"
    ))
}

fn gate() -> String {
    "- step:\n    name: gate\n    identifier: gate\n    type: Barrier\n    timeout: 1h\n    spec:\n      barrierRef: gate\n"
        .to_owned()
}

fn tag() -> String {
    script("tag", "TAG=v2", "")
        + "      outputVariables:\n        - name: TAG\n          type: String\n          value: TAG\n"
}

/// `build`, then `unit` beside `load`, which does what it is given, then `ship`, which reads what they did.
fn release() -> String {
    let reads = "when:\n  stageStatus: Success\n  condition: \
                 <+pipeline.stages.build.spec.execution.steps.tag.output.outputVariables.TAG> == \"v2\" && \
                 <+pipeline.stages.unit.status> == \"SUCCEEDED\" && <+pipeline.resumedExecutionId> != \"\"\n";
    asking(&[
        stage("build", &tag(), "", ""),
        together(&[
            stage("unit", &(gate() + &script("a", "ok", "")), "", ""),
            stage(
                "load",
                &(gate() + &script("b", "<+pipeline.variables.what>", "")),
                "",
                "",
            ),
        ]),
        stage("ship", &script("c", "ok", reads), "", ""),
    ])
}

fn given(value: &str) -> StartRun {
    StartRun {
        inputs_yaml: what(value),
        ..by_hand("release")
    }
}

fn retry(run: &RunId, stages: &[&str], inputs: Option<String>) -> RetryRun {
    RetryRun {
        run: run.clone(),
        pipeline: EntityId::new("release"),
        stages: stages.iter().map(|name| (*name).to_owned()).collect(),
        all: false,
        inputs_yaml: inputs,
        principal: PrincipalId::new("sam"),
        notes: String::new(),
    }
}

/// A world with the release and a run of it that failed.
async fn failed() -> (World, RunId) {
    let options = Options {
        in_memory: true,
        ..Options::default()
    };
    let world = World::with(options).await;
    world.apply(&release()).await;
    let run = world.try_start(given("fail")).await.expect("it starts").id;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Failed);
    (world, run.id)
}

fn refusal<T>(outcome: Result<T, RunError>) -> String {
    match outcome {
        Ok(_) => panic!("this is to be refused"),
        Err(error) => error.full_text(),
    }
}

/// The scripts of a run that a delegate was given.
fn scripts(world: &World, run: &RunId) -> String {
    let all = world.deeds.list();
    let own = all
        .iter()
        .filter_map(|task| task.strip_prefix(run.as_str()));
    let mut own: Vec<&str> = own.filter_map(|task| task.split('.').nth_back(1)).collect();
    own.sort_unstable();
    own.join(" ")
}

#[tokio::test(start_paused = true)]
async fn a_retry_takes_over_what_succeeded_and_goes_on() {
    let (world, first) = failed().await;
    let offered = world.store.get_run(&first).await.expect("the run");
    let offered = resumable(&world.runs, &offered).await.expect("read");
    let groups: Vec<usize> = offered.groups.iter().map(Vec::len).collect();
    assert_eq!((groups, offered.refusal), (vec![1, 2], None));

    let run = world
        .retry(retry(&first, &[], what("ok")))
        .await
        .expect("it failed");
    let run = world.finish(&run.id).await;

    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    build Success
    unit Success
    load Success
    ship Success
    build.steps.tag #0 Success
    load.steps.b #0 Success
    load.steps.gate #0 Success
    ship.steps.c #0 Success
    unit.steps.a #0 Success
    unit.steps.gate #0 Success
    ");
    insta::assert_snapshot!(world.path("pipeline", run.id.as_str()).await, @"Plan Stages Group Line Stage Stage Finish Succeeded");
    // What was done is not done again.
    assert_eq!(scripts(&world, &first), "a b tag");
    assert_eq!(scripts(&world, &run.id), "b c");
    let origin = run.origin.as_ref().expect("a retry");
    assert_eq!(origin.root, first);
    let kept: Vec<String> = origin
        .kept
        .iter()
        .map(|(s, r)| format!("{s} {}", *r == first))
        .collect();
    assert_eq!(kept, ["build true", "unit true"]);
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_a_retry_keeps_the_chain_and_only_its_end_goes_on() {
    let (world, first) = failed().await;
    let second = world.retry(retry(&first, &["load"], None)).await;
    let second = world
        .finish(&second.expect("the inputs of the run").id)
        .await;
    assert_eq!(second.status, Status::Failed);
    let why = refusal(world.retry(retry(&first, &["load"], what("ok"))).await);
    assert!(
        why.contains(&format!("retry its newest retry, run {}", second.id)),
        "{why}"
    );

    let all = RetryRun {
        all: true,
        ..retry(&second.id, &["load"], what("ok"))
    };
    let third = world.retry(all).await.expect("the newest");
    let third = world.finish(&third.id).await;

    assert_eq!(third.status, Status::Success);
    assert_eq!(scripts(&world, &third.id), "a b c");
    let origin = third.origin.as_ref().expect("a retry");
    // The work of `build` was done in the first run, whoever took it over in between.
    assert_eq!(origin.kept, [(StageId::new("build"), first.clone())]);
    for run in [&first, &second.id, &third.id] {
        let run = world.store.get_run(run).await.expect("the run");
        let chain = history(&world.runs, &run).await.expect("read");
        let chain: Vec<&RunId> = chain.iter().map(|run| &run.id).collect();
        assert_eq!(chain, [&first, &second.id, &third.id]);
    }
    let why = refusal(world.retry(retry(&third.id, &["build"], None)).await);
    assert!(why.contains("there is nothing to retry"), "{why}");
    world.assert_clean(&third.id).await;
}

#[tokio::test(start_paused = true)]
async fn of_two_retries_at_once_one_is_refused() {
    let (world, first) = failed().await;
    let one = world.retry(retry(&first, &["load"], what("ok")));
    let other = world.retry(retry(&first, &["build"], what("ok")));
    let (one, other) = tokio::join!(one, other);
    let (won, lost) = match (one, other) {
        (Ok(won), Err(lost)) | (Err(lost), Ok(won)) => (won, lost),
        both => panic!("one and one only: {both:?}"),
    };
    assert!(lost.to_string().contains("retried"), "{lost}");
    let won = world.finish(&won.id).await;
    assert_eq!(won.status, Status::Success);
    let all = world.store.list_runs(&scope(), None, Page::first(10)).await;
    assert_eq!(all.expect("listed").items.len(), 2);
    world.assert_clean(&won.id).await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_retried_is_refused_with_what_to_do() {
    let (world, first) = failed().await;
    let again = async |run: &RunId, stages: &[&str]| {
        refusal(world.retry(retry(run, stages, what("ok"))).await)
    };
    insta::assert_snapshot!(again(&first, &["lod"]).await.replace(first.as_str(), "R"), @"run R has no stage `lod`; it has build, load beside unit, ship");
    insta::assert_snapshot!(again(&first, &["ship"]).await.replace(first.as_str(), "R"), @"stage `load` of run R is Failed: go on from it, or from an earlier one");
    insta::assert_snapshot!(again(&first, &["build", "ship"]).await, @"stage `ship` does not run beside build: name one stage to go on from, or several of one parallel block");
    let other = RetryRun {
        pipeline: EntityId::new("other"),
        ..retry(&first, &["load"], None)
    };
    insta::assert_snapshot!(refusal(world.retry(other).await).replace(first.as_str(), "R"), @"run R is a run of pipeline release, not of other");
    insta::assert_snapshot!(again(&RunId::new("none"), &["load"]).await, @"cannot read run none: run none does not exist");
    let gone = refusal(world.retry(retry(&first, &["load"], Some("pipeline: {identifier: release, variables: [{name: gone, type: String, value: x}]}".to_owned()))).await);
    assert!(gone.contains("gone"), "{gone}");
    // Nothing of all this is left.
    let all = world.store.list_runs(&scope(), None, Page::first(10)).await;
    assert_eq!(all.expect("listed").items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_retried_when_it_has_ended_and_an_aborted_one_too() {
    let world = World::new().await;
    let stages = [
        stage("build", &tag(), "", ""),
        stage("rest", &wait("pause", "3h"), "", ""),
        stage("ship", &script("c", "ok", ""), "", ""),
    ];
    world.apply(&pipeline(&stages)).await;
    let first = world.start("release").await;
    world.runs.clock.sleep(Duration::from_secs(600)).await;
    let why = refusal(world.retry(retry(&first, &["build"], None)).await);
    assert!(
        why.contains("has not ended (Running): wait for its end or abort it"),
        "{why}"
    );
    abort_run(&world.runs, &first, &PrincipalId::new("kim"))
        .await
        .expect("it runs");
    world.finish(&first).await;

    let run = world.retry(retry(&first, &["rest"], None)).await;
    let run = world.finish(&run.expect("it was aborted").id).await;

    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    build Success
    rest Success
    ship Success
    build.steps.tag #0 Success
    rest.steps.pause #0 Success
    ship.steps.c #0 Success
    ");
    assert_eq!(scripts(&world, &run.id), "c");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_request_of_a_retry_leaves_a_whole_run_or_none() {
    let (world, first) = failed().await;
    let mut crashes = 0;
    let mut last = first;
    for request in 1.. {
        let after = request % 2 == 1;
        world.crash.arm(request, after);
        let answer = world.retry_in_danger(retry(&last, &["load"], None)).await;
        let died = answer.is_none();
        world.crash.disarm();
        crashes += usize::from(died);
        // What was accepted is started by the next sweep.
        resume_unstarted(&world.runs, &scope())
            .await
            .expect("swept");
        let chain = world.store.get_run(&last).await.expect("the run");
        let chain = history(&world.runs, &chain).await.expect("read");
        let newest = chain.last().expect("itself").id.clone();
        if newest == last {
            assert!(died, "refused at request {request}: {answer:?}");
            continue;
        }
        let run = world.finish(&newest).await;
        let story = world.story(&run).await;
        assert_eq!(run.status, Status::Failed, "{story}");
        for line in [
            "build.steps.tag #0 Success",
            "unit.steps.a #0 Success",
            "load.steps.b #0 Failed",
        ] {
            assert!(story.contains(line), "crash at request {request}: {story}");
        }
        assert_eq!(scripts(&world, &newest), "b", "crash at request {request}");
        world.assert_clean(&newest).await;
        last = newest;
        if !died {
            break;
        }
    }
    assert!(crashes > 8, "only {crashes} crashes");
}

#[tokio::test(start_paused = true)]
async fn chosen_stages_run_alone_and_wait_for_nobody_else() {
    let world = World::new().await;
    world.apply(&release()).await;
    let chosen = |stages: &[&str], values: &[(&str, &str)]| {
        let stages = stages.iter().copied().map(EntityId::new).collect();
        let values = values
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Some(Chosen::new(stages, values.collect()))
    };
    let start = |chosen| StartRun {
        chosen,
        ..given("ok")
    };
    // `load` is not there to meet `unit` at the gate.
    let run = world.try_start(start(chosen(&["unit"], &[]))).await;
    let run = world.finish(&run.expect("it starts").id).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    unit Success
    unit.steps.a #0 Success
    unit.steps.gate #0 Success
    ");
    assert!(run.ended_ms.expect("ended") - run.started_ms < 60_000);
    world.assert_clean(&run.id).await;

    let why = refusal(world.try_start(start(chosen(&["ship"], &[]))).await);
    assert!(
        why.contains("stage `build` is not among the chosen stages"),
        "{why}"
    );
    let values = [
        (
            "<+pipeline.stages.build.spec.execution.steps.tag.output.outputVariables.TAG>",
            "v2",
        ),
        ("<+pipeline.stages.unit.status>", "SUCCEEDED"),
    ];
    let run = world.try_start(start(chosen(&["ship"], &values))).await;
    let run = world.finish(&run.expect("it starts").id).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    ship Success
    ship.steps.c #0 Success
    ");

    // A rerun has the same stages and inputs, unless others are given.
    let again = |chosen, inputs| Rerun {
        run: run.id.clone(),
        pipeline: EntityId::new("release"),
        inputs_yaml: inputs,
        chosen,
        principal: PrincipalId::new("sam"),
        notes: "CHG-7".to_owned(),
    };
    let same = world.rerun(again(None, None)).await.expect("it reruns");
    assert_eq!((&same.chosen, &same.inputs), (&run.chosen, &run.inputs));
    assert_eq!(same.notes, "CHG-7");
    let same = world.finish(&same.id).await;
    assert_eq!(same.status, Status::Success);
    let other = world
        .rerun(again(chosen(&["load", "unit"], &[]), what("fail")))
        .await;
    let other = world.finish(&other.expect("it reruns").id).await;
    // The retry of a run of chosen stages is one of the same.
    let retried = world.retry(retry(&other.id, &["load"], what("ok"))).await;
    let retried = world.finish(&retried.expect("it failed").id).await;
    insta::assert_snapshot!(world.story(&retried).await, @"
    run Success
    unit Success
    load Success
    load.steps.b #0 Success
    load.steps.gate #0 Success
    unit.steps.a #0 Success
    unit.steps.gate #0 Success
    ");
    world.assert_clean(&retried.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_may_keep_the_inputs_of_its_reruns() {
    let world = World::new().await;
    let fixed = release().replacen("  stages:\n", "  fixedInputsOnRerun: true\n  stages:\n", 1);
    world.apply(&fixed).await;
    let first = world.try_start(given("ok")).await.expect("it starts");
    world.finish(&first.id).await;
    let again = Rerun {
        run: first.id.clone(),
        pipeline: EntityId::new("release"),
        inputs_yaml: what("fail"),
        chosen: None,
        principal: PrincipalId::new("sam"),
        notes: String::new(),
    };
    let run = world.rerun(again).await.expect("it reruns");
    assert_eq!(run.inputs, first.inputs);
    assert_eq!(world.finish(&run.id).await.status, Status::Success);
}

#[tokio::test(start_paused = true)]
async fn what_was_rolled_back_with_its_run_is_done_again() {
    let world = World::new().await;
    let all = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        type: PipelineRollback\n";
    let undo = script("undo", "ok", "");
    let stages = [
        stage("build", &script("a", "ok", ""), &undo, all),
        stage(
            "ship",
            &script("b", "<+pipeline.variables.what>", ""),
            "",
            all,
        ),
    ];
    world.apply(&asking(&stages)).await;
    let first = world.try_start(given("fail")).await.expect("it starts");
    let first = world.finish(&first.id).await;
    assert!(
        world
            .story(&first)
            .await
            .contains("build.rollbackSteps.undo #0 Success")
    );
    let why = refusal(world.retry(retry(&first.id, &["ship"], None)).await);
    assert!(why.contains("stage `build` of run"), "{why}");
    assert!(
        why.contains("was rolled back with the run: go on from it"),
        "{why}"
    );

    let run = world.retry(retry(&first.id, &[], what("ok"))).await;
    let run = world.finish(&run.expect("it failed").id).await;

    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    build Success
    ship Success
    build.steps.a #0 Success
    ship.steps.b #0 Success
    ");
    assert_eq!(scripts(&world, &run.id), "a b");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn expressions_add_tags_to_their_run_while_it_goes_on() {
    let world = World::new().await;
    let list = "LIST=[{\\\"key\\\":\\\"a\\\",\\\"value\\\":\\\"1\\\"}]";
    let tag = script("list", &format!("\"{list}\""), "")
        + "      outputVariables:\n        - name: LIST\n          type: String\n          value: LIST\n";
    let steps = tag
        + &script(
            "one",
            "echo <+executionTags.addTag(\"version\", <+pipeline.name>)>",
            "",
        )
        + &script(
            "all",
            "echo <+executionTags.addTagsList(<+execution.steps.list.output.outputVariables.LIST>)>",
            "",
        )
        + &script("none", "echo <+executionTags.addTag(\"\", \"x\")>", "");
    world
        .apply(&pipeline(&[stage("build", &steps, "", "")]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    let tags: Vec<String> = run.tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(
        tags,
        ["version=release", "a=1"],
        "{}",
        world.story(&run).await
    );
    let why = &run.failure.as_ref().expect("the last step fails").message;
    assert!(why.contains("the key of a tag is empty"), "{why}");
    world.assert_clean(&run.id).await;
}

/// Holds the key `k` of the account until the run has ended.
fn queue() -> String {
    "- step:\n    name: line\n    identifier: line\n    type: Queue\n    timeout: 1d\n    spec:\n      key: k\n      \
     scope: Pipeline\n"
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_retry_holds_again_what_its_run_held_to_its_end() {
    let world = World::new().await;
    let ship = script("b", "<+pipeline.variables.what>", "");
    world
        .apply(&asking(&[
            stage("build", &(queue() + &script("a", "ok", "")), "", ""),
            stage("ship", &(ship + &wait("rest", "10m")), "", ""),
        ]))
        .await;
    let other = pipeline(&[stage("only", &(queue() + &wait("pause", "1h")), "", "")]);
    let other = other.replace(": release\n", ": other\n");
    world.apply(&other).await;
    let first = world.try_start(given("fail")).await.expect("it starts").id;
    world.finish(&first).await;
    // Another run takes the key before the retry, and a third one comes after it.
    let before = world.start("other").await;
    world.runs.clock.sleep(Duration::from_secs(60)).await;
    let retried = world.retry(retry(&first, &["ship"], what("ok"))).await;
    let retried = retried.expect("it failed").id;
    world.runs.clock.sleep(Duration::from_secs(60)).await;
    let waits = world.store.get_run(&retried).await.expect("the run");
    assert_eq!(waits.stages[1].status, Status::ResourceWaiting);
    let after = world.start("other").await;

    let before = world.finish(&before).await;
    let retried = world.finish(&retried).await;
    let after = world.finish(&after).await;
    assert_eq!(
        retried.status,
        Status::Success,
        "{}",
        world.story(&retried).await
    );
    assert_eq!(scripts(&world, &retried.id), "b");
    let began = retried.stages[1].started_ms.expect("it ran");
    assert!(began >= before.ended_ms.expect("ended"), "it waited");
    let pause = world
        .store
        .list_nodes(&after.id, None)
        .await
        .expect("nodes");
    let pause = pause
        .iter()
        .find(|node| node.identifier.as_str() == "pause");
    let began = pause.expect("it ran").started_ms;
    assert!(began >= retried.ended_ms.expect("ended"), "they waited");
    for run in [&before, &retried, &after] {
        world.assert_clean(&run.id).await;
    }
    assert_eq!(world.holds().await, Vec::<String>::new());

    // An abort ends the wait.
    let first = world.try_start(given("fail")).await.expect("it starts").id;
    world.finish(&first).await;
    let before = world.start("other").await;
    world.runs.clock.sleep(Duration::from_secs(60)).await;
    let retried = world.retry(retry(&first, &["ship"], what("ok"))).await;
    let retried = retried.expect("it failed").id;
    world.runs.clock.sleep(Duration::from_secs(60)).await;
    let sam = PrincipalId::new("sam");
    abort_run(&world.runs, &retried, &sam)
        .await
        .expect("it waits");
    let retried = world.finish(&retried).await;
    assert_eq!(retried.status, Status::Aborted);
    let before = world.finish(&before).await;
    world.assert_clean(&before.id).await;
    assert_eq!(world.holds().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_a_run_takes_over_is_made_good() {
    let (world, first) = failed().await;
    let mut last = first;
    // The machine's first state dies at each of its requests, and what it has left out is written by the next.
    for request in 1..=14 {
        world.crash.arm(request, request % 2 == 1);
        let run = world.retry(retry(&last, &["load"], None)).await;
        let run = world.finish(&run.expect("it failed").id).await;
        assert!(!world.crash.is_armed(), "no crash at request {request}");
        let story = world.story(&run).await;
        for line in [
            "build.steps.tag #0 Success",
            "unit.steps.a #0 Success",
            "unit.steps.gate #0 Success",
            "load.steps.b #0 Failed",
        ] {
            assert!(story.contains(line), "crash at request {request}: {story}");
        }
        assert_eq!(scripts(&world, &run.id), "b", "crash at request {request}");
        world.assert_clean(&run.id).await;
        last = run.id;
    }
}
