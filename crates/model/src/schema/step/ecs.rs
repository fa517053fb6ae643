//! Amazon ECS.

use super::common::{INHERITED_SHIFT, INT, TARGET_GROUP_WEIGHT};
use crate::schema::manifest::STORE;
use crate::schema::{BOOL, FILLED, TEXT, TYPE, typed};
use crate::shape::{Field, Object, Shape};

step!(BLUE_GREEN_CREATE_SERVICE, "`EcsBlueGreenCreateService`", [
    must "loadBalancer": TEXT,
    must "prodListener": TEXT,
    must "prodListenerRuleArn": TEXT,
    may "enableAutoScalingInSwapStep": BOOL,
    may "sameAsAlreadyRunningInstances": BOOL,
    may "stageListener": TEXT,
    may "stageListenerRuleArn": TEXT,
    may "updateGreenService": BOOL,
    may "stageTargetGroupArn": TEXT,
    may "isTrafficShift": BOOL,
]);
step!(BLUE_GREEN_SWAP_TARGET_GROUPS, "`EcsBlueGreenSwapTargetGroups`", [
    may "doNotDownsizeOldService": BOOL,
    may "downsizeOldServiceDelayInSecs": INT,
]);
step!(BLUE_GREEN_TRAFFIC_SHIFT, "`EcsBlueGreenTrafficShift`", [must "ecsTrafficShiftWrapper": Shape::Object(&SHIFT)]);
step!(ROLLING_DEPLOY, "`EcsRollingDeploy`", [
    may "forceNewDeployment": BOOL,
    may "sameAsAlreadyRunningInstances": BOOL,
    may "skipApplicationScaling": BOOL,
]);
step!(RUN_TASK, "`EcsRunTask`", [
    must "runTaskRequestDefinition": Shape::Object(&STORE),
    may "skipSteadyStateCheck": BOOL,
    may "taskDefinition": Shape::Object(&STORE),
    may "taskDefinitionArn": TEXT,
]);
step!(SCALE, "`EcsScale`", [
    must "service": TEXT,
    must "instanceUnit": TEXT,
    must "instances": INT,
    may "connectorRef": TEXT,
    may "region": TEXT,
    may "cluster": TEXT,
    may "skipSteadyStateCheck": BOOL,
]);
step!(SERVICE_SETUP, "`EcsServiceSetup`", [may "resizeStrategy": TEXT, may "sameAsAlreadyRunningInstances": BOOL]);
step!(UPGRADE_CONTAINER, "`EcsUpgradeContainer`", [
    must "newServiceInstanceCount": INT,
    must "newServiceInstanceUnit": TEXT,
    may "downsizeOldServiceInstanceCount": INT,
    may "downsizeOldServiceInstanceUnit": TEXT,
]);

part!(SHIFT, "`ecsTrafficShiftWrapper`", [must "type": TYPE], typed: typed(&[
    ("Standalone", Shape::Object(&STANDALONE_SHIFT)),
    ("Inherit", Shape::Object(&INHERITED_SHIFT)),
], &[]));
part!(STANDALONE_SHIFT, "the `spec` of type `Standalone`", [
    must "loadBalancer": FILLED,
    must "listener": FILLED,
    must "listenerRuleArn": FILLED,
    must "forwardConfig": Shape::List(&Shape::Object(&TARGET_GROUP_WEIGHT)),
]);
