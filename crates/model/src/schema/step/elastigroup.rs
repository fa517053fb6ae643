//! Spot Elastigroup.

use super::common::{CAPACITY, INHERITED_SHIFT, INSTANCES, TARGET_GROUP_WEIGHT};
use crate::schema::{BOOL, FILLED, TEXT, TYPE, typed};
use crate::shape::{Field, Object, Shape};

step!(BG_STAGE_SETUP, "`ElastigroupBGStageSetup`", [
    must "connectedCloudProvider": Shape::Object(&CLOUD_PROVIDER),
    must "instances": Shape::Object(&INSTANCES),
    must "loadBalancers": Shape::List(&Shape::Object(&LOAD_BALANCER)),
    may "name": TEXT,
]);
step!(BLUE_GREEN_TRAFFIC_SHIFT, "`ElastigroupBlueGreenTrafficShift`", [
    must "elastigroupTrafficShiftWrapper": Shape::Object(&SHIFT),
]);
step!(DEPLOY, "`ElastigroupDeploy`", [
    must "newService": Shape::Object(&CAPACITY),
    may "oldService": Shape::Object(&CAPACITY),
]);
step!(SETUP, "`ElastigroupSetup`", [must "instances": Shape::Object(&INSTANCES), may "name": TEXT]);
step!(SWAP_ROUTE, "`ElastigroupSwapRoute`", [must "downsizeOldElastigroup": BOOL]);

part!(CLOUD_PROVIDER, "`connectedCloudProvider`", [must "type": TYPE], typed: typed(&[
    ("AWS", Shape::Object(&AWS_CLOUD_PROVIDER_BASIC)),
], &[]));
part!(AWS_CLOUD_PROVIDER_BASIC, "the `spec` of type `AWS`", [
    must "connectorRef": TEXT,
    must "region": TEXT,
    may "type": Shape::OneOf(&["AWS"]),
]);
part!(LOAD_BALANCER, "an item of `loadBalancers`", [must "type": TYPE], typed: typed(&[
    ("AWSLoadBalancerConfig", Shape::Object(&AWS_LOAD_BALANCER)),
], &[]));
part!(AWS_LOAD_BALANCER, "the `spec` of type `AWSLoadBalancerConfig`", [
    must "loadBalancer": TEXT,
    must "prodListenerPort": TEXT,
    must "prodListenerRuleArn": TEXT,
    may "type": Shape::OneOf(&["AWSLoadBalancerConfig"]),
    may "stageListenerPort": TEXT,
    may "stageListenerRuleArn": TEXT,
    may "stageTargetGroupArn": TEXT,
    may "isTrafficShift": BOOL,
]);
part!(SHIFT, "`elastigroupTrafficShiftWrapper`", [must "type": TYPE], typed: typed(&[
    ("Standalone", Shape::Object(&STANDALONE_SHIFT)),
    ("Inherit", Shape::Object(&INHERITED_SHIFT)),
], &[]));
part!(STANDALONE_SHIFT, "the `spec` of type `Standalone`", [
    must "loadBalancer": FILLED,
    must "listenerArn": FILLED,
    must "listenerRuleArn": FILLED,
    must "forwardTrafficConfig": Shape::List(&Shape::Object(&TARGET_GROUP_WEIGHT)),
]);
