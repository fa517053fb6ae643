//! Files from Git repositories on this machine and over HTTP, and from plain folders.

mod host;
mod http;
mod local;
mod support;
