//! The engine from outside its HTTP API, on a paused clock.

mod api;
mod callers;
mod crash;
mod jsonpath;
mod maps;
mod redrive;
mod redrive_maps;
mod rest;
mod service;
mod states;
mod tasks;
mod turns;
mod world;
