//! The journal: one SQLite file that holds everything, written in group commits.
//!
//! One table with byte keys, of which SQLite keeps the order. Everything of one execution lies together,
//! so that a transition rewrites one or two leaf pages; larger records are compressed ([`pack`]), which keeps them
//! on those. Why SQLite, measured: `docs/decisions/0001-asl-storage.md`.
//!
//! | key | value |
//! |---|---|
//! | `m` machine ARN | [`crate::record::Machine`] |
//! | `r` revision id | [`crate::record::Revision`] |
//! | `a` activity ARN | [`crate::record::Activity`] |
//! | `t` machine or activity ARN | its tags, by key |
//! | `p` map run ARN | [`crate::record::MapRunRecord`] |
//! | `q` execution ARN `\0` map run ARN | nothing: map runs of an execution |
//! | `n` execution ARN | execution number |
//! | `x` number `0` | [`crate::record::Execution`] |
//! | `x` number `1` branch | [`crate::record::Branch`], while open |
//! | `x` number `2` first event id | the events of one commit |
//! | `x` number `3` branch | [`crate::record::Branch`], as it stood when the execution ended without success |
//! | `o` number | nothing: the execution is open |
//! | `l` machine ARN `\0` number | nothing: executions of a machine, oldest first |
//! | `s` machine ARN `\0` status number | nothing: the same by status |
//!
//! Numbers grow with the start of executions and are big-endian, so that key order is start order.

pub(crate) mod key;
mod pack;
mod read;

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde::Serialize;

use crate::error::{JournalError, OpenError};
use crate::sync::lock;

/// The newest format that this version reads and writes: SQLite's `user_version`.
pub(crate) const FORMAT: i64 = 4;
/// SQLite's `application_id`: "SLPW".
const APPLICATION: i64 = 0x534C_5057;

/// A commit slower than this moves to where it blocks no other task (see [`Journal::blocking`]).
const SLOW_COMMIT: Duration = Duration::from_micros(500);

const SCHEMA: &str =
    "CREATE TABLE journal (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID";
const PUT: &str = "INSERT OR REPLACE INTO journal VALUES (?1, ?2)";
const DELETE: &str = "DELETE FROM journal WHERE key = ?1";

type Result<T> = std::result::Result<T, JournalError>;

/// Writes that become durable together or not at all.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    writes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Batch {
    /// Writes `record` as JSON, packed where that is shorter.
    pub(crate) fn put(&mut self, key: Vec<u8>, record: &impl Serialize) -> Result<()> {
        let value = serde_json::to_vec(record).map_err(|source| JournalError::Damaged {
            what: "a record to write",
            source: Arc::new(source),
        })?;
        self.put_bytes(key, pack::pack(value));
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

/// The open file. Fields are dropped in this order: the lock goes last.
pub(crate) struct Journal {
    writer: Mutex<Connection>,
    /// Reads do not wait for a commit's fsync; in memory there is one connection only.
    reader: Option<Mutex<Connection>>,
    _lock: Option<File>,
    queue: Mutex<Vec<Pending>>,
    turn: tokio::sync::Mutex<()>,
    next_execution: AtomicU64,
    slow: AtomicBool,
    pub(crate) usage: Usage,
    #[cfg(test)]
    pub(crate) commits_left: std::sync::atomic::AtomicI64,
}

impl Journal {
    /// Opens or creates the file at `path`; in memory without one.
    pub(crate) fn open(path: Option<&Path>) -> std::result::Result<Self, OpenError> {
        let shown = path.map_or_else(|| "in memory".to_owned(), |p| p.display().to_string());
        let failed = |source| OpenError::Open {
            path: shown.clone(),
            source,
        };
        let held = path.map(|path| take_lock(path, &shown)).transpose()?;
        let writer = connect(path).map_err(failed)?;
        prepare(&writer, &shown)?;
        let reader = match path {
            Some(_) => Some(Mutex::new(connect(path).map_err(failed)?)),
            None => None,
        };
        let journal = Self {
            writer: Mutex::new(writer),
            reader,
            _lock: held,
            queue: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            next_execution: AtomicU64::new(1),
            slow: AtomicBool::new(false),
            usage: Usage::default(),
            #[cfg(test)]
            commits_left: std::sync::atomic::AtomicI64::new(i64::MAX),
        };
        let last = journal.last_execution().map_err(failed)?;
        journal.next_execution.store(last + 1, Ordering::Relaxed);
        Ok(journal)
    }

    /// The connection for reads.
    fn reading(&self) -> MutexGuard<'_, Connection> {
        lock(self.reader.as_ref().unwrap_or(&self.writer))
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

    /// Keeps everybody from committing, as a slow disk does.
    #[cfg(test)]
    pub(crate) async fn hold(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
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
        let mut connection = lock(&self.writer);
        // Dropped without a commit, as on a full disk, the transaction is undone.
        let transaction = connection.transaction()?;
        let mut writes = 0;
        {
            let mut put = transaction.prepare_cached(PUT)?;
            let mut delete = transaction.prepare_cached(DELETE)?;
            for (key, value) in pending.iter().flat_map(|one| &one.batch.writes) {
                match value {
                    Some(value) => put.execute((key, value))?,
                    None => delete.execute([key])?,
                };
                writes += 1;
            }
        }
        transaction.commit()?;
        self.usage.commits.fetch_add(1, Ordering::Relaxed);
        self.usage
            .batches
            .fetch_add(pending.len() as u64, Ordering::Relaxed);
        self.usage.writes.fetch_add(writes, Ordering::Relaxed);
        Ok(())
    }
}

/// Takes the lock beside the file: SQLite itself would let a second process in.
fn take_lock(path: &Path, shown: &str) -> std::result::Result<File, OpenError> {
    let failed = |source| OpenError::Lock {
        path: shown.to_owned(),
        source,
    };
    let mut name = path.as_os_str().to_owned();
    name.push("-lock");
    let file = File::create(&name).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
            path: shown.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

fn connect(path: Option<&Path>) -> Result<Connection> {
    let connection = match path {
        Some(path) => Connection::open(path)?,
        None => Connection::open_in_memory()?,
    };
    // One fsync per commit, of the write-ahead log; it survives the power as well as the process.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

/// Makes a new file a journal, and refuses one that is something else or newer.
fn prepare(connection: &Connection, shown: &str) -> std::result::Result<(), OpenError> {
    let path = || shown.to_owned();
    let failed = |source: rusqlite::Error| OpenError::Open {
        path: path(),
        source: source.into(),
    };
    let pragma = |name: &str| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, name, |row| row.get(0))
    };
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    if tables == 0 {
        let create = format!(
            "BEGIN; PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT}; {SCHEMA}; COMMIT"
        );
        return connection.execute_batch(&create).map_err(failed);
    }
    if pragma("application_id").map_err(failed)? != APPLICATION {
        return Err(OpenError::Foreign { path: path() });
    }
    match pragma("user_version").map_err(failed)? {
        found if found > FORMAT => Err(OpenError::Newer {
            path: path(),
            found,
            known: FORMAT,
        }),
        // What an older version wrote is read as it is; what this one writes, the older one cannot read.
        FORMAT => Ok(()),
        _ => connection
            .pragma_update(None, "user_version", FORMAT)
            .map_err(failed),
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
