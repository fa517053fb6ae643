//! `trigger`: sources, what they listen to and under which conditions they fire.

use super::{
    BOOL, DURATION, FILLED, IDENTIFIER, MARKS, NAME, Object, REFERENCE, Shape, TAGS, TEXT,
    TEXT_OR_TEXTS, TEXTS, TYPE, VARIABLES, object, typed,
};
use crate::shape::{Field, Rule};

object!(TRIGGER, "a trigger", [
    must "identifier": IDENTIFIER,
    may "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    must "orgIdentifier": TEXT,
    must "projectIdentifier": TEXT,
    may "pipelineIdentifier": REFERENCE,
    may "enabled": BOOL,
    may "encryptedWebhookSecretIdentifier": TEXT,
    may "inputSetRefs": TEXT_OR_TEXTS,
    may "inputYaml": TEXT,
    may "pipelineBranchName": TEXT,
    may "source": Shape::Object(&SOURCE),
    may "stagesToExecute": TEXT_OR_TEXTS,
    may "webhookUrl": TEXT,
], ignored: &[
    ("autoAbortPreviousExecutions", "it belongs into the spec of the event"),
], also: &[&MARKS]);

object!(SOURCE, "a trigger's source", [
    must "type": TYPE,
    may "pollInterval": Shape::By(Rule::Poll),
    may "webhookId": TEXT,
], also: &[&MARKS], typed: typed(&[
    ("Webhook", Shape::Object(&WEBHOOK)),
    ("Artifact", Shape::Object(&ARTIFACT)),
    ("Manifest", Shape::Object(&MANIFEST)),
    ("Scheduled", Shape::Object(&SCHEDULED)),
    ("MultiRegionArtifact", Shape::Object(&MULTI_REGION)),
    ("SystemEvent", Shape::Object(&SYSTEM_EVENT)),
], &[]));

const CONDITIONS: Shape = Shape::List(&Shape::Object(&CONDITION));
object!(CONDITION, "a condition", [
    must "key": FILLED,
    must "operator": Shape::OneOf(&[
        "In", "Equals", "NotEquals", "NotIn", "Regex", "EndsWith", "StartsWith", "Contains", "DoesNotContain",
    ]),
    may "value": TEXT,
], also: &[&MARKS]);

object!(WEBHOOK, "the spec of a webhook source", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("Github", Shape::Object(&GITHUB)),
    ("Gitlab", Shape::Object(&GITLAB)),
    ("Bitbucket", Shape::Object(&BITBUCKET)),
    ("AzureRepo", Shape::Object(&AZURE_REPO)),
    ("AwsCodeCommit", Shape::Object(&CODE_COMMIT)),
    ("Harness", Shape::Object(&HARNESS)),
    ("HarnessArtifactRegistry", Shape::Object(&HARNESS_REGISTRY)),
    ("Custom", Shape::Object(&CUSTOM)),
    ("EventRelay", Shape::Object(&RELAY)),
], &[]));

// What all events of webhooks have.
object!(EVENT, "the spec of a webhook event", [
    may "connectorRef": TEXT,
    may "repoName": TEXT,
    may "autoAbortPreviousExecutions": BOOL,
    may "headerConditions": CONDITIONS,
    may "payloadConditions": CONDITIONS,
    may "jexlCondition": Shape::Condition,
]);

/// Declares the spec of an event with the actions that it can be limited to.
macro_rules! event {
    ($name:ident, [$($action:literal),* $(,)?]) => {
        object!($name, "the spec of a webhook event", [
            may "actions": Shape::List(&Shape::OneOf(&[$($action),*])),
        ], also: &[&EVENT, &MARKS]);
    };
}
object!(PLAIN_EVENT, "the spec of a webhook event", [], ignored: &[
    ("actions", "this event has none"),
], also: &[&EVENT, &MARKS]);
const PLAIN: Shape = Shape::Object(&PLAIN_EVENT);
event!(COMMENT, ["Create", "Edit", "Delete"]);
event!(CREATE_DELETE, ["Create", "Delete"]);
event!(
    GITHUB_PULL,
    [
        "Close",
        "Edit",
        "Open",
        "Reopen",
        "Label",
        "Unlabel",
        "Synchronize",
        "ReadyForReview"
    ]
);
event!(
    GITHUB_RELEASE,
    [
        "Create",
        "Edit",
        "Delete",
        "Prerelease",
        "Publish",
        "Release",
        "Unpublish"
    ]
);
event!(GITHUB_REVIEW, ["Submitted", "Edited", "Dismissed"]);
event!(
    GITLAB_MERGE,
    ["Open", "Close", "Reopen", "Merge", "Update", "Sync"]
);
event!(GITLAB_COMMENT, ["Create"]);
event!(BITBUCKET_PULL, ["Create", "Update", "Merge", "Decline"]);
event!(AZURE_PULL, ["Create", "Update", "Merge"]);
event!(
    HARNESS_PULL,
    ["Create", "Update", "Reopen", "Merge", "Comment"]
);

object!(GITHUB, "a GitHub event", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("PullRequest", Shape::Object(&GITHUB_PULL)),
    ("Push", PLAIN),
    ("IssueComment", Shape::Object(&COMMENT)),
    ("Release", Shape::Object(&GITHUB_RELEASE)),
    ("Delete", PLAIN),
    ("Create", PLAIN),
    ("PullRequestReview", Shape::Object(&GITHUB_REVIEW)),
    ("MergeQueue", PLAIN),
], &[]));
object!(GITLAB, "a GitLab event", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("MergeRequest", Shape::Object(&GITLAB_MERGE)),
    ("Push", PLAIN),
    ("MRComment", Shape::Object(&GITLAB_COMMENT)),
    ("Tag", PLAIN),
    ("PipelineHook", PLAIN),
], &[]));
object!(BITBUCKET, "a Bitbucket event", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("PullRequest", Shape::Object(&BITBUCKET_PULL)),
    ("Push", PLAIN),
    ("PRComment", Shape::Object(&COMMENT)),
], &[]));
object!(AZURE_REPO, "an Azure Repos event", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("PullRequest", Shape::Object(&AZURE_PULL)),
    ("Push", PLAIN),
    ("IssueComment", Shape::Object(&COMMENT)),
], &[]));
object!(CODE_COMMIT, "a CodeCommit event", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("Push", PLAIN),
], &[]));
object!(HARNESS, "a Harness Code event", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("PullRequest", Shape::Object(&HARNESS_PULL)),
    ("Push", PLAIN),
    ("Branch", Shape::Object(&CREATE_DELETE)),
    ("Tag", Shape::Object(&CREATE_DELETE)),
    ("MergeQueue", PLAIN),
], &[]));
object!(HARNESS_REGISTRY, "a Harness registry event", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("Artifact", Shape::Object(&REGISTRY_EVENT)),
], &[]));
object!(REGISTRY_EVENT, "the spec of a registry event", [
    must "registryName": FILLED,
    may "actions": Shape::List(&Shape::OneOf(&["ArtifactCreation", "ArtifactDeletion"])),
], also: &[&EVENT, &MARKS]);
object!(CUSTOM, "the spec of a custom webhook", [
    may "headerConditions": CONDITIONS,
    may "payloadConditions": CONDITIONS,
    may "jexlCondition": Shape::Condition,
], also: &[&MARKS]);
object!(RELAY, "the spec of an event relay", [
    may "webhookIdentifier": TEXT,
    may "autoAbortPreviousExecutions": BOOL,
], also: &[&CUSTOM, &MARKS]);

object!(ARTIFACT, "the spec of an artifact source", [
    may "artifactRef": TEXT,
    may "stageIdentifier": TEXT,
    must "type": TYPE,
], also: &[&MARKS], typed: typed(REGISTRIES, &[]));

static REGISTRIES: &[(&str, Shape)] = &[
    ("Gcr", Shape::Object(&GCR)),
    ("Ecr", Shape::Object(&ECR)),
    ("DockerRegistry", Shape::Object(&DOCKER)),
    ("Nexus3Registry", Shape::Object(&NEXUS)),
    ("Nexus2Registry", Shape::Object(&NEXUS)),
    ("ArtifactoryRegistry", Shape::Object(&ARTIFACTORY)),
    ("Acr", Shape::Object(&ACR)),
    ("AmazonS3", Shape::Object(&S3)),
    ("Jenkins", Shape::Object(&JENKINS)),
    ("CustomArtifact", Shape::Object(&CUSTOM_ARTIFACT)),
    ("GoogleArtifactRegistry", Shape::Object(&GAR)),
    ("GithubPackageRegistry", Shape::Object(&GITHUB_PACKAGE)),
    ("AzureArtifacts", Shape::Object(&AZURE_ARTIFACTS)),
    ("AmazonMachineImage", Shape::Object(&AMI)),
    ("GoogleCloudStorage", Shape::Object(&GOOGLE_STORAGE)),
    ("GceImage", Shape::Object(&GCE_IMAGE)),
    ("Bamboo", Shape::Object(&BAMBOO)),
];

// What all artifact triggers have.
object!(POLLED, "the spec of an artifact trigger", [
    may "connectorRef": TEXT,
    may "eventConditions": CONDITIONS,
    may "metaDataConditions": CONDITIONS,
    may "jexlCondition": Shape::Condition,
]);
object!(DOCKER, "a Docker artifact trigger", [may "imagePath": TEXT, may "tag": TEXT], also: &[&POLLED, &MARKS]);
object!(ECR, "an ECR artifact trigger", [
    may "imagePath": TEXT,
    may "region": TEXT,
    may "registryId": TEXT,
    may "tag": TEXT,
], also: &[&POLLED, &MARKS]);
object!(GCR, "a GCR artifact trigger", [
    may "imagePath": TEXT,
    may "registryHostname": TEXT,
    may "tag": TEXT,
], also: &[&POLLED, &MARKS]);
object!(ACR, "an ACR artifact trigger", [
    may "registry": TEXT,
    may "repository": TEXT,
    may "subscriptionId": TEXT,
    may "tag": TEXT,
], also: &[&POLLED, &MARKS]);
object!(NEXUS, "a Nexus artifact trigger", [
    may "artifactId": TEXT,
    may "classifier": TEXT,
    may "extension": TEXT,
    may "group": TEXT,
    may "groupId": TEXT,
    may "imagePath": TEXT,
    may "packageName": TEXT,
    may "repository": TEXT,
    may "repositoryFormat": TEXT,
    may "repositoryName": TEXT,
    may "repositoryUrl": TEXT,
    may "tag": TEXT,
], also: &[&POLLED, &MARKS]);
object!(ARTIFACTORY, "an Artifactory artifact trigger", [
    may "artifactDirectory": TEXT,
    may "artifactFilter": TEXT,
    may "artifactPath": TEXT,
    may "repository": TEXT,
    may "repositoryFormat": TEXT,
    may "repositoryUrl": TEXT,
], also: &[&POLLED, &MARKS]);
object!(S3, "an S3 artifact trigger", [
    may "bucketName": TEXT,
    may "filePathRegex": TEXT,
    may "region": TEXT,
], also: &[&POLLED, &MARKS]);
object!(JENKINS, "a Jenkins artifact trigger", [
    may "artifactPath": TEXT,
    may "build": TEXT,
    may "jobName": TEXT,
], also: &[&POLLED, &MARKS]);
object!(CUSTOM_ARTIFACT, "a custom artifact trigger", [
    may "artifactsArrayPath": TEXT,
    may "inputs": VARIABLES,
    may "script": TEXT,
    may "timeout": DURATION,
    may "delegateSelectors": TEXT_OR_TEXTS,
    may "version": TEXT,
    may "versionPath": TEXT,
], also: &[&POLLED, &MARKS]);
object!(GAR, "a Google Artifact Registry trigger", [
    may "package": TEXT,
    may "pkg": TEXT,
    may "project": TEXT,
    may "region": TEXT,
    may "repositoryName": TEXT,
    may "version": TEXT,
], also: &[&POLLED, &MARKS]);
object!(GITHUB_PACKAGE, "a GitHub package trigger", [
    may "org": TEXT,
    may "packageName": TEXT,
    may "packageType": TEXT,
], also: &[&POLLED, &MARKS]);
object!(AZURE_ARTIFACTS, "an Azure Artifacts trigger", [
    may "feed": TEXT,
    may "packageName": TEXT,
    may "packageType": TEXT,
    may "project": TEXT,
    may "version": TEXT,
    may "versionRegex": TEXT,
], also: &[&POLLED, &MARKS]);

const PAIRS: Shape = Shape::List(&Shape::Object(&PAIR));
object!(PAIR, "a name with a value", [may "name": TEXT, may "value": TEXT], also: &[&MARKS]);
object!(AMI, "an AMI trigger", [
    may "filters": PAIRS,
    may "region": TEXT,
    may "tags": PAIRS,
    may "version": TEXT,
    may "versionRegex": TEXT,
], also: &[&POLLED, &MARKS]);
object!(GOOGLE_STORAGE, "a Google Cloud Storage trigger", [
    may "artifactPath": TEXT,
    may "bucket": TEXT,
    may "project": TEXT,
], also: &[&POLLED, &MARKS]);
object!(GCE_IMAGE, "a GCE image trigger", [
    may "filters": PAIRS,
    may "labels": PAIRS,
    may "project": TEXT,
    may "version": TEXT,
    may "versionRegex": TEXT,
], also: &[&POLLED, &MARKS]);
object!(BAMBOO, "a Bamboo artifact trigger", [
    may "artifactPaths": TEXTS,
    may "build": TEXT,
    may "planKey": TEXT,
], also: &[&POLLED, &MARKS]);

object!(MANIFEST, "the spec of a manifest source", [
    may "manifestRef": TEXT,
    may "stageIdentifier": TEXT,
    must "type": TYPE,
], also: &[&MARKS], typed: typed(&[("HelmChart", Shape::Object(&HELM))], &[]));
object!(HELM, "a Helm chart trigger", [
    may "chartName": TEXT,
    may "chartVersion": TEXT,
    may "eventConditions": CONDITIONS,
    may "helmVersion": Shape::OneOf(&["V2", "V3", "V380", "V4"]),
    may "store": Shape::Object(&HELM_STORE),
], also: &[&MARKS]);
object!(HELM_STORE, "a chart's store", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("Http", Shape::Object(&CHART_PLACE)),
    ("S3", Shape::Object(&CHART_PLACE)),
    ("Gcs", Shape::Object(&CHART_PLACE)),
], &[]));
object!(CHART_PLACE, "the spec of a chart's store", [
    may "connectorRef": TEXT,
    may "bucketName": TEXT,
    may "folderPath": TEXT,
    may "region": TEXT,
], also: &[&MARKS]);

object!(SCHEDULED, "the spec of a schedule", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("Cron", Shape::Object(&CRON)),
], &[]));
object!(CRON, "a cron schedule", [
    may "expression": FILLED,
    may "type": Shape::OneOf(&["UNIX", "QUARTZ"]),
    may "timezone": TEXT,
], also: &[&MARKS]);

object!(MULTI_REGION, "the spec of a multi-region source", [
    may "artifactRef": TEXT,
    may "stageIdentifier": TEXT,
    may "type": TEXT,
    may "sources": Shape::List(&Shape::Object(&REGION_SOURCE)),
    may "eventConditions": CONDITIONS,
    may "metaDataConditions": CONDITIONS,
    may "jexlCondition": Shape::Condition,
], also: &[&MARKS]);
object!(REGION_SOURCE, "a region's source", [may "type": TYPE], also: &[&MARKS], typed: typed(REGISTRIES, &[]));

object!(SYSTEM_EVENT, "the spec of a system event", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("Pipeline", Shape::Object(&PIPELINE_EVENT)),
], &[]));
object!(PIPELINE_EVENT, "a pipeline's event", [
    must "eventType": Shape::OneOf(&["PipelineSuccess", "PipelineFailure"]),
    may "payloadConditions": CONDITIONS,
], also: &[&MARKS]);
