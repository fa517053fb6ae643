//! Which triggers listen to a source. The list is kept in memory while nothing changes: a webhook asks at each of its deliveries, and an
//! account may have ten thousand triggers.
//!
//! Beside each list a number counts its changes. Whoever changes the list counts after it, and before the trigger itself
//! changes; whoever reads the list reads the number before it. So a list in memory that is older than its number is read
//! anew, and one that is younger does no harm: it may name too many triggers, and never too few.

use std::sync::Arc;

use aws_sdk_dynamodb::types::ReturnValue;
use slipway_model::id::AccountId;

use crate::dynamo::{Keys, Range};
use crate::entity::skipped;
use crate::error::StoreError;
use crate::item::{Change, Item, Row, json, number, read_json, read_number, read_text, row, text};
use crate::key::{self, Key, Table};
use crate::{Store, TriggerPlace};

/// Lists that are kept in memory.
pub(crate) const LISTS: usize = 64;

/// A list of triggers, each with what is said of it.
pub type Listeners = Arc<Vec<(TriggerPlace, String)>>;

impl Store {
    /// Lists a trigger among those that listen to `source`, with what is said of it.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn listen(
        &self,
        source: &str,
        place: &TriggerPlace,
        about: &str,
    ) -> Result<(), StoreError> {
        let key = listener(source, place);
        key.check()?;
        let item = row(&key)
            .with("place", json("a listener", place)?)
            .with("about", text(about));
        self.put(&key, item, None).await?;
        self.listening_changed(&place.scope.account, source).await
    }

    /// Takes a trigger off the list of [`Store::listen`].
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn stop_listening(
        &self,
        source: &str,
        place: &TriggerPlace,
    ) -> Result<(), StoreError> {
        self.delete(&listener(source, place), None).await?;
        self.listening_changed(&place.scope.account, source).await
    }

    /// Lists a trigger among those of all accounts that listen to `source`, for events that say nothing of accounts.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn listen_everywhere(
        &self,
        source: &str,
        place: &TriggerPlace,
    ) -> Result<(), StoreError> {
        let key = Key::new(Table::Entities, everywhere(source), place.key());
        key.check()?;
        let item = row(&key).with("place", json("a listener", place)?);
        self.put(&key, item, None).await
    }

    /// Takes a trigger off the list of [`Store::listen_everywhere`].
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn stop_listening_everywhere(
        &self,
        source: &str,
        place: &TriggerPlace,
    ) -> Result<(), StoreError> {
        let key = Key::new(Table::Entities, everywhere(source), place.key());
        self.delete(&key, None).await.map(drop)
    }

    /// The triggers of all accounts that listen to `source`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn listeners_everywhere(
        &self,
        source: &str,
    ) -> Result<Vec<TriggerPlace>, StoreError> {
        let range = Range::new(Table::Entities, everywhere(source), Keys::All);
        let listed = read_listeners(&self.query(range).await?);
        Ok(listed.into_iter().map(|(place, _)| place).collect())
    }

    /// The triggers of an account that listen to `source`, each with what is said of it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn listeners(
        &self,
        account: &AccountId,
        source: &str,
    ) -> Result<Vec<(TriggerPlace, String)>, StoreError> {
        let range = Range::new(Table::Entities, listening(account, source), Keys::All);
        Ok(read_listeners(&self.query(range).await?))
    }

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

fn read_listeners(items: &[Item]) -> Vec<(TriggerPlace, String)> {
    let found = items.iter().filter_map(|item| {
        match read_json::<TriggerPlace>("a listener", item, "place") {
            Ok(place) => {
                let about = read_text(item, "about").unwrap_or_default();
                Some((place?, about.to_owned()))
            }
            Err(error) => {
                skipped(item, &error);
                None
            }
        }
    });
    found.collect()
}

fn listening(account: &AccountId, source: &str) -> String {
    format!(
        "listen#{}#{}",
        key::part(account.as_str()),
        key::part(source)
    )
}

fn everywhere(source: &str) -> String {
    format!("hear#{}", key::part(source))
}

fn listener(source: &str, place: &TriggerPlace) -> Key {
    let partition = listening(&place.scope.account, source);
    Key::new(Table::Entities, partition, place.key())
}

fn changes(account: &AccountId, source: &str) -> Key {
    let (account, source) = (key::part(account.as_str()), key::part(source));
    Key::new(
        Table::Entities,
        format!("listening#{account}#{source}"),
        "changes",
    )
}
