//! Terragrunt.

use super::common::{BACKEND, CONFIG_FILES, INLINE_VAR_FILE, REMOTE_FILE};
use crate::schema::{BOOL, TEXT, TEXT_OR_TEXTS, TYPE, VARIABLES, typed};
use crate::shape::{Field, Object, Shape};

step!(APPLY, "`TerragruntApply` or `TerragruntDestroy`", [
    must "configuration": Shape::Object(&CONFIGURATION),
    must "provisionerIdentifier": TEXT,
]);
step!(PLAN, "`TerragruntPlan`", [
    must "configuration": Shape::Object(&PLAN_CONFIGURATION),
    must "provisionerIdentifier": TEXT,
]);
step!(ROLLBACK, "`TerragruntRollback`", [
    must "provisionerIdentifier": TEXT,
    may "commandFlags": Shape::List(&Shape::Object(&COMMAND_FLAG)),
]);

part!(CONFIGURATION, "`configuration`", [
    must "type": Shape::OneOf(&["Inline", "InheritFromPlan", "InheritFromApply"]),
    may "commandFlags": Shape::List(&Shape::Object(&COMMAND_FLAG)),
    may "spec": Shape::Object(&EXECUTION),
]);
part!(COMMAND_FLAG, "an item of `commandFlags`", [
    must "commandType": Shape::OneOf(&["INIT", "WORKSPACE", "PLAN", "APPLY", "DESTROY", "OUTPUT"]),
    must "flag": TEXT,
]);
part!(EXECUTION, "`spec`", [
    must "configFiles": Shape::Object(&CONFIG_FILES),
    must "moduleConfig": Shape::Object(&TERRAGRUNT_MODULE),
    may "backendConfig": Shape::Object(&BACKEND),
    may "environmentVariables": VARIABLES,
    may "targets": TEXT_OR_TEXTS,
    may "varFiles": Shape::List(&Shape::Object(&VAR_FILE_ITEM)),
    may "workspace": TEXT,
]);
part!(TERRAGRUNT_MODULE, "`moduleConfig`", [
    must "path": TEXT,
    must "terragruntRunType": Shape::OneOf(&["RunAll", "RunModule"]),
]);
part!(VAR_FILE_ITEM, "an item of `varFiles`", [must "varFile": Shape::Object(&VAR_FILE)]);
part!(VAR_FILE, "`varFile`", [
    must "identifier": TEXT,
    must "type": TYPE,
], typed: typed(&[
    ("Inline", Shape::Object(&INLINE_VAR_FILE)),
    ("Remote", Shape::Object(&REMOTE_FILE)),
], &[]));
part!(PLAN_CONFIGURATION, "`configuration`", [
    must "command": Shape::OneOf(&["Apply", "Destroy"]),
    must "configFiles": Shape::Object(&CONFIG_FILES),
    must "moduleConfig": Shape::Object(&TERRAGRUNT_MODULE),
    must "secretManagerRef": TEXT,
    may "backendConfig": Shape::Object(&BACKEND),
    may "commandFlags": Shape::List(&Shape::Object(&COMMAND_FLAG)),
    may "environmentVariables": VARIABLES,
    may "exportTerragruntPlanJson": BOOL,
    may "targets": TEXT_OR_TEXTS,
    may "varFiles": Shape::List(&Shape::Object(&VAR_FILE_ITEM)),
    may "workspace": TEXT,
]);
