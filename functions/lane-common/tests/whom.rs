//! Who is asked, whom a run waits for, and what nobody was told: what somebody sees who looks at a run.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

use serde_json::{Value, json};
use slipway_engine::signal::{Word, say};
use slipway_engine::undo::{UndoRun, Which};
use slipway_model::Kind;
use slipway_model::id::{EntityId, PrincipalId, RunId};
use slipway_model::status::Status;
use slipway_store::Page;
use slipway_world::receiver::Receiver;
use slipway_world::yaml::{
    LEADS, ROLL_BACK, beside, on_failure, pipeline, script, stage, wait, webhook, with_rules,
};
use slipway_world::{World, minutes};

/// The detail of a run, as the API answers it.
async fn detail(world: &World, run: &RunId) -> Value {
    let (api, token) = (world.api().await, world.token("sam").await);
    let path = format!(
        "/pipeline/api/pipelines/execution/v2/{run}?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop\
         &renderFullBottomGraph=true"
    );
    let (status, answer) = api.call(&token, "GET", &path, None).await;
    assert_eq!(status, 200, "{answer}");
    answer["data"].clone()
}

/// What the run warns of.
async fn warnings(world: &World, run: &RunId) -> Vec<String> {
    let detail = detail(world, run).await;
    let warnings = detail["pipelineExecutionSummary"]["warnings"].as_array();
    let warnings = warnings.expect("a list").iter();
    let texts = warnings.map(|warning| warning["message"].as_str().unwrap_or_default());
    texts.map(str::to_owned).collect()
}

/// A stage that runs another pipeline.
fn chained(id: &str, pipeline: &str) -> String {
    format!(
        "    - stage:\n        name: {id}\n        identifier: {id}\n        type: Pipeline\n        spec:\n          \
         org: default\n          project: shop\n          pipeline: {pipeline}\n"
    )
}

fn approval(groups: &str) -> String {
    format!(
        "- step:\n    name: ask\n    identifier: ask\n    type: HarnessApproval\n    timeout: 1d\n    spec:\n      \
         includePipelineExecutionHistory: true\n      approvers: {{minimumCount: 1, disallowPipelineExecutor: false, userGroups: [{groups}]}}\n"
    )
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_asks_nobody_fails_and_says_whom_it_misses() {
    for (groups, missing) in [
        ("gone", "there is no user group `gone`"),
        (
            "gone, account.away",
            "there are no user groups `gone`, `account.away`",
        ),
    ] {
        let world = World::new().await;
        let steps = approval(groups);
        world
            .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
            .await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        assert_eq!(run.status, Status::Failed);
        let failure = run.failure.as_ref().expect("a reason");
        let told = failure.message.replacen("Step ask: ", "", 1);
        let expected = format!(
            "Approval ask asks nobody: {missing}. Create the user group in the scope that the reference names (`slipway \
             apply` a userGroup, or POST /ng/api/user-groups), or name another in approvers.userGroups."
        );
        assert_eq!(told, expected);
        assert!(run.ended_ms.expect("ended") - run.started_ms < 5_000);
        world.assert_clean(&run.id).await;
    }
}

/// More people than its groups have, or than may answer: nobody waits for them.
#[tokio::test(start_paused = true)]
async fn an_approval_that_too_few_can_give_fails() {
    for (wanted, barred, status) in [
        ("5, disallowPipelineExecutor: false", "", Status::Failed),
        ("4, disallowPipelineExecutor: true", "sam", Status::Failed),
        ("3, disallowPipelineExecutor: true", "eve", Status::Expired),
        ("4, disallowPipelineExecutor: false", "", Status::Expired),
    ] {
        let world = World::new().await;
        world.apply(LEADS).await;
        let barring = format!("{wanted}, disallowedUserEmails: [{barred}]");
        let steps = approval("leads").replacen("1, disallowPipelineExecutor: false", &barring, 1);
        world
            .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
            .await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        assert_eq!(run.status, status, "{wanted} {barred}: {:?}", run.failure);
        let why = run.failure.map_or_else(String::new, |why| why.message);
        assert_eq!(
            why.contains("may answer"),
            status == Status::Failed,
            "{why}"
        );
        world.assert_clean(&run.id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_asks_the_groups_that_are_there_and_warns_of_the_others() {
    for groups in ["leads", "leads, gone", "_project_all_users"] {
        let world = World::new().await;
        world.apply(LEADS).await;
        let steps = approval(groups).replace("timeout: 1d", "timeout: 1h");
        world
            .apply(&pipeline(&[stage("deploy", &steps, "", "")]))
            .await;
        let run = world.start("release").await;
        minutes(&world, 1).await;
        let told = warnings(&world, &run).await;
        match groups.contains("gone") {
            true => assert_eq!(
                told,
                ["ask asks user groups that are not there: `gone`; nobody of them can answer"]
            ),
            false => assert_eq!(told, [""; 0]),
        }
        // A group that goes later ends no wait, whatever wakes it.
        let (kind, leads) = (Kind::UserGroup.key(), EntityId::new("leads"));
        let scope = slipway_world::scope();
        let deleted = world.store.delete_entity(&scope, kind, None, &leads, None);
        deleted.await.expect("it was there");
        let who = PrincipalId::new("sam");
        let said = say(&world.runs, &run, &who, &Word::Pause).await;
        said.expect("it runs");
        let run = world.finish(&run).await;
        assert_eq!(run.status, Status::Expired);
        assert_eq!(run.ended_ms.expect("ended") - run.started_ms, 3_600_000);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_shows_what_the_run_of_its_stage_waits_for() {
    let world = World::new().await;
    world.apply(LEADS).await;
    let steps = approval("leads").replace("timeout: 1d", "timeout: 2h");
    let inner = pipeline(&[stage("gate", &steps, "", "")]).replace("release", "inner");
    for yaml in [inner, pipeline(&[chained("run", "inner")])] {
        world.apply(&yaml).await;
    }
    let run = world.start("release").await;
    minutes(&world, 2).await;
    let (scope, id) = (slipway_world::scope(), EntityId::new("inner"));
    let found = world.store.list_runs(&scope, Some(&id), Page::first(1));
    let inner = found.await.expect("runs").items[0].id.clone();
    let detail = detail(&world, &run).await;
    let nodes = detail["executionGraph"]["nodeMap"].as_object();
    let nodes = nodes.expect("a graph").values();
    let children = nodes.clone().map(|node| &node["stepDetails"]);
    let children: Vec<&Value> = children.filter(|details| **details != json!({})).collect();
    let child = json!({"planExecutionId": inner.as_str(), "orgId": "default", "projectId": "shop"});
    assert_eq!(children, [&json!({"childPipelineExecutionDetails": child})]);
    let told: Vec<&Value> = nodes
        .filter(|node| node["waitsFor"].is_array())
        .map(|node| &node["waitsFor"][0])
        .collect();
    let [told] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!(told["type"], "Pipeline");
    assert_eq!(
        told["message"],
        format!(
            "run {inner} (inner), ApprovalWaiting: stages.gate.spec.execution.steps.ask (ApprovalWaiting)"
        )
    );
    assert_eq!(told["runs"][0]["planExecutionId"], inner.as_str());
    assert_eq!(told["runs"][0]["status"], "ApprovalWaiting");
    let run = world.finish(&run).await;
    assert!(!run.status.is_good());
    assert_eq!(world.engine.counters().open, 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_warns_of_notices_that_nobody_got() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let rules = [
        ("{type: PipelineStart}", webhook(&receiver.url("ok"))),
        // There is no such group, and nobody listens at the third address.
        (
            "{type: PipelineEnd}",
            "{type: Slack, spec: {webhookUrl: '', userGroups: [gone]}}".to_owned(),
        ),
        ("{type: PipelineSuccess}", webhook("http://127.0.0.1:1/")),
    ];
    let steps = script("a", "ok", "") + &wait("w", "1m");
    world
        .apply(&with_rules(&[stage("build", &steps, "", "")], &rules))
        .await;
    let run = world.start("release").await;
    world.finish(&run).await;
    minutes(&world, 10).await;
    let early = warnings(&world, &run).await;
    assert_eq!(
        early,
        [
            "Nobody was told of PipelineEnd: notification rule `rule1`: there is no user group `gone`"
        ]
    );
    // The machine tries for about a day.
    minutes(&world, 60 * 48).await;
    let late = warnings(&world, &run).await;
    assert_eq!(late.len(), 2, "{late:?}");
    assert!(
        late[1].starts_with("Nobody was told of PipelineSuccess: notification rule `rule2`: "),
        "{late:?}"
    );
    assert_eq!(receiver.events("ok"), ["PipelineStart"]);
    world.assert_clean(&run).await;
}

/// What never begins does not make a run that has ended look as if something still went on.
#[tokio::test(start_paused = true)]
async fn an_ended_run_shows_nothing_that_runs() {
    let ignored = on_failure("type: Ignore");
    for (undo, section, told) in [
        (
            script("first", "fail", "") + &script("second", "ok", ""),
            "Failed",
            "rolling back failed",
        ),
        (
            beside(&[script("first", "fail", ""), script("other", "ok", "")])
                + &script("second", "ok", ""),
            "Failed",
            "rolling back failed",
        ),
        (
            script("first", "fail", &ignored) + &script("second", "ok", ""),
            "IgnoreFailed",
            "rollback step first failed and that was ignored",
        ),
        (script("first", "ok", ""), "Success", "rolled back cleanly"),
    ] {
        let world = World::new().await;
        let steps = script("a", "fail", "");
        world
            .apply(&pipeline(&[stage("deploy", &steps, &undo, ROLL_BACK)]))
            .await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        let detail = detail(&world, &run.id).await;
        let why = detail["pipelineExecutionSummary"]["failureInfo"]["message"].as_str();
        assert!(why.is_some_and(|why| why.contains(told)), "{why:?}");
        let nodes = &detail["executionGraph"]["nodeMap"];
        let rollback = &nodes["stages.deploy.spec.execution.rollbackSteps"];
        assert_eq!(rollback["status"], section, "{told}");
        let nodes = nodes.as_object().expect("nodes").values();
        let runs: Vec<_> = nodes.filter(|node| node["status"] == "Running").collect();
        assert!(runs.is_empty(), "{runs:?}");
    }
}

/// The run of another pipeline is rolled back by itself, and whoever reads the end of the first is told so.
#[tokio::test(start_paused = true)]
async fn what_a_chained_pipeline_deployed_is_told_to_stay() {
    for fails in ["fail", "ok"] {
        let world = World::new().await;
        let inner = pipeline(&[stage("ship", &script("a", "ok", ""), "", "")]);
        world.apply(&inner.replace("release", "inner")).await;
        let back = on_failure("type: PipelineRollback");
        let last = stage("last", &script("b", fails, ""), "", &back);
        world
            .apply(&pipeline(&[chained("run", "inner"), last]))
            .await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        if fails == "ok" {
            let undo = UndoRun {
                run: run.id.clone(),
                stages: Which::All,
                principal: PrincipalId::new("sam"),
                notes: String::new(),
            };
            let refused = world.undo(undo).await.expect_err("nothing to roll back");
            let told = refused.to_string();
            assert!(told.contains("stage `run` ran another pipeline"), "{told}");
            continue;
        }
        let left = run.failure.and_then(|failure| failure.left_behind);
        let left = left.expect("what stays");
        assert!(
            left.contains("What other pipelines deployed for this run stays: stage run"),
            "{left}"
        );
    }
}
