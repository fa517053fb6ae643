//! A small deterministic generator: what failed with a seed can be run again.

/// The generator.
pub struct Dice(u64);

impl Dice {
    /// Begins with a seed.
    pub fn new(seed: u64) -> Self {
        // From 0 it would never get away.
        Self(seed.max(1))
    }

    /// Begins with `SLIPWAY_SEED`, or with this seed where that is not set.
    pub fn from_env(seed: u64) -> (Self, u64) {
        let seed = number("SLIPWAY_SEED", seed);
        (Self::new(seed), seed)
    }

    /// A number from 0, less than `sides`, which is at least 1.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// How often `slipway local` is killed: `SLIPWAY_KILLS`, or so often where that is not set.
pub fn kills(short: u32) -> u32 {
    number("SLIPWAY_KILLS", short)
}

fn number<N: std::str::FromStr>(name: &str, otherwise: N) -> N {
    let given = std::env::var(name).ok();
    given
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}
