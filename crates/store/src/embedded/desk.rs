//! Where one thing is done at a time, without a thread that waits for another one: who finds nobody there does it at once;
//! who finds somebody stands in line, and a thread of its own does what stands there.
//!
//! SQLite does one request at a time. With a lock, of two threads that serve requests one would wait for the other while
//! there is other work; with a lock of tasks, the next one would wait until the thread that wakes it has time for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Desk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Whether something is being done.
    busy: bool,
    /// What is to be done next, in order.
    line: VecDeque<Box<dyn FnOnce() + Send>>,
}

/// Somebody is at the desk; the next one's turn comes when this is dropped, also by a panic.
struct Turn {
    desk: Desk,
    /// Whether something was done in it: nothing is when a runtime ends before its thread begins.
    begun: bool,
}

impl Desk {
    /// Does something when its turn comes; `None` where it was not done to its end: it panicked in another thread, or the
    /// runtime of who was there before ended.
    ///
    /// Once in line it is done even if nobody waits for it any more.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let waits = {
            let mut state = self.lock();
            if state.busy {
                let (done, waits) = oneshot::channel();
                let work = move || drop(done.send(work()));
                state.line.push_back(Box::new(work));
                waits
            } else {
                state.busy = true;
                drop(state);
                let _turn = Turn {
                    desk: self.clone(),
                    begun: true,
                };
                return Some(work());
            }
        };
        waits.await.ok()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Box<dyn FnOnce() + Send>> {
        self.lock().line.pop_front()
    }
}

impl Turn {
    /// Does what stands in line, until nothing does.
    fn work_off(mut self) {
        self.begun = true;
        while let Some(work) = self.desk.next() {
            work();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.desk.lock();
        if !self.begun {
            // Nobody of that runtime waits any more; others are told that it was not done.
            state.line.clear();
        }
        if state.line.is_empty() {
            state.busy = false;
            return;
        }
        drop(state);
        let next = Self {
            desk: self.desk.clone(),
            begun: false,
        };
        tokio::task::spawn_blocking(move || next.work_off());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A desk at which somebody works until the sender is dropped.
    fn busy() -> (Desk, mpsc::Sender<()>, tokio::task::JoinHandle<Option<()>>) {
        let desk = Desk::default();
        let (go, waits) = mpsc::channel();
        let (begun, begins) = mpsc::channel::<()>();
        let own = desk.clone();
        let first = tokio::spawn(async move {
            own.run(move || {
                drop(begun);
                // Until the sender is gone.
                let _ = waits.recv();
            })
            .await
        });
        let _ = begins.recv();
        (desk, go, first)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_stands_in_line_is_done_in_order_and_one_at_a_time() {
        let (desk, go, first) = busy();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for number in 0..50 {
            let order = order.clone();
            let work = desk.run(move || order.lock().unwrap().push(number));
            let mut work = Box::pin(work);
            // It is in line now, and nobody waits for it yet.
            assert!(futures::poll!(&mut work).is_pending());
            waiting.push(work);
        }
        assert!(order.lock().unwrap().is_empty());
        // One that is given up is done all the same.
        drop(waiting.remove(7));
        drop(go);
        for work in waiting {
            assert_eq!(work.await, Some(()));
        }
        assert_eq!(first.await.unwrap(), Some(()));
        assert_eq!(*order.lock().unwrap(), (0..50).collect::<Vec<_>>());
        assert_eq!(desk.run(|| 1).await, Some(1));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_panics_holds_nobody_up() {
        let (desk, go, first) = busy();
        let fails = desk.run(|| panic!("a fault of the database"));
        let mut fails: std::pin::Pin<Box<dyn Future<Output = Option<()>>>> = Box::pin(fails);
        assert!(futures::poll!(&mut fails).is_pending());
        let mut after = Box::pin(desk.run(|| 2));
        assert!(futures::poll!(&mut after).is_pending());
        drop(go);
        assert_eq!(fails.await, None);
        assert_eq!(after.await, Some(2));
        assert_eq!(first.await.unwrap(), Some(()));
        assert_eq!(desk.run(|| 3).await, Some(3));
    }
}
