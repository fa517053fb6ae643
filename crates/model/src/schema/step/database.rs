//! Database DevOps.

use super::common::{MAP, POSITIVE, TEXT_MAP};
use super::container::CONTAINER;
use crate::schema::{BOOL, TEXT, object};
use crate::shape::{Field, Object};

object!(DATABASE, "a step", [
    must "connectorRef": TEXT,
    must "dbSchema": TEXT,
    may "envVariables": TEXT_MAP,
    may "globalSettings": TEXT_MAP,
]);

step!(DB_SCHEMA_APPLY, "`DBSchemaApply`" + CONTAINER + DATABASE, [
    must "dbInstance": TEXT,
    may "tag": TEXT,
    may "migrationType": TEXT,
    may "markNextChangeSetRun": BOOL,
    may "tagDatabaseChangeSet": BOOL,
]);
step!(DB_SCHEMA_ROLLBACK, "`DBSchemaRollback`" + CONTAINER + DATABASE, [
    must "dbInstance": TEXT,
    may "migrationType": TEXT,
    may "settings": TEXT_MAP,
    may "tag": TEXT,
    may "changeSetCount": POSITIVE,
]);
step!(DB_SCHEMA_ROLLBACK_SQL, "`DBSchemaRollbackSQL`" + CONTAINER + DATABASE, [
    must "dbInstance": TEXT,
    may "tag": TEXT,
    may "changeSetCount": POSITIVE,
    may "settings": MAP,
], one_of: &["tag", "changeSetCount"]);
step!(DB_SCHEMA_UPDATE_SQL, "`DBSchemaUpdateSQL`" + CONTAINER + DATABASE, [
    must "dbInstance": TEXT,
    may "settings": MAP,
]);
step!(DB_TEST_AND_PREVIEW, "`DBTestAndPreview`" + CONTAINER + DATABASE, [
    must "changeset": TEXT,
    may "settings": MAP,
]);
step!(FLYWAY_COMMAND, "`FlywayCommand`" + CONTAINER + DATABASE, [
    must "dbInstance": TEXT,
    must "command": TEXT,
    may "settings": TEXT_MAP,
]);
step!(LIQUIBASE_COMMAND, "`LiquibaseCommand`" + CONTAINER, [
    must "dbInstance": TEXT,
    must "dbSchema": TEXT,
    must "connectorRef": TEXT,
    must "command": TEXT,
    may "settings": MAP,
    may "envVariables": TEXT_MAP,
    may "excludeChangeLogFile": BOOL,
]);
