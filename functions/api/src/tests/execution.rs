//! Runs as the clients draw and follow them.

use serde_json::{Value, json};
use slipway_model::id::{EntityId, LaneId, NodeId, RunId, StageId};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_store::record::{NodeRecord, StageSummary, UnitRecord};

use super::{Api, SCOPE};

pub(super) const ANNOUNCE: &str = "stages.deploy.spec.execution.steps.announce";
pub(super) const ROLLOUT: &str = "stages.deploy.spec.execution.steps.rollout";
const ROLLBACK: &str = "stages.deploy.spec.execution.rollbackSteps.rollback";

pub(super) fn node(run: &str, id: &str, step_type: &str, status: Status) -> NodeRecord {
    let identifier = id.rsplit('.').next().unwrap_or(id);
    NodeRecord {
        run: RunId::new(run),
        id: NodeId::new(id),
        stage: StageId::new("deploy"),
        lane: LaneId::new("deploy/steps"),
        attempt: 0,
        identifier: EntityId::new(identifier),
        name: identifier.to_owned(),
        node_type: step_type.to_owned(),
        status,
        started_ms: 1_000,
        ended_ms: status.is_final().then_some(2_000),
        failure: None,
        spec: json!({"script": "echo \u{FDD0}account.token\u{FDD1}"}),
        outputs: Value::Null,
        progress: Value::Null,
        units: Vec::new(),
        delegate: None,
        asked_ms: None,
        round: 0,
        base: 0,
        refused: Vec::new(),
    }
}

pub(super) fn unit(name: &str, status: &str) -> UnitRecord {
    UnitRecord {
        name: name.to_owned(),
        status: status.to_owned(),
        started_ms: 1_000,
        ended_ms: None,
    }
}

async fn stage(api: &Api, run: &str, status: Status, failure: Option<Failure>) {
    let summary = StageSummary {
        id: StageId::new("deploy"),
        name: "deploy".to_owned(),
        stage_type: "Deployment".to_owned(),
        status,
        started_ms: Some(1_000),
        ended_ms: status.is_final().then_some(9_000),
        failure,
        rolled_back: false,
        undoes_run: false,
        taken_apart: false,
        undo: None,
    };
    api.store
        .put_stage(&RunId::new(run), &summary)
        .await
        .expect("a stored stage");
}

async fn detail(api: &Api, run: &str) -> Value {
    let path =
        format!("/pipeline/api/pipelines/execution/v2/{run}?{SCOPE}&renderFullBottomGraph=true");
    api.get(&path).await.data()
}

/// `depth name [type] status`, children and followers as the official CLI walks them.
fn tree(graph: &Value) -> String {
    fn walk(graph: &Value, id: &str, depth: usize, out: &mut String) {
        let node = &graph["nodeMap"][id];
        check_types(node);
        let text = |key: &str| node[key].as_str().unwrap_or("?").to_owned();
        let line = format!(
            "{} [{}] {}",
            text("identifier"),
            text("stepType"),
            text("status")
        );
        out.push_str(&format!("{}{line}\n", "  ".repeat(depth)));
        let edges = &graph["nodeAdjacencyListMap"][id];
        for (key, deeper) in [("children", 1), ("nextIds", 0)] {
            let ids = edges[key]
                .as_array()
                .unwrap_or_else(|| panic!("{key} of {id}"));
            for next in ids.iter().filter_map(Value::as_str) {
                walk(graph, next, depth + deeper, out);
            }
        }
    }
    let mut out = String::new();
    walk(
        graph,
        graph["rootNodeId"].as_str().expect("a root"),
        0,
        &mut out,
    );
    out
}

/// The CLI decodes strictly: one wrong type fails the whole call.
fn check_types(node: &Value) {
    let uuid = &node["uuid"];
    for key in [
        "uuid",
        "identifier",
        "name",
        "baseFqn",
        "stepType",
        "status",
        "logBaseKey",
    ] {
        assert!(node[key].is_string(), "{key} of {uuid}");
    }
    for key in ["outcomes", "stepDetails", "stepParameters"] {
        assert!(node[key].is_object(), "{key} of {uuid}");
    }
    for key in [
        "executableResponses",
        "unitProgresses",
        "delegateInfoList",
        "interruptHistories",
    ] {
        assert!(node[key].is_array(), "{key} of {uuid}");
    }
    for key in ["startTs", "endTs"] {
        assert!(node[key].is_i64() || node[key].is_null(), "{key} of {uuid}");
    }
    assert!(
        node["failureInfo"].is_object() || node["failureInfo"].is_null(),
        "{uuid}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_shows_what_has_not_begun_what_goes_on_and_what_failed() {
    let api = Api::new().await;
    let run = api.run_golden().await;
    insta::assert_snapshot!(tree(&detail(&api, &run).await["executionGraph"]), @r"
    pipeline [PIPELINE_SECTION] NotStarted
      stages [STAGES_STEP] NotStarted
        deploy [DEPLOYMENT_STAGE_STEP] NotStarted
          execution [NG_EXECUTION] NotStarted
            announce [ShellScript] NotStarted
            rollout [EcsRollingDeploy] NotStarted
    ");

    stage(&api, &run, Status::Running, None).await;
    let mut announce = node(&run, ANNOUNCE, "ShellScript", Status::Running);
    announce.units.push(unit("Execute", "RUNNING"));
    announce.delegate = Some("runner-1".to_owned());
    api.store
        .start_node(&announce)
        .await
        .expect("a stored node");
    let graph = detail(&api, &run).await["executionGraph"].clone();
    let shown = &graph["nodeMap"][ANNOUNCE];
    let base = format!("acme/pipeline/deploy_shop/1/-{run}/deploy/announce");
    assert_eq!(shown["status"], "Running");
    assert_eq!(shown["logBaseKey"], base);
    let task = &shown["executableResponses"][0]["task"];
    assert_eq!(
        task["logKeys"],
        json!([format!("{base}-commandUnit:Execute")])
    );
    assert_eq!(task["units"], json!(["Execute"]));
    assert_eq!(shown["unitProgresses"][0]["startTime"], "1000");
    assert_eq!(shown["delegateInfoList"][0]["name"], "runner-1");
    assert_eq!(shown["baseFqn"], format!("pipeline.{ANNOUNCE}"));
    // A secret is shown as the expression that names it.
    let script = &shown["stepParameters"]["spec"]["script"];
    assert_eq!(script, "echo <+secrets.getValue(\"account.token\")>");
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_tells_why_and_shows_its_rollback() {
    let api = Api::new().await;
    let run = api.run_golden().await;
    let failure = Failure {
        error: ErrorType::Timeout,
        message: "The image cannot be pulled.".to_owned(),
        left_behind: Some("task definition shop:3".to_owned()),
    };
    let mut rollout = node(&run, ROLLOUT, "EcsRollingDeploy", Status::Failed);
    rollout.failure = Some(failure.clone());
    let steps = [
        node(&run, ANNOUNCE, "ShellScript", Status::Success),
        rollout,
        node(&run, ROLLBACK, "EcsRollingRollback", Status::Success),
    ];
    for step in steps {
        let begun = NodeRecord {
            status: Status::Running,
            ended_ms: None,
            failure: None,
            ..step.clone()
        };
        api.store.start_node(&begun).await.expect("a stored node");
        let end = slipway_store::NodeEnd {
            run: step.run,
            node: step.id,
            attempt: 0,
            status: step.status,
            failure: step.failure,
            outputs: json!({"output": {"k": 1}}),
            refused: Vec::new(),
            units: Vec::new(),
            progress: None,
        };
        api.store.end_node(&end).await.expect("a stored end");
    }
    stage(&api, &run, Status::Failed, Some(failure.clone())).await;
    let id = RunId::new(&*run);
    let from = [Status::NotStarted, Status::Running];
    api.store
        .set_run_status(&id, &from, Status::Failed, Some(&failure))
        .await
        .expect("a status");

    let data = detail(&api, &run).await;
    insta::assert_snapshot!(tree(&data["executionGraph"]), @r"
    pipeline [PIPELINE_SECTION] Failed
      stages [STAGES_STEP] Failed
        deploy [DEPLOYMENT_STAGE_STEP] Failed
          execution [NG_EXECUTION] Failed
            announce [ShellScript] Success
            rollout [EcsRollingDeploy] Failed
          rollbackSteps [NG_EXECUTION] Success
            rollback [EcsRollingRollback] Success
    ");
    let info = &data["executionGraph"]["nodeMap"][ROLLOUT]["failureInfo"];
    assert_eq!(
        info["message"],
        "The image cannot be pulled. Left behind: task definition shop:3"
    );
    assert_eq!(info["failureTypeList"], json!(["TIMEOUT_ERROR"]));
    let summary = &data["pipelineExecutionSummary"];
    assert_eq!(
        (summary["status"].as_str(), summary["runSequence"].as_u64()),
        (Some("Failed"), Some(1))
    );
    assert_eq!(
        (
            summary["failedStagesCount"].as_u64(),
            summary["totalStagesCount"].as_u64()
        ),
        (Some(1), Some(1))
    );
    assert_eq!(summary["startingNodeId"], "deploy");
    let layout = &summary["layoutNodeMap"]["deploy"];
    assert_eq!(
        (layout["nodeGroup"].as_str(), layout["status"].as_str()),
        (Some("STAGE"), Some("Failed"))
    );
    assert_eq!(
        layout["edgeLayoutList"],
        json!({"currentNodeChildren": [], "nextIds": []})
    );
    assert!(summary["endTs"].is_i64());
    // Without renderFullBottomGraph the stage to look at is the root.
    let part = api
        .get(&format!(
            "/pipeline/api/pipelines/execution/v2/{run}?{SCOPE}"
        ))
        .await
        .data();
    assert_eq!(part["executionGraph"]["rootNodeId"], "stages.deploy");
}

#[tokio::test(start_paused = true)]
async fn runs_are_listed_newest_first_and_filtered() {
    let api = Api::new().await;
    let first = api.run_golden().await;
    api.clock.sleep(std::time::Duration::from_secs(1)).await;
    let second = api.run_golden().await;
    let id = RunId::new(&*first);
    let from = [Status::NotStarted, Status::Running];
    api.store
        .set_run_status(&id, &from, Status::Success, None)
        .await
        .expect("a status");
    let abort =
        format!("/pipeline/api/pipeline/execute/interrupt/{first}?{SCOPE}&interruptType=AbortAll");
    let (status, _, message) = api.call("PUT", &abort, "", "").await.refusal();
    assert!(
        status == 409 && message.contains("has ended (Success)"),
        "{message}"
    );
    let path = format!("/pipeline/api/pipelines/execution/summary?{SCOPE}");
    let body = json!({"filterType": "PipelineExecution", "orgIdentifier": "default", "projectIdentifier": "default"});
    let all = api
        .post(&format!("{path}&page=0&size=20"), &body)
        .await
        .data();
    assert_eq!(
        (all["totalElements"].as_u64(), all["totalItems"].as_u64()),
        (Some(2), Some(2))
    );
    assert_eq!(all["content"][0]["planExecutionId"], second);
    assert_eq!(
        all["content"][0]["executionTriggerInfo"]["triggeredBy"]["extraInfo"]["email"],
        "jo@example.com"
    );
    let first_page = api
        .post(&format!("{path}&page=0&size=1"), &body)
        .await
        .data();
    let counts = (
        first_page["totalElements"].as_u64(),
        first_page["pageItemCount"].as_u64(),
    );
    assert_eq!(counts, (Some(2), Some(1)));
    let last_page = api
        .post(&format!("{path}&page=1&size=1"), &body)
        .await
        .data();
    assert_eq!(last_page["content"][0]["planExecutionId"], first);
    let good = api
        .post(&format!("{path}&status=Success&status=IgnoreFailed"), &body)
        .await
        .data();
    assert_eq!(
        (
            good["totalElements"].as_u64(),
            &good["content"][0]["planExecutionId"]
        ),
        (Some(1), &json!(first))
    );
    let none = api
        .post(&format!("{path}&pipelineIdentifier=other"), &body)
        .await
        .data();
    assert_eq!(
        (none["empty"].as_bool(), none["totalElements"].as_u64()),
        (Some(true), Some(0))
    );
    let began = all["content"][1]["startTs"].as_i64().expect("a number");
    for (query, body, expected) in [
        (
            "",
            json!({"timeRange": {"startTime": 0, "endTime": began}}),
            1,
        ),
        (
            "",
            json!({"timeRange": {"startTime": began + 1, "endTime": null}}),
            1,
        ),
        (
            "",
            json!({"timeRange": {"startTime": "0", "endTime": 1}}),
            0,
        ),
        ("", json!({"pipelineName": "DEPLOY"}), 2),
        ("", json!({"pipelineName": "other"}), 0),
        ("", json!({"triggerTypes": ["MANUAL", "WEBHOOK"]}), 2),
        ("", json!({"triggerTypes": ["WEBHOOK"]}), 0),
        ("", json!({"triggerIdentifiers": ["push"]}), 0),
        (
            "",
            json!({"pipelineTags": [{"key": "nobody", "value": "has"}]}),
            0,
        ),
        (
            "",
            json!({"moduleProperties": {"cd": {"serviceIdentifiers": []}}}),
            2,
        ),
        ("&module=CD&sort=startTs,DESC", json!({}), 2),
        ("&module=ci", json!({}), 0),
    ] {
        let kept = api.post(&format!("{path}{query}"), &body).await.data();
        assert_eq!(
            kept["totalElements"].as_u64(),
            Some(expected),
            "{query} {body}"
        );
    }
    for (query, body, why) in [
        ("&status=Sucess", json!({}), "did you mean Success?"),
        ("", json!({"status": ["success"]}), "did you mean Success?"),
        ("&sort=startTs,ASC", json!({}), "newest first"),
        ("&filterIdentifier=mine", json!({}), "saved filters"),
        (
            "",
            json!({"moduleProperties": {"cd": {"serviceIdentifiers": ["shop"]}}}),
            "cannot be filtered by it",
        ),
        (
            "",
            json!({"timeRange": {"startTime": "monday"}}),
            "timeRange.startTime",
        ),
        ("", json!({"pipelineTags": "team"}), "list of {key, value}"),
    ] {
        let (status, _, message) = api.post(&format!("{path}{query}"), &body).await.refusal();
        assert!(
            status == 400 && message.contains(why),
            "{query} {body}: {message}"
        );
    }
    let recent = api
        .get(&format!(
            "/pipeline/api/pipelines/summary/deploy_shop?{SCOPE}"
        ))
        .await
        .data();
    assert_eq!(recent["executionSummaryInfo"]["lastExecutionId"], second);
    let inputs = api
        .get(&format!(
            "/pipeline/api/pipelines/execution/{first}/inputsetV2?{SCOPE}"
        ))
        .await
        .data();
    assert!(
        inputs["inputSetYaml"]
            .as_str()
            .is_some_and(|y| y.contains("value: \"1.0\""))
    );
    assert!(
        inputs["resolvedYaml"]
            .as_str()
            .is_some_and(|y| y.contains("EcsRollingDeploy"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_not_there_or_elsewhere_is_not_found() {
    let api = Api::new().await;
    let run = api.run_golden().await;
    let path = "/pipeline/api/pipelines/execution/v2";
    for wrong in [
        format!("{path}/nothing?{SCOPE}"),
        format!("{path}/..%2F..%2Fx?{SCOPE}"),
        format!("{path}/{run}?orgIdentifier=default&projectIdentifier=other"),
    ] {
        let (status, code, _) = api.get(&wrong).await.refusal();
        assert_eq!(
            (status, code.as_str()),
            (404, "RESOURCE_NOT_FOUND_EXCEPTION"),
            "{wrong}"
        );
    }
}

/// The turns of a loop over what the run brings forth are not known before it begins.
#[tokio::test(start_paused = true)]
async fn a_loop_that_has_not_begun_is_one_node_and_no_child_of_itself() {
    let api = Api::new().await;
    let step = |id: &str, more: &str| {
        format!(
            "              - step:\n                  name: {id}\n                  identifier: {id}\n                  type: Wait\n                  timeout: 1h\n{more}                  spec:\n                    duration: 1s\n"
        )
    };
    let times = "                  strategy:\n                    repeat:\n                      times: <+execution.steps.first.output.outputVariables.word>\n";
    let yaml = format!(
        "pipeline:\n  name: looped\n  identifier: looped\n  orgIdentifier: default\n  projectIdentifier: default\n  stages:\n    - stage:\n        name: deploy\n        identifier: deploy\n        type: Custom\n        spec:\n          execution:\n            steps:\n{}{}{}",
        step("first", ""),
        step("each", times),
        step("last", "")
    );
    let body = json!({"files": [{"file": "looped.yaml", "yaml": yaml}]});
    let path = format!("/slipway/api/apply?{SCOPE}");
    let applied = api.post(&path, &body).await.data();
    assert_eq!(applied[0]["result"], "created", "{applied}");
    let path = format!("/pipeline/api/pipeline/execute/looped?{SCOPE}&moduleType=cd");
    let started = api.call("POST", &path, "application/yaml", "").await.data();
    let run = started["planExecution"]["uuid"].as_str().expect("an id");
    let graph = detail(&api, run).await["executionGraph"].clone();
    let tree = tree(&graph);
    assert_eq!(tree.matches("each [Wait]").count(), 1, "{tree}");
    assert_eq!(tree.matches("last [Wait]").count(), 1, "{tree}");
}

#[tokio::test(start_paused = true)]
async fn interrupts_are_noted_once_and_unknown_ones_are_refused() {
    let api = Api::new().await;
    let run = api.run_golden().await;
    let path = format!("/pipeline/api/pipeline/execute/interrupt/{run}?{SCOPE}");
    let (status, _, message) = api
        .put(&format!("{path}&interruptType=Vanish"), &json!({}))
        .await
        .refusal();
    assert!(status == 400 && message.contains("AbortAll"), "{message}");
    let interrupt = async |kind: &str| {
        let path = format!("{path}&interruptType={kind}");
        api.call("PUT", &path, "", "").await
    };
    assert_eq!(
        interrupt("Resume").await.refusal().0,
        409,
        "it is not paused"
    );
    assert_eq!(interrupt("Pause").await.data()["type"], "PAUSE_ALL");
    let summary = api
        .get(&format!(
            "/pipeline/api/pipelines/execution/v2/{run}?{SCOPE}"
        ))
        .await;
    let summary = summary.data();
    assert_eq!(summary["pipelineExecutionSummary"]["status"], "Paused");
    assert_eq!(interrupt("Pause").await.refusal().0, 409, "it is paused");
    assert_eq!(interrupt("Resume").await.data()["type"], "RESUME_ALL");
    let node = format!(
        "/pipeline/api/pipeline/execute/manualIntervention/interrupt/{run}/none?{SCOPE}&interruptType=Ignore"
    );
    assert_eq!(api.call("PUT", &node, "", "").await.refusal().0, 404);
    assert_eq!(api.put(&path, &json!({})).await.refusal().0, 400);
    for _ in 0..2 {
        let done = api
            .call("PUT", &format!("{path}&interruptType=AbortAll"), "", "")
            .await
            .data();
        assert_eq!(
            (done["type"].as_str(), done["planExecutionId"].as_str()),
            (Some("ABORT_ALL"), Some(&*run))
        );
    }
    let record = api
        .store
        .get_run(&RunId::new(&*run))
        .await
        .expect("the run");
    assert_eq!(
        record.abort.map(|(who, _)| who.to_string()).as_deref(),
        Some("jo@example.com")
    );
}
