//! `environment`, `environmentGroup` and overrides of both versions. Harness has no schema for these.

use super::manifest::{CONFIG_FILES, MANIFESTS, STORED};
use super::{IDENTIFIER, MARKS, NAME, Object, REFERENCE, Shape, TAGS, TEXT, VARIABLES, object};
use crate::shape::Field;

object!(ENVIRONMENT, "an environment", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    may "accountIdentifier": TEXT,
    may "accountId": TEXT,
    must "type": Shape::OneOf(&["Production", "PreProduction"]),
    may "variables": VARIABLES,
    may "overrides": Shape::Object(&OWN_OVERRIDES),
    may "color": TEXT,
    may "version": TEXT,
    may "yaml": TEXT,
], also: &[&MARKS]);
object!(OWN_OVERRIDES, "an environment's `overrides`", [
    may "manifests": MANIFESTS,
    may "configFiles": CONFIG_FILES,
    may "applicationSettings": STORED,
    may "connectionStrings": STORED,
], also: &[&MARKS]);

object!(GROUP, "an environment group", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    may "accountIdentifier": TEXT,
    may "color": TEXT,
    must "envIdentifiers": Shape::List(&REFERENCE),
    may "yaml": TEXT,
], also: &[&MARKS]);

// What overrides may override.
object!(OVERRIDDEN, "the spec of overrides", [
    may "variables": VARIABLES,
    may "manifests": MANIFESTS,
    may "configFiles": CONFIG_FILES,
    may "applicationSettings": STORED,
    may "connectionStrings": STORED,
], also: &[&MARKS]);

// Harness has written the spec both below `spec` and beside the other fields.
object!(OVERRIDES, "overrides", [
    may "identifier": TEXT,
    may "name": TEXT,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    may "accountId": TEXT,
    may "type": Shape::OneOf(OVERRIDE_TYPES),
    may "environmentRef": REFERENCE,
    may "serviceRef": REFERENCE,
    may "infraIdentifier": REFERENCE,
    may "clusterIdentifier": REFERENCE,
    may "spec": Shape::Object(&OVERRIDDEN),
    may "yaml": TEXT,
], also: &[&OVERRIDDEN, &MARKS]);

/// What overrides are for: an environment or an infrastructure of it, for all services or one.
static OVERRIDE_TYPES: &[&str] = &[
    "ENV_GLOBAL_OVERRIDE",
    "ENV_SERVICE_OVERRIDE",
    "INFRA_GLOBAL_OVERRIDE",
    "INFRA_SERVICE_OVERRIDE",
    "CLUSTER_GLOBAL_OVERRIDE",
    "CLUSTER_SERVICE_OVERRIDE",
];

object!(SERVICE_OVERRIDES, "service overrides", [
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    must "environmentRef": REFERENCE,
    must "serviceRef": REFERENCE,
], also: &[&OVERRIDDEN, &MARKS]);
