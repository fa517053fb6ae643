//! Time that stands still while a function runs that talks to servers on real sockets.
//!
//! Tokio moves its paused time whenever nothing is ready, and does not count what a socket is about to bring.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};

tokio::task_local! {
    /// Of the invocation that runs in this task, if time stands still for it.
    static STILL: Arc<Stillness>;
}

/// While it holds Tokio does not move its paused time: it waits for a thread that may do something.
#[derive(Default)]
struct Stillness(Mutex<Option<std::sync::mpsc::Sender<()>>>);

impl Stillness {
    fn hold(&self) {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || {
            // It ends with an error, when the other end is dropped.
            let _ = ended.recv();
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }

    fn let_go(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Time stands still until `work` is done, but for what is [`moving`] in it.
pub(crate) async fn still<F: Future>(work: F) -> F::Output {
    let stillness = Arc::<Stillness>::default();
    stillness.hold();
    STILL.scope(stillness, work).await
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
