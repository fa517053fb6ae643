//! Caches of builds.

use super::common::INT;
use super::container::RESOURCES;
use crate::schema::{BOOL, TEXT, TEXT_OR_TEXTS, TEXTS};
use crate::shape::{Field, Object, Shape};

bare!(RESTORE_CACHE, "`RestoreCache`", [
    must "key": TEXT,
    must "providerType": Shape::OneOf(&["Gcs", "S3", "Harness", "Azure"]),
    may "archiveFormat": Shape::OneOf(&["Tar", "Gzip"]),
    may "baseImageConnectorRefs": TEXTS,
    may "bucket": TEXT,
    may "connectorRef": TEXT,
    may "failIfKeyNotFound": BOOL,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
]);
bare!(RESTORE_CACHE_AZURE, "`RestoreCacheAzure`", [
    must "containerName": TEXT,
    must "connectorRef": TEXT,
    must "key": TEXT,
    must "sourcePaths": TEXT_OR_TEXTS,
    must "storageAccount": TEXT,
    may "failIfKeyNotFound": BOOL,
    may "preserveMetadata": BOOL,
    may "desc": TEXT,
]);
bare!(RESTORE_CACHE_GCS, "`RestoreCacheGCS`", [
    must "bucket": TEXT,
    must "connectorRef": TEXT,
    must "key": TEXT,
    may "archiveFormat": Shape::OneOf(&["Tar", "Gzip"]),
    may "baseImageConnectorRefs": TEXTS,
    may "failIfKeyNotFound": BOOL,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
    may "preserveMetadata": BOOL,
]);
bare!(RESTORE_CACHE_S3, "`RestoreCacheS3`", [
    must "bucket": TEXT,
    must "connectorRef": TEXT,
    must "key": TEXT,
    may "archiveFormat": Shape::OneOf(&["Tar", "Gzip", "Zstd"]),
    may "baseImageConnectorRefs": TEXTS,
    may "endpoint": TEXT,
    may "failIfKeyNotFound": BOOL,
    may "pathStyle": BOOL,
    may "region": TEXT,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
    may "preserveMetadata": BOOL,
]);
bare!(SAVE_CACHE, "`SaveCache`", [
    must "key": TEXT,
    must "sourcePaths": TEXT_OR_TEXTS,
    must "providerType": Shape::OneOf(&["Gcs", "S3", "Harness", "Azure"]),
    may "archiveFormat": Shape::OneOf(&["Tar", "Gzip", "Zstd"]),
    may "baseImageConnectorRefs": TEXTS,
    may "bucket": TEXT,
    may "connectorRef": TEXT,
    may "endpoint": TEXT,
    may "override": BOOL,
    may "pathStyle": BOOL,
    may "region": TEXT,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
]);
bare!(SAVE_CACHE_AZURE, "`SaveCacheAzure`", [
    must "storageAccount": TEXT,
    must "containerName": TEXT,
    must "connectorRef": TEXT,
    must "key": TEXT,
    must "sourcePaths": TEXT_OR_TEXTS,
    may "archiveFormat": Shape::OneOf(&["Tar", "Gzip", "Zstd"]),
    may "baseImageConnectorRefs": TEXTS,
    may "override": BOOL,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
]);
bare!(SAVE_CACHE_GCS, "`SaveCacheGCS`", [
    must "bucket": TEXT,
    must "connectorRef": TEXT,
    must "key": TEXT,
    must "sourcePaths": TEXT_OR_TEXTS,
    may "archiveFormat": Shape::OneOf(&["Tar", "Gzip"]),
    may "baseImageConnectorRefs": TEXTS,
    may "override": BOOL,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
]);
bare!(SAVE_CACHE_S3, "`SaveCacheS3`", [
    must "bucket": TEXT,
    must "connectorRef": TEXT,
    must "key": TEXT,
    must "sourcePaths": TEXT_OR_TEXTS,
    may "archiveFormat": Shape::OneOf(&["Tar", "Gzip", "Zstd"]),
    may "baseImageConnectorRefs": TEXTS,
    may "endpoint": TEXT,
    may "override": BOOL,
    may "pathStyle": BOOL,
    may "region": TEXT,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
]);
