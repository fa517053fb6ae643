//! Azure: web apps, functions, container apps, ARM and blueprints.

use super::common::{INT, NUMBER, STORED};
use super::container::CONTAINED;
use crate::schema::{BOOL, FILLED, TEXT, TEXTS, TYPE, typed};
use crate::shape::{Field, Object, Shape};

step!(ARM_ROLLBACK, "`AzureARMRollback`", [must "provisionerIdentifier": TEXT]);
step!(CONTAINER_APPS_DEPLOY, "`AzureContainerAppsDeploy`" + CONTAINED, [may "forceTrafficToLatest": BOOL]);
step!(CONTAINER_APPS_TRAFFIC_SHIFT, "`AzureContainerAppsTrafficShift`" + CONTAINED, [
    may "revisionTrafficDetails": Shape::List(&Shape::Object(&REVISION)),
]);
step!(CREATE_ARM_RESOURCE, "`AzureCreateARMResource`", [
    must "configuration": Shape::Object(&ARM_CONFIGURATION),
    must "provisionerIdentifier": TEXT,
]);
step!(CREATE_BP_RESOURCE, "`AzureCreateBPResource`", [must "configuration": Shape::Object(&BLUEPRINT_CONFIGURATION)]);
step!(FUNCTION_DEPLOY, "`AzureFunctionDeploy`" + CONTAINED, [
    must "deploymentSlot": TEXT,
    must "functionApp": TEXT,
    may "deployCommandOptions": TEXTS,
]);
step!(SLOT_DEPLOYMENT, "`AzureSlotDeployment`", [
    must "deploymentSlot": FILLED,
    must "webApp": FILLED,
    may "clean": BOOL,
    may "skipSteadyStateCheck": BOOL,
]);
step!(SWAP_SLOT, "`AzureSwapSlot`", [must "targetSlot": FILLED]);
step!(TRAFFIC_SHIFT, "`AzureTrafficShift`", [must "traffic": NUMBER]);
step!(WEB_APP_ROLLBACK, "`AzureWebAppRollback`", [may "skipSteadyStateCheck": BOOL]);

part!(REVISION, "an item of `revisionTrafficDetails`", [
    must "revisionName": TEXT,
    may "trafficWeight": INT,
    may "label": TEXT,
]);
part!(ARM_CONFIGURATION, "`configuration`", [
    must "connectorRef": TEXT,
    must "scope": Shape::Object(&ARM_SCOPE),
    must "template": Shape::Object(&STORED),
    may "parameters": Shape::Object(&STORED),
]);
part!(ARM_SCOPE, "`scope`", [must "type": TYPE], typed: typed(&[
    ("ManagementGroup", Shape::Object(&AZURE_MANAGEMENT)),
    ("ResourceGroup", Shape::Object(&AZURE_RESOURCE_GROUP)),
    ("Subscription", Shape::Object(&AZURE_SUBSCRIPTION)),
    ("Tenant", Shape::Object(&AZURE_TENANT)),
], &[]));
part!(AZURE_MANAGEMENT, "the `spec` of type `ManagementGroup`", [
    must "location": TEXT,
    must "managementGroupId": TEXT,
]);
part!(AZURE_RESOURCE_GROUP, "the `spec` of type `ResourceGroup`", [
    must "resourceGroup": TEXT,
    must "subscription": TEXT,
    may "mode": Shape::OneOf(&["Incremental", "Complete"]),
]);
part!(AZURE_SUBSCRIPTION, "the `spec` of type `Subscription`", [must "location": TEXT, must "subscription": TEXT]);
part!(AZURE_TENANT, "the `spec` of type `Tenant`", [must "location": TEXT]);
part!(BLUEPRINT_CONFIGURATION, "`configuration`", [
    must "connectorRef": TEXT,
    must "scope": Shape::OneOf(&["Subscription", "ManagementGroup"]),
    must "template": Shape::Object(&STORED),
    may "assignmentName": TEXT,
]);
