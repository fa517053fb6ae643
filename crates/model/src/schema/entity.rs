//! The remaining entities, and which root key has which shape.

use super::manifest::{CONFIG_FILES, MANIFESTS};
use super::{
    ANY, FILLED, IDENTIFIER, MARKS, NAME, Object, Shape, TAGS, TEXT, TYPE, VARIABLES, connector,
    infrastructure, object, pipeline, service, typed,
};
use crate::entity::Kind;
use crate::shape::Field;

/// The shape of the value under the root key; `None` for kinds that this version does not take.
pub(crate) fn root(kind: Kind) -> Option<Shape> {
    let object = match kind {
        Kind::Pipeline => &pipeline::PIPELINE,
        Kind::Service => &service::SERVICE,
        Kind::Environment => &ENVIRONMENT,
        Kind::Infrastructure => &infrastructure::INFRASTRUCTURE,
        Kind::Connector => &connector::CONNECTOR,
        Kind::Secret => &SECRET,
        Kind::Organization => &ORGANIZATION,
        Kind::Project => &PROJECT,
        _ => return None,
    };
    Some(Shape::Object(object))
}

object!(ENVIRONMENT, "an environment", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    may "accountIdentifier": TEXT,
    may "accountId": TEXT,
    must "type": Shape::OneOf(&["Production", "PreProduction"]),
    may "variables": VARIABLES,
    may "overrides": Shape::Object(&OVERRIDES),
    may "color": TEXT,
    may "version": TEXT,
    may "yaml": TEXT,
], also: &[&MARKS]);
object!(OVERRIDES, "an environment's `overrides`", [
    may "manifests": MANIFESTS,
    may "configFiles": CONFIG_FILES,
    may "applicationSettings": ANY,
    may "connectionStrings": ANY,
], also: &[&MARKS]);

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
