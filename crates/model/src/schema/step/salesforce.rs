//! Salesforce.

use super::common::INT;
use super::container::CONTAINED;
use crate::schema::{TEXT, TEXTS};
use crate::shape::{Field, Object, Shape};

step!(APEX_TEST, "`SalesforceApexTest`" + CONTAINED, [
    may "testLevel": TEXT,
    may "testType": TEXT,
    may "testValues": TEXT,
    may "commandOptions": TEXTS,
]);
step!(CREATE_SCRATCH_ORG, "`SalesforceCreateScratchOrg`" + CONTAINED, [
    may "durationDays": INT,
    may "username": TEXT,
    may "scratchOrgName": TEXT,
    may "definitionFilePath": TEXT,
    may "commandOptions": TEXTS,
]);
step!(DELETE_SCRATCH_ORG, "`SalesforceDeleteScratchOrg`" + CONTAINED, [
    may "scratchOrgAuthUrl": TEXT,
    may "commandOptions": TEXTS,
]);
step!(COMMAND, "`SalesforceDeploy` or `SalesforceRollback`" + CONTAINED, [may "commandOptions": TEXTS]);
step!(DOWNLOAD_DEPLOYABLES, "`SalesforceDownloadDeployables`" + CONTAINED, [
    may "source1Type": TEXT,
    may "source1Ref": TEXT,
    may "source2Type": TEXT,
    may "source2Ref": TEXT,
    may "metadataTypes": TEXTS,
    may "commandOptions": TEXTS,
]);
step!(DOWNLOAD_ORG, "`SalesforceDownloadOrg`" + CONTAINED, [
    may "sourceRef": TEXT,
    may "downloadPath": TEXT,
    may "metadataTypes": TEXTS,
    may "commandOptions": TEXTS,
]);
step!(EVALUATE_DIFF, "`SalesforceEvaluateDiff`" + CONTAINED, [may "commandOptions": TEXTS, may "diffPath": TEXT]);
step!(QUICK_DEPLOY, "`SalesforceQuickDeploy`" + CONTAINED, [
    may "validatedDeployRequestId": TEXT,
    may "commandOptions": TEXTS,
]);
step!(SOURCE_BACKUP, "`SalesforceSourceBackup`" + CONTAINED, [
    may "gitConnectorRef": TEXT,
    may "repoName": TEXT,
    may "branch": TEXT,
    may "branchAction": Shape::OneOf(&["raisePR", "createNewBranch", "overwriteExistingBranch"]),
    may "targetBranch": TEXT,
    may "prTitle": TEXT,
    may "prDescription": TEXT,
    may "commandOptions": TEXTS,
]);
step!(VALIDATE, "`SalesforceValidate`" + CONTAINED, [
    may "testLevel": TEXT,
    may "tests": TEXT,
    may "commandOptions": TEXTS,
]);
