//! Native Helm.

use super::common::{INSTANCE_SELECTION, TEXT_MAP};
use crate::schema::{BOOL, TEXT, TEXTS};
use crate::shape::{Field, Object, Shape};

step!(BG_DEPLOY, "`HelmBGDeploy`", [
    may "ignoreReleaseHistFailStatus": BOOL,
    may "skipSteadyStateCheck": BOOL,
    may "useUpgradeInstall": BOOL,
    may "runChartTests": BOOL,
    may "commandFlags": Shape::List(&Shape::Object(&COMMAND_FLAG)),
], ignored: &[("skipDryRun", "it makes no dry run")]);
step!(FLAGS_ONLY, "`HelmBlueGreenSwapStep` or `HelmCanaryDelete`", [
    may "commandFlags": Shape::List(&Shape::Object(&COMMAND_FLAG)),
]);
step!(CANARY_DEPLOY, "`HelmCanaryDeploy`", [
    must "instanceSelection": Shape::Object(&INSTANCE_SELECTION),
    may "ignoreReleaseHistFailStatus": BOOL,
    may "skipSteadyStateCheck": BOOL,
    may "useUpgradeInstall": BOOL,
    may "runChartTests": BOOL,
    may "commandFlags": Shape::List(&Shape::Object(&COMMAND_FLAG)),
], ignored: &[("skipDryRun", "it makes no dry run")]);
step!(DELETE, "`HelmDelete`", [
    may "releaseName": TEXT,
    may "commandFlags": TEXTS,
    may "dryRun": BOOL,
    may "environmentVariables": TEXT_MAP,
]);
step!(DEPLOY, "`HelmDeploy`", [
    may "ignoreReleaseHistFailStatus": BOOL,
    may "skipSteadyStateCheck": BOOL,
    may "useUpgradeInstall": BOOL,
    may "runChartTests": BOOL,
    may "skipCleanup": BOOL,
    may "environmentVariables": TEXT_MAP,
    may "commandFlags": Shape::List(&Shape::Object(&COMMAND_FLAG)),
], ignored: &[("skipDryRun", "it makes no dry run")]);
step!(ROLLBACK, "`HelmRollback`", [
    may "skipSteadyStateCheck": BOOL,
    may "runChartTests": BOOL,
    may "environmentVariables": TEXT_MAP,
    may "commandFlags": Shape::List(&Shape::Object(&COMMAND_FLAG)),
], ignored: &[("skipDryRun", "it makes no dry run")]);

part!(COMMAND_FLAG, "an item of `commandFlags`", [
    must "commandType": Shape::OneOf(&[
        "Fetch", "Template", "Pull", "Install", "Upgrade", "Rollback", "History", "Delete", "Uninstall",
        "List", "Add", "Update", "Version", "Test",
    ]),
    may "flag": TEXT,
]);
