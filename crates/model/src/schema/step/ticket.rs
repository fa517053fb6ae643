//! Jira, ServiceNow, Jenkins and Bamboo.

use super::common::NAMED_VALUE;
use crate::schema::{BOOL, DURATION, TEXT, TYPE, typed};
use crate::shape::{Field, Object, Shape};

step!(BAMBOO_BUILD, "`BambooBuild`", [
    must "connectorRef": TEXT,
    must "planName": TEXT,
    may "planParameter": Shape::List(&Shape::Object(&JOB_PARAMETER)),
]);
step!(JENKINS_BUILD, "`JenkinsBuild`", [
    must "connectorRef": TEXT,
    must "jobName": TEXT,
    may "consoleLogPollFrequency": DURATION,
    may "jobParameter": Shape::List(&Shape::Object(&JOB_PARAMETER)),
    may "unstableStatusAsSuccess": BOOL,
    may "useConnectorUrlForJobExecution": BOOL,
]);
step!(JIRA_CREATE, "`JiraCreate`", [
    must "connectorRef": TEXT,
    must "issueType": TEXT,
    must "projectKey": TEXT,
    may "fields": Shape::List(&Shape::Object(&JIRA_FIELD)),
]);
step!(JIRA_UPDATE, "`JiraUpdate`", [
    must "connectorRef": TEXT,
    must "issueKey": TEXT,
    may "fields": Shape::List(&Shape::Object(&JIRA_FIELD)),
    may "transitionTo": Shape::Object(&TRANSITION_TO),
    may "issueType": TEXT,
    may "projectKey": TEXT,
]);
step!(SERVICE_NOW_CREATE, "`ServiceNowCreate`", [
    must "connectorRef": TEXT,
    must "ticketType": TEXT,
    may "fields": Shape::List(&Shape::Object(&NAMED_VALUE)),
    may "templateName": TEXT,
    may "useServiceNowTemplate": BOOL,
    may "createType": Shape::OneOf(&["Normal", "Form", "Standard"]),
]);
step!(SERVICE_NOW_IMPORT_SET, "`ServiceNowImportSet`", [
    must "connectorRef": TEXT,
    must "importData": Shape::Object(&IMPORT),
    must "stagingTableName": TEXT,
]);
step!(SERVICE_NOW_UPDATE, "`ServiceNowUpdate`", [
    must "connectorRef": TEXT,
    must "ticketType": TEXT,
    must "useServiceNowTemplate": BOOL,
    may "fields": Shape::List(&Shape::Object(&NAMED_VALUE)),
    may "templateName": TEXT,
    may "ticketNumber": TEXT,
    may "updateMultiple": Shape::Object(&UPDATE_MULTIPLE),
], one_of: &["updateMultiple", "ticketNumber"]);

part!(JOB_PARAMETER, "a parameter", [
    must "value": TEXT,
    may "name": TEXT,
    may "type": Shape::OneOf(&["String", "Number"]),
]);
part!(JIRA_FIELD, "an item of `fields`", [must "value": TEXT, may "name": TEXT]);
part!(TRANSITION_TO, "`transitionTo`", [must "status": TEXT, may "transitionName": TEXT]);
part!(IMPORT, "`importData`", [must "type": TYPE], typed: typed(&[
    ("Json", Shape::Object(&JSON_IMPORT)),
    ("KeyValues", Shape::Object(&KEY_VALUES_IMPORT)),
], &[]));
part!(JSON_IMPORT, "the `spec` of type `Json`", [must "jsonBody": TEXT]);
part!(KEY_VALUES_IMPORT, "the `spec` of type `KeyValues`", [
    must "fields": Shape::List(&Shape::Object(&NAMED_VALUE)),
]);
part!(UPDATE_MULTIPLE, "`updateMultiple`", [
    may "description": TEXT,
    must "type": TYPE,
], typed: typed(&[
    ("CHANGE_TASK", Shape::Object(&UPDATE_MULTIPLE_CHANGE_TASK)),
], &[]));
part!(UPDATE_MULTIPLE_CHANGE_TASK, "the `spec` of type `CHANGE_TASK`", [
    must "changeRequestNumber": TEXT,
    may "changeTaskType": TEXT,
]);
