//! What steps of several families take.

use crate::schema::manifest::STORE;
use crate::schema::{ANY, BOOL, FILLED, TEXT, TEXTS, TYPE, typed};
use crate::shape::{Field, Object, Rule, Shape};

pub(super) const INT: Shape = Shape::Int(i64::MIN, i64::MAX);
/// Not negative.
pub(super) const COUNT: Shape = Shape::Int(0, i64::MAX);
pub(super) const POSITIVE: Shape = Shape::Int(1, i64::MAX);
pub(super) const PERCENT: Shape = Shape::Int(0, 100);
pub(super) const NUMBER: Shape = Shape::Number(i64::MIN, i64::MAX);
pub(super) const SHARE: Shape = Shape::Number(0, 100);
pub(super) const MAP: Shape = Shape::Map(&ANY);
pub(super) const TEXT_MAP: Shape = Shape::Map(&TEXT);
pub(super) const FLAG: Shape = Shape::By(Rule::Flag);
pub(super) const TREATMENT: Shape = Shape::By(Rule::Treatment);
pub(super) const FLAG_TAG: Shape = Shape::By(Rule::FlagTag);
pub(super) const WINDOW: Shape = Shape::By(Rule::Window);
pub(super) const PULL_POLICY: Shape = Shape::OneOf(&["Always", "Never", "IfNotPresent"]);
/// Shells of containers; delegates have `Bash` and `PowerShell` only.
pub(super) const SHELL: Shape = Shape::OneOf(&["Sh", "Bash", "Powershell", "Pwsh", "Python"]);

// Most rollbacks, and steps that find everything in their service and infrastructure.
step!(PLAIN, "this step", []);

part!(REPORTS, "`reports`", [must "type": TYPE], typed: typed(&[
    ("JUnit", Shape::Object(&JUNIT)),
], &[]));
part!(JUNIT, "JUnit reports", [may "paths": TEXTS]);

part!(SCRIPT_SOURCE, "a script's source", [must "type": TYPE], typed: typed(&[
    ("Inline", Shape::Object(&INLINE_SCRIPT)),
    ("Harness", Shape::Object(&FILE_SCRIPT)),
], &["Git"]));
part!(INLINE_SCRIPT, "an inline script", [must "script": TEXT, may "type": TEXT]);
part!(FILE_SCRIPT, "a script from the file store", [must "file": FILLED, may "type": TEXT]);
part!(EXECUTION_TARGET, "`executionTarget`", [
    may "host": TEXT,
    may "connectorRef": TEXT,
    may "workingDirectory": TEXT,
]);
part!(OUTPUT_ALIAS, "`outputAlias`", [
    must "key": FILLED,
    must "scope": Shape::OneOf(&["Pipeline", "Stage", "StepGroup"]),
]);

// An output variable may leave its type and its source (a shell variable of the same name) out.
part!(OUTPUT_VARIABLE, "an output variable", [
    must "name": FILLED,
    may "type": Shape::OneOf(&["String", "Number", "Secret"]),
    may "value": TEXT,
    may "default": TEXT,
    may "description": TEXT,
    may "required": BOOL,
]);
pub(super) const OUTPUT_VARIABLES: Shape = Shape::List(&Shape::Object(&OUTPUT_VARIABLE));

part!(FILE, "a file", [may "file": TEXT]);
part!(INSTANCES, "a number of instances", [must "type": TYPE], typed: typed(&[
    ("CurrentRunning", Shape::Object(&RUNNING_INSTANCES)),
    ("Fixed", Shape::Object(&FIXED_INSTANCES)),
], &[]));
part!(RUNNING_INSTANCES, "the `spec` of type `CurrentRunning`", [
    may "type": Shape::OneOf(&["Fixed", "CurrentRunning"]),
]);
part!(FIXED_INSTANCES, "the `spec` of type `Fixed`", [
    must "desired": INT,
    must "max": INT,
    must "min": INT,
    may "type": Shape::OneOf(&["Fixed", "CurrentRunning"]),
]);
part!(CAPACITY, "a number of instances", [must "type": TYPE], typed: typed(&[
    ("Count", Shape::Object(&COUNT_CAPACITY)),
    ("Percentage", Shape::Object(&PERCENTAGE_CAPACITY)),
], &[]));
part!(COUNT_CAPACITY, "the `spec` of type `Count`", [must "count": COUNT, may "type": TEXT]);
part!(PERCENTAGE_CAPACITY, "the `spec` of type `Percentage`", [must "percentage": PERCENT, may "type": TEXT]);
part!(STORED, "a stored file", [must "store": Shape::Object(&STORE)]);
part!(REMOTE_FILE, "a remote file", [must "store": Shape::Object(&STORE), may "type": TEXT]);
part!(TARGET_GROUP_WEIGHT, "a weighted target group", [
    must "targetGroupArn": FILLED,
    must "weight": COUNT,
    may "description": TEXT,
]);
part!(INHERITED_SHIFT, "the `spec` of type `Inherit`", [must "weightPercentage": PERCENT]);
part!(INSTANCE_SELECTION, "`instanceSelection`", [may "type": TYPE], typed: typed(&[
    ("Count", Shape::Object(&COUNT_INSTANCE_SELECTION)),
    ("Percentage", Shape::Object(&PERCENTAGE_INSTANCE_SELECTION)),
], &[]));
part!(COUNT_INSTANCE_SELECTION, "the `spec` of type `Count`", [may "count": INT]);
part!(PERCENTAGE_INSTANCE_SELECTION, "the `spec` of type `Percentage`", [may "percentage": NUMBER]);
part!(NAMED_VALUE, "a name with its value", [must "name": TEXT, must "value": TEXT]);
part!(BACKEND, "`backendConfig`", [may "type": TYPE], typed: typed(&[
    ("Inline", Shape::Object(&INLINE_BACKEND)),
    ("Remote", Shape::Object(&STORED)),
], &[]));
part!(INLINE_BACKEND, "the `spec` of type `Inline`", [may "content": TEXT]);
part!(CONFIG_FILES, "`configFiles`", [
    must "store": Shape::Object(&STORE),
    may "moduleSource": Shape::Object(&MODULE_SOURCE),
]);
part!(MODULE_SOURCE, "`moduleSource`", [must "useConnectorCredentials": BOOL]);
part!(INLINE_VAR_FILE, "the `spec` of type `Inline`", [may "type": TEXT, may "content": TEXT]);
