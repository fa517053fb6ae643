//! The remaining entities, and which root key has which shape.

use super::{
    ANY, FILLED, IDENTIFIER, MARKS, NAME, Object, Shape, TAGS, TEXT, TYPE, connector, environment,
    infrastructure, input_set, object, pipeline, service, template, typed,
};
use crate::entity::Kind;
use crate::shape::Field;

/// The shape of the value under the root key; `None` for kinds that this version does not take.
pub(crate) fn root(kind: Kind) -> Option<Shape> {
    let object = match kind {
        Kind::Pipeline => &pipeline::PIPELINE,
        Kind::Service => &service::SERVICE,
        Kind::Environment => &environment::ENVIRONMENT,
        Kind::Infrastructure => &infrastructure::INFRASTRUCTURE,
        Kind::Connector => &connector::CONNECTOR,
        Kind::Secret => &SECRET,
        Kind::Organization => &ORGANIZATION,
        Kind::Project => &PROJECT,
        Kind::Template => &template::TEMPLATE,
        Kind::InputSet => &input_set::INPUT_SET,
        Kind::OverlayInputSet => &input_set::OVERLAY,
        Kind::EnvironmentGroup => &environment::GROUP,
        Kind::Overrides => &environment::OVERRIDES,
        Kind::ServiceOverrides => &environment::SERVICE_OVERRIDES,
        _ => return None,
    };
    Some(Shape::Object(object))
}

object!(SECRET, "a secret", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    must "type": TYPE,
], also: &[&MARKS], typed: typed(&[
    ("SecretText", Shape::Object(&SECRET_TEXT)),
], &["SecretFile", "SSHKey", "WinRmCredentials"]));
object!(SECRET_TEXT, "the spec of a secret text", [
    may "secretManagerIdentifier": FILLED,
    may "valueType": Shape::OneOf(&["Inline", "Reference", "CustomSecretManagerValues"]),
    may "value": TEXT,
    may "additionalMetadata": ANY,
], also: &[&MARKS]);

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
