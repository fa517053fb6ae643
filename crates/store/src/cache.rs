//! The newest few plans in memory: a lane asks for the same one at every advance.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use slipway_plan::Plan;

/// Plans kept.
const KEPT: usize = 32;

/// Plans by digest, the one used last in front.
#[derive(Debug, Default)]
pub(crate) struct Plans(Mutex<VecDeque<(String, Arc<Plan>)>>);

impl Plans {
    pub(crate) fn get(&self, digest: &str) -> Option<Arc<Plan>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == digest)?;
        let entry = kept.remove(at)?;
        let plan = Arc::clone(&entry.1);
        kept.push_front(entry);
        Some(plan)
    }

    pub(crate) fn put(&self, digest: &str, plan: Arc<Plan>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known != digest);
        kept.push_front((digest.to_owned(), plan));
        kept.truncate(KEPT);
    }
}
