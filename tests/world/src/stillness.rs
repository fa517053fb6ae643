//! Time that stands still while a function runs that talks to servers on real sockets.
//!
//! Tokio moves its paused time whenever nothing is ready, and does not count what a socket is about to bring. A function that
//! neither does anything nor says that it lets time pass waits for time all the same, once no server can be the reason any
//! more: it would wait without end.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};

/// How long a server of a test may be silent, in the time of the machine: each is on loopback and in this process.
const PATIENCE: Duration = Duration::from_secs(5);

tokio::task_local! {
    /// Of the invocation that runs in this task, if time stands still for it.
    static STILL: Arc<Stillness>;
}

/// While it holds Tokio does not move its paused time: it waits for a thread that may do something.
#[derive(Default)]
struct Stillness {
    end: Mutex<Option<Sender<()>>>,
    /// Whether the function was not heard of for long, so that time moves.
    given_up: Arc<AtomicBool>,
    /// How often the function was asked whether it is ready.
    polls: Arc<AtomicU64>,
}

impl Stillness {
    fn hold(&self) {
        let (end, ended) = channel::<()>();
        let (polls, given_up) = (Arc::clone(&self.polls), Arc::clone(&self.given_up));
        given_up.store(false, Ordering::SeqCst);
        tokio::task::spawn_blocking(move || {
            let mut known = polls.load(Ordering::SeqCst);
            // Over when the other end is dropped, or nothing has happened for a while.
            while ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let before = std::mem::replace(&mut known, polls.load(Ordering::SeqCst));
                if before == known {
                    given_up.store(true, Ordering::SeqCst);
                    return;
                }
            }
        });
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }

    /// The function goes on: where it was not heard of for long time stands still again.
    fn goes_on(&self) {
        self.polls.fetch_add(1, Ordering::SeqCst);
        if self.given_up.load(Ordering::SeqCst) {
            self.hold();
        }
    }

    fn let_go(&self) {
        self.given_up.store(false, Ordering::SeqCst);
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Time stands still until `work` is done, but for what is [`moving`] in it.
pub(crate) async fn still<F: Future>(work: F) -> F::Output {
    let stillness = Arc::<Stillness>::default();
    stillness.hold();
    let mut work = pin!(STILL.scope(Arc::clone(&stillness), work));
    poll_fn(|context| {
        stillness.goes_on();
        work.as_mut().poll(context)
    })
    .await
}

/// Time passes meanwhile, whatever stands still around it.
pub(crate) async fn moving<F: Future>(work: F) -> F::Output {
    let stillness = STILL.try_with(Arc::clone).ok();
    if let Some(stillness) = &stillness {
        stillness.let_go();
    }
    let done = work.await;
    if let Some(stillness) = &stillness {
        stillness.hold();
    }
    done
}

/// How clients of functions wait before they try again.
#[derive(Debug)]
pub(crate) struct Moving;

impl AsyncSleep for Moving {
    fn sleep(&self, time: Duration) -> Sleep {
        Sleep::new(moving(tokio::time::sleep(time)))
    }
}
