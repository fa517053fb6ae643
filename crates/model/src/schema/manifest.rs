//! Manifests, config files and the stores that they come from.

use super::{
    ANY, BOOL, FILLED, MARKS, Object, REFERENCE, Shape, TEXT, TEXT_OR_TEXTS, TYPE, object, typed,
};
use crate::shape::Field;

pub(super) const MANIFESTS: Shape = Shape::List(&Shape::Object(&WRAPPER));
pub(super) const CONFIG_FILES: Shape = Shape::List(&Shape::Object(&CONFIG_FILE_WRAPPER));
pub(super) const STORE_FIELD: Shape = Shape::Object(&STORE);

object!(WRAPPER, "an item of `manifests`", [must "manifest": Shape::Object(&MANIFEST)], also: &[&MARKS]);

object!(MANIFEST, "a manifest", [
    must "identifier": FILLED,
    must "type": TYPE,
], ignored: MISPLACED_STORE, also: &[&MARKS], typed: typed(&[
    ("EcsTaskDefinition", STORED_SPEC),
    ("EcsServiceDefinition", STORED_SPEC),
    ("EcsScalableTargetDefinition", STORED_SPEC),
    ("EcsScalingPolicyDefinition", STORED_SPEC),
    ("AsgLaunchTemplate", STORED_SPEC),
    ("AsgConfiguration", STORED_SPEC),
    ("AsgAdditionalConfiguration", STORED_SPEC),
    ("AsgScalingPolicy", STORED_SPEC),
    ("AsgScheduledUpdateGroupAction", STORED_SPEC),
    ("AwsLambdaFunctionDefinition", STORED_SPEC),
    ("AwsLambdaFunctionAliasDefinition", STORED_SPEC),
    ("AwsSamDirectory", Shape::Object(&SAM)),
    ("ServerlessAwsLambda", Shape::Object(&SERVERLESS)),
    ("DeploymentRepo", STORED_SPEC),
    ("ReleaseRepo", STORED_SPEC),
    ("GoogleCloudFunctionDefinition", STORED_SPEC),
    ("GoogleCloudFunctionGenOneDefinition", STORED_SPEC),
    ("GoogleMigInstanceTemplate", STORED_SPEC),
    ("GoogleMigConfiguration", STORED_SPEC),
    ("GoogleMigAutoscalerConfiguration", STORED_SPEC),
    ("GoogleMigHealthCheckConfiguration", STORED_SPEC),
    ("AgentConfig", STORED_SPEC),
    ("KustomizePatches", STORED_SPEC),
    ("OpenshiftParam", STORED_SPEC),
    ("TasVars", STORED_SPEC),
    ("TasAutoScaler", Shape::Object(&RENDERED)),
    ("TasManifest", Shape::Object(&TAS)),
    ("Values", Shape::Object(&RENDERED)),
    ("K8sManifest", Shape::Object(&RENDERED)),
    ("HelmChart", Shape::Object(&HELM)),
    ("Kustomize", Shape::Object(&KUSTOMIZE)),
    ("OpenshiftTemplate", Shape::Object(&RENDERED)),
    ("HelmRepoOverride", Shape::Object(&HELM_REPO)),
], &["GoogleCloudRunServiceDefinition", "AzureContainerAppsDefinition"]));

/// Flags that documents have one level too high or too deep.
const MISPLACED: &[(&str, &str)] = &[
    (
        "skipResourceVersioning",
        "it belongs into the manifest's `spec`",
    ),
    (
        "enableDeclarativeRollback",
        "it belongs into the manifest's `spec`",
    ),
];

/// What documents have beside the `spec` of a manifest.
const MISPLACED_STORE: &[(&str, &str)] = &[
    ("store", "it belongs into the manifest's `spec`"),
    (
        "skipResourceVersioning",
        "it belongs into the manifest's `spec`",
    ),
    (
        "enableDeclarativeRollback",
        "it belongs into the manifest's `spec`",
    ),
];

/// What documents have beside the `store` of a manifest's spec.
const MISPLACED_IN_SPEC: &[(&str, &str)] = &[
    ("type", "it belongs into the `store`"),
    ("spec", "it belongs into the `store`"),
];

const STORED_SPEC: Shape = Shape::Object(&STORED_MANIFEST);

/// A file of a store, such as settings or a script.
pub(super) const STORED: Shape = Shape::Object(&STORED_FILE);
object!(STORED_FILE, "a stored file", [must "store": STORE_FIELD], also: &[&MARKS]);

object!(STORED_MANIFEST, "the spec of a manifest", [may "store": STORE_FIELD], ignored: MISPLACED_IN_SPEC, also: &[&MARKS]);
object!(SAM, "the spec of a SAM directory", [may "samTemplateFile": TEXT], ignored: MISPLACED_IN_SPEC, also: &[&STORED_MANIFEST, &MARKS]);
object!(SERVERLESS, "the spec of a Serverless manifest", [may "configOverridePath": TEXT], ignored: MISPLACED_IN_SPEC, also: &[&STORED_MANIFEST, &MARKS]);
object!(RENDERED, "the spec of a manifest", [
    may "valuesPaths": TEXT_OR_TEXTS,
    may "paramsPaths": TEXT_OR_TEXTS,
    may "optionalValuesYaml": BOOL,
    may "skipResourceVersioning": BOOL,
    may "enableDeclarativeRollback": BOOL,
], ignored: MISPLACED_IN_SPEC, also: &[&STORED_MANIFEST, &MARKS]);
object!(TAS, "the spec of a TAS manifest", [
    may "cfCliVersion": TEXT,
    may "varsPaths": TEXT_OR_TEXTS,
    may "autoScalerPath": TEXT_OR_TEXTS,
], ignored: MISPLACED_IN_SPEC, also: &[&STORED_MANIFEST, &MARKS]);
object!(HELM, "the spec of a Helm chart", [
    may "chartName": TEXT,
    may "chartVersion": TEXT,
    may "helmVersion": Shape::OneOf(&["V2", "V3", "V380", "V4"]),
    may "subChartPath": TEXT,
    may "commandFlags": COMMAND_FLAGS,
    may "fetchHelmChartMetadata": BOOL,
    may "helmChartExpandFiles": ANY,
], ignored: MISPLACED_IN_SPEC, also: &[&RENDERED, &STORED_MANIFEST, &MARKS]);
object!(HELM_REPO, "the spec of a Helm repository override", [
    must "connectorRef": TEXT,
    must "type": TEXT,
], also: &[&MARKS]);
const COMMAND_FLAGS: Shape = Shape::List(&Shape::Object(&COMMAND_FLAG));
object!(COMMAND_FLAG, "a command flag", [
    must "commandType": Shape::OneOf(&[
        "Fetch", "Template", "Pull", "Install", "Upgrade", "Rollback", "History", "Delete", "Uninstall", "List", "Add",
        "Update", "Version", "Test", "Build",
    ]),
    may "flag": TEXT,
], also: &[&MARKS]);
object!(OVERLAY, "`overlayConfiguration`", [must "kustomizeYamlFolderPath": TEXT], also: &[&MARKS]);
object!(KUSTOMIZE, "the spec of a Kustomize manifest", [
    may "commandFlags": COMMAND_FLAGS,
    may "overlayConfiguration": Shape::Object(&OVERLAY),
    may "patchesPaths": TEXT_OR_TEXTS,
    may "pluginPath": TEXT,
], ignored: MISPLACED_IN_SPEC, also: &[&RENDERED, &STORED_MANIFEST, &MARKS]);

object!(CONFIG_FILE_WRAPPER, "an item of `configFiles`", [
    must "configFile": Shape::Object(&CONFIG_FILE),
], also: &[&MARKS]);
object!(CONFIG_FILE, "a config file", [
    must "identifier": FILLED,
    must "spec": Shape::Object(&CONFIG_FILE_SPEC),
], also: &[&MARKS]);
object!(CONFIG_FILE_SPEC, "the spec of a config file", [
    must "store": STORE_FIELD,
    may "configFileAttributeStepParameters": ANY,
], also: &[&MARKS]);

object!(STORE, "a store", [must "type": TYPE], ignored: MISPLACED, also: &[&MARKS], typed: typed(STORES, &[]));

/// Types of stores.
pub(super) static STORES: &[(&str, Shape)] = &[
    ("Inline", Shape::Object(&INLINE)),
    ("Harness", Shape::Object(&HARNESS)),
    ("Git", Shape::Object(&GIT)),
    ("Github", Shape::Object(&GIT)),
    ("GitLab", Shape::Object(&GIT)),
    ("Bitbucket", Shape::Object(&GIT)),
    ("AzureRepo", Shape::Object(&GIT)),
    ("HarnessCode", Shape::Object(&HARNESS_CODE)),
    ("S3", Shape::Object(&S3)),
    ("S3Url", Shape::Object(&S3_URL)),
    ("Gcs", Shape::Object(&GCS)),
    ("Http", Shape::Object(&HTTP)),
    ("InheritFromManifest", Shape::Object(&INHERIT)),
    ("CustomRemote", Shape::Object(&CUSTOM_REMOTE)),
    ("Artifactory", Shape::Object(&ARTIFACTORY)),
    ("OciHelmChart", Shape::Object(&OCI)),
];

object!(INLINE, "an inline store", [may "content": TEXT], also: &[&MARKS]);
object!(HARNESS, "the Harness file store", [
    may "files": TEXT_OR_TEXTS,
    may "file": TEXT,
    may "secretFiles": TEXT_OR_TEXTS,
], also: &[&MARKS]);
object!(GIT_FILES, "a Git store", [
    may "gitFetchType": Shape::OneOf(&["Branch", "Commit"]),
    may "branch": TEXT,
    may "commitId": TEXT,
    may "paths": TEXT_OR_TEXTS,
    may "folderPath": TEXT,
    may "repoName": TEXT,
]);
object!(GIT, "a Git store", [must "connectorRef": TEXT], ignored: &[
    ("orgIdentifier", "the connector's reference says where it lives"),
    ("projectIdentifier", "the connector's reference says where it lives"),
], also: &[&GIT_FILES, &MARKS]);
object!(HARNESS_CODE, "a Harness Code store", [may "connectorRef": TEXT], also: &[&GIT_FILES, &MARKS]);
object!(S3, "an S3 store", [
    may "connectorRef": TEXT,
    may "region": TEXT,
    may "bucketName": TEXT,
    may "folderPath": TEXT,
    may "paths": TEXT_OR_TEXTS,
], also: &[&MARKS]);
object!(S3_URL, "an S3 URL store", [
    must "connectorRef": REFERENCE,
    must "region": TEXT,
    must "urls": TEXT_OR_TEXTS,
], also: &[&MARKS]);
object!(GCS, "a GCS store", [
    may "connectorRef": TEXT,
    may "bucketName": TEXT,
    may "folderPath": TEXT,
    may "manifestPath": TEXT,
], also: &[&MARKS]);
object!(HTTP, "an HTTP store", [may "connectorRef": TEXT], also: &[&MARKS]);
object!(INHERIT, "an inherited store", [may "paths": TEXT_OR_TEXTS], also: &[&MARKS]);
object!(CUSTOM_REMOTE, "a custom remote store", [
    may "extractionScript": TEXT,
    may "filePath": TEXT,
    may "delegateSelectors": TEXT_OR_TEXTS,
], also: &[&MARKS]);
object!(ARTIFACTORY, "an Artifactory store", [
    must "connectorRef": REFERENCE,
    must "artifactPaths": TEXT_OR_TEXTS,
    must "repositoryName": TEXT,
], also: &[&MARKS]);
object!(OCI, "an OCI store", [
    may "basePath": TEXT,
    may "config": Shape::Object(&OCI_CONFIG),
], also: &[&MARKS]);
object!(OCI_CONFIG, "the config of an OCI store", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("Generic", Shape::Object(&OCI_PLACE)),
    ("ECR", Shape::Object(&OCI_PLACE)),
    ("GAR", Shape::Object(&OCI_PLACE)),
], &[]));
object!(OCI_PLACE, "the spec of an OCI store", [
    may "connectorRef": TEXT,
    may "region": TEXT,
    may "registryId": TEXT,
    may "project": TEXT,
    may "repositoryName": TEXT,
], also: &[&MARKS]);
