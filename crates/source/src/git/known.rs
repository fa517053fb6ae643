//! Files of commits that were read before. Who asks again lists the branches of the host, with the connector's login, and
//! fetches nothing where the branch has not moved.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use slipway_plan::Fetched;

/// Answers that are kept.
const MOST: usize = 64;

/// Largest answer that is kept, in bytes.
const LARGEST: usize = 1 << 20;

/// What was read of one commit of one repository.
struct Entry {
    place: String,
    paths: Vec<String>,
    fetched: Fetched,
}

/// The newest answers of this process.
#[derive(Default)]
pub(crate) struct Known(Mutex<VecDeque<Entry>>);

impl Known {
    /// What these paths hold at a commit of a place.
    pub(super) fn find(&self, place: &str, commit: &str, paths: &[String]) -> Option<Fetched> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |entry: &&Entry| {
            entry.place == place
                && entry.paths == paths
                && entry.fetched.commit.as_deref() == Some(commit)
        };
        entries.iter().find(same).map(|entry| entry.fetched.clone())
    }

    /// Keeps an answer, in the place of the oldest one where there are many.
    pub(super) fn keep(&self, place: &str, paths: &[String], fetched: &Fetched) {
        let bytes: usize = fetched.files.iter().map(|(_, text)| text.len()).sum();
        if bytes > LARGEST {
            return;
        }
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= MOST {
            entries.pop_front();
        }
        entries.push_back(Entry {
            place: place.to_owned(),
            paths: paths.to_vec(),
            fetched: fetched.clone(),
        });
    }
}
