//! Connectors of secret managers.

use super::super::{ANY, BOOL, FILLED, MARKS, Object, Shape, TEMPLATE, TEXT, TYPE, object, typed};
use super::cloud::COMMON;
use crate::shape::Field;

// What all secret managers have.
object!(MANAGER, "the spec of a secret manager", [
    may "default": BOOL,
    may "isDefault": BOOL,
    may "readOnly": BOOL,
    may "isReadOnly": BOOL,
]);

object!(AWS_CREDENTIAL, "the credential of a secret manager", [must "type": TYPE], open: true, also: &[&MARKS],
    typed: typed(&[], &["ManualConfig", "AssumeIAMRole", "AssumeSTSRole", "OidcAuthentication"]));
object!(AWS_KMS, "the spec of an AWS KMS connector", [
    must "credential": Shape::Object(&AWS_CREDENTIAL),
    must "kmsArn": FILLED,
    must "region": FILLED,
], open: true, also: &[&MANAGER, &COMMON, &MARKS]);
object!(AWS_SECRETS, "the spec of an AWS Secrets Manager connector", [
    must "credential": Shape::Object(&AWS_CREDENTIAL),
    must "region": FILLED,
    may "secretNamePrefix": TEXT,
    may "usePutSecret": BOOL,
    may "forceDeleteWithoutRecovery": BOOL,
    may "recoveryWindowInDays": Shape::Int(7, 30),
], open: true, also: &[&MANAGER, &COMMON, &MARKS]);
object!(AZURE_KEY_VAULT, "the spec of an Azure Key Vault connector", [
    may "clientId": TEXT,
    may "secretKey": TEXT,
    may "tenantId": TEXT,
    must "vaultName": FILLED,
    may "subscription": TEXT,
    may "azureEnvironmentType": TEXT,
    may "vaultConfiguredManually": BOOL,
    may "useManagedIdentity": BOOL,
    may "azureManagedIdentityType": TEXT,
    may "managedClientId": TEXT,
    may "enablePurge": BOOL,
], open: true, also: &[&MANAGER, &COMMON, &MARKS]);
object!(GCP_KMS, "the spec of a GCP KMS connector", [
    must "projectId": FILLED,
    must "region": FILLED,
    must "keyRing": FILLED,
    must "keyName": FILLED,
    may "credentials": TEXT,
    may "oidcDetails": ANY,
], open: true, also: &[&MANAGER, &COMMON, &MARKS]);
object!(GCP_SECRETS, "the spec of a GCP Secret Manager connector", [
    may "credentialsRef": TEXT,
    may "assumeCredentialsOnDelegate": BOOL,
    may "oidcDetails": ANY,
], open: true, also: &[&MANAGER, &COMMON, &MARKS]);
object!(VAULT, "the spec of a Vault connector", [
    must "vaultUrl": FILLED,
    may "basePath": TEXT,
    may "namespace": TEXT,
    may "sinkPath": TEXT,
    may "accessType": TEXT,
    may "appRoleId": TEXT,
    may "secretId": TEXT,
    may "authToken": TEXT,
    may "renewAppRoleToken": BOOL,
    may "renewalIntervalMinutes": Shape::Int(0, i64::MAX),
    may "secretEngineManuallyConfigured": BOOL,
    may "secretEngineName": TEXT,
    may "secretEngineVersion": Shape::Int(1, 2),
    may "useVaultAgent": BOOL,
    may "useAwsIam": BOOL,
    may "useK8sAuth": BOOL,
    may "useJwtAuth": BOOL,
    may "vaultK8sAuthRole": TEXT,
    may "serviceAccountTokenPath": TEXT,
    may "k8sAuthEndpoint": TEXT,
    may "vaultAwsIamRole": TEXT,
    may "vaultAwsIamRoleRef": TEXT,
    may "awsRegion": TEXT,
    may "headerAwsIam": TEXT,
    may "xvaultAwsIamServerIdRef": TEXT,
    may "enableCache": BOOL,
], open: true, also: &[&MANAGER, &COMMON, &MARKS]);
object!(CUSTOM, "the spec of a custom secret manager", [
    must "template": TEMPLATE,
    may "connectorRef": TEXT,
    may "host": TEXT,
    may "workingDirectory": TEXT,
    may "onDelegate": BOOL,
    may "timeout": TEXT,
], open: true, also: &[&MANAGER, &COMMON, &MARKS]);
object!(LOCAL, "the spec of a local secret manager", [], open: true, also: &[&MANAGER, &COMMON, &MARKS]);
