//! Compares redb, SQLite and fjall under the journal's write pattern: one commit of a chunk of history
//! (600 bytes), a branch (400 bytes, rewritten) and now and then three index keys, each commit durable.
//! Rounds are interleaved forwards and backwards, with an fsync probe in each.
//!
//! ```text
//! cargo run --release -p slipway-asl --features storage-bench --example storage -- /dev/shm 6
//! ```

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use redb::ReadableDatabase as _;

/// Commits timed per store and round.
const COMMITS: u64 = 500;
/// Commits before an execution is over and the next begins.
const PER_EXECUTION: u64 = 10;
/// Steps written before the store is opened as after a kill.
const BULK: u64 = 100_000;

const TABLE: redb::TableDefinition<'static, &[u8], &[u8]> = redb::TableDefinition::new("journal");

type Writes = Vec<(Vec<u8>, Vec<u8>)>;

trait Store {
    fn commit(&mut self, writes: &Writes) -> anyhow::Result<()>;
    fn get(&self, key: &[u8]) -> anyhow::Result<Option<Vec<u8>>>;
}

struct Redb {
    database: redb::Database,
    quick_repair: bool,
}

impl Store for Redb {
    fn commit(&mut self, writes: &Writes) -> anyhow::Result<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_quick_repair(self.quick_repair);
        {
            let mut table = transaction.open_table(TABLE)?;
            for (key, value) in writes {
                table.insert(key.as_slice(), value.as_slice())?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        Ok(table.get(key)?.map(|value| value.value().to_vec()))
    }
}

impl Store for rusqlite::Connection {
    fn commit(&mut self, writes: &Writes) -> anyhow::Result<()> {
        let transaction = self.transaction()?;
        {
            let mut insert =
                transaction.prepare_cached("INSERT OR REPLACE INTO journal VALUES (?1, ?2)")?;
            for (key, value) in writes {
                insert.execute((key, value))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
        let mut select = self.prepare_cached("SELECT value FROM journal WHERE key = ?1")?;
        let mut rows = select.query([key])?;
        Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
    }
}

struct Fjall {
    database: fjall::Database,
    keyspace: fjall::Keyspace,
}

impl Store for Fjall {
    fn commit(&mut self, writes: &Writes) -> anyhow::Result<()> {
        let mut batch = self
            .database
            .batch()
            .durability(Some(fjall::PersistMode::SyncAll));
        for (key, value) in writes {
            batch.insert(&self.keyspace, key.as_slice(), value.as_slice());
        }
        Ok(batch.commit()?)
    }

    fn get(&self, key: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
        Ok(self.keyspace.get(key)?.map(|value| value.to_vec()))
    }
}

const STORES: [&str; 5] = [
    "redb",
    "redb, quick repair",
    "SQLite WAL, FULL",
    "SQLite WAL, NORMAL",
    "fjall, SyncAll",
];

fn open(name: &str, folder: &Path) -> anyhow::Result<Box<dyn Store>> {
    let path = folder.join(name.replace([' ', ','], "-"));
    Ok(match name {
        "redb" | "redb, quick repair" => Box::new(Redb {
            database: redb::Database::builder()
                .set_cache_size(8 * 1024 * 1024)
                .create(path)?,
            quick_repair: name != "redb",
        }),
        "fjall, SyncAll" => {
            let database = fjall::Database::builder(path).open()?;
            let keyspace = database.keyspace("journal", fjall::KeyspaceCreateOptions::default)?;
            Box::new(Fjall { database, keyspace })
        }
        _ => {
            let connection = rusqlite::Connection::open(path)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", name.rsplit(' ').next())?;
            connection.execute_batch(
                "CREATE TABLE IF NOT EXISTS journal (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
            )?;
            Box::new(connection)
        }
    })
}

fn key(kind: u8, execution: u64, event: u64) -> Vec<u8> {
    let mut key = vec![b'x'];
    key.extend(execution.to_be_bytes());
    key.push(kind);
    key.extend(event.to_be_bytes());
    key
}

/// The writes of commit number `n`.
fn writes(n: u64) -> Writes {
    let (execution, step) = (n / PER_EXECUTION, n % PER_EXECUTION);
    let mut writes = vec![
        (key(2, execution, step * 5), vec![b'h'; 600]),
        (key(1, execution, 0), vec![b'b'; 400]),
    ];
    if step == 0 || step == PER_EXECUTION - 1 {
        writes.push((key(0, execution, 0), vec![b'e'; 500]));
        for list in [b'l', b's', b'n'] {
            let mut index = vec![list];
            index.extend(key(step as u8, execution, 0));
            writes.push((index, Vec::new()));
        }
    }
    writes
}

fn fsync_probe(folder: &Path) -> anyhow::Result<Duration> {
    use std::io::Write as _;
    let path = folder.join("probe");
    let mut file = std::fs::File::create(&path)?;
    let started = Instant::now();
    for _ in 0..20 {
        file.write_all(&[1; 4096])?;
        file.sync_data()?;
    }
    Ok(started.elapsed() / 20)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Fills the store with group commits of 20; gives the time of one of the 20, the size on disk, and the
/// time to open a copy of the files as they are, which is what a kill leaves behind.
fn fill(
    name: &str,
    store: &mut dyn Store,
    next: u64,
    folder: &Path,
) -> anyhow::Result<(Duration, u64, Duration)> {
    let started = Instant::now();
    for group in 0..BULK / 20 {
        let all: Writes = (0..20)
            .flat_map(|n| writes(next + group * 20 + n))
            .collect();
        store.commit(&all)?;
    }
    let together = started.elapsed() / u32::try_from(BULK)?;
    let copy = folder.join("killed");
    let bytes = copy_of(name, folder, &copy)?;
    let started = Instant::now();
    let opened = open(name, &copy)?;
    opened
        .get(&key(1, next / PER_EXECUTION, 0))?
        .context("lost")?;
    let elapsed = started.elapsed();
    drop(opened);
    std::fs::remove_dir_all(copy)?;
    Ok((together, bytes / 1024, elapsed))
}

fn copy_of(name: &str, from: &Path, to: &Path) -> anyhow::Result<u64> {
    std::fs::create_dir_all(to)?;
    let stem = name.replace([' ', ','], "-");
    let mut bytes = 0;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let file = entry.file_name().to_string_lossy().into_owned();
        let is_mine = file == stem || file.strip_prefix(&stem).is_some_and(|rest| rest == "-wal");
        if entry.file_type()?.is_dir() && file == stem {
            bytes += copy_all(&entry.path(), &to.join(&file))?;
        } else if is_mine {
            bytes += std::fs::copy(entry.path(), to.join(&file))?;
        }
    }
    Ok(bytes)
}

fn copy_all(from: &Path, to: &Path) -> anyhow::Result<u64> {
    std::fs::create_dir_all(to)?;
    let mut bytes = 0;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let copied = if entry.path().is_dir() {
            copy_all(&entry.path(), &target)
        } else {
            std::fs::copy(entry.path(), target).map_err(Into::into)
        };
        // fjall's background threads remove files meanwhile.
        bytes += copied.unwrap_or_default();
    }
    Ok(bytes)
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let parent: PathBuf = arguments.next().context("give a folder")?.into();
    let rounds: usize = arguments.next().map_or(Ok(6), |text| text.parse())?;
    let folder = parent.join("storage-bench");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let mut stores = Vec::new();
    for name in STORES {
        stores.push((name, open(name, &folder)?, 0_u64, Vec::new(), Vec::new()));
    }
    let mut probes = Vec::new();
    for round in 0..rounds {
        probes.push(fsync_probe(&folder)?);
        let mut order: Vec<usize> = (0..stores.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let (_, store, next, commits, reads) = &mut stores[at];
            let started = Instant::now();
            for _ in 0..COMMITS {
                store.commit(&writes(*next))?;
                *next += 1;
            }
            commits.push(started.elapsed() / u32::try_from(COMMITS)?);
            let started = Instant::now();
            for n in 0..COMMITS {
                store
                    .get(&key(1, (*next - 1 - n) / PER_EXECUTION, 0))?
                    .context("lost")?;
            }
            reads.push(started.elapsed() / u32::try_from(COMMITS)?);
        }
    }
    println!("fsync probe: {:?}", median(&mut probes));
    println!(
        "| store | commit | of 20 at once, each | read | KiB after {BULK} | open after kill |\n|---|---|---|---|---|---|"
    );
    for (name, store, next, commits, reads) in &mut stores {
        let (together, kib, opened) = fill(name, store.as_mut(), *next, &folder)?;
        println!(
            "| {name} | {:?} | {together:?} | {:?} | {kib} | {opened:?} |",
            median(commits),
            median(reads)
        );
    }
    drop(stores);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
