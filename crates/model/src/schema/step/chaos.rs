//! Chaos and load tests.

use super::common::{INT, NUMBER, TEXT_MAP};
use super::container::CONTAINER;
use crate::schema::{BOOL, FILLED, TEXT, TEXTS};
use crate::shape::{Field, Group, Object, Shape};

step!(AI_EXPERIMENT, "`AIExperiment`" + CONTAINER, [
    must "experimentRef": TEXT,
    must "connectorRef": TEXT,
    must "image": TEXT,
    must "command": TEXT,
    may "envVariables": TEXT_MAP,
]);
bare!(CHAOS, "`Chaos`", [
    must "expectedResilienceScore": NUMBER,
    may "assertion": TEXT,
    may "experimentRef": TEXT,
    may "identifier": TEXT,
    may "kind": Shape::OneOf(&["experiment", "template"]),
    may "hubRef": TEXT,
    may "infraReference": TEXT,
    may "infraType": Shape::OneOf(&["Kubernetes", "KubernetesV2", "Linux", "Windows"]),
    may "experimentValues": Shape::List(&Shape::Object(&EXPERIMENT_VALUE)),
    may "tasks": Shape::List(&Shape::Object(&EXPERIMENT_TASK)),
], groups: &[Group::AtLeastOne(&["experimentRef", "identifier"])]);
bare!(CHAOS_ACTION, "`ChaosAction` or `ChaosProbe`", [
    must "identity": TEXT,
    must "duration": TEXT,
    must "infraReference": TEXT,
    may "kind": TEXT,
    may "tasks": Shape::List(&Shape::Object(&TASK)),
]);
bare!(CHAOS_FAULT, "`ChaosFault`", [
    must "identity": TEXT,
    must "infraReference": TEXT,
    may "kind": TEXT,
    may "tasks": Shape::List(&Shape::Object(&TASK)),
]);
bare!(LOAD_TEST, "`LoadTest`", [
    may "targetUsers": INT,
    may "durationSeconds": INT,
    may "rampUpTimeSec": INT,
    may "kind": Shape::OneOf(&["instance", "template"]),
    may "loadTestRef": TEXT,
    may "hubRef": TEXT,
    may "identifier": TEXT,
    may "revision": TEXT,
    may "infraReference": TEXT,
    may "environmentReference": TEXT,
    may "serviceReferences": TEXTS,
    may "inputs": Shape::List(&Shape::Object(&LOAD_TEST_INPUT)),
]);

part!(EXPERIMENT_VALUE, "a value", [
    must "name": FILLED,
    must "value": TEXT,
    may "referenceKind": Shape::OneOf(&["Connector", "Secret"]),
    may "referenceType": Shape::OneOf(&[
        "Prometheus", "AppDynamics", "SignalFX", "Dynatrace", "NewRelic", "Datadog", "Splunk",
        "SecretFile", "SecretText",
    ]),
]);
part!(EXPERIMENT_TASK, "an item of `tasks`", [
    must "identifier": FILLED,
    may "values": Shape::List(&Shape::Object(&EXPERIMENT_VALUE)),
]);
part!(TASK, "an item of `tasks`", [
    must "identifier": FILLED,
    may "values": Shape::List(&Shape::Object(&TASK_VALUE)),
]);
part!(TASK_VALUE, "an item of `values`", [must "name": FILLED, must "value": TEXT]);
part!(LOAD_TEST_INPUT, "an item of `inputs`", [
    must "name": FILLED,
    may "value": INT,
    may "type": TEXT,
    may "required": BOOL,
]);
