//! Runtime inputs.
