//! All that is kept for load balancing.

use jiff::Timestamp;

use super::listener::Listener;
use super::load_balancer::LoadBalancer;
use super::rule::Rule;
use super::target::Target;
use super::target_group::TargetGroup;
use super::traffic::Span;
use crate::account::Wake;
use crate::error::StoreError;
use crate::inventory::Resource;
use crate::table::{Change, Table};

#[derive(Debug)]
pub(crate) struct Tables {
    pub(super) load_balancers: Table<LoadBalancer>,
    pub(super) listeners: Table<Listener>,
    pub(super) rules: Table<Rule>,
    pub(super) target_groups: Table<TargetGroup>,
    /// Keys: see [`Target::key`].
    pub(super) targets: Table<Target>,
    /// Keys: ARN of the rule, and when the span began.
    pub(super) traffic: Table<Span>,
}

impl Tables {
    pub(crate) fn new() -> Self {
        Self {
            load_balancers: Table::new("load-balancer"),
            listeners: Table::new("listener"),
            rules: Table::new("listener-rule"),
            target_groups: Table::new("target-group"),
            targets: Table::new("target"),
            traffic: Table::new("traffic"),
        }
    }

    /// Takes in one stored entity if it belongs here.
    pub(crate) fn load(&mut self, key: &str, value: &[u8]) -> Result<bool, StoreError> {
        Ok(self.load_balancers.load(key, value)?
            || self.listeners.load(key, value)?
            || self.rules.load(key, value)?
            || self.target_groups.load(key, value)?
            || self.targets.load(key, value)?
            || self.traffic.load(key, value)?)
    }

    /// What is to happen by itself.
    pub(crate) fn due(&self) -> Vec<(Timestamp, Wake)> {
        let targets = self.targets.iter();
        let targets = targets.filter_map(|(key, row)| Some((row.due?, Wake::Target(key.clone()))));
        let balancers = self.load_balancers.iter();
        let balancers =
            balancers.filter_map(|(key, row)| Some((row.due?, Wake::LoadBalancer(key.clone()))));
        targets.chain(balancers).collect()
    }

    pub(crate) fn changes(&mut self, into: &mut Vec<Change>) -> Result<(), StoreError> {
        self.load_balancers.changes(into)?;
        self.listeners.changes(into)?;
        self.rules.changes(into)?;
        self.target_groups.changes(into)?;
        self.targets.changes(into)?;
        self.traffic.changes(into)
    }

    /// Everything that is there and is somebody's.
    pub(crate) fn show(&self, into: &mut Vec<Resource>) {
        self.load_balancers.show(into);
        self.listeners.show(into);
        self.rules.show(into);
        self.target_groups.show(into);
        self.targets.show(into);
    }

    pub(crate) fn forget_changes(&mut self) {
        self.load_balancers.forget_changes();
        self.listeners.forget_changes();
        self.rules.forget_changes();
        self.target_groups.forget_changes();
        self.targets.forget_changes();
        self.traffic.forget_changes();
    }

    pub(crate) fn pending(&self) -> usize {
        self.targets.pending() + self.traffic.pending()
    }
}
