//! Post-deployment rollback, as clients ask for it.

use serde_json::{Value, json};
use slipway_model::id::{AccountId, EntityId, OrgId, ProjectId, RunId, Scope, StageId};
use slipway_model::status::Status;
use slipway_store::NodeEnd;
use slipway_store::record::{
    DeployedRecord, InstanceRecord, LogLine, ReplacedRecord, StageSummary, UndoRecord,
};

use super::execution::{ANNOUNCE, ROLLOUT, node, unit};
use super::{Api, SCOPE};

const ROLLBACK: &str = "stages.deploy.spec.execution.rollbackSteps.rollback";
const KEY: &str = "arn:aws:ecs:us-east-1:123456789012:task/shop/1";
const MAPPING: &str = "shop.production.shop_cluster";

fn scope() -> Scope {
    let (org, project) = (OrgId::new("default"), ProjectId::new("default"));
    Scope::project(AccountId::new("acme"), org, project)
}

impl Api {
    /// A run of the golden pipeline that has deployed the shop in the place of version 1.0.
    async fn deployed(&self) -> String {
        let run = self.run_golden().await;
        let id = RunId::new(&*run);
        for (step, kind) in [(ANNOUNCE, "ShellScript"), (ROLLOUT, "EcsRollingDeploy")] {
            let begun = node(&run, step, kind, Status::Running);
            self.store.start_node(&begun).await.expect("a step");
            let end = NodeEnd {
                run: id.clone(),
                node: begun.id,
                attempt: 0,
                status: Status::Success,
                failure: None,
                outputs: Value::Null,
                refused: Vec::new(),
                units: vec![unit("Deploy", "SUCCESS")],
                progress: None,
            };
            self.store.end_node(&end).await.expect("its end");
        }
        let summary = StageSummary {
            id: StageId::new("deploy"),
            name: "deploy".to_owned(),
            stage_type: "Deployment".to_owned(),
            status: Status::Success,
            started_ms: Some(1_000),
            ended_ms: Some(2_000),
            failure: None,
            rolled_back: false,
            undoes_run: false,
            taken_apart: false,
            undo: None,
        };
        self.store.put_stage(&id, &summary).await.expect("a stage");
        let from = [Status::NotStarted];
        let ended = self.store.set_run_status(&id, &from, Status::Success, None);
        ended.await.expect("its end");
        self.note(&run, Some("library/shop:1.0")).await;
        run
    }

    /// Notes that a run deployed version 2.0, in the place of `before`.
    async fn note(&self, run: &str, before: Option<&str>) {
        let id = EntityId::new;
        let deployed = DeployedRecord {
            scope: scope(),
            service: id("shop"),
            environment: id("production"),
            infrastructure: id("shop_cluster"),
            deployment_type: "ECS".to_owned(),
            target: Value::Null,
            run: RunId::new(run),
            restores: None,
            artifact: Some("library/shop:2.0".to_owned()),
            before: before.map(|artifact| ReplacedRecord {
                run: None,
                artifact: Some(artifact.to_owned()),
            }),
            counted: None,
            uncounted: None,
        };
        let instance = InstanceRecord {
            scope: scope(),
            service: deployed.service.clone(),
            environment: deployed.environment.clone(),
            infrastructure: deployed.infrastructure.clone(),
            key: KEY.to_owned(),
            info: Value::Null,
            artifact: deployed.artifact.clone(),
            run: Some(RunId::new(run)),
            seen_ms: 0,
        };
        self.store.put_deployed(&deployed).await.expect("noted");
        let counted = [instance];
        let put = self.store.put_instances(&deployed, &counted).await;
        put.expect("counted");
    }

    async fn rollback(&self, what: &str, body: &Value) -> super::Answer {
        let path = format!("/ng/api/rollback/{what}?{SCOPE}");
        self.post(&path, body).await
    }

    async fn shown(&self, run: &str) -> Value {
        let path = format!(
            "/pipeline/api/pipelines/execution/v2/{run}?{SCOPE}&renderFullBottomGraph=true"
        );
        self.get(&path).await.data()
    }
}

fn instance() -> Value {
    json!({"instanceKey": KEY, "infrastructureMappingId": MAPPING})
}

fn service() -> Value {
    json!({"serviceIdentifier": "shop", "envIdentifier": "production"})
}

#[tokio::test(start_paused = true)]
async fn what_an_instance_shows_is_rolled_back() {
    let api = Api::new().await;
    let first = api.deployed().await;
    let listed = format!("/slipway/api/instances?{SCOPE}");
    let listed = api.get(&listed).await.data()["content"][0].clone();
    assert_eq!(listed["instanceKey"], KEY);
    assert_eq!(listed["infrastructureMappingId"], MAPPING);

    let check = api.rollback("check", &instance()).await.data();
    assert_eq!(check["isRollbackAllowed"], true, "{check}");
    assert_eq!(check["rollbackAllowed"], true);
    let lane = &check["swimLaneInfo"];
    assert_eq!(lane["currentArtifactDisplayName"], "library/shop:2.0");
    assert_eq!(lane["previousArtifactDisplayName"], "library/shop:1.0");

    let done = api.rollback("trigger", &instance()).await.data();
    assert_eq!(done["isRollbackTriggered"], true, "{done}");
    assert_eq!(done["infraMappingId"], MAPPING);
    let undo = done["planExecutionId"].as_str().expect("a run").to_owned();
    assert_ne!(undo, first);
    // Again, and by its service, it is the same run; to be allowed there must be something left.
    let by_service = api.rollback("trigger/v2", &service()).await.data();
    assert_eq!(by_service["planExecutionId"], *undo, "{by_service}");
    let check = api.rollback("check", &instance()).await.data();
    assert_eq!(check["isRollbackAllowed"], false);
    let message = check["message"].as_str().expect("why");
    assert!(message.contains(&undo), "{message}");
    let record = api.store.get_run(&RunId::new(&*undo)).await.expect("it");
    assert_eq!(record.triggered_by.as_str(), "jo@example.com");
}

#[tokio::test(start_paused = true)]
async fn a_rollback_shows_what_it_rolls_back_and_nothing_else() {
    let api = Api::new().await;
    let first = api.deployed().await;
    let path = format!("/slipway/api/runs/{first}/rollback?{SCOPE}");
    let outlook = api.get(&path).await.data();
    assert_eq!(
        (&outlook["allowed"], &outlook["run"]),
        (&json!(true), &Value::Null)
    );
    let body = json!({"stages": ["deploy"], "notes": "CHG-9"});
    let started = api.post(&path, &body).await.data();
    let metadata = &started["planExecution"]["metadata"];
    assert_eq!(metadata["executionMode"], "POST_EXECUTION_ROLLBACK");
    assert_eq!(metadata["originalPlanExecutionIdForRollbackMode"], *first);
    let undo = started["planExecution"]["uuid"].as_str().expect("an id");
    assert_eq!(api.get(&path).await.data()["run"], *undo);

    let id = RunId::new(undo);
    let mut stage = api.store.get_run(&id).await.expect("it").stages.remove(0);
    stage.undo = Some(UndoRecord {
        status: Status::Running,
        started_ms: Some(5_000),
        ended_ms: None,
        failure: None,
    });
    api.store.put_stage(&id, &stage).await.expect("noted");
    let mut step = node(undo, ROLLBACK, "EcsRollingRollback", Status::Running);
    step.units.push(unit("Rollback", "RUNNING"));
    api.store.start_node(&step).await.expect("a step");
    for (run, node, said) in [
        (&*first, ROLLOUT, "deployed"),
        (undo, ROLLBACK, "rolled back"),
    ] {
        let unit = match node {
            ROLLOUT => "Deploy",
            _ => "Rollback",
        };
        let line = LogLine {
            level: "INFO".to_owned(),
            out: said.to_owned(),
            time: "2026-01-01T00:00:00Z".to_owned(),
        };
        let (run, node) = (RunId::new(run), slipway_model::id::NodeId::new(node));
        let put = api.store.append_log(&run, &node, unit, &[line]).await;
        put.expect("a line");
    }

    let seen = api.shown(undo).await;
    let summary = &seen["pipelineExecutionSummary"];
    assert_eq!(summary["executionMode"], "POST_EXECUTION_ROLLBACK");
    assert_eq!(summary["notes"], "CHG-9");
    assert_eq!(summary["canRetry"], false);
    let layout = &summary["layoutNodeMap"]["deploy"];
    assert_eq!(layout["status"], "Running");
    assert_eq!(
        (&layout["startTs"], &layout["isRollbackStageNode"]),
        (&json!(5_000), &json!(true))
    );
    let nodes = seen["executionGraph"]["nodeMap"]
        .as_object()
        .expect("nodes");
    assert!(!nodes.contains_key(ROLLOUT), "{nodes:?}");
    let base = nodes[ROLLBACK]["logBaseKey"].as_str().expect("a key");
    let log = format!("/gateway/log-service/blob?accountID=acme&key={base}-commandUnit:Rollback");
    let log = api.get(&log).await;
    assert!(log.text.contains("rolled back"), "{}", log.text);
    // What the first run did is logged there, under either run.
    let of_first = format!("acme/pipeline/deploy_shop/2/-{undo}/deploy/rollout");
    let log = format!("/gateway/log-service/blob?accountID=acme&key={of_first}-commandUnit:Deploy");
    let log = api.get(&log).await;
    assert!(log.text.contains("deployed"), "{}", log.text);
    let first = api.shown(&first).await;
    let mode = &first["pipelineExecutionSummary"]["executionMode"];
    assert_eq!(mode, "NORMAL");
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_says_why_in_the_answer_and_bad_requests_are_errors() {
    let api = Api::new().await;
    let first = api.deployed().await;
    for (what, body, status, why) in [
        ("check", json!({}), 400, "instanceKey"),
        (
            "trigger",
            json!({"instanceKey": KEY}),
            400,
            "infrastructureMappingId",
        ),
        (
            "trigger",
            json!({"instanceKey": "x", "infrastructureMappingId": MAPPING}),
            404,
            "There is no instance [x]",
        ),
        (
            "trigger/v2",
            json!({"serviceIdentifier": "shop"}),
            400,
            "envIdentifier",
        ),
        (
            "trigger/v2",
            json!({"serviceIdentifier": 7, "envIdentifier": "production"}),
            400,
            "must be a text",
        ),
        (
            "trigger/v2",
            json!({"serviceIdentifier": "a#b", "envIdentifier": "production"}),
            400,
            "serviceIdentifier",
        ),
        (
            "trigger/v2",
            json!({"serviceIdentifier": "shop", "envIdentifier": "staging"}),
            404,
            "nothing has deployed service shop to environment staging",
        ),
        ("trigger/v3", json!({"targets": "x"}), 400, "targets"),
        ("trigger/v3", json!({"targets": [1]}), 400, "targets"),
        (
            "trigger/v3",
            json!({"targets": vec![service(); 51]}),
            400,
            "at most 50",
        ),
    ] {
        let (found, _, message) = api.rollback(what, &body).await.refusal();
        assert_eq!(found, status, "{what} {body}: {message}");
        assert!(message.contains(why), "{what} {body}: {message}");
    }
    let other =
        json!({"serviceIdentifier": "shop", "envIdentifier": "production", "artifact": "x"});
    let answer = api.rollback("trigger/v2", &other).await.data();
    assert_eq!(answer["isRollbackTriggered"], false);
    let message = answer["message"].as_str().expect("why");
    assert_eq!(message, "the artifact there is library/shop:2.0, not x");

    // The first deployment has nothing before it.
    api.note(&first, None).await;
    let path = format!("/slipway/api/runs/{first}/rollback?{SCOPE}");
    let (status, _, message) = api.post(&path, &json!({})).await.refusal();
    assert_eq!(status, 409, "{message}");
    assert!(message.contains("there is no earlier version"), "{message}");
    let (status, _, message) = api
        .post(&path, &json!({"stages": "deploy"}))
        .await
        .refusal();
    assert_eq!((status, message.contains("stages")), (400, true));
    let unknown = format!("/slipway/api/runs/none/rollback?{SCOPE}");
    assert_eq!(api.post(&unknown, &json!({})).await.refusal().0, 404);

    // Of several, one that is refused does not hold the others up.
    api.note(&first, Some("library/shop:1.0")).await;
    let staging = json!({"serviceIdentifier": "shop", "envIdentifier": "staging"});
    let targets = json!({"targets": [staging, service()]});
    let answer = api.rollback("trigger/v3", &targets).await.data();
    assert_eq!(answer["totalRollbacksTriggered"], 1, "{answer}");
    assert_eq!(answer["totalRollbacksFailed"], 1);
    assert_eq!(answer["results"][0]["envIdentifier"], "staging");
    assert_eq!(answer["results"][1]["isRollbackTriggered"], true);
}
