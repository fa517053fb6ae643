//! Where containers of steps run, and what they run in.

use super::common::{INT, PULL_POLICY, TEXT_MAP};
use crate::schema::{BOOL, FILLED, TEXT, TEXTS, TYPE, object, typed};
use crate::shape::{Field, Group, Object, Shape};

// A step that runs in a container of its own image.
object!(CONTAINER, "a step", [
    may "connectorRef": TEXT,
    may "image": TEXT,
    may "imagePullPolicy": PULL_POLICY,
    may "privileged": BOOL,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
]);

// A step of a deployment that runs in a container; it may prepare itself with a script.
object!(CONTAINED, "a step", [
    may "connectorRef": TEXT,
    may "image": TEXT,
    may "imagePullPolicy": PULL_POLICY,
    may "preExecution": TEXT,
    may "privileged": BOOL,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
]);
step!(CONTAINED_STEP, "this step" + CONTAINED, []);

part!(RESOURCES, "`resources`", [may "limits": Shape::Object(&LIMITS), may "requests": Shape::Object(&LIMITS)],
    groups: &[Group::AtLeastOne(&["limits", "requests"])]);
// Kubernetes quantities: `0.5`, `500m`, `1Gi`.
part!(LIMITS, "resource limits", [may "cpu": TEXT, may "memory": TEXT]);

part!(PLATFORM, "`platform`", [may "os": OS, may "arch": Shape::OneOf(&["Amd64", "Arm64"])]);
const OS: Shape = Shape::OneOf(&["Linux", "MacOS", "Windows"]);

// Of a step group and of steps that bring their own.
part!(INFRASTRUCTURE, "a container infrastructure", [must "type": TYPE], typed: typed(&[
    ("KubernetesDirect", Shape::Object(&KUBERNETES)),
    ("VM", Shape::Object(&VM)),
    ("ECSDirect", Shape::Object(&ECS)),
], &["Delegate", "Noop"]));

// Of a build stage: containers of a cluster share a pod.
part!(BUILD_INFRASTRUCTURE, "the infrastructure of a build", [
    may "type": TYPE,
    may "useFromStage": TEXT,
], typed: typed(&[
    ("KubernetesDirect", Shape::Object(&BUILD_KUBERNETES)),
    ("VM", Shape::Object(&VM)),
], &["UseFromStage"]));

object!(POD, "a pod", [
    must "connectorRef": TEXT,
    may "annotations": TEXT_MAP,
    may "automountServiceAccountToken": BOOL,
    may "containerSecurityContext": Shape::Object(&SECURITY_CONTEXT),
    may "initTimeout": TEXT,
    may "labels": TEXT_MAP,
    may "nodeSelector": TEXT_MAP,
    may "os": OS,
    may "priorityClassName": TEXT,
    may "runAsUser": INT,
    may "serviceAccountName": TEXT,
    may "tolerations": Shape::List(&Shape::Object(&TOLERATION)),
    may "volumes": VOLUMES,
    may "harnessImageConnectorRef": TEXT,
    may "hostNames": TEXTS,
    may "imagePullPolicy": PULL_POLICY,
    may "podSpecOverlay": TEXT,
]);
part!(KUBERNETES, "a Kubernetes infrastructure" + POD, [
    may "namespace": TEXT,
    may "resources": Shape::Object(&RESOURCES),
]);
part!(BUILD_KUBERNETES, "a Kubernetes infrastructure" + POD, [must "namespace": FILLED]);

part!(VM, "machines of a pool", [must "type": TYPE], typed: typed(&[
    ("Pool", Shape::Object(&POOL)),
], &[]));
part!(POOL, "a pool", [
    may "identifier": TEXT,
    may "poolName": TEXT,
    may "os": OS,
    may "harnessImageConnectorRef": TEXT,
    may "initTimeout": TEXT,
]);

part!(ECS, "an ECS infrastructure", [
    must "connectorRef": TEXT,
    may "cluster": TEXT,
    may "containerSecurityContext": Shape::Object(&SECURITY_CONTEXT),
    may "enableExecuteCommand": BOOL,
    may "executionRoleArn": TEXT,
    may "harnessImageConnectorRef": TEXT,
    may "initTimeout": TEXT,
    may "logGroupName": TEXT,
    may "region": TEXT,
    may "securityGroups": TEXTS,
    may "subnets": TEXTS,
    may "taskRoleArn": TEXT,
    may "volumes": VOLUMES,
]);

part!(SECURITY_CONTEXT, "a security context", [
    may "allowPrivilegeEscalation": BOOL,
    may "capabilities": Shape::Object(&CAPABILITIES),
    may "privileged": BOOL,
    may "procMount": TEXT,
    may "readOnlyRootFilesystem": BOOL,
    may "runAsGroup": INT,
    may "runAsNonRoot": BOOL,
    may "runAsUser": INT,
]);
part!(CAPABILITIES, "`capabilities`", [may "add": TEXTS, may "drop": TEXTS]);
part!(TOLERATION, "a toleration", [
    may "effect": TEXT,
    may "key": TEXT,
    may "operator": TEXT,
    may "tolerationSeconds": INT,
    may "value": TEXT,
]);

const VOLUMES: Shape = Shape::List(&Shape::Object(&VOLUME));
part!(VOLUME, "a volume", [may "mountPath": TEXT, may "type": TYPE], typed: typed(&[
    ("EmptyDir", Shape::Object(&EMPTY_DIR)),
    ("PersistentVolumeClaim", Shape::Object(&CLAIM)),
    ("HostPath", Shape::Object(&HOST_PATH)),
], &["ConfigMap", "Secret"]));
part!(EMPTY_DIR, "an empty directory", [may "medium": TEXT, may "size": TEXT]);
part!(CLAIM, "a volume claim", [may "claimName": TEXT, may "readOnly": BOOL]);
part!(HOST_PATH, "a path of the host", [may "path": TEXT, may "type": TEXT]);

// A stage of a build, its steps aside.
object!(BUILD_STAGE, "the spec of a stage", [
    may "cloneCodebase": BOOL,
    may "infrastructure": Shape::Object(&BUILD_INFRASTRUCTURE),
    may "platform": Shape::Object(&PLATFORM),
    may "runtime": Shape::Object(&RUNTIME),
    may "serviceDependencies": Shape::List(&Shape::Object(&DEPENDENCY)),
    may "sharedPaths": TEXTS,
]);
part!(RUNTIME, "`runtime`", [must "type": Shape::OneOf(&[
    "Cloud", "Docker"]), may "spec": Shape::Object(&RUNTIME_SPEC),
]);
part!(RUNTIME_SPEC, "the spec of a runtime", [
    may "imageName": TEXT,
    may "nestedVirtualization": BOOL,
    may "size": TEXT,
    may "harnessImageConnectorRef": TEXT,
]);
part!(DEPENDENCY, "a service dependency", [
    must "identifier": TEXT,
    must "type": Shape::OneOf(&["Service"]),
    may "name": TEXT,
    may "description": TEXT,
    may "spec": Shape::Object(&DEPENDENCY_SPEC),
]);
part!(DEPENDENCY_SPEC, "the spec of a service dependency" + CONTAINER, [
    may "envVariables": TEXT_MAP,
    may "entrypoint": TEXTS,
    may "args": TEXTS,
    may "harnessInternalImageConnector": TEXT,
]);
