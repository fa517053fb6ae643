//! Runs of chosen stages, reruns, retries and notes, as the clients ask for them.

use serde_json::{Value, json};
use slipway_engine::plan_run::plan_run;
use slipway_engine::runs::Runs;
use slipway_model::id::{RunId, StageId};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_store::NodeEnd;
use slipway_store::record::{LogLine, StageSummary};

use super::execution::{node, unit};
use super::{Answer, Api, SCOPE};

const EXECUTE: &str = "/pipeline/api/pipeline/execute";
const RUNS: &str = "/pipeline/api/pipelines/execution";
const V1: &str = "/v1/orgs/default/projects/default/pipelines/three/execute";

/// `a`, then `b1` beside `b2`, then `c`, which reads `a`; `c` asks for the variable `v`.
const PIPELINE: &str = "pipeline:
  identifier: three
  name: Three
  orgIdentifier: default
  projectIdentifier: default
  allowStageExecutions: true
  tags: {team: shop, of: <+pipeline.name> by <+pipeline.triggerType>, key: <+secrets.getValue('k')>}
  stages:
    - stage: {identifier: a, name: A, type: Custom, spec: {execution: {steps: [{step: {identifier: w, name: w, type: Wait, timeout: 1d, spec: {duration: 1s}}}]}}}
    - parallel:
        - stage: {identifier: b1, name: B1, type: Custom, spec: {execution: {steps: [{step: {identifier: w, name: w, type: Wait, timeout: 1d, spec: {duration: 1s}}}]}}}
        - stage: {identifier: b2, name: B2, type: Custom, spec: {execution: {steps: [{step: {identifier: w, name: w, type: Wait, timeout: 1d, spec: {duration: 1s}}}]}}}
    - stage:
        identifier: c
        name: C
        type: Custom
        variables: [{name: v, type: String, value: <+input>}]
        when: {pipelineStatus: Success, condition: <+pipeline.stages.a.status> == \"SUCCEEDED\"}
        spec: {execution: {steps: [{step: {identifier: w, name: w, type: Wait, timeout: 1d, spec: {duration: 1s}}}]}}
";

fn inputs(value: &str) -> String {
    format!(
        "pipeline: {{identifier: three, stages: [{{stage: {{identifier: c, variables: [{{name: v, type: String, value: {value}}}]}}}}]}}"
    )
}

impl Api {
    async fn with_three() -> Self {
        let api = Self::new().await;
        let path = format!("/pipeline/api/pipelines/v2?{SCOPE}");
        api.call("POST", &path, "application/yaml", PIPELINE)
            .await
            .data();
        api
    }

    /// Starts the pipeline with inputs in YAML.
    async fn execute(&self, path: &str, yaml: &str) -> Answer {
        let path = format!("{EXECUTE}/{path}");
        let sign = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{sign}{SCOPE}");
        self.call("POST", &path, "application/yaml", yaml).await
    }

    /// Does what the machine of a run does first.
    async fn plan(&self, run: &str) {
        let runs = Runs {
            store: self.store.clone(),
            workflows: super::workflows(),
            clock: self.clock.clone(),
            pipeline_machine: String::new(),
            notify_machine: None,
            errand_machine: None,
            url: None,
        };
        plan_run(&runs, &RunId::new(run)).await.expect("a plan");
    }

    async fn summary(&self, run: &str) -> Value {
        let path = format!("{RUNS}/v2/{run}?{SCOPE}&renderFullBottomGraph=true");
        self.get(&path).await.data()
    }

    /// Writes down that stages ended so, and the run with them.
    async fn end(&self, run: &str, stages: &[(&str, Status)], status: Status) {
        let id = RunId::new(run);
        let failure = Failure {
            error: ErrorType::Unknown,
            message: "It broke.".to_owned(),
            left_behind: None,
        };
        for (stage, status) in stages {
            let summary = StageSummary {
                id: StageId::new(*stage),
                name: (*stage).to_uppercase(),
                stage_type: "Custom".to_owned(),
                status: *status,
                started_ms: Some(1_000),
                ended_ms: Some(2_000),
                failure: (!status.is_good()).then(|| failure.clone()),
                rolled_back: false,
                undoes_run: false,
                taken_apart: false,
                undo: None,
            };
            self.store.put_stage(&id, &summary).await.expect("a stage");
            let step = format!("stages.{stage}.spec.execution.steps.w");
            let mut begun = node(run, &step, "Wait", Status::Running);
            begun.stage = StageId::new(*stage);
            begun.units.push(unit("Execute", "SUCCESS"));
            self.store.start_node(&begun).await.expect("a step");
            let end = NodeEnd {
                run: id.clone(),
                node: begun.id.clone(),
                attempt: 0,
                status: *status,
                failure: None,
                outputs: json!({"output": {"by": stage}}),
                refused: Vec::new(),
                units: begun.units.clone(),
                progress: None,
            };
            self.store.end_node(&end).await.expect("its end");
        }
        let from = [Status::NotStarted, Status::Running];
        let set = self
            .store
            .set_run_status(&id, &from, status, Some(&failure));
        set.await.expect("a status");
    }
}

fn id(started: &Value) -> String {
    let id = started["planExecution"]["uuid"].as_str();
    id.expect("an id").to_owned()
}

/// Identifiers of the stages of a run, in no order.
fn stages(summary: &Value) -> Vec<String> {
    let layout = summary["pipelineExecutionSummary"]["layoutNodeMap"].as_object();
    let nodes = layout.expect("a layout").values();
    let mut ids: Vec<String> = nodes
        .filter(|node| node["nodeGroup"] == "STAGE")
        .filter_map(|node| node["nodeIdentifier"].as_str().map(str::to_owned))
        .collect();
    ids.sort();
    ids
}

#[tokio::test(start_paused = true)]
async fn chosen_stages_are_run_in_each_form_of_the_request() {
    let api = Api::with_three().await;
    let list = format!("{EXECUTE}/stagesExecutionList?{SCOPE}&pipelineIdentifier=three");
    let list = api.get(&list).await.data();
    let shown: Vec<String> = list
        .as_array()
        .expect("a list")
        .iter()
        .map(|stage| {
            format!(
                "{} {} {} {}",
                stage["stageIdentifier"],
                stage["stageName"],
                stage["stagesRequired"],
                stage["toBeBlocked"]
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#""a" "A" [] false"#,
            r#""b1" "B1" [] false"#,
            r#""b2" "B2" [] false"#,
            r#""c" "C" ["a"] false"#
        ]
    );

    // `c` is left out, and so nothing is asked for.
    let two = json!({"stageIdentifiers": ["a", "b2"], "runtimeInputYaml": ""});
    let path = format!("{EXECUTE}/three/stages?{SCOPE}&notesForPipelineExecution=CHG-1");
    let run = id(&api.post(&path, &two).await.data());
    let seen = api.summary(&run).await;
    assert_eq!(stages(&seen), ["a", "b2"]);
    let summary = &seen["pipelineExecutionSummary"];
    assert_eq!(summary["stagesExecution"], true);
    assert_eq!(summary["stagesExecuted"], json!(["a", "b2"]));
    assert_eq!(summary["notes"], "CHG-1");
    let tags = [
        ("team", "shop"),
        ("of", "Three by MANUAL"),
        ("key", "<+secrets.getValue('k')>"),
    ];
    let tags = tags.map(|(key, value)| json!({"key": key, "value": value}));
    assert_eq!(summary["tags"], json!(tags));

    let given = json!({
        "stageIdentifiers": ["c"],
        "runtimeInputYaml": inputs("x"),
        "expressionValues": {"<+pipeline.stages.a.status>": "SUCCEEDED"},
    });
    let path = format!("{EXECUTE}/three/stages?{SCOPE}");
    let run = id(&api.post(&path, &given).await.data());
    assert_eq!(stages(&api.summary(&run).await), ["c"]);
    let path = format!("{EXECUTE}/three/inputSetList?{SCOPE}");
    let listed = json!({"inputSetReferences": [], "stageIdentifiers": ["b1"]});
    let run = id(&api.post(&path, &listed).await.data());
    assert_eq!(stages(&api.summary(&run).await), ["b1"]);
    // The plan knows them too.
    let plan = format!("/slipway/api/plan/three?{SCOPE}&stageIdentifiers=b1");
    let plan = api.call("POST", &plan, "", "").await.data();
    assert!(
        !plan["text"].as_str().expect("text").contains("b2"),
        "{plan}"
    );

    let path = format!("{EXECUTE}/three/stages?{SCOPE}");
    for (body, why) in [
        (
            json!({"stageIdentifiers": []}),
            "must name the stages to run",
        ),
        (
            json!({"stageIdentifiers": "a"}),
            "must be a list of identifiers",
        ),
        (
            json!({"stageIdentifiers": [{"a": 1}]}),
            "must be a list of identifiers",
        ),
        (json!({"stageIdentifiers": ["d"]}), "no stage `d`"),
        (
            json!({"stageIdentifiers": ["c"], "runtimeInputYaml": inputs("x")}),
            "`<+pipeline.stages.a.status>` in `expressionValues`",
        ),
        (
            json!({"stageIdentifiers": ["a"], "expressionValues": ["x"]}),
            "must be texts by their expressions",
        ),
        (
            json!({"stageIdentifiers": ["a"], "expressionValues": {"x": {}}}),
            "must be texts by their expressions",
        ),
    ] {
        let (status, _, message) = api.post(&path, &body).await.refusal();
        assert!(status == 400 && message.contains(why), "{body}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_repeated_with_its_inputs_or_others() {
    let api = Api::with_three().await;
    let first = id(&api.execute("three?notes=why", &inputs("one")).await.data());
    let given = async |run: &str| {
        let path = format!("{RUNS}/{run}/inputsetV2?{SCOPE}");
        let inputs = api.get(&path).await.data();
        inputs["inputSetYaml"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let same = id(&api
        .execute(&format!("rerun/{first}/three"), "")
        .await
        .data());
    assert_eq!(given(&same).await, given(&first).await);
    let seen = api.summary(&same).await;
    let summary = &seen["pipelineExecutionSummary"];
    assert_eq!(summary["executionTriggerInfo"]["isRerun"], true);
    assert_eq!(summary["runSequence"], 2);
    let path = format!("rerun/{first}/three");
    let other = id(&api.execute(&path, &inputs("two")).await.data());
    assert!(given(&other).await.contains("two"));
    let path = format!("{EXECUTE}/rerun/{first}/three/inputSetList?{SCOPE}");
    let body = json!({"inputSetReferences": [], "lastYamlToMerge": inputs("three")});
    let run = id(&api.post(&path, &body).await.data());
    assert!(given(&run).await.contains("three"));
    let path = format!("{EXECUTE}/rerun/{first}/three/stages?{SCOPE}");
    let body = json!({"stageIdentifiers": ["a"], "runtimeInputYaml": null});
    let run = id(&api.post(&path, &body).await.data());
    assert_eq!(stages(&api.summary(&run).await), ["a"]);
    let v1 = api
        .post(&format!("{V1}/rerun/{first}"), &json!({"inputs_yaml": ""}))
        .await;
    let v1 = v1.json()["execution_details"]["execution_id"].clone();
    assert_eq!(
        given(v1.as_str().expect("an id")).await,
        given(&first).await
    );

    for path in [
        format!("rerun/{first}/other"),
        "rerun/none/three".to_owned(),
        "rerun/..%2Fx/three".to_owned(),
    ] {
        assert_eq!(api.execute(&path, "").await.refusal().0, 404, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_retried_and_shows_what_it_took_over() {
    let api = Api::with_three().await;
    let first = id(&api.execute("three", &inputs("one")).await.data());
    let may = async |run: &str| {
        let path = format!("{EXECUTE}/{run}/retryStages?{SCOPE}&pipelineIdentifier=three");
        api.get(&path).await.data()
    };
    let not_yet = may(&first).await;
    assert_eq!(
        (&not_yet["isResumable"], &not_yet["groups"]),
        (&json!(false), &json!([]))
    );
    let why = not_yet["errorMessage"].as_str().expect("why");
    assert!(why.contains("has not ended"), "{why}");

    let ended = [
        ("a", Status::Success),
        ("b1", Status::Success),
        ("b2", Status::Failed),
    ];
    api.end(&first, &ended, Status::Failed).await;
    let line = LogLine {
        level: "INFO".to_owned(),
        out: "done by the first run\n".to_owned(),
        time: "2026-01-01T00:00:00Z".to_owned(),
    };
    let step = slipway_model::id::NodeId::new("stages.a.spec.execution.steps.w");
    api.store
        .append_log(&RunId::new(&*first), &step, "Execute", &[line])
        .await
        .expect("a log");
    let groups = may(&first).await["groups"].clone();
    let shown: Vec<String> = groups
        .as_array()
        .expect("groups")
        .iter()
        .map(|group| {
            let info = group["info"].as_array().expect("stages");
            let told = info
                .iter()
                .map(|s| format!("{} {} {}", s["identifier"], s["status"], s["parentId"]));
            told.collect::<Vec<_>>().join(", ")
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#""a" "Success" null"#,
            r#""b1" "Success" "a", "b2" "Failed" "a""#
        ]
    );
    assert_eq!(
        api.summary(&first).await["pipelineExecutionSummary"]["canRetry"],
        true
    );

    let path = format!("retry/three?planExecutionId={first}&retryStages=b2&runAllStages=false");
    let second = id(&api.execute(&path, "").await.data());
    api.plan(&second).await;
    let seen = api.summary(&second).await;
    let status =
        |stage: &str| seen["pipelineExecutionSummary"]["layoutNodeMap"][stage]["status"].clone();
    let statuses: Vec<Value> = ["a", "b1", "b2", "c"]
        .iter()
        .map(|stage| status(stage))
        .collect();
    assert_eq!(statuses, ["Success", "Success", "NotStarted", "NotStarted"]);
    let node = &seen["executionGraph"]["nodeMap"]["stages.a.spec.execution.steps.w"];
    assert_eq!(node["outcomes"]["output"]["by"], "a");
    // Its log is that of the run that did it.
    let key = node["executableResponses"][0]["task"]["logKeys"][0]
        .as_str()
        .expect("a key");
    let log = api
        .get(&format!(
            "/gateway/log-service/blob?accountID=acme&key={key}"
        ))
        .await;
    assert!(log.text.contains("done by the first run"), "{}", log.text);

    for run in [&first, &second] {
        let path = format!("{EXECUTE}/retryHistory/{run}?{SCOPE}&pipelineIdentifier=three");
        let history = api.get(&path).await.data();
        assert_eq!(history["latestExecutionId"], second);
        let ids = [
            &history["executionInfos"][0]["uuid"],
            &history["executionInfos"][1]["uuid"],
        ];
        assert_eq!(ids, [&json!(second), &json!(first)]);
        let path = format!("{EXECUTE}/latestExecutionId/{run}?{SCOPE}");
        assert_eq!(api.get(&path).await.data()["latestExecutionId"], second);
        let summary = api.summary(run).await["pipelineExecutionSummary"].clone();
        assert_eq!(
            (&summary["showRetryHistory"], &summary["canRetry"]),
            (&json!(true), &json!(false))
        );
    }
    let history = format!("{EXECUTE}/retryHistory/{second}?{SCOPE}");
    let metadata = api.get(&history).await.data()["retryStagesMetadata"].clone();
    assert_eq!(
        metadata,
        json!({"retryStagesIdentifier": ["b2"], "skipStagesIdentifier": ["a", "b1"]})
    );

    // The forms of the MCP server and of v1.
    let ended = [("b2", Status::Failed)];
    api.end(&second, &ended, Status::Failed).await;
    let third = api
        .put(
            &format!("{EXECUTE}/retry/{second}?{SCOPE}&module=CD"),
            &json!({}),
        )
        .await;
    let third = id(&third.data());
    api.end(&third, &ended, Status::Aborted).await;
    // Where nothing is said, all stages of the block run again.
    let path = format!("{V1}/retry/{third}?retry_stages=b2&notes=again");
    let v1 = api.post(&path, &json!({"inputs_yaml": ""})).await;
    let fourth = v1.json()["execution_details"]["execution_id"].clone();
    let fourth = RunId::new(fourth.as_str().expect("an id"));
    let fourth = api.store.get_run(&fourth).await.expect("the run");
    let origin = fourth.origin.expect("a retry");
    assert_eq!(
        (origin.root.as_str(), origin.stages.len(), &*fourth.notes),
        (&*first, 2, "again")
    );
    assert_eq!(origin.kept, [(StageId::new("a"), RunId::new(&*first))]);
}

#[tokio::test(start_paused = true)]
async fn retries_that_do_not_fit_are_refused() {
    let api = Api::with_three().await;
    let run = id(&api.execute("three", &inputs("one")).await.data());
    let retry = async |query: &str| {
        let path = format!("retry/three?planExecutionId={run}{query}");
        api.execute(&path, "").await.refusal()
    };
    assert_eq!(retry("&retryStages=a").await.0, 409, "it runs");
    let ended = [("a", Status::Failed)];
    api.end(&run, &ended, Status::Failed).await;
    for (query, code, why) in [
        ("", 400, "must name the stages"),
        ("&retryStages=x", 400, "has no stage `x`"),
        (
            "&retryStages=c",
            400,
            "go on from it, or from an earlier one",
        ),
        (
            "&retryStages=a&runAllStages=maybe",
            400,
            "must be true or false",
        ),
    ] {
        let (status, _, message) = retry(query).await;
        assert!(
            status == code && message.contains(why),
            "{query}: {status} {message}"
        );
    }
    let (status, _, message) = api
        .execute(
            &format!("retry/other?planExecutionId={run}&retryStages=a"),
            "",
        )
        .await
        .refusal();
    assert!(
        status == 400 && message.contains("not of other"),
        "{message}"
    );
    assert_eq!(
        api.execute("retry/three?planExecutionId=no&retryStages=a", "")
            .await
            .refusal()
            .0,
        404
    );
    let elsewhere = format!(
        "{EXECUTE}/retry/three?orgIdentifier=default&projectIdentifier=other&planExecutionId={run}&retryStages=a"
    );
    assert_eq!(api.call("POST", &elsewhere, "", "").await.refusal().0, 404);
    // The pipeline lost a stage meanwhile.
    let path = format!("/pipeline/api/pipelines/v2/three?{SCOPE}");
    let fewer = PIPELINE.replace("identifier: b2, name: B2", "identifier: b3, name: B3");
    api.call("PUT", &path, "application/yaml", &fewer)
        .await
        .data();
    let (status, _, message) = retry("&retryStages=a").await;
    assert_eq!(status, 409);
    assert!(
        message.contains("it had a, b1 beside b2, c, it has a, b1 beside b3, c now"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn notes_are_kept_changed_and_searched() {
    let api = Api::with_three().await;
    let run = id(&api
        .execute(
            "three?notesForPipelineExecution=CHG-17%20rollout",
            &inputs("one"),
        )
        .await
        .data());
    api.execute("three", &inputs("two")).await.data();
    let path = format!("{RUNS}/{run}/notes?{SCOPE}");
    assert_eq!(api.get(&path).await.data()["notes"], "CHG-17 rollout");
    let body = json!({"filterType": "PipelineExecution"});
    let found = format!("{RUNS}/summary?{SCOPE}&searchTerm=chg-17");
    let found = api.post(&found, &body).await.data();
    assert_eq!(
        (
            found["totalElements"].as_u64(),
            &found["content"][0]["planExecutionId"]
        ),
        (Some(1), &json!(run))
    );
    api.end(&run, &[], Status::Failed).await;
    for (given, kept) in [("late", "late"), ("", "")] {
        let put = format!("{path}&notesForPipelineExecution={given}");
        assert_eq!(api.put(&put, &json!({})).await.data()["notes"], kept);
        assert_eq!(api.get(&path).await.data()["notes"], kept);
    }
    let long = "x".repeat(4_001);
    let put = format!("{path}&notesForPipelineExecution={long}");
    let (status, _, message) = api.put(&put, &json!({})).await.refusal();
    assert!(
        status == 413 && message.contains("4000 is the limit"),
        "{message}"
    );
    let start = format!("three?notes={long}");
    assert_eq!(api.execute(&start, &inputs("x")).await.refusal().0, 413);
    let none = format!("{RUNS}/none/notes?{SCOPE}&notesForPipelineExecution=x");
    assert_eq!(api.put(&none, &json!({})).await.refusal().0, 404);
}
