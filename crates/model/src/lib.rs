//! Entities in Harness YAML: parsed with line and column, validated. Pure.
//!
//! [`entity::parse`] reads a text into a [`tree::Tree`] that knows the place of every key and value, checks it
//! against the fields that Harness knows and answers with an [`entity::Parsed`] or with every
//! [`Diagnostic`] at once. [`inputs`] fills in the runtime inputs of a pipeline. [`render`] shows
//! diagnostics to people.

pub mod diagnostic;
pub mod duration;
pub mod edit;
pub mod emit;
pub mod entity;
mod expression;
pub mod freeze;
pub mod graft;
pub mod id;
pub mod inputs;
mod json;
mod kind;
pub mod names;
pub mod number;
mod path;
pub mod render;
pub mod schema;
mod seen;
mod shape;
pub mod status;
pub mod tree;
pub mod variable;
pub mod yaml;

pub use diagnostic::{Code, Diagnostic, Diagnostics, Severity};
pub use entity::{EntityHead, Kind, Parsed};
pub use schema::json_schema;
pub use tree::{Ref, Tree};
