//! Another value for every field.

mod entity;
mod pipeline;
mod step;

use slipway_model::Kind;

const STAGE: &str = "/pipeline/stages/1/stage";
const SPEC: &str = "/pipeline/stages/1/stage/spec";
const LOOK: &str = "/pipeline/stages/0/stage/spec";
const GROUP: &str = "/pipeline/stages/0/stage/spec/execution/steps/1/stepGroup";
const STEP: &str = "/pipeline/stages/1/stage/spec/execution/steps/0/step";
const LOOP: &str = "/pipeline/stages/0/stage/spec/execution/steps/0/step/strategy";
pub(crate) const STORE: &str = r#"{"store": {"type": "Inline", "spec": {"content": "x"}}}"#;

/// Fields of one element: the kind of document, the element as the schema calls it, where one stands, and a
/// merge patch for each field that fills it in otherwise; with `+` before it, a patch of the element around.
pub(crate) type Samples = (
    Kind,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Every sample.
pub(crate) fn all() -> impl Iterator<Item = &'static Samples> {
    [pipeline::ALL, step::ALL, entity::ALL]
        .into_iter()
        .flatten()
}
