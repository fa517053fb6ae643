//! Holds: who works on an infrastructure, and who waits for it, first come first served.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use slipway_model::id::{RunId, StageId};

use crate::Store;
use crate::error::StoreError;
use crate::item::{Expression, Row, json, number, read_json, read_number, row};
use crate::key;

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

/// A holder or waiter, and the token that wakes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    holder: Holder,
    #[serde(default)]
    token: Option<String>,
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
        let turn = |at| {
            if at == 0 {
                Turn::Held
            } else {
                Turn::Waiting(at)
            }
        };
        for attempt in 0..ATTEMPTS {
            let (mut queue, version) = self.queue(key).await?;
            let at = match queue.iter().position(|entry| entry.holder == *holder) {
                Some(at) if token.is_none() || queue[at].token.as_deref() == token => {
                    return Ok(turn(at));
                }
                Some(at) => {
                    queue[at].token = token.map(str::to_owned);
                    at
                }
                None => {
                    queue.push(Entry {
                        holder: holder.clone(),
                        token: token.map(str::to_owned),
                    });
                    queue.len() - 1
                }
            };
            if queue.len() > LONGEST_QUEUE {
                let what = format!("the queue for {key}");
                return Err(StoreError::TooLarge {
                    what,
                    size: queue.len(),
                    limit: LONGEST_QUEUE,
                });
            }
            if self.put_queue(key, &queue, version, attempt).await? {
                return Ok(turn(at));
            }
        }
        Err(StoreError::Conflict {
            what: format!("the queue for {key}"),
        })
    }

    /// Gives the hold or the place in the queue back and answers with the token of whoever's turn it is
    /// then, to be completed. Giving back twice answers the same again, so that a crash between giving
    /// back and completing loses nobody.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn release(&self, key: &str, holder: &Holder) -> Result<Option<String>, StoreError> {
        for attempt in 0..ATTEMPTS {
            let (mut queue, version) = self.queue(key).await?;
            let before = queue.len();
            queue.retain(|entry| entry.holder != *holder);
            if queue.len() == before || self.put_queue(key, &queue, version, attempt).await? {
                return Ok(queue.into_iter().next().and_then(|entry| entry.token));
            }
        }
        Err(StoreError::Conflict {
            what: format!("the queue for {key}"),
        })
    }

    /// Who holds a key, and who waits for it, in order.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn line(&self, key: &str) -> Result<Vec<Holder>, StoreError> {
        let (queue, _) = self.queue(key).await?;
        Ok(queue.into_iter().map(|entry| entry.holder).collect())
    }

    async fn queue(&self, name: &str) -> Result<(Vec<Entry>, Option<u64>), StoreError> {
        let key = key::hold(name);
        let Some(item) = self.get(&key).await? else {
            return Ok((Vec::new(), None));
        };
        let queue = read_json(&key.what(), &item, "queue")?.unwrap_or_default();
        Ok((queue, Some(read_number(&item, "version").unwrap_or(0))))
    }

    /// Writes the queue if nobody else has; waits a little when somebody has.
    async fn put_queue(
        &self,
        name: &str,
        queue: &[Entry],
        version: Option<u64>,
        attempt: u32,
    ) -> Result<bool, StoreError> {
        let key = key::hold(name);
        let item = row(&key)
            .with("queue", json(&key.what(), &queue)?)
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
