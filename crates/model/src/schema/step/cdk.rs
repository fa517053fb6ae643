//! AWS CDK.

use super::common::TEXT_MAP;
use super::container::CONTAINER;
use crate::schema::{BOOL, TEXT, TEXTS, object};
use crate::shape::{Field, Object};

object!(CDK, "a step", [
    may "appPath": TEXT,
    may "awsConnectorRef": TEXT,
    may "commandOptions": TEXTS,
    may "envVariables": TEXT_MAP,
    may "region": TEXT,
    may "roleArn": TEXT,
]);

step!(BOOTSTRAP, "`AwsCdkBootstrap`" + CONTAINER + CDK, [must "connectorRef": TEXT, must "image": TEXT]);
step!(DEPLOY, "`AwsCdkDeploy`" + CONTAINER + CDK, [
    must "connectorRef": TEXT,
    must "image": TEXT,
    must "provisionerIdentifier": TEXT,
    may "parameters": TEXT_MAP,
    may "stackNames": TEXTS,
]);
step!(DESTROY, "`AwsCdkDestroy` or `AwsCdkDiff`" + CONTAINER + CDK, [
    must "connectorRef": TEXT,
    must "image": TEXT,
    may "stackNames": TEXTS,
]);
step!(ROLLBACK, "`AwsCdkRollback`", [must "provisionerIdentifier": TEXT, may "envVariables": TEXT_MAP]);
step!(SYNTH, "`AwsCdkSynth`" + CONTAINER + CDK, [
    must "connectorRef": TEXT,
    must "image": TEXT,
    may "exportTemplate": BOOL,
    may "stackNames": TEXTS,
]);
