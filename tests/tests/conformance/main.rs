//! What `../shared` asks for: `cargo xtask conformance`.

mod asl;
mod aws_cli;
mod boto3;
mod corpus;
mod endpoint;
mod expression_world;
mod expressions;
mod lambda;
mod language;
mod manifests;
mod ministack;
mod planning;
mod rolling;
mod schema;
mod steps;

use std::path::PathBuf;

/// The folder that `SLIPWAY_SHARED` names, or the one beside the checkout.
fn shared() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
    let shared = std::env::var_os("SLIPWAY_SHARED").map_or_else(|| beside.into(), PathBuf::from);
    assert!(
        shared.join("corpus/INDEX.csv").is_file(),
        "{} has no corpus",
        shared.display()
    );
    shared
}
