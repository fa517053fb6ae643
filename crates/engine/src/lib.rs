//! Decides what a run does next, and the use cases around it.

pub mod directive;
