//! Google Cloud: functions, Cloud Run, managed instance groups.

use super::common::{INT, PERCENT};
use super::container::CONTAINED;
use crate::schema::manifest::STORE;
use crate::schema::{BOOL, DURATION, FILLED, TEXT, TEXTS, TYPE, typed};
use crate::shape::{Field, Object, Shape};

step!(CLOUD_FUNCTION_TRAFFIC_SHIFT, "`CloudFunctionTrafficShift`", [may "trafficPercent": INT]);
step!(DEPLOY_FUNCTION, "`DeployCloudFunction`, `DeployCloudFunctionGenOne` or `DeployCloudFunctionWithNoTraffic`", [
    may "updateFieldMask": TEXT,
]);
step!(GCE_PROVISION_BACKEND_SERVICE, "`GCEProvisionBackendService`" + CONTAINED, [
    must "project": TEXT,
    must "backendService": TEXT,
    may "region": TEXT,
    may "gcpConnectorRef": TEXT,
    may "store": Shape::Object(&STORE),
]);
step!(GOOGLE_CLOUD_RUN_DEPLOY, "`GoogleCloudRunDeploy`" + CONTAINED, [
    may "commandOptions": TEXTS,
    may "skipTrafficShift": BOOL,
]);
step!(GOOGLE_CLOUD_RUN_JOB, "`GoogleCloudRunJob`" + CONTAINED, [
    may "replaceCommandOptions": TEXTS,
    may "executeCommandOptions": TEXTS,
    may "jobName": TEXT,
    may "jobManifest": Shape::Object(&STORE),
]);
step!(GOOGLE_CLOUD_RUN_TRAFFIC_SHIFT, "`GoogleCloudRunTrafficShift`" + CONTAINED, [
    may "revisionTrafficDetails": Shape::List(&Shape::Object(&REVISION)),
]);
step!(GOOGLE_MIG_BLUE_GREEN_DEPLOY, "`GoogleMigBlueGreenDeploy`" + CONTAINED, [
    must "blueEnvironment": Shape::Object(&MIG_ENVIRONMENT),
    may "commandOptions": TEXTS,
    may "greenEnvironment": Shape::Object(&MIG_ENVIRONMENT),
    may "trafficConfig": Shape::Object(&TRAFFIC),
    may "targetSize": INT,
]);
step!(GOOGLE_MIG_BLUE_GREEN_ROLLBACK, "`GoogleMigBlueGreenRollback`" + CONTAINED, [may "commandOptions": TEXTS]);
step!(GOOGLE_MIG_DEPLOY, "`GoogleMigDeploy`" + CONTAINED, [
    must "mig": TEXT,
    may "commandOptions": TEXTS,
    may "targetSize": INT,
]);
step!(GOOGLE_MIG_STEADY_STATE, "`GoogleMigSteadyState`" + CONTAINED, [
    must "mig": TEXT,
    must "instanceTemplate": TEXT,
    may "commandOptions": TEXTS,
    may "pollingInterval": DURATION,
]);
step!(GOOGLE_MIG_TRAFFIC_SHIFT, "`GoogleMigTrafficShift`" + CONTAINED, [
    may "commandOptions": TEXTS,
    may "downsizeOldMig": BOOL,
    may "trafficConfig": Shape::Object(&SHIFTED_TRAFFIC),
]);

part!(REVISION, "an item of `revisionTrafficDetails`", [
    must "revisionName": TEXT,
    may "trafficValue": INT,
    may "tag": TEXT,
]);
part!(MIG_ENVIRONMENT, "an environment of instances", [must "backendService": TEXT, must "mig": TEXT]);
part!(TRAFFIC, "`trafficConfig`", [must "type": TYPE], typed: typed(&[
    ("CSM", Shape::Object(&MESH_ROUTE)),
], &[]));
part!(MESH_ROUTE, "the `spec` of type `CSM`", [
    must "type": Shape::OneOf(&["GRPCRoute", "HTTPRoute"]),
    must "route": TEXT,
]);
part!(SHIFTED_TRAFFIC, "`trafficConfig`", [must "type": TYPE], typed: typed(&[
    ("CSM", Shape::Object(&SHIFTED_ROUTE)),
], &[]));
part!(SHIFTED_ROUTE, "the `spec` of type `CSM`", [
    must "type": Shape::OneOf(&["GRPCRoute", "HTTPRoute"]),
    must "route": TEXT,
    must "destinations": Shape::List(&Shape::Object(&DESTINATION)),
    may "headerRoutingAdd": Shape::List(&Shape::Object(&HEADER_ROUTING_ADD)),
    may "headerRoutingRemove": Shape::List(&Shape::Object(&HEADER_ROUTING_REMOVE)),
]);
part!(DESTINATION, "an item of `destinations`", [must "destination": TEXT, must "weight": PERCENT]);
part!(HEADER_ROUTING_ADD, "an item of `headerRoutingAdd`", [
    must "key": FILLED,
    must "value": FILLED,
    must "destination": FILLED,
    may "matchType": Shape::OneOf(&["exact", "regex"]),
]);
part!(HEADER_ROUTING_REMOVE, "an item of `headerRoutingRemove`", [must "key": FILLED]);
