//! AWS Auto Scaling groups.

use super::common::{CAPACITY, COUNT, INSTANCES, INT, PERCENT};
use crate::schema::{BOOL, DURATION, TEXT};
use crate::shape::{Field, Object, Shape};

step!(BLUE_GREEN_DEPLOY, "`AsgBlueGreenDeploy`", [
    may "asgName": TEXT,
    may "instances": Shape::Object(&INSTANCES),
    may "loadBalancer": TEXT,
    may "loadBalancers": Shape::List(&Shape::Object(&AWS_ASG_LOAD_BALANCER)),
    may "prodListener": TEXT,
    may "prodListenerRuleArn": TEXT,
    may "stageListener": TEXT,
    may "stageListenerRuleArn": TEXT,
    may "useAlreadyRunningInstances": BOOL,
]);
step!(BLUE_GREEN_SWAP_SERVICE, "`AsgBlueGreenSwapService`", [must "downsizeOldAsg": BOOL]);
step!(CANARY_DEPLOY, "`AsgCanaryDeploy`", [must "instanceSelection": Shape::Object(&CAPACITY), may "asgName": TEXT]);
step!(PHASED_DEPLOY, "`AsgPhasedDeploy`", [must "instanceSelection": Shape::Object(&CAPACITY)]);
step!(ROLLING_DEPLOY, "`AsgRollingDeploy`", [
    may "asgName": TEXT,
    may "instanceWarmup": COUNT,
    may "instances": Shape::Object(&INSTANCES),
    may "minimumHealthyPercentage": PERCENT,
    may "maximumHealthyPercentage": Shape::Int(100, 200),
    may "skipMatching": BOOL,
    may "useAlreadyRunningInstances": BOOL,
    may "skipInstanceTermination": BOOL,
    may "handleInProgressInstanceRefresh": TEXT,
]);
step!(SCALE, "`AsgScale`", [
    must "instanceSelection": Shape::Object(&CAPACITY),
    may "connectorRef": TEXT,
    may "region": TEXT,
    may "asgName": TEXT,
    may "skipSteadyStateCheck": BOOL,
]);
step!(SETUP, "`AsgSetup`", [
    must "asgName": TEXT,
    must "instances": Shape::Object(&INSTANCES),
    must "resizeStrategy": Shape::OneOf(&["resize_new_first", "downsize_old_first"]),
]);
step!(SHIFT_TRAFFIC, "`AsgShiftTraffic`", [must "weight": INT, must "downsizeOldAsg": BOOL]);
step!(STEADY_STATE, "`AsgSteadyState`", [may "asgName": TEXT, may "pollingInterval": DURATION]);

part!(AWS_ASG_LOAD_BALANCER, "an item of `loadBalancers`", [
    must "loadBalancer": TEXT,
    must "prodListener": TEXT,
    must "prodListenerRuleArn": TEXT,
    may "stageListener": TEXT,
    may "stageListenerRuleArn": TEXT,
]);
