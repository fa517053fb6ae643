//! What became of registering the webhooks of triggers at their providers.

use slipway_model::id::AccountId;

use crate::dynamo::{Keys, Range};
use crate::entity::skipped;
use crate::error::StoreError;
use crate::item::{Row, json, read_json, row};
use crate::key::{self, Key, Table};
use crate::record::HookRecord;
use crate::{Store, TriggerPlace};

impl Store {
    /// Notes what became of registering the webhook of a trigger.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn put_hook(
        &self,
        place: &TriggerPlace,
        record: &HookRecord,
    ) -> Result<(), StoreError> {
        let key = hook(place);
        key.check()?;
        let item = row(&key)
            .with("place", json("a webhook", place)?)
            .with("body", json("a webhook", record)?);
        self.put(&key, item, None).await
    }

    /// What became of registering the webhook of a trigger; `None` before anybody tried.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn find_hook(&self, place: &TriggerPlace) -> Result<Option<HookRecord>, StoreError> {
        match self.get(&hook(place)).await? {
            Some(item) => read_json("a webhook", &item, "body"),
            None => Ok(None),
        }
    }

    /// Forgets the webhook of a trigger.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn forget_hook(&self, place: &TriggerPlace) -> Result<(), StoreError> {
        self.delete(&hook(place), None).await.map(drop)
    }

    /// What became of the webhooks of all triggers of an account.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_hooks(
        &self,
        account: &AccountId,
    ) -> Result<Vec<(TriggerPlace, HookRecord)>, StoreError> {
        let items = self
            .query(Range::new(Table::Entities, hooks(account), Keys::All))
            .await?;
        let found = items.iter().filter_map(|item| {
            let place = read_json::<TriggerPlace>("a webhook", item, "place");
            let record = read_json::<HookRecord>("a webhook", item, "body");
            match (place, record) {
                (Ok(place), Ok(record)) => Some((place?, record?)),
                (Err(error), _) | (_, Err(error)) => {
                    skipped(item, &error);
                    None
                }
            }
        });
        Ok(found.collect())
    }
}

fn hooks(account: &AccountId) -> String {
    format!("hook#{}", key::part(account.as_str()))
}

fn hook(place: &TriggerPlace) -> Key {
    Key::new(Table::Entities, hooks(&place.scope.account), place.key())
}
