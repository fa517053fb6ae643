//! `infrastructureDefinition`.

use super::manifest::STORED;
use super::{
    BOOL, DEPLOYMENT_TYPES, IDENTIFIER, MARKS, NAME, Object, REFERENCE, Shape, TAGS, TEMPLATE_LINK,
    TEXT, TEXT_OR_TEXTS, TYPE, VARIABLES, host, object, step,
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
    may "scopedServices": TEXT_OR_TEXTS,
    may "provisioner": Shape::Or(&Shape::Object(&step::EXECUTION), &TEXT),
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
        ("KubernetesGcp", Shape::Object(&KUBERNETES_CLUSTER)),
        ("KubernetesAws", Shape::Object(&KUBERNETES_CLUSTER)),
        ("KubernetesAzure", Shape::Object(&KUBERNETES_AZURE)),
        ("KubernetesRancher", Shape::Object(&KUBERNETES_CLUSTER)),
        ("Pdc", Shape::Object(&host::PDC)),
        ("SshWinRmAws", Shape::Object(&host::AWS)),
        ("SshWinRmAzure", Shape::Object(&host::AZURE)),
        ("SshGcp", Shape::Object(&host::GCP)),
        ("AzureWebApp", Shape::Object(&AZURE)),
        ("AzureFunction", Shape::Object(&AZURE)),
        ("AzureContainerApps", Shape::Object(&AZURE_CONTAINERS)),
        ("GoogleCloudFunctions", Shape::Object(&GOOGLE)),
        ("GoogleCloudRun", Shape::Object(&GOOGLE)),
        ("GoogleManagedInstanceGroup", Shape::Object(&GOOGLE)),
        ("TAS", Shape::Object(&TAS)),
        ("Salesforce", Shape::Object(&SALESFORCE)),
        ("CustomDeployment", Shape::Object(&CUSTOM)),
    ],
    names: &["AiAgent"],
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
object!(ELASTIGROUP, "the spec of an Elastigroup infrastructure", [
    must "configuration": STORED,
], also: &[&CLOUD, &MARKS]);

object!(NAMESPACED, "the spec of a Kubernetes infrastructure", [
    must "namespace": TEXT,
    must "releaseName": TEXT,
]);
object!(KUBERNETES, "the spec of a Kubernetes infrastructure", [], also: &[&NAMESPACED, &CLOUD, &MARKS]);
// The region of an EKS cluster and the project of a GKE one may be part of the cluster's name.
object!(KUBERNETES_CLUSTER, "the spec of a Kubernetes infrastructure", [
    must "cluster": TEXT,
    may "region": TEXT,
    may "project": TEXT,
], also: &[&NAMESPACED, &CLOUD, &MARKS]);
object!(KUBERNETES_AZURE, "the spec of an AKS infrastructure", [
    must "cluster": TEXT,
    must "subscriptionId": TEXT,
    must "resourceGroup": TEXT,
    may "useClusterAdminCredentials": BOOL,
], also: &[&NAMESPACED, &CLOUD, &MARKS]);

object!(AZURE, "the spec of an Azure infrastructure", [
    must "subscriptionId": TEXT,
    must "resourceGroup": TEXT,
], also: &[&CLOUD, &MARKS]);
object!(AZURE_CONTAINERS, "the spec of a Container Apps infrastructure", [
    must "subscriptionId": TEXT,
    must "resourceGroup": TEXT,
    must "managedEnvironment": TEXT,
], also: &[&CLOUD, &MARKS]);
object!(GOOGLE, "the spec of a Google infrastructure", [
    must "project": TEXT,
    must "region": TEXT,
    may "zone": TEXT,
], also: &[&CLOUD, &MARKS]);
object!(TAS, "the spec of a TAS infrastructure", [
    must "organization": TEXT,
    must "space": TEXT,
], also: &[&CLOUD, &MARKS]);
object!(SALESFORCE, "the spec of a Salesforce infrastructure", [], also: &[&CLOUD, &MARKS]);
object!(CUSTOM, "the spec of a custom infrastructure", [
    must "customDeploymentRef": Shape::Object(&TEMPLATE_LINK),
    may "provisioner": TEXT,
    may "variables": VARIABLES,
], also: &[&MARKS]);

// The first form of infrastructures in stages, before they were entities of their own.
object!(INLINE, "`infrastructure`", [
    may "environment": Shape::Object(&INLINE_ENVIRONMENT),
    may "environmentRef": TEXT,
    may "infrastructureDefinition": Shape::Object(&INLINE_DEFINITION),
    may "infrastructureKey": TEXT,
    may "useFromStage": Shape::Object(&FROM_STAGE),
    may "allowSimultaneousDeployments": BOOL,
], also: &[&MARKS]);
object!(INLINE_ENVIRONMENT, "an environment in `infrastructure`", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    must "type": Shape::OneOf(&["Production", "PreProduction"]),
    may "description": TEXT,
    may "tags": TAGS,
], also: &[&MARKS]);
object!(INLINE_DEFINITION, "an infrastructure definition", [
    must "type": TYPE,
    may "provisioner": Shape::Object(&step::EXECUTION),
], ignored: &[
    ("identifier", "an infrastructure in a stage has none"),
    ("name", "an infrastructure in a stage has none"),
], also: &[&MARKS], typed: SPECS);
object!(FROM_STAGE, "`useFromStage`", [
    must "stage": IDENTIFIER,
    may "overrides": Shape::Object(&FROM_STAGE_OVERRIDES),
], also: &[&MARKS]);
object!(FROM_STAGE_OVERRIDES, "`overrides`", [
    may "environment": Shape::Object(&INLINE_ENVIRONMENT),
    may "infrastructureDefinition": Shape::Object(&INLINE_DEFINITION),
], also: &[&MARKS]);
