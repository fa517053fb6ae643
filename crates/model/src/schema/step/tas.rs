//! Tanzu Application Service.

use super::common::{COUNT, NUMBER, OUTPUT_VARIABLES, POSITIVE, STORED};
use crate::schema::{BOOL, FILLED, TEXTS, TYPE, VARIABLES, typed};
use crate::shape::{Field, Object, Shape};

step!(APP_RESIZE, "`AppResize`", [
    must "newAppInstances": Shape::Object(&INSTANCE_SELECTION),
    may "ignoreInstanceCountManifest": BOOL,
    may "oldAppInstances": Shape::Object(&INSTANCE_SELECTION),
]);
step!(BG_APP_SETUP, "`BGAppSetup`", [
    must "existingVersionToKeep": COUNT,
    must "tasInstanceCountType": Shape::OneOf(&["FromManifest", "MatchRunningInstances"]),
    may "additionalRoutes": TEXTS,
    may "tempRoutes": TEXTS,
]);
step!(BASIC_APP_SETUP, "`BasicAppSetup`", [
    must "existingVersionToKeep": POSITIVE,
    must "tasInstanceCountType": Shape::OneOf(&["FromManifest", "MatchRunningInstances"]),
    may "additionalRoutes": TEXTS,
]);
step!(CANARY_APP_SETUP, "`CanaryAppSetup`", [
    must "existingVersionToKeep": POSITIVE,
    must "resizeStrategy": Shape::OneOf(&["UpScaleNewFirst", "DownScaleOldFirst"]),
    must "tasInstanceCountType": Shape::OneOf(&["FromManifest", "MatchRunningInstances"]),
    may "additionalRoutes": TEXTS,
]);
step!(ROUTE_MAPPING, "`RouteMapping`", [
    must "appName": FILLED,
    must "routeType": Shape::OneOf(&["Map", "UnMap"]),
    must "routes": TEXTS,
]);
step!(SWAP_ROLLBACK, "`SwapRollback`", [must "upsizeInActiveApp": BOOL]);
step!(SWAP_ROUTES, "`SwapRoutes`", [must "downSizeOldApplication": BOOL]);
step!(TANZU_COMMAND, "`TanzuCommand`", [
    must "script": Shape::Object(&STORED),
    may "inputVariables": VARIABLES,
    may "outputVariables": OUTPUT_VARIABLES,
]);
step!(ROLLING_DEPLOY, "`TasRollingDeploy`", [may "additionalRoutes": TEXTS]);

part!(INSTANCE_SELECTION, "a selection of instances", [may "type": TYPE], typed: typed(&[
    ("Count", Shape::Object(&INSTANCE_COUNT)),
    ("Percentage", Shape::Object(&INSTANCE_COUNT)),
], &[]));
part!(INSTANCE_COUNT, "a number of instances", [must "value": NUMBER]);
