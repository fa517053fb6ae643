//! Steps against the sandbox account, killed and refused at every call.

mod common;
mod ecs;
mod generic;
mod instances;
mod tap;
mod tickets;
mod world;
