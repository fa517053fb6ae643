//! Which triggers listen to a source, kept in memory while nothing changes: a webhook asks at each of its deliveries, and an
//! account may have ten thousand triggers.
//!
//! Beside each list a number counts its changes. Whoever changes the list counts after it, and before the trigger itself
//! changes; whoever reads the list reads the number before it. So a list in memory that is older than its number is read
//! anew, and one that is younger does no harm: it may name too many triggers, and never too few.

use std::sync::Arc;

use aws_sdk_dynamodb::types::ReturnValue;
use slipway_model::id::AccountId;

use crate::error::StoreError;
use crate::item::{Change, number, read_number};
use crate::key::{self, Key, Table};
use crate::{Store, TriggerPlace};

/// Lists that are kept in memory.
pub(crate) const LISTS: usize = 64;

/// A list of triggers, each with what is said of it.
pub type Listeners = Arc<Vec<(TriggerPlace, String)>>;

impl Store {
    /// As [`Store::listeners`], from memory where nothing has changed: one small item is read.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn listeners_now(
        &self,
        account: &AccountId,
        source: &str,
    ) -> Result<Listeners, StoreError> {
        let key = changes(account, source);
        let kept = &self.inner.listeners;
        let name = key.what();
        let item = self.get(&key).await?;
        // Nothing was counted: the list is empty, or of a version that did not count.
        let changes: Option<u64> = item.and_then(|item| read_number(&item, "changes"));
        if let (Some(changes), Some((known, list))) = (changes, kept.get(&name))
            && changes == known
        {
            return Ok(list);
        }
        let list = Arc::new(self.listeners(account, source).await?);
        if let Some(changes) = changes {
            kept.put(&name, (changes, Arc::clone(&list)));
        }
        Ok(list)
    }

    /// Counts a change of a list.
    pub(crate) async fn listening_changed(
        &self,
        account: &AccountId,
        source: &str,
    ) -> Result<(), StoreError> {
        let change = Change::new(changes(account, source)).add("changes", number(1));
        self.change(change, ReturnValue::None).await.map(drop)
    }
}

fn changes(account: &AccountId, source: &str) -> Key {
    let (account, source) = (key::part(account.as_str()), key::part(source));
    Key::new(
        Table::Entities,
        format!("listening#{account}#{source}"),
        "changes",
    )
}
