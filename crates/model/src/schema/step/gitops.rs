//! GitOps: pull requests and Argo CD applications.

use super::common::{COUNT, INT, NAMED_VALUE, POSITIVE, TEXT_MAP};
use crate::schema::{BOOL, DURATION, FILLED, TEXT, TEXTS, VARIABLES};
use crate::shape::{Field, Object, Shape};

step!(FETCH_LINKED_APPS, "`GitOpsFetchLinkedApps`", [may "filterByServiceEnvCluster": BOOL]);
bare!(GET_APP_DETAILS, "`GitOpsGetAppDetails`", [
    may "agentId": TEXT,
    may "applicationName": TEXT,
    may "applicationRegex": TEXT,
    may "applicationsList": Shape::List(&Shape::Object(&AGENT_APPLICATION_TARGETS)),
    may "hardRefresh": BOOL,
]);
bare!(ROLLBACK, "`GitOpsRollback`", [
    must "applicationsList": Shape::List(&Shape::Object(&AGENT_APPLICATION_ROLLBACK_TARGETS)),
    may "rollBackSteps": POSITIVE,
    may "prune": BOOL,
    may "waitTillHealthy": BOOL,
    may "failOnTimeout": BOOL,
]);
bare!(ROLLOUT, "`GitOpsRollout`", [
    must "agentIdentifier": TEXT,
    must "appName": TEXT,
    must "namespace": TEXT,
    must "rolloutName": TEXT,
    may "autoPromoteRolloutBehavior": Shape::OneOf(&["promote-full", "resume", "retry", "abort", "restart"]),
    may "autoRolloutAction": Shape::OneOf(&["promote-full", "resume", "retry", "abort", "restart"]),
    may "waitUntilHealthStatus": Shape::Object(&WAIT_UNTIL_HEALTH_STATUS),
    may "failOnTimeout": BOOL,
]);
step!(SYNC, "`GitOpsSync`", [
    must "applyOnly": BOOL,
    must "dryRun": BOOL,
    must "forceApply": BOOL,
    must "prune": BOOL,
    must "syncOptions": Shape::Object(&SYNC_OPTIONS),
    may "applicationsList": Shape::List(&Shape::Object(&AGENT_APPLICATION_TARGETS)),
    may "applicationRegex": TEXT,
    may "applicationLabels": TEXTS,
    may "resourcesFilter": Shape::Object(&RESOURCES_FILTER),
    may "retryStrategy": Shape::Object(&SYNC_RETRY_STRATEGY),
    may "waitTillHealthy": BOOL,
    may "failOnTimeout": BOOL,
    may "showResourceProgress": BOOL,
    may "autoPromoteRolloutBehavior": Shape::OneOf(&["promote-full", "resume"]),
    may "degradedStateTimeout": DURATION,
], ignored: &[("retry", "`retryStrategy` says whether and how it retries")]);
step!(UPDATE_RELEASE_REPO, "`GitOpsUpdateReleaseRepo`", [
    may "prTitle": TEXT,
    may "allowEmptyCommit": BOOL,
    may "disableGitRestraint": BOOL,
    may "ignoreMissingValues": BOOL,
    may "skipPipelineVariables": BOOL,
    may "waitForMerge": BOOL,
    may "allowNoFilesChanged": BOOL,
    may "ignoreMissingFiles": BOOL,
    may "stringMap": TEXT_MAP,
    may "variables": Shape::List(&Shape::Object(&RELEASE_VARIABLE)),
]);
step!(MERGE_PR, "`MergePR`", [
    must "deleteSourceBranch": BOOL,
    may "disableGitRestraint": BOOL,
    may "mergeStrategy": Shape::OneOf(&["merge", "squash"]),
    may "variables": VARIABLES,
]);
step!(REVERT_PR, "`RevertPR`", [must "commitId": TEXT, may "prTitle": TEXT, may "disableGitRestraint": BOOL]);
bare!(UPDATE_GIT_OPS_APP, "`UpdateGitOpsApp`", [
    must "agentId": TEXT,
    must "applicationName": TEXT,
    may "helm": Shape::Object(&HELM_VALUES),
    may "kustomize": Shape::Object(&KUSTOMIZE_VALUES),
    may "targetRevision": TEXT,
    may "sources": Shape::List(&Shape::Object(&SOURCE)),
]);

part!(AGENT_APPLICATION_TARGETS, "an item of `applicationsList`", [
    must "agentId": TEXT,
    must "applicationName": TEXT,
    may "resourcesSelector": Shape::Object(&RESOURCES_SELECTOR),
]);
part!(RESOURCES_SELECTOR, "`resourcesSelector`", [
    may "group": TEXT,
    may "kind": TEXT,
    may "name": TEXT,
    may "namespace": TEXT,
]);
part!(AGENT_APPLICATION_ROLLBACK_TARGETS, "an item of `applicationsList`", [
    must "agentId": TEXT,
    must "applicationName": TEXT,
    may "historyId": INT,
    may "rollBackSteps": POSITIVE,
]);
part!(WAIT_UNTIL_HEALTH_STATUS, "`waitUntilHealthStatus`", [
    may "healthStatus": Shape::OneOf(&[
        "Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown",
    ]),
    may "healthMessage": TEXT,
]);
part!(RESOURCES_FILTER, "`resourcesFilter`", [
    may "group": TEXT,
    may "kind": TEXT,
    may "name": TEXT,
    may "namespace": TEXT,
    may "label": TEXT,
]);
part!(SYNC_RETRY_STRATEGY, "`retryStrategy`", [
    may "baseBackoffDuration": TEXT,
    may "increaseBackoffByFactor": COUNT,
    may "limit": COUNT,
    may "maxBackoffDuration": TEXT,
]);
part!(SYNC_OPTIONS, "`syncOptions`", [
    must "applyOutOfSyncOnly": BOOL,
    must "autoCreateNamespace": BOOL,
    must "prunePropagationPolicy": Shape::OneOf(&["foreground", "background", "orphan"]),
    must "pruneResourcesAtLast": BOOL,
    must "replaceResources": BOOL,
    must "skipSchemaValidation": BOOL,
    may "serverSideApply": BOOL,
    may "respectIgnoreDifferences": BOOL,
]);
part!(RELEASE_VARIABLE, "an item of `variables`", [
    may "description": TEXT,
    may "required": BOOL,
    must "value": TEXT,
    may "default": TEXT,
    may "name": FILLED,
    may "type": Shape::OneOf(&["String", "Number", "Secret"]),
]);
part!(HELM_VALUES, "`helm`", [
    may "fileParameters": Shape::List(&Shape::Object(&HELM_FILE_PARAMETERS)),
    may "parameters": Shape::List(&Shape::Object(&NAMED_VALUE)),
    may "valueFiles": TEXTS,
]);
part!(HELM_FILE_PARAMETERS, "an item of `fileParameters`", [must "name": TEXT, must "path": TEXT]);
part!(KUSTOMIZE_VALUES, "`kustomize`", [
    may "images": TEXTS,
    may "namespace": TEXT,
    may "replicas": Shape::List(&Shape::Object(&KUSTOMIZE_REPLICAS)),
]);
part!(KUSTOMIZE_REPLICAS, "an item of `replicas`", [must "count": TEXT, must "name": TEXT]);
part!(SOURCE, "an item of `sources`", [
    may "chart": TEXT,
    may "helm": Shape::Object(&HELM_VALUES),
    may "kustomize": Shape::Object(&KUSTOMIZE_VALUES),
    may "path": TEXT,
    may "ref": TEXT,
    may "repoURL": TEXT,
    may "targetRevision": TEXT,
]);
