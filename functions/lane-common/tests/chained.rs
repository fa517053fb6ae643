//! Stages that run another pipeline, on the real machines.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use slipway_engine::abort::abort_run;
use slipway_engine::signal::{Word, is_paused, say};
use slipway_model::id::{EntityId, PrincipalId, RunId};
use slipway_model::status::Status;
use slipway_store::Page;
use slipway_store::record::RunRecord;
use slipway_world::tap::{Place, Tap, Verdict};
use slipway_world::yaml::{pipeline, script, stage, wait};
use slipway_world::{Options, World, minutes};

/// A stage that runs the pipeline `child`.
fn chained(id: &str, spec: &str, more: &str) -> String {
    let more: String = more
        .lines()
        .map(|line| format!("        {line}\n"))
        .collect();
    format!(
        "    - stage:\n        name: {id}\n        identifier: {id}\n        type: Pipeline\n        spec:\n          \
         org: default\n          project: shop\n          pipeline: child\n{spec}{more}"
    )
}

/// A pipeline `child` with the variable `word`, which it asks for.
fn child(stages: &[String]) -> String {
    let variable =
        "  variables:\n    - name: word\n      type: String\n      value: <+input>\n  stages:\n";
    let yaml = pipeline(stages).replace("release", "child");
    yaml.replacen("  stages:\n", variable, 1)
}

fn says(id: &str, what: &str) -> String {
    let output =
        "  outputVariables:\n        - name: word\n          type: String\n          value: word\n";
    script(id, &format!("'word={what}'"), "").replacen(
        "      source:",
        &format!("    {output}      source:"),
        1,
    )
}

const WORD: &str = "          inputs:\n            identifier: child\n            variables:\n              \
     - name: word\n                type: String\n                value: <+pipeline.stages.first.spec.execution.steps.say.output.outputVariables.word>\n";

const ANSWER: &str = "          outputs:\n            - name: answer\n              value: <+pipeline.stages.inner.spec.execution.steps.reply.output.outputVariables.word>\n";

/// The runs of the child, newest first.
async fn children(world: &World) -> Vec<RunRecord> {
    let scope = slipway_world::scope();
    let child = EntityId::new("child");
    let found = world.store.list_runs(&scope, Some(&child), Page::first(10));
    found.await.expect("the runs").items
}

async fn stories(world: &World, parent: &RunRecord) -> String {
    let mut told = world.story(parent).await;
    for run in children(world).await.iter().rev() {
        assert_eq!(
            run.parent.as_ref().map(|parent| &parent.run),
            Some(&parent.id)
        );
        told.push_str("\n- child\n");
        told.push_str(&world.story(run).await);
        world.assert_clean(&run.id).await;
    }
    world.assert_clean(&parent.id).await;
    // Ids of runs are not the same twice.
    let ids = children(world).await.into_iter().map(|run| run.id);
    ids.fold(told, |told, id| told.replace(id.as_str(), "CHILD"))
}

/// `first` says a word, `child` gets it and replies, `last` reads the reply.
async fn talk(world: &World) {
    let inner = stage(
        "inner",
        &says("reply", "<+pipeline.variables.word> yourself"),
        "",
        "",
    );
    world.apply(&child(&[inner])).await;
    let first = stage("first", &says("say", "hello"), "", "");
    let spec = format!("{WORD}{ANSWER}");
    let last = stage(
        "last",
        &says("end", "<+pipeline.stages.other.output.answer>"),
        "",
        "",
    );
    let whole = pipeline(&[first, chained("other", &spec, ""), last]);
    world.apply(&whole).await;
}

const TALK: &str = "\
run Success
first Success
other Success
last Success
first.steps.say #0 Success
last.steps.end #0 Success
other.spec.pipeline #0 Success
- child
run Success
inner Success
inner.steps.reply #0 Success";

#[tokio::test(start_paused = true)]
async fn a_chained_pipeline_gets_inputs_and_gives_outputs() {
    let world = World::new().await;
    talk(&world).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;

    assert_eq!(stories(&world, &run).await, TALK);
    let nodes = world.store.list_nodes(&run.id, None).await.expect("nodes");
    let end = nodes.iter().find(|node| node.identifier.as_str() == "end");
    let end = end.expect("the last step");
    assert_eq!(
        end.outputs["output"]["outputVariables"]["word"],
        "hello yourself"
    );
    let inner = &children(&world).await[0];
    assert_eq!(inner.triggered_by.as_str(), "alex");
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_request_starts_one_child() {
    let world = World::new().await;
    talk(&world).await;
    let mut crashes = 0;
    for request in (1..).step_by(3) {
        let after = request % 2 == 1;
        world.crash.arm(request, after);
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        if world.crash.is_armed() {
            break;
        }
        crashes += 1;
        let own = |child: &RunRecord| child.parent.as_ref().is_some_and(|p| p.run == run.id);
        let all = children(&world).await;
        let count = all.iter().filter(|child| own(child)).count();
        assert_eq!(count, 1, "crash at request {request}, done: {after}");
        let story = world.story(&run).await;
        assert!(
            TALK.starts_with(&story),
            "crash at request {request}: {story}"
        );
        world.assert_clean(&run.id).await;
    }
    assert!(crashes > 15, "only {crashes} crashes");
}

/// The store throttles a function for so long that its clients give up.
struct Away {
    from: usize,
    requests: AtomicUsize,
}

impl Tap for Away {
    fn request(&self, place: Place, _operation: &str) -> Verdict {
        let number = match place {
            Place::Store => self.requests.fetch_add(1, Ordering::SeqCst) + 1,
            _ => return Verdict::Pass,
        };
        match (self.from..self.from + 7).contains(&number) {
            true => Verdict::Throttle,
            false => Verdict::Pass,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_store_fails_no_step_and_starts_one_child() {
    for from in (1..50).step_by(6) {
        let away = Arc::new(Away {
            from,
            requests: AtomicUsize::new(0),
        });
        let options = Options {
            tap: Some(away.clone()),
            ..Options::default()
        };
        let world = World::with(options).await;
        talk(&world).await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        assert_eq!(stories(&world, &run).await, TALK, "away from {from} on");
        assert!(away.requests.load(Ordering::SeqCst) > 57);
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_fails_its_stage_and_is_tried_again() {
    let world = World::new().await;
    world
        .apply(&child(&[stage(
            "inner",
            &script("bad", "fail", ""),
            "",
            "",
        )]))
        .await;
    let again = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action: {type: Retry, spec: {retryCount: 1, retryIntervals: [10s], onRetryFailure: {action: {type: MarkAsFailure}}}}\n";
    let word = "          inputs: {variables: [{name: word, type: String, value: hi}]}\n";
    world
        .apply(&pipeline(&[chained("other", word, again)]))
        .await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(stories(&world, &run).await, @"
    run Failed: Step pipeline: Run CHILD of pipeline child ended Failed: Step bad: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    other Failed: Step pipeline: Run CHILD of pipeline child ended Failed: Step bad: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    other.spec.pipeline #0 Failed
    other.spec.pipeline #1 Failed
    - child
    run Failed: Step bad: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    inner Failed: Step bad: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    inner.steps.bad #0 Failed
    - child
    run Failed: Step bad: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    inner Failed: Step bad: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.
    inner.steps.bad #0 Failed
    ");
}

/// What the child lacks is known before the parent begins; what only its own plan shows, when its stage does.
#[tokio::test(start_paused = true)]
async fn a_child_that_cannot_be_planned_says_why() {
    let world = World::new().await;
    world
        .apply(&child(&[stage("inner", &script("fine", "ok", ""), "", "")]))
        .await;
    world.apply(&pipeline(&[chained("other", "", "")])).await;
    let refused = world.start_by("release", "MANUAL").await;
    insta::assert_snapshot!(refused.expect_err("refused").full_text(), @"release:14:19: pipeline.stages[0].stage.spec.pipeline: the pipeline `child` is not given all that it asks for: the runtime input `word` has no value (pipeline.variables[0].value)");

    let world = World::new().await;
    let odd = "timeout: <+pipeline.variables.nowhere>\n";
    world
        .apply(&child(&[stage(
            "inner",
            &script("fine", "ok", ""),
            "",
            odd,
        )]))
        .await;
    let word = "          inputs: {variables: [{name: word, type: String, value: hi}]}\n";
    world.apply(&pipeline(&[chained("other", word, "")])).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(stories(&world, &run).await, @"
    run Failed: Step pipeline: Cannot run pipeline child: child:30:16: pipeline.stages[0].stage.timeout: this must be known before the run begins: `<+pipeline.variables.nowhere>` cannot be evaluated: `pipeline.variables.nowhere` is not defined here; check its spelling and that it exists before this point
    other Failed: Step pipeline: Cannot run pipeline child: child:30:16: pipeline.stages[0].stage.timeout: this must be known before the run begins: `<+pipeline.variables.nowhere>` cannot be evaluated: `pipeline.variables.nowhere` is not defined here; check its spelling and that it exists before this point
    other.spec.pipeline #0 Failed
    ");
}

async fn waiting(world: &World) -> RunId {
    world
        .apply(&child(&[stage("inner", &wait("long", "5h"), "", "")]))
        .await;
    let word = "          inputs: {variables: [{name: word, type: String, value: hi}]}\n";
    let limit = "timeout: 2h\n";
    world
        .apply(&pipeline(&[chained("other", word, limit)]))
        .await;
    let run = world.start("release").await;
    world.runs.clock.sleep(Duration::from_secs(60)).await;
    run
}

#[tokio::test(start_paused = true)]
async fn an_abort_reaches_the_child_and_that_of_the_child_its_parent() {
    let world = World::new().await;
    let who = PrincipalId::new("sam");
    let run = waiting(&world).await;
    abort_run(&world.runs, &run, &who).await.expect("aborted");
    let run = world.finish(&run).await;
    world.finish(&children(&world).await[0].id).await;
    insta::assert_snapshot!(stories(&world, &run).await, @"
    run Aborted: Step pipeline: It was stopped: the run was aborted by sam.
    other Aborted: Step pipeline: It was stopped: the run was aborted by sam.
    other.spec.pipeline #0 Aborted
    - child
    run Aborted: Step long: It was stopped: the run was aborted by sam.
    inner Aborted: Step long: It was stopped: the run was aborted by sam.
    inner.steps.long #0 Aborted
    ");

    let world = World::new().await;
    let run = waiting(&world).await;
    let inner = children(&world).await.remove(0);
    abort_run(&world.runs, &inner.id, &who)
        .await
        .expect("aborted");
    let run = world.finish(&run).await;
    insta::assert_snapshot!(stories(&world, &run).await, @"
    run Failed: Step pipeline: Run CHILD of pipeline child ended Aborted: Step long: It was stopped: the run was aborted by sam.
    other Failed: Step pipeline: Run CHILD of pipeline child ended Aborted: Step long: It was stopped: the run was aborted by sam.
    other.spec.pipeline #0 Failed
    - child
    run Aborted: Step long: It was stopped: the run was aborted by sam.
    inner Aborted: Step long: It was stopped: the run was aborted by sam.
    inner.steps.long #0 Aborted
    ");
}

#[tokio::test(start_paused = true)]
async fn a_child_is_paused_with_its_parent_and_goes_on_with_it() {
    let world = World::new().await;
    let (who, other) = (PrincipalId::new("sam"), PrincipalId::new("kim"));
    let steps = wait("first", "5m") + &script("then", "ok", "");
    world.apply(&child(&[stage("inner", &steps, "", "")])).await;
    let word = "          inputs: {variables: [{name: word, type: String, value: hi}]}\n";
    world.apply(&pipeline(&[chained("other", word, "")])).await;
    let run = world.start("release").await;
    minutes(&world, 1).await;
    let say = async |run: &RunId, who: &PrincipalId, word: Word| {
        let said = Box::pin(say(&world.runs, run, who, &word)).await;
        said.expect("it runs");
        minutes(&world, 20).await;
        let inner = children(&world).await.remove(0);
        let begun = world
            .store
            .list_nodes(&inner.id, None)
            .await
            .expect("nodes");
        (is_paused(&inner), begun.len())
    };
    assert_eq!(say(&run, &who, Word::Pause).await, (true, 1));
    assert_eq!(say(&run, &who, Word::Resume).await, (false, 2));
    let done = world.finish(&run).await;
    assert_eq!(done.status, Status::Success);

    // What a person says about the child is not overruled.
    let run = world.start("release").await;
    minutes(&world, 1).await;
    let inner = children(&world).await.remove(0).id;
    assert_eq!(say(&inner, &other, Word::Pause).await, (true, 1));
    assert_eq!(say(&run, &who, Word::Pause).await, (true, 1));
    assert_eq!(say(&run, &who, Word::Resume).await, (true, 1));
    assert_eq!(say(&run, &who, Word::Pause).await, (true, 1));
    assert_eq!(say(&inner, &other, Word::Resume).await, (false, 2));
    let run = world.store.get_run(&run).await.expect("the run");
    assert!(is_paused(&run));
}

#[tokio::test(start_paused = true)]
async fn a_stage_out_of_time_aborts_its_child() {
    let world = World::new().await;
    let run = waiting(&world).await;
    let run = world.finish(&run).await;
    world.finish(&children(&world).await[0].id).await;
    insta::assert_snapshot!(stories(&world, &run).await, @"
    run Expired: Step pipeline: The time of its stage or of the run was up.
    other Expired: Step pipeline: The time of its stage or of the run was up.
    other.spec.pipeline #0 Expired
    - child
    run Aborted: Step long: It was stopped: the run was aborted by slipway.
    inner Aborted: Step long: It was stopped: the run was aborted by slipway.
    inner.steps.long #0 Aborted
    ");
}
