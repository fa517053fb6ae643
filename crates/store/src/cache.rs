//! The newest few values in memory: a lane asks for the same plan at every advance, and runs of one pipeline are made
//! of the same documents.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Values by digest, the one used last in front.
#[derive(Debug)]
pub(crate) struct Newest<V> {
    values: Mutex<VecDeque<(String, V)>>,
    most: usize,
}

impl<V: Clone> Newest<V> {
    /// Keeps at most so many.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            values: Mutex::default(),
            most,
        }
    }

    pub(crate) fn get(&self, digest: &str) -> Option<V> {
        let mut kept = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == digest)?;
        let entry = kept.remove(at)?;
        let value = entry.1.clone();
        kept.push_front(entry);
        Some(value)
    }

    pub(crate) fn put(&self, digest: &str, value: V) {
        let mut kept = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known != digest);
        kept.push_front((digest.to_owned(), value));
        kept.truncate(self.most);
    }
}
