//! All that is kept of EC2.

use super::image::Image;
use super::instance::Instance;
use super::template::Template;
use super::version::Version;
use crate::error::StoreError;
use crate::inventory::Resource;
use crate::table::{Change, Table};

#[derive(Debug)]
pub(crate) struct Tables {
    /// Keys: `<region>/<id>`.
    pub(super) templates: Table<Template>,
    /// Keys: `<region>/<id of the template>|<number, ten digits>`.
    pub(super) versions: Table<Version>,
    /// Keys: `<region>/<id>`.
    pub(super) images: Table<Image>,
    /// Keys: ids, which are the same in no two regions.
    pub(super) instances: Table<Instance>,
}

impl Tables {
    pub(crate) fn new() -> Self {
        Self {
            templates: Table::new("launch-template"),
            versions: Table::new("launch-template-version"),
            images: Table::new("machine-image"),
            instances: Table::new("instance"),
        }
    }

    /// Takes in one stored entity if it belongs here.
    pub(crate) fn load(&mut self, key: &str, value: &[u8]) -> Result<bool, StoreError> {
        Ok(self.templates.load(key, value)?
            || self.versions.load(key, value)?
            || self.images.load(key, value)?
            || self.instances.load(key, value)?)
    }

    pub(crate) fn changes(&mut self, into: &mut Vec<Change>) -> Result<(), StoreError> {
        self.templates.changes(into)?;
        self.versions.changes(into)?;
        self.images.changes(into)?;
        self.instances.changes(into)
    }

    /// Everything that is there and is somebody's.
    pub(crate) fn show(&self, into: &mut Vec<Resource>) {
        self.templates.show(into);
        self.versions.show(into);
        self.images.show(into);
        self.instances.show(into);
    }

    pub(crate) fn forget_changes(&mut self) {
        self.templates.forget_changes();
        self.versions.forget_changes();
        self.images.forget_changes();
        self.instances.forget_changes();
    }

    pub(crate) fn pending(&self) -> usize {
        self.instances.pending()
    }
}
