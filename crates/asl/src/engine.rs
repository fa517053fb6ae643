//! The engine: what is open, how executions start, and how everything stops.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use slipway_clock::Clock;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::activity::Activities;
use crate::arn::Home;
use crate::definition::{self, Definition, MachineType};
use crate::driver::{self, Mailbox, Signal};
use crate::effect::{Lambda, NoServices, Services};
use crate::error::{ApiError, JournalError, OpenError};
use crate::journal::Journal;
use crate::record::{Execution, Revision, Status};
use crate::rest::{Alarms, Slot};
use crate::run::{Run, World};
use crate::sync::lock;
use crate::turns::Turns;

/// Locks that serialise starts with the same name.
pub(crate) const START_LOCKS: usize = 64;
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
    /// How many executions that are started from outside begin at once; those beyond are accepted, and begin in the
    /// order of their start. `None` for no bound, as on AWS.
    pub begin_at_once: Option<usize>,
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
    /// Those of them that rest: they wait for long, and nothing of them is in memory.
    pub resting: u64,
    /// Those of them that were started and wait for their turn to begin.
    pub waiting: u64,
}

/// A Step Functions service in a process. Cheap to clone: clones are the same engine.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) home: Home,
    pub(crate) clock: Clock,
    pub(crate) lambda: Arc<dyn Lambda>,
    pub(crate) services: Arc<dyn Services>,
    pub(crate) journal: Journal,
    pub(crate) activities: Activities,
    /// Ends every driver and everything that a driver started.
    pub(crate) stop: CancellationToken,
    tasks: TaskTracker,
    definitions: Mutex<HashMap<String, Arc<Definition>>>,
    pub(crate) drivers: Mutex<HashMap<u64, Slot>>,
    pub(crate) alarms: Alarms,
    pub(crate) turns: Turns,
    /// Itself, for what brings executions back.
    me: Weak<Self>,
    /// Serialises starts with the same name, by hash.
    pub(crate) starts: Vec<tokio::sync::Mutex<()>>,
    /// Serialises changes of machines and activities.
    pub(crate) changes: tokio::sync::Mutex<()>,
    /// Notified whenever an execution has ended.
    ends: Notify,
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
        Self::with_journal(
            Journal::open(Some(path))?,
            config,
            lambda,
            Arc::new(NoServices),
        )
    }

    /// An engine that keeps everything in memory, for tests.
    ///
    /// # Errors
    ///
    /// As [`Engine::open`]; in practice never.
    pub fn in_memory(config: EngineConfig, lambda: Arc<dyn Lambda>) -> Result<Self, OpenError> {
        Self::with_journal(Journal::open(None)?, config, lambda, Arc::new(NoServices))
    }

    /// As [`Engine::open`], or in memory without a `path`, for machines that use other services than Lambda
    /// and Step Functions itself.
    ///
    /// # Errors
    ///
    /// As [`Engine::open`].
    pub fn with_services(
        path: Option<&Path>,
        config: EngineConfig,
        lambda: Arc<dyn Lambda>,
        services: Arc<dyn Services>,
    ) -> Result<Self, OpenError> {
        Self::with_journal(Journal::open(path)?, config, lambda, services)
    }

    fn with_journal(
        journal: Journal,
        config: EngineConfig,
        lambda: Arc<dyn Lambda>,
        services: Arc<dyn Services>,
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
        Ok(Self(Arc::new_cyclic(|me| Inner {
            me: me.clone(),
            alarms: Alarms::default(),
            turns: Turns::new(config.begin_at_once),
            home: Home {
                region: config.region,
                account: config.account,
            },
            clock: config.clock,
            lambda,
            services,
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
            ends: Notify::new(),
            transitions: AtomicU64::new(0),
            events: AtomicU64::new(0),
        })))
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
        let drivers = lock(&self.0.drivers);
        let resting = drivers
            .values()
            .filter(|slot| matches!(slot, Slot::Resting));
        Counters {
            transitions: self.transitions(),
            events: self.0.events.load(Ordering::Relaxed),
            commits: usage.commits.load(Ordering::Relaxed),
            steps: usage.batches.load(Ordering::Relaxed),
            writes: usage.writes.load(Ordering::Relaxed),
            open: drivers.len() as u64,
            resting: resting.count() as u64,
            waiting: self.0.turns.waiting() as u64,
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
        let undelivered = self.send(execution, signal);
        if let Some(signal) = undelivered {
            driver::undelivered(self, signal);
        }
    }

    /// Sends under the lock, so that no execution goes to rest with a signal on its way.
    fn send(&self, execution: u64, signal: Signal) -> Option<Signal> {
        let mut drivers = lock(&self.drivers);
        let Some(slot) = drivers.get_mut(&execution) else {
            return Some(signal);
        };
        if let (Slot::Resting, Some(me)) = (&*slot, self.me.upgrade()) {
            *slot = Slot::Awake(me.bring_back(execution));
        }
        match slot {
            Slot::Awake(driver) => driver.send(signal).err().map(|error| error.0),
            Slot::Resting => Some(signal),
        }
    }

    /// Whether an execution is being driven.
    pub(crate) fn is_driven(&self, execution: u64) -> bool {
        lock(&self.drivers).contains_key(&execution)
    }

    pub(crate) fn forget_driver(&self, execution: u64) {
        lock(&self.drivers).remove(&execution);
        self.turns.rests(execution);
        self.ends.notify_waiters();
    }

    /// Waits until nobody drives an execution: one that has ended in the journal may still have something to tell.
    pub(crate) async fn undriven(&self, execution: u64) -> Result<(), ApiError> {
        loop {
            let end = self.ends.notified();
            tokio::pin!(end);
            end.as_mut().enable();
            if !self.is_driven(execution) {
                return Ok(());
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(ApiError::shutting_down()),
                () = end => {}
            }
        }
    }

    /// Waits for the end of an execution; gives it as it ended.
    pub(crate) async fn ended(&self, execution: u64) -> Result<Execution, ApiError> {
        loop {
            let end = self.ends.notified();
            tokio::pin!(end);
            end.as_mut().enable();
            if let Some(found) = self.journal.execution(execution)?
                && found.status != Status::Running
            {
                return Ok(found);
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(ApiError::shutting_down()),
                () = end => {}
            }
        }
    }

    /// Makes an execution known to those who have signals for it.
    pub(crate) fn expect_driver(&self, execution: u64) -> Mailbox {
        let (sender, mailbox) = mpsc::unbounded_channel();
        lock(&self.drivers).insert(execution, Slot::Awake(sender));
        mailbox
    }

    /// Drives a run until it closes.
    pub(crate) fn drive(self: &Arc<Self>, run: Run, mailbox: Mailbox) {
        self.track(driver::drive(Arc::clone(self), run, mailbox));
    }

    /// Runs what ends by itself when the engine stops.
    pub(crate) fn track(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tracked(work);
    }

    /// The same, where somebody may wait for what it gives.
    pub(crate) fn tracked<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.tasks.spawn(work)
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
    pub(crate) fn definition(
        &self,
        revision: &str,
    ) -> Result<Option<Arc<Definition>>, JournalError> {
        if let Some(definition) = lock(&self.definitions).get(revision) {
            return Ok(Some(Arc::clone(definition)));
        }
        let Some(Revision {
            definition,
            express,
            ..
        }) = self.journal.revision(revision)?
        else {
            return Ok(None);
        };
        let kind = if express {
            MachineType::Express
        } else {
            MachineType::Standard
        };
        match definition::parse_stored(&definition, kind) {
            Ok(parsed) => {
                let parsed = Arc::new(parsed);
                let mut cache = lock(&self.definitions);
                if cache.len() >= MOST_DEFINITIONS {
                    cache.clear();
                }
                cache.insert(revision.to_owned(), Arc::clone(&parsed));
                Ok(Some(parsed))
            }
            Err(errors) => {
                let error = definition::all(&errors);
                tracing::error!(revision, %error, "a stored definition is not accepted any more");
                Ok(None)
            }
        }
    }
}
