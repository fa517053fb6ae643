//! Files from Git repositories on this machine and over HTTP, and from plain folders.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "what the tests share runs in tests only, and a test says what it expected"
)]

mod account;
mod app;
mod changed;
mod changed_more;
mod clouds;
mod connection;
mod feed_host;
mod feeds;
mod feeds_of_files;
mod feeds_of_packages;
mod google;
mod hooks;
mod host;
mod http;
mod local;
mod registry;
mod save;
mod ssh;
mod sshd;
mod support;
