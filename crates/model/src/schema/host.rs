//! Infrastructures that are hosts: data centers and virtual machines.

use super::{
    ANY, BOOL, FILLED, MARKS, NOTHING, Object, Shape, TAGS, TEXT, TEXT_OR_TEXTS, TYPE, object,
    typed,
};
use crate::shape::Field;

const TAGS_OR_TEXT: Shape = Shape::Or(&TAGS, &TEXT);

// Which of the fields must be there depends on where the hosts come from.
object!(PDC, "the spec of a data center", [
    may "credentialsRef": TEXT,
    may "connectorRef": TEXT,
    may "hosts": TEXT_OR_TEXTS,
    may "hostGroups": ANY,
    may "hostArrayPath": TEXT,
    may "hostAttributes": TAGS_OR_TEXT,
    may "hostFilter": Shape::Object(&HOST_FILTER),
    may "hostObjectArray": TEXT,
    may "delegateSelectors": TEXT_OR_TEXTS,
    may "dynamicallyProvisioned": BOOL,
    may "provisioner": TEXT,
], also: &[&MARKS]);
object!(HOST_FILTER, "a host filter", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("All", Shape::Object(&NOTHING)),
    ("HostNames", Shape::Object(&HOST_NAMES)),
    ("HostAttributes", Shape::Object(&HOST_ATTRIBUTES)),
], &[]));
object!(HOST_NAMES, "the spec of a host filter", [may "value": TEXT_OR_TEXTS], also: &[&MARKS]);
object!(HOST_ATTRIBUTES, "the spec of a host filter", [may "value": TAGS_OR_TEXT], also: &[&MARKS]);

object!(AWS, "the spec of an infrastructure of AWS instances", [
    must "connectorRef": TEXT,
    must "credentialsRef": TEXT,
    must "region": TEXT,
    must "hostConnectionType": Shape::OneOf(&["PublicIP", "PrivateIP"]),
    may "awsInstanceFilter": Shape::Object(&AWS_FILTER),
    may "asgName": TEXT,
    may "targetedHosts": TEXT,
    may "provisioner": TEXT,
], also: &[&MARKS]);
object!(AWS_FILTER, "`awsInstanceFilter`", [
    may "tags": TAGS_OR_TEXT,
    may "vpcs": TEXT_OR_TEXTS,
], also: &[&MARKS]);

object!(AZURE, "the spec of an infrastructure of Azure machines", [
    must "connectorRef": TEXT,
    must "credentialsRef": TEXT,
    must "subscriptionId": TEXT,
    must "resourceGroup": TEXT,
    must "hostConnectionType": Shape::OneOf(&["Hostname", "PublicIP", "PrivateIP"]),
    may "tags": TAGS_OR_TEXT,
    may "targetedHosts": TEXT,
    may "provisioner": TEXT,
], also: &[&MARKS]);

object!(GCP, "the spec of an infrastructure of GCP machines", [
    must "connectorRef": FILLED,
    must "project": TEXT,
    must "hostConnectionType": Shape::OneOf(&["PublicIP", "PrivateIP"]),
    must "sshMode": Shape::OneOf(&["OSLogin"]),
    may "gcpInstanceFilter": Shape::Object(&GCP_FILTER),
    may "zone": TEXT,
], also: &[&MARKS]);
object!(GCP_FILTER, "`gcpInstanceFilter`", [may "labels": TAGS_OR_TEXT], also: &[&MARKS]);
