//! The same stories in a `slipway local` that is killed with SIGKILL: while somebody is waited for, with a word on its
//! way, right after it, where a story says so, and at random moments. Nothing changes what they come to.
//! `SLIPWAY_KILLS=200` for the long form; `SLIPWAY_SEED` plays other moments.

use std::cell::{Cell, RefCell};

use async_trait::async_trait;
use aws_sdk_sfn::types::ExecutionStatus;
use serde_json::Value;
use slipway_tests::LocalProcess;
use slipway_tests::dice::{Dice, kills};
use slipway_tests::history::{entered, executions};

use crate::local::{Server, all_come_true};
use crate::place::{Answer, Call, Place};

/// Kills in the short form, beside those that stories name.
const KILLS: u32 = 6;

/// Of so many looks one is a random moment of the short form.
const LOOKS: u64 = 150;

/// Of so many words one has a kill before it, one on its way, and one after it.
const WORDS: u64 = 4;

/// Requests that a word's way may take longer than.
const LEAD: u64 = 3;

struct Harmed {
    server: Server,
    dice: RefCell<Dice>,
    left: Cell<u32>,
}

impl Harmed {
    /// Whether to kill now, once in so many times.
    fn strikes(&self, once_in: u64) -> bool {
        let left = self.left.get();
        let strikes = left > 0 && self.dice.borrow_mut().roll(once_in) == 0;
        if strikes {
            self.left.set(left - 1);
        }
        strikes
    }

    fn perhaps(&self, once_in: u64) {
        if self.strikes(once_in) {
            self.server.kill();
        }
    }
}

#[async_trait(?Send)]
impl Place for Harmed {
    async fn call(&self, who: &str, call: &Call, repeated: bool) -> Answer {
        let speaks = repeated && call.method == "PUT" || call.path.contains("/harness/activity");
        if !speaks || !self.strikes(WORDS) {
            return self.server.call(who, call, repeated).await;
        }
        let lead = self.dice.borrow_mut().roll(LEAD);
        let kill = async {
            for _ in 0..lead {
                let health = Call::get("/slipway/api/health".to_owned());
                self.server.call(who, &health, true).await;
            }
            self.server.kill();
        };
        let (sent, ()) = tokio::join!(self.server.send(who, call), kill);
        match sent {
            Ok((status, body)) => Answer {
                status,
                body,
                again: false,
            },
            Err(_) => Answer {
                again: true,
                ..self.server.call(who, call, repeated).await
            },
        }
    }

    async fn ecs(&self, operation: &str, body: &Value) -> Value {
        self.server.ecs(operation, body).await
    }

    async fn pass(&self) {
        self.perhaps(LOOKS);
        self.server.pass().await;
    }

    fn now_ms(&self) -> i64 {
        0
    }

    async fn about_to_say(&self) {
        self.perhaps(WORDS);
    }

    async fn has_said(&self) {
        self.perhaps(WORDS);
    }

    async fn kill(&self) {
        self.server.kill();
    }

    fn kills(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn kills_change_nothing_about_any_story() {
    let (mut dice, seed) = Dice::from_env(20_261_122);
    let mut left = kills(KILLS);
    // The long form plays them again and again.
    loop {
        let dir = tempfile::tempdir().expect("a folder");
        let place = Harmed {
            server: Server::start(dir.path()).await,
            dice: RefCell::new(dice),
            left: Cell::new(left),
        };
        let wrong = all_come_true(&place).await;
        assert!(wrong.is_empty(), "seed {seed}: {}", wrong.join("\n"));
        println!("{} kills, seed {seed}", place.server.kills());
        let Harmed {
            server,
            dice: rolled,
            left: spared,
        } = place;
        nothing_is_left(&server.into_process()).await;
        (dice, left) = (rolled.into_inner(), spared.get());
        if left == 0 {
            break;
        }
    }
}

/// Every execution has ended, and its history is whole.
async fn nothing_is_left(local: &LocalProcess) {
    for (_, execution) in executions(local).await {
        let open = *execution.status() == ExecutionStatus::Running;
        assert!(!open, "{} still runs", execution.name());
        entered(local, execution.execution_arn()).await;
    }
}
