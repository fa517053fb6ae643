//! Connectors of registries, build servers and ticket systems.

use super::super::{ANY, FILLED, MARKS, NOTHING, Object, Shape, TEXT, TYPE, object, typed};
use super::cloud::{COMMON, USER};
use crate::shape::Field;

const AUTH: Shape = Shape::Object(&AUTH_BY);
object!(AUTH_BY, "`auth`", [must "type": TYPE], open: true, also: &[&MARKS], typed: typed(&[
    ("UsernamePassword", Shape::Object(&USER)),
    ("Anonymous", Shape::Object(&NOTHING)),
    ("Bearer Token(HTTP Header)", Shape::Object(&BEARER)),
], &[]));
object!(BEARER, "a bearer token", [must "tokenRef": FILLED], open: true, also: &[&MARKS]);

object!(DOCKER, "the spec of a Docker registry", [
    must "dockerRegistryUrl": FILLED,
    may "providerType": Shape::OneOf(&["DockerHub", "Harbor", "Quay", "Other"]),
    may "auth": AUTH,
], open: true, also: &[&COMMON, &MARKS]);
object!(ARTIFACTORY, "the spec of an Artifactory connector", [
    must "artifactoryServerUrl": FILLED,
    may "auth": AUTH,
], open: true, also: &[&COMMON, &MARKS]);
object!(NEXUS, "the spec of a Nexus connector", [
    must "nexusServerUrl": FILLED,
    may "version": TEXT,
    may "auth": AUTH,
], open: true, also: &[&COMMON, &MARKS]);
object!(HELM, "the spec of a Helm repository", [
    must "helmRepoUrl": FILLED,
    may "auth": AUTH,
], open: true, also: &[&COMMON, &MARKS]);
object!(AZURE_ARTIFACTS, "the spec of an Azure Artifacts connector", [
    must "azureArtifactsUrl": FILLED,
    may "auth": ANY,
], open: true, also: &[&COMMON, &MARKS]);
object!(JENKINS, "the spec of a Jenkins connector", [
    must "jenkinsUrl": FILLED,
    may "auth": AUTH,
], open: true, also: &[&COMMON, &MARKS]);
object!(BAMBOO, "the spec of a Bamboo connector", [
    must "bambooUrl": FILLED,
    may "auth": AUTH,
], open: true, also: &[&COMMON, &MARKS]);

// Both have had the user beside `auth` before they had other ways.
object!(JIRA, "the spec of a Jira connector", [
    must "jiraUrl": FILLED,
    may "auth": Shape::Object(&TICKET_AUTH),
], open: true, also: &[&USER, &COMMON, &MARKS]);
object!(SERVICE_NOW, "the spec of a ServiceNow connector", [
    must "serviceNowUrl": FILLED,
    may "auth": Shape::Object(&TICKET_AUTH),
], open: true, also: &[&USER, &COMMON, &MARKS]);
object!(TICKET_AUTH, "`auth`", [must "type": TYPE], open: true, also: &[&MARKS], typed: typed(&[
    ("UsernamePassword", Shape::Object(&USER)),
    ("PersonalAccessToken", Shape::Object(&PERSONAL_TOKEN)),
], &["OAuth", "AdfsClientCredentialsWithCertificate", "RefreshTokenGrantType"]));
object!(PERSONAL_TOKEN, "a personal access token", [must "patRef": FILLED], open: true, also: &[&MARKS]);
