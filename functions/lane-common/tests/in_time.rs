//! What people say in time, where a function hears it only when the time is up: nobody was woken by it.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use slipway_engine::signal::{Word, say};
use slipway_engine::stage_word::StageWord;
use slipway_model::id::{NodeId, PrincipalId, RunId, StageId};
use slipway_model::status::Status;
use slipway_store::record::RunRecord;
use slipway_world::tap::{Place, Tap, Verdict};
use slipway_world::yaml::{LEADS, on_failure, pipeline, script, stage, wait};
use slipway_world::{Options, World, minutes};

/// Nothing goes wrong.
const WELL: u8 = 0;
/// What people complete is lost: whoever waits is not woken.
const DEAF: u8 = 1;
/// The next request of a function to the store takes half a minute.
const SLOW: u8 = 2;

#[derive(Default)]
struct Line(AtomicU8);

impl Line {
    fn is(&self, state: u8) {
        self.0.store(state, Ordering::SeqCst);
    }
}

impl Tap for Line {
    fn request(&self, place: Place, operation: &str) -> Verdict {
        let now = self.0.load(Ordering::SeqCst);
        match place {
            Place::Outside if now == DEAF && operation == "SendTaskSuccess" => Verdict::Lose,
            Place::Store if now == SLOW => {
                self.is(WELL);
                Verdict::Stall(Duration::from_secs(30))
            }
            _ => Verdict::Pass,
        }
    }
}

/// A run, and when something is said about it.
struct Said {
    world: World,
    line: Arc<Line>,
    run: RunId,
}

impl Said {
    async fn about(whole: &str) -> Self {
        let line = Arc::<Line>::default();
        let options = Options {
            tap: Some(line.clone()),
            in_memory: true,
            ..Options::default()
        };
        let world = World::with(options).await;
        world.apply(LEADS).await;
        world.apply(whole).await;
        let run = world.start("release").await;
        Self { world, line, run }
    }

    async fn says(&self, word: &Word) {
        let who = PrincipalId::new("sam");
        let said = say(&self.world.people, &self.run, &who, word).await;
        said.expect("it fits");
    }

    /// Says it ten minutes after the start, and nobody is woken.
    async fn early(self, word: &Word) -> (World, RunRecord) {
        minutes(&self.world, 10).await;
        self.line.is(DEAF);
        self.says(word).await;
        self.line.is(WELL);
        let run = self.world.finish(&self.run).await;
        (self.world, run)
    }

    /// Says it ten seconds after the first hour, while the function that is to end the step is slow.
    async fn late(self, word: &Word) -> (World, RunRecord) {
        minutes(&self.world, 59).await;
        self.line.is(SLOW);
        self.world.runs.clock.sleep(Duration::from_secs(70)).await;
        self.says(word).await;
        let run = self.world.finish(&self.run).await;
        (self.world, run)
    }
}

/// A stage with a step that has an hour: by its own limit, that of its group, its stage or its run. It is tried again where
/// its time is up, and anything else rolls its stage back.
fn with_an_hour(of: &str, step: &str) -> String {
    let step = match of {
        "step" => step.replacen("timeout: 1d", "timeout: 1h", 1),
        _ => step.to_owned(),
    };
    let undo = script("undo", "ok", "");
    let again = "failureStrategies:\n  - onFailure:\n      errors: [Timeout]\n      action: {type: Retry, spec: {retryCount: 1, \
                 retryIntervals: [1m], onRetryFailure: {action: {type: MarkAsFailure}}}}\n  - onFailure:\n      errors: \
                 [AllErrors]\n      action: {type: StageRollback}\n";
    let steps = match of {
        "group" => slipway_world::yaml::group("g", &[step]) + "    timeout: 1h\n",
        _ => step,
    };
    let more = match of {
        "stage" => format!("timeout: 1h\n{again}"),
        _ => again.to_owned(),
    };
    let whole = pipeline(&[stage("deploy", &steps, &undo, &more)]);
    match of {
        "run" => whole.replacen("  stages:", "  timeout: 1h\n  stages:", 1),
        _ => whole,
    }
}

const LIMITS: [&str; 4] = ["step", "group", "stage", "run"];

fn node(of: &str, step: &str) -> NodeId {
    let steps = match of {
        "group" => "stages.deploy.spec.execution.steps.g.steps",
        _ => "stages.deploy.spec.execution.steps",
    };
    NodeId::new(format!("{steps}.{step}"))
}

fn about_stage(word: StageWord) -> Word {
    let stage = StageId::new("deploy");
    Word::Stage { stage, word }
}

/// Found by the simulation (seed 60316): the step was tried again instead.
#[tokio::test(start_paused = true)]
async fn a_word_that_stops_a_step_counts_whenever_it_is_heard() {
    for of in LIMITS {
        let whole = with_an_hour(of, &wait("w", "3h"));
        for word in [StageWord::RollBack, StageWord::MarkAsFailed] {
            let said = Said::about(&whole).await;
            let (world, run) = said.early(&about_stage(word)).await;
            let story = world.story(&run).await;
            assert_eq!(
                (run.status, run.stages[0].rolled_back),
                (Status::Failed, true),
                "{of} {word:?}: {story}"
            );
            assert!(!story.contains("#1"), "{of} {word:?}: {story}");
            world.assert_clean(&run.id).await;
        }
        let said = Said::about(&whole).await;
        let (world, run) = said.late(&about_stage(StageWord::RollBack)).await;
        let story = world.story(&run).await;
        assert!(!run.stages[0].rolled_back, "{of}: {story}");
        assert_eq!(run.status, Status::Expired, "{of}: {story}");
        world.assert_clean(&run.id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_an_approval_counts_whenever_it_is_heard() {
    let ask = "- step:\n    name: ask\n    identifier: ask\n    type: HarnessApproval\n    timeout: 1d\n    spec:\n      \
               approvalMessage: Ship it?\n      includePipelineExecutionHistory: false\n      approvers: {minimumCount: 1, \
               disallowPipelineExecutor: false, userGroups: [leads]}\n";
    let vote = |of: &str, verdict: &str| Word::Step {
        node: node(of, "ask"),
        attempt: 0,
        kind: "approval:kim".to_owned(),
        says: format!("{{\"verdict\": \"{verdict}\", \"comments\": \"\", \"inputs\": {{}}}}"),
    };
    for of in LIMITS {
        let whole = with_an_hour(of, ask);
        for (verdict, expected) in [
            ("APPROVE", Status::Success),
            ("REJECT", Status::ApprovalRejected),
        ] {
            let said = Said::about(&whole).await;
            let (world, run) = said.early(&vote(of, verdict)).await;
            let asked = world.store.get_node(&run.id, &node(of, "ask")).await;
            let asked = asked.expect("read").expect("it was asked");
            let story = world.story(&run).await;
            assert_eq!(
                (asked.attempt, asked.status),
                (0, expected),
                "{of} {verdict}: {story}"
            );
            world.assert_clean(&run.id).await;
        }
        let said = Said::about(&whole).await;
        let (world, run) = said.late(&vote(of, "APPROVE")).await;
        let story = world.story(&run).await;
        assert_eq!(run.status, Status::Expired, "{of}: {story}");
        world.assert_clean(&run.id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stage_is_rolled_back_that_heard_of_it_when_a_step_waited_to_be_tried_again() {
    let again = "{type: Retry, spec: {retryCount: 1, retryIntervals: [5h], onRetryFailure: {action: {type: Ignore}}}}";
    let steps = script("a", "fail", &on_failure(again));
    let undo = script("undo", "ok", "");
    let whole = pipeline(&[stage("deploy", &steps, &undo, "timeout: 1h\n")]);
    let said = Said::about(&whole).await;
    let (world, run) = said.early(&about_stage(StageWord::RollBack)).await;
    let story = world.story(&run).await;
    assert!(run.stages[0].rolled_back, "{story}");
    assert_eq!(run.status, Status::Failed, "{story}");
    world.assert_clean(&run.id).await;
}
