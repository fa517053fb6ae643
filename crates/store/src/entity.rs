//! Entities of users, by scope, kind and identifier.

use aws_sdk_dynamodb::types::ReturnValue;
use serde_json::Value;
use slipway_model::id::{EntityId, Scope};

use crate::dynamo::{Keys, Range, place};
use crate::error::StoreError;
use crate::item::{Change, Expression, Item, Row, json, number, read_json, read_text, row};
use crate::key::{self, Table};
use crate::layout::SK;
use crate::record::{ConnectionRecord, EntityRecord};
use crate::{Listing, Page, Store};

impl Store {
    /// Creates an entity (`expected` is `None`) or replaces the version `expected` of it. Answers with
    /// what was stored: the version is one more than that, and the times are the record's own.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] or [`StoreError::Conflict`].
    pub async fn put_entity(
        &self,
        record: &EntityRecord,
        expected: Option<u64>,
    ) -> Result<EntityRecord, StoreError> {
        let key = key::entity(
            &record.scope,
            &record.kind,
            record.parent.as_ref(),
            &record.id,
        );
        key.check()?;
        let stored = EntityRecord {
            version: expected.map_or(1, |v| v + 1),
            connection: None,
            ..record.clone()
        };
        let what = describe(&record.kind, &record.id);
        let mut body =
            serde_json::to_value(&stored).map_err(|error| StoreError::unreadable(&*what, error))?;
        let yaml = body.get_mut("yaml").map(Value::take).unwrap_or_default();
        let item = row(&key)
            .with("version", number(stored.version))
            .with("body", json(&what, &body)?)
            .with("yaml", self.store_value(&what, &yaml).await?);
        let condition = match expected {
            None => Expression::absent(),
            Some(version) => {
                Expression::new("#version = :expected").value(":expected", number(version))
            }
        };
        match self.put(&key, item, Some(condition)).await {
            Ok(()) => Ok(stored),
            Err(StoreError::Conflict { .. }) if expected.is_none() => {
                Err(StoreError::AlreadyExists { what })
            }
            Err(StoreError::Conflict { .. }) => Err(StoreError::Conflict { what }),
            Err(error) => Err(error),
        }
    }

    /// An entity.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is none.
    pub async fn get_entity(
        &self,
        scope: &Scope,
        kind: &str,
        parent: Option<&EntityId>,
        id: &EntityId,
    ) -> Result<EntityRecord, StoreError> {
        let found = self.find_entity(scope, kind, parent, id).await?;
        found.ok_or_else(|| StoreError::NotFound {
            what: describe(kind, id),
        })
    }

    /// An entity, if there is one.
    ///
    /// # Errors
    /// Only when it cannot be read. An identifier that no entity can have is one that is not there.
    pub async fn find_entity(
        &self,
        scope: &Scope,
        kind: &str,
        parent: Option<&EntityId>,
        id: &EntityId,
    ) -> Result<Option<EntityRecord>, StoreError> {
        let key = key::entity(scope, kind, parent, id);
        if key.check().is_err() {
            return Ok(None);
        }
        match self.get(&key).await? {
            Some(item) => self.read_entity(&item).await.map(Some),
            None => Ok(None),
        }
    }

    /// Notes what a test of the connection of `tested` said, in the place of what an earlier test said.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it was changed or deleted since it was read.
    pub async fn put_connection(
        &self,
        tested: &EntityRecord,
        connection: &ConnectionRecord,
    ) -> Result<(), StoreError> {
        let key = key::entity(
            &tested.scope,
            &tested.kind,
            tested.parent.as_ref(),
            &tested.id,
        );
        let what = describe(&tested.kind, &tested.id);
        let same =
            Expression::new("#version = :expected").value(":expected", number(tested.version));
        let change = Change::new(key)
            .set("connection", json(&what, connection)?)
            .when(same);
        match self.change(change, ReturnValue::None).await {
            Err(StoreError::Conflict { .. }) => Err(StoreError::Conflict { what }),
            changed => changed.map(drop),
        }
    }

    /// Deletes an entity, if `expected` is given only in that version.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is none, [`StoreError::Conflict`] when it has another version.
    pub async fn delete_entity(
        &self,
        scope: &Scope,
        kind: &str,
        parent: Option<&EntityId>,
        id: &EntityId,
        expected: Option<u64>,
    ) -> Result<(), StoreError> {
        let key = key::entity(scope, kind, parent, id);
        let condition = expected.map(|version| {
            Expression::new("attribute_not_exists(#pk) OR #version = :expected")
                .value(":expected", number(version))
        });
        let what = describe(kind, id);
        match self.delete(&key, condition).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(StoreError::NotFound { what }),
            Err(StoreError::Conflict { .. }) => Err(StoreError::Conflict { what }),
            Err(error) => Err(error),
        }
    }

    /// Entities of one kind in one scope (and below one parent), in the order of their identifiers.
    ///
    /// # Errors
    /// When the store cannot be read. An entity that cannot be read is left out with a warning.
    pub async fn list_entities(
        &self,
        scope: &Scope,
        kind: &str,
        parent: Option<&EntityId>,
        page: Page,
    ) -> Result<Listing<EntityRecord>, StoreError> {
        let keys = page.after.map_or(Keys::All, Keys::Behind);
        let range = Range::new(Table::Entities, key::entities(scope, kind, parent), keys);
        let mut found = Vec::new();
        let mut start = None;
        loop {
            let left = page.limit.max(1).saturating_sub(found.len());
            let (items, next) = self.query_page(&range, start, Some(left)).await?;
            found.extend(items);
            start = next;
            if start.is_none() || found.len() >= page.limit {
                break;
            }
        }
        let next = start.and_then(|key| read_text(&key, SK).map(str::to_owned));
        let mut records = Vec::with_capacity(found.len());
        for item in &found {
            match self.read_entity(item).await {
                Ok(record) => records.push(record),
                Err(error) => skipped(item, &error),
            }
        }
        Ok(Listing {
            items: records,
            next,
        })
    }

    async fn read_entity(&self, item: &Item) -> Result<EntityRecord, StoreError> {
        let what = place(item);
        let damaged = || StoreError::unreadable(&*what, "it has no body");
        let mut body: Value = read_json(&what, item, "body")?.ok_or_else(damaged)?;
        let yaml: Value = self.load_value(item, "yaml").await?.unwrap_or_default();
        body.as_object_mut()
            .ok_or_else(damaged)?
            .insert("yaml".to_owned(), yaml);
        let record = serde_json::from_value(body);
        let mut record: EntityRecord =
            record.map_err(|error| StoreError::unreadable(&*what, error))?;
        record.connection = read_json(&what, item, "connection")?;
        Ok(record)
    }
}

fn describe(kind: &str, id: &EntityId) -> String {
    format!("{kind} {id}")
}

/// Says that a record of a list could not be read. The list goes on: one bad record must not hide others.
pub(crate) fn skipped(item: &Item, error: &StoreError) {
    tracing::warn!(record = place(item), %error, "left a record out of a list");
}
