//! Whole runs that wait for tickets and scripts: on the real machines, in virtual time, with servers on real ports.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use slipway_engine::abort::abort_run;
use slipway_model::id::{PrincipalId, RunId, Scope};
use slipway_model::status::{Failure, Status};
use slipway_steps::secrets::SecretSource;
use slipway_world::yaml::{pipeline, script, stage};
use slipway_world::{Options, World};

use crate::world::PASSWORD;
use slipway_world::ticket::jira::Jira;
use slipway_world::ticket::service_now::ServiceNow;
use slipway_world::ticket::{Server, System};

struct Vault;

#[async_trait]
impl SecretSource for Vault {
    async fn value(&self, _scope: &Scope, reference: &str) -> Result<SecretString, Failure> {
        assert_eq!(reference, "account.password");
        Ok(SecretString::from(PASSWORD))
    }
}

/// A world with a connector `tracker` to a server.
async fn world<S: System>(server: &Server<S>, kind: &str, options: Options) -> World {
    let world = World::with(Options {
        secrets: Arc::new(Vault),
        real_servers: true,
        ..options
    })
    .await;
    let field = if kind == "Jira" {
        "jiraUrl"
    } else {
        "serviceNowUrl"
    };
    let connector = format!(
        "connector:\n  name: tracker\n  identifier: tracker\n  orgIdentifier: default\n  projectIdentifier: shop\n  type: {kind}\n  spec:\n    {field}: {}\n    auth:\n      type: UsernamePassword\n      spec:\n        username: sam\n        passwordRef: account.password\n",
        server.url
    );
    world.apply(&connector).await;
    world
}

fn step(id: &str, kind: &str, timeout: &str, spec: &str) -> String {
    let spec: String = spec.lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "- step:\n    name: {id}\n    identifier: {id}\n    type: {kind}\n    timeout: {timeout}\n    spec:\n{spec}"
    )
}

const CREATE: &str = "connectorRef: tracker\nprojectKey: SHOP\nissueType: Task\nfields:\n  - name: Summary\n    value: Release <+pipeline.sequenceId>\n";

fn criteria(name: &str, key: &str, value: &str) -> String {
    format!(
        "{name}:\n  type: KeyValues\n  spec:\n    matchAnyCondition: false\n    conditions:\n      - key: {key}\n        operator: equals\n        value: {value}\n"
    )
}

fn approve(id: &str, timeout: &str) -> String {
    let spec =
        "connectorRef: tracker\nissueKey: <+execution.steps.open.issue.key>\nretryInterval: 1m\n"
            .to_owned()
            + &criteria("approvalCriteria", "Status", "Done")
            + &criteria("rejectionCriteria", "Status", "Canceled");
    step(id, "JiraApproval", timeout, &spec)
}

/// Changes the status of the first issue after so many minutes.
fn later(world: &World, server: &Arc<Server<Jira>>, minutes: u64, status: &'static str) {
    let (clock, server) = (world.runs.clock.clone(), Arc::clone(server));
    tokio::spawn(async move {
        clock.sleep(Duration::from_secs(60 * minutes)).await;
        server.with(|jira| jira.status("SHOP-1", status));
    });
}

fn looks<S: System>(server: &Server<S>, path: &str) -> usize {
    let path = format!("GET {path}");
    server
        .asked()
        .iter()
        .filter(|asked| **asked == path)
        .count()
}

async fn release(world: &World, steps: &str) -> RunId {
    world
        .apply(&pipeline(&[stage("deploy", steps, "", "")]))
        .await;
    world.start("release").await
}

#[tokio::test(start_paused = true)]
async fn an_issue_is_opened_waited_for_and_closed_while_lanes_go_on_in_other_executions() {
    let server = Arc::new(Server::start(Jira::default()).await);
    // An approval of 90 minutes is 90 waits: more than one execution of a lane may have here.
    let options = Options {
        turns: 25,
        ..Options::default()
    };
    let world = world(&server, "Jira", options).await;
    let close = "connectorRef: tracker\nissueKey: <+execution.steps.ask.issue.key>\nfields:\n  - name: Comment\n    value: \"released by <+pipeline.triggeredBy.name>, was <+execution.steps.ask.issue.Status>\"\ntransitionTo:\n  status: Done\n  transitionName: \"\"\n";
    let steps = step("open", "JiraCreate", "5m", CREATE)
        + &approve("ask", "1d")
        + &step("close", "JiraUpdate", "5m", close);
    let run = release(&world, &steps).await;
    later(&world, &server, 90, "Done");
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    deploy Success
    deploy.steps.ask #0 Success
    deploy.steps.close #0 Success
    deploy.steps.open #0 Success
    ");
    let minutes = (run.ended_ms.expect("ended") - run.started_ms) / 60_000;
    assert_eq!(minutes, 90);
    assert_eq!(
        server.with(|jira| jira.comments.clone()),
        ["released by alex, was Done"]
    );
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_rejected_approval_and_one_that_nobody_decides_end_the_run() {
    for (status, timeout) in [("Canceled", "1d"), ("In Review", "30m")] {
        let server = Arc::new(Server::start(Jira::default()).await);
        let world = world(&server, "Jira", Options::default()).await;
        let steps = step("open", "JiraCreate", "5m", CREATE)
            + &approve("ask", timeout)
            + &script("after", "ok", "");
        let run = release(&world, &steps).await;
        later(&world, &server, 10, status);
        let run = world.finish(&run).await;
        let story = world.story(&run).await;
        match status {
            "Canceled" => insta::assert_snapshot!(story, @"
            run ApprovalRejected: Step ask: The rejection criteria hold: Status is `Canceled`.
            deploy ApprovalRejected: Step ask: The rejection criteria hold: Status is `Canceled`.
            deploy.steps.after #0 Skipped
            deploy.steps.ask #0 ApprovalRejected
            deploy.steps.open #0 Success
            "),
            _ => insta::assert_snapshot!(story, @"
            run Expired: Step ask: It did not end within its timeout of 30m.
            deploy Expired: Step ask: It did not end within its timeout of 30m.
            deploy.steps.after #0 Skipped
            deploy.steps.ask #0 Expired
            deploy.steps.open #0 Success
            "),
        }
        world.assert_clean(&run.id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_the_wait_at_once_and_nothing_is_asked_after_it() {
    let server = Arc::new(Server::start(Jira::default()).await);
    let world = world(&server, "Jira", Options::default()).await;
    let steps = step("open", "JiraCreate", "5m", CREATE) + &approve("ask", "1d");
    let run = release(&world, &steps).await;
    world.runs.clock.sleep(Duration::from_secs(330)).await;
    let waiting = world.store.list_nodes(&run, None).await.expect("nodes");
    assert!(
        waiting
            .iter()
            .any(|node| node.status == Status::ApprovalWaiting),
        "{waiting:?}"
    );
    abort_run(&world.runs, &run, &PrincipalId::new("sam"))
        .await
        .expect("it runs");
    let asked = server.asked().len();
    let run = world.finish(&run).await;
    let seconds = (run.ended_ms.expect("ended") - run.started_ms) / 1000;
    assert!((330..332).contains(&seconds), "{seconds}");
    world.runs.clock.sleep(Duration::from_secs(600)).await;
    assert_eq!(server.asked().len(), asked);
    insta::assert_snapshot!(world.story(&run).await, @"
    run Aborted: Step ask: It was stopped: the run was aborted by sam.
    deploy Aborted: Step ask: It was stopped: the run was aborted by sam.
    deploy.steps.ask #0 Aborted
    deploy.steps.open #0 Success
    ");
    world.assert_clean(&run.id).await;
}

fn custom(tries: u32) -> String {
    let spec = "shell: Bash\nsource:\n  type: Inline\n  spec:\n    script: tries=#\noutputVariables:\n  - name: tries\n    type: String\n    value: tries\nenvironmentVariables: []\nretryInterval: 1m\nscriptTimeout: 1m\n".to_owned()
        + &criteria("approvalCriteria", "tries", &format!("\"{tries}\""))
        + &criteria("rejectionCriteria", "tries", "\"99\"");
    step("ask", "CustomApproval", "1h", &spec)
}

#[tokio::test(start_paused = true)]
async fn a_script_is_asked_again_until_it_approves() {
    let world = World::new().await;
    let after = script(
        "after",
        "said=<+execution.steps.ask.output.outputVariables.tries>",
        "",
    );
    let run = release(&world, &(custom(3) + &after)).await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    deploy Success
    deploy.steps.after #0 Success
    deploy.steps.ask #0 Success
    ");
    let deeds = world.deeds.list();
    assert_eq!(
        deeds.len(),
        4,
        "three times the approval, then the script: {deeds:?}"
    );
    assert!(deeds[2].ends_with(".ask.0.turn-2"), "{deeds:?}");
    world.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_script_is_asked_as_often_as_needed_however_often_a_function_dies() {
    // Before each second request, and after each of the others.
    for (first, after) in [(1, false), (2, true)] {
        for request in (first..).step_by(2) {
            let world = World::with(Options {
                in_memory: true,
                ..Options::default()
            })
            .await;
            world.crash.arm(request, after);
            let run = release(&world, &custom(2)).await;
            let run = world.finish(&run).await;
            assert_eq!(
                run.status,
                Status::Success,
                "died at request {request}, after: {after}"
            );
            assert_eq!(
                world.deeds.list().len(),
                2,
                "died at request {request}, after: {after}"
            );
            world.assert_clean(&run.id).await;
            if world.crash.is_armed() {
                assert!(request > 20, "{request}");
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_waits_for_its_window() {
    let window = ("2026-01-01 02:15:00", "2026-01-01 04:00:00");
    let server = Arc::new(Server::start(ServiceNow::with_change("-1", window)).await);
    let world = world(&server, "ServiceNow", Options::default()).await;
    let spec = "connectorRef: tracker\nticketType: change_request\nticketNumber: CHG0030001\nretryInterval: 10m\nchangeWindow:\n  startField: start_date\n  endField: end_date\n".to_owned()
        + &criteria("approvalCriteria", "state", "Implement");
    let steps = step("ask", "ServiceNowApproval", "1d", &spec) + &script("deploy", "ok", "");
    let run = release(&world, &steps).await;
    let run = world.finish(&run).await;
    insta::assert_snapshot!(world.story(&run).await, @"
    run Success
    deploy Success
    deploy.steps.ask #0 Success
    deploy.steps.deploy #0 Success
    ");
    let minutes = (run.ended_ms.expect("ended") - run.started_ms) / 60_000;
    assert_eq!(minutes, 135);
    assert_eq!(
        looks(&server, "/api/now/table/change_request"),
        15,
        "every ten minutes, and when the window begins"
    );
    world.assert_clean(&run.id).await;
}
