//! Entities in Harness YAML: parsed with line and column, validated. Pure.

pub mod id;
pub mod status;
