//! The people of an account, those who were removed included.

use slipway_model::id::{AccountId, PrincipalId};

use crate::dynamo::{Keys, Range};
use crate::entity::skipped;
use crate::error::StoreError;
use crate::item::{Expression, Item, Row, json, read_json, read_text, row};
use crate::key::{self, Table};
use crate::layout::SK;
use crate::record::PersonRecord;
use crate::{Listing, Page, Store};

/// What errors call one.
const WHAT: &str = "a person";

impl Store {
    /// What is known of somebody; `None` of whom nothing was kept.
    ///
    /// # Errors
    /// Only when it cannot be read. A name that nobody can have is one of nobody.
    pub async fn find_person(
        &self,
        account: &AccountId,
        who: &PrincipalId,
    ) -> Result<Option<PersonRecord>, StoreError> {
        let key = key::person(account, who);
        if key.check().is_err() {
            return Ok(None);
        }
        match self.get(&key).await? {
            Some(item) => read(&item).map(Some),
            None => Ok(None),
        }
    }

    /// Notes that somebody is there, where nothing of them was kept before; one who was removed stays so. Whether it was
    /// noted now.
    ///
    /// # Errors
    /// When the store cannot be written, or the name is too long.
    pub async fn meet_person(
        &self,
        account: &AccountId,
        who: &PrincipalId,
    ) -> Result<bool, StoreError> {
        let met = PersonRecord {
            account: account.clone(),
            principal: who.clone(),
            since_ms: self.now_ms(),
            removed: None,
        };
        match self.put_if(&met, Some(Expression::absent())).await {
            Ok(()) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Keeps what is said of somebody, in the place of what was kept.
    ///
    /// # Errors
    /// When the store cannot be written, or the name is too long.
    pub async fn put_person(&self, person: &PersonRecord) -> Result<(), StoreError> {
        self.put_if(person, None).await
    }

    async fn put_if(
        &self,
        person: &PersonRecord,
        condition: Option<Expression>,
    ) -> Result<(), StoreError> {
        let key = key::person(&person.account, &person.principal);
        key.check()?;
        let item = row(&key).with("body", json(WHAT, person)?);
        self.put(&key, item, condition).await
    }

    /// The people of an account in the order of their names, those who were removed among them.
    ///
    /// # Errors
    /// When the store cannot be read. One who cannot be read is left out with a warning.
    pub async fn list_people(
        &self,
        account: &AccountId,
        page: Page,
    ) -> Result<Listing<PersonRecord>, StoreError> {
        let keys = page.after.map_or(Keys::All, Keys::Behind);
        let range = Range::new(Table::Entities, key::people(account), keys);
        let (items, next) = self
            .query_page(&range, None, Some(page.limit.max(1)))
            .await?;
        let mut people = Vec::with_capacity(items.len());
        for item in &items {
            match read(item) {
                Ok(person) => people.push(person),
                Err(error) => skipped(item, &error),
            }
        }
        Ok(Listing {
            items: people,
            next: next.and_then(|key| read_text(&key, SK).map(str::to_owned)),
        })
    }
}

fn read(item: &Item) -> Result<PersonRecord, StoreError> {
    read_json(WHAT, item, "body")?.ok_or_else(|| StoreError::unreadable(WHAT, "it has no body"))
}
