//! The service without a port, in a process and in virtual time: embedded store, the engine running the real
//! machines, the real functions, a sandbox account, and a delegate that plays scripts instead of running them.
//!
//! A [`tap::Tap`] stands between the functions and the services: it kills, refuses and delays.

mod api;
mod crashes;
mod delegate;
mod functions;
mod hooks;
mod look;
pub mod receiver;
pub mod registries;
mod service;
mod stillness;
pub mod tap;
pub mod ticket;
mod wiring;
pub mod yaml;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use secrecy::SecretString;
use slipway_asl::EngineConfig;
use slipway_clock::Clock;
use slipway_engine::error::RunError;
use slipway_engine::gather::SourceReader;
use slipway_engine::intake::listen;
use slipway_engine::rerun::{Rerun, rerun};
use slipway_engine::retry::{RetryRun, retry_run};
use slipway_engine::runs::Runs;
use slipway_engine::start::{StartRun, start_run};
use slipway_engine::undo::{UndoRun, undo_run};
use slipway_engine::unstarted::{Swept, start_accepted};
use slipway_fn_notify::MailServer;
use slipway_model::id::{AccountId, EntityId, OrgId, PrincipalId, ProjectId, RunId, Scope};
use slipway_model::status::Failure;
use slipway_model::{Kind, entity};
use slipway_plan::{
    ArtifactAnswer, ConnectorPlan, Fetched, ListedVersions, RemoteFiles, WantedArtifact,
};
use slipway_sandbox::{Pace, Sandbox, SandboxConfig};
use slipway_steps::aws::AwsTargets;
use slipway_steps::secrets::SecretSource;
use slipway_steps::{StepServices, registry};
use slipway_store::Store;
use slipway_store::embedded::Embedded;
use slipway_store::record::{EntityRecord, RunRecord};

pub use api::Api;
pub use delegate::Deeds;
use functions::Functions;
pub use hooks::Hooks;
use receiver::Receiver;
use service::Service;
use tap::{Crash, LIFE, Place, Tap, tapped};
use tokio::sync::Notify;
use wiring::{activity, install, install_hollow, machine, services, store, workflows};

const REGION: &str = "us-east-1";
const ACCOUNT: &str = "123456789012";

/// Executions that begin at once, as in a local mode of two processors.
const BEGIN_AT_ONCE: usize = 8;

/// 2026-01-01T00:00:00Z.
const NEW_YEAR_2026: i64 = 1_767_225_600;

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
    /// What people use: their completions of tokens pass the tap.
    pub people: Runs,
    /// The store, with no tap on it.
    pub store: Store,
    /// Kills functions, in a world without a tap of its own.
    pub crash: Arc<Crash>,
    /// The account that is deployed to.
    pub sandbox: Sandbox,
    /// What the delegate did.
    pub deeds: Deeds,
    aws: AwsTargets,
    embedded: Embedded,
    functions: Arc<Functions>,
    tap: Arc<dyn Tap>,
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
    /// What steps ask of registries.
    pub sources: Arc<dyn SourceReader>,
    /// When it begins.
    pub begins: Timestamp,
    /// The execution of a run ends as it begins, and no step runs: for those who only look at what is started.
    pub hollow: bool,
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
            sources: Arc::new(NoSources),
            begins: Timestamp::from_second(NEW_YEAR_2026).expect("a time"),
            hollow: false,
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

/// Lets time pass in a world.
pub async fn minutes(world: &World, minutes: u64) {
    let time = Duration::from_secs(60 * minutes);
    world.runs.clock.sleep(time).await;
}

/// The whole of a pipeline, started by hand and without inputs.
pub fn by_hand(pipeline: &str) -> StartRun {
    StartRun {
        scope: scope(),
        pipeline: EntityId::new(pipeline),
        branch: None,
        inputs_yaml: None,
        principal: PrincipalId::new("alex"),
        trigger: "MANUAL".to_owned(),
        chosen: None,
        origin: None,
        notes: String::new(),
        parent: None,
        fired: None,
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

/// The pipelines of these tests name no files of other places, and no registry answers them.
pub struct NoSources;

#[async_trait]
impl SourceReader for NoSources {
    async fn fetch_files(&self, wanted: &[RemoteFiles]) -> Vec<Result<Fetched, String>> {
        panic!("nothing here fetches {wanted:?}")
    }

    async fn find_artifacts(
        &self,
        wanted: &[WantedArtifact],
    ) -> Vec<Result<ArtifactAnswer, String>> {
        let unasked = |_: &WantedArtifact| {
            Ok(ArtifactAnswer::Unasked(
                "there is no registry in this world".to_owned(),
            ))
        };
        wanted.iter().map(unasked).collect()
    }

    async fn list_versions(
        &self,
        wanted: &WantedArtifact,
        _skip: usize,
        _most: usize,
    ) -> Result<ListedVersions, String> {
        panic!("nobody here lists {wanted:?}")
    }

    async fn test_connection(
        &self,
        _connector: &ConnectorPlan,
        _scope: &Scope,
    ) -> Option<Result<(), Failure>> {
        None
    }
}

/// The answer of a function that dies as the tap says: `None` when it did.
async fn in_danger<T>(work: impl Future<Output = T>) -> Option<T> {
    let life = Arc::new(Notify::new());
    tokio::select! {
        biased;
        answer = LIFE.scope(Arc::clone(&life), work) => Some(answer),
        () = life.notified() => None,
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.functions.unwire();
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
        let clock = Clock::paused(options.begins);
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
            begin_at_once: Some(BEGIN_AT_ONCE),
        };
        let engine = Service::start(config, functions.clone(), options.journal);
        let sfn = workflows(engine.router());
        let pipeline_machine = match options.hollow {
            true => install_hollow(&sfn).await,
            false => {
                install(&sfn).await;
                machine("pipeline")
            }
        };
        let runs = Runs {
            store: embedded.store(clock.clone()),
            workflows: sfn.clone(),
            clock: clock.clone(),
            pipeline_machine,
            notify_machine: Some(machine("notify")),
            errand_machine: Some(machine("errand")),
            url: Some("https://slipway.example.com".to_owned()),
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
        let mut services = StepServices {
            secrets: options.secrets,
            ..services(&tapped, &sandbox, &tap)
        };
        services.starts.sources = options.sources;
        let notify = slipway_fn_notify::Deps {
            runs: tapped.clone(),
            secrets: services.secrets.clone(),
            mail: options.mail,
            url: Some("https://slipway.example.com".to_owned()),
            pager_duty: options.pager_duty,
        };
        let aws = services.aws.clone();
        let handler = hooks::handler(&tapped, &tap);
        functions.wire(&tapped, &services, options.turns, notify, handler);
        let deeds = Deeds::default();
        let outside = crate::tap::tapped(Arc::clone(&tap), Place::Outside, engine.router());
        let outside = workflows(outside);
        let people = Runs {
            workflows: outside.clone(),
            ..runs.clone()
        };
        if !options.hollow {
            let work = delegate::work(outside, runs.store.clone(), activity(), deeds.clone());
            tokio::spawn(work);
        }
        Self {
            engine,
            sfn,
            store: runs.store.clone(),
            runs,
            tapped,
            people,
            crash,
            sandbox,
            deeds,
            aws,
            embedded,
            functions,
            tap,
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
                // A trigger, which nothing refers to, is one of its pipeline.
                parent: place.parent.clone().or_else(|| head.pipeline.clone()),
                id: place.id.clone(),
                name: head.name.clone(),
                description: None,
                tags: Vec::new(),
                entity_type: head.entity_type.clone(),
                yaml: slipway_model::emit::to_yaml(&parsed.tree),
                version: 0,
                created_ms: 0,
                updated_ms: 0,
                connection: None,
                git: None,
                saved_by: None,
            };
            if head.kind == Kind::Trigger {
                let listed = listen::before_saving(&self.runs, &record).await;
                listed.expect("a trigger that listens");
            }
            let (kind, parent) = (&record.kind, record.parent.as_ref());
            let before = self
                .store
                .find_entity(&record.scope, kind, parent, &record.id);
            let before = before.await.expect("read");
            let version = before.as_ref().map(|before| before.version);
            let stored = self.store.put_entity(&record, version).await;
            stored.expect("stored");
            if let (Kind::Trigger, Some(before)) = (head.kind, &before) {
                let unlisted = listen::after_saving(&self.runs, before, Some(&record)).await;
                unlisted.expect("a trigger that listens");
            }
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
        start_run(&self.runs, request, &registry::STEP_TYPES, &NoSources).await
    }

    /// Starts a run, with the tap between. What the tap kills never answers.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn start_in_danger(&self, request: StartRun) -> Result<RunRecord, RunError> {
        start_run(&self.tapped, request, &registry::STEP_TYPES, &NoSources).await
    }

    /// What the schedule does every minute, with the tap between.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn start_accepted(&self) -> Result<Swept, RunError> {
        start_accepted(&self.tapped).await
    }

    /// Starts a run that repeats another.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn rerun(&self, request: Rerun) -> Result<RunRecord, RunError> {
        rerun(&self.runs, request, &registry::STEP_TYPES, &NoSources).await
    }

    /// Starts a run that goes on where another failed.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn retry(&self, request: RetryRun) -> Result<RunRecord, RunError> {
        retry_run(&self.runs, request, &registry::STEP_TYPES, &NoSources).await
    }

    /// As [`World::retry`], in a function that dies as [`World::crash`] says: `None` when it did.
    pub async fn retry_in_danger(&self, request: RetryRun) -> Option<Result<RunRecord, RunError>> {
        let retried = retry_run(&self.tapped, request, &registry::STEP_TYPES, &NoSources);
        in_danger(retried).await
    }

    /// Starts a run that rolls another one back.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn undo(&self, request: UndoRun) -> Result<RunRecord, RunError> {
        undo_run(&self.runs, request).await
    }

    /// As [`World::undo`], in a function that dies as [`World::crash`] says: `None` when it did.
    pub async fn undo_in_danger(&self, request: UndoRun) -> Option<Result<RunRecord, RunError>> {
        in_danger(undo_run(&self.tapped, request)).await
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
        self.try_start(request).await
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
}
