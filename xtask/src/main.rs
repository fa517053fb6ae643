//! `cargo xtask`: the project's tasks.
fn main() {}
