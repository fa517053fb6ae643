//! Every access pattern of the store, through the SDK, on the embedded services.

#![expect(
    clippy::expect_used,
    reason = "what the tests share runs in tests only, and a test says what it expected"
)]

mod durability;
mod entities;
mod faults;
mod holds;
mod logs;
mod nodes;
mod people;
mod runs;
mod services;
mod tasks;

use jiff::Timestamp;
use slipway_clock::Clock;
use slipway_model::id::{AccountId, EntityId, OrgId, ProjectId, RunId, Scope};
use slipway_store::Store;
use slipway_store::embedded::Embedded;

/// A store of its own, on a clock that moves only when everything waits.
fn store() -> Store {
    Embedded::temporary()
        .expect("embedded services")
        .store(clock())
}

fn clock() -> Clock {
    Clock::paused(Timestamp::from_second(1_767_225_600).expect("a timestamp"))
}

fn scope() -> Scope {
    Scope::project(
        AccountId::new("acc"),
        OrgId::new("org"),
        ProjectId::new("shop"),
    )
}

fn id(text: &str) -> EntityId {
    EntityId::new(text)
}

fn run(text: &str) -> RunId {
    RunId::new(text)
}

/// Text that does not compress, always the same.
fn noise(bytes: usize) -> String {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut text = String::with_capacity(bytes);
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push(char::from(b'!' + u8::try_from(state % 90).expect("small")));
    }
    text
}
