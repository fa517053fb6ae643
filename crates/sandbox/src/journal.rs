//! The account's data file: one redb table of entities, written one transaction per accepted request.

use std::path::Path;

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition, TableError};

use crate::error::{OpenError, StoreError};
use crate::table::Change;

/// Kind and key of an entity → its JSON.
const ENTITIES: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("entities");
/// Facts about the file itself.
const FILE: TableDefinition<'static, &str, u64> = TableDefinition::new("file");
/// Version of what is written here. A file with a higher one is refused.
const FORMAT: u64 = 1;
/// Cache of the storage, bytes. The account itself is in memory, so reads happen only on opening.
const CACHE: usize = 1 << 20;

/// An open data file.
pub(crate) struct Journal(Database);

impl Journal {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let database = Database::builder()
            .set_cache_size(CACHE)
            .create(path)
            .map_err(|error| match error {
                DatabaseError::DatabaseAlreadyOpen => OpenError::InUse {
                    path: path.to_owned(),
                },
                other => OpenError::Open {
                    path: path.to_owned(),
                    source: Box::new(other.into()),
                },
            })?;
        let journal = Self(database);
        let found = journal.format()?;
        if found > FORMAT {
            return Err(OpenError::NewerFormat {
                path: path.to_owned(),
                found,
                supported: FORMAT,
            });
        }
        Ok(journal)
    }

    fn format(&self) -> Result<u64, StoreError> {
        let read = || -> Result<Option<u64>, redb::Error> {
            let transaction = self.0.begin_read()?;
            match transaction.open_table(FILE) {
                Ok(table) => Ok(table.get("format")?.map(|found| found.value())),
                Err(TableError::TableDoesNotExist(_)) => Ok(None),
                Err(other) => Err(other.into()),
            }
        };
        if let Some(found) = read().map_err(|source| StoreError::Read(Box::new(source)))? {
            return Ok(found);
        }
        let create = || -> Result<(), redb::Error> {
            let transaction = self.0.begin_write()?;
            transaction.open_table(FILE)?.insert("format", FORMAT)?;
            transaction.open_table(ENTITIES)?;
            transaction.commit()?;
            Ok(())
        };
        create().map_err(|source| StoreError::Write(Box::new(source)))?;
        Ok(FORMAT)
    }

    /// Calls `each` with every stored entity.
    pub(crate) fn load(
        &self,
        mut each: impl FnMut(&str, &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        fn read<E: Into<redb::Error>>(error: E) -> StoreError {
            StoreError::Read(Box::new(error.into()))
        }
        let transaction = self.0.begin_read().map_err(read)?;
        let table = transaction.open_table(ENTITIES).map_err(read)?;
        for row in table.iter().map_err(read)? {
            let (key, value) = row.map_err(read)?;
            each(key.value(), value.value())?;
        }
        Ok(())
    }

    /// Writes all of `changes` or none, and returns once they are on disk.
    pub(crate) fn commit(&self, changes: &[Change]) -> Result<(), StoreError> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.0.begin_write()?;
            {
                let mut table = transaction.open_table(ENTITIES)?;
                for change in changes {
                    match &change.value {
                        Some(value) => table.insert(change.key.as_str(), value.as_slice())?,
                        None => table.remove(change.key.as_str())?,
                    };
                }
            }
            transaction.commit()?;
            Ok(())
        };
        write().map_err(|source| StoreError::Write(Box::new(source)))
    }
}
