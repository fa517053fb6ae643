//! All that is kept of IAM.

use super::provider::Provider;
use super::role::Role;
use crate::error::StoreError;
use crate::inventory::Resource;
use crate::table::{Change, Table};

#[derive(Debug)]
pub(crate) struct Tables {
    /// Keys: `<account id>/<name>`.
    pub(super) roles: Table<Role>,
    /// Keys: ARNs.
    pub(super) providers: Table<Provider>,
}

impl Tables {
    pub(crate) fn new() -> Self {
        Self {
            roles: Table::new("iam-role"),
            providers: Table::new("iam-oidc-provider"),
        }
    }

    /// Takes in one stored entity if it belongs here.
    pub(crate) fn load(&mut self, key: &str, value: &[u8]) -> Result<bool, StoreError> {
        Ok(self.roles.load(key, value)? || self.providers.load(key, value)?)
    }

    pub(crate) fn changes(&mut self, into: &mut Vec<Change>) -> Result<(), StoreError> {
        self.roles.changes(into)?;
        self.providers.changes(into)
    }

    /// Everything that is there and is somebody's.
    pub(crate) fn show(&self, into: &mut Vec<Resource>) {
        self.roles.show(into);
        self.providers.show(into);
    }

    pub(crate) fn forget_changes(&mut self) {
        self.roles.forget_changes();
        self.providers.forget_changes();
    }

    pub(crate) fn pending(&self) -> usize {
        self.roles.pending() + self.providers.pending()
    }
}
