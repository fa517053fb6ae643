//! `connector`. Harness has no schema for connectors: the fields of AWS are those of its documentation and
//! of its Terraform provider; other types are known by name.

use super::{
    BOOL, FILLED, IDENTIFIER, MARKS, NAME, NOTHING, Object, Shape, TAGS, TEXT, TEXT_OR_TEXTS,
    TEXTS, TYPE, object, typed,
};
use crate::shape::Field;

object!(CONNECTOR, "a connector", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    may "accountIdentifier": TEXT,
    must "type": TYPE,
], also: &[&MARKS], typed: typed(&[("Aws", Shape::Object(&AWS))], OTHERS));

/// Connector types whose spec is kept as it is.
static OTHERS: &[&str] = &[
    "AppDynamics",
    "Artifactory",
    "AwsKms",
    "AwsSecretManager",
    "Azure",
    "AzureArtifacts",
    "AzureKeyVault",
    "AzureRepo",
    "Bamboo",
    "Bitbucket",
    "CEAws",
    "CEAzure",
    "CEK8sCluster",
    "Codecommit",
    "CustomHealth",
    "CustomSecretManager",
    "Datadog",
    "DockerRegistry",
    "Dynatrace",
    "ElasticSearch",
    "Gcp",
    "GcpCloudCost",
    "GcpKms",
    "GcpSecretManager",
    "Git",
    "Github",
    "Gitlab",
    "HttpHelmRepo",
    "JDBC",
    "Jenkins",
    "Jira",
    "K8sCluster",
    "Local",
    "NewRelic",
    "Nexus",
    "OciHelmRepo",
    "PagerDuty",
    "Pdc",
    "Prometheus",
    "Rancher",
    "ServiceNow",
    "Splunk",
    "Spot",
    "SumoLogic",
    "Tas",
    "TerraformCloud",
    "Vault",
];

object!(AWS, "the spec of an AWS connector", [
    must "credential": Shape::Object(&CREDENTIAL),
    may "awsSdkClientBackOffStrategyOverride": Shape::Object(&BACK_OFF),
    may "delegateSelectors": TEXT_OR_TEXTS,
    may "executeOnDelegate": BOOL,
    may "ignoreTestConnection": BOOL,
    may "proxy": BOOL,
    may "region": TEXT,
], also: &[&MARKS]);

object!(CREDENTIAL, "an AWS credential", [
    must "type": TYPE,
    may "crossAccountAccess": Shape::Object(&CROSS_ACCOUNT),
    may "region": TEXT,
    may "testRegion": TEXT,
], also: &[&MARKS], typed: typed(&[
    ("InheritFromDelegate", Shape::Object(&NOTHING)),
    ("ManualConfig", Shape::Object(&MANUAL)),
    ("Irsa", Shape::Object(&NOTHING)),
    ("OidcAuthentication", Shape::Object(&OIDC)),
], &[]));
object!(MANUAL, "a manual AWS credential", [
    may "accessKey": TEXT,
    may "accessKeyRef": TEXT,
    may "secretKeyRef": FILLED,
    may "sessionTokenRef": TEXT,
], one_of: &["accessKey", "accessKeyRef"], also: &[&MARKS]);
object!(OIDC, "an OIDC credential", [
    must "iamRoleArn": FILLED,
    may "sessionTags": TEXTS,
    may "sessionTagKeys": TEXTS,
], also: &[&MARKS]);
object!(CROSS_ACCOUNT, "`crossAccountAccess`", [
    must "crossAccountRoleArn": FILLED,
    may "externalId": TEXT,
], also: &[&MARKS]);

object!(BACK_OFF, "a back-off strategy", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("FixedDelayBackoffStrategy", Shape::Object(&DELAYS)),
    ("EqualJitterBackoffStrategy", Shape::Object(&DELAYS)),
    ("FullJitterBackoffStrategy", Shape::Object(&DELAYS)),
], &[]));
// All in milliseconds.
object!(DELAYS, "the spec of a back-off strategy", [
    may "fixedBackoff": Shape::Int(0, i64::MAX),
    may "baseDelay": Shape::Int(0, i64::MAX),
    may "maxBackoffTime": Shape::Int(0, i64::MAX),
    may "retryCount": Shape::Int(0, i64::MAX),
], also: &[&MARKS]);
