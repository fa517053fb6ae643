//! The service without a port, in a process and in virtual time: embedded store, the engine running the real
//! machines, the real functions, a sandbox account, and a delegate that plays scripts instead of running them.
//!
//! A [`tap::Tap`] stands between the functions and the services: it kills, refuses and delays.

mod delegate;
mod functions;
pub mod receiver;
mod service;
pub mod tap;
pub mod yaml;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use slipway_asl::EngineConfig;
use slipway_clock::Clock;
use slipway_engine::error::RunError;
use slipway_engine::gather::FileSource;
use slipway_engine::rerun::{Rerun, rerun};
use slipway_engine::retry::{RetryRun, retry_run};
use slipway_engine::runs::Runs;
use slipway_engine::start::{StartRun, start_run};
use slipway_fn_notify::MailServer;
use slipway_model::entity;
use slipway_model::id::{AccountId, EntityId, OrgId, PrincipalId, ProjectId, RunId, Scope};
use slipway_model::status::Failure;
use slipway_plan::{Fetched, RemoteFiles};
use slipway_sandbox::{Pace, Sandbox, SandboxConfig};
use slipway_steps::aws::{Ambient, AwsTargets, TargetConfig};
use slipway_steps::context::Starts;
use slipway_steps::secrets::SecretSource;
use slipway_steps::{StepServices, registry};
use slipway_store::Store;
use slipway_store::embedded::{Embedded, in_process};
use slipway_store::record::{EntityRecord, RunRecord};

pub use delegate::Deeds;
use functions::Functions;
use receiver::Receiver;
use service::Service;
use tap::{Crash, LIFE, Place, Tap, tapped};
use tokio::sync::Notify;

const REGION: &str = "us-east-1";
const ACCOUNT: &str = "123456789012";

/// Everything.
pub struct World {
    /// Step Functions.
    pub engine: Service,
    /// A client of it that no tap is on.
    pub sfn: aws_sdk_sfn::Client,
    /// What the use cases need, with no tap on it.
    pub runs: Runs,
    /// The same, with the tap on it.
    tapped: Runs,
    /// The store, with no tap on it.
    pub store: Store,
    /// Kills functions, in a world without a tap of its own.
    pub crash: Arc<Crash>,
    /// The account that is deployed to.
    pub sandbox: Sandbox,
    /// What the delegate did.
    pub deeds: Deeds,
    embedded: Embedded,
}

/// What a world is like.
pub struct Options {
    /// Executions of lanes are given so many directives.
    pub turns: u32,
    /// What goes wrong; [`World::crash`] where none is given.
    pub tap: Option<Arc<dyn Tap>>,
    /// The tables are in memory, and nothing waits for a disk.
    pub in_memory: bool,
    /// File of the journal of Step Functions; without one it cannot be restarted.
    pub journal: Option<PathBuf>,
    /// Values of secrets; without them no test may ask for one.
    pub secrets: Arc<dyn SecretSource>,
    /// Steps call servers on real ports: time stands still while a function runs, so that no wait for an answer
    /// is cut short.
    pub real_servers: bool,
    /// Takes mails.
    pub mail: Option<MailServer>,
    /// Takes PagerDuty's events.
    pub pager_duty: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            turns: slipway_fn_lane_common::MOST_TURNS,
            tap: None,
            in_memory: false,
            journal: None,
            secrets: Arc::new(NoSecrets),
            real_servers: false,
            mail: None,
            pager_duty: String::new(),
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

/// The whole of a pipeline, started by hand and without inputs.
pub fn by_hand(pipeline: &str) -> StartRun {
    StartRun {
        scope: scope(),
        pipeline: EntityId::new(pipeline),
        inputs_yaml: None,
        principal: PrincipalId::new("alex"),
        trigger: "MANUAL".to_owned(),
        chosen: None,
        origin: None,
        notes: String::new(),
        parent: None,
    }
}

/// Every secret is there; its value tells its name.
struct Hidden;

#[async_trait]
impl SecretSource for Hidden {
    async fn value(&self, _scope: &Scope, reference: &str) -> Result<SecretString, Failure> {
        Ok(SecretString::from(format!("hidden-{reference}")))
    }
}

/// The project that everything is in.
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
    /// A world in which nothing goes wrong unless [`World::crash`] is armed.
    pub async fn new() -> Self {
        Self::with(Options::default()).await
    }

    /// Executions of lanes are given so many directives.
    pub async fn with_turns(turns: u32) -> Self {
        let options = Options {
            turns,
            ..Options::default()
        };
        Self::with(options).await
    }

    /// Notices that go to no place of their rule's choice go to a receiver.
    pub async fn with_receiver(receiver: &Receiver) -> Self {
        let options = Options {
            mail: Some(receiver.mail_server()),
            pager_duty: receiver.url("pagerduty"),
            secrets: Arc::new(Hidden),
            real_servers: true,
            ..Options::default()
        };
        Self::with(options).await
    }

    /// A world like this.
    ///
    /// # Panics
    /// Where it cannot be had, as on everything else that a test lacks.
    pub async fn with(options: Options) -> Self {
        let clock = Clock::paused("2026-01-01T00:00:00Z".parse().expect("a time"));
        let embedded = match options.in_memory {
            true => Embedded::in_memory(),
            false => Embedded::temporary(),
        };
        let embedded = embedded.expect("a store");
        let crash = Arc::<Crash>::default();
        let tap: Arc<dyn Tap> = options.tap.unwrap_or_else(|| crash.clone());
        let functions = Functions::new(Arc::clone(&tap), options.real_servers);
        let functions = Arc::new(functions);
        let config = EngineConfig {
            clock: clock.clone(),
            region: REGION.to_owned(),
            account: ACCOUNT.to_owned(),
        };
        let engine = Service::start(config, functions.clone(), options.journal);
        let sfn = workflows(engine.router());
        install(&sfn).await;
        let runs = Runs {
            store: embedded.store(clock.clone()),
            workflows: sfn.clone(),
            clock: clock.clone(),
            pipeline_machine: machine("pipeline"),
            notify_machine: Some(machine("notify")),
        };
        let sandbox = SandboxConfig {
            clock: clock.clone(),
            region: REGION.to_owned(),
            account: ACCOUNT.to_owned(),
            pace: Pace::realistic(),
        };
        let sandbox = Sandbox::open(None, sandbox).expect("an account in memory");
        // What the functions see, the tap between.
        let store = store(&embedded, &tap, clock.clone());
        let tapped = Runs {
            store,
            workflows: workflows(tapped(Arc::clone(&tap), Place::Workflows, engine.router())),
            ..runs.clone()
        };
        let services = StepServices {
            secrets: options.secrets,
            ..services(&tapped, &sandbox, &tap)
        };
        let notify = slipway_fn_notify::Deps {
            store: tapped.store.clone(),
            clock,
            secrets: services.secrets.clone(),
            mail: options.mail,
            url: Some("https://slipway.example.com".to_owned()),
            pager_duty: options.pager_duty,
        };
        functions.wire(&tapped, &services, options.turns, notify);
        let deeds = Deeds::default();
        let work = delegate::work(sfn.clone(), runs.store.clone(), activity(), deeds.clone());
        tokio::spawn(work);
        Self {
            engine,
            sfn,
            store: runs.store.clone(),
            runs,
            tapped,
            crash,
            sandbox,
            deeds,
            embedded,
        }
    }

    /// Stores entities, each a document of its own.
    ///
    /// # Panics
    /// When one is not valid.
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

    /// Starts a pipeline by hand.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn start(&self, pipeline: &str) -> RunId {
        let run = self.try_start(by_hand(pipeline)).await;
        run.unwrap_or_else(|error| panic!("{}", error.full_text()))
            .id
    }

    /// Starts a run.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn try_start(&self, request: StartRun) -> Result<RunRecord, RunError> {
        start_run(&self.runs, request, &registry::STEP_TYPES, &NoFiles).await
    }

    /// Starts a run that repeats another.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn rerun(&self, request: Rerun) -> Result<RunRecord, RunError> {
        rerun(&self.runs, request, &registry::STEP_TYPES, &NoFiles).await
    }

    /// Starts a run that goes on where another failed.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn retry(&self, request: RetryRun) -> Result<RunRecord, RunError> {
        retry_run(&self.runs, request, &registry::STEP_TYPES, &NoFiles).await
    }

    /// As [`World::retry`], in a function that dies as [`World::crash`] says: `None` when it did.
    pub async fn retry_in_danger(&self, request: RetryRun) -> Option<Result<RunRecord, RunError>> {
        let life = Arc::new(Notify::new());
        let retried = retry_run(&self.tapped, request, &registry::STEP_TYPES, &NoFiles);
        tokio::select! {
            biased;
            answer = LIFE.scope(Arc::clone(&life), retried) => Some(answer),
            () = life.notified() => None,
        }
    }

    /// Starts a pipeline as this type of trigger does.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn start_by(&self, pipeline: &str, trigger: &str) -> Result<RunRecord, RunError> {
        let request = StartRun {
            trigger: trigger.to_owned(),
            ..by_hand(pipeline)
        };
        start_run(&self.runs, request, &registry::STEP_TYPES, &NoFiles).await
    }

    /// Waits until a run's execution has ended.
    ///
    /// # Panics
    /// When it does not end within two weeks.
    pub async fn finish(&self, run: &RunId) -> RunRecord {
        let mut pause = Duration::from_secs(5);
        for _ in 0..2_000 {
            if self.has_ended(run).await {
                return self.store.get_run(run).await.expect("the run");
            }
            self.runs.clock.sleep(pause).await;
            // A look costs more than the virtual time between two.
            pause = (pause * 5 / 4).min(Duration::from_secs(600));
        }
        panic!("run {run} does not end");
    }

    /// Whether the execution of a run has ended.
    ///
    /// # Panics
    /// When there is none.
    pub async fn has_ended(&self, run: &RunId) -> bool {
        let arn = format!("arn:aws:states:{REGION}:{ACCOUNT}:execution:pipeline:{run}");
        let seen = self
            .sfn
            .describe_execution()
            .execution_arn(arn)
            .send()
            .await;
        seen.expect("the execution of the run").status
            != aws_sdk_sfn::types::ExecutionStatus::Running
    }

    /// Status of the run, then of its stages, then of its nodes, in the order of the plan.
    ///
    /// # Panics
    /// When the store cannot be read.
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
    ///
    /// # Panics
    /// When there is no such execution.
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

    /// Calls ECS in the account that is deployed to, with no tap between.
    ///
    /// # Panics
    /// When it does not answer in JSON.
    pub async fn ecs(&self, operation: &str, request: &serde_json::Value) -> serde_json::Value {
        use tower::ServiceExt as _;
        let target = format!("AmazonEC2ContainerServiceV20141113.{operation}");
        let scope = format!("AKIASLIPWAYSANDBOX00/20260101/{REGION}/ecs/aws4_request");
        let request = axum::http::Request::post("/")
            .header("x-amz-target", target)
            .header("content-type", "application/x-amz-json-1.1")
            .header(
                "authorization",
                format!("AWS4-HMAC-SHA256 Credential={scope}"),
            )
            .body(axum::body::Body::from(request.to_string()))
            .expect("a request");
        let answer = self.sandbox.router().oneshot(request).await;
        let body = answer.expect("an answer").into_body();
        let body = axum::body::to_bytes(body, 1 << 24).await.expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    }

    /// Holds of infrastructures and queues that somebody has or waits for, whatever run they are of.
    ///
    /// # Panics
    /// When the tables cannot be read.
    pub async fn holds(&self) -> Vec<String> {
        let layout = slipway_store::Layout::local();
        let dynamodb = self.embedded.dynamodb();
        let scan = dynamodb.scan().table_name(&layout.runs);
        let items = scan
            .into_paginator()
            .items()
            .send()
            .collect::<Result<Vec<_>, _>>();
        let items = items.await.expect("the table of runs");
        let text = |item: &std::collections::HashMap<String, _>, name: &str| {
            let value: Option<&aws_sdk_dynamodb::types::AttributeValue> = item.get(name);
            value
                .and_then(|value| value.as_s().ok())
                .cloned()
                .unwrap_or_default()
        };
        let held = items.iter().filter_map(|item| {
            let (key, queue) = (text(item, "pk"), text(item, "queue"));
            (key.starts_with("hold#") && queue != "[]").then(|| format!("{key} {queue}"))
        });
        held.collect()
    }

    /// The causes of what failed in an execution.
    ///
    /// # Panics
    /// When there is no such execution.
    pub async fn reasons(&self, machine: &str, name: &str) -> String {
        let arn = format!("arn:aws:states:{REGION}:{ACCOUNT}:execution:{machine}:{name}");
        let history = self.sfn.get_execution_history().execution_arn(arn);
        let history = history.send().await.expect("a history");
        let failed = history.events().iter();
        let failed = failed.filter_map(|event| event.task_failed_event_details());
        failed
            .filter_map(|details| details.cause())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Nothing that a run needed is left: no open wait, no execution that still runs.
    ///
    /// # Panics
    /// When something is.
    pub async fn assert_clean(&self, run: &RunId) {
        let waits = self.store.list_waits(run).await.expect("the waits");
        assert_eq!(waits, [], "waits are left behind");
        assert_eq!(self.engine.counters().open, 0, "executions are left behind");
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

/// A store whose requests pass the tap.
fn store(embedded: &Embedded, tap: &Arc<dyn Tap>, clock: Clock) -> Store {
    let router = tapped(Arc::clone(tap), Place::Store, embedded.router());
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

/// What steps may touch, the tap between.
fn services(runs: &Runs, sandbox: &Sandbox, tap: &Arc<dyn Tap>) -> StepServices {
    let account = tapped(Arc::clone(tap), Place::Target, sandbox.router());
    let target = TargetConfig {
        endpoint_url: Some("http://sandbox.internal".to_owned()),
        http_client: Some(in_process(account)),
        ambient: Ambient::Sandbox,
        objects: None,
    };
    StepServices {
        store: runs.store.clone(),
        clock: runs.clock.clone(),
        aws: AwsTargets::new(target, runs.clock.clone()),
        secrets: Arc::new(NoSecrets),
        starts: Starts {
            runs: runs.clone(),
            files: Arc::new(NoFiles),
        },
    }
}

fn workflows(router: axum::Router) -> aws_sdk_sfn::Client {
    let config = aws_sdk_sfn::Config::builder()
        .behavior_version_latest()
        .http_client(in_process(router))
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
    for name in ["notify", "lane", "stage", "pipeline"] {
        let text =
            std::fs::read_to_string(folder.join(format!("{name}.asl.json"))).expect("a file");
        let text = text
            .replace("${NotifyFunctionArn}", "notify")
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
