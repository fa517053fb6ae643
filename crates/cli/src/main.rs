//! The binary `slipway`.
fn main() {}
