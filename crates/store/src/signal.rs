//! What people say about a run while it goes on.

use slipway_model::id::{NodeId, RunId};

use crate::Store;
use crate::error::StoreError;
use crate::item::{Expression, Row, row};
use crate::key;
use crate::record::SignalRecord;

impl Store {
    /// Notes what a person said. [`Store::get_run`] reads it with its run.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] when something was said of this kind about this attempt before: the first word
    /// counts.
    pub async fn put_signal(&self, signal: &SignalRecord) -> Result<(), StoreError> {
        let key = key::signal(&signal.run, &signal.node, signal.attempt, &signal.kind);
        let body = self.store_value("a signal", signal).await?;
        let item = row(&key).with("body", body);
        let put = self.put(&key, item, Some(Expression::absent())).await;
        put.map_err(|error| match error.or_exists() {
            StoreError::AlreadyExists { .. } => StoreError::AlreadyExists {
                what: said(&signal.run, &signal.node, &signal.kind),
            },
            other => other,
        })
    }
}

fn said(run: &RunId, node: &NodeId, kind: &str) -> String {
    match node.as_str() {
        "" => format!("a word ({kind}) about run {run}"),
        node => format!("a word ({kind}) about {node}"),
    }
}
