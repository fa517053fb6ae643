//! The part of the simulation of deliveries that runs in `cargo xtask test`. `cargo xtask simulate --deliveries N` plays more.

use slipway_simulation::deliveries::{Counts, WHOLE, simulate};

/// Some worlds, the last of them with the real machines.
const SEEDS: std::ops::Range<u64> = WHOLE - 5..WHOLE;

/// Worlds that did not hold once.
const FOUND: [u64; 1] = [150];

#[test]
fn every_event_starts_one_run_of_each_trigger_that_wants_it() {
    let mut counts = Counts::default();
    for seed in SEEDS.chain(FOUND) {
        counts += simulate(seed).unwrap_or_else(|told| panic!("{told}"));
    }
    // The worlds are as bad as they should be.
    let of = |part: u64, percent: u64| part * 100 > counts.deliveries * percent;
    assert!(
        of(counts.duplicates, 25) && of(counts.late, 8),
        "{counts:?}"
    );
    assert!(
        counts.replays > 3 && counts.overtaken > 20 && counts.whole == 1,
        "{counts:?}"
    );
    assert!(
        counts.deaths > 50 && counts.refused > 50 && counts.invocations > 50,
        "{counts:?}"
    );
}
