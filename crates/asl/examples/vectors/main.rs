//! Plays conformance vectors against the engine: one JSON vector per line on stdin, one answer per line
//! on stdout. Time is virtual. What a vector's world holds (functions, objects, workers, recorded answers
//! of services) is in `world`; the engine itself is the one that `slipway local` runs.
//!
//! ```text
//! python3 score.py vectors -- target/release/examples/vectors
//! ```

mod functions;
mod play;
mod service;
mod services;
mod workers;

use std::io::BufRead as _;

use anyhow::Context as _;
use serde_json::{Value, json};

fn main() -> anyhow::Result<()> {
    for line in std::io::stdin().lock().lines() {
        let vector: Value = serde_json::from_str(&line?).context("a vector is not JSON")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()?;
        let mut answer = runtime
            .block_on(play::play(&vector))
            .unwrap_or_else(|error| json!({"skip": format!("{error:#}")}));
        answer["id"] = vector["id"].clone();
        println!("{answer}");
    }
    Ok(())
}
