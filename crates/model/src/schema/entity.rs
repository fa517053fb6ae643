//! Organizations, projects, variables and files of the store, and which root key has which shape.

use super::{
    ANY, BOOL, FILLED, IDENTIFIER, MARKS, NAME, Object, Shape, TAGS, TEXT, TEXT_OR_TEXTS, TEXTS,
    connector, environment, freeze, infrastructure, input_set, object, pipeline, secret, service,
    template, trigger,
};
use crate::entity::Kind;
use crate::shape::Field;

/// The shape of the value under the root key.
pub(crate) fn root(kind: Kind) -> Shape {
    Shape::Object(match kind {
        Kind::Pipeline => &pipeline::PIPELINE,
        Kind::Service => &service::SERVICE,
        Kind::Environment => &environment::ENVIRONMENT,
        Kind::Infrastructure => &infrastructure::INFRASTRUCTURE,
        Kind::Connector => &connector::CONNECTOR,
        Kind::Secret => &secret::SECRET,
        Kind::Organization => &ORGANIZATION,
        Kind::Project => &PROJECT,
        Kind::Template => &template::TEMPLATE,
        Kind::InputSet => &input_set::INPUT_SET,
        Kind::OverlayInputSet => &input_set::OVERLAY,
        Kind::Trigger => &trigger::TRIGGER,
        Kind::Freeze => &freeze::FREEZE,
        Kind::EnvironmentGroup => &environment::GROUP,
        Kind::Overrides => &environment::OVERRIDES,
        Kind::ServiceOverrides => &environment::SERVICE_OVERRIDES,
        Kind::Variable => &VARIABLE,
        Kind::File => &FILE,
        Kind::UserGroup => &USER_GROUP,
    })
}

object!(ORGANIZATION, "an organization", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
], also: &[&MARKS]);
object!(PROJECT, "a project", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "orgIdentifier": TEXT,
    may "description": TEXT,
    may "tags": TAGS,
    may "color": TEXT,
    may "modules": ANY,
], also: &[&MARKS]);

object!(VARIABLE, "a variable", [
    must "identifier": IDENTIFIER,
    may "name": NAME,
    may "description": TEXT,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    must "type": Shape::OneOf(&["String", "Secret"]),
    must "spec": Shape::Object(&VARIABLE_SPEC),
], open: true, also: &[&MARKS]);
object!(VARIABLE_SPEC, "the spec of a variable", [
    must "valueType": Shape::OneOf(&["FIXED", "FIXED_SET", "REGEX"]),
    may "fixedValue": TEXT,
    may "defaultValue": TEXT,
    may "allowedValues": TEXT_OR_TEXTS,
    may "regex": TEXT,
], open: true, also: &[&MARKS]);

// Harness has user groups in its API only; the names are those of its requests.
object!(USER_GROUP, "a user group", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    may "users": TEXTS,
    may "notificationConfigs": Shape::List(&Shape::Object(&NOTIFICATION_CONFIG)),
], also: &[&MARKS]);
object!(NOTIFICATION_CONFIG, "a notification setting of a user group", [
    must "type": Shape::OneOf(&["EMAIL", "SLACK", "PAGERDUTY", "MSTEAMS"]),
    may "groupEmail": TEXT,
    may "sendEmailToAllUsers": BOOL,
    may "slackWebhookUrl": TEXT,
    may "pagerDutyKey": TEXT,
    may "microsoftTeamsWebhookUrl": TEXT,
], also: &[&MARKS]);

// Harness has files and folders in its API only; the names are those of its requests.
object!(FILE, "a file of the store", [
    must "identifier": IDENTIFIER,
    must "name": FILLED,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    must "type": Shape::OneOf(&["FILE", "FOLDER"]),
    may "parentIdentifier": TEXT,
    may "path": TEXT,
    may "fileUsage": Shape::OneOf(&["MANIFEST_FILE", "CONFIG", "SCRIPT"]),
    may "mimeType": TEXT,
    may "content": TEXT,
], open: true, also: &[&MARKS]);
