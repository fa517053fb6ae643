//! Logs of command units: chunks of lines, numbered from 0. Small chunks are items, large ones objects.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use slipway_model::id::{NodeId, RunId};

use crate::Store;
use crate::blob::{pack, unpack};
use crate::dynamo::{Keys, Range, place};
use crate::entity::skipped;
use crate::error::StoreError;
use crate::item::{
    Expression, Item, Row, bytes, number, read_bytes, read_number, read_text, row, text,
};
use crate::key::{self, Key, Table};
use crate::layout::SK;
use crate::record::LogLine;

/// Most JSON bytes of a chunk. Bounds memory of writers and readers.
const LARGEST_CHUNK: usize = 512 * 1024;
/// Chunks above this, compressed, are objects: DynamoDB bills a write per KB.
const LARGEST_ITEM_CHUNK: usize = 16 * 1024;
/// JSON bytes after which a read stops; the caller asks again for more.
const LARGEST_READ: usize = 1024 * 1024;
/// Chunks asked for at a time.
const CHUNKS: usize = 32;
/// Sort key of the mark that a log is complete: behind all numbers.
const CLOSED: &str = "~closed";
/// How often a writer that was overtaken looks again for the end.
const ATTEMPTS: usize = 64;
/// Logs whose end is remembered.
const REMEMBERED: usize = 4096;

/// Part of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogPage {
    /// Lines in order.
    pub lines: Vec<LogLine>,
    /// Number of the line behind them: `after` of the next read.
    pub next: u64,
    /// Whether the log is complete and these are its last lines.
    pub closed: bool,
}

/// Where the logs that this process writes end, so that an append needs no look.
#[derive(Default)]
pub(crate) struct Ends(Mutex<HashMap<String, u64>>);

impl Ends {
    fn get(&self, log: &str) -> Option<u64> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(log)
            .copied()
    }

    fn set(&self, log: &str, end: Option<u64>) {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ends.len() >= REMEMBERED {
            ends.clear();
        }
        match end {
            Some(end) => drop(ends.insert(log.to_owned(), end)),
            None => drop(ends.remove(log)),
        }
    }
}

impl Store {
    /// Adds lines to the log of a command unit.
    ///
    /// # Errors
    /// When the store cannot be written; lines of chunks before the failed one are stored.
    pub async fn append_log(
        &self,
        run: &RunId,
        node: &NodeId,
        unit: &str,
        lines: &[LogLine],
    ) -> Result<(), StoreError> {
        let pk = key::log(run, node, unit);
        let mut rest = lines;
        while !rest.is_empty() {
            let (chunk, left) = rest.split_at(chunk_length(rest));
            self.append_chunk(&pk, chunk).await?;
            rest = left;
        }
        Ok(())
    }

    async fn append_chunk(&self, pk: &str, lines: &[LogLine]) -> Result<(), StoreError> {
        let json = serde_json::to_vec(lines).map_err(|error| StoreError::unreadable(pk, error))?;
        let packed = pack(pk, &json)?;
        let object = match packed.len() > LARGEST_ITEM_CHUNK {
            true => Some(format!("logs/{}", uuid::Uuid::now_v7().simple())),
            false => None,
        };
        let count = lines.len() as u64;
        let content = match &object {
            Some(object) => {
                self.put_object(object, packed).await?;
                text(&**object)
            }
            None => bytes(packed),
        };
        let name = if object.is_some() { "object" } else { "zstd" };
        for _ in 0..ATTEMPTS {
            let first = match self.inner.lines.get(pk) {
                Some(end) => end,
                None => self.end_of_log(pk).await?,
            };
            let key = Key::new(Table::Runs, pk.to_owned(), format!("{first:016}"));
            let item = row(&key)
                .with("count", number(count))
                .with("size", number(json.len()))
                .with(name, content.clone());
            match self.put(&key, item, Some(Expression::absent())).await {
                Ok(()) => {
                    self.inner.lines.set(pk, Some(first + count));
                    return Ok(());
                }
                Err(StoreError::Conflict { .. }) => self.inner.lines.set(pk, None),
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::Conflict {
            what: pk.to_owned(),
        })
    }

    /// Marks a log as complete.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn close_log(
        &self,
        run: &RunId,
        node: &NodeId,
        unit: &str,
    ) -> Result<(), StoreError> {
        let key = Key::new(Table::Runs, key::log(run, node, unit), CLOSED);
        self.inner.lines.set(&key.pk, None);
        let item = row(&key);
        self.put(&key, item, None).await
    }

    /// Lines of a log from number `after` on, about 1 MiB at most.
    ///
    /// # Errors
    /// When the store cannot be read. Lines of a chunk that cannot be read are left out with a warning.
    pub async fn read_log(
        &self,
        run: &RunId,
        node: &NodeId,
        unit: &str,
        after: u64,
    ) -> Result<LogPage, StoreError> {
        let pk = key::log(run, node, unit);
        let mut page = LogPage {
            lines: Vec::new(),
            next: after,
            closed: false,
        };
        let mut size = 0;
        self.read_chunk_over(&pk, after, &mut page).await?;
        loop {
            let from = format!("{:016}", page.next);
            let keys = Keys::Between(from, CLOSED.to_owned());
            let mut range = Range::new(Table::Runs, pk.clone(), keys);
            range.limit = Some(CHUNKS);
            let items = self.query(range).await?;
            for item in &items {
                if read_text(item, SK) == Some(CLOSED) {
                    page.closed = true;
                    return Ok(page);
                }
                size += read_number(item, "size").unwrap_or(0_usize);
                self.read_chunk(item, &mut page).await?;
                if size >= LARGEST_READ {
                    return Ok(page);
                }
            }
            if items.is_empty() {
                return Ok(page);
            }
        }
    }

    /// Reads the chunk that `after` is inside of, if it is not the first line of one.
    async fn read_chunk_over(
        &self,
        pk: &str,
        after: u64,
        page: &mut LogPage,
    ) -> Result<(), StoreError> {
        let Some(before) = after.checked_sub(1) else {
            return Ok(());
        };
        let Some(item) = self.last_chunk(pk, before).await? else {
            return Ok(());
        };
        let (first, count) = extent(&item);
        if first.saturating_add(count) <= after {
            return Ok(());
        }
        self.read_chunk(&item, page).await?;
        let skip = usize::try_from(after - first).unwrap_or(usize::MAX);
        page.lines.drain(..skip.min(page.lines.len()));
        Ok(())
    }

    async fn read_chunk(&self, item: &Item, page: &mut LogPage) -> Result<(), StoreError> {
        let (first, count) = extent(item);
        page.next = first.saturating_add(count.max(1));
        match self.chunk_lines(item).await {
            Ok(lines) => page.lines.extend(lines),
            Err(error @ StoreError::Unreadable { .. }) => skipped(item, &error),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn chunk_lines(&self, item: &Item) -> Result<Vec<LogLine>, StoreError> {
        let what = place(item);
        let json = match read_bytes(item, "zstd") {
            Some(packed) => unpack(&what, packed)?,
            None => {
                let object = read_text(item, "object").unwrap_or_default();
                unpack(&what, &self.get_object(object).await?)?
            }
        };
        serde_json::from_slice(&json).map_err(|error| StoreError::unreadable(what, error))
    }

    async fn end_of_log(&self, pk: &str) -> Result<u64, StoreError> {
        let last = self.last_chunk(pk, u64::MAX / 10_000).await?;
        Ok(last
            .as_ref()
            .map(extent)
            .map_or(0, |(first, count)| first + count))
    }

    /// The last chunk that begins at line `most` or before.
    async fn last_chunk(&self, pk: &str, most: u64) -> Result<Option<Item>, StoreError> {
        let keys = Keys::Between("0".to_owned(), format!("{most:016}"));
        let mut range = Range::new(Table::Runs, pk.to_owned(), keys);
        range.backward = true;
        range.limit = Some(1);
        Ok(self.query(range).await?.into_iter().next())
    }
}

/// First line and number of lines of a chunk.
fn extent(item: &Item) -> (u64, u64) {
    let first = read_text(item, SK)
        .and_then(|sk| sk.parse().ok())
        .unwrap_or(0);
    (first, read_number(item, "count").unwrap_or(0))
}

/// How many of `lines`, at least one, fit into a chunk.
fn chunk_length(lines: &[LogLine]) -> usize {
    let mut size = 0;
    let over = lines.iter().position(|line| {
        // The JSON around a line, and escapes of line ends and quotes.
        size += line.out.len() + line.out.len() / 8 + line.time.len() + line.level.len() + 40;
        size > LARGEST_CHUNK
    });
    over.unwrap_or(lines.len()).max(1)
}
