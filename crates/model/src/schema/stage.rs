//! Stages and what they run.

use super::{
    ANY, BOOL, DEPLOYMENT_TYPES, DURATION, FILLED, IDENTIFIER, MARKS, NAME, NOTHING, Object,
    REFERENCE, Shape, TAGS, TEMPLATE, TEMPLATE_LINK, TEXT, TEXT_OR_TEXTS, TEXTS, TYPE, VARIABLES,
    environment, flow, infrastructure, object, service,
    step::{self, container},
    typed,
};
use crate::shape::{Field, Group};

pub(super) const STAGES: Shape = Shape::List(&Shape::Object(&WRAPPER));

object!(WRAPPER, "an item of `stages`", [
    may "stage": Shape::Object(&STAGE),
    may "parallel": Shape::List(&Shape::Object(&WRAPPER)),
    may "insert": Shape::Object(&INSERT),
], one_of: &["stage", "parallel", "insert"], also: &[&MARKS]);
object!(INSERT, "an insert", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    must "stages": Shape::List(&Shape::Object(&WRAPPER)),
], also: &[&MARKS]);

object!(STAGE, "a stage", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "type": TYPE,
    may "template": TEMPLATE,
    may "tags": TAGS,
    may "variables": VARIABLES,
    may "when": Shape::Object(&flow::STAGE_WHEN),
    may "timeout": DURATION,
    may "skipInstances": BOOL,
    may "runMode": Shape::Object(&RUN_MODE),
    may "pipelineVariables": VARIABLES,
    may "objective": ANY,
], one_of: &["type", "template"], also: &[&flow::FLOW, &MARKS], typed: typed(&[
    ("Deployment", Shape::Object(&DEPLOYMENT)),
    ("Custom", Shape::Object(&CUSTOM)),
    ("Approval", Shape::Object(&CUSTOM)),
    ("Pipeline", Shape::Object(&CHAINED)),
    ("CI", Shape::Object(&CI)),
    ("Security", Shape::Object(&BUILD)),
    ("SecurityTests", Shape::Object(&BUILD)),
    ("IDP", Shape::Object(&BUILD)),
    ("IACM", Shape::Object(&IACM)),
    ("FeatureFlag", Shape::Object(&CUSTOM)),
    ("DRTest", Shape::Object(&CUSTOM)),
    ("CompositeLoadTest", Shape::Object(&CUSTOM)),
    ("Dynamic", Shape::Object(&DYNAMIC)),
], &[]));

object!(RUN_MODE, "`runMode`", [
    must "type": Shape::OneOf(&["Manual", "Auto"]),
    may "timeout": DURATION,
], groups: &[Group::With("type", "Manual", "timeout")], also: &[&MARKS]);

object!(CUSTOM, "the spec of a stage", [
    must "execution": Shape::Object(&step::EXECUTION),
    may "serviceDependencies": ANY,
    may "environment": Shape::Object(&ENVIRONMENT),
], also: &[&MARKS]);

object!(BUILD, "the spec of a stage", [
    must "execution": Shape::Object(&step::EXECUTION),
], also: &[&container::BUILD_STAGE, &MARKS]);
object!(CI, "the spec of a CI stage", [
    must "execution": Shape::Object(&step::EXECUTION),
    may "caching": Shape::Object(&CACHING),
    may "buildIntelligence": Shape::Object(&INTELLIGENCE),
    may "slsa_provenance": Shape::Object(&PROVENANCE),
], ignored: &[
    ("cloneCode", "the field is `cloneCodebase`"),
], also: &[&container::BUILD_STAGE, &MARKS]);
object!(CACHING, "`caching`", [
    may "enabled": BOOL,
    may "key": TEXT,
    may "override": BOOL,
    may "paths": TEXTS,
    may "policy": Shape::OneOf(&["pull", "push", "pull-push"]),
], also: &[&MARKS]);
object!(INTELLIGENCE, "`buildIntelligence`", [may "enabled": BOOL], also: &[&MARKS]);
object!(PROVENANCE, "`slsa_provenance`", [may "enabled": BOOL, may "attestation": Shape::Object(&ATTESTATION)], also: &[&MARKS]);
object!(ATTESTATION, "`attestation`", [may "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("cosign", Shape::Object(&COSIGN)),
], &[]));
object!(COSIGN, "the `spec` of type `cosign`", [
    may "private_key": TEXT,
    may "password": TEXT,
    may "connector": TEXT,
    may "key": TEXT,
], one_of: &["private_key", "connector"], also: &[&MARKS]);
object!(IACM, "the spec of an IACM stage", [
    must "execution": Shape::Object(&step::EXECUTION),
    may "workspace": TEXT,
    may "moduleId": TEXT,
    may "playbooks": TEXTS,
    may "inventories": TEXTS,
    may "remoteExecutionId": TEXT,
], also: &[&container::BUILD_STAGE, &MARKS]);

object!(DYNAMIC, "the spec of a dynamic stage", [
    may "source": TEXT,
    may "sourceConfig": Shape::Object(&DYNAMIC_SOURCE),
], one_of: &["source", "sourceConfig"], also: &[&MARKS]);
object!(DYNAMIC_SOURCE, "`sourceConfig`", [
    must "type": TYPE,
], also: &[&MARKS], typed: typed(&[("Git", Shape::Object(&DYNAMIC_GIT))], &[]));
object!(DYNAMIC_GIT, "the Git source of a dynamic stage", [
    must "repoName": TEXT,
    must "filePath": TEXT,
    may "connectorRef": TEXT,
    may "branchName": TEXT,
    may "commitId": TEXT,
], also: &[&MARKS]);

object!(CHAINED, "the spec of a pipeline stage", [
    must "org": TEXT,
    must "project": TEXT,
    must "pipeline": FILLED,
    may "inputs": ANY,
    may "pipelineInputs": ANY,
    may "inputSetReferences": TEXTS,
    may "outputs": ANY,
    may "gitBranch": TEXT,
], also: &[&MARKS]);

object!(DEPLOYMENT, "the spec of a deployment stage", [
    may "deploymentType": Shape::OneOf(DEPLOYMENT_TYPES),
    must "execution": Shape::Object(&step::EXECUTION),
    may "service": Shape::Object(&SERVICE),
    may "services": Shape::Object(&SERVICES),
    may "environment": Shape::Object(&ENVIRONMENT),
    may "environments": Shape::Object(&ENVIRONMENTS),
    may "environmentGroup": Shape::Object(&ENVIRONMENT_GROUP),
    may "serviceConfig": Shape::Object(&service::SERVICE_CONFIG),
    may "infrastructure": Shape::Object(&infrastructure::INLINE),
    may "customDeploymentRef": Shape::Object(&TEMPLATE_LINK),
    may "gitOpsEnabled": BOOL,
    may "serviceDependencies": ANY,
    may "deploymentMetadata": ANY,
    may "multiDeploymentConfig": Shape::Object(&MULTI_DEPLOYMENT),
    may "tags": TAGS,
], groups: &[
    Group::AtMostOne(&["service", "services", "serviceConfig"]),
    Group::AtMostOne(&["environment", "environments", "environmentGroup", "infrastructure"]),
], also: &[&MARKS]);

object!(MULTI_DEPLOYMENT, "`multiDeploymentConfig`", [
    may "onFailure": flow::LOOP_FAILURE,
    may "when": TEXT,
    may "maxConcurrency": Shape::Int(1, i64::MAX),
], also: &[&MARKS]);

object!(SERVICE, "a stage's service", [
    may "serviceRef": TEXT,
    may "serviceInputs": Shape::Or(&Shape::Part(&Shape::Object(&service::SERVICE)), &TEXT),
    may "gitBranch": TEXT,
    may "useFromStage": Shape::Object(&FROM_STAGE),
    may "disableArtifactValidation": BOOL,
    may "failureStrategies": flow::FAILURE_STRATEGIES,
], also: &[&MARKS]);
object!(FROM_STAGE, "`useFromStage`", [must "stage": IDENTIFIER, may "overrides": ANY], also: &[&MARKS]);
object!(SERVICES, "a stage's services", [
    may "values": Shape::Or(&Shape::List(&Shape::Object(&SERVICE)), &TEXT),
    may "useFromStage": Shape::Object(&FROM_STAGE),
    may "disableArtifactValidation": BOOL,
    may "failureStrategies": flow::FAILURE_STRATEGIES,
], also: &[&MARKS]);

object!(ENVIRONMENT, "a stage's environment", [
    may "environmentRef": TEXT,
    may "environmentInputs": Shape::Or(&Shape::Part(&Shape::Object(&environment::ENVIRONMENT)), &TEXT),
    may "deployToAll": BOOL,
    may "gitBranch": TEXT,
    may "useFromStage": Shape::Object(&FROM_STAGE),
    may "filters": Shape::Or(&Shape::List(&Shape::Object(&FILTER)), &TEXT),
    may "gitOpsClusters": Shape::Or(&Shape::List(&Shape::Object(&CLUSTER)), &TEXT),
    may "infrastructureDefinition": Shape::Or(&Shape::Object(&INFRASTRUCTURE), &TEXT),
    may "infrastructureDefinitions": Shape::Or(&Shape::List(&Shape::Object(&INFRASTRUCTURE)), &TEXT),
    may "provisioner": Shape::Object(&step::EXECUTION),
    may "serviceOverrideInputs": OVERRIDE_INPUTS,
    may "servicesOverrides": Shape::Or(&Shape::List(&Shape::Object(&SERVICE_OVERRIDE)), &TEXT),
    may "failureStrategies": flow::FAILURE_STRATEGIES,
], also: &[&MARKS]);
const OVERRIDE_INPUTS: Shape =
    Shape::Or(&Shape::Part(&Shape::Object(&environment::OVERRIDES)), &TEXT);
object!(SERVICE_OVERRIDE, "an item of `servicesOverrides`", [
    must "serviceRef": TEXT,
    may "serviceOverrideInputs": OVERRIDE_INPUTS,
], also: &[&MARKS]);
object!(CLUSTER, "a GitOps cluster", [
    must "identifier": TEXT,
    may "agentIdentifier": TEXT,
    may "scope": TEXT,
], also: &[&MARKS]);
object!(INFRASTRUCTURE, "an infrastructure reference", [
    must "identifier": REFERENCE,
    may "inputs": Shape::Or(&Shape::Part(&Shape::Object(&infrastructure::INFRASTRUCTURE)), &TEXT),
], also: &[&MARKS]);
object!(FILTER, "a filter", [
    must "identifier": TEXT,
    must "type": TYPE,
    must "entities": Shape::List(&Shape::OneOf(&["infrastructures", "gitOpsClusters", "environments"])),
], also: &[&MARKS], typed: typed(&[
    ("all", Shape::Object(&NOTHING)),
    ("tags", Shape::Object(&TAG_FILTER)),
], &[]));
object!(TAG_FILTER, "a tag filter", [
    may "matchType": Shape::OneOf(&["any", "all"]),
    may "tags": Shape::Or(&TAGS, &TEXT_OR_TEXTS),
], also: &[&MARKS]);
object!(ENVIRONMENTS, "a stage's environments", [
    may "values": Shape::Or(&Shape::List(&Shape::Object(&ENVIRONMENT)), &TEXT),
    may "filters": Shape::Or(&Shape::List(&Shape::Object(&FILTER)), &TEXT),
    may "failureStrategies": flow::FAILURE_STRATEGIES,
], also: &[&MARKS]);
object!(ENVIRONMENT_GROUP, "a stage's environment group", [
    must "envGroupRef": REFERENCE,
    may "deployToAll": BOOL,
    may "environments": Shape::Or(&Shape::List(&Shape::Object(&ENVIRONMENT)), &TEXT),
    may "filters": Shape::Or(&Shape::List(&Shape::Object(&FILTER)), &TEXT),
    may "gitBranch": TEXT,
    may "failureStrategies": flow::FAILURE_STRATEGIES,
], also: &[&MARKS]);
