//! `freeze`. Harness has no schema for freeze windows: the fields are those of its documentation.

use super::{
    ANY, BOOL, DURATION, FILLED, IDENTIFIER, MARKS, NAME, Object, Shape, TAGS, TEXT, TEXT_OR_TEXTS,
    TYPE, object, pipeline, typed,
};
use crate::shape::Field;

object!(FREEZE, "a freeze", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    may "status": Shape::OneOf(&["Enabled", "Disabled"]),
    may "entityConfigs": Shape::List(&Shape::Object(&RULE)),
    must "windows": Shape::List(&Shape::Object(&WINDOW)),
    may "notificationRules": Shape::List(&Shape::Object(&NOTIFICATION_RULE)),
], also: &[&MARKS]);

object!(RULE, "an item of `entityConfigs`", [
    must "name": FILLED,
    must "entities": Shape::List(&Shape::Object(&FROZEN)),
], also: &[&MARKS]);
object!(FROZEN, "what is frozen", [
    must "type": Shape::OneOf(&["Org", "Project", "Service", "Environment", "EnvType", "Pipeline"]),
    must "filterType": Shape::OneOf(&["All", "Equals", "NotEquals"]),
    may "entityRefs": TEXT_OR_TEXTS,
    may "expression": TEXT,
], also: &[&MARKS]);

// Times look like `2023-05-03 04:16 PM` and are in the window's zone.
object!(WINDOW, "a window", [
    must "timeZone": FILLED,
    must "startTime": FILLED,
    may "duration": DURATION,
    may "endTime": TEXT,
    may "recurrence": Shape::Object(&RECURRENCE),
], one_of: &["duration", "endTime"], also: &[&MARKS]);
object!(RECURRENCE, "`recurrence`", [
    must "type": TYPE,
], also: &[&MARKS], typed: typed(&[
    ("Daily", UNTIL),
    ("Weekly", UNTIL),
    ("Monthly", UNTIL),
    ("Yearly", UNTIL),
], &[]));
const UNTIL: Shape = Shape::Object(&RECURRENCE_SPEC);
object!(RECURRENCE_SPEC, "the spec of `recurrence`", [
    may "until": TEXT,
    may "value": Shape::Int(1, 11),
], also: &[&MARKS]);

object!(NOTIFICATION_RULE, "a notification rule", [
    may "name": TEXT,
    may "identifier": TEXT,
    may "enabled": BOOL,
    may "events": Shape::List(&Shape::Object(&EVENT)),
    may "notificationMethod": Shape::Object(&pipeline::NOTIFICATION_METHOD),
    may "customizedMessage": TEXT,
], open: true, also: &[&MARKS]);
object!(EVENT, "a freeze event", [
    must "type": Shape::OneOf(&[
        "FreezeWindowEnabled", "DeploymentRejectedDueToFreeze", "TriggerInvocationRejectedDueToFreeze", "OnEnableFreezeWindow",
    ]),
    may "spec": ANY,
], open: true, also: &[&MARKS]);
