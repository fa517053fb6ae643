//! Local mode: the whole service in one process, over one data directory, behind one port.
//!
//! The function handlers and the state machines are those of AWS; the engine, the tables, the objects and
//! (unless told otherwise) the target account are embedded. Every AWS call goes through the SDK, without
//! a socket.

mod account_functions;
pub(crate) mod data_dir;
pub(crate) mod documents;
pub(crate) mod events;
mod functions;
mod integrations;
mod invoke;
mod machines;
pub mod objects;
pub mod place;
pub(crate) mod port;
mod queue;
mod schedule;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use aws_credential_types::Credentials;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use secrecy::SecretString;
use slipway_asl::{Engine, EngineConfig};
use slipway_clock::Clock;
use slipway_engine::gather::SourceReader;
use slipway_engine::intake::handler::Handler;
use slipway_engine::runs::Runs;
use slipway_fn_api::{NewToken, Permission};
use slipway_fn_notify::MailServer;
use slipway_model::id::{AccountId, PrincipalId};
use slipway_sandbox::{Pace, Sandbox, SandboxConfig};
use slipway_source::{Source, SourceConfig};
use slipway_steps::StepServices;
use slipway_steps::aws::oidc::Issuer;
use slipway_steps::aws::{Ambient, AwsTargets, Objects, TargetConfig};
use slipway_steps::context::Starts;
use slipway_steps::secrets::{KeptSecrets, SecretSource};
use slipway_store::Store;
use slipway_store::embedded::{Embedded, in_process, loopback};
use slipway_store::layout::Layout;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::args::{LocalArgs, PaceArg, Target};
use crate::delegate::{self, DelegateConfig};
use crate::exit::Exit;
use crate::token;

use account_functions::AccountFunctions;
use data_dir::DataDir;
use documents::HttpDocuments;
use events::Events;
use functions::Functions;
use integrations::Integrations;
use objects::EmbeddedObjects;
use port::Services;
use queue::Queue;

/// Endpoint of in-process clients: nothing resolves or connects to it.
const IN_PROCESS: &str = "http://slipway.internal";

/// Name of the embedded delegate.
const DELEGATE: &str = "local";

/// Its folder in the data directory.
const DELEGATE_FOLDER: &str = "delegate";

/// A log stream of local mode stays open so long; its client then comes again.
const STREAM_LIMIT: Duration = Duration::from_secs(600);

/// How local mode is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its data.
    pub data_dir: PathBuf,
    /// Its time.
    pub clock: Clock,
    /// What the command line said.
    pub local: LocalArgs,
}

/// Calls counted since the start, for cost reports and benchmarks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// States entered.
    pub transitions: u64,
    /// Writes of the tables.
    pub writes: u64,
    /// Reads of the tables.
    pub reads: u64,
}

/// A running local mode.
pub struct Running {
    url: String,
    token: String,
    token_path: PathBuf,
    minted: bool,
    store: Store,
    engine: Engine,
    sandbox: Sandbox,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Held until the end: a second process on the directory is refused.
    _data_dir: DataDir,
}

/// `slipway local`: serves until Ctrl-C or SIGTERM.
///
/// # Errors
/// When it cannot start: the directory is in use or of a newer version, the port is taken, …
pub async fn serve(clock: &Clock, data_dir: &Path, local: LocalArgs) -> anyhow::Result<Exit> {
    let options = Options {
        data_dir: data_dir.to_path_buf(),
        clock: clock.clone(),
        local,
    };
    let running = start(options).await?;
    if running.minted {
        anstream::eprintln!(
            "API token, also in {}: {}",
            running.token_path(),
            running.token()
        );
    }
    crate::output::line(&format!("listening on {}", running.url()))?;
    interrupted().await?;
    anstream::eprintln!("stopping; open runs go on at the next start");
    running.stop().await?;
    Ok(Exit::Succeeded)
}

/// Starts local mode and answers requests from then on.
///
/// # Errors
/// As [`serve`].
pub async fn start(options: Options) -> anyhow::Result<Running> {
    let Options {
        data_dir,
        clock,
        local,
    } = options;
    let data_dir = DataDir::open(&data_dir)?;
    let listener = TcpListener::bind(local.listen)
        .await
        .with_context(|| format!("listening on {}: is another service there?", local.listen))?;
    let address = listener.local_addr().context("asking for the port")?;
    let parts = Parts::open(&data_dir, &clock, &local, address)?;
    let (token, minted) = parts.prepare(&data_dir, &clock).await?;
    let held = delegate::held(&data_dir.join(DELEGATE_FOLDER))?;
    parts.engine.resume_after(DELEGATE, &held);
    let stop = CancellationToken::new();
    let tasks = TaskTracker::new();
    let running = Running {
        url: format!("http://{address}"),
        token_path: data_dir.join("token"),
        token,
        minted,
        store: parts.runs.store.clone(),
        engine: parts.engine.clone(),
        sandbox: parts.sandbox.clone(),
        stop: stop.clone(),
        tasks: tasks.clone(),
        _data_dir: data_dir,
    };
    tasks.spawn(listen(listener, parts.services(), address, stop.clone()));
    let sandbox = parts.sandbox.clone();
    tasks.spawn(
        stop.clone()
            .run_until_cancelled_owned(async move { sandbox.run().await }),
    );
    tasks.spawn(schedule::run(
        parts.functions.clone(),
        clock.clone(),
        stop.clone(),
    ));
    if local.delegate_tasks > 0 {
        tasks.spawn(work(
            running.delegate(&local),
            parts.states.clone(),
            clock,
            stop,
        ));
    }
    Ok(running)
}

/// What the process is made of.
struct Parts {
    embedded: Embedded,
    sandbox: Sandbox,
    engine: Engine,
    states: aws_sdk_sfn::Client,
    runs: Runs,
    sources: Arc<dyn SourceReader>,
    aws: AwsTargets,
    functions: Arc<Functions>,
}

impl Parts {
    fn open(
        data_dir: &DataDir,
        clock: &Clock,
        local: &LocalArgs,
        address: SocketAddr,
    ) -> anyhow::Result<Self> {
        let embedded = Embedded::open(&data_dir.join("store"))?;
        let sandbox = Sandbox::open(
            Some(&data_dir.join("sandbox.redb")),
            SandboxConfig {
                clock: clock.clone(),
                region: place::REGION.to_owned(),
                account: place::AWS_ACCOUNT.to_owned(),
                pace: match local.pace {
                    PaceArg::Brisk => Pace::brisk(),
                    PaceArg::Realistic => Pace::realistic(),
                },
            },
        )?;
        sandbox.read_objects_from(Arc::new(EmbeddedObjects {
            client: embedded.s3(),
            own_bucket: Layout::local().bucket,
        }));
        sandbox.read_documents_with(Arc::new(HttpDocuments));
        sandbox.known_as(format!("http://{address}"));
        let code = data_dir.join("functions");
        sandbox
            .run_functions_in(&code)
            .with_context(|| format!("emptying the folder {}", code.display()))?;
        let account = AccountFunctions::new(&sandbox, clock.clone());
        let functions = Arc::new(Functions::new(account));
        let config = EngineConfig {
            clock: clock.clone(),
            region: place::REGION.to_owned(),
            account: place::AWS_ACCOUNT.to_owned(),
            begin_at_once: Some(begin_at_once()),
        };
        let integrations = Arc::new(Integrations {
            s3: embedded.s3(),
            store: embedded.router(),
            own_bucket: Layout::local().bucket,
        });
        let journal = data_dir.join("executions.db");
        let engine =
            Engine::with_services(Some(&journal), config, functions.clone(), integrations)?;
        let states = states_client(in_process(engine.router()));
        let runs = Runs {
            store: embedded.store(clock.clone()),
            workflows: states.clone(),
            clock: clock.clone(),
            pipeline_machine: place::machine("slipway-pipeline"),
            notify_machine: Some(place::machine("slipway-notify")),
            errand_machine: Some(place::machine("slipway-errand")),
            url: Some(public_url(address)),
        };
        let issuer = Issuer::new(&public_url(address), embedded.secrets(), clock.clone());
        let targets = targets(local.target, &sandbox, &embedded);
        let aws = AwsTargets::with_issuer(targets, clock.clone(), Some(issuer));
        let secrets: Arc<dyn SecretSource> =
            Arc::new(KeptSecrets::new(embedded.secrets(), runs.store.clone()));
        let source = SourceConfig {
            // Who reaches the port from outside must not read this machine.
            local_files: local.listen.ip().is_loopback(),
            ..SourceConfig::default()
        };
        let sources = Source::new(source, aws.clone(), secrets.clone(), clock.clone());
        let sources: Arc<dyn SourceReader> = Arc::new(sources);
        let services = StepServices {
            store: runs.store.clone(),
            clock: clock.clone(),
            aws,
            secrets,
            starts: Starts {
                runs: runs.clone(),
                sources: sources.clone(),
            },
        };
        let mail = MailServer::from_env().context("reading which server takes mails")?;
        let url = format!("http://{address}");
        functions.wire(
            &runs,
            &services,
            mail,
            url,
            handler(&functions, &runs.clock),
        );
        Ok(Self {
            embedded,
            sandbox,
            engine,
            states,
            runs,
            sources,
            aws: services.aws.clone(),
            functions,
        })
    }

    /// Installs the machines, makes the first entities and the token; whether the token is new.
    async fn prepare(&self, data_dir: &DataDir, clock: &Clock) -> anyhow::Result<(String, bool)> {
        machines::install(&self.states).await?;
        let account = AccountId::new(place::ACCOUNT);
        slipway_fn_api::bootstrap(&self.runs.store, clock, &account).await?;
        let path = data_dir.join("token");
        if let Ok(text) = std::fs::read_to_string(&path) {
            let text = text.trim().to_owned();
            token::account(&text).with_context(|| format!("reading {}", path.display()))?;
            if slipway_fn_api::is_known(&self.runs.store, &text).await? {
                return Ok((text, false));
            }
            tracing::warn!(
                "the tables do not have the token of {}: a new one is made",
                path.display()
            );
        }
        let token = slipway_fn_api::mint_token(
            &self.runs.store,
            NewToken {
                account,
                principal: PrincipalId::new("admin"),
                name: "first start".to_owned(),
                permission: Permission::Admin,
                now_ms: clock.now_ms(),
                valid_to_ms: 0,
            },
        )
        .await?;
        data_dir.write_private("token", &format!("{token}\n"))?;
        Ok((token, true))
    }

    fn services(&self) -> Services {
        let secrets = self.embedded.secrets();
        let sources = self.sources.clone();
        let aws = self.aws.clone();
        let intake = handler(&self.functions, &self.runs.clock);
        let hooks = slipway_fn_webhook::Deps::new(
            self.runs.clone(),
            secrets.clone(),
            intake.lambda.clone(),
            intake.function.clone(),
        );
        let deps =
            slipway_fn_api::Deps::new(self.runs.clone(), secrets, sources, aws, STREAM_LIMIT)
                .with_intake(intake);
        let api = slipway_fn_api::router(deps);
        Services {
            api: slipway_fn_webhook::router(hooks).fallback_service(api),
            states: self.engine.router(),
            store: self.embedded.router(),
            sandbox: self.sandbox.router(),
            events: Events::new(self.functions.clone(), self.runs.clock.clone()),
        }
    }
}

/// Has the functions of this process handle what was accepted.
fn handler(functions: &Arc<Functions>, clock: &Clock) -> Handler {
    let queue = Queue::new(functions.clone(), clock.clone(), begin_at_once());
    Handler {
        lambda: invoke::client(queue),
        function: place::function("slipway-trigger"),
    }
}

/// How many runs begin, and events are handled, at once while others come: enough to keep the processors busy where each waits for
/// the disk, and few beside the requests that bring them.
fn begin_at_once() -> usize {
    std::thread::available_parallelism().map_or(4, |cores| 4 * cores.get())
}

/// How the world knows this process, for the identity tokens that it signs: AWS itself takes no others than `https` ones.
fn public_url(address: SocketAddr) -> String {
    let named = std::env::var("SLIPWAY_PUBLIC_URL").unwrap_or_default();
    match named.trim() {
        "" => format!("http://{address}"),
        named => named.to_owned(),
    }
}

fn targets(target: Target, sandbox: &Sandbox, embedded: &Embedded) -> TargetConfig {
    match target {
        Target::Sandbox => TargetConfig {
            endpoint_url: Some(IN_PROCESS.to_owned()),
            http_client: Some(in_process(sandbox.router())),
            ambient: Ambient::Sandbox,
            objects: Some(Objects {
                client: embedded.s3(),
                own_bucket: Layout::local().bucket,
            }),
        },
        // Another account that speaks AWS's protocols, where `SLIPWAY_TARGET_ENDPOINT` names one.
        Target::Aws => TargetConfig::from_env(),
    }
}

fn states_client(http: SharedHttpClient) -> aws_sdk_sfn::Client {
    let mut config = aws_sdk_sfn::Config::builder()
        .behavior_version_latest()
        .http_client(http)
        .endpoint_url(IN_PROCESS)
        .region(aws_sdk_sfn::config::Region::new(place::REGION))
        // Nobody looks at a signature in this process.
        .allow_no_auth()
        .stalled_stream_protection(aws_sdk_sfn::config::StalledStreamProtectionConfig::disabled());
    config.push_interceptor(loopback());
    aws_sdk_sfn::Client::from_conf(config.build())
}

async fn listen(
    listener: TcpListener,
    services: Services,
    address: SocketAddr,
    stop: CancellationToken,
) {
    let router = services.router(address.ip().is_loopback());
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let served = axum::serve(listener, service).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(why) = served.await {
        tracing::error!(error = %why, "the port is no longer served");
    }
}

async fn work(
    config: DelegateConfig,
    states: aws_sdk_sfn::Client,
    clock: Clock,
    stop: CancellationToken,
) {
    if let Err(why) = delegate::run(config, states, reqwest::Client::new(), clock, stop).await {
        tracing::error!(error = %why, "the embedded delegate stopped: scripts wait for another one");
    }
}

/// Returns at Ctrl-C or SIGTERM.
pub(crate) async fn interrupted() -> anyhow::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("listening for SIGTERM")?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed.context("listening for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}

impl Running {
    /// Base URL of its port.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A token that may do everything.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Where the token is kept.
    pub fn token_path(&self) -> String {
        self.token_path.display().to_string()
    }

    /// What was counted since the start.
    pub fn counters(&self) -> Counters {
        Counters {
            transitions: self.engine.transitions(),
            writes: self.store.writes(),
            reads: self.store.reads(),
        }
    }

    /// Makes an ECS cluster in the sandbox account.
    ///
    /// # Errors
    /// When the account refuses it.
    pub async fn create_cluster(&self, region: &str, name: &str) -> anyhow::Result<()> {
        let config = aws_sdk_ecs::Config::builder()
            .behavior_version_latest()
            .http_client(in_process(self.sandbox.router()))
            .endpoint_url(IN_PROCESS)
            .region(aws_sdk_ecs::config::Region::new(region.to_owned()))
            .credentials_provider(Credentials::new(
                "slipway",
                "slipway-local",
                None,
                None,
                "local",
            ))
            .build();
        let ecs = aws_sdk_ecs::Client::from_conf(config);
        let create = ecs.create_cluster().cluster_name(name);
        create
            .send()
            .await
            .with_context(|| format!("creating the cluster {name}"))?;
        Ok(())
    }

    fn delegate(&self, local: &LocalArgs) -> DelegateConfig {
        let folder = self
            .token_path
            .parent()
            .map_or_else(PathBuf::new, Path::to_path_buf);
        DelegateConfig {
            name: DELEGATE.to_owned(),
            base_url: self.url.clone(),
            token: SecretString::from(self.token.clone()),
            activity_arn: place::delegate_activity(),
            selectors: local.delegate_tags.clone(),
            work_dir: folder.join(DELEGATE_FOLDER),
            tasks: local.delegate_tasks,
            heartbeat: delegate::HEARTBEAT,
        }
    }

    /// Stops; open runs go on at the next start on the same directory.
    ///
    /// # Errors
    /// None by now; the signature leaves room for a failing flush.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.tasks.close();
        let limit = Duration::from_secs(10);
        if tokio::time::timeout(limit, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("some requests were still open after {} s", limit.as_secs());
        }
        self.engine.shutdown().await;
        Ok(())
    }
}
