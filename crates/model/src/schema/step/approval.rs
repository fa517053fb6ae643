//! Approvals.

use super::common::{INT, OUTPUT_VARIABLES, SCRIPT_SOURCE};
use crate::schema::{BOOL, DURATION, FILLED, TEXT, TEXTS, TYPE, VARIABLES, typed};
use crate::shape::{Field, Group, Object, Shape};

step!(CUSTOM_APPROVAL, "`CustomApproval`", [
    must "approvalCriteria": Shape::Object(&CRITERIA),
    must "retryInterval": DURATION,
    must "scriptTimeout": DURATION,
    must "shell": Shape::OneOf(&["Bash", "PowerShell"]),
    must "source": Shape::Object(&SCRIPT_SOURCE),
    may "environmentVariables": VARIABLES,
    may "outputVariables": OUTPUT_VARIABLES,
    may "rejectionCriteria": Shape::Object(&CRITERIA),
]);
bare!(HARNESS_APPROVAL, "`HarnessApproval`", [
    must "approvers": Shape::Object(&APPROVERS),
    must "includePipelineExecutionHistory": BOOL,
    may "callbackId": TEXT,
    may "isAutoRejectEnabled": BOOL,
    may "approvalMessage": TEXT,
    may "approverInputs": Shape::List(&Shape::Object(&APPROVER_INPUT)),
    may "autoApproval": Shape::Object(&AUTO_APPROVAL),
]);
step!(JIRA_APPROVAL, "`JiraApproval`", [
    must "approvalCriteria": Shape::Object(&CRITERIA),
    must "connectorRef": TEXT,
    must "issueKey": TEXT,
    may "issueType": TEXT,
    may "projectKey": TEXT,
    may "rejectionCriteria": Shape::Object(&CRITERIA),
    may "retryInterval": DURATION,
]);
step!(SERVICE_NOW_APPROVAL, "`ServiceNowApproval`", [
    must "approvalCriteria": Shape::Object(&CRITERIA),
    must "connectorRef": TEXT,
    must "ticketNumber": TEXT,
    must "ticketType": TEXT,
    may "changeWindow": Shape::Object(&CHANGE_WINDOW),
    may "rejectionCriteria": Shape::Object(&CRITERIA),
    may "retryInterval": DURATION,
]);

part!(CRITERIA, "criteria", [must "type": TYPE], typed: typed(&[
    ("Jexl", Shape::Object(&JEXL_CRITERIA)),
    ("KeyValues", Shape::Object(&KEY_VALUES_CRITERIA)),
], &[]));
part!(JEXL_CRITERIA, "the `spec` of type `Jexl`", [must "expression": TEXT]);
part!(KEY_VALUES_CRITERIA, "the `spec` of type `KeyValues`", [
    must "conditions": Shape::List(&Shape::Object(&CONDITION)),
    may "matchAnyCondition": BOOL,
]);
part!(CONDITION, "an item of `conditions`", [
    must "key": FILLED,
    must "operator": Shape::OneOf(&["equals", "not equals", "in", "not in"]),
    must "value": FILLED,
]);
part!(APPROVER_INPUT, "an item of `approverInputs`", [
    may "description": TEXT,
    may "defaultValue": TEXT,
    may "name": TEXT,
    may "required": BOOL,
    may "allowedValues": TEXT,
    may "selectOneFrom": TEXT,
    may "selectManyFrom": TEXT,
    may "regex": TEXT,
], groups: &[Group::AtMostOne(&["allowedValues", "selectOneFrom", "selectManyFrom", "regex"])]);
part!(APPROVERS, "`approvers`", [
    must "disallowPipelineExecutor": BOOL,
    must "minimumCount": INT,
    may "userGroups": TEXTS,
    may "serviceAccounts": TEXTS,
    may "disallowedUserEmails": TEXTS,
], groups: &[Group::AtLeastOne(&["userGroups", "serviceAccounts"])]);
part!(AUTO_APPROVAL, "`autoApproval`", [
    must "action": Shape::OneOf(&["APPROVE"]),
    must "scheduledDeadline": Shape::Object(&SCHEDULED_DEADLINE),
    may "comments": TEXT,
]);
part!(SCHEDULED_DEADLINE, "`scheduledDeadline`", [must "time": TEXT, must "timeZone": TEXT]);
part!(CHANGE_WINDOW, "`changeWindow`", [must "endField": TEXT, must "startField": TEXT]);
