//! Makes commits of SQLite durable, many with one fsync.
//!
//! SQLite in WAL mode with `synchronous=NORMAL` writes a commit to the log file and leaves it to the
//! operating system when that reaches the disk. A commit is answered only after the log file was synced
//! behind it; whoever commits while a sync runs shares the next one.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

/// A sync that takes longer goes to a thread where it holds nobody up; one of memory is done before another thread is
/// awake.
const SLOW: Duration = Duration::from_micros(50);

/// The log file of one database. Cheap to clone.
#[derive(Clone)]
pub(super) struct GroupSync {
    shared: Arc<Shared>,
}

struct Shared {
    log: PathBuf,
    /// Number of syncs that were begun; a commit is durable when one that began after it has ended.
    begun: AtomicU64,
    /// Whether the last sync was slow.
    slow: AtomicBool,
    /// Number of the last sync that ended, and the open file.
    done: Mutex<(u64, Option<Arc<File>>)>,
}

impl GroupSync {
    /// For the database in `file`.
    pub(super) fn new(file: &Path) -> Self {
        let mut log = file.as_os_str().to_owned();
        log.push("-wal");
        let shared = Shared {
            log: log.into(),
            begun: AtomicU64::new(0),
            slow: AtomicBool::new(true),
            done: Mutex::new((0, None)),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns once everything that was committed before the call is on the disk.
    pub(super) async fn wait(&self) -> io::Result<()> {
        let seen = self.shared.begun.load(SeqCst);
        let mut done = self.shared.done.lock().await;
        if done.0 > seen {
            return Ok(());
        }
        let number = self.shared.begun.fetch_add(1, SeqCst) + 1;
        let file = match &done.1 {
            Some(file) => Arc::clone(file),
            None => {
                let file = Arc::new(File::open(&self.shared.log)?);
                done.1 = Some(Arc::clone(&file));
                file
            }
        };
        let sync = move || {
            let started = Instant::now();
            file.sync_data().map(|()| started.elapsed())
        };
        let took = if self.shared.slow.load(SeqCst) {
            tokio::task::spawn_blocking(sync)
                .await
                .map_err(io::Error::other)??
        } else {
            sync()?
        };
        self.shared.slow.store(took > SLOW, SeqCst);
        done.0 = number;
        Ok(())
    }
}
