//! The client commands: one file per verb.

pub mod abort;
pub mod again;
pub mod apply;
pub mod approval;
pub mod artifact;
pub mod connector;
pub mod entity;
pub mod files;
pub mod follow;
pub mod graph;
pub mod import_git;
pub mod input;
pub mod interrupt;
pub mod logs;
pub mod plan;
pub mod rollback;
pub mod run;
pub mod schema;
pub mod token;
pub mod transfer;
pub mod tree;
pub mod trigger;
pub mod user;
pub mod validate;
