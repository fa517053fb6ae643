//! What was said about a run, at the nodes that it was about.

use serde_json::{Value, json};
use slipway_model::id::{NodeId, PrincipalId, RunId, StageId};
use slipway_model::status::Status;
use slipway_store::record::{SignalRecord, StageSummary};

use super::execution::{ANNOUNCE, ROLLOUT, node};
use super::{Api, SCOPE};

fn said(run: &str, node: &str, kind: &str, says: &str, at_ms: i64) -> SignalRecord {
    SignalRecord {
        run: RunId::new(run),
        node: NodeId::new(node),
        attempt: 0,
        kind: kind.to_owned(),
        says: says.to_owned(),
        who: PrincipalId::new("sam"),
        at_ms,
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_show_what_was_said_about_them() {
    let api = Api::new().await;
    let run = api.run_golden().await;
    let stage = StageSummary {
        id: StageId::new("deploy"),
        name: "deploy".to_owned(),
        stage_type: "Deployment".to_owned(),
        status: Status::Running,
        started_ms: Some(1_000),
        ended_ms: None,
        failure: None,
        rolled_back: false,
        undoes_run: false,
        taken_apart: false,
        undo: None,
    };
    let id = RunId::new(&*run);
    let put = api.store.put_stage(&id, &stage);
    put.await.expect("a stored stage");
    let stopped = node(&run, ANNOUNCE, "ShellScript", Status::Failed);
    let aborted = node(&run, ROLLOUT, "EcsRollingDeploy", Status::Aborted);
    for record in [&stopped, &aborted] {
        api.store.start_node(record).await.expect("a stored node");
    }
    let words = [
        said(&run, "", "pause", "pause", 500),
        said(&run, ANNOUNCE, "stop", "fail", 1_500),
        said(&run, ROLLOUT, "answer", "MarkAsSuccess", 1_600),
        said(&run, "stages.deploy", "abort-stage", "abort", 1_700),
        // Nobody said that.
        said(&run, ANNOUNCE, "ended", "", 2_000),
    ];
    for word in &words {
        api.store.put_signal(word).await.expect("a stored word");
    }
    let path =
        format!("/pipeline/api/pipelines/execution/v2/{run}?{SCOPE}&renderFullBottomGraph=true");
    let graph = api.get(&path).await.data()["executionGraph"].clone();
    let told = |id: &str| {
        let listed = graph["nodeMap"][id]["interruptHistories"].as_array();
        let listed = listed.unwrap_or_else(|| panic!("{id}"));
        let each = listed.iter().map(|one| {
            let by = &one["interruptConfig"]["issuedBy"]["manualIssuer"]["identifier"];
            assert_eq!(by, "sam", "{one}");
            assert!(one["interruptId"].is_string(), "{one}");
            format!("{} {}", one["interruptType"], one["tookEffectAt"])
        });
        each.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(told("pipeline"), "\"PAUSE_ALL\" 500");
    assert_eq!(told("stages.deploy"), "\"ABORT_ALL\" 1700");
    assert_eq!(told(ANNOUNCE), "\"USER_MARKED_FAILURE\" 2000");
    assert_eq!(
        told(ROLLOUT),
        "\"MARK_AS_SUCCESS\" 1600, \"ABORT_ALL\" 2000"
    );
    assert_eq!(told("stages"), "");

    let path = |more: &str| format!("/pipeline/api/pipelines/getExecutionNode?{SCOPE}{more}");
    let one = path(&format!("&planExecutionId={run}&nodeExecutionId={ROLLOUT}"));
    let one: Value = api.get(&one).await.data();
    assert_eq!(one, graph["nodeMap"][ROLLOUT]);
    assert_eq!(
        one["interruptHistories"][0]["interruptType"],
        json!("MARK_AS_SUCCESS")
    );
    let unnamed = api.get(&path(&format!("&nodeExecutionId={ROLLOUT}"))).await;
    let (status, _, message) = unnamed.refusal();
    assert!(
        status == 400 && message.contains("planExecutionId"),
        "{message}"
    );
    let unknown = path(&format!("&planExecutionId={run}&nodeExecutionId=none"));
    assert_eq!(api.get(&unknown).await.refusal().0, 404);
}
