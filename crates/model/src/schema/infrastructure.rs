//! `infrastructureDefinition`.

use super::{
    ANY, BOOL, DEPLOYMENT_TYPES, IDENTIFIER, MARKS, NAME, Object, REFERENCE, Shape, TAGS,
    TEMPLATE_LINK, TEXT, TYPE, VARIABLES, object,
};
use crate::shape::{Field, Typed};

object!(INFRASTRUCTURE, "an infrastructure definition", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    may "accountIdentifier": TEXT,
    may "accountId": TEXT,
    must "environmentRef": REFERENCE,
    may "deploymentType": Shape::OneOf(DEPLOYMENT_TYPES),
    must "type": TYPE,
    may "allowSimultaneousDeployments": BOOL,
    may "scopedServices": ANY,
    may "provisioner": ANY,
], also: &[&MARKS], typed: SPECS);

const SPECS: Option<Typed> = Some(Typed {
    by: "type",
    field: "spec",
    shapes: &[
        ("ECS", Shape::Object(&ECS)),
        ("Asg", Shape::Object(&ASG)),
        ("AwsLambda", Shape::Object(&REGIONAL)),
        ("AWS_SAM", Shape::Object(&REGIONAL)),
        ("ServerlessAwsLambda", Shape::Object(&SERVERLESS)),
        ("Elastigroup", Shape::Object(&ELASTIGROUP)),
        ("KubernetesDirect", Shape::Object(&KUBERNETES)),
        ("KubernetesGcp", Shape::Object(&KUBERNETES)),
        ("KubernetesAws", Shape::Object(&KUBERNETES)),
        ("KubernetesAzure", Shape::Object(&KUBERNETES)),
        ("KubernetesRancher", Shape::Object(&KUBERNETES)),
        ("CustomDeployment", Shape::Object(&CUSTOM)),
    ],
    names: &[
        "Pdc",
        "SshWinRmAws",
        "SshWinRmAzure",
        "SshGcp",
        "AzureWebApp",
        "AzureFunction",
        "AzureContainerApps",
        "TAS",
        "GoogleCloudFunctions",
        "GoogleCloudRun",
        "GoogleManagedInstanceGroup",
        "Salesforce",
        "AiAgent",
    ],
});

object!(CLOUD, "the spec of an infrastructure", [
    must "connectorRef": TEXT,
    may "provisioner": TEXT,
]);
object!(ECS, "the spec of an ECS infrastructure", [must "region": TEXT, must "cluster": TEXT], also: &[&CLOUD, &MARKS]);
object!(ASG, "the spec of an ASG infrastructure", [must "region": TEXT, may "baseAsgName": TEXT], also: &[&CLOUD, &MARKS]);
object!(REGIONAL, "the spec of an infrastructure", [must "region": TEXT], also: &[&CLOUD, &MARKS]);
object!(SERVERLESS, "the spec of a Serverless infrastructure", [
    must "region": TEXT,
    must "stage": TEXT,
], also: &[&CLOUD, &MARKS]);
object!(ELASTIGROUP, "the spec of an Elastigroup infrastructure", [must "configuration": ANY], also: &[&CLOUD, &MARKS]);
object!(KUBERNETES, "the spec of a Kubernetes infrastructure", [
    must "namespace": TEXT,
    may "releaseName": TEXT,
    may "cluster": TEXT,
    may "region": TEXT,
    may "project": TEXT,
    may "subscriptionId": TEXT,
    may "resourceGroup": TEXT,
    may "useClusterAdminCredentials": BOOL,
], also: &[&CLOUD, &MARKS]);
object!(CUSTOM, "the spec of a custom infrastructure", [
    may "customDeploymentRef": Shape::Object(&TEMPLATE_LINK),
    may "provisioner": TEXT,
    may "variables": VARIABLES,
], also: &[&MARKS]);

// The first form of infrastructures in stages, before they were entities of their own.
object!(INLINE, "`infrastructure`", [
    may "environment": ANY,
    may "environmentRef": TEXT,
    may "infrastructureDefinition": ANY,
    may "infrastructureKey": TEXT,
    may "useFromStage": ANY,
    may "allowSimultaneousDeployments": BOOL,
], also: &[&MARKS]);
