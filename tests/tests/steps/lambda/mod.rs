//! The steps of AWS Lambda.

mod canary;
mod deploy;
mod hostile;
pub(crate) mod world;
