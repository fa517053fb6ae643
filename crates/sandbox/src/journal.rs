//! The account's data file: one redb table of entities, written one transaction per accepted request.

use std::path::{Path, PathBuf};

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

/// A data file.
pub(crate) struct Journal {
    path: PathBuf,
    /// Absent after a write failed: redb wants a database that saw an I/O error opened anew.
    database: Option<Database>,
}

impl Journal {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let database = create(path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => OpenError::InUse {
                path: path.to_owned(),
            },
            other => OpenError::Open {
                path: path.to_owned(),
                source: Box::new(other.into()),
            },
        })?;
        let found = format(&database)?;
        if found > FORMAT {
            return Err(OpenError::NewerFormat {
                path: path.to_owned(),
                found,
                supported: FORMAT,
            });
        }
        Ok(Self {
            path: path.to_owned(),
            database: Some(database),
        })
    }

    fn database(&mut self) -> Result<&Database, redb::Error> {
        let database = match self.database.take() {
            Some(database) => database,
            None => create(&self.path)?,
        };
        Ok(self.database.insert(database))
    }

    /// Calls `each` with every stored entity.
    pub(crate) fn load(
        &mut self,
        mut each: impl FnMut(&str, &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        fn read<E: Into<redb::Error>>(error: E) -> StoreError {
            StoreError::Read(Box::new(error.into()))
        }
        let database = self.database().map_err(read)?;
        let transaction = database.begin_read().map_err(read)?;
        let table = transaction.open_table(ENTITIES).map_err(read)?;
        for row in table.iter().map_err(read)? {
            let (key, value) = row.map_err(read)?;
            each(key.value(), value.value())?;
        }
        Ok(())
    }

    /// Writes all of `changes` or none, and returns once they are on disk.
    pub(crate) fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let written = self
            .database()
            .and_then(|database| write(database, changes));
        written.map_err(|source| {
            self.database = None;
            StoreError::Write(Box::new(source))
        })
    }
}

fn create(path: &Path) -> Result<Database, DatabaseError> {
    Database::builder().set_cache_size(CACHE).create(path)
}

/// The file's format; a new file gets this version's.
fn format(database: &Database) -> Result<u64, StoreError> {
    let read = || -> Result<Option<u64>, redb::Error> {
        let transaction = database.begin_read()?;
        match transaction.open_table(FILE) {
            Ok(table) => Ok(table.get("format")?.map(|found| found.value())),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(other) => Err(other.into()),
        }
    };
    if let Some(found) = read().map_err(|source| StoreError::Read(Box::new(source)))? {
        return Ok(found);
    }
    let begin = || -> Result<(), redb::Error> {
        let transaction = database.begin_write()?;
        transaction.open_table(FILE)?.insert("format", FORMAT)?;
        transaction.open_table(ENTITIES)?;
        transaction.commit()?;
        Ok(())
    };
    begin().map_err(|source| StoreError::Write(Box::new(source)))?;
    Ok(FORMAT)
}

fn write(database: &Database, changes: &[Change]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
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
}
