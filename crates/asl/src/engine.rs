//! The engine: what is open, how executions start, and how everything stops.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use slipway_clock::Clock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::activity::Activities;
use crate::arn::{Home, check_name};
use crate::definition::{self, Definition};
use crate::driver::{self, Signal};
use crate::effect::Lambda;
use crate::error::{ApiError, JournalError, OpenError};
use crate::journal::Journal;
use crate::record::{Execution, Machine, Parent, Phase, Revision, Status};
use crate::run::{LONGEST_PAYLOAD, Run, World};
use crate::sync::lock;

/// Locks that serialise starts with the same name.
const START_LOCKS: usize = 64;
/// Parsed definitions kept; more than that and the cache starts anew.
const MOST_DEFINITIONS: usize = 256;

/// What an engine is told about where it stands.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Time for everything: waits, timeouts, and the stamps of history.
    pub clock: Clock,
    /// Region in ARNs and in `TaskScheduled` events.
    pub region: String,
    /// Account id in ARNs.
    pub account: String,
}

/// What an engine has done since it was opened, for cost reports and benchmarks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// States entered: what AWS bills as state transitions.
    pub transitions: u64,
    /// History events recorded.
    pub events: u64,
    /// Commits of the journal.
    pub commits: u64,
    /// Steps that those commits carried; above `commits` where executions shared one.
    pub steps: u64,
    /// Keys written or deleted.
    pub writes: u64,
    /// Executions open now.
    pub open: u64,
}

/// A Step Functions service in a process. Cheap to clone: clones are the same engine.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) home: Home,
    pub(crate) clock: Clock,
    pub(crate) lambda: Arc<dyn Lambda>,
    pub(crate) journal: Journal,
    pub(crate) activities: Activities,
    /// Ends every driver and everything that a driver started.
    pub(crate) stop: CancellationToken,
    tasks: TaskTracker,
    definitions: Mutex<HashMap<String, Arc<Definition>>>,
    drivers: Mutex<HashMap<u64, mpsc::UnboundedSender<Signal>>>,
    starts: Vec<tokio::sync::Mutex<()>>,
    /// Serialises changes of machines and activities.
    pub(crate) changes: tokio::sync::Mutex<()>,
    transitions: AtomicU64,
    events: AtomicU64,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("home", &self.0.home)
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

/// A request to start an execution.
pub(crate) struct Start {
    pub(crate) machine: String,
    pub(crate) name: Option<String>,
    pub(crate) input: String,
    pub(crate) parent: Option<Parent>,
    pub(crate) trace: Option<String>,
}

impl Engine {
    /// Opens the journal at `path`, creating it if there is none. Nothing moves before [`Engine::resume`].
    ///
    /// # Errors
    ///
    /// When the file cannot be opened (another process has it, no permission, not a journal), is from a
    /// newer version, or cannot be read.
    pub fn open(
        path: &Path,
        config: EngineConfig,
        lambda: Arc<dyn Lambda>,
    ) -> Result<Self, OpenError> {
        Self::with_journal(Journal::open(Some(path))?, config, lambda)
    }

    /// An engine that keeps everything in memory, for tests.
    ///
    /// # Errors
    ///
    /// As [`Engine::open`]; in practice never.
    pub fn in_memory(config: EngineConfig, lambda: Arc<dyn Lambda>) -> Result<Self, OpenError> {
        Self::with_journal(Journal::open(None)?, config, lambda)
    }

    fn with_journal(
        journal: Journal,
        config: EngineConfig,
        lambda: Arc<dyn Lambda>,
    ) -> Result<Self, OpenError> {
        let activities = Activities::default();
        let known = journal
            .activities("", usize::MAX)
            .map_err(|source| OpenError::Open {
                path: "the list of activities".to_owned(),
                source,
            })?;
        for activity in known {
            activities.add(&activity.arn);
        }
        Ok(Self(Arc::new(Inner {
            home: Home {
                region: config.region,
                account: config.account,
            },
            clock: config.clock,
            lambda,
            journal,
            activities,
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            definitions: Mutex::default(),
            drivers: Mutex::default(),
            starts: (0..START_LOCKS)
                .map(|_| tokio::sync::Mutex::default())
                .collect(),
            changes: tokio::sync::Mutex::default(),
            transitions: AtomicU64::new(0),
            events: AtomicU64::new(0),
        })))
    }

    /// Starts driving every open execution. Call once, inside a Tokio runtime.
    ///
    /// An execution whose records cannot be read is logged and left as it is; the others go on.
    pub fn resume(&self) {
        let inner = &self.0;
        let open = match inner.journal.open_executions() {
            Ok(open) => open,
            Err(error) => {
                tracing::error!(error = %ApiError::internal(&error), "cannot list open executions");
                return;
            }
        };
        let mut runs = HashMap::new();
        for number in open {
            match inner.load(number) {
                Ok(Some(run)) => {
                    runs.insert(number, run);
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(number, error = %ApiError::internal(&error), "cannot resume an execution");
                }
            }
        }
        let orphans: Vec<u64> = runs
            .values()
            .filter(|run| {
                run.execution.parent.is_some_and(|parent| {
                    parent.waits
                        && !runs
                            .get(&parent.execution)
                            .is_some_and(|p| p.awaits(parent.branch, parent.attempt))
                })
            })
            .map(|run| run.number)
            .collect();
        let mut runs: Vec<Run> = runs.into_values().collect();
        runs.sort_by_key(|run| run.number);
        for run in runs {
            inner.spawn_driver(run);
        }
        for execution in orphans {
            inner.signal(
                execution,
                Signal::Stop {
                    error: None,
                    cause: None,
                    reply: None,
                },
            );
        }
    }

    /// Step Functions' API: `POST /` with `X-Amz-Target: AWSStepFunctions.<operation>`.
    pub fn router(&self) -> axum::Router {
        crate::http::router(self.clone())
    }

    /// States entered since the engine was opened.
    pub fn transitions(&self) -> u64 {
        self.0.transitions.load(Ordering::Relaxed)
    }

    /// Everything that is counted.
    pub fn counters(&self) -> Counters {
        let usage = &self.0.journal.usage;
        Counters {
            transitions: self.transitions(),
            events: self.0.events.load(Ordering::Relaxed),
            commits: usage.commits.load(Ordering::Relaxed),
            steps: usage.batches.load(Ordering::Relaxed),
            writes: usage.writes.load(Ordering::Relaxed),
            open: lock(&self.0.drivers).len() as u64,
        }
    }

    /// Stops driving. What was committed stays; functions under way are let go, and invoked again by the
    /// next engine on the same file. The file is closed when the last clone and router are dropped.
    pub async fn shutdown(self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

impl World for Inner {
    fn activity_exists(&self, arn: &str) -> bool {
        self.activities.exists(arn)
    }

    fn region(&self) -> &str {
        &self.home.region
    }
}

impl Inner {
    /// Runs `work` until it ends or the engine shuts down.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            stop.run_until_cancelled(work).await;
        });
    }

    pub(crate) fn count(&self, transitions: u64, events: u64) {
        self.transitions.fetch_add(transitions, Ordering::Relaxed);
        self.events.fetch_add(events, Ordering::Relaxed);
    }

    /// Tells an open execution something.
    pub(crate) fn signal(&self, execution: u64, signal: Signal) {
        let driver = lock(&self.drivers).get(&execution).cloned();
        let undelivered = match driver {
            Some(driver) => driver.send(signal).err().map(|error| error.0),
            None => Some(signal),
        };
        if let Some(signal) = undelivered {
            driver::undelivered(self, signal);
        }
    }

    /// Whether an execution is being driven.
    pub(crate) fn is_driven(&self, execution: u64) -> bool {
        lock(&self.drivers).contains_key(&execution)
    }

    pub(crate) fn forget_driver(&self, execution: u64) {
        lock(&self.drivers).remove(&execution);
    }

    fn spawn_driver(self: &Arc<Self>, run: Run) {
        let (sender, mailbox) = mpsc::unbounded_channel();
        lock(&self.drivers).insert(run.number, sender);
        self.tasks
            .spawn(driver::drive(Arc::clone(self), run, mailbox));
    }

    /// An open execution as the journal has it; `None` if it is not open.
    pub(crate) fn load(&self, number: u64) -> Result<Option<Run>, JournalError> {
        let Some(execution) = self.journal.execution(number)? else {
            return Ok(None);
        };
        if execution.status != Status::Running {
            return Ok(None);
        }
        let Some(definition) = self.definition(&execution.revision)? else {
            return Ok(None);
        };
        let branches = self.journal.branches(number)?;
        let last_event = self.journal.last_event(number)?;
        let now = self.clock.now();
        Ok(Some(Run::resume(
            number, execution, definition, branches, last_event, now,
        )))
    }

    /// The parsed definition of a revision.
    fn definition(&self, revision: &str) -> Result<Option<Arc<Definition>>, JournalError> {
        if let Some(definition) = lock(&self.definitions).get(revision) {
            return Ok(Some(Arc::clone(definition)));
        }
        let Some(Revision { definition, .. }) = self.journal.revision(revision)? else {
            return Ok(None);
        };
        match definition::parse(&definition) {
            Ok(parsed) => {
                let parsed = Arc::new(parsed);
                let mut cache = lock(&self.definitions);
                if cache.len() >= MOST_DEFINITIONS {
                    cache.clear();
                }
                cache.insert(revision.to_owned(), Arc::clone(&parsed));
                Ok(Some(parsed))
            }
            Err(error) => {
                tracing::error!(revision, %error, "a stored definition is not accepted any more");
                Ok(None)
            }
        }
    }

    /// Starts an execution, or finds the one that the same request started before: Step Functions'
    /// idempotency by name (API reference, `StartExecution`).
    pub(crate) async fn start(
        self: &Arc<Self>,
        request: Start,
    ) -> Result<(u64, Execution), ApiError> {
        crate::arn::check(&request.machine, "stateMachine")?;
        if let Some(name) = &request.name {
            check_name(name)?;
        }
        if request.input.len() > LONGEST_PAYLOAD {
            return Err(ApiError::validation(format!(
                "1 validation error detected: Value at 'input' failed to satisfy constraint: Member must have length less than or equal to {LONGEST_PAYLOAD}"
            )));
        }
        let input: Value = serde_json::from_str(&request.input).map_err(|error| {
            ApiError::new(
                "InvalidExecutionInput",
                format!("Invalid State Machine Execution Input: '{error}'"),
            )
        })?;
        let machine = self.journal.machine(&request.machine)?;
        let machine = machine.ok_or_else(|| machine_does_not_exist(&request.machine))?;
        let name = request
            .name
            .clone()
            .unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let arn = self.home.execution(&machine.name, &name);
        let _turn = self.start_lock(&arn).lock().await;
        if let Some(number) = self.journal.execution_number(&arn)?
            && let Some(execution) = self.journal.execution(number)?
        {
            return same_or_refused(number, execution, &request);
        }
        let execution = self.execution(arn, name, machine, request);
        self.start_new(execution, input).await
    }

    fn start_lock(&self, arn: &str) -> &tokio::sync::Mutex<()> {
        let mut hasher = DefaultHasher::new();
        arn.hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % START_LOCKS as u64).unwrap_or_default();
        &self.starts[at]
    }

    fn execution(&self, arn: String, name: String, machine: Machine, request: Start) -> Execution {
        Execution {
            arn,
            name,
            machine: machine.arn,
            machine_name: machine.name,
            role: machine.role,
            revision: machine.revision,
            input: request.input,
            status: Status::Running,
            start_ms: self.clock.now_ms(),
            stop_ms: None,
            output: None,
            error: None,
            cause: None,
            parent: request.parent,
            trace: request.trace,
        }
    }

    async fn start_new(
        self: &Arc<Self>,
        execution: Execution,
        input: Value,
    ) -> Result<(u64, Execution), ApiError> {
        let definition = self
            .definition(&execution.revision)?
            .ok_or_else(|| machine_does_not_exist(&execution.machine))?;
        let number = self.journal.next_execution();
        let now = self.clock.now();
        let started = execution.clone();
        let mut run = Run::start(number, execution, definition, input, now);
        run.advance(now, self.as_ref());
        // The driver must be known before anybody can answer one of its tasks.
        let (sender, mailbox) = mpsc::unbounded_channel();
        lock(&self.drivers).insert(number, sender);
        if let Err(error) = driver::commit(self, &mut run, Vec::new()).await {
            self.forget_driver(number);
            return Err(error.into());
        }
        self.tasks
            .spawn(driver::drive(Arc::clone(self), run, mailbox));
        Ok((number, started))
    }
}

impl Run {
    /// Whether attempt `attempt` of the task of `branch` still waits.
    fn awaits(&self, branch: u32, attempt: u64) -> bool {
        matches!(self.phase(branch), Some(Phase::Task(task)) if task.attempt == attempt)
    }
}

/// The API error for an unknown machine.
pub(crate) fn machine_does_not_exist(arn: &str) -> ApiError {
    ApiError::new(
        "StateMachineDoesNotExist",
        format!("State Machine Does Not Exist: '{arn}'"),
    )
}

/// The answer where the name is taken: the open execution itself if the request is the same, or the
/// child that this very task started before a crash.
fn same_or_refused(
    number: u64,
    execution: Execution,
    request: &Start,
) -> Result<(u64, Execution), ApiError> {
    let is_own_child = request.parent.is_some() && execution.parent == request.parent;
    // A task that waits for the end would never hear of an execution that somebody else started.
    let may_share = !request.parent.is_some_and(|parent| parent.waits);
    let is_same =
        may_share && execution.status == Status::Running && execution.input == request.input;
    if is_own_child || is_same {
        return Ok((number, execution));
    }
    Err(ApiError::new(
        "ExecutionAlreadyExists",
        format!("Execution Already Exists: '{}'", execution.arn),
    ))
}
