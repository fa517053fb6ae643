//! The account as its clients see it, in virtual time.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on panics, in its helpers too"
)]

mod alarms;
mod balanced;
mod balancers;
mod breaker;
mod discovery;
mod durable;
mod groups;
mod hooks;
mod hostile;
mod images;
mod invoke;
mod lambda;
mod lambda_aliases;
mod operations;
mod placement;
mod processes;
mod roles;
mod rolling;
mod scaling;
mod sdk;
mod sdk_elb;
mod sdk_lambda;
mod support;
mod task_definitions;
