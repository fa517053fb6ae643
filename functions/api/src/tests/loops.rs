//! Runs whose stages loop over what the run brings forth, as the clients see them.

use serde_json::json;
use slipway_engine::runs::spec_of_turns;
use slipway_model::id::{EntityId, NodeId, RunId, StageId};
use slipway_model::status::Status;
use slipway_plan::Iteration;
use slipway_plan::unroll::RunTurn;
use slipway_store::record::{NodeRecord, StageSummary};

use super::execution::node;
use super::{Api, SCOPE};

const PIPELINE: &str = "pipeline:
  identifier: loops
  name: Loops
  orgIdentifier: default
  projectIdentifier: default
  stages:
    - stage: {identifier: a, name: A, type: Custom, spec: {execution: {steps: [{step: {identifier: w, name: w, type: Wait, timeout: 1d, spec: {duration: 1s}}}]}}}
    - stage:
        identifier: each
        name: Each
        type: Custom
        strategy: {repeat: {items: <+pipeline.stages.a.output.list>}}
        spec: {execution: {steps: [{step: {identifier: w, name: w, type: Wait, timeout: 1d, spec: {duration: 1s}}}]}}
";

fn turn(index: u32) -> RunTurn {
    RunTurn {
        name: format!("Each of {index}"),
        iteration: Iteration {
            of: EntityId::new("each"),
            index,
            total: 2,
            concurrency: 0,
            matrix: indexmap::IndexMap::new(),
            item: Some(index.into()),
            partition: None,
        },
    }
}

fn summary(id: &str, name: &str, status: Status) -> StageSummary {
    StageSummary {
        id: StageId::new(id),
        name: name.to_owned(),
        stage_type: "Custom".to_owned(),
        status,
        started_ms: None,
        ended_ms: None,
        failure: None,
        rolled_back: false,
        undoes_run: false,
        taken_apart: id == "each",
        undo: None,
    }
}

#[tokio::test(start_paused = true)]
async fn turns_take_the_place_of_the_stage_that_loops() {
    let api = Api::new().await;
    let path = format!("/pipeline/api/pipelines/v2?{SCOPE}");
    api.call("POST", &path, "application/yaml", PIPELINE)
        .await
        .data();
    let path = format!("/pipeline/api/pipeline/execute/loops?{SCOPE}");
    let started = api.call("POST", &path, "application/yaml", "").await.data();
    let run = started["planExecution"]["uuid"].as_str().expect("an id");
    let shown = async || {
        let path = format!("/pipeline/api/pipelines/execution/v2/{run}?{SCOPE}");
        let summary = api.get(&path).await.data()["pipelineExecutionSummary"].clone();
        let layout = summary["layoutNodeMap"].as_object().expect("a layout");
        let line = |(id, node): (&String, &serde_json::Value)| {
            let text = |key: &str| node[key].as_str().unwrap_or_default().to_owned();
            format!(
                "{id} [{}] {} {}",
                text("nodeGroup"),
                text("name"),
                text("status")
            )
        };
        let mut lines: Vec<String> = layout.iter().map(line).collect();
        lines.sort();
        format!("{}\n{}", lines.join("\n"), summary["totalStagesCount"])
    };
    insta::assert_snapshot!(shown().await, @"
    a [STAGE] A NotStarted
    each [STAGE] Each NotStarted
    2
    ");

    let id = RunId::new(run);
    let record = NodeRecord {
        id: NodeId::new("stages.each"),
        stage: StageId::new("each"),
        spec: spec_of_turns(&[turn(0), turn(1)]),
        ..node(run, "stages.each", "STAGE", Status::Success)
    };
    api.store
        .record_nodes(&[], &[record])
        .await
        .expect("the turns");
    for stage in [
        summary("each", "Each", Status::NotStarted),
        summary("each_0", "Each of 0", Status::Running),
    ] {
        api.store.put_stage(&id, &stage).await.expect("a stage");
    }
    insta::assert_snapshot!(shown().await, @"
    a [STAGE] A NotStarted
    each_0 [STAGE] Each of 0 Running
    each_1 [STAGE] Each of 1 NotStarted
    parallel1 [PARALLEL] parallel1 Running
    3
    ");
    // Lists, which are made without plans, do not show it twice either.
    let path = format!("/pipeline/api/pipelines/execution/summary?{SCOPE}");
    let body = json!({"filterType": "PipelineExecution"}).to_string();
    let list = api
        .call("POST", &path, "application/json", &body)
        .await
        .data();
    let layout = &list["content"][0]["layoutNodeMap"];
    assert!(layout["each"].is_null(), "{layout}");
    assert_eq!(layout["each_0"]["status"], "Running");
}
