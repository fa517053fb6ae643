//! Waiting, calling, telling: what any stage may do.

use super::common::OUTPUT_VARIABLES;
use super::container::RESOURCES;
use crate::schema::{BOOL, DURATION, FILLED, TEXT, TEXTS, TYPE, VARIABLES};
use crate::shape::{Field, Group, Object, Shape, Typed};

bare!(BARRIER, "`Barrier`", [must "barrierRef": TEXT]);
step!(EMAIL, "`Email`", [
    must "subject": TEXT,
    may "body": TEXT,
    may "cc": TEXT,
    may "toUserGroups": TEXTS,
    may "ccUserGroups": TEXTS,
    may "to": TEXT,
    may "fireAndForget": BOOL,
    may "inputVariables": VARIABLES,
], groups: &[Group::AtLeastOne(&["to", "toUserGroups"])]);
bare!(EVENT_LISTENER, "`EventListener`", [
    must "webhookIdentifier": TEXT,
    must "successCriteria": TEXT,
    may "inputVariables": VARIABLES,
    may "outputVariables": OUTPUT_VARIABLES,
    may "failureCriteria": TEXT,
]);
bare!(FILES_UPLOAD, "`FilesUpload`", [may "inputVariables": VARIABLES, may "outputVariables": OUTPUT_VARIABLES]);
bare!(POLICY, "`Policy`", [
    must "policySets": TEXTS,
    may "type": TYPE,
], typed: Some(Typed { by: "type", field: "policySpec", shapes: &[
    ("Custom", Shape::Object(&CUSTOM_POLICY)),
], names: &[] }));
bare!(QUEUE, "`Queue`", [must "key": TEXT, must "scope": Shape::OneOf(&["Pipeline", "Stage"])]);
bare!(RO_NOTIFY, "`RONotify`", []);
bare!(SLACK_NOTIFY, "`SlackNotify`", [
    may "message": TEXT,
    may "channel": TEXT,
    may "webhookUrl": TEXT,
    may "email": TEXT,
    may "messageContent": TEXT,
    may "token": TEXT,
    may "resources": Shape::Object(&RESOURCES),
    may "botUsername": TEXT,
    may "botIconUrl": TEXT,
    may "threadTs": TEXT,
    may "replyBroadcast": BOOL,
    may "blocks": TEXT,
]);

part!(CUSTOM_POLICY, "`policySpec`", [must "payload": TEXT, may "type": TEXT]);

step!(HTTP, "`Http`", [
    must "url": FILLED,
    must "method": FILLED,
    may "headers": Shape::List(&Shape::Object(&HEADER)),
    may "inputVariables": VARIABLES,
    may "outputVariables": OUTPUT_VARIABLES,
    may "requestBody": TEXT,
    may "assertion": TEXT,
    may "certificate": TEXT,
    may "certificateKey": TEXT,
]);
part!(HEADER, "a header", [may "key": TEXT, may "value": TEXT]);

step!(WAIT, "`Wait`", [must "duration": DURATION]);
