//! The service without a port and without targets: embedded store, the engine running the real machines,
//! the real functions, and a delegate that plays scripts instead of running them.

pub mod yaml;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use secrecy::SecretString;
use serde_json::{Value, json};
use slipway_asl::{Engine, EngineConfig, Lambda, LambdaError};
use slipway_clock::Clock;
use slipway_engine::gather::FileSource;
use slipway_engine::runs::Runs;
use slipway_engine::start::{StartRun, start_run};
use slipway_fn_pipeline::LaneFunctions;
use slipway_model::entity;
use slipway_model::id::{AccountId, OrgId, PrincipalId, ProjectId, RunId, Scope};
use slipway_model::status::Failure;
use slipway_plan::{Fetched, RemoteFiles};
use slipway_steps::aws::{Ambient, AwsTargets, TargetConfig};
use slipway_steps::secrets::SecretSource;
use slipway_steps::{StepServices, registry};
use slipway_store::Store;
use slipway_store::embedded::{Embedded, in_process};
use slipway_store::record::{EntityRecord, RunRecord};
use tokio::sync::Notify;
use tower::ServiceExt;

const REGION: &str = "us-east-1";
const ACCOUNT: &str = "123456789012";

/// Everything.
pub struct World {
    pub engine: Engine,
    pub sfn: aws_sdk_sfn::Client,
    pub runs: Runs,
    pub store: Store,
    pub crash: Arc<Crash>,
    _embedded: Embedded,
}

/// Breaks an invocation at its n-th request to the store, once: as if the process had died there.
#[derive(Default)]
pub struct Crash {
    requests: AtomicUsize,
    /// 0 for never; the request is done before the crash if odd, and not if even.
    at: AtomicUsize,
    died: Notify,
}

impl Crash {
    /// Dies at the n-th request from now on; `after` tells whether it is carried out.
    pub fn arm(&self, request: usize, after: bool) {
        self.requests.store(0, Ordering::SeqCst);
        self.at
            .store(request * 2 + usize::from(after), Ordering::SeqCst);
    }

    pub fn disarm(&self) {
        self.at.store(0, Ordering::SeqCst);
    }

    /// Whether the crash is still to come.
    pub fn is_armed(&self) -> bool {
        self.at.load(Ordering::SeqCst) != 0
    }

    async fn pass(&self, request: Request, store: Router) -> Response {
        let number = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let at = self.at.load(Ordering::SeqCst);
        let hit = at / 2 == number && at != 0;
        if hit {
            self.disarm();
            if at % 2 == 1 {
                let _ = store.clone().oneshot(request).await;
            }
            self.died.notify_one();
            return std::future::pending().await;
        }
        store
            .oneshot(request)
            .await
            .expect("a router does not fail")
    }
}

/// The functions behind the engine's Lambda port. An invocation that dies is invoked again.
#[derive(Default)]
struct Functions {
    wired: OnceLock<(slipway_fn_pipeline::Deps, slipway_fn_lane_common::Deps)>,
    crash: Arc<Crash>,
}

impl Functions {
    async fn call(&self, function: &str, payload: Value) -> Result<Value, LambdaError> {
        let (pipeline, lane) = self.wired.get().expect("wired");
        let answer = match function {
            "pipeline" => slipway_fn_pipeline::answer(pipeline, payload).await,
            "lane" => slipway_fn_lane_common::answer(lane, payload).await,
            other => panic!("no function {other}"),
        };
        answer.map_err(|error| LambdaError {
            error_type: error.name.to_string(),
            message: error.message,
        })
    }
}

#[async_trait]
impl Lambda for Functions {
    async fn invoke(&self, function: &str, payload: Value) -> Result<Value, LambdaError> {
        tokio::select! {
            answer = self.call(function, payload.clone()) => answer,
            () = self.crash.died.notified() => self.call(function, payload).await,
        }
    }
}

struct NoSecrets;

#[async_trait]
impl SecretSource for NoSecrets {
    async fn value(&self, _scope: &Scope, reference: &str) -> Result<SecretString, Failure> {
        panic!("no test asks for the secret {reference}")
    }
}

pub fn scope() -> Scope {
    Scope::project(
        AccountId::new("acme"),
        OrgId::new("default"),
        ProjectId::new("shop"),
    )
}

/// The pipelines of these tests name no files of other places.
struct NoFiles;

#[async_trait]
impl FileSource for NoFiles {
    async fn fetch(&self, wanted: &[RemoteFiles]) -> Vec<Result<Fetched, String>> {
        panic!("nothing here fetches {wanted:?}")
    }
}

impl World {
    pub async fn new() -> Self {
        Self::with_turns(slipway_fn_lane_common::MOST_TURNS).await
    }

    /// Executions of lanes are given so many directives.
    pub async fn with_turns(turns: u32) -> Self {
        let clock = Clock::paused("2026-01-01T00:00:00Z".parse().expect("a time"));
        let embedded = Embedded::temporary().expect("a store");
        let crash = Arc::<Crash>::default();
        let store = store(&embedded, &crash, clock.clone());
        let functions = Arc::new(Functions {
            crash: Arc::clone(&crash),
            ..Functions::default()
        });
        let config = EngineConfig {
            clock: clock.clone(),
            region: REGION.to_owned(),
            account: ACCOUNT.to_owned(),
        };
        let engine = Engine::in_memory(config, functions.clone()).expect("an engine");
        engine.resume();
        let sfn = client(&engine);
        install(&sfn).await;
        let runs = Runs {
            store: embedded.store(clock.clone()),
            workflows: sfn.clone(),
            clock: clock.clone(),
            pipeline_machine: machine("pipeline"),
        };
        wire(&functions, &runs, store, turns);
        let world = Self {
            engine,
            sfn,
            store: runs.store.clone(),
            runs,
            crash,
            _embedded: embedded,
        };
        world.start_delegate();
        world
    }

    /// Stores entities, each a document of its own.
    pub async fn apply(&self, yaml: &str) {
        for parsed in entity::parse_documents("test.yaml", yaml).expect("valid entities") {
            let head = &parsed.head;
            let place = slipway_plan::Reference::of(&parsed, scope());
            let record = EntityRecord {
                scope: scope(),
                kind: head.kind.key().to_owned(),
                parent: place.parent.clone(),
                id: place.id.clone(),
                name: head.name.clone(),
                description: None,
                tags: Vec::new(),
                entity_type: head.entity_type.clone(),
                yaml: slipway_model::emit::to_yaml(&parsed.tree),
                version: 0,
                created_ms: 0,
                updated_ms: 0,
            };
            self.store.put_entity(&record, None).await.expect("stored");
            if let Some(label) = &head.version_label {
                // The version is the stable one.
                let stable = EntityRecord {
                    parent: None,
                    id: head.identifier.clone(),
                    yaml: label.clone(),
                    ..record
                };
                self.store.put_entity(&stable, None).await.expect("stored");
            }
        }
    }

    pub async fn start(&self, pipeline: &str) -> RunId {
        let request = StartRun {
            scope: scope(),
            pipeline: slipway_model::id::EntityId::new(pipeline),
            inputs_yaml: None,
            principal: PrincipalId::new("alex"),
            trigger: "MANUAL".to_owned(),
        };
        let run = start_run(&self.runs, request, &registry::STEP_TYPES, &NoFiles).await;
        run.unwrap_or_else(|error| panic!("{}", error.full_text()))
            .id
    }

    /// Waits until a run's execution has ended.
    pub async fn finish(&self, run: &RunId) -> RunRecord {
        let arn = format!("arn:aws:states:{REGION}:{ACCOUNT}:execution:pipeline:{run}");
        for _ in 0..20_000 {
            let seen = self
                .sfn
                .describe_execution()
                .execution_arn(&arn)
                .send()
                .await;
            let status = seen.expect("the execution of the run").status;
            if status != aws_sdk_sfn::types::ExecutionStatus::Running {
                return self.store.get_run(run).await.expect("the run");
            }
            self.runs.clock.sleep(Duration::from_secs(5)).await;
        }
        panic!("run {run} does not end");
    }

    /// Status of the run, then of its stages, then of its nodes, in the order of the plan.
    pub async fn story(&self, run: &RunRecord) -> String {
        let mut lines = vec![format!(
            "run {:?}{}",
            run.status,
            told(run.failure.as_ref())
        )];
        for stage in &run.stages {
            lines.push(format!(
                "{} {:?}{}",
                stage.id,
                stage.status,
                told(stage.failure.as_ref())
            ));
        }
        let nodes = self
            .store
            .list_nodes(&run.id, None)
            .await
            .expect("the nodes");
        let mut nodes: Vec<_> = nodes
            .iter()
            .map(|node| {
                let id = node.id.as_str().replace(".spec.execution", "");
                let id = id
                    .trim_start_matches("pipeline.")
                    .trim_start_matches("stages.");
                format!("{id} #{} {:?}", node.attempt, node.status)
            })
            .collect();
        nodes.sort();
        lines.extend(nodes);
        lines.join("\n")
    }

    /// The states that an execution entered.
    pub async fn path(&self, machine: &str, name: &str) -> String {
        let arn = format!("arn:aws:states:{REGION}:{ACCOUNT}:execution:{machine}:{name}");
        let history = self
            .sfn
            .get_execution_history()
            .execution_arn(arn)
            .max_results(1000)
            .send();
        let history = history.await.expect("a history");
        let entered = history
            .events()
            .iter()
            .filter_map(|e| e.state_entered_event_details());
        entered
            .map(|details| details.name())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Nothing that a run needed is left: no open wait, no execution that still runs.
    pub async fn assert_clean(&self, run: &RunId) {
        let waits = self.store.list_waits(run).await.expect("the waits");
        assert_eq!(waits, [], "waits are left behind");
        assert_eq!(self.engine.counters().open, 0, "executions are left behind");
    }

    /// Plays scripts: `fail` fails, `fail until N` fails before attempt N, `vanish` never answers,
    /// `NAME=value` sets an output variable, anything else succeeds.
    fn start_delegate(&self) {
        let (sfn, store) = (self.sfn.clone(), self.store.clone());
        tokio::spawn(async move {
            loop {
                let task = sfn
                    .get_activity_task()
                    .activity_arn(activity())
                    .send()
                    .await;
                let Ok(task) = task else { return };
                let Some(token) = task.task_token else {
                    continue;
                };
                let input: Value = serde_json::from_str(task.input.as_deref().unwrap_or("null"))
                    .expect("the activity's input");
                let id = input["task"].as_str().expect("a task id");
                let Ok(claimed) = store.claim_delegate_task(id, "d1").await else {
                    continue;
                };
                let script = claimed.payload["script"].as_str().unwrap_or_default();
                let Some(result) = play(script, claimed.attempt) else {
                    continue;
                };
                store
                    .finish_delegate_task(id, &result)
                    .await
                    .expect("the first result");
                let _ = sfn
                    .send_task_success()
                    .task_token(token)
                    .output("{}")
                    .send()
                    .await;
            }
        });
    }
}

fn told(failure: Option<&Failure>) -> String {
    let Some(failure) = failure else {
        return String::new();
    };
    let left = failure
        .left_behind
        .as_ref()
        .map(|left| format!(" LEFT BEHIND: {left}"));
    format!(": {}{}", failure.message, left.unwrap_or_default())
}

fn play(script: &str, attempt: u32) -> Option<Value> {
    let script = script.trim();
    let fails = match script.strip_prefix("fail until ") {
        Some(number) => attempt < number.parse().expect("a number"),
        None => script == "fail",
    };
    if script == "vanish" {
        return None;
    }
    if fails {
        return Some(json!({"status": "FAILURE", "exitCode": 1}));
    }
    let outputs: serde_json::Map<String, Value> = script
        .split_once('=')
        .map(|(name, value)| (name.to_owned(), value.into()))
        .into_iter()
        .collect();
    Some(json!({"status": "SUCCESS", "exitCode": 0, "outputs": outputs}))
}

/// A store whose requests pass the crash.
fn store(embedded: &Embedded, crash: &Arc<Crash>, clock: Clock) -> Store {
    let (crash, inner) = (Arc::clone(crash), embedded.router());
    let router = Router::new().fallback(move |request: Request| {
        let (crash, inner) = (Arc::clone(&crash), inner.clone());
        async move { crash.pass(request, inner).await }
    });
    let dynamodb = embedded.dynamodb().config().to_builder();
    let s3 = embedded.s3().config().to_builder();
    let client = in_process(router);
    Store::new(
        aws_sdk_dynamodb::Client::from_conf(dynamodb.http_client(client.clone()).build()),
        aws_sdk_s3::Client::from_conf(s3.http_client(client).build()),
        slipway_store::Layout::local(),
        clock,
    )
}

fn wire(functions: &Functions, runs: &Runs, store: Store, turns: u32) {
    let runs = Runs {
        store: store.clone(),
        ..runs.clone()
    };
    let target = TargetConfig {
        endpoint_url: None,
        http_client: None,
        ambient: Ambient::Sandbox,
        objects: None,
    };
    let services = StepServices {
        store,
        clock: runs.clock.clone(),
        aws: AwsTargets::new(target, runs.clock.clone()),
        secrets: Arc::new(NoSecrets),
    };
    let lanes = LaneFunctions {
        common: "lane".to_owned(),
        ecs: "lane".to_owned(),
    };
    let pipeline = slipway_fn_pipeline::Deps {
        runs: runs.clone(),
        lanes,
    };
    let lane = slipway_fn_lane_common::Deps {
        runs,
        services,
        find: slipway_fn_lane_common::find,
        budget: slipway_fn_lane_common::BUDGET,
        turns,
    };
    assert!(functions.wired.set((pipeline, lane)).is_ok());
}

fn client(engine: &Engine) -> aws_sdk_sfn::Client {
    let config = aws_sdk_sfn::Config::builder()
        .behavior_version_latest()
        .http_client(in_process(engine.router()))
        .endpoint_url("http://states.internal")
        .region(aws_sdk_sfn::config::Region::new(REGION))
        .credentials_provider(aws_sdk_sfn::config::Credentials::new(
            "a", "b", None, None, "test",
        ))
        .stalled_stream_protection(aws_sdk_sfn::config::StalledStreamProtectionConfig::disabled())
        .build();
    aws_sdk_sfn::Client::from_conf(config)
}

fn machine(name: &str) -> String {
    format!("arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:{name}")
}

fn activity() -> String {
    format!("arn:aws:states:{REGION}:{ACCOUNT}:activity:delegate")
}

async fn install(sfn: &aws_sdk_sfn::Client) {
    sfn.create_activity()
        .name("delegate")
        .send()
        .await
        .expect("an activity");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../statemachines");
    for name in ["lane", "stage", "pipeline"] {
        let text =
            std::fs::read_to_string(folder.join(format!("{name}.asl.json"))).expect("a file");
        let text = text
            .replace("${PipelineFunctionArn}", "pipeline")
            .replace("${StageMachineArn}", &machine("stage"))
            .replace("${LaneMachineArn}", &machine("lane"))
            .replace("${DelegateActivityArn}", &activity());
        let created = sfn
            .create_state_machine()
            .name(name)
            .definition(text)
            .role_arn(format!("arn:aws:iam::{ACCOUNT}:role/test"))
            .send()
            .await;
        created.unwrap_or_else(|error| panic!("{name}: {:?}", error.into_service_error()));
    }
}
