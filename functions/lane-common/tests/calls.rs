//! The calls of AWS that a run makes until it waits for an approval: each costs time, and on AWS money.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use slipway_engine::signal::{Word, say};
use slipway_model::id::{NodeId, PrincipalId, RunId};
use slipway_model::status::Status;
use slipway_world::tap::{Invocation, Place, Tap, Verdict};
use slipway_world::yaml::{pipeline, stage};
use slipway_world::{Options, World};

/// Writes down what is called, in order; nothing goes wrong.
#[derive(Default)]
struct Listed(Mutex<Vec<String>>);

impl Listed {
    fn note(&self, line: String) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tap for Listed {
    fn request(&self, place: Place, operation: &str) -> Verdict {
        self.note(match place {
            Place::Store => format!("  {operation}"),
            _ => format!("  {operation} ({place:?})"),
        });
        Verdict::Pass
    }

    fn invocation(&self, function: &str) -> Invocation {
        self.note(function.to_owned());
        Invocation::Once
    }
}

const ASK: &str = "- step:\n    name: ask\n    identifier: ask\n    type: HarnessApproval\n    timeout: 1d\n    spec:\n      \
                   approvalMessage: go on?\n      includePipelineExecutionHistory: false\n      approvers:\n        \
                   minimumCount: 1\n        disallowPipelineExecutor: false\n        userGroups: [_project_all_users]\n";

async fn statuses(world: &World, run: &RunId) -> Vec<Status> {
    let nodes = world.store.show_nodes(run).await.expect("nodes");
    nodes.iter().map(|node| node.status).collect()
}

async fn is_approved(world: &World, run: &RunId) {
    let word = Word::Step {
        node: NodeId::new("stages.gate.spec.execution.steps.ask"),
        attempt: 0,
        kind: "approval:sam".to_owned(),
        says: r#"{"verdict": "APPROVE", "comments": "", "inputs": {}}"#.to_owned(),
    };
    let said = say(&world.runs, run, &PrincipalId::new("sam"), &word).await;
    said.expect("it waits");
    let ended = world.finish(run).await;
    assert_eq!(ended.status, Status::Success, "{:?}", ended.failure);
    world.assert_clean(run).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_its_approval_after_so_many_calls() {
    let calls = Arc::<Listed>::default();
    let world = World::with(Options {
        tap: Some(calls.clone()),
        ..Options::default()
    })
    .await;
    let (api, token) = (world.tapped_api().await, world.token("alex").await);
    world.apply(&pipeline(&[stage("gate", ASK, "", "")])).await;
    let path = "/pipeline/api/pipeline/execute/release?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop";
    // What is read once in a process is read for the first run.
    let mut seen = Vec::new();
    for _ in 0..2 {
        calls.take();
        let before = world.engine.counters();
        let (status, answer) = api.call(&token, "POST", path, None).await;
        assert_eq!(status, 200, "{answer}");
        world.runs.clock.sleep(Duration::from_secs(1)).await;
        seen = calls.take();
        let after = world.engine.counters();
        seen.push(format!(
            "{} commits of {} records in the journal of executions",
            after.commits - before.commits,
            after.writes - before.writes
        ));
        let id = answer["data"]["planExecution"]["uuid"].as_str();
        let run = RunId::new(id.expect("an id"));
        assert_eq!(statuses(&world, &run).await, [Status::ApprovalWaiting]);
    }
    insta::assert_snapshot!(seen.join("\n"), @"
      GetItem
      GetItem
      GetItem
      UpdateItem
      TransactWriteItems
      StartExecution (Workflows)
    pipeline
      Query
      TransactWriteItems
    pipeline
      Query
    lane
      Query
      PutItem
    lane
      PutItem
      Query
    9 commits of 36 records in the journal of executions
    ");
}

#[tokio::test(start_paused = true)]
async fn a_function_that_dies_while_it_begins_to_ask_asks_once() {
    for after in [false, true] {
        let mut crashes = 0;
        for request in 1.. {
            let world = World::with(Options {
                in_memory: true,
                ..Options::default()
            })
            .await;
            world.apply(&pipeline(&[stage("gate", ASK, "", "")])).await;
            world.crash.arm(request, after);
            let run = world.start("release").await;
            world.runs.clock.sleep(Duration::from_secs(600)).await;
            if world.crash.is_armed() {
                break;
            }
            crashes = request;
            let waits = statuses(&world, &run).await;
            assert_eq!(
                waits,
                [Status::ApprovalWaiting],
                "crash at {request}, done: {after}"
            );
            is_approved(&world, &run).await;
        }
        assert!(crashes >= 8, "only {crashes} crashes");
    }
}

/// Makes every invocation twice at once.
struct Doubled;

impl Tap for Doubled {
    fn request(&self, _place: Place, _operation: &str) -> Verdict {
        Verdict::Pass
    }

    fn invocation(&self, _function: &str) -> Invocation {
        Invocation::Twice
    }
}

#[tokio::test(start_paused = true)]
async fn two_invocations_that_begin_to_ask_at_once_ask_once() {
    let world = World::with(Options {
        tap: Some(Arc::new(Doubled)),
        ..Options::default()
    })
    .await;
    world.apply(&pipeline(&[stage("gate", ASK, "", "")])).await;
    let run = world.start("release").await;
    world.runs.clock.sleep(Duration::from_secs(600)).await;
    assert_eq!(statuses(&world, &run).await, [Status::ApprovalWaiting]);
    is_approved(&world, &run).await;
}
