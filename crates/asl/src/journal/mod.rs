//! The journal: one `redb` file that holds everything, written in group commits.
//!
//! One table with byte keys. Everything of one execution lies together, so that a transition rewrites
//! one or two leaf pages:
//!
//! | key | value |
//! |---|---|
//! | `f` | format number |
//! | `m` machine ARN | [`crate::record::Machine`] |
//! | `r` revision id | [`crate::record::Revision`] |
//! | `a` activity ARN | [`crate::record::Activity`] |
//! | `n` execution ARN | execution number |
//! | `x` number `0` | [`crate::record::Execution`] |
//! | `x` number `1` branch | [`crate::record::Branch`], while open |
//! | `x` number `2` first event id | the events of one commit |
//! | `o` number | nothing: the execution is open |
//! | `l` machine ARN `\0` number | nothing: executions of a machine, oldest first |
//! | `s` machine ARN `\0` status number | nothing: the same by status |
//!
//! Numbers grow with the start of executions and are big-endian, so that key order is start order.

pub(crate) mod key;
mod read;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use redb::{Database, ReadableTable as _, TableDefinition};
use serde::Serialize;

use crate::error::{JournalError, OpenError};
use crate::sync::lock;

/// The newest format that this version reads and writes.
pub(crate) const FORMAT: u64 = 1;

/// Page cache of redb. What is open is in memory already; history is read rarely.
const CACHE_BYTES: usize = 8 * 1024 * 1024;

/// Above this length of the file, commits also save redb's allocator state. Without it the file is read
/// whole after a kill, at about 1 ms per MiB; with it opening takes no time, and a commit twice as long.
/// Measured in `docs/decisions/0001-asl-storage.md`.
const QUICK_REPAIR_BYTES: u64 = 32 * 1024 * 1024;

/// A commit slower than this moves to where it blocks no other task (see [`blocking`]).
const SLOW_COMMIT: Duration = Duration::from_micros(500);

const TABLE: TableDefinition<'static, &'static [u8], &'static [u8]> =
    TableDefinition::new("journal");

type Result<T> = std::result::Result<T, JournalError>;

/// Writes that become durable together or not at all.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    writes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Batch {
    /// Writes `record` as JSON.
    pub(crate) fn put(&mut self, key: Vec<u8>, record: &impl Serialize) -> Result<()> {
        let value = serde_json::to_vec(record).map_err(|source| JournalError::Damaged {
            what: "a record to write",
            source: Arc::new(source),
        })?;
        self.put_bytes(key, value);
        Ok(())
    }

    pub(crate) fn put_bytes(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.writes.push((key, Some(value)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    pub(crate) fn delete(&mut self, key: Vec<u8>) {
        self.writes.push((key, None));
    }
}

/// How the journal has been used, for benchmarks.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    pub(crate) commits: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) writes: AtomicU64,
}

struct Pending {
    batch: Batch,
    done: Arc<OnceLock<Result<()>>>,
}

/// The open file.
pub(crate) struct Journal {
    database: RwLock<Database>,
    path: Option<Box<Path>>,
    queue: Mutex<Vec<Pending>>,
    turn: tokio::sync::Mutex<()>,
    next_execution: AtomicU64,
    slow: std::sync::atomic::AtomicBool,
    pub(crate) usage: Usage,
    #[cfg(test)]
    pub(crate) commits_left: std::sync::atomic::AtomicI64,
}

impl Journal {
    /// Opens or creates the file at `path`; in memory without one.
    pub(crate) fn open(path: Option<&Path>) -> std::result::Result<Self, OpenError> {
        let shown = path.map_or_else(|| "in memory".to_owned(), |p| p.display().to_string());
        let database = open_database(path).map_err(|source| OpenError::Open {
            path: shown.clone(),
            source: Box::new(source),
        })?;
        let journal = Self {
            database: RwLock::new(database),
            path: path.map(Into::into),
            queue: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            next_execution: AtomicU64::new(1),
            slow: std::sync::atomic::AtomicBool::new(false),
            usage: Usage::default(),
            #[cfg(test)]
            commits_left: std::sync::atomic::AtomicI64::new(i64::MAX),
        };
        let read = |source| OpenError::Read {
            path: shown.clone(),
            source,
        };
        match journal.format().map_err(read)? {
            found if found > FORMAT => Err(OpenError::Newer {
                path: shown.clone(),
                found,
                known: FORMAT,
            }),
            _ => {
                let last = journal.last_execution().map_err(read)?;
                journal.next_execution.store(last + 1, Ordering::Relaxed);
                Ok(journal)
            }
        }
    }

    /// The format in the file, which is written if the file is new.
    fn format(&self) -> Result<u64> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let transaction = database.begin_write().map_err(JournalError::storage)?;
        let mut table = transaction
            .open_table(TABLE)
            .map_err(JournalError::storage)?;
        let found = table
            .get(&b"f"[..])
            .map_err(JournalError::storage)?
            .map(|value| number(value.value()));
        if let Some(found) = found {
            return Ok(found);
        }
        table
            .insert(&b"f"[..], &FORMAT.to_be_bytes()[..])
            .map_err(JournalError::storage)?;
        drop(table);
        transaction.commit().map_err(JournalError::storage)?;
        Ok(FORMAT)
    }

    /// A number for a new execution.
    pub(crate) fn next_execution(&self) -> u64 {
        self.next_execution.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes `batch` durable. Batches that arrive while another commit runs share the next one: whoever
    /// gets the turn commits for all who wait.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<()> {
        let done = Arc::new(OnceLock::new());
        lock(&self.queue).push(Pending {
            batch,
            done: Arc::clone(&done),
        });
        let _turn = self.turn.lock().await;
        if let Some(result) = done.get() {
            return result.clone();
        }
        let pending = std::mem::take(&mut *lock(&self.queue));
        let result = self.blocking(|| self.write(&pending));
        for one in pending {
            let _ = one.done.set(result.clone());
        }
        result
    }

    /// Runs `work` here, or, where commits take long (a disk with fsync) and the runtime has other
    /// threads, lets the other tasks of this thread move away first.
    fn blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let moves = self.slow.load(Ordering::Relaxed)
            && tokio::runtime::Handle::try_current().is_ok_and(|handle| {
                handle.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread
            });
        let result = if moves {
            tokio::task::block_in_place(work)
        } else {
            work()
        };
        self.slow
            .store(started.elapsed() > SLOW_COMMIT, Ordering::Relaxed);
        result
    }

    fn write(&self, pending: &[Pending]) -> Result<()> {
        #[cfg(test)]
        if self.commits_left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            return Err(JournalError::Killed);
        }
        let outcome = self.write_once(pending);
        if outcome.is_err() {
            self.reopen();
        }
        outcome
    }

    fn write_once(&self, pending: &[Pending]) -> Result<()> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let mut transaction = database.begin_write().map_err(JournalError::storage)?;
        transaction.set_quick_repair(self.is_long());
        let mut writes = 0;
        {
            let mut table = transaction
                .open_table(TABLE)
                .map_err(JournalError::storage)?;
            for (key, value) in pending.iter().flat_map(|one| &one.batch.writes) {
                match value {
                    Some(value) => table.insert(key.as_slice(), value.as_slice()),
                    None => table.remove(key.as_slice()),
                }
                .map_err(JournalError::storage)?;
                writes += 1;
            }
        }
        transaction.commit().map_err(JournalError::storage)?;
        self.usage.commits.fetch_add(1, Ordering::Relaxed);
        self.usage
            .batches
            .fetch_add(pending.len() as u64, Ordering::Relaxed);
        self.usage.writes.fetch_add(writes, Ordering::Relaxed);
        Ok(())
    }

    fn is_long(&self) -> bool {
        self.path
            .as_ref()
            .and_then(|path| std::fs::metadata(path).ok())
            .is_some_and(|file| file.len() > QUICK_REPAIR_BYTES)
    }

    /// After an I/O error redb refuses further work on the open file: open it anew, so that a full disk
    /// that is freed again needs no restart.
    fn reopen(&self) {
        let Some(path) = &self.path else {
            return;
        };
        let mut database = self
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let Ok(parked) = open_database(None) else {
            return;
        };
        drop(std::mem::replace(&mut *database, parked));
        match open_database(Some(path)) {
            Ok(reopened) => *database = reopened,
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "cannot reopen the execution journal");
            }
        }
    }
}

fn open_database(path: Option<&Path>) -> std::result::Result<Database, redb::DatabaseError> {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    match path {
        Some(path) => builder.create(path),
        None => builder.create_with_backend(redb::backends::InMemoryBackend::new()),
    }
}

/// A big-endian number of a key or value.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .take(8)
        .fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests;
