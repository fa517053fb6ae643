//! Work for delegates and its results.

use aws_sdk_dynamodb::types::ReturnValue;
use serde_json::Value;

use crate::Store;
use crate::error::StoreError;
use crate::item::{
    Change, Expression, Item, Row, json, number, read_json, read_number, read_text, row, text,
};
use crate::key;
use crate::record::DelegateTaskRecord;

/// Most delegates that are kept as unsuitable for one piece of work.
const MOST_UNSUITABLE: usize = 20;

impl Store {
    /// Stores new work.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] when work with this id is there.
    pub async fn put_delegate_task(&self, task: &DelegateTaskRecord) -> Result<(), StoreError> {
        let key = key::delegate_task(&task.id);
        let what = describe(&task.id);
        let bare = DelegateTaskRecord {
            unsuitable: Vec::new(),
            delegate: None,
            result: None,
            finished_ms: None,
            cancelled: false,
            payload: Value::Null,
            ..task.clone()
        };
        let item = row(&key)
            .with("body", self.store_value(&what, &bare).await?)
            .with("payload", self.store_value(&what, &task.payload).await?);
        let stored = self.put(&key, item, Some(Expression::absent())).await;
        stored.map_err(|error| named(error.or_exists(), &task.id))
    }

    /// Work and, once there is one, its result.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is none.
    pub async fn get_delegate_task(&self, id: &str) -> Result<DelegateTaskRecord, StoreError> {
        match self.get(&key::delegate_task(id)).await? {
            Some(item) => self.read_delegate_task(id, &item).await,
            None => Err(StoreError::NotFound { what: describe(id) }),
        }
    }

    /// Gives work to a delegate; the same delegate may ask again.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when another delegate has it, or it is done or cancelled;
    /// [`StoreError::NotFound`] when there is none.
    pub async fn claim_delegate_task(
        &self,
        id: &str,
        delegate: &str,
    ) -> Result<DelegateTaskRecord, StoreError> {
        let condition = Expression::new(
            "attribute_exists(#pk) AND attribute_not_exists(#result) AND attribute_not_exists(#cancelled) \
             AND (attribute_not_exists(#delegate) OR #delegate = :delegate)",
        );
        let change = Change::new(key::delegate_task(id)).set("delegate", text(delegate));
        let item = self.change_task(id, change.when(condition)).await?;
        self.read_delegate_task(id, &item).await
    }

    /// Notes that a delegate asked for work whose selectors it does not carry. `false` when that was known before, or
    /// enough others are known.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such work.
    pub async fn note_unsuitable(&self, id: &str, delegate: &str) -> Result<bool, StoreError> {
        let mut known = self.get_delegate_task(id).await?.unsuitable;
        if known.len() >= MOST_UNSUITABLE || known.iter().any(|name| name == delegate) {
            return Ok(false);
        }
        known.push(delegate.to_owned());
        // Of two that ask at the same moment one may be forgotten; it will ask again.
        let change = Change::new(key::delegate_task(id))
            .set("unsuitable", json(&describe(id), &known)?)
            .when(Expression::new("attribute_exists(#pk)"));
        self.change_task(id, change).await.map(|_| true)
    }

    /// Stores the result of work; the first one stays.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when there is a result already, [`StoreError::NotFound`] when there is no
    /// such work.
    pub async fn finish_delegate_task(&self, id: &str, result: &Value) -> Result<(), StoreError> {
        let result = self.store_value(&describe(id), result).await?;
        let condition = Expression::new("attribute_exists(#pk) AND attribute_not_exists(#result)");
        let change = Change::new(key::delegate_task(id))
            .set("result", result)
            .set("finished", number(self.now_ms()))
            .when(condition);
        self.change_task(id, change).await.map(drop)
    }

    /// Notes that nobody needs the work any more. Work that is done stays done.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is none.
    pub async fn cancel_delegate_task(&self, id: &str) -> Result<(), StoreError> {
        let condition = Expression::new("attribute_exists(#pk)");
        let change = Change::new(key::delegate_task(id));
        let change = change.set("cancelled", text("yes")).when(condition);
        self.change_task(id, change).await.map(drop)
    }

    /// Forgets work that nobody reads any more; what is not there is as good.
    ///
    /// # Errors
    /// When the table cannot be written.
    pub async fn forget_delegate_task(&self, id: &str) -> Result<(), StoreError> {
        self.delete(&key::delegate_task(id), None).await.map(drop)
    }

    async fn change_task(&self, id: &str, change: Change) -> Result<Item, StoreError> {
        match self.change(change, ReturnValue::AllNew).await {
            Err(StoreError::Conflict { .. }) => {
                let what = describe(id);
                let there = self.get(&key::delegate_task(id)).await?.is_some();
                Err(if there {
                    StoreError::Conflict { what }
                } else {
                    StoreError::NotFound { what }
                })
            }
            other => other,
        }
    }

    async fn read_delegate_task(
        &self,
        id: &str,
        item: &Item,
    ) -> Result<DelegateTaskRecord, StoreError> {
        let task = self.load_value::<DelegateTaskRecord>(item, "body").await?;
        let mut task =
            task.ok_or_else(|| StoreError::unreadable(describe(id), "it has no body"))?;
        task.payload = self.load_value(item, "payload").await?.unwrap_or_default();
        task.unsuitable = read_json(&describe(id), item, "unsuitable")?.unwrap_or_default();
        task.delegate = read_text(item, "delegate").map(str::to_owned);
        task.result = self.load_value(item, "result").await?;
        task.finished_ms = read_number(item, "finished");
        task.cancelled = item.contains_key("cancelled");
        Ok(task)
    }
}

fn describe(id: &str) -> String {
    format!("delegate task {id}")
}

fn named(error: StoreError, id: &str) -> StoreError {
    match error {
        StoreError::AlreadyExists { .. } => StoreError::AlreadyExists { what: describe(id) },
        other => other,
    }
}
