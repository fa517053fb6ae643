//! `inputSet` and `overlayInputSet`. Harness has no schema for these.

use super::{
    IDENTIFIER, MARKS, NAME, Object, REFERENCE, Shape, TAGS, TEXT, TEXTS, object, pipeline,
};
use crate::shape::Field;

object!(INPUT_SET, "an input set", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    must "pipeline": Shape::Part(&Shape::Object(&pipeline::PIPELINE)),
    may "gitBranch": TEXT,
], also: &[&MARKS]);

object!(OVERLAY, "an overlay of input sets", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    may "pipelineIdentifier": REFERENCE,
    may "pipeline": Shape::Object(&OVERLAID),
    must "inputSetReferences": TEXTS,
], one_of: &["pipelineIdentifier", "pipeline"], also: &[&MARKS]);
object!(OVERLAID, "the pipeline of an overlay", [must "identifier": REFERENCE], also: &[&MARKS]);
