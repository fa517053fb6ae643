//! What is kept of Cloud Map.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::instance::Instance;
use super::namespace::Namespace;
use super::service::Service;
use crate::error::StoreError;
use crate::fields::epoch;
use crate::inventory::Resource;
use crate::table::{Change, Table};

/// All that is kept.
#[derive(Debug)]
pub(crate) struct Tables {
    /// Keys: region and id.
    pub(super) namespaces: Table<Namespace>,
    /// Keys: region and id.
    pub(super) services: Table<Service>,
    /// Instances that somebody registered. Keys: that of the service, and the id.
    pub(super) instances: Table<Instance>,
    /// Keys: region and id.
    pub(super) operations: Table<Operation>,
}

/// Something that AWS does on its own after it has answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Operation {
    pub(super) id: String,
    pub(super) kind: String,
    /// `NAMESPACE`, `SERVICE` or `INSTANCE`, and its id.
    pub(super) target: String,
    pub(super) target_id: String,
    pub(super) at: Timestamp,
}

impl Operation {
    pub(super) fn view(&self) -> Value {
        json!({
            "Id": self.id,
            "Type": self.kind,
            "Status": "SUCCESS",
            "CreateDate": epoch(self.at),
            "UpdateDate": epoch(self.at),
            "Targets": {(self.target.as_str()): self.target_id},
        })
    }
}

impl Tables {
    pub(crate) fn new() -> Self {
        Self {
            namespaces: Table::new("discovery-namespace"),
            services: Table::new("discovery-service"),
            instances: Table::new("discovery-instance"),
            operations: Table::new("discovery-operation"),
        }
    }

    /// Takes in one stored entity if it belongs here.
    pub(crate) fn load(&mut self, key: &str, value: &[u8]) -> Result<bool, StoreError> {
        Ok(self.namespaces.load(key, value)?
            || self.services.load(key, value)?
            || self.instances.load(key, value)?
            || self.operations.load(key, value)?)
    }

    pub(crate) fn changes(&mut self, into: &mut Vec<Change>) -> Result<(), StoreError> {
        self.namespaces.changes(into)?;
        self.services.changes(into)?;
        self.instances.changes(into)?;
        self.operations.changes(into)
    }

    /// Everything that is there and is somebody's.
    pub(crate) fn show(&self, into: &mut Vec<Resource>) {
        self.namespaces.show(into);
        self.services.show(into);
        self.instances.show(into);
    }

    pub(crate) fn forget_changes(&mut self) {
        self.namespaces.forget_changes();
        self.services.forget_changes();
        self.instances.forget_changes();
        self.operations.forget_changes();
    }
}
