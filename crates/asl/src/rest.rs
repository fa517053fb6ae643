//! Executions that have nothing to do for long: nothing of them is kept in memory but that they are open, and when
//! they are due. A signal or that time brings them back from the journal, as a restart of the process does.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, mpsc};

use crate::driver::{COMMIT_RETRY, Mailbox, Signal, drive};
use crate::engine::Inner;
use crate::error::ApiError;
use crate::sync::lock;

/// How long an execution waits before it rests: what is answered soon is not worth reading the journal for.
pub(crate) const REST_AFTER: Duration = Duration::from_secs(5);

/// What the engine holds of an open execution.
pub(crate) enum Slot {
    /// A task drives it, and reads this mailbox.
    Awake(mpsc::UnboundedSender<Signal>),
    /// It is in the journal only.
    Resting,
}

/// When executions that rest are due.
#[derive(Default)]
pub(crate) struct Alarms {
    /// Milliseconds since 1970, and the execution; one that has woken since is there in vain.
    due: Mutex<BinaryHeap<Reverse<(i64, u64)>>>,
    /// There is an earlier one.
    changed: Notify,
    kept: AtomicBool,
}

impl Alarms {
    fn set(&self, due: Timestamp, execution: u64) {
        lock(&self.due).push(Reverse((due.as_millisecond(), execution)));
        self.changed.notify_one();
    }

    fn earliest(&self) -> Option<Timestamp> {
        let Reverse((due, _)) = *lock(&self.due).peek()?;
        Timestamp::from_millisecond(due).ok()
    }

    /// Executions that are due at `now`.
    fn take_due(&self, now: Timestamp) -> Vec<u64> {
        let mut all = lock(&self.due);
        let mut due = Vec::new();
        while let Some(Reverse((at, execution))) = all.peek().copied()
            && at <= now.as_millisecond()
        {
            all.pop();
            due.push(execution);
        }
        due
    }
}

impl Inner {
    /// Lets an execution rest until a signal comes or until it is due; not where a signal has come meanwhile.
    pub(crate) fn rest(
        self: &Arc<Self>,
        execution: u64,
        due: Option<Timestamp>,
        mailbox: &Mailbox,
    ) -> bool {
        {
            let mut drivers = lock(&self.drivers);
            // Signals are sent while the list is locked: none comes between.
            if !mailbox.is_empty() {
                return false;
            }
            drivers.insert(execution, Slot::Resting);
        }
        self.wake_at(execution, due);
        true
    }

    /// Lets an execution rest that nobody drives yet.
    pub(crate) fn lay_down(self: &Arc<Self>, execution: u64, due: Option<Timestamp>) {
        lock(&self.drivers).insert(execution, Slot::Resting);
        self.wake_at(execution, due);
    }

    fn wake_at(self: &Arc<Self>, execution: u64, due: Option<Timestamp>) {
        if let Some(due) = due {
            self.alarms.set(due, execution);
        }
        if !self.alarms.kept.swap(true, Ordering::Relaxed) {
            self.track(keep(Arc::clone(self)));
        }
    }

    /// Brings an execution back that is due; whether it rested.
    pub(crate) fn wake(self: &Arc<Self>, execution: u64) -> bool {
        let mut drivers = lock(&self.drivers);
        let Some(slot @ Slot::Resting) = drivers.get_mut(&execution) else {
            return false;
        };
        *slot = Slot::Awake(self.bring_back(execution));
        true
    }

    /// Drives an execution from the journal; gives its mailbox.
    pub(crate) fn bring_back(self: &Arc<Self>, execution: u64) -> mpsc::UnboundedSender<Signal> {
        let (sender, mailbox) = mpsc::unbounded_channel();
        self.track(load_and_drive(Arc::clone(self), execution, mailbox));
        sender
    }
}

async fn load_and_drive(engine: Arc<Inner>, execution: u64, mailbox: Mailbox) {
    loop {
        match engine.load(execution) {
            Ok(Some(run)) => return drive(engine, run, mailbox).await,
            Ok(None) => return engine.forget_driver(execution),
            Err(error) => {
                tracing::error!(
                    execution,
                    error = %ApiError::internal(&error),
                    "cannot read an execution from the journal; it is tried again"
                );
                tokio::select! {
                    () = engine.stop.cancelled() => return,
                    () = engine.clock.sleep(COMMIT_RETRY) => {}
                }
            }
        }
    }
}

/// Wakes executions when they are due, until the engine stops.
async fn keep(engine: Arc<Inner>) {
    loop {
        let earliest = engine.alarms.earliest();
        let due = async {
            match earliest {
                Some(at) => engine.clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = engine.stop.cancelled() => return,
            () = engine.alarms.changed.notified() => {}
            () = due => {
                for execution in engine.alarms.take_due(engine.clock.now()) {
                    engine.wake(execution);
                }
            }
        }
    }
}
