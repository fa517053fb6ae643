//! `connector`. Harness has no schema for connectors: the fields are those of its documentation and of its
//! Terraform provider. Only AWS connectors, which Slipway uses itself, are closed; the others may have fields
//! that are not listed, with a warning.

use super::{IDENTIFIER, MARKS, NAME, Object, Shape, TAGS, TEXT, TYPE, object, typed};
use crate::shape::Field;

mod aws;
mod cloud;
mod code;
mod monitoring;
mod registry;
mod secret_manager;

object!(CONNECTOR, "a connector", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    may "accountIdentifier": TEXT,
    must "type": TYPE,
], also: &[&MARKS], typed: typed(&[
    ("Aws", Shape::Object(&aws::AWS)),
    ("Gcp", Shape::Object(&cloud::GCP)),
    ("Azure", Shape::Object(&cloud::AZURE)),
    ("K8sCluster", Shape::Object(&cloud::KUBERNETES)),
    ("Spot", Shape::Object(&cloud::SPOT)),
    ("Rancher", Shape::Object(&cloud::RANCHER)),
    ("Tas", Shape::Object(&cloud::TAS)),
    ("Pdc", Shape::Object(&cloud::PDC)),
    ("TerraformCloud", Shape::Object(&cloud::TERRAFORM_CLOUD)),
    ("CEAws", Shape::Object(&cloud::COST)),
    ("CEAzure", Shape::Object(&cloud::COST)),
    ("GcpCloudCost", Shape::Object(&cloud::COST)),
    ("CEK8sCluster", Shape::Object(&cloud::COST)),
    ("JDBC", Shape::Object(&cloud::JDBC)),
    ("Git", Shape::Object(&code::GIT)),
    ("Github", Shape::Object(&code::HOSTED)),
    ("Gitlab", Shape::Object(&code::HOSTED)),
    ("Bitbucket", Shape::Object(&code::HOSTED)),
    ("AzureRepo", Shape::Object(&code::HOSTED)),
    ("Codecommit", Shape::Object(&code::CODE_COMMIT)),
    ("DockerRegistry", Shape::Object(&registry::DOCKER)),
    ("Artifactory", Shape::Object(&registry::ARTIFACTORY)),
    ("Nexus", Shape::Object(&registry::NEXUS)),
    ("HttpHelmRepo", Shape::Object(&registry::HELM)),
    ("OciHelmRepo", Shape::Object(&registry::HELM)),
    ("AzureArtifacts", Shape::Object(&registry::AZURE_ARTIFACTS)),
    ("Jenkins", Shape::Object(&registry::JENKINS)),
    ("Bamboo", Shape::Object(&registry::BAMBOO)),
    ("Jira", Shape::Object(&registry::JIRA)),
    ("ServiceNow", Shape::Object(&registry::SERVICE_NOW)),
    ("AppDynamics", Shape::Object(&monitoring::APP_DYNAMICS)),
    ("NewRelic", Shape::Object(&monitoring::NEW_RELIC)),
    ("Datadog", Shape::Object(&monitoring::DATADOG)),
    ("Dynatrace", Shape::Object(&monitoring::DYNATRACE)),
    ("Prometheus", Shape::Object(&monitoring::PROMETHEUS)),
    ("Splunk", Shape::Object(&monitoring::SPLUNK)),
    ("ElasticSearch", Shape::Object(&monitoring::ELASTIC_SEARCH)),
    ("SumoLogic", Shape::Object(&monitoring::SUMO_LOGIC)),
    ("CustomHealth", Shape::Object(&monitoring::CUSTOM_HEALTH)),
    ("PagerDuty", Shape::Object(&monitoring::PAGER_DUTY)),
    ("AwsKms", Shape::Object(&secret_manager::AWS_KMS)),
    ("AwsSecretManager", Shape::Object(&secret_manager::AWS_SECRETS)),
    ("AzureKeyVault", Shape::Object(&secret_manager::AZURE_KEY_VAULT)),
    ("GcpKms", Shape::Object(&secret_manager::GCP_KMS)),
    ("GcpSecretManager", Shape::Object(&secret_manager::GCP_SECRETS)),
    ("Vault", Shape::Object(&secret_manager::VAULT)),
    ("CustomSecretManager", Shape::Object(&secret_manager::CUSTOM)),
    ("Local", Shape::Object(&secret_manager::LOCAL)),
], &[]));
