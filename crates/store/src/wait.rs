//! Open waits of a run: what completes them.

use slipway_model::id::{NodeId, RunId};

use crate::Store;
use crate::dynamo::{Keys, Range};
use crate::entity::skipped;
use crate::error::StoreError;
use crate::item::{Row, row};
use crate::key::{self, Table};
use crate::record::WaitRecord;

impl Store {
    /// Notes a wait. Noting it again replaces its token.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn put_wait(&self, wait: &WaitRecord) -> Result<(), StoreError> {
        let key = key::wait(&wait.run, &wait.node, wait.attempt, &wait.kind);
        let body = self.store_value("a wait", wait).await?;
        let item = row(&key).with("body", body);
        self.put(&key, item, None).await
    }

    /// The open waits of a run.
    ///
    /// # Errors
    /// When the store cannot be read. A wait that cannot be read is left out with a warning.
    pub async fn list_waits(&self, run: &RunId) -> Result<Vec<WaitRecord>, StoreError> {
        let keys = Keys::Prefix("wait#".to_owned());
        let mut waits = Vec::new();
        for item in self
            .query(Range::new(Table::Runs, key::of_run(run), keys))
            .await?
        {
            match self.load_value(&item, "body").await {
                Ok(wait) => waits.extend(wait),
                Err(error) => skipped(&item, &error),
            }
        }
        Ok(waits)
    }

    /// Takes a wait away. Of several that try, one gets it.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn take_wait(
        &self,
        run: &RunId,
        node: &NodeId,
        attempt: u32,
        kind: &str,
    ) -> Result<Option<WaitRecord>, StoreError> {
        let key = key::wait(run, node, attempt, kind);
        match self.delete(&key, None).await? {
            Some(item) => self.load_value(&item, "body").await,
            None => Ok(None),
        }
    }
}
