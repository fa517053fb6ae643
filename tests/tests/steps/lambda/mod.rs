//! The steps of AWS Lambda.

mod canary;
mod deploy;
mod hostile;
mod strategies;
pub(crate) mod world;
