//! Connectors of monitoring systems.

use super::super::{ANY, FILLED, MARKS, Object, Shape, TEXT, object};
use super::cloud::COMMON;
use crate::shape::Field;

/// A list of headers or parameters.
const PAIRS: Shape = Shape::List(&Shape::Object(&PAIR));
object!(PAIR, "a header or parameter", [
    must "key": FILLED,
    may "value": TEXT,
    may "encryptedValueRef": TEXT,
    may "valueEncrypted": TEXT,
], open: true, also: &[&MARKS]);

object!(APP_DYNAMICS, "the spec of an AppDynamics connector", [
    must "controllerUrl": FILLED,
    may "accountname": TEXT,
    may "accountName": TEXT,
    may "authType": TEXT,
    may "username": TEXT,
    may "passwordRef": TEXT,
    may "clientId": TEXT,
    may "clientSecretRef": TEXT,
], open: true, also: &[&COMMON, &MARKS]);
object!(NEW_RELIC, "the spec of a New Relic connector", [
    must "url": FILLED,
    may "newRelicAccountId": TEXT,
    must "apiKeyRef": FILLED,
], open: true, also: &[&COMMON, &MARKS]);
object!(DATADOG, "the spec of a Datadog connector", [
    must "url": FILLED,
    must "applicationKeyRef": FILLED,
    must "apiKeyRef": FILLED,
], open: true, also: &[&COMMON, &MARKS]);
object!(DYNATRACE, "the spec of a Dynatrace connector", [
    must "url": FILLED,
    must "apiTokenRef": FILLED,
], open: true, also: &[&COMMON, &MARKS]);
object!(PROMETHEUS, "the spec of a Prometheus connector", [
    must "url": FILLED,
    may "username": TEXT,
    may "passwordRef": TEXT,
    may "headers": PAIRS,
], open: true, also: &[&COMMON, &MARKS]);
object!(SPLUNK, "the spec of a Splunk connector", [
    must "splunkUrl": FILLED,
    may "accountId": TEXT,
    may "authType": TEXT,
    may "username": TEXT,
    may "passwordRef": TEXT,
    may "tokenRef": TEXT,
], open: true, also: &[&COMMON, &MARKS]);
object!(ELASTIC_SEARCH, "the spec of an Elasticsearch connector", [
    must "url": FILLED,
    may "authType": TEXT,
    may "username": TEXT,
    may "passwordRef": TEXT,
    may "apiKeyId": TEXT,
    may "apiKeyRef": TEXT,
], open: true, also: &[&COMMON, &MARKS]);
object!(SUMO_LOGIC, "the spec of a Sumo Logic connector", [
    must "url": FILLED,
    must "accessIdRef": FILLED,
    must "accessKeyRef": FILLED,
], open: true, also: &[&COMMON, &MARKS]);
object!(CUSTOM_HEALTH, "the spec of a custom health connector", [
    must "baseURL": FILLED,
    may "method": Shape::OneOf(&["GET", "POST"]),
    may "headers": PAIRS,
    may "params": PAIRS,
    may "validationBody": ANY,
    may "validationPath": TEXT,
], open: true, also: &[&COMMON, &MARKS]);
object!(PAGER_DUTY, "the spec of a PagerDuty connector", [must "apiTokenRef": FILLED], open: true,
    also: &[&COMMON, &MARKS]);
