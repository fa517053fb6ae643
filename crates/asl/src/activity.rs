//! Activities and the tasks that wait for their workers.
//!
//! The queues are in memory: a task that waits is a branch of an open execution, and is offered again
//! when that execution is resumed.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::sync::lock;

/// A task that waits for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) execution: u64,
    pub(crate) branch: u32,
    pub(crate) attempt: u64,
}

/// The tasks of one activity, in the order of their scheduling.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    offers: Mutex<VecDeque<Offer>>,
    arrived: Notify,
}

impl Queue {
    pub(crate) fn take(&self) -> Option<Offer> {
        lock(&self.offers).pop_front()
    }

    /// Puts a task back at the front: its worker has gone.
    pub(crate) fn put_back(&self, offer: Offer) {
        lock(&self.offers).push_front(offer);
        self.arrived.notify_one();
    }

    /// Completes when a task may have come since the call.
    pub(crate) fn arrival(&self) -> tokio::sync::futures::Notified<'_> {
        self.arrived.notified()
    }
}

/// All activities of an engine.
#[derive(Debug, Default)]
pub(crate) struct Activities(Mutex<HashMap<String, Arc<Queue>>>);

impl Activities {
    pub(crate) fn add(&self, arn: &str) {
        lock(&self.0).entry(arn.to_owned()).or_default();
    }

    pub(crate) fn remove(&self, arn: &str) {
        lock(&self.0).remove(arn);
    }

    pub(crate) fn exists(&self, arn: &str) -> bool {
        lock(&self.0).contains_key(arn)
    }

    pub(crate) fn queue(&self, arn: &str) -> Option<Arc<Queue>> {
        lock(&self.0).get(arn).cloned()
    }

    pub(crate) fn offer(&self, arn: &str, offer: Offer) {
        if let Some(queue) = self.queue(arn) {
            lock(&queue.offers).push_back(offer);
            queue.arrived.notify_one();
        }
    }
}
