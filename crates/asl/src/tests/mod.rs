//! The engine from outside its HTTP API, on a paused clock.

mod crash;
mod service;
mod states;
mod tasks;
