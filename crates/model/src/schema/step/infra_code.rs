//! Infrastructure as Code Management.

use super::common::{NUMBER, TEXT_MAP};
use super::container::RESOURCES;
use crate::schema::{BOOL, TEXT, TEXT_OR_TEXTS, TEXTS};
use crate::shape::{Field, Object, Shape};

bare!(ANSIBLE_PLUGIN, "`IACMAnsiblePlugin`", [
    must "command": TEXT,
    may "image": TEXT,
    may "resources": Shape::Object(&RESOURCES),
    may "target": TEXTS,
    may "replace": TEXTS,
    may "import": Shape::List(&Shape::Object(&IMPORT_COMMAND)),
]);
bare!(APPROVAL, "`IACMApproval`", [
    may "autoApprove": BOOL,
    may "image": TEXT,
    may "resources": Shape::Object(&RESOURCES),
]);
bare!(IMAGE_ONLY, "`IACMCheckov`, `IACMTFCompliance` or `IACMTFSec`", [
    may "image": TEXT,
    may "resources": Shape::Object(&RESOURCES),
]);
bare!(AWS_CDK_PLUGIN, "`IACMAwsCdkPlugin`", [
    must "command": Shape::OneOf(&["bootstrap", "synth", "deploy", "destroy", "diff", "drift", "approval"]),
    may "image": TEXT,
    may "appPath": TEXT,
    may "stackNames": TEXTS,
    may "commandOptions": TEXTS,
    may "envVariables": TEXT_MAP,
    may "context": TEXT_MAP,
    may "resources": Shape::Object(&RESOURCES),
]);
bare!(BLAST_RADIUS_AGENT, "`IACMBlastRadiusAgent`", [
    may "image": TEXT,
    may "resources": Shape::Object(&RESOURCES),
    may "envVariables": TEXT_MAP,
    may "llmConnectorRef": TEXT,
]);
bare!(MODULE_TEST_PLUGIN, "`IACMModuleTestPlugin`", [
    must "command": TEXT,
    may "image": TEXT,
    may "resources": Shape::Object(&RESOURCES),
    may "target": TEXTS,
    may "replace": TEXTS,
]);
bare!(TERRAFORM_PLUGIN, "`IACMOpenTofuPlugin` or `IACMTerraformPlugin`", [
    must "command": TEXT,
    may "commandMode": TEXT,
    may "image": TEXT,
    may "resources": Shape::Object(&RESOURCES),
    may "target": TEXTS,
    may "replace": TEXTS,
    may "import": Shape::List(&Shape::Object(&IMPORT_COMMAND)),
]);
bare!(REMEDIATION_AGENT, "`IACMRemediationAgent`", [
    may "image": TEXT,
    may "remediationType": Shape::OneOf(&["drift", "ccm", "sto", "custom"]),
    may "recommendation": TEXT,
    may "instructions": TEXT,
    may "llmConnectorRef": TEXT,
    may "resourceAddresses": TEXTS,
    may "resources": Shape::Object(&RESOURCES),
]);
bare!(TF_LINT, "`IACMTFLint`", [
    may "image": TEXT,
    may "langserver": BOOL,
    may "format": Shape::OneOf(&["default", "json", "checkstyle", "junit", "compact", "sarif"]),
    may "config": TEXT,
    may "ignoreModule": TEXT_OR_TEXTS,
    may "enableRule": TEXT_OR_TEXTS,
    may "disableRule": TEXT_OR_TEXTS,
    may "only": TEXT_OR_TEXTS,
    may "callModuleType": Shape::OneOf(&["all", "local", "none"]),
    may "chdir": TEXT,
    may "recursive": BOOL,
    may "filter": TEXTS,
    may "force": BOOL,
    may "minimumFailureSeverity": Shape::OneOf(&["error", "warning", "notice"]),
    may "fix": BOOL,
    may "noParallelRunners": BOOL,
    may "maxWorkers": NUMBER,
    may "resources": Shape::Object(&RESOURCES),
]);
bare!(TERRAGRUNT_PLUGIN, "`IACMTerragruntPlugin`", [
    must "command": TEXT,
    may "folderPathOverride": TEXT,
    may "image": TEXT,
    may "resources": Shape::Object(&RESOURCES),
    may "target": TEXTS,
    may "replace": TEXTS,
    may "import": Shape::List(&Shape::Object(&IMPORT_COMMAND)),
]);

part!(IMPORT_COMMAND, "an item of `import`", [must "id": TEXT, must "address": TEXT]);
