//! Entities of one kind in memory, which remember what changed since the last commit.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::StoreError;
use crate::inventory::Resource;

/// One entity to write, or to remove when it has no value.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) key: String,
    pub(crate) value: Option<Vec<u8>>,
}

#[derive(Debug)]
pub(crate) struct Table<V> {
    kind: &'static str,
    rows: BTreeMap<String, V>,
    changed: BTreeSet<String>,
}

impl<V: Serialize + DeserializeOwned> Table<V> {
    pub(crate) fn new(kind: &'static str) -> Self {
        Self {
            kind,
            rows: BTreeMap::new(),
            changed: BTreeSet::new(),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&V> {
        self.rows.get(key)
    }

    /// The row to change; it is written with the next commit.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        let row = self.rows.get_mut(key)?;
        if !self.changed.contains(key) {
            self.changed.insert(key.to_owned());
        }
        Some(row)
    }

    pub(crate) fn put(&mut self, key: String, row: V) {
        self.changed.insert(key.clone());
        self.rows.insert(key, row);
    }

    /// Takes a row out, to be [`put`](Self::put) back; left out, it is removed.
    pub(crate) fn take(&mut self, key: &str) -> Option<V> {
        let row = self.rows.remove(key)?;
        self.changed.insert(key.to_owned());
        Some(row)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &V)> {
        self.rows.iter()
    }

    /// Rows whose key begins with `prefix`, in order.
    pub(crate) fn under<'a>(
        &'a self,
        prefix: &str,
    ) -> impl DoubleEndedIterator<Item = (&'a str, &'a V)> + use<'a, V> {
        // '\u{10ffff}' sorts after every character that a key can hold.
        let end = format!("{prefix}\u{10ffff}");
        self.rows
            .range::<str, _>((Bound::Included(prefix), Bound::Excluded(end.as_str())))
            .map(|(key, row)| (key.as_str(), row))
    }

    pub(crate) fn pending(&self) -> usize {
        self.changed.len()
    }

    /// Lets go of what changed, where nothing is stored.
    pub(crate) fn forget_changes(&mut self) {
        self.changed.clear();
    }

    /// Everything that is there.
    pub(crate) fn show(&self, into: &mut Vec<Resource>) {
        into.extend(self.rows.iter().map(|(key, row)| Resource {
            kind: self.kind,
            id: key.clone(),
            kept: serde_json::to_value(row).unwrap_or_default(),
        }));
    }

    /// What changed since the last call.
    pub(crate) fn changes(&mut self, into: &mut Vec<Change>) -> Result<(), StoreError> {
        for key in std::mem::take(&mut self.changed) {
            let full = format!("{}/{key}", self.kind);
            let value = match self.rows.get(&key) {
                None => None,
                Some(row) => {
                    Some(
                        serde_json::to_vec(row).map_err(|source| StoreError::Encode {
                            key: full.clone(),
                            source,
                        })?,
                    )
                }
            };
            into.push(Change { key: full, value });
        }
        Ok(())
    }

    /// Takes in a stored entity if it is of this kind.
    pub(crate) fn load(&mut self, key: &str, value: &[u8]) -> Result<bool, StoreError> {
        let Some(own) = key
            .strip_prefix(self.kind)
            .and_then(|rest| rest.strip_prefix('/'))
        else {
            return Ok(false);
        };
        let row = serde_json::from_slice(value).map_err(|source| StoreError::Entity {
            key: key.to_owned(),
            source,
        })?;
        self.rows.insert(own.to_owned(), row);
        Ok(true)
    }
}
