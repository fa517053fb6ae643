//! `service` and `serviceDefinition`.

use super::artifact::{PRIMARY, SIDECAR_WRAPPER};
use super::manifest::{CONFIG_FILES, MANIFESTS};
use super::{
    ANY, BOOL, IDENTIFIER, MARKS, NAME, Object, Shape, TAGS, TEMPLATE_LINK, TEXT, TYPE, VARIABLES,
    object, typed,
};
use crate::shape::Field;

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
    ("AwsLambda", Shape::Object(&COMMON)),
    ("AWS_SAM", Shape::Object(&COMMON)),
    ("ServerlessAwsLambda", Shape::Object(&SERVERLESS)),
    ("Elastigroup", Shape::Object(&ELASTIGROUP)),
    ("Kubernetes", Shape::Object(&KUBERNETES)),
    ("NativeHelm", Shape::Object(&KUBERNETES)),
    ("Ssh", Shape::Object(&COMMON)),
    ("WinRm", Shape::Object(&WINRM)),
    ("TAS", Shape::Object(&COMMON)),
    ("AzureWebApp", Shape::Object(&AZURE_WEB_APP)),
    ("AzureFunction", Shape::Object(&COMMON)),
    ("AzureContainerApps", Shape::Object(&COMMON)),
    ("GoogleCloudFunctions", Shape::Object(&CLOUD_FUNCTIONS)),
    ("GoogleCloudRun", Shape::Object(&COMMON)),
    ("GoogleManagedInstanceGroup", Shape::Object(&COMMON)),
    ("Salesforce", Shape::Object(&COMMON)),
    ("CustomDeployment", Shape::Object(&CUSTOM)),
], &["AiAgent"]));

object!(COMMON, "the spec of a service", [
    may "variables": VARIABLES,
    may "manifests": MANIFESTS,
    may "artifacts": Shape::Object(&ARTIFACTS),
    may "configFiles": CONFIG_FILES,
    may "release": ANY,
    may "artifactOverrideSets": ANY,
    may "configFileOverrideSets": ANY,
    may "manifestOverrideSets": ANY,
    may "variableOverrideSets": ANY,
]);
object!(ARTIFACTS, "`artifacts`", [
    may "primary": Shape::Object(&PRIMARY),
    may "sidecars": Shape::List(&Shape::Object(&SIDECAR_WRAPPER)),
], also: &[&MARKS]);

object!(ECS, "the spec of an ECS service", [may "ecsTaskDefinitionArn": TEXT], also: &[&COMMON, &MARKS]);
object!(ASG, "the spec of an ASG service", [may "userData": ANY], also: &[&COMMON, &MARKS]);
object!(ELASTIGROUP, "the spec of an Elastigroup service", [may "startupScript": ANY], also: &[&COMMON, &MARKS]);
object!(SERVERLESS, "the spec of a Serverless service", [may "pluginInfo": ANY], also: &[&COMMON, &MARKS]);
object!(KUBERNETES, "the spec of a Kubernetes service", [
    may "hooks": ANY,
    may "manifestConfigurations": ANY,
], also: &[&COMMON, &MARKS]);
object!(WINRM, "the spec of a WinRM service", [], also: &[&COMMON, &MARKS]);
object!(AZURE_WEB_APP, "the spec of an Azure Web App service", [
    may "applicationSettings": ANY,
    may "connectionStrings": ANY,
    may "startupCommand": ANY,
], also: &[&COMMON, &MARKS]);
object!(CLOUD_FUNCTIONS, "the spec of a Cloud Functions service", [may "environmentType": TEXT], also: &[&COMMON, &MARKS]);
object!(CUSTOM, "the spec of a custom deployment", [
    may "customDeploymentRef": Shape::Object(&TEMPLATE_LINK),
], also: &[&COMMON, &MARKS]);

// The first form of services in stages, before services were entities of their own.
object!(SERVICE_CONFIG, "`serviceConfig`", [
    may "service": ANY,
    may "serviceDefinition": Shape::Object(&DEFINITION),
    may "serviceRef": TEXT,
    may "stageOverrides": ANY,
    may "useFromStage": ANY,
    may "tags": TAGS,
], also: &[&MARKS]);
