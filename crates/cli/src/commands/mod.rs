//! The client commands: one file per verb.

pub mod abort;
pub mod apply;
pub mod entity;
pub mod follow;
pub mod graph;
pub mod logs;
pub mod run;
pub mod tree;
