//! Holds: who works on an infrastructure, and who waits for it, first come first served.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use slipway_model::id::{RunId, StageId};

use crate::Store;
use crate::error::StoreError;
use crate::item::{Expression, Row, json, number, read_json, read_number, row};
use crate::key;
use crate::line::{Claim, Line};

/// Most that hold and wait for one key; with the longest task tokens that is a third of an item.
const LONGEST_QUEUE: usize = 100;
/// How often a change is tried again when somebody else was faster.
const ATTEMPTS: u32 = 200;

/// Who holds or waits: one attempt of a stage of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The run.
    pub run: RunId,
    /// The stage.
    pub stage: StageId,
    /// The attempt of the stage.
    #[serde(default)]
    pub attempt: u32,
}

/// Where a holder stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is its turn.
    Held,
    /// So many are in front of it.
    Waiting(usize),
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Where who asked stands.
    pub turn: Turn,
    /// What wakes those that are a part of who asked, where it has the hold: it may be theirs too now.
    pub called: Vec<String>,
}

impl Store {
    /// Takes the hold `key`, or a place in its queue. Asking again keeps the place; a new `token`
    /// replaces the old one.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] when the queue is full.
    pub async fn hold(
        &self,
        key: &str,
        holder: &Holder,
        token: Option<&str>,
    ) -> Result<Turn, StoreError> {
        let claim = Claim {
            holder: holder.clone(),
            within: Vec::new(),
            widens: None,
            token: token.map(str::to_owned),
        };
        Ok(self.claim(key, &claim).await?.turn)
    }

    /// As [`Store::hold`], for who may be a part of others that hold `key`. Asking again after a crash answers with
    /// the same tokens, so that nobody is forgotten.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] when the queue is full.
    pub async fn claim(&self, key: &str, claim: &Claim) -> Result<Claimed, StoreError> {
        for attempt in 0..ATTEMPTS {
            let (mut line, version) = self.queue(key).await?;
            let placed = line.place(claim);
            if placed.changed && line.len() > LONGEST_QUEUE {
                let what = format!("the queue for {key}");
                return Err(StoreError::TooLarge {
                    what,
                    size: line.len(),
                    limit: LONGEST_QUEUE,
                });
            }
            if placed.changed && !self.put_queue(key, &line, version, attempt).await? {
                continue;
            }
            let (turn, called) = match placed.ahead {
                0 => (Turn::Held, line.parts_of(&claim.holder)),
                ahead => (Turn::Waiting(ahead), Vec::new()),
            };
            return Ok(Claimed { turn, called });
        }
        Err(StoreError::Conflict {
            what: format!("the queue for {key}"),
        })
    }

    /// Gives the hold or the place in the queue back and answers with the tokens of those whose turn it is
    /// then, to be completed: one, unless others are a part of it. Giving back twice answers the same again, so that a crash between giving
    /// back and completing loses nobody.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn release(&self, key: &str, holder: &Holder) -> Result<Vec<String>, StoreError> {
        for attempt in 0..ATTEMPTS {
            let (mut line, version) = self.queue(key).await?;
            if !line.leave(holder) || self.put_queue(key, &line, version, attempt).await? {
                return Ok(line.called());
            }
        }
        Err(StoreError::Conflict {
            what: format!("the queue for {key}"),
        })
    }

    /// Whom the first in the line waits for that `own` is true of: not for those that it is a part of.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn ahead_of(
        &self,
        key: &str,
        own: impl Fn(&Holder) -> bool,
    ) -> Result<Vec<Holder>, StoreError> {
        let (line, _) = self.queue(key).await?;
        Ok(line.ahead_of(own))
    }

    async fn queue(&self, name: &str) -> Result<(Line, Option<u64>), StoreError> {
        let key = key::hold(name);
        let Some(item) = self.get(&key).await? else {
            return Ok((Line::default(), None));
        };
        let queue = read_json(&key.what(), &item, "queue")?.unwrap_or_default();
        Ok((queue, Some(read_number(&item, "version").unwrap_or(0))))
    }

    /// Writes the queue if nobody else has; waits a little when somebody has.
    async fn put_queue(
        &self,
        name: &str,
        line: &Line,
        version: Option<u64>,
        attempt: u32,
    ) -> Result<bool, StoreError> {
        let key = key::hold(name);
        let item = row(&key)
            .with("queue", json(&key.what(), line)?)
            .with("version", number(version.map_or(1, |v| v + 1)));
        let condition = match version {
            None => Expression::absent(),
            Some(version) => {
                Expression::new("#version = :expected").value(":expected", number(version))
            }
        };
        match self.put(&key, item, Some(condition)).await {
            Ok(()) => Ok(true),
            Err(StoreError::Conflict { .. }) => {
                // Full jitter, as the waiters of one key would otherwise collide again. The generator is this
                // thread's, and so a simulation's to seed.
                let pause = fastrand::u64(1..=1 << attempt.min(6));
                self.inner.clock.sleep(Duration::from_millis(pause)).await;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
