//! Leases: something that one at a time may do, until a time.

use std::time::Duration;

use aws_sdk_dynamodb::types::ReturnValue;

use crate::Store;
use crate::error::StoreError;
use crate::item::{Change, Expression, number, text};
use crate::key;

impl Store {
    /// Takes or prolongs the lease `name`; `false` when another holder has it.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn take_lease(
        &self,
        name: &str,
        holder: &str,
        duration: Duration,
    ) -> Result<bool, StoreError> {
        let now = self.now_ms();
        let until = now.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX));
        let condition =
            Expression::new("attribute_not_exists(#pk) OR #until <= :now OR #holder = :holder")
                .value(":now", number(now));
        let change = Change::new(key::lease(name))
            .set("holder", text(holder))
            .set("until", number(until))
            .when(condition);
        match self.change(change, ReturnValue::None).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives a lease back; nothing happens when another holder has it.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn release_lease(&self, name: &str, holder: &str) -> Result<(), StoreError> {
        let condition = Expression::new("#holder = :holder").value(":holder", text(holder));
        match self.delete(&key::lease(name), Some(condition)).await {
            Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
