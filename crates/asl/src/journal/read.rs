//! Reads of the journal. Each sees what has been committed, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::OptionalExtension as _;
use serde::de::DeserializeOwned;

use super::{Journal, Result, key, number, pack};
use crate::error::JournalError;
use crate::history::Event;
use crate::record::{Activity, Branch, Execution, Machine, MapRunRecord, Revision, Status};

const GET: &str = "SELECT value FROM journal WHERE key = ?1";
const FORWARDS: &str = "SELECT key, value FROM journal WHERE key >= ?1 AND key < ?2 ORDER BY key";
const BACKWARDS: &str =
    "SELECT key, value FROM journal WHERE key >= ?1 AND key < ?2 ORDER BY key DESC";

fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T> {
    let read = pack::unpack(bytes).map_err(serde_json::Error::io);
    read.and_then(|json| serde_json::from_slice(&json))
        .map_err(|source| JournalError::Damaged {
            what,
            source: Arc::new(source),
        })
}

/// The key after all keys that start with `prefix`.
fn end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    end
}

impl Journal {
    fn bytes(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let connection = self.reading();
        let mut select = connection.prepare_cached(GET)?;
        Ok(select.query_row([key], |row| row.get(0)).optional()?)
    }

    fn get<T: DeserializeOwned>(&self, what: &'static str, key: &[u8]) -> Result<Option<T>> {
        let value = self.bytes(key)?;
        value.map(|value| decode(what, &value)).transpose()
    }

    /// Keys and values from `from` to before `to`, through `each` until it gives false.
    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        newest_first: bool,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<()> {
        let connection = self.reading();
        let query = if newest_first { BACKWARDS } else { FORWARDS };
        let mut select = connection.prepare_cached(query)?;
        let mut rows = select.query((from, to))?;
        while let Some(row) = rows.next()? {
            let blob = |column| -> Result<&[u8]> {
                Ok(row
                    .get_ref(column)?
                    .as_blob()
                    .map_err(rusqlite::Error::from)?)
            };
            if !each(blob(0)?, blob(1)?)? {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn machine(&self, arn: &str) -> Result<Option<Machine>> {
        self.get("a state machine", &key::machine(arn))
    }

    pub(crate) fn activity(&self, arn: &str) -> Result<Option<Activity>> {
        self.get("an activity", &key::activity(arn))
    }

    /// Tags of a machine or an activity, by key; `None` where it has none.
    pub(crate) fn tags(&self, arn: &str) -> Result<Option<BTreeMap<String, String>>> {
        self.get("tags", &key::tags(arn))
    }

    pub(crate) fn revision(&self, id: &str) -> Result<Option<Revision>> {
        self.get("a definition", &key::revision(id))
    }

    pub(crate) fn map_run(&self, arn: &str) -> Result<Option<MapRunRecord>> {
        self.get("a map run", &key::map_run(arn))
    }

    /// ARNs of the map runs of an execution.
    pub(crate) fn map_runs(&self, execution_arn: &str) -> Result<Vec<String>> {
        let prefix = key::map_runs(execution_arn);
        let mut arns = Vec::new();
        self.scan(&prefix, &end(&prefix), false, |key, _| {
            let arn = key.get(prefix.len()..).unwrap_or_default();
            arns.push(String::from_utf8_lossy(arn).into_owned());
            Ok(true)
        })?;
        Ok(arns)
    }

    pub(crate) fn execution(&self, number: u64) -> Result<Option<Execution>> {
        self.get("an execution", &key::execution(number))
    }

    /// The number of the execution with this ARN.
    pub(crate) fn execution_number(&self, arn: &str) -> Result<Option<u64>> {
        Ok(self.bytes(&key::name(arn))?.map(|value| number(&value)))
    }

    /// The highest number given to an execution; 0 if none.
    pub(super) fn last_execution(&self) -> Result<u64> {
        let mut last = 0;
        self.scan(b"x", b"y", true, |key, _| {
            last = number(key.get(1..).unwrap_or_default());
            Ok(false)
        })?;
        Ok(last)
    }

    /// Numbers of the open executions, oldest first.
    pub(crate) fn open_executions(&self) -> Result<Vec<u64>> {
        let mut open = Vec::new();
        self.scan(b"o", b"p", false, |key, _| {
            open.push(number(key.get(1..).unwrap_or_default()));
            Ok(true)
        })?;
        Ok(open)
    }

    pub(crate) fn branches(&self, execution: u64) -> Result<Vec<(u32, Branch)>> {
        self.branches_under(&key::branches(execution))
    }

    /// Branches of an execution as they stood when it ended without success; none where an older version ended it.
    pub(crate) fn remains(&self, execution: u64) -> Result<Vec<(u32, Branch)>> {
        self.branches_under(&key::remains(execution))
    }

    /// Whether there are any.
    pub(crate) fn has_remains(&self, execution: u64) -> Result<bool> {
        let prefix = key::remains(execution);
        let mut any = false;
        self.scan(&prefix, &end(&prefix), false, |_, _| {
            any = true;
            Ok(false)
        })?;
        Ok(any)
    }

    /// The keys under which everything of an execution lies.
    pub(crate) fn keys_of(&self, execution: u64) -> Result<Vec<Vec<u8>>> {
        let prefix = key::all_of(execution);
        let mut keys = Vec::new();
        self.scan(&prefix, &end(&prefix), false, |key, _| {
            keys.push(key.to_vec());
            Ok(true)
        })?;
        Ok(keys)
    }

    fn branches_under(&self, prefix: &[u8]) -> Result<Vec<(u32, Branch)>> {
        let mut branches = Vec::new();
        self.scan(prefix, &end(prefix), false, |key, value| {
            let id = number(key.get(prefix.len()..).unwrap_or_default());
            let branch = decode("a branch", value)?;
            branches.push((u32::try_from(id).unwrap_or(u32::MAX), branch));
            Ok(true)
        })?;
        Ok(branches)
    }

    /// Id of the newest event of an execution; 0 if none.
    pub(crate) fn last_event(&self, execution: u64) -> Result<u64> {
        let mut last = 0;
        self.scan(
            &key::events(execution, 0),
            &key::events(execution, u64::MAX),
            true,
            |_, value| {
                let events: Vec<Event> = decode("history", value)?;
                last = events.last().map_or(0, |event| event.0);
                Ok(false)
            },
        )?;
        Ok(last)
    }

    /// Up to `limit` events from `first` on, or from `first` backwards.
    pub(crate) fn events(
        &self,
        execution: u64,
        first: u64,
        newest_first: bool,
        limit: usize,
    ) -> Result<Vec<Event>> {
        // A chunk's key is its first event, so the chunk that holds `first` may lie before it.
        let (from, to) = if newest_first {
            (0, first.saturating_add(1))
        } else {
            (self.chunk_of(execution, first)?, u64::MAX)
        };
        let mut found = Vec::new();
        let (from, to) = (key::events(execution, from), key::events(execution, to));
        self.scan(&from, &to, newest_first, |_, value| {
            let mut events: Vec<Event> = decode("history", value)?;
            if newest_first {
                events.reverse();
                events.retain(|event| event.0 <= first);
            } else {
                events.retain(|event| event.0 >= first);
            }
            found.extend(events);
            Ok(found.len() < limit)
        })?;
        found.truncate(limit);
        Ok(found)
    }

    /// First event of the chunk that holds `event`.
    fn chunk_of(&self, execution: u64, event: u64) -> Result<u64> {
        let mut start = 0;
        let prefix = key::events(execution, 0).len() - 8;
        self.scan(
            &key::events(execution, 0),
            &key::events(execution, event.saturating_add(1)),
            true,
            |key, _| {
                start = number(key.get(prefix..).unwrap_or_default());
                Ok(false)
            },
        )?;
        Ok(start)
    }

    /// Up to `limit` numbers of a machine's executions, newest first, older than `before`.
    pub(crate) fn list(
        &self,
        machine: &str,
        status: Option<Status>,
        before: u64,
        limit: usize,
    ) -> Result<Vec<u64>> {
        let from = key::list(machine, status);
        let to = key::listed(machine, status, before);
        let mut found = Vec::new();
        self.scan(&from, &to, true, |key, _| {
            found.push(number(key.get(from.len()..).unwrap_or_default()));
            Ok(found.len() < limit)
        })?;
        Ok(found)
    }

    /// Up to `limit` machines whose ARN is greater than `after`.
    pub(crate) fn machines(&self, after: &str, limit: usize) -> Result<Vec<Machine>> {
        self.texts("a state machine", key::machine(after), b"n", limit)
    }

    /// Up to `limit` activities whose ARN is greater than `after`.
    pub(crate) fn activities(&self, after: &str, limit: usize) -> Result<Vec<Activity>> {
        self.texts("an activity", key::activity(after), b"b", limit)
    }

    fn texts<T: DeserializeOwned>(
        &self,
        what: &'static str,
        mut from: Vec<u8>,
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<T>> {
        from.push(0);
        let mut found = Vec::new();
        self.scan(&from, to, false, |_, value| {
            found.push(decode(what, value)?);
            Ok(found.len() < limit)
        })?;
        Ok(found)
    }
}
