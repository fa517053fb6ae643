//! `service` and `serviceDefinition`.

use super::artifact::{PRIMARY, SIDECAR_WRAPPER};
use super::manifest::{CONFIG_FILES, MANIFESTS, STORED, STORES};
use super::{
    ANY, BOOL, IDENTIFIER, MARKS, NAME, Object, Shape, TAGS, TEMPLATE_LINK, TEXT, TEXT_OR_TEXTS,
    TYPE, VARIABLES, object, typed,
};
use crate::shape::{Field, Typed};

object!(SERVICE, "a service", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    may "accountIdentifier": TEXT,
    may "accountId": TEXT,
    may "gitOpsEnabled": BOOL,
    may "serviceDefinition": Shape::Object(&DEFINITION),
    may "useFromStage": ANY,
    may "icon": TEXT,
    may "yaml": TEXT,
    may "version": TEXT,
], also: &[&MARKS]);

object!(DEFINITION, "a service definition", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("ECS", Shape::Object(&ECS)),
    ("Asg", Shape::Object(&ASG)),
    ("AwsLambda", Shape::Object(&PLAIN)),
    ("AWS_SAM", Shape::Object(&PLAIN)),
    ("ServerlessAwsLambda", Shape::Object(&SERVERLESS)),
    ("Elastigroup", Shape::Object(&ELASTIGROUP)),
    ("Kubernetes", Shape::Object(&KUBERNETES)),
    ("NativeHelm", Shape::Object(&KUBERNETES)),
    ("Ssh", Shape::Object(&PLAIN)),
    ("WinRm", Shape::Object(&PLAIN)),
    ("TAS", Shape::Object(&PLAIN)),
    ("AzureWebApp", Shape::Object(&AZURE_WEB_APP)),
    ("AzureFunction", Shape::Object(&PLAIN)),
    ("AzureContainerApps", Shape::Object(&PLAIN)),
    ("GoogleCloudFunctions", Shape::Object(&CLOUD_FUNCTIONS)),
    ("GoogleCloudRun", Shape::Object(&PLAIN)),
    ("GoogleManagedInstanceGroup", Shape::Object(&PLAIN)),
    ("Salesforce", Shape::Object(&PLAIN)),
    ("CustomDeployment", Shape::Object(&CUSTOM)),
    ("AiAgent", Shape::Object(&AI_AGENT)),
], &[]));

object!(COMMON, "the spec of a service", [
    may "variables": VARIABLES,
    may "manifests": MANIFESTS,
    may "artifacts": Shape::Object(&ARTIFACTS),
    may "configFiles": CONFIG_FILES,
    may "release": ANY,
    may "artifactOverrideSets": Shape::List(&Shape::Object(&ARTIFACT_SET_WRAPPER)),
    may "configFileOverrideSets": Shape::List(&Shape::Object(&CONFIG_FILE_SET_WRAPPER)),
    may "manifestOverrideSets": Shape::List(&Shape::Object(&MANIFEST_SET_WRAPPER)),
    may "variableOverrideSets": Shape::List(&Shape::Object(&VARIABLE_SET_WRAPPER)),
]);
object!(ARTIFACTS, "`artifacts`", [
    may "primary": Shape::Object(&PRIMARY),
    may "sidecars": Shape::List(&Shape::Object(&SIDECAR_WRAPPER)),
], also: &[&MARKS]);

/// Declares an item of a list of override sets, which services had before overrides were entities.
macro_rules! override_set {
    ($wrapper:ident, $set:ident, $field:literal: $shape:expr) => {
        object!($wrapper, "an override set", [may "overrideSet": Shape::Object(&$set)], also: &[&MARKS]);
        object!($set, "an override set", [may "identifier": TEXT, may $field: $shape], also: &[&MARKS]);
    };
}
override_set!(ARTIFACT_SET_WRAPPER, ARTIFACT_SET, "artifacts": Shape::Object(&ARTIFACTS));
override_set!(CONFIG_FILE_SET_WRAPPER, CONFIG_FILE_SET, "configFiles": CONFIG_FILES);
override_set!(MANIFEST_SET_WRAPPER, MANIFEST_SET, "manifests": MANIFESTS);
override_set!(VARIABLE_SET_WRAPPER, VARIABLE_SET, "variables": VARIABLES);

object!(PLAIN, "the spec of a service", [], also: &[&COMMON, &MARKS]);
object!(ECS, "the spec of an ECS service", [may "ecsTaskDefinitionArn": TEXT], also: &[&COMMON, &MARKS]);
object!(ASG, "the spec of an ASG service", [may "userData": STORED], also: &[&COMMON, &MARKS]);
object!(ELASTIGROUP, "the spec of an Elastigroup service", [may "startupScript": STORED], also: &[&COMMON, &MARKS]);
object!(SERVERLESS, "the spec of a Serverless service", [
    may "pluginInfo": Shape::Object(&SERVERLESS_PLUGIN),
], also: &[&COMMON, &MARKS]);
object!(SERVERLESS_PLUGIN, "`pluginInfo`", [
    may "runtimeLanguage": TEXT,
    may "serverlessVersion": TEXT,
    may "os": TEXT,
    may "arch": TEXT,
], also: &[&MARKS]);
object!(KUBERNETES, "the spec of a Kubernetes service", [
    may "hooks": Shape::List(&Shape::Object(&HOOK_WRAPPER)),
    may "manifestConfigurations": Shape::Object(&MANIFEST_CONFIGURATIONS),
], also: &[&COMMON, &MARKS]);
object!(MANIFEST_CONFIGURATIONS, "`manifestConfigurations`", [may "primaryManifestRef": TEXT], also: &[&MARKS]);
object!(HOOK_WRAPPER, "an item of `hooks`", [
    may "preHook": Shape::Object(&HOOK),
    may "postHook": Shape::Object(&HOOK),
], one_of: &["preHook", "postHook"], also: &[&MARKS]);
object!(HOOK, "a hook", [
    may "identifier": TEXT,
    may "actions": TEXT_OR_TEXTS,
    may "storeType": TEXT,
], open: true, also: &[&MARKS], typed: Some(Typed {
    by: "storeType",
    field: "store",
    shapes: STORES,
    names: &[],
}));
object!(AZURE_WEB_APP, "the spec of an Azure Web App service", [
    may "applicationSettings": STORED,
    may "connectionStrings": STORED,
    may "startupCommand": STORED,
], also: &[&COMMON, &MARKS]);
object!(CLOUD_FUNCTIONS, "the spec of a Cloud Functions service", [may "environmentType": TEXT], also: &[&COMMON, &MARKS]);
object!(CUSTOM, "the spec of a custom deployment", [
    may "customDeploymentRef": Shape::Object(&TEMPLATE_LINK),
], also: &[&COMMON, &MARKS]);

object!(AI_AGENT, "the spec of an AI agent", [
    must "platform": Shape::Object(&AGENT_PLATFORM),
    may "configVariables": VARIABLES,
], also: &[&COMMON, &MARKS]);
object!(AGENT_PLATFORM, "the platform of an AI agent", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("AwsAgentCore", Shape::Object(&AGENT_CORE)),
    ("GoogleAgentRuntime", Shape::Object(&AGENT_RUNTIME)),
], &[]));
object!(AGENT_CORE, "the spec of an AWS agent", [
    must "source": Shape::Object(&AGENT_SOURCE),
    must "executionRoleArn": TEXT,
], also: &[&MARKS]);
object!(AGENT_RUNTIME, "the spec of a Google agent", [must "source": Shape::Object(&AGENT_SOURCE)], also: &[&MARKS]);
object!(AGENT_SOURCE, "the source of an agent", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("container", Shape::Object(&AGENT_CONTAINER)),
], &[]));
object!(AGENT_CONTAINER, "the container of an agent", [must "image": TEXT], also: &[&MARKS]);

// The first form of services in stages, before services were entities of their own.
object!(SERVICE_CONFIG, "`serviceConfig`", [
    may "service": Shape::Object(&INLINE),
    may "serviceDefinition": Shape::Object(&DEFINITION),
    may "serviceRef": TEXT,
    may "stageOverrides": Shape::Object(&STAGE_OVERRIDES),
    may "useFromStage": Shape::Object(&FROM_STAGE),
    may "tags": TAGS,
], also: &[&MARKS]);
object!(INLINE, "a service in `serviceConfig`", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
], also: &[&MARKS]);
object!(STAGE_OVERRIDES, "`stageOverrides`", [
    may "variables": VARIABLES,
    may "manifests": MANIFESTS,
    may "artifacts": Shape::Object(&ARTIFACTS),
    may "configFiles": CONFIG_FILES,
    may "useArtifactOverrideSets": TEXT_OR_TEXTS,
    may "useConfigFileOverrideSets": TEXT_OR_TEXTS,
    may "useManifestOverrideSets": TEXT_OR_TEXTS,
    may "useVariableOverrideSets": TEXT_OR_TEXTS,
], also: &[&MARKS]);
object!(FROM_STAGE, "`useFromStage`", [
    must "stage": IDENTIFIER,
    may "overrides": Shape::Object(&FROM_STAGE_OVERRIDES),
], also: &[&MARKS]);
object!(FROM_STAGE_OVERRIDES, "`overrides`", [may "name": TEXT, may "description": TEXT], also: &[&MARKS]);
