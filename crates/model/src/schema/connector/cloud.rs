//! Connectors of clouds, platforms and databases.

use super::super::{
    ANY, BOOL, FILLED, MARKS, NOTHING, Object, Shape, TAGS, TEXT, TEXT_OR_TEXTS, TEXTS, TYPE,
    object, typed,
};
use crate::shape::Field;

// What nearly every connector has.
object!(COMMON, "the spec of a connector", [
    may "delegateSelectors": TEXT_OR_TEXTS,
    may "executeOnDelegate": BOOL,
    may "ignoreTestConnection": BOOL,
    may "proxy": BOOL,
]);

object!(GCP, "the spec of a GCP connector", [
    must "credential": Shape::Object(&GCP_CREDENTIAL),
], open: true, also: &[&COMMON, &MARKS]);
object!(GCP_CREDENTIAL, "a GCP credential", [must "type": TYPE], open: true, also: &[&MARKS], typed: typed(&[
    ("InheritFromDelegate", Shape::Object(&NOTHING)),
    ("ManualConfig", Shape::Object(&GCP_KEY)),
    ("OidcAuthentication", Shape::Object(&GCP_OIDC)),
], &[]));
object!(GCP_KEY, "a manual GCP credential", [must "secretKeyRef": FILLED], open: true, also: &[&MARKS]);
object!(GCP_OIDC, "a GCP OIDC credential", [
    must "workloadPoolId": FILLED,
    must "providerId": FILLED,
    must "gcpProjectId": FILLED,
    must "serviceAccountEmail": FILLED,
], open: true, also: &[&MARKS]);

object!(AZURE, "the spec of an Azure connector", [
    must "credential": Shape::Object(&AZURE_CREDENTIAL),
    may "azureEnvironmentType": Shape::OneOf(&["AZURE", "AZURE_US_GOVERNMENT"]),
], open: true, also: &[&COMMON, &MARKS]);
object!(AZURE_CREDENTIAL, "an Azure credential", [must "type": TYPE], open: true, also: &[&MARKS], typed: typed(&[
    ("InheritFromDelegate", Shape::Object(&AZURE_IDENTITY)),
    ("ManualConfig", Shape::Object(&AZURE_MANUAL)),
    ("OidcAuthentication", Shape::Object(&AZURE_MANUAL)),
], &[]));
object!(AZURE_IDENTITY, "an Azure identity", [may "auth": Shape::Object(&AZURE_AUTH)], open: true, also: &[&MARKS]);
object!(AZURE_MANUAL, "a manual Azure credential", [
    must "applicationId": FILLED,
    must "tenantId": FILLED,
    may "subscriptionId": TEXT,
    may "auth": Shape::Object(&AZURE_AUTH),
], open: true, also: &[&MARKS]);
object!(AZURE_AUTH, "an Azure authentication", [must "type": TYPE], open: true, also: &[&MARKS], typed: typed(&[
    ("Secret", Shape::Object(&AZURE_SECRET)),
    ("Certificate", Shape::Object(&AZURE_CERTIFICATE)),
    ("SystemAssignedManagedIdentity", Shape::Object(&NOTHING)),
    ("UserAssignedManagedIdentity", Shape::Object(&AZURE_CLIENT)),
], &[]));
object!(AZURE_SECRET, "an Azure secret", [must "secretRef": FILLED], open: true, also: &[&MARKS]);
object!(AZURE_CERTIFICATE, "an Azure certificate", [must "certificateRef": FILLED], open: true, also: &[&MARKS]);
object!(AZURE_CLIENT, "an Azure managed identity", [must "clientId": FILLED], open: true, also: &[&MARKS]);

object!(KUBERNETES, "the spec of a Kubernetes connector", [
    must "credential": Shape::Object(&KUBERNETES_CREDENTIAL),
], open: true, also: &[&COMMON, &MARKS]);
object!(KUBERNETES_CREDENTIAL, "a Kubernetes credential", [must "type": TYPE], open: true, also: &[&MARKS],
    typed: typed(&[
        ("InheritFromDelegate", Shape::Object(&NOTHING)),
        ("ManualConfig", Shape::Object(&KUBERNETES_MANUAL)),
    ], &[]));
object!(KUBERNETES_MANUAL, "a manual Kubernetes credential", [
    must "masterUrl": FILLED,
    must "auth": Shape::Object(&KUBERNETES_AUTH),
], open: true, also: &[&MARKS]);
object!(KUBERNETES_AUTH, "a Kubernetes authentication", [must "type": TYPE], open: true, also: &[&MARKS],
    typed: typed(&[
        ("UsernamePassword", Shape::Object(&USER)),
        ("ServiceAccount", Shape::Object(&SERVICE_ACCOUNT)),
        ("OpenIdConnect", Shape::Object(&OPEN_ID)),
        ("ClientKeyCert", Shape::Object(&CLIENT_KEY)),
    ], &[]));
object!(SERVICE_ACCOUNT, "a service account", [
    must "serviceAccountTokenRef": FILLED,
    may "caCertRef": TEXT,
], open: true, also: &[&MARKS]);
object!(OPEN_ID, "an OpenID connection", [
    must "oidcIssuerUrl": FILLED,
    may "oidcUsername": TEXT,
    may "oidcUsernameRef": TEXT,
    must "oidcClientIdRef": FILLED,
    must "oidcPasswordRef": FILLED,
    may "oidcSecretRef": TEXT,
    may "oidcScopes": TEXT,
], open: true, also: &[&MARKS]);
object!(CLIENT_KEY, "a client key", [
    must "clientCertRef": FILLED,
    must "clientKeyRef": FILLED,
    may "clientKeyPassphraseRef": TEXT,
    may "clientKeyAlgo": TEXT,
    may "caCertRef": TEXT,
], open: true, also: &[&MARKS]);

object!(USER, "a user", [
    may "username": TEXT,
    may "usernameRef": TEXT,
    may "passwordRef": TEXT,
], open: true, also: &[&MARKS]);

object!(SPOT, "the spec of a Spot connector", [must "credential": Shape::Object(&SPOT_CREDENTIAL)], open: true,
    also: &[&COMMON, &MARKS]);
object!(SPOT_CREDENTIAL, "a Spot credential", [must "type": TYPE], open: true, also: &[&MARKS], typed: typed(&[
    ("PermanentTokenConfig", Shape::Object(&SPOT_TOKEN)),
], &[]));
object!(SPOT_TOKEN, "a Spot token", [
    may "spotAccountId": TEXT,
    may "spotAccountIdRef": TEXT,
    must "apiTokenRef": FILLED,
], open: true, also: &[&MARKS]);

object!(RANCHER, "the spec of a Rancher connector", [must "credential": Shape::Object(&RANCHER_CREDENTIAL)],
    open: true, also: &[&COMMON, &MARKS]);
object!(RANCHER_CREDENTIAL, "a Rancher credential", [must "type": TYPE], open: true, also: &[&MARKS],
    typed: typed(&[("ManualConfig", Shape::Object(&RANCHER_MANUAL))], &[]));
object!(RANCHER_MANUAL, "a manual Rancher credential", [
    must "rancherUrl": FILLED,
    may "auth": ANY,
], open: true, also: &[&MARKS]);

object!(TAS, "the spec of a TAS connector", [must "credential": Shape::Object(&TAS_CREDENTIAL)], open: true,
    also: &[&COMMON, &MARKS]);
object!(TAS_CREDENTIAL, "a TAS credential", [must "type": TYPE], open: true, also: &[&MARKS], typed: typed(&[
    ("ManualConfig", Shape::Object(&TAS_MANUAL)),
], &[]));
object!(TAS_MANUAL, "a manual TAS credential", [
    must "endpointUrl": FILLED,
    may "username": TEXT,
    may "usernameRef": TEXT,
    may "passwordRef": TEXT,
    may "refreshTokenRef": TEXT,
], open: true, also: &[&MARKS]);

object!(PDC, "the spec of a physical data center connector", [
    may "hosts": Shape::Or(&Shape::List(&Shape::Object(&HOST)), &TEXT),
], open: true, also: &[&COMMON, &MARKS]);
object!(HOST, "a host", [must "hostname": FILLED, may "hostAttributes": TAGS], open: true, also: &[&MARKS]);

object!(TERRAFORM_CLOUD, "the spec of a Terraform Cloud connector", [
    must "terraformCloudUrl": FILLED,
    may "credential": ANY,
    may "credentials": ANY,
], open: true, also: &[&COMMON, &MARKS]);

object!(COST, "the spec of a cost connector", [
    may "featuresEnabled": TEXTS,
    may "connectorRef": TEXT,
    may "crossAccountAccess": ANY,
], open: true, also: &[&COMMON, &MARKS]);

object!(JDBC, "the spec of a JDBC connector", [
    must "url": FILLED,
    may "auth": ANY,
    may "username": TEXT,
    may "usernameRef": TEXT,
    may "passwordRef": TEXT,
], open: true, also: &[&COMMON, &MARKS]);
