//! Scripts on delegates and hosts.

use super::common::{
    EXECUTION_TARGET, INT, MAP, OUTPUT_ALIAS, OUTPUT_VARIABLES, PULL_POLICY, REPORTS,
    SCRIPT_SOURCE, SHELL, TEXT_MAP,
};
use super::container::{INFRASTRUCTURE, RESOURCES};
use crate::schema::{BOOL, TEXT, TEXT_OR_TEXTS, TYPE, VARIABLES, typed};
use crate::shape::{Field, Object, Shape};

step!(COMMAND, "`Command`", [
    must "onDelegate": BOOL,
    may "commandUnits": Shape::List(&Shape::Object(&COMMAND_UNIT)),
    may "environmentVariables": VARIABLES,
    may "host": TEXT,
    may "outputVariables": OUTPUT_VARIABLES,
]);
bare!(CONTAINER_STEP, "`Container`", [
    must "command": TEXT,
    must "infrastructure": Shape::Object(&INFRASTRUCTURE),
    may "connectorRef": TEXT,
    may "entrypoint": TEXT_OR_TEXTS,
    may "envVariables": TEXT_MAP,
    may "image": TEXT,
    may "imagePullPolicy": PULL_POLICY,
    may "outputVariables": OUTPUT_VARIABLES,
    may "privileged": BOOL,
    may "settings": MAP,
    may "shell": SHELL,
    may "reports": Shape::Object(&REPORTS),
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
]);
step!(SHELL_SCRIPT_PROVISION, "`ShellScriptProvision`", [
    must "source": Shape::Object(&SCRIPT_SOURCE),
    may "environmentVariables": VARIABLES,
]);

part!(COMMAND_UNIT, "an item of `commandUnits`", [
    must "identifier": TEXT,
    must "name": TEXT,
    must "type": TYPE,
], ignored: &[
    ("shell", "the shell of a script unit belongs into its `spec`"),
], typed: typed(&[
    ("Copy", Shape::Object(&COPY_COMMAND_UNIT)),
    ("DownloadArtifact", Shape::Object(&DOWNLOAD_ARTIFACT_COMMAND_UNIT)),
    ("Script", Shape::Object(&SCRIPT_COMMAND_UNIT)),
], &[]));
part!(COPY_COMMAND_UNIT, "the `spec` of type `Copy`", [
    must "destinationPath": TEXT,
    must "sourceType": Shape::OneOf(&["Artifact", "Config"]),
    may "type": TEXT,
    may "preserveDirectoryStructure": BOOL,
]);
part!(DOWNLOAD_ARTIFACT_COMMAND_UNIT, "the `spec` of type `DownloadArtifact`", [
    must "destinationPath": TEXT,
    may "type": TEXT,
]);
part!(SCRIPT_COMMAND_UNIT, "the `spec` of type `Script`", [
    must "shell": Shape::OneOf(&["Bash", "PowerShell"]),
    must "source": Shape::Object(&SCRIPT_SOURCE),
    may "type": TEXT,
    may "tailFiles": Shape::List(&Shape::Object(&TAIL_FILE_PATTERN)),
    may "workingDirectory": TEXT,
]);
part!(TAIL_FILE_PATTERN, "an item of `tailFiles`", [may "tailFile": TEXT, may "tailPattern": TEXT]);

step!(SHELL_SCRIPT, "`ShellScript`", [
    must "shell": Shape::OneOf(&["Bash", "PowerShell"]),
    must "source": Shape::Object(&SCRIPT_SOURCE),
    may "onDelegate": BOOL,
    may "executionTarget": Shape::Or(&Shape::Object(&EXECUTION_TARGET), &TEXT),
    may "environmentVariables": VARIABLES,
    may "outputVariables": OUTPUT_VARIABLES,
    may "outputAlias": Shape::Object(&OUTPUT_ALIAS),
    may "includeInfraSelectors": BOOL,
]);
