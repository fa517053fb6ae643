//! Wires the function to the Lambda runtime.
fn main() {}
