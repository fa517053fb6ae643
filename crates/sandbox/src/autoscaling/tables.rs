//! All that is kept of Auto Scaling.

use jiff::Timestamp;

use super::group::Group;
use super::hook::Hook;
use super::policy::Policy;
use super::schedule::Action;
use crate::account::Wake;
use crate::error::StoreError;
use crate::inventory::Resource;
use crate::table::{Change, Table};

#[derive(Debug)]
pub(crate) struct Tables {
    /// Keys: `<region>/<name>`.
    pub(super) groups: Table<Group>,
    /// Keys: `<region>/<group>|<name>`.
    pub(super) policies: Table<Policy>,
    /// Keys: `<region>/<group>|<name>`.
    pub(super) actions: Table<Action>,
    /// Keys: `<region>/<group>|<name>`.
    pub(super) hooks: Table<Hook>,
}

impl Tables {
    pub(crate) fn new() -> Self {
        Self {
            groups: Table::new("auto-scaling-group"),
            policies: Table::new("group-scaling-policy"),
            actions: Table::new("group-scheduled-action"),
            hooks: Table::new("group-lifecycle-hook"),
        }
    }

    /// Takes in one stored entity if it belongs here.
    pub(crate) fn load(&mut self, key: &str, value: &[u8]) -> Result<bool, StoreError> {
        Ok(self.groups.load(key, value)?
            || self.policies.load(key, value)?
            || self.actions.load(key, value)?
            || self.hooks.load(key, value)?)
    }

    /// What is to happen by itself.
    pub(crate) fn due(&self) -> Vec<(Timestamp, Wake)> {
        let groups = self.groups.iter();
        let due = groups.filter_map(|(key, row)| Some((row.due?, Wake::Group(key.clone()))));
        due.collect()
    }

    pub(crate) fn changes(&mut self, into: &mut Vec<Change>) -> Result<(), StoreError> {
        self.groups.changes(into)?;
        self.policies.changes(into)?;
        self.actions.changes(into)?;
        self.hooks.changes(into)
    }

    /// Everything that is there and is somebody's.
    pub(crate) fn show(&self, into: &mut Vec<Resource>) {
        self.groups.show(into);
        self.policies.show(into);
        self.actions.show(into);
        self.hooks.show(into);
    }

    pub(crate) fn forget_changes(&mut self) {
        self.groups.forget_changes();
        self.policies.forget_changes();
        self.actions.forget_changes();
        self.hooks.forget_changes();
    }

    pub(crate) fn pending(&self) -> usize {
        self.groups.pending()
    }
}
