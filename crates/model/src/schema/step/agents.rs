//! AI agents on AWS and Google.

use super::common::INT;
use super::container::CONTAINED;
use crate::schema::{BOOL, TEXT};
use crate::shape::{Field, Object, Shape};

step!(DEPLOY_REVISION, "`DeployAwsAgentCoreRevision` or `DeployGoogleAgentRuntimeRevision`" + CONTAINED, [
    may "waitReady": BOOL,
]);
step!(SHIFT_TRAFFIC, "`ShiftAwsAgentCoreTraffic` or `ShiftGoogleAgentRuntimeTraffic`" + CONTAINED, [
    may "target": Shape::Object(&SHIFT_GOOGLE_AGENT_RUNTIME_TRAFFIC_TARGET),
    may "weight": INT,
]);

part!(SHIFT_GOOGLE_AGENT_RUNTIME_TRAFFIC_TARGET, "`target`", [may "revisionId": TEXT]);
