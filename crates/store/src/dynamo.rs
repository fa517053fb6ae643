//! The few calls of DynamoDB that everything else is made of, counted. The SDK's futures are large (some 8 KiB each), and a
//! debug build keeps room on the stack for each that a function awaits: they are boxed here, once for all who call.

use std::sync::atomic::Ordering;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, TransactWriteItem};

use crate::Store;
use crate::error::{StoreError, refused};
use crate::item::{
    Change, Expression, Item, Parts, Write, delete, key_of, put, put_if_absent, text, update,
};
use crate::key::{Key, Table};
use crate::layout::{PK, SK};

/// DynamoDB's limit of one transaction.
pub(crate) const LARGEST_TRANSACTION: usize = 100;

/// Which items of a partition are asked for.
pub(crate) struct Range {
    pub(crate) table: Table,
    pub(crate) pk: String,
    pub(crate) keys: Keys,
    /// Only items of which this holds.
    pub(crate) filter: Option<Expression>,
    /// Newest (largest key) first.
    pub(crate) backward: bool,
    /// Most items to look at; `None` for all.
    pub(crate) limit: Option<usize>,
}

/// Sort keys that are asked for.
pub(crate) enum Keys {
    All,
    Prefix(String),
    /// From the first to the second, both included.
    Between(String, String),
    /// Behind this one, in the order of the query.
    Behind(String),
}

impl Range {
    pub(crate) fn new(table: Table, pk: String, keys: Keys) -> Self {
        Self {
            table,
            pk,
            keys,
            filter: None,
            backward: false,
            limit: None,
        }
    }

    fn condition(&self) -> Expression {
        let pk = text(&*self.pk);
        let of =
            |rest: &str| Expression::new(format!("#{PK} = :pk{rest}")).value(":pk", pk.clone());
        match &self.keys {
            Keys::All => of(""),
            Keys::Prefix(prefix) => {
                of(&format!(" AND begins_with(#{SK}, :from)")).value(":from", text(&**prefix))
            }
            Keys::Between(from, to) => of(&format!(" AND #{SK} BETWEEN :from AND :to"))
                .value(":from", text(&**from))
                .value(":to", text(&**to)),
            Keys::Behind(key) => {
                let than = if self.backward { "<" } else { ">" };
                of(&format!(" AND #{SK} {than} :from")).value(":from", text(&**key))
            }
        }
    }
}

impl Store {
    pub(crate) fn table(&self, table: Table) -> &str {
        let layout = &self.inner.layout;
        match table {
            Table::Entities => &layout.entities,
            Table::Runs => &layout.runs,
            Table::Instances => &layout.instances,
        }
    }

    pub(crate) fn count_write(&self) {
        self.inner.writes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_read(&self) {
        self.inner.reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        key.check()?;
        #[cfg(feature = "embedded")]
        if let (Table::Entities, Some(known)) = (key.table, &self.inner.known) {
            // Boxed: the futures of the SDK clients nest deep.
            return Box::pin(known.get(key, self.fetch(key))).await;
        }
        self.fetch(key).await
    }

    async fn fetch(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.count_read();
        let call = self
            .inner
            .dynamodb
            .get_item()
            .table_name(self.table(key.table));
        let call = call.set_key(Some(key_of(key))).consistent_read(true);
        let answer = Box::pin(call.send()).await;
        let answer = answer.map_err(|error| refused("read an item", &key.what(), error))?;
        Ok(answer.item)
    }

    /// Writes an item if `condition` holds; a condition that does not is [`StoreError::Conflict`].
    pub(crate) async fn put(
        &self,
        key: &Key,
        item: Item,
        condition: Option<Expression>,
    ) -> Result<(), StoreError> {
        key.check()?;
        self.count_write();
        let mut call = self
            .inner
            .dynamodb
            .put_item()
            .table_name(self.table(key.table));
        if let Some(condition) = condition {
            let (text, names, values) = condition.into_parts();
            call = call
                .condition_expression(text)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values);
        }
        let answer = Box::pin(call.set_item(Some(item)).send()).await;
        answer
            .map(drop)
            .map_err(|error| refused("write an item", &key.what(), error))
    }

    /// Changes an item and answers with what `answer` asks for.
    pub(crate) async fn change(
        &self,
        change: Change,
        answer: ReturnValue,
    ) -> Result<Item, StoreError> {
        change.key.check()?;
        self.count_write();
        let Parts {
            key,
            expression,
            condition,
            names,
            values,
        } = change.into_parts();
        let call = self
            .inner
            .dynamodb
            .update_item()
            .table_name(self.table(key.table));
        let call = call
            .set_key(Some(key_of(&key)))
            .update_expression(expression)
            .set_condition_expression(condition)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values)
            .return_values(answer);
        let answer = Box::pin(call.send()).await;
        let answer = answer.map_err(|error| refused("change an item", &key.what(), error))?;
        Ok(answer.attributes.unwrap_or_default())
    }

    /// Deletes an item and answers with what it was.
    pub(crate) async fn delete(
        &self,
        key: &Key,
        condition: Option<Expression>,
    ) -> Result<Option<Item>, StoreError> {
        key.check()?;
        self.count_write();
        let mut call = self
            .inner
            .dynamodb
            .delete_item()
            .table_name(self.table(key.table));
        if let Some(condition) = condition {
            let (text, names, values) = condition.into_parts();
            call = call
                .condition_expression(text)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values);
        }
        let call = call
            .set_key(Some(key_of(key)))
            .return_values(ReturnValue::AllOld);
        let answer = Box::pin(call.send()).await;
        let answer = answer.map_err(|error| refused("delete an item", &key.what(), error))?;
        Ok(answer.attributes.filter(|item| !item.is_empty()))
    }

    /// All writes or none of them, as one round trip.
    pub(crate) async fn transact(&self, what: &str, writes: Vec<Write>) -> Result<(), StoreError> {
        let mut parts = Vec::with_capacity(writes.len());
        for write in writes {
            parts.push(self.transaction_part(write)?);
        }
        self.count_write();
        let call = self
            .inner
            .dynamodb
            .transact_write_items()
            .set_transact_items(Some(parts));
        let answer = Box::pin(call.send()).await;
        answer
            .map(drop)
            .map_err(|error| refused("write items together", what, error))
    }

    fn transaction_part(&self, write: Write) -> Result<TransactWriteItem, StoreError> {
        let malformed = |error: aws_sdk_dynamodb::error::BuildError| StoreError::Unavailable {
            operation: "write items together",
            source: error.into(),
        };
        let part = TransactWriteItem::builder();
        Ok(match write {
            Write::Create(key, item) => {
                key.check()?;
                let put = put_if_absent(self.table(key.table), item).map_err(malformed)?;
                part.put(put).build()
            }
            Write::Beside(key, item) => {
                key.check()?;
                let put = put(self.table(key.table), item).map_err(malformed)?;
                part.put(put).build()
            }
            Write::Change(change) => {
                change.key.check()?;
                let table = self.table(change.key.table);
                part.update(update(table, change).map_err(malformed)?)
                    .build()
            }
            Write::Delete(key) => {
                key.check()?;
                let gone = delete(self.table(key.table), &key).map_err(malformed)?;
                part.delete(gone).build()
            }
        })
    }

    /// The items of a range, in order: up to its limit, page by page.
    pub(crate) async fn query(&self, range: Range) -> Result<Vec<Item>, StoreError> {
        let mut found = Vec::new();
        let mut start = None;
        loop {
            let (items, next) = self.query_page(&range, start, range.limit).await?;
            found.extend(items);
            start = next;
            let full = range.limit.is_some_and(|limit| found.len() >= limit);
            if start.is_none() || full {
                return Ok(found);
            }
        }
    }

    /// One page of a range, and where the next begins.
    pub(crate) async fn query_page(
        &self,
        range: &Range,
        start: Option<Item>,
        limit: Option<usize>,
    ) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        self.count_read();
        let (condition, mut names, mut values) = range.condition().into_parts();
        let mut call = self
            .inner
            .dynamodb
            .query()
            .table_name(self.table(range.table));
        if let Some(filter) = range.filter.clone() {
            let (text, more_names, more_values) = filter.into_parts();
            names
                .get_or_insert_default()
                .extend(more_names.unwrap_or_default());
            values
                .get_or_insert_default()
                .extend(more_values.unwrap_or_default());
            call = call.filter_expression(text);
        }
        let limit = limit.map(|limit| i32::try_from(limit.max(1)).unwrap_or(i32::MAX));
        let call = call
            .key_condition_expression(condition)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values)
            .scan_index_forward(!range.backward)
            .set_limit(limit)
            .set_exclusive_start_key(start)
            .consistent_read(true);
        let answer = Box::pin(call.send()).await;
        let answer = answer.map_err(|error| refused("read items", &range.pk, error))?;
        Ok((answer.items.unwrap_or_default(), answer.last_evaluated_key))
    }
}

/// Where an item is, for errors and log lines.
pub(crate) fn place(item: &Item) -> String {
    let part = |name| item.get(name).and_then(|v: &AttributeValue| v.as_s().ok());
    let (pk, sk) = (part(PK), part(SK));
    format!(
        "{} {}",
        pk.map_or("", String::as_str),
        sk.map_or("", String::as_str)
    )
}
