//! The account as its clients see it, in virtual time.

mod breaker;
mod durable;
mod hostile;
mod operations;
mod rolling;
mod sdk;
mod support;
