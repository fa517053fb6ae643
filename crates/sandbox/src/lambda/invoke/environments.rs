//! All execution environments of an account: unpacked code, processes that wait for the next event, and their bounds.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use slipway_clock::Clock;
use tokio::sync::Semaphore;

use super::Wanted;
use super::environment::{Environment, Keys, Site};
use super::outcome::{Ended, Outcome, Times, outcome};
use super::plan::{Plan, not_runnable};
use super::runtime::{BOOTSTRAPS, Interpreters};
use super::unpack::unpack;
use crate::Sandbox;
use crate::error::ApiError;
use crate::sts;

/// Processes at work at once: further invocations wait. Lambda has 1,000 in an account, on more than one machine.
const MOST_AT_WORK: usize = 100;
/// Processes that wait for the next event at most; the longest unused ends first.
const MOST_IDLE: usize = 64;
/// A process that nobody needed for so long ends.
const IDLE: Duration = Duration::from_secs(120);
/// A process is replaced after this time, and credentials are lent anew: they are valid for an hour.
const OLDEST: SignedDuration = SignedDuration::from_mins(50);
/// Where Lambda has the code: traces of errors name it so.
const TASK_ROOT: &str = "/var/task";

/// The environments of an account.
pub(crate) struct Environments {
    folder: PathBuf,
    interpreters: Interpreters,
    at_work: Semaphore,
    idle: Mutex<Idle>,
    /// Invocations under way, by function.
    busy: Mutex<HashMap<String, usize>>,
    /// By role and function.
    keys: Mutex<HashMap<(String, String), (Timestamp, Keys)>>,
    /// One package is unpacked at a time.
    unpacking: tokio::sync::Mutex<()>,
    me: Weak<Self>,
}

/// Processes that wait, the longest unused first.
#[derive(Default)]
struct Idle {
    waiting: VecDeque<(Timestamp, Environment)>,
    /// Whether somebody looks for those that waited long enough.
    watched: bool,
}

/// Counts an invocation of a function while it is there.
struct Counted<'a> {
    busy: &'a Mutex<HashMap<String, usize>>,
    function: String,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let mut busy = lock(self.busy);
        if let Some(count) = busy.get_mut(&self.function) {
            *count -= 1;
            if *count == 0 {
                busy.remove(&self.function);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Environments {
    /// Begins with an empty folder: what an earlier process left in it is removed.
    pub(crate) fn open(folder: &Path) -> std::io::Result<Arc<Self>> {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut builder = fs::DirBuilder::new();
        let builder = builder.recursive(true).mode(0o700);
        for name in ["code", "scratch"] {
            builder.create(folder.join(name))?;
        }
        // As interpreters see it, so that paths in traces can be told.
        let folder = folder.canonicalize()?;
        for (name, text) in BOOTSTRAPS {
            fs::write(folder.join(name), text)?;
        }
        Ok(Arc::new_cyclic(|me| Self {
            folder,
            interpreters: Interpreters::default(),
            at_work: Semaphore::new(MOST_AT_WORK),
            idle: Mutex::default(),
            busy: Mutex::default(),
            keys: Mutex::default(),
            unpacking: tokio::sync::Mutex::default(),
            me: me.clone(),
        }))
    }

    /// Runs one invocation to its end.
    pub(super) async fn run(
        &self,
        sandbox: &Sandbox,
        plan: &Plan,
        wanted: &Wanted,
        request_id: &str,
    ) -> Result<Outcome, ApiError> {
        let _counted = self.count(plan)?;
        let turn = self.at_work.acquire().await;
        let _turn = turn.map_err(|_| ApiError::server("The account is being closed."))?;
        let clock = sandbox.clock();
        let mut log = Vec::new();
        let (ready, init) = match self.take(plan, clock.now()) {
            Some(environment) => (Ok(environment), None),
            None => {
                let began = clock.now();
                let started = self.start(sandbox, plan, &mut log).await?;
                (started, Some(since(clock, began)))
            }
        };
        let began = clock.now();
        let (ended, next) = match ready {
            Ok(environment) => {
                environment
                    .handle(plan, wanted, request_id, clock, &mut log)
                    .await
            }
            Err(ended) => (ended, None),
        };
        let times = Times {
            ended: clock.now(),
            took: since(clock, began),
            init,
        };
        if let Some(environment) = next {
            self.keep(environment, clock);
        }
        let ended = self.as_on_lambda(plan, ended);
        Ok(outcome(plan, request_id, ended, &log, &times))
    }

    /// Refuses what is more than the function's reserved concurrency.
    fn count(&self, plan: &Plan) -> Result<Counted<'_>, ApiError> {
        let function = format!("{}/{}", plan.region, plan.name);
        let mut busy = lock(&self.busy);
        let now = busy.get(&function).copied().unwrap_or_default();
        if plan.reserved.is_some_and(|reserved| now >= reserved) {
            return Err(ApiError {
                code: "TooManyRequestsException",
                status: 429,
                message: "Rate Exceeded.".to_owned(),
            });
        }
        busy.insert(function.clone(), now + 1);
        Ok(Counted {
            busy: &self.busy,
            function,
        })
    }

    /// The process that was used last of those that can be used again. Those of an older state of the version end.
    fn take(&self, plan: &Plan, now: Timestamp) -> Option<Environment> {
        let mut idle = lock(&self.idle);
        idle.waiting
            .retain(|(_, environment)| !plan.replaces(&environment.key));
        loop {
            let found = idle.waiting.iter().rposition(|(_, e)| e.key == plan.key)?;
            let (_, mut environment) = idle.waiting.remove(found)?;
            let young = now.duration_since(environment.started) < OLDEST;
            if young && environment.lives() {
                return Some(environment);
            }
        }
    }

    /// Keeps a process for the next event.
    fn keep(&self, environment: Environment, clock: &Clock) {
        let mut idle = lock(&self.idle);
        idle.waiting.push_back((clock.now(), environment));
        if idle.waiting.len() > MOST_IDLE {
            idle.waiting.pop_front();
        }
        if !std::mem::replace(&mut idle.watched, true) {
            tokio::spawn(watch(self.me.clone(), clock.clone()));
        }
    }

    /// Starts a process and waits until it has loaded the handler.
    async fn start(
        &self,
        sandbox: &Sandbox,
        plan: &Plan,
        log: &mut Vec<u8>,
    ) -> Result<Result<Environment, Ended>, ApiError> {
        let interpreter = self.interpreters.find(plan.runtime).await?;
        let code = self.code(sandbox, plan).await?;
        let keys = self.keys(sandbox, plan).await?;
        let now = sandbox.clock().now();
        let id = uuid::Uuid::new_v4().simple();
        let stream = format!("{}[{}]{id}", now.strftime("%Y/%m/%d/"), plan.version);
        let scratch = tempfile::tempdir_in(self.folder.join("scratch"));
        let started = scratch.and_then(|scratch| {
            let site = Site {
                interpreter: &interpreter,
                bootstraps: &self.folder,
                code: &code,
                scratch,
                keys: &keys,
                stream: &stream,
            };
            Environment::start(plan, site, now)
        });
        let mut environment = started.map_err(|error| {
            not_runnable(format!(
                "The environment of the function {} cannot be started with {}: {error}.",
                plan.name,
                interpreter.display()
            ))
        })?;
        match environment.load(sandbox.clock(), log).await {
            Ok(()) => Ok(Ok(environment)),
            Err(ended) => {
                environment.end(sandbox.clock(), log).await;
                Ok(Err(ended))
            }
        }
    }

    /// The folder of an unpacked package.
    async fn code(&self, sandbox: &Sandbox, plan: &Plan) -> Result<PathBuf, ApiError> {
        let all = self.folder.join("code");
        let folder = all.join(folder_name(&plan.package));
        let _one = self.unpacking.lock().await;
        if folder.is_dir() {
            return Ok(folder);
        }
        let found = sandbox.look(|account| {
            let packages = &account.lambda.packages;
            let names: BTreeSet<String> =
                packages.iter().map(|(key, _)| folder_name(key)).collect();
            let package = packages.get(&plan.package).map(|package| package.bytes());
            (package, names)
        });
        let (package, names) = found.map_err(|error| ApiError::server(error.to_string()))?;
        let package = package.ok_or_else(|| {
            unzippable(format!(
                "the sandbox account keeps packages of up to {} bytes, and this one is larger",
                crate::lambda::code::KEPT
            ))
        })?;
        let into = folder.clone();
        let unpacked = tokio::task::spawn_blocking(move || {
            remove_others(&all, &names);
            unpack(&package, &into)
        });
        match unpacked.await {
            Ok(Ok(())) => Ok(folder),
            Ok(Err(error)) => Err(unzippable(error.to_string())),
            Err(_) => Err(ApiError::server("Unpacking the package was interrupted.")),
        }
    }

    /// Credentials of the function's role in this account.
    async fn keys(&self, sandbox: &Sandbox, plan: &Plan) -> Result<Keys, ApiError> {
        let whose = (plan.role.clone(), plan.name.clone());
        let now = sandbox.clock().now();
        let known = lock(&self.keys).get(&whose).cloned();
        if let Some((lent, keys)) = known
            && now.duration_since(lent) < SignedDuration::from_mins(5)
        {
            return Ok(keys);
        }
        let (role, session) = whose.clone();
        let lend =
            move |account: &mut crate::account::Account| Ok(sts::lend(account, &role, &session));
        let lent = sandbox.serve(true, lend).await?;
        let text = |name: &str| lent[name].as_str().unwrap_or_default().to_owned();
        let keys = Keys {
            access_key: text("AccessKeyId"),
            secret: text("SecretAccessKey"),
            token: text("SessionToken"),
        };
        lock(&self.keys).insert(whose, (now, keys.clone()));
        Ok(keys)
    }

    /// An error as it reads on Lambda: with the code where Lambda has it.
    fn as_on_lambda(&self, plan: &Plan, ended: Ended) -> Ended {
        let Ended::Failed(payload) = ended else {
            return ended;
        };
        let code = self.folder.join("code").join(folder_name(&plan.package));
        let text = String::from_utf8_lossy(&payload);
        let text = text.replace(&code.display().to_string(), TASK_ROOT);
        Ended::Failed(text.into_bytes())
    }
}

fn since(clock: &Clock, began: Timestamp) -> Duration {
    clock
        .now()
        .duration_since(began)
        .try_into()
        .unwrap_or_default()
}

/// Ends processes that nobody needs any more, until none is left.
async fn watch(environments: Weak<Environments>, clock: Clock) {
    loop {
        clock.sleep(IDLE).await;
        let Some(environments) = environments.upgrade() else {
            return;
        };
        let mut idle = lock(&environments.idle);
        let now = clock.now();
        let idle_for = |since: Timestamp| now.duration_since(since).unsigned_abs();
        idle.waiting.retain(|(since, _)| idle_for(*since) < IDLE);
        if idle.waiting.is_empty() {
            idle.watched = false;
            return;
        }
    }
}

/// A digest in base64 as the name of a folder.
fn folder_name(digest: &str) -> String {
    digest.replace('/', "_").replace('+', "-").replace('=', "")
}

/// Removes the code that no function has any more. What cannot be removed is removed at the next start.
fn remove_others(all: &Path, names: &BTreeSet<String>) {
    let entries = fs::read_dir(all).into_iter().flatten().flatten();
    for entry in entries {
        if !names.contains(&*entry.file_name().to_string_lossy()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn unzippable(why: String) -> ApiError {
    ApiError {
        code: "InvalidZipFileException",
        status: 502,
        message: format!("Lambda could not unzip the deployment package: {why}"),
    }
}
