//! The fields of Harness's entities, as data: one table per thing that can stand in YAML.
//!
//! Names and rules are those of Harness's pipeline schema (v0); where Harness has no schema (connectors,
//! environments, secrets), those of its documentation. Fields that Harness writes by itself when it
//! saves (`metadata`, `__uuid`, `icon`, …) are accepted and mean nothing.

use crate::shape::{Field, Object, Rule, Shape, Typed};

mod artifact;
mod connector;
mod entity;
mod environment;
mod flow;
mod freeze;
mod host;
mod infrastructure;
mod input_set;
mod manifest;
mod pipeline;
mod secret;
mod service;
mod stage;
mod step;
mod template;
mod trigger;

pub(crate) use entity::root;
pub use flow::{ERRORS, MOST_RETRIES};
pub(crate) use step::rules;
pub use step::{deployment_types, is_known_step, step_spec};
pub use template::overridable;

/// JSON Schema (draft 7) of the YAML of one kind, or of any, for editors.
///
/// Looser than [`crate::entity::parse`] where JSON Schema cannot say the rule: whether expressions parse,
/// whether identifiers are unique, how long a timeout may be.
pub fn json_schema(kind: Option<crate::entity::Kind>) -> serde_json::Value {
    let kinds = crate::entity::Kind::ALL.into_iter();
    let roots: Vec<_> = kinds
        .filter(|of| kind.is_none_or(|kind| kind == *of))
        .map(|kind| (kind.key(), root(kind)))
        .collect();
    crate::shape::json_schema::document(&roots)
}

/// Declares an [`Object`].
macro_rules! object {
    ($name:ident, $title:expr, [$($must:ident $field:literal : $shape:expr),* $(,)?]
        $(, $key:ident: $value:expr)* $(,)?) => {
        pub(crate) static $name: Object = Object {
            fields: &[$(Field { name: $field, need: $crate::schema::object!(@$must), shape: $shape }),*],
            $($key: $value,)*
            ..Object { title: $title, fields: &[], also: &[], typed: None, one_of: &[], groups: &[], ignored: &[], open: false }
        };
    };
    (@must) => { $crate::shape::Need::Must };
    (@should) => { $crate::shape::Need::Should };
    (@may) => { $crate::shape::Need::May };
}
pub(crate) use object;

const ANY: Shape = Shape::Any;
const TEXT: Shape = Shape::Text;
const BOOL: Shape = Shape::Bool;
const TEXTS: Shape = Shape::List(&Shape::Text);
/// A list of texts, or one text.
const TEXT_OR_TEXTS: Shape = Shape::Or(&TEXTS, &Shape::Text);
const TAGS: Shape = Shape::Or(
    &Shape::Map(&Shape::Text),
    &Shape::Noted(
        &Shape::Text,
        "a text is no tags and is not read; write `name: value` pairs",
    ),
);
const IDENTIFIER: Shape = Shape::By(Rule::Identifier);
const NAME: Shape = Shape::By(Rule::Name);
const DURATION: Shape = Shape::By(Rule::Duration);
const REFERENCE: Shape = Shape::By(Rule::Reference);
const VERSION: Shape = Shape::By(Rule::Version);
const FILLED: Shape = Shape::By(Rule::Filled);
/// `type` where [`Typed`] checks it.
const TYPE: Shape = Shape::Text;

/// `type` decides about `spec`.
const fn typed(
    shapes: &'static [(&'static str, Shape)],
    names: &'static [&'static str],
) -> Option<Typed> {
    Some(Typed {
        by: "type",
        field: "spec",
        shapes,
        names,
    })
}

/// Specs that have no fields.
static NOTHING: Object = Object {
    title: "an empty spec",
    fields: &[],
    also: &[],
    typed: None,
    one_of: &[],
    groups: &[],
    ignored: &[],
    open: false,
};

// Fields that Harness writes by itself, at any entity or element.
object!(MARKS, "an element", [may "metadata": ANY, may "__uuid": TEXT, may "__yamlNode": ANY]);

object!(VARIABLE, "a variable", [
    must "name": Shape::By(Rule::Variable),
    must "type": TYPE,
    may "value": Shape::Or(&ANY, &TEXT),
    may "default": TEXT,
    may "description": TEXT,
    may "required": BOOL,
    may "executionTarget": ANY,
    may "id": TEXT,
    may "displayName": TEXT,
    may "options": ANY,
], also: &[&MARKS], typed: Some(Typed {
    by: "type",
    field: "value",
    shapes: &[("Number", Shape::By(Rule::Number))],
    names: &["String", "Secret", "Connector"],
}));
const VARIABLES: Shape = Shape::List(&Shape::Object(&VARIABLE));

object!(TEMPLATE_LINK, "a template reference", [
    must "templateRef": TEXT,
    may "versionLabel": TEXT,
    may "label": TEXT,
    may "gitBranch": TEXT,
    may "templateInputs": ANY,
    may "templateOverrides": ANY,
    may "templateVariables": ANY,
], also: &[&MARKS]);
const TEMPLATE: Shape = Shape::Object(&TEMPLATE_LINK);

/// Deployment types of Harness.
pub(crate) static DEPLOYMENT_TYPES: &[&str] = &[
    "Kubernetes",
    "NativeHelm",
    "Ssh",
    "WinRm",
    "ServerlessAwsLambda",
    "AzureWebApp",
    "AzureFunction",
    "CustomDeployment",
    "ECS",
    "Elastigroup",
    "TAS",
    "Asg",
    "GoogleCloudFunctions",
    "AwsLambda",
    "AWS_SAM",
    "GoogleCloudRun",
    "AzureContainerApps",
    "Salesforce",
    "GoogleManagedInstanceGroup",
    "AiAgent",
];
