//! The steps of AWS Lambda.

mod canary;
mod deploy;
mod hostile;
mod world;
