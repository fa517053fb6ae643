//! What has a time to be looked at.

use slipway_model::id::Scope;

use crate::Store;
use crate::dynamo::{Keys, Range};
use crate::error::StoreError;
use crate::item::{Expression, Item, Row, number, read_number, read_text, row, text};
use crate::key::{self, Key, Table};

/// Attribute with the time at which something is due, epoch milliseconds.
const AT: &str = "at";

/// Something that has a time: a schedule, a feed that is asked from time to time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// What: unique.
    pub what: String,
    /// When, epoch milliseconds.
    pub at_ms: i64,
    /// For whoever handles it.
    pub body: String,
}

impl Store {
    /// Sets when something is due. `before` is the time that it was due at, where nobody else may have moved it on
    /// meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when somebody has.
    pub async fn put_due(
        &self,
        scope: &Scope,
        due: &Due,
        before: Option<i64>,
    ) -> Result<(), StoreError> {
        let key = due_key(key::shard(scope), &due.what);
        key.check()?;
        let item = row(&key)
            .with("what", text(&*due.what))
            .with(AT, number(due.at_ms))
            .with("body", text(&*due.body));
        let same =
            before.map(|before| Expression::new("#at = :before").value(":before", number(before)));
        self.put(&key, item, same).await
    }

    /// Something that is due some time, if it is there.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn find_due(&self, scope: &Scope, what: &str) -> Result<Option<Due>, StoreError> {
        let found = self.get(&due_key(key::shard(scope), what)).await?;
        Ok(found.as_ref().and_then(read_due))
    }

    /// Forgets something that was due.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn forget_due(&self, scope: &Scope, what: &str) -> Result<(), StoreError> {
        let key = due_key(key::shard(scope), what);
        self.delete(&key, None).await.map(drop)
    }

    /// Forgets something that is due at that time still; `false` where somebody has moved it on meanwhile.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn forget_due_of(&self, scope: &Scope, due: &Due) -> Result<bool, StoreError> {
        let key = due_key(key::shard(scope), &due.what);
        let same = Expression::new("#at = :before").value(":before", number(due.at_ms));
        match self.delete(&key, Some(same)).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What is due by `by_ms`, of one of [`Store::INTAKE_LISTS`] lists.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_due(&self, list: u8, by_ms: i64) -> Result<Vec<Due>, StoreError> {
        let range = Range::new(Table::Entities, due(list), Keys::All);
        let items = self.query(range).await?;
        let all = items.iter().filter_map(read_due);
        Ok(all.filter(|due| due.at_ms <= by_ms).collect())
    }
}

fn read_due(item: &Item) -> Option<Due> {
    Some(Due {
        what: read_text(item, "what")?.to_owned(),
        at_ms: read_number(item, AT)?,
        body: read_text(item, "body")?.to_owned(),
    })
}

fn due(list: u8) -> String {
    format!("due#{list:02}")
}

fn due_key(list: u8, what: &str) -> Key {
    Key::new(Table::Entities, due(list), key::part(what))
}
