//! The spec of `Aws` connectors.

use super::super::{
    BOOL, FILLED, MARKS, NOTHING, Object, Shape, TEXT, TEXT_OR_TEXTS, TEXTS, TYPE, object, typed,
};
use crate::shape::Field;

object!(AWS, "the spec of an AWS connector", [
    must "credential": Shape::Object(&CREDENTIAL),
    may "awsSdkClientBackOffStrategyOverride": Shape::Object(&BACK_OFF),
    may "delegateSelectors": TEXT_OR_TEXTS,
    may "executeOnDelegate": BOOL,
    may "ignoreTestConnection": BOOL,
    may "proxy": BOOL,
    may "region": TEXT,
], also: &[&MARKS]);

object!(CREDENTIAL, "an AWS credential", [
    must "type": TYPE,
    may "crossAccountAccess": Shape::Object(&CROSS_ACCOUNT),
    may "region": TEXT,
    may "testRegion": TEXT,
], also: &[&MARKS], typed: typed(&[
    ("InheritFromDelegate", Shape::Object(&NOTHING)),
    ("ManualConfig", Shape::Object(&MANUAL)),
    ("Irsa", Shape::Object(&NOTHING)),
    ("OidcAuthentication", Shape::Object(&OIDC)),
], &[]));
object!(MANUAL, "a manual AWS credential", [
    may "accessKey": TEXT,
    may "accessKeyRef": TEXT,
    may "secretKeyRef": FILLED,
    may "sessionTokenRef": TEXT,
], one_of: &["accessKey", "accessKeyRef"], also: &[&MARKS]);
object!(OIDC, "an OIDC credential", [
    must "iamRoleArn": FILLED,
    may "sessionTags": TEXTS,
    may "sessionTagKeys": TEXTS,
], also: &[&MARKS]);
object!(CROSS_ACCOUNT, "`crossAccountAccess`", [
    must "crossAccountRoleArn": FILLED,
    may "externalId": TEXT,
], also: &[&MARKS]);

object!(BACK_OFF, "a back-off strategy", [must "type": TYPE], also: &[&MARKS], typed: typed(&[
    ("FixedDelayBackoffStrategy", Shape::Object(&DELAYS)),
    ("EqualJitterBackoffStrategy", Shape::Object(&DELAYS)),
    ("FullJitterBackoffStrategy", Shape::Object(&DELAYS)),
], &[]));
// All in milliseconds.
object!(DELAYS, "the spec of a back-off strategy", [
    may "fixedBackoff": Shape::Int(0, i64::MAX),
    may "baseDelay": Shape::Int(0, i64::MAX),
    may "maxBackoffTime": Shape::Int(0, i64::MAX),
    may "retryCount": Shape::Int(0, i64::MAX),
], also: &[&MARKS]);
