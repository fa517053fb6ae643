//! Artifact sources.

use super::manifest::STORE_FIELD;
use super::{
    BOOL, DURATION, FILLED, IDENTIFIER, MARKS, Object, Shape, TEMPLATE, TEXT, TEXT_OR_TEXTS, TEXTS,
    TYPE, VARIABLES, object, step,
};
use crate::shape::{Field, Typed};

object!(PRIMARY, "the primary artifact", [
    may "primaryArtifactRef": TEXT,
    may "sources": Shape::Or(&Shape::List(&Shape::Object(&SOURCE)), &TEXT),
    may "type": TYPE,
], also: &[&MARKS], typed: SPECS);

object!(SOURCE, "an artifact source", [
    must "identifier": IDENTIFIER,
    may "name": TEXT,
    may "type": TYPE,
    may "template": TEMPLATE,
], one_of: &["type", "template"], also: &[&MARKS], typed: SPECS);

object!(SIDECAR_WRAPPER, "an item of `sidecars`", [must "sidecar": Shape::Object(&SIDECAR)], also: &[&MARKS]);
object!(SIDECAR, "a sidecar", [
    must "identifier": FILLED,
    may "name": TEXT,
    may "type": TYPE,
    may "template": TEMPLATE,
], one_of: &["type", "template"], also: &[&MARKS], typed: SPECS);

pub(super) const SPECS: Option<Typed> = Some(Typed {
    by: "type",
    field: "spec",
    shapes: &[
        ("DockerRegistry", Shape::Object(&DOCKER)),
        ("Ecr", Shape::Object(&ECR)),
        ("Gcr", Shape::Object(&GCR)),
        ("Acr", Shape::Object(&ACR)),
        ("AmazonS3", Shape::Object(&S3)),
        ("AmazonMachineImage", Shape::Object(&AMI)),
        ("ArtifactoryRegistry", Shape::Object(&ARTIFACTORY)),
        ("CustomArtifact", Shape::Object(&CUSTOM)),
        ("GithubPackageRegistry", Shape::Object(&GITHUB)),
        ("GoogleArtifactRegistry", Shape::Object(&GAR)),
        ("Nexus3Registry", Shape::Object(&NEXUS)),
        ("Nexus2Registry", Shape::Object(&NEXUS)),
        ("Jenkins", Shape::Object(&JENKINS)),
        ("Har", Shape::Object(&HAR)),
        ("AzureArtifacts", Shape::Object(&AZURE)),
        ("Bamboo", Shape::Object(&BAMBOO)),
        ("GoogleCloudStorage", Shape::Object(&GOOGLE_STORAGE)),
        ("GoogleCloudSource", Shape::Object(&GOOGLE_SOURCE)),
        ("GceImage", Shape::Object(&GCE_IMAGE)),
        ("SalesforcePackage", Shape::Object(&SALESFORCE_PACKAGE)),
        ("SalesforceOrg", Shape::Object(&SALESFORCE_ORG)),
        ("SalesforceDxProject", Shape::Object(&SALESFORCE_PROJECT)),
    ],
    names: &[],
});

// A real artifact names a tag or a pattern for it; both are often runtime inputs or empty.
object!(TAGGED, "an artifact's spec", [
    may "connectorRef": TEXT,
    may "imagePath": TEXT,
    may "tag": TEXT,
    may "tagRegex": TEXT,
    may "digest": TEXT,
]);
object!(DOCKER, "the spec of a `DockerRegistry` artifact", [], also: &[&TAGGED, &MARKS]);
object!(ECR, "the spec of an `Ecr` artifact", [may "region": TEXT, may "registryId": TEXT], also: &[&TAGGED, &MARKS]);
object!(GCR, "the spec of a `Gcr` artifact", [may "registryHostname": TEXT], also: &[&TAGGED, &MARKS]);
object!(ACR, "the spec of an `Acr` artifact", [
    may "registry": TEXT,
    may "repository": TEXT,
    may "subscriptionId": TEXT,
], also: &[&TAGGED, &MARKS]);
object!(S3, "the spec of an `AmazonS3` artifact", [
    may "connectorRef": TEXT,
    may "region": TEXT,
    may "bucketName": TEXT,
    may "filePath": TEXT,
    may "filePathRegex": TEXT,
    may "fileFilter": TEXT,
], also: &[&MARKS]);
object!(AMI, "the spec of an `AmazonMachineImage` artifact", [
    may "connectorRef": TEXT,
    may "region": TEXT,
    may "tags": PAIRS,
    may "filters": PAIRS,
    may "version": TEXT,
    may "versionRegex": TEXT,
], also: &[&MARKS]);
object!(ARTIFACTORY, "the spec of an `ArtifactoryRegistry` artifact", [
    may "repository": TEXT,
    may "repositoryFormat": TEXT,
    may "repositoryUrl": TEXT,
    may "artifactDirectory": TEXT,
    may "artifactPath": TEXT,
    may "artifactPathFilter": TEXT,
    may "artifactFilter": TEXT,
], also: &[&TAGGED, &MARKS]);
object!(CUSTOM, "the spec of a `CustomArtifact`", [
    may "version": TEXT,
    may "versionRegex": TEXT,
    may "timeout": DURATION,
    may "inputs": VARIABLES,
    may "scripts": Shape::Object(&CUSTOM_SCRIPTS),
    may "delegateSelectors": TEXT_OR_TEXTS,
], also: &[&MARKS]);
object!(GITHUB, "the spec of a `GithubPackageRegistry` artifact", [
    may "org": TEXT,
    may "user": TEXT,
    may "packageName": TEXT,
    may "packageType": TEXT,
    may "artifactId": TEXT,
    may "groupId": TEXT,
    may "extension": TEXT,
    may "version": TEXT,
    may "versionRegex": TEXT,
], also: &[&TAGGED, &MARKS]);
object!(GAR, "the spec of a `GoogleArtifactRegistry` artifact", [
    may "project": TEXT,
    may "region": TEXT,
    may "repositoryName": TEXT,
    may "repositoryType": TEXT,
    may "package": TEXT,
    may "version": TEXT,
    may "versionRegex": TEXT,
], also: &[&TAGGED, &MARKS]);
object!(NEXUS, "the spec of a Nexus artifact", [
    may "repository": TEXT,
    may "repositoryFormat": TEXT,
    may "repositoryPort": TEXT,
    may "repositoryUrl": TEXT,
    may "artifactPath": TEXT,
], also: &[&TAGGED, &MARKS], typed: Some(Typed {
    by: "repositoryFormat",
    field: "spec",
    shapes: &[],
    names: &["docker", "maven", "npm", "nuget", "raw"],
}));
object!(JENKINS, "the spec of a `Jenkins` artifact", [
    may "connectorRef": TEXT,
    may "jobName": TEXT,
    may "build": TEXT,
    may "artifactPath": TEXT,
], also: &[&MARKS]);
object!(HAR, "the spec of a `Har` artifact", [
    must "registryRef": TEXT,
    may "type": TYPE,
    may "isLatest": BOOL,
], also: &[&TAGGED, &MARKS], typed: super::typed(&[], &["docker", "helm", "maven", "npm", "generic", "nuget", "python"]));

const PAIRS: Shape = Shape::List(&Shape::Object(&PAIR));
object!(PAIR, "a name with a value", [may "name": TEXT, may "value": TEXT], also: &[&MARKS]);

object!(CUSTOM_SCRIPTS, "`scripts`", [must "fetchAllArtifacts": Shape::Object(&FETCH_ALL)], also: &[&MARKS]);
object!(FETCH_ALL, "`fetchAllArtifacts`", [
    may "artifactsArrayPath": TEXT,
    may "versionPath": TEXT,
    may "attributes": VARIABLES,
    must "spec": Shape::Object(&FETCH_SCRIPT),
], also: &[&MARKS]);
object!(FETCH_SCRIPT, "the spec of `fetchAllArtifacts`", [
    must "shell": Shape::OneOf(&["Bash", "PowerShell"]),
    must "source": Shape::Object(&step::SCRIPT_SOURCE),
], also: &[&MARKS]);

object!(AZURE, "the spec of an `AzureArtifacts` artifact", [
    may "connectorRef": TEXT,
    must "feed": TEXT,
    must "package": TEXT,
    must "packageType": Shape::OneOf(&["maven", "nuget", "upack"]),
    may "project": TEXT,
    must "scope": Shape::OneOf(&["project", "org"]),
    may "version": TEXT,
    may "versionRegex": TEXT,
], also: &[&MARKS]);
object!(BAMBOO, "the spec of a `Bamboo` artifact", [
    must "connectorRef": TEXT,
    must "planKey": TEXT,
    may "artifactPaths": TEXT_OR_TEXTS,
    may "build": TEXT,
], also: &[&MARKS]);
object!(GOOGLE_STORAGE, "the spec of a `GoogleCloudStorage` artifact", [
    must "connectorRef": TEXT,
    must "project": TEXT,
    must "bucket": TEXT,
    must "artifactPath": TEXT,
], also: &[&MARKS]);
object!(GOOGLE_SOURCE, "the spec of a `GoogleCloudSource` artifact", [
    must "connectorRef": TEXT,
    must "project": TEXT,
    must "repository": TEXT,
    must "sourceDirectory": TEXT,
    must "fetchType": Shape::OneOf(&["Branch", "Commit", "Tag"]),
    may "branch": TEXT,
    may "commitId": TEXT,
    may "tag": TEXT,
], also: &[&MARKS]);
object!(GCE_IMAGE, "the spec of a `GceImage` artifact", [
    must "connectorRef": TEXT,
    must "project": TEXT,
    may "filters": PAIRS,
    may "labels": PAIRS,
    may "version": TEXT,
    may "versionRegex": TEXT,
], also: &[&MARKS]);
object!(SALESFORCE_PACKAGE, "the spec of a `SalesforcePackage` artifact", [
    must "connectorRef": TEXT,
    may "packageId": TEXT,
    may "packageVersionId": TEXT,
    may "installationKeyRef": TEXT,
], also: &[&MARKS]);
object!(SALESFORCE_ORG, "the spec of a `SalesforceOrg` artifact", [
    must "connectorRef": TEXT,
    must "metadataConfigurationType": TEXT,
    may "metadatas": TEXTS,
    may "sourcePaths": TEXTS,
    may "manifestStore": STORE_FIELD,
], also: &[&MARKS]);
object!(SALESFORCE_PROJECT, "the spec of a `SalesforceDxProject` artifact", [
    must "metadataStore": STORE_FIELD,
    must "metadataConfigurationType": TEXT,
    may "metadatas": TEXTS,
    may "sourcePaths": TEXTS,
    may "manifestPath": TEXT,
    may "destructiveChangesPath": TEXT,
], also: &[&MARKS]);
