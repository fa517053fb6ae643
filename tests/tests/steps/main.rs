//! Steps against the sandbox account, killed and refused at every call.

mod common;
mod ecs;
mod generic;
mod tap;
mod world;
