//! Entities in Harness YAML: parsed with line and column, validated. Pure.

pub mod diagnostic;
pub mod emit;
pub mod id;
mod json;
pub mod status;
pub mod tree;
pub mod yaml;

pub use diagnostic::{Code, Diagnostic, Diagnostics, Severity};
pub use tree::{Ref, Tree};
