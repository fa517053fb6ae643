//! AWS CloudFormation.

use super::common::REMOTE_FILE;
use crate::schema::manifest::STORE;
use crate::schema::{TEXT, TEXT_OR_TEXTS, TYPE, VARIABLES, typed};
use crate::shape::{Field, Object, Shape};

step!(CREATE_STACK, "`CreateStack`", [
    must "configuration": Shape::Object(&CREATE_STACK_STEP_CONFIGURATION),
    must "provisionerIdentifier": TEXT,
]);
step!(DELETE_STACK, "`DeleteStack`", [must "configuration": Shape::Object(&DELETE_STACK_STEP_CONFIGURATION)]);
step!(ROLLBACK_STACK, "`RollbackStack`", [must "configuration": Shape::Object(&ROLLBACK_STEP_CONFIGURATION)]);

part!(CREATE_STACK_STEP_CONFIGURATION, "`configuration`", [
    must "connectorRef": TEXT,
    must "region": TEXT,
    must "stackName": TEXT,
    must "templateFile": Shape::Object(&TEMPLATE_FILE),
    may "capabilities": TEXT_OR_TEXTS,
    may "parameterOverrides": VARIABLES,
    may "parameters": Shape::List(&Shape::Object(&PARAMETERS_FILE)),
    may "roleArn": TEXT,
    may "skipOnStackStatuses": TEXT_OR_TEXTS,
    may "tags": Shape::Object(&CLOUDFORMATION_TAGS),
]);
part!(PARAMETERS_FILE, "an item of `parameters`", [must "identifier": TEXT, must "store": Shape::Object(&STORE)]);
part!(CLOUDFORMATION_TAGS, "`tags`", [must "type": TYPE], typed: typed(&[
    ("Inline", Shape::Object(&INLINE_CLOUDFORMATION_TAGS_FILE)),
    ("Remote", Shape::Object(&REMOTE_FILE)),
], &[]));
part!(INLINE_CLOUDFORMATION_TAGS_FILE, "the `spec` of type `Inline`", [must "content": TEXT, may "type": TEXT]);
part!(TEMPLATE_FILE, "`templateFile`", [must "type": TYPE], typed: typed(&[
    ("Inline", Shape::Object(&INLINE_CLOUDFORMATION_TEMPLATE_FILE)),
    ("Remote", Shape::Object(&REMOTE_FILE)),
    ("S3URL", Shape::Object(&S3_URL_CLOUDFORMATION_TEMPLATE_FILE)),
], &[]));
part!(INLINE_CLOUDFORMATION_TEMPLATE_FILE, "the `spec` of type `Inline`", [
    must "templateBody": TEXT,
    may "type": TEXT,
]);
part!(S3_URL_CLOUDFORMATION_TEMPLATE_FILE, "the `spec` of type `S3URL`", [
    must "templateUrl": TEXT,
    may "type": TEXT,
]);
part!(DELETE_STACK_STEP_CONFIGURATION, "`configuration`", [must "type": TYPE], typed: typed(&[
    ("Inherited", Shape::Object(&INHERITED_CLOUDFORMATION_DELETE_STACK_STEP_CONFIGURATION)),
    ("Inline", Shape::Object(&INLINE_CLOUDFORMATION_DELETE_STACK_STEP_CONFIGURATION)),
], &[]));
part!(INHERITED_CLOUDFORMATION_DELETE_STACK_STEP_CONFIGURATION, "the `spec` of type `Inherited`", [
    must "provisionerIdentifier": TEXT,
    may "type": TEXT,
]);
part!(INLINE_CLOUDFORMATION_DELETE_STACK_STEP_CONFIGURATION, "the `spec` of type `Inline`", [
    must "connectorRef": TEXT,
    must "region": TEXT,
    must "stackName": TEXT,
    may "type": TEXT,
    may "roleArn": TEXT,
]);
part!(ROLLBACK_STEP_CONFIGURATION, "`configuration`", [must "provisionerIdentifier": TEXT]);
