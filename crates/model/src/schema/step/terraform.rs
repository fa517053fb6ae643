//! Terraform, run by a delegate or by Terraform Cloud.

use super::common::{BACKEND, CONFIG_FILES, INLINE_VAR_FILE};
use crate::schema::manifest::STORE;
use crate::schema::{BOOL, TEXT, TEXT_OR_TEXTS, TYPE, VARIABLES, object, typed};
use crate::shape::{Field, Object, Shape, Typed};

object!(CLOUD_RUN, "a step", [
    must "connectorRef": TEXT,
    must "organization": TEXT,
    may "project": TEXT,
    may "variables": VARIABLES,
    must "workspace": TEXT,
]);

step!(APPLY, "`TerraformApply` or `TerraformDestroy`", [
    must "provisionerIdentifier": TEXT,
    may "cloudCliConfiguration": Shape::Object(&CLOUD_CLI),
    may "configuration": Shape::Object(&CONFIGURATION),
], one_of: &["configuration", "cloudCliConfiguration"]);
step!(CLOUD_ROLLBACK, "`TerraformCloudRollback`", [
    must "provisionerIdentifier": TEXT,
    may "discardPendingRuns": BOOL,
    may "overridePolicies": BOOL,
    may "runMessage": TEXT,
]);
step!(CLOUD_RUN_STEP, "`TerraformCloudRun`", [
    must "runType": TYPE,
    may "runMessage": TEXT,
], typed: Some(Typed { by: "runType", field: "spec", shapes: &[
    ("Plan", Shape::Object(&CLOUD_PLAN)),
    ("PlanAndApply", Shape::Object(&CLOUD_PLAN_AND_APPLY)),
    ("PlanAndDestroy", Shape::Object(&CLOUD_PLAN_AND_APPLY)),
    ("PlanOnly", Shape::Object(&CLOUD_PLAN_ONLY)),
    ("RefreshState", Shape::Object(&CLOUD_REFRESH)),
], names: &["Apply"] }));
step!(PLAN, "`TerraformPlan`", [
    must "provisionerIdentifier": TEXT,
    may "cloudCliConfiguration": Shape::Object(&CLOUD_CLI_PLAN),
    may "configuration": Shape::Object(&PLAN_CONFIGURATION),
], one_of: &["configuration", "cloudCliConfiguration"]);
step!(ROLLBACK, "`TerraformRollback`", [
    must "provisionerIdentifier": TEXT,
    may "commandFlags": Shape::List(&Shape::Object(&COMMAND_FLAG)),
    may "skipRefreshCommand": BOOL,
]);

part!(CLOUD_CLI, "`cloudCliConfiguration`", [
    may "commandFlags": Shape::List(&Shape::Object(&COMMAND_FLAG)),
    may "spec": Shape::Object(&CLOUD_CLI_EXECUTION),
    may "skipStateStorage": BOOL,
    may "createRemoteWorkspaceWithPrefix": BOOL,
]);
part!(COMMAND_FLAG, "an item of `commandFlags`", [
    must "commandType": Shape::OneOf(&["INIT", "WORKSPACE", "REFRESH", "PLAN", "APPLY", "DESTROY"]),
    must "flag": TEXT,
]);
part!(CLOUD_CLI_EXECUTION, "`spec`", [
    must "configFiles": Shape::Object(&CONFIG_FILES),
    may "backendConfig": Shape::Object(&BACKEND),
    may "environmentVariables": VARIABLES,
    may "targets": TEXT_OR_TEXTS,
    may "varFiles": Shape::List(&Shape::Object(&VAR_FILE_ITEM)),
]);
part!(VAR_FILE_ITEM, "an item of `varFiles`", [must "varFile": Shape::Object(&VAR_FILE)]);
part!(VAR_FILE, "`varFile`", [
    must "identifier": TEXT,
    must "type": TYPE,
], typed: typed(&[
    ("Inline", Shape::Object(&INLINE_VAR_FILE)),
    ("Remote", Shape::Object(&REMOTE_VAR_FILE)),
], &[]));
part!(REMOTE_VAR_FILE, "the `spec` of type `Remote`", [
    must "store": Shape::Object(&STORE),
    may "type": TEXT,
    may "optional": BOOL,
]);
part!(CONFIGURATION, "`configuration`", [
    must "type": Shape::OneOf(&["Inline", "InheritFromPlan", "InheritFromApply"]),
    may "commandFlags": Shape::List(&Shape::Object(&COMMAND_FLAG)),
    may "skipRefreshCommand": BOOL,
    may "spec": Shape::Object(&EXECUTION),
    may "skipStateStorage": BOOL,
    may "createRemoteWorkspaceWithPrefix": BOOL,
]);
part!(EXECUTION, "`spec`", [
    must "configFiles": Shape::Object(&CONFIG_FILES),
    may "backendConfig": Shape::Object(&BACKEND),
    may "environmentVariables": VARIABLES,
    may "providerCredential": Shape::Object(&PROVIDER_CREDENTIAL),
    may "targets": TEXT_OR_TEXTS,
    may "varFiles": Shape::List(&Shape::Object(&VAR_FILE_ITEM)),
    may "workspace": TEXT,
]);
part!(PROVIDER_CREDENTIAL, "`providerCredential`", [must "type": TYPE], typed: typed(&[
    ("Aws", Shape::Object(&AWS_CREDENTIAL)),
    ("Azure", Shape::Object(&AZURE_CREDENTIAL)),
    ("Gcp", Shape::Object(&GCP_CREDENTIAL)),
], &[]));
part!(AWS_CREDENTIAL, "the `spec` of type `Aws`", [
    must "connectorRef": TEXT,
    may "region": TEXT,
    may "roleArn": TEXT,
]);
part!(AZURE_CREDENTIAL, "the `spec` of type `Azure`", [must "connectorRef": TEXT, must "subscriptionId": TEXT]);
part!(GCP_CREDENTIAL, "the `spec` of type `Gcp`", [must "connectorRef": TEXT, must "project": TEXT]);
part!(CLOUD_PLAN, "the `spec` of type `Plan`" + CLOUD_RUN, [
    must "discardPendingRuns": BOOL,
    must "provisionerIdentifier": TEXT,
    may "exportTerraformPlanJson": BOOL,
    may "planType": Shape::OneOf(&["Apply", "Destroy", "Refresh"]),
    may "targets": TEXT_OR_TEXTS,
]);
part!(CLOUD_PLAN_AND_APPLY, "a plan that is carried out" + CLOUD_RUN, [
    must "provisionerIdentifier": TEXT,
    may "discardPendingRuns": BOOL,
    may "overridePolicies": BOOL,
    may "targets": TEXT_OR_TEXTS,
]);
part!(CLOUD_PLAN_ONLY, "the `spec` of type `PlanOnly`" + CLOUD_RUN, [
    must "discardPendingRuns": BOOL,
    must "provisionerIdentifier": TEXT,
    may "exportTerraformPlanJson": BOOL,
    may "planType": Shape::OneOf(&["Apply", "Destroy"]),
    may "targets": TEXT_OR_TEXTS,
    may "terraformVersion": TEXT,
]);
part!(CLOUD_REFRESH, "the `spec` of type `RefreshState`" + CLOUD_RUN, [may "discardPendingRuns": BOOL]);
part!(CLOUD_CLI_PLAN, "`cloudCliConfiguration`", [
    must "command": Shape::OneOf(&["Apply", "Destroy"]),
    must "configFiles": Shape::Object(&CONFIG_FILES),
    may "backendConfig": Shape::Object(&BACKEND),
    may "commandFlags": Shape::List(&Shape::Object(&COMMAND_FLAG)),
    may "environmentVariables": VARIABLES,
    may "targets": TEXT_OR_TEXTS,
    may "varFiles": Shape::List(&Shape::Object(&VAR_FILE_ITEM)),
    may "skipStateStorage": BOOL,
    may "createRemoteWorkspaceWithPrefix": BOOL,
]);
part!(PLAN_CONFIGURATION, "`configuration`", [
    must "command": Shape::OneOf(&["Apply", "Destroy"]),
    must "configFiles": Shape::Object(&CONFIG_FILES),
    must "secretManagerRef": TEXT,
    may "backendConfig": Shape::Object(&BACKEND),
    may "commandFlags": Shape::List(&Shape::Object(&COMMAND_FLAG)),
    may "environmentVariables": VARIABLES,
    may "providerCredential": Shape::Object(&PROVIDER_CREDENTIAL),
    may "exportTerraformHumanReadablePlan": BOOL,
    may "exportTerraformPlanJson": BOOL,
    may "skipRefreshCommand": BOOL,
    may "targets": TEXT_OR_TEXTS,
    may "varFiles": Shape::List(&Shape::Object(&VAR_FILE_ITEM)),
    may "workspace": TEXT,
    may "skipStateStorage": BOOL,
    may "storeTfPlanOnDelegate": BOOL,
    may "createRemoteWorkspaceWithPrefix": BOOL,
]);
