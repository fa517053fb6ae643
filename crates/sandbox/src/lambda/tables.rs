//! All that is kept for functions.

use jiff::Timestamp;

use super::alias::Alias;
use super::code::Package;
use super::function::{Function, Version};
use super::traffic::Span;
use crate::account::Wake;
use crate::error::StoreError;
use crate::inventory::Resource;
use crate::table::{Change, Table};

#[derive(Debug)]
pub(crate) struct Tables {
    /// Keys: region and name.
    pub(super) functions: Table<Function>,
    /// Keys: the function's, and the number.
    pub(super) versions: Table<Version>,
    /// Keys: the function's, and the name.
    pub(super) aliases: Table<Alias>,
    /// Keys: the alias's, and a count.
    pub(super) spans: Table<Span>,
    /// Keys: the digest.
    pub(crate) packages: Table<Package>,
}

impl Tables {
    pub(crate) fn new() -> Self {
        Self {
            functions: Table::new("function"),
            versions: Table::new("function-version"),
            aliases: Table::new("function-alias"),
            spans: Table::new("alias-span"),
            packages: Table::new("code-package"),
        }
    }

    /// Takes in one stored entity if it belongs here.
    pub(crate) fn load(&mut self, key: &str, value: &[u8]) -> Result<bool, StoreError> {
        Ok(self.functions.load(key, value)?
            || self.versions.load(key, value)?
            || self.aliases.load(key, value)?
            || self.spans.load(key, value)?
            || self.packages.load(key, value)?)
    }

    /// What is to happen by itself.
    pub(crate) fn due(&self) -> Vec<(Timestamp, Wake)> {
        let functions = self.functions.iter();
        let functions =
            functions.filter_map(|(key, row)| Some((row.due?, Wake::Function(key.clone()))));
        let versions = self.versions.iter();
        let versions =
            versions.filter_map(|(key, row)| Some((row.due?, Wake::FunctionVersion(key.clone()))));
        functions.chain(versions).collect()
    }

    pub(crate) fn changes(&mut self, into: &mut Vec<Change>) -> Result<(), StoreError> {
        self.functions.changes(into)?;
        self.versions.changes(into)?;
        self.aliases.changes(into)?;
        self.spans.changes(into)?;
        self.packages.changes(into)
    }

    /// Everything that is there and is somebody's.
    pub(crate) fn show(&self, into: &mut Vec<Resource>) {
        self.functions.show(into);
        self.versions.show(into);
        self.aliases.show(into);
    }

    pub(crate) fn forget_changes(&mut self) {
        self.functions.forget_changes();
        self.versions.forget_changes();
        self.aliases.forget_changes();
        self.spans.forget_changes();
        self.packages.forget_changes();
    }

    pub(crate) fn pending(&self) -> usize {
        self.functions.pending() + self.versions.pending()
    }
}
