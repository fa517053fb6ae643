//! Kubernetes.

use super::common::{INSTANCE_SELECTION, NUMBER};
use crate::schema::manifest::{MANIFESTS, RENDERED, STORE};
use crate::schema::{BOOL, FILLED, TEXT, TEXTS, TYPE, typed};
use crate::shape::{Field, Object, Shape, Typed};

// Steps that are told nothing; the editor of Harness writes `skipDryRun` to them all the same.
step!(SWAP, "this step", [], ignored: &[("skipDryRun", "it makes no dry run")]);
step!(APPLY, "`K8sApply`", [
    may "commandFlags": Shape::List(&Shape::Object(&APPLY_FLAG)),
    may "filePaths": TEXTS,
    may "manifestSource": Shape::Object(&MANIFEST_SOURCE),
    may "overrides": MANIFESTS,
    may "skipDryRun": BOOL,
    may "skipRendering": BOOL,
    may "skipSteadyStateCheck": BOOL,
], one_of: &["filePaths", "manifestSource"]);
step!(BLUE_GREEN_DEPLOY, "`K8sBlueGreenDeploy`", [
    may "commandFlags": Shape::List(&Shape::Object(&APPLY_FLAG)),
    may "pruningEnabled": BOOL,
    may "skipDeploymentIfSameManifest": BOOL,
    may "skipDryRun": BOOL,
    may "trafficRouting": Shape::Object(&ROUTING),
]);
step!(BLUE_GREEN_STAGE_SCALE_UP, "`K8sBlueGreenStageScaleUp`", [
    may "replicaCountMode": Shape::OneOf(&["Auto", "Custom"]),
    may "instanceSelection": Shape::Object(&INSTANCE_SELECTION),
    may "skipSteadyStateCheck": BOOL,
], ignored: &[("skipDryRun", "it makes no dry run")]);
step!(CANARY_DEPLOY, "`K8sCanaryDeploy`", [
    may "canaryType": Shape::OneOf(&["Standard", "Progressive"]),
    may "targetPercentage": Shape::Int(1, 100),
    may "commandFlags": Shape::List(&Shape::Object(&APPLY_FLAG)),
    may "instanceSelection": Shape::Object(&INSTANCE_SELECTION),
    may "trafficRouting": Shape::Object(&ROUTING),
    may "skipDryRun": BOOL,
]);
step!(DELETE, "`K8sDelete`", [
    must "deleteResources": Shape::Object(&DELETE_RESOURCES),
    may "commandFlags": Shape::List(&Shape::Object(&DELETE_FLAG)),
], ignored: &[("skipDryRun", "it makes no dry run")]);
step!(DRY_RUN, "`K8sDryRun`", [may "encryptYamlOutput": BOOL]);
step!(PATCH, "`K8sPatch`", [
    must "workload": FILLED,
    must "source": Shape::Object(&STORE),
    must "mergeStrategyType": Shape::OneOf(&["Merge", "Json", "Strategic"]),
    may "recordChangeCause": BOOL,
    may "commandFlags": Shape::List(&Shape::Object(&PATCH_FLAG)),
    may "skipSteadyStateCheck": BOOL,
]);
step!(PROGRESSIVE_CANARY_ROLLBACK, "`K8sProgressiveCanaryRollback`", [
    may "commandFlags": Shape::List(&Shape::Object(&APPLY_FLAG)),
]);
step!(ROLLING_DEPLOY, "`K8sRollingDeploy`", [
    may "commandFlags": Shape::List(&Shape::Object(&APPLY_FLAG)),
    may "pruningEnabled": BOOL,
    may "skipDryRun": BOOL,
]);
step!(ROLLING_ROLLBACK, "`K8sRollingRollback`", [
    may "commandFlags": Shape::List(&Shape::Object(&APPLY_FLAG)),
    may "pruningEnabled": BOOL,
], ignored: &[("skipDryRun", "it makes no dry run")]);
step!(ROLLOUT, "`K8sRollout`", [
    must "resources": Shape::Object(&ROLLOUT_RESOURCES),
    must "command": Shape::OneOf(&["restart", "resume", "status", "undo", "pause", "history"]),
    may "commandFlags": Shape::List(&Shape::Object(&ROLLOUT_FLAG)),
]);
step!(SCALE, "`K8sScale`", [
    must "instanceSelection": Shape::Object(&INSTANCE_SELECTION),
    must "workload": FILLED,
    may "skipSteadyStateCheck": BOOL,
], ignored: &[("skipDryRun", "it makes no dry run")]);
step!(TRAFFIC_ROUTING, "`K8sTrafficRouting`", [
    must "type": TYPE,
], typed: Some(Typed { by: "type", field: "trafficRouting", shapes: &[
    ("inherit", Shape::Object(&INHERITED_ROUTING)),
    ("config", Shape::Object(&ROUTING)),
], names: &[] }));

part!(APPLY_FLAG, "an item of `commandFlags`", [must "commandType": Shape::OneOf(&[
    "Apply"]), may "flag": TEXT,
]);
part!(ROUTING, "`trafficRouting`", [
    must "provider": TYPE,
], typed: Some(Typed { by: "provider", field: "spec", shapes: &[
    ("smi", Shape::Object(&SMI_PROVIDER)),
    ("istio", Shape::Object(&ISTIO_PROVIDER)),
], names: &[] }));
part!(SMI_PROVIDER, "the `spec` of type `smi`", [
    must "name": TEXT,
    must "routes": Shape::List(&Shape::Object(&ROUTE_ITEM)),
    may "rootService": TEXT,
]);
part!(ROUTE_ITEM, "an item of `routes`", [must "route": Shape::Object(&ROUTE)]);
part!(ROUTE, "`route`", [
    must "destinations": Shape::List(&Shape::Object(&DESTINATION_ITEM)),
    must "name": TEXT,
    must "type": Shape::OneOf(&["http"]),
    may "rules": Shape::List(&Shape::Object(&RULE_ITEM)),
]);
part!(DESTINATION_ITEM, "an item of `destinations`", [must "destination": Shape::Object(&DESTINATION)]);
part!(DESTINATION, "`destination`", [must "host": FILLED, may "weight": NUMBER, may "port": NUMBER]);
part!(RULE_ITEM, "an item of `rules`", [must "rule": Shape::Object(&RULE)]);
part!(RULE, "`rule`", [must "type": TYPE], typed: typed(&[
    ("uri", Shape::Object(&RULE_URI)),
    ("method", Shape::Object(&RULE_METHOD)),
    ("headers", Shape::Object(&RULE_HEADERS)),
    ("port", Shape::Object(&RULE_PORT)),
    ("scheme", Shape::Object(&RULE_URI)),
    ("authority", Shape::Object(&RULE_URI)),
], &[]));
part!(RULE_URI, "the `spec` of a rule", [
    must "value": TEXT,
    may "matchType": Shape::OneOf(&["exact", "prefix", "regex"]),
    may "name": TEXT,
]);
part!(RULE_METHOD, "the `spec` of type `method`", [
    must "value": Shape::OneOf(&[
        "GET", "POST", "PUT", "DELETE", "HEAD", "CONNECT", "OPTION", "TRACE", "PATCH",
    ]),
    may "matchType": Shape::OneOf(&["exact", "prefix", "regex"]),
    may "name": TEXT,
]);
part!(RULE_HEADERS, "the `spec` of type `headers`", [
    must "values": Shape::List(&Shape::Object(&HEADER_MATCH)),
    may "name": TEXT,
]);
part!(HEADER_MATCH, "an item of `values`", [
    must "key": TEXT,
    may "matchType": Shape::OneOf(&["exact", "prefix", "regex"]),
    may "value": TEXT,
]);
part!(RULE_PORT, "the `spec` of type `port`", [must "value": NUMBER, may "name": TEXT]);
part!(ISTIO_PROVIDER, "the `spec` of type `istio`", [
    must "name": TEXT,
    must "routes": Shape::List(&Shape::Object(&ROUTE_ITEM)),
    may "gateways": TEXTS,
    may "hosts": TEXTS,
    may "delegateService": BOOL,
]);
part!(DELETE_RESOURCES, "`deleteResources`", [may "type": TYPE], typed: typed(&[
    ("ManifestPath", Shape::Object(&MANIFEST_PATHS)),
    ("ReleaseName", Shape::Object(&RELEASE)),
    ("ResourceName", Shape::Object(&RESOURCE_NAMES)),
], &[]));
part!(MANIFEST_PATHS, "the `spec` of type `ManifestPath`", [
    may "allManifestPaths": BOOL,
    may "manifestPaths": TEXTS,
]);
part!(RELEASE, "the `spec` of type `ReleaseName`", [may "deleteNamespace": BOOL]);
part!(RESOURCE_NAMES, "the `spec` of type `ResourceName`", [must "resourceNames": TEXTS]);
part!(DELETE_FLAG, "an item of `commandFlags`", [must "commandType": Shape::OneOf(&[
    "Delete"]), may "flag": TEXT,
]);
part!(PATCH_FLAG, "an item of `commandFlags`", [must "commandType": Shape::OneOf(&[
    "Patch"]), may "flag": TEXT,
]);
part!(ROLLOUT_RESOURCES, "`resources`", [may "type": TYPE], typed: typed(&[
    ("ManifestPath", Shape::Object(&MANIFEST_PATHS)),
    ("ResourceName", Shape::Object(&RESOURCE_NAMES)),
], &["ReleaseName"]));
part!(ROLLOUT_FLAG, "an item of `commandFlags`", [must "commandType": Shape::OneOf(&[
    "Rollout"]), may "flag": TEXT,
]);
part!(INHERITED_ROUTING, "`trafficRouting`", [must "routes": Shape::List(&Shape::Object(&INHERITED_ROUTE_ITEM))]);
part!(INHERITED_ROUTE_ITEM, "an item of `routes`", [must "route": Shape::Object(&INHERITED_ROUTE)]);
part!(INHERITED_ROUTE, "`route`", [
    must "destinations": Shape::List(&Shape::Object(&DESTINATION_ITEM)),
    must "name": TEXT,
]);

part!(MANIFEST_SOURCE, "`manifestSource`", [must "type": TYPE], typed: typed(&[
    ("K8sManifest", Shape::Object(&RENDERED)),
], &[]));
