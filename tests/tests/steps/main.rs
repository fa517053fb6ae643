//! Steps against the sandbox account, killed and refused at every call.

mod accounts;
mod asg;
mod bad_input;
mod balancer;
mod basic;
mod blue_green;
mod calls;
mod canary;
mod common;
mod discovery;
mod ecs;
mod foreign;
mod generic;
mod instances;
mod lambda;
mod oidc;
mod published;
mod raw;
mod run_task;
mod scale;
mod schedule;
mod strategies;
mod tap;
mod tickets;
mod world;
